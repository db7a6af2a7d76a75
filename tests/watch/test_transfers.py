"""Pictures and files between the page and the desktop, in a real browser."""

from __future__ import annotations

import base64
import io
import os
import random
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import deskhand
from deskhand import watch
from deskhand.desktop.access import bare
from deskhand.watch.transfers import LARGEST
from faults.helpers import need, until
from integration.apps import environment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from deskhand.watch import Server
    from watch.browser import Viewer

LIMIT = 20.0
BOTH = ["clipboard-read", "clipboard-write"]
# A program that takes a picture with Ctrl+V, as GTK's own code does, and says so.
_TAKES = """
import sys
import gi
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gtk
window = Gtk.Window(title="takes pictures")
window.set_default_size(300, 200)
clipboard = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)
def pressed(_, event):
    if event.keyval == Gdk.KEY_v and event.state & Gdk.ModifierType.CONTROL_MASK:
        clipboard.wait_for_image().savev(sys.argv[1], "png", [], [])
        print("taken", flush=True)
window.connect("key-press-event", pressed)
window.show_all()
Gtk.main()
"""
_OFFERS = """
import sys
import gi
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GdkPixbuf, Gtk
Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_image(GdkPixbuf.Pixbuf.new_from_file(sys.argv[1]))
print("offered", flush=True)
Gtk.main()
"""
# Puts a picture on the viewer's own clipboard.
_COPY = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': new Blob([bytes], { type: 'image/png' }) })]);
}"""
_PASTE = """([data, name, type, text]) => {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const pasted = new DataTransfer();
  pasted.items.add(new File([bytes], name, { type }));
  if (text) pasted.setData('text/plain', text);
  document.querySelector('#keys').dispatchEvent(new ClipboardEvent('paste', { clipboardData: pasted, cancelable: true }));
}"""
_READ = """async () => {
  const [item] = await navigator.clipboard.read();
  const bytes = new Uint8Array(await (await item.getType('image/png')).arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode.apply(null, bytes.subarray(at, at + 32768));
  return btoa(text);
}"""
_DROP = """(files) => {
  const dropped = new DataTransfer();
  for (const [data, name] of files) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    dropped.items.add(new File([bytes], name));
  }
  const made = (type) => new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true });
  const canvas = document.querySelector('#picture');
  canvas.dispatchEvent(made('dragover'));
  return canvas.dispatchEvent(made('drop'));
}"""


def picture(width: int = 90, height: int = 60) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)


def file_of(pixels: npt.NDArray[np.uint8], kind: str = "PNG", **options: object) -> bytes:
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, kind, **options)
    return made.getvalue()


def pixels_of(data: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def offer(desktop: deskhand.Desktop, type: str, data: bytes) -> None:
    """Let a program own the clipboard, which goes on beside this."""
    command = [need("xclip", "xclip"), "-in", "-selection", "clipboard", "-target", type]
    subprocess.run(command, input=data, env=environment_of(desktop), stdout=subprocess.DEVNULL, check=True)


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def watched(home: Path) -> Iterator[tuple[deskhand.Desktop, Server]]:
    """A desktop without a policy: what a person sends is not asked about."""
    with (
        deskhand.launch(size=(800, 600), env={"HOME": str(home)}) as desktop,
        watch.serve(desktop) as server,
    ):
        yield desktop, server


def test_a_pasted_picture_is_what_an_application_gets(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], tmp_path: Path
) -> None:
    desktop, _ = watched
    pixels = picture(300, 200)
    viewer = opened("watch", "control", permissions=BOTH)
    command = [need("/usr/bin/python3", "python3-gi gir1.2-gtk-3.0"), "-c", _TAKES, str(tmp_path / "taken.png")]
    with subprocess.Popen(command, env=environment_of(desktop), stdout=subprocess.PIPE, text=True) as program:
        try:
            until(lambda: "takes pictures" in str([each.title for each in desktop.windows.list()]), LIMIT, "its window")
            viewer.take()
            viewer.page.evaluate(_COPY, text_of(file_of(pixels)))
            viewer.page.keyboard.press("Control+v")
            assert program.stdout is not None
            assert program.stdout.readline() == "taken\n"
        finally:
            program.kill()
    assert np.array_equal(pixels_of((tmp_path / "taken.png").read_bytes()), pixels)
    data = bare(desktop).clipboard.read_data("image/png")
    assert data is not None
    assert np.array_equal(pixels_of(data), pixels)
    viewer.wait_hidden("#transfer")
    viewer.hand_back()


def test_pictures_of_other_types_become_png_and_text_comes_first(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], home: Path
) -> None:
    desktop, _ = watched
    clipboard = bare(desktop).clipboard
    pixels = picture()
    viewer = opened("watch", "control")
    viewer.take()
    webp = text_of(file_of(pixels, "WEBP", lossless=True))
    viewer.page.evaluate(_PASTE, [webp, "photo.webp", "image/webp", ""])

    def arrived() -> bool:
        data = clipboard.read_data("image/png")
        return data is not None and np.array_equal(pixels_of(data), pixels)

    until(arrived, LIMIT, "the picture")
    # A table of a spreadsheet comes with a picture of it.
    viewer.page.evaluate(_PASTE, [webp, "image.webp", "image/webp", "a table"])
    until(lambda: clipboard.read() == "a table", LIMIT, "the text")
    # What is no picture goes as the file that it is.
    viewer.page.evaluate(_PASTE, [text_of(b"broken"), "broken.jpg", "image/jpeg", ""])
    viewer.wait_text("#toasts", f"broken.jpg is on the desktop: {home}/Downloads/broken.jpg")
    assert (home / "Downloads/broken.jpg").read_bytes() == b"broken"
    assert clipboard.read() == "a table"
    viewer.hand_back()


def test_a_picture_of_an_application_is_copied(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], tmp_path: Path
) -> None:
    desktop, _ = watched
    # More than one piece.
    pixels = picture(700, 500)
    (tmp_path / "offered.png").write_bytes(file_of(pixels))
    viewer = opened("watch", "control", permissions=BOTH)
    viewer.take()
    command = [need("/usr/bin/python3", "python3-gi gir1.2-gtk-3.0"), "-c", _OFFERS, str(tmp_path / "offered.png")]
    with subprocess.Popen(command, env=environment_of(desktop), stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "offered\n"
            viewer.page.click("#copy")
            viewer.wait_shown("#picture-dialog")
        finally:
            program.kill()
    assert viewer.text("#copied-size") == "700 × 500"
    viewer.page.click("#picture-dialog button[value=copy]")
    viewer.wait_text("#toasts", "Copied.")
    copied = base64.b64decode(viewer.page.evaluate(_READ))
    assert np.array_equal(pixels_of(copied), pixels)
    viewer.hand_back()


def test_a_picture_is_kept_as_a_file_where_the_browser_does_not_copy(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    pixels = picture()
    viewer = opened("watch", "control")
    viewer.take()
    offer(desktop, "image/bmp", file_of(pixels, "BMP"))
    viewer.page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(new Error('no')); }")
    for choice in ("copy", "save"):
        viewer.page.click("#copy")
        viewer.wait_shown("#picture-dialog")
        with viewer.page.expect_download() as saved:
            viewer.page.click(f"#picture-dialog button[value={choice}]")
        assert saved.value.suggested_filename == "clipboard.png"
        assert np.array_equal(pixels_of(saved.value.path().read_bytes()), pixels)
    viewer.wait_text("#toasts", "does not let the page copy a picture")
    offer(desktop, "image/png", b"\x89PNG\r\n\x1a\n broken")
    viewer.page.click("#copy")
    viewer.wait_text("#toasts", "the picture on the clipboard is no image/png")
    offer(desktop, "text/html", b"<b>")
    viewer.page.click("#copy")
    viewer.wait_text("#toasts", "neither text nor a picture")
    viewer.hand_back()


def test_dropped_files_arrive_byte_for_byte(opened: Callable[..., Viewer], home: Path, tmp_path: Path) -> None:
    content = random.Random(3).randbytes(3_000_001)
    given = tmp_path / "report (draft).bin"
    given.write_bytes(content)
    (tmp_path / "folder").mkdir()
    viewer = opened("watch", "control")
    viewer.take()
    x, y = viewer.at(400, 300)
    client = viewer.context.new_cdp_session(viewer.page)
    for number in range(2):
        # As a file manager drops it.
        for kind in ("dragEnter", "dragOver", "drop"):
            data = {"items": [], "files": [str(given), str(tmp_path / "folder")], "dragOperationsMask": 1}
            client.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": data})
        arrived = home / "Downloads" / ("report (draft) (1).bin" if number else "report (draft).bin")
        viewer.wait_text("#toasts", f"is on the desktop: {arrived}")
        assert arrived.read_bytes() == content
        assert arrived.stat().st_mode & 0o111 == 0
    viewer.wait_text("#toasts", "folder is a folder")
    viewer.wait_text("#operations", f"copy in: the page -> {arrived} (3,000,001 bytes)")
    viewer.page.set_input_files("#files", [str(given)])
    viewer.wait_text("#toasts", "report (draft) (2).bin")
    viewer.hand_back()


def test_hostile_names_stay_in_the_directory(opened: Callable[..., Viewer], home: Path) -> None:
    names = ["../../.bashrc", "..", "-rf", "a\n\u202egnp.exe", "CON", "C:\\x\\y.txt", ".profile"]
    files = [[text_of(f"{number}".encode()), name] for number, name in enumerate(names)]
    before = {path for path in home.rglob("*") if path.is_file()}
    viewer = opened("watch", "control")
    viewer.take()
    viewer.page.evaluate(_DROP, files)

    def made() -> dict[bytes, str]:
        folder = home / "Downloads"
        return {path.read_bytes(): path.name for path in folder.iterdir() if path not in before}

    until(lambda: len(made()) == len(names), LIMIT, "all of the files")
    viewer.wait_hidden("#transfer")
    cleaned = ["bashrc", "file", "_-rf", "agnp.exe", "_CON", "y.txt", "profile"]
    assert made() == {f"{number}".encode(): name for number, name in enumerate(cleaned)}
    assert {path for path in home.rglob("*") if path.is_file()} - before == {
        home / "Downloads" / name for name in cleaned
    }
    viewer.hand_back()


def test_what_is_too_large_is_told_and_not_sent(opened: Callable[..., Viewer], home: Path, tmp_path: Path) -> None:
    large, largest = tmp_path / "large.bin", tmp_path / "largest.bin"
    for path, size in ((large, LARGEST + 1), (largest, LARGEST)):
        with path.open("wb") as file:
            os.truncate(file.fileno(), size)
    viewer = opened("watch", "control")
    viewer.take()
    viewer.page.set_input_files("#files", [str(large), str(largest)])
    viewer.wait_text("#toasts", "large.bin is not sent: it is larger than 32 MiB.")
    viewer.wait_text("#toasts", "largest.bin is on the desktop")
    assert (home / "Downloads/largest.bin").stat().st_size == LARGEST
    assert not (home / "Downloads/large.bin").exists()
    viewer.hand_back()


def test_without_control_nothing_is_sent(opened: Callable[..., Viewer], home: Path) -> None:
    viewer = opened("watch", "control")
    address = viewer.page.url
    # The browser must not leave the page for the file either: the event is prevented.
    assert not viewer.page.evaluate(_DROP, [[text_of(b"x"), "unwanted.txt"]])
    viewer.page.evaluate(_PASTE, [text_of(b"x"), "unwanted.txt", "text/plain", ""])
    viewer.take()
    viewer.page.evaluate(_DROP, [[text_of(b"x"), "wanted.txt"]])
    viewer.wait_text("#toasts", "wanted.txt is on the desktop")
    assert not (home / "Downloads/unwanted.txt").exists()
    assert viewer.page.url == address
    viewer.hand_back()
