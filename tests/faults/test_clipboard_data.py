"""Data of any type on the clipboard: with other programs, with real applications, and from owners that break the rules."""

from __future__ import annotations

import io
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import deskhand
from conftest import need
from deskhand import ActionError, KeyPress, LeftClick, Type
from deskhand.desktop import clipboard
from faults.helpers import Bounds, until, within, x_environment, xclient
from faults.scale import TIMEOUT
from faults.xclient import content
from integration.apps import chromium_command, serve_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

MIB = 1 << 20
# A picture that needs pieces, files as a file manager copies them, and marked up text beside plain text.
OFFERED = {
    "image/png": 3_000_000,
    "x-special/gnome-copied-files": 60,
    "text/html": 1000,
    "UTF8_STRING": 700,
    "application/x-empty": 0,
}
# Shows the picture on the clipboard, or offers one; both are GTK's own code.
_GTK = """
import sys
import gi
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GdkPixbuf, Gtk
clipboard = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)
if sys.argv[1] == "save":
    clipboard.wait_for_image().savev(sys.argv[2], "png", [], [])
else:
    clipboard.set_image(GdkPixbuf.Pixbuf.new_from_file(sys.argv[2]))
    Gtk.main()
"""
_PAGE = """<!doctype html><title>page</title><body contenteditable style="font: 40px sans-serif">paste here<script>
addEventListener('paste', async event => {
  for (const item of event.clipboardData.items)
    if (item.kind === 'file') await fetch('/got', {method: 'POST', body: await item.getAsFile().arrayBuffer()});
});
</script>"""


@pytest.fixture
def desktop(launch: Callable[..., deskhand.Desktop]) -> deskhand.Desktop:
    """A desktop without a window manager."""
    return launch(size=(400, 300), window_manager=None)


def picture() -> npt.NDArray[np.uint8]:
    return np.random.default_rng(7).integers(0, 256, (60, 90, 3), dtype=np.uint8)


def png_of(pixels: npt.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def pixels_of(data: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def gtk(*arguments: str) -> list[str]:
    return [need("/usr/bin/python3", "python3-gi gir1.2-gtk-3.0"), "-c", _GTK, *arguments]


def test_what_is_written_is_what_others_get(desktop: deskhand.Desktop) -> None:
    contents = {kind: content(kind, size) for kind, size in OFFERED.items() if kind != "UTF8_STRING"}
    desktop.clipboard.write_data({**contents, "text/plain": "größe".encode()})
    listed = [*contents, "text/plain", "text/plain;charset=utf-8", "UTF8_STRING"]
    assert desktop.clipboard.types() == tuple(listed)
    assert desktop.clipboard.read() == "größe"
    for kind in listed:
        given = contents.get(kind, "größe".encode())
        out = [need("xclip", "xclip"), "-out", "-selection", "clipboard", "-target", kind]
        got = subprocess.run(out, env=x_environment(desktop), capture_output=True, check=False, timeout=60)
        assert got.stdout == given, kind
        assert desktop.clipboard.read_data(kind) == given, kind
    desktop.clipboard.write("a text")
    assert desktop.clipboard.read_data("image/png") is None


def test_what_others_offer_is_read(desktop: deskhand.Desktop) -> None:
    assert desktop.clipboard.types() == ()
    assert desktop.clipboard.read_data("image/png") is None
    with xclient(desktop) as client:
        client.ask("offer", {**OFFERED, "with blank": 10, "long" * 30: 10})
        assert desktop.clipboard.types() == tuple(OFFERED)
        for kind, size in OFFERED.items():
            assert desktop.clipboard.read_data(kind) == content(kind, size), kind
        for kind in ("image/bmp", "TARGETS", "TIMESTAMP", "nobody/knows-it"):
            assert desktop.clipboard.read_data(kind) is None, kind


@pytest.mark.parametrize(
    ("manner", "error"),
    [
        ("silent", deskhand.DeskhandTimeout),
        ("mixed", deskhand.BackendError),
        ("endless", deskhand.DeskhandError),
        ("crumbs", deskhand.DeskhandTimeout),
    ],
)
def test_owner_that_does_not_keep_to_the_rules(desktop: deskhand.Desktop, manner: str, error: type[Exception]) -> None:
    with xclient(desktop) as client:
        client.ask("offer", {"first": 10, "long": 300_000}, manner)
        with within(9, "the refusal"), Bounds(4 * 64 * MIB, 5):
            assert desktop.clipboard.types() == ("first", "long")
            assert desktop.clipboard.read_data("first") == content("first", 10)
            with pytest.raises(error):
                desktop.clipboard.read_data("long")
        desktop.clipboard.write_data({"image/png": b"ours"})
        assert desktop.clipboard.read_data("image/png") == b"ours"


def test_more_than_is_read(desktop: deskhand.Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine so much takes longer than the owner has.
    monkeypatch.setattr(clipboard, "_LIMIT", TIMEOUT)
    with xclient(desktop) as client:
        client.ask("offer", {"huge": 65 * MIB})
        with Bounds(8 * 64 * MIB, 20), pytest.raises(deskhand.BackendError, match="more than 64 MiB"):
            desktop.clipboard.read_data("huge")


def test_ten_thousand_types(desktop: deskhand.Desktop) -> None:
    with xclient(desktop) as client:
        client.ask("offer", {"first": 10}, "many")
        assert len(desktop.clipboard.types()) <= 64
        assert desktop.clipboard.types()[0] == "first"


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ({}, "there is no type"),
        ({"image": b""}, "a MIME type such as image/png"),
        ({"TARGETS": b""}, "a MIME type such as image/png"),
        ({"image/png\n": b""}, "a MIME type such as image/png"),
        ({"image/" + "p" * 100: b""}, "a MIME type such as image/png"),
        ({"image/png": "text"}, "the data of image/png is bytes"),
        ({f"a/{number}": b"" for number in range(65)}, "more than 64 types"),
        ({"a/b": bytes(40 * MIB), "a/c": bytes(40 * MIB)}, "64 MiB"),
    ],
)
def test_what_cannot_be_offered_is_refused(desktop: deskhand.Desktop, contents: dict[str, bytes], told: str) -> None:
    desktop.clipboard.write("before")
    with pytest.raises(ActionError, match=told):
        desktop.clipboard.write_data(contents)
    assert desktop.clipboard.read() == "before"


def test_a_picture_for_gtk_and_from_it(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    given, saved = picture(), tmp_path / "saved.png"
    desktop.clipboard.write_data({"image/png": png_of(given)})
    subprocess.run(gtk("save", str(saved)), env=x_environment(desktop), check=True, timeout=60)
    assert (pixels_of(saved.read_bytes()) == given).all()
    with subprocess.Popen(gtk("offer", str(saved)), env=x_environment(desktop)) as owner:
        try:
            until(lambda: "image/bmp" in desktop.clipboard.types(), 60, "GTK's offer")
            for kind in ("image/png", "image/bmp"):
                data = desktop.clipboard.read_data(kind)
                assert data is not None
                assert (pixels_of(data) == given).all(), kind
        finally:
            owner.kill()


def test_a_picture_is_pasted_into_a_page(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    """It is also there for the next paste after a text was pasted between."""
    desktop = launch(size=(1000, 700))
    got: list[bytes] = []
    server, url = serve_page(lambda _: _PAGE.encode(), got.append)
    try:
        program = desktop.start(chromium_command(url, tmp_path), timeout=60)
        assert program.window is not None
        desktop.windows.activate(program.window)
        desktop.perform(LeftClick((300, 200)))
        given = picture()
        desktop.clipboard.write_data({"image/png": png_of(given)})
        desktop.perform(KeyPress(["ctrl+v"]))
        until(lambda: bool(got), 60, "the picture")
        desktop.perform(Type("between", paste=True))
        desktop.perform(KeyPress(["ctrl+v"]))
        until(lambda: len(got) == 2, 60, "the picture once more")
    finally:
        server.shutdown()
        server.server_close()
    for data in got:
        assert (pixels_of(data) == given).all()
