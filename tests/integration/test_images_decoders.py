"""Every PNG, however its strips came about, shows its very pixels in Pillow, ImageMagick and Chromium; pngcheck agrees."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from conftest import need
from deskhand._native import Screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import deskhand

SIDE = 150


def flat(rng: np.random.Generator, width: int, height: int) -> np.ndarray[Any, Any]:
    return np.broadcast_to(rng.integers(0, 256, 4, np.uint8), (height, width, 4))


def text(rng: np.random.Generator, width: int, height: int) -> np.ndarray[Any, Any]:
    return np.where(rng.random((height, width, 1)) < 0.15, 0, rng.integers(200, 256, 4)).astype(np.uint8)


def gradient(rng: np.random.Generator, width: int, height: int) -> np.ndarray[Any, Any]:
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack([(x * a + y * b) / 4 for a, b in rng.integers(0, 5, (4, 2))], -1).astype(np.uint8)


def photo(rng: np.random.Generator, width: int, height: int) -> np.ndarray[Any, Any]:
    return (gradient(rng, width, height) + rng.integers(0, 12, (height, width, 4))).astype(np.uint8)


def noise(rng: np.random.Generator, width: int, height: int) -> np.ndarray[Any, Any]:
    return rng.integers(0, 256, (height, width, 4), np.uint8)


KINDS = (flat, text, gradient, photo, noise)
sides = st.integers(1, SIDE)
paints = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32), sides, sides, sides, sides)
sizes = st.one_of(st.none(), st.tuples(sides, sides))
steps = st.one_of(
    st.tuples(st.just("paint"), paints),
    st.tuples(st.just("resize"), st.tuples(sides, sides)),
    st.tuples(st.just("tighten"), st.none()),
    st.tuples(st.just("look"), st.tuples(sizes, st.booleans())),
)


def run(script: list[tuple[str, Any]]) -> list[tuple[bytes, np.ndarray[Any, Any]]]:
    """The files that a script's looks gave, each with the pixels it must show."""
    screen = Screen(SIDE, SIDE)
    looks = []
    for step, value in [*script, ("look", (None, False))]:
        width, height = screen.size
        if step == "paint":
            kind, seed, x, y, w, h = value
            x, y = x % width, y % height
            w, h = min(w, width - x), min(h, height - y)
            screen.update((x, y, w, h), kind(np.random.default_rng(seed), w, h).tobytes(), 0.0)
        elif step == "resize":
            screen.resize(*value, 0.0)
        elif step == "tighten":
            while screen.tighten():
                pass
        else:
            size, indexed = value
            file = screen.indexed_png(size) if indexed else screen.png(size)
            # Only what stays is made smaller.
            assert file == (screen.indexed_png(size) if indexed else screen.png(size))
            w, h, rgb = screen.rgb(size)
            looks.append((file, np.frombuffer(rgb, np.uint8).reshape(h, w, 3)))
    return looks


def check(folder: Path, looks: list[tuple[bytes, np.ndarray[Any, Any]]]) -> list[Path]:
    """Each file in Pillow, and all of them in pngcheck."""
    paths = []
    for n, (file, pixels) in enumerate(looks):
        path = folder / f"{n}.png"
        path.write_bytes(file)
        paths.append(path)
        with Image.open(path) as image:
            assert np.array_equal(np.asarray(image.convert("RGB")), pixels)
    report = subprocess.run(
        [need("pngcheck", "pngcheck"), "-v", *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stdout
    assert len(re.findall(r"^No errors detected", report.stdout, re.MULTILINE)) == len(paths)
    return paths


def magick(path: Path, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The pixels that ImageMagick sees."""
    argv = [need("convert", "imagemagick"), str(path), "-depth", "8", "rgb:-"]
    done = subprocess.run(argv, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(shape)


@settings(
    max_examples=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(script=st.lists(steps, max_size=12))
def test_random_sequences(tmp_path: Path, script: list[tuple[str, Any]]) -> None:
    paths = check(tmp_path, looks := run(script))
    file, pixels = paths[-1], looks[-1][1]
    assert np.array_equal(magick(file, pixels.shape), pixels)


# As text: the CRC-32 of each image's RGB, once all have loaded.
HASHES = """<!doctype html><meta charset=utf-8>{images}<pre id="out"></pre><script>
function crc(rgba) {{
  let crc = ~0;
  for (let i = 0; i < rgba.length; i++) {{
    if (i % 4 == 3) continue;
    crc ^= rgba[i];
    for (let k = 0; k < 8; k++) crc = crc >>> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }}
  return ~crc >>> 0;
}}
onload = () => {{
  const crcs = Array.from(document.images, image => {{
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return crc(context.getImageData(0, 0, canvas.width, canvas.height).data);
  }});
  document.getElementById("out").textContent = JSON.stringify(crcs);
}};
</script>"""


def test_chromium_shows_the_same_pixels(tmp_path: Path) -> None:
    script: list[tuple[str, Any]] = []
    for n, kind in enumerate(KINDS):
        script += [("paint", (kind, n, 0, 10 * n, SIDE, 80)), ("look", (None, False)), ("look", ((97, 61), False))]
    script += [("tighten", None), ("look", (None, False)), ("resize", (70, 40)), ("paint", (text, 1, 0, 0, 70, 40))]
    looks = run([*script, ("look", (None, True))])
    urls = ["data:image/png;base64," + base64.b64encode(file).decode() for file, _ in looks]
    images = "".join(f'<img src="{url}">' for url in urls)
    page = tmp_path / "page.html"
    page.write_text(HASHES.format(images=images))
    argv = [need("chromium", "chromium"), "--headless", f"--user-data-dir={tmp_path}/chromium", "--disable-gpu"]
    argv += ["--no-sandbox"] if os.getuid() == 0 else []
    argv += ["--force-color-profile=srgb", "--dump-dom", page.as_uri()]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    shown = re.search(r'<pre id="out">(\[.*\])</pre>', done.stdout)
    assert shown, done.stdout[-500:]
    assert json.loads(shown[1]) == [zlib.crc32(pixels.tobytes()) for _, pixels in looks]


def test_a_real_screen_with_its_cursor(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    desktop = launch(size=(700, 500))
    desktop.start("mousepad")
    shots = [desktop.screenshot(size, region) for size in (None, 0.6) for region in (None, (100, 50, 301, 203))]
    desktop.resize((640, 400))
    shots += [desktop.screenshot(), desktop.screenshot(format="indexed"), desktop.screenshot(cursor=False)]
    desktop.screenshot()
    screen = desktop._core.backend.screen
    assert screen.tighten()
    while screen.tighten():
        pass
    shots.append(desktop.screenshot())
    for path, shot in zip(check(tmp_path, [(shot.png, shot.array()) for shot in shots]), shots, strict=True):
        assert np.array_equal(magick(path, shot.array().shape), shot.array())


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (3, 33)])
def test_extreme_sizes(tmp_path: Path, size: tuple[int, int]) -> None:
    screen = Screen(*size)
    looks = []
    for n, kind in enumerate(KINDS):
        screen.update((0, 0, *size), kind(np.random.default_rng(n), *size).tobytes(), 0.0)
        looks += [
            (look(), np.frombuffer(screen.rgb()[2], np.uint8).reshape(*size[::-1], 3))
            for look in (screen.png, screen.indexed_png)
        ]
    check(tmp_path, looks)


def test_pixels_that_did_not_change_are_not_copied_again() -> None:
    screen = Screen(4, 3)
    screen.update((0, 0, 4, 3), bytes(range(48)), 0.0)
    first = screen.rgb()[2]
    assert screen.rgb()[2] is first
    # The same pixels again, without the padding byte.
    screen.update((0, 0, 1, 1), bytes((0, 1, 2, 99)), 1.0)
    assert screen.rgb()[2] is first
    assert screen.rgb(region=(0, 0, 2, 2))[2] == first[:6] + first[12:18]
    screen.update((3, 2, 1, 1), bytes(4), 2.0)
    assert screen.rgb()[2] == first[:-3] + bytes(3)
