"""Formats, the picture of a change, and what a `Screenshot` gives of its bytes."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
from PIL import Image

from deskhand import ActionError, Desktop, FileError, Rect, difference
from deskhand._core.difference import changed_rects
from deskhand._core.formats import Format
from deskhand.backends.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOSSLESS = ("png", "indexed", "raw")
MAGIC = {"png": b"\x89PNG", "indexed": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "webp": b"RIFF", "raw": b""}


@pytest.fixture
def backend() -> MemoryBackend:
    backend = MemoryBackend((160, 90))
    backend.paint((0, 0, 160, 90), (250, 250, 250))
    backend.paint((20, 30, 50, 20), (200, 40, 10))
    return backend


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


@pytest.mark.parametrize("name", get_args(Format))
def test_every_format_shows_the_screen(desktop: Desktop, name: Format) -> None:
    exact = desktop.screenshot().array()
    shot = desktop.screenshot((80, 45), format=name)
    assert shot.format == name
    assert shot.data.startswith(MAGIC[name])
    assert shot.array().shape == (45, 80, 3)
    assert shot.image().mode == "RGB"
    full = desktop.screenshot(format=name)
    off = np.abs(full.array().astype(int) - exact).max()
    assert off == 0 if name in LOSSLESS else 0 < off < 60
    # Whatever the format: the same pixels as a PNG file, and as a URL.
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(full.png)).convert("RGB")), full.array())
    header, _, body = full.data_url.partition(",")
    assert header == f"data:{'image/png' if name == 'raw' else full.media_type};base64"
    assert base64.b64decode(body, validate=True) == (full.png if name == "raw" else full.data)


def test_quality_is_passed_on(desktop: Desktop) -> None:
    for name in ("jpeg", "webp"):
        sizes = [len(desktop.screenshot(format=name, quality=quality).data) for quality in (10, 95)]
        assert sizes[0] < sizes[1]


def test_perform_takes_the_same_choices(desktop: Desktop) -> None:
    seen = desktop.perform(settle=False, size=0.5, format="jpeg", quality=50)
    assert (seen.size, seen.media_type) == ((80, 45), "image/jpeg")


@pytest.mark.parametrize(
    "bad", [{"format": "gif"}, {"quality": 0}, {"quality": 101}, {"quality": 8.5}, {"size": "gpt"}]
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    desktop: Desktop, backend: MemoryBackend, bad: dict[str, Any]
) -> None:
    with pytest.raises(ActionError):
        desktop.screenshot(**bad)
    with pytest.raises(ActionError):
        desktop.perform(**bad)
    assert backend.events == []


def test_an_indexed_picture_has_a_palette(desktop: Desktop, backend: MemoryBackend) -> None:
    assert Image.open(io.BytesIO(desktop.screenshot(format="indexed").data)).mode == "P"
    for shade in range(150):
        backend.paint((shade, 0, 1, 1), (shade, 0, 0))
        backend.paint((shade, 1, 1, 1), (0, shade, 0))
    assert Image.open(io.BytesIO(desktop.screenshot(format="indexed").data)).mode == "RGB"


def test_a_difference_frames_what_changed(desktop: Desktop, backend: MemoryBackend) -> None:
    before = desktop.screenshot()
    backend.paint((100, 60, 12, 9), (0, 90, 200))
    after = desktop.screenshot()
    assert changed_rects(before, after) == [Rect(100, 60, 12, 9)]
    sheet = np.asarray(difference(before, after))
    assert sheet.shape == (90, 3 * 160 + 2 * 8, 3)
    old, new, marked = (sheet[:, n * 168 : n * 168 + 160] for n in range(3))
    assert np.array_equal(old, before.array())
    assert np.array_equal(new, after.array())
    assert np.array_equal(marked[60:69, 100:112], after.array()[60:69, 100:112])
    assert tuple(marked[59, 99]) == tuple(marked[69, 112]) == (230, 0, 60)
    assert marked[30:50, 20:70].min() > 170, "what did not change is pale"


def test_no_difference_has_no_frame(desktop: Desktop) -> None:
    assert changed_rects(desktop.screenshot(), desktop.screenshot()) == []


def test_pictures_of_two_sizes_have_no_difference(desktop: Desktop) -> None:
    with pytest.raises(ActionError):
        difference(desktop.screenshot(), desktop.screenshot((80, 45)))


@pytest.mark.parametrize(("name", "of"), [("a.png", "PNG"), ("a.PNG", "PNG"), ("a.jpg", "JPEG"), ("a.webp", "WEBP")])
@pytest.mark.parametrize("format", get_args(Format))
def test_a_picture_is_saved_in_the_format_of_its_name(
    desktop: Desktop, tmp_path: Path, name: str, of: str, format: Format
) -> None:
    shot = desktop.screenshot(format=format)
    shot.save(tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert (image.format, image.size) == (of, (160, 90))
        if of == "PNG":
            assert np.array_equal(np.asarray(image.convert("RGB")), shot.array())
    if shot.media_type == f"image/{of.lower()}":
        assert (tmp_path / name).read_bytes() == shot.data


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("a.gif", ActionError, "let it end with .png, .jpg or .webp"),
        ("png", ActionError, "names no format"),
        ("", ActionError, "empty"),
        ("missing/a.png", FileError, "cannot write"),
    ],
)
def test_what_cannot_be_saved(desktop: Desktop, tmp_path: Path, path: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        desktop.screenshot().save(tmp_path / path if path == "missing/a.png" else path)


def test_a_notebook_is_shown_the_picture_and_the_facts(desktop: Desktop) -> None:
    shot = desktop.screenshot(format="jpeg")
    assert shot._repr_png_() == shot.png
    assert shot._repr_png_().startswith(MAGIC["png"])
    seen = replace(
        desktop.perform(settle=False),
        rects=(Rect(16, 45, 80, 9),),
        clipboard_lost=("<script>alert(1)</script>",),
        may_change=True,
    )
    shown = seen._repr_html_()
    assert seen.data_url in shown
    assert "left:10.000%;top:50.000%;width:50.000%;height:10.000%" in shown
    assert "1 region changed; clipboard_lost: " in shown
    assert "may_change: True" in shown
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert replace(seen, rects=(Rect(0, 0, 1, 1),) * 5000)._repr_html_().count("outline") == 200
