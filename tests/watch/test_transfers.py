"""Pictures and files between the page and the desktop, in a real browser."""

from __future__ import annotations

import base64
import os
import random
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deskhand
from deskhand import ClassPolicy, Questions, watch
from deskhand.desktop.access import bare
from deskhand.watch.transfers import LARGEST
from faults.helpers import need, until
from integration.apps import environment_of
from watch.browser import Viewer
from watch.pictures import DROP, PASTE, file_of, picture, pixels_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from deskhand.watch import Server

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
_READ = """async () => {
  const [item] = await navigator.clipboard.read();
  const bytes = new Uint8Array(await (await item.getType('image/png')).arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode.apply(null, bytes.subarray(at, at + 32768));
  return btoa(text);
}"""


def offer(desktop: deskhand.Desktop, type: str, data: bytes) -> None:
    """Let a program own the clipboard, which goes on beside this."""
    command = [need("xclip", "xclip"), "-selection", "clipboard", "-target"]
    environment = environment_of(desktop)
    subprocess.run([*command, type, "-in"], input=data, env=environment, stdout=subprocess.DEVNULL, check=True)

    def owned() -> bool:
        # Its first process may end before its second one has asked for the selection.
        asked = subprocess.run(
            [*command, "TARGETS", "-out"], env=environment, capture_output=True, text=True, check=False
        )
        return type in asked.stdout.split()

    until(owned, LIMIT, f"xclip to own the clipboard with {type}")


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
    viewer.page.evaluate(PASTE, [webp, "photo.webp", "image/webp", ""])

    def arrived() -> bool:
        data = clipboard.read_data("image/png")
        return data is not None and np.array_equal(pixels_of(data), pixels)

    until(arrived, LIMIT, "the picture")
    # A table of a spreadsheet comes with a picture of it.
    viewer.page.evaluate(PASTE, [webp, "image.webp", "image/webp", "a table"])
    until(lambda: clipboard.read() == "a table", LIMIT, "the text")
    # What is no picture goes as the file that it is.
    viewer.page.evaluate(PASTE, [text_of(b"broken"), "broken.jpg", "image/jpeg", ""])
    viewer.wait_toast(f"broken.jpg is on the desktop: {home}/Downloads/broken.jpg")
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
    viewer.wait_toast("Copied.")
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
    viewer.wait_toast("does not let the page copy a picture")
    offer(desktop, "image/png", b"\x89PNG\r\n\x1a\n broken")
    viewer.page.click("#copy")
    viewer.wait_toast("the picture on the clipboard is no image/png")
    offer(desktop, "text/html", b"<b>")
    viewer.page.click("#copy")
    viewer.wait_toast("neither text nor a picture")
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
        viewer.wait_toast(f"is on the desktop: {arrived}")
        assert arrived.read_bytes() == content
        assert arrived.stat().st_mode & 0o111 == 0
    viewer.wait_toast("folder is a folder")
    viewer.wait_text("#operations", f"copy in: the page -> {arrived} (3,000,001 bytes)")
    viewer.page.set_input_files("#files", [str(given)])
    viewer.wait_toast("report (draft) (2).bin")
    viewer.hand_back()


def test_hostile_names_stay_in_the_directory(opened: Callable[..., Viewer], home: Path) -> None:
    names = ["../../.bashrc", "..", "-rf", "a\n\u202egnp.exe", "CON", "C:\\x\\y.txt", ".profile"]
    files = [[text_of(f"{number}".encode()), name] for number, name in enumerate(names)]
    before = {path for path in home.rglob("*") if path.is_file()}
    viewer = opened("watch", "control")
    viewer.take()
    viewer.page.evaluate(DROP, files)

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
    viewer.wait_toast("large.bin is not sent: it is larger than 32 MiB.")
    viewer.wait_toast("largest.bin is on the desktop")
    assert (home / "Downloads/largest.bin").stat().st_size == LARGEST
    assert not (home / "Downloads/large.bin").exists()
    viewer.hand_back()


def test_without_control_nothing_is_sent(opened: Callable[..., Viewer], home: Path) -> None:
    viewer = opened("watch", "control")
    address = viewer.page.url
    # The browser must not leave the page for the file either: the event is prevented.
    assert not viewer.page.evaluate(DROP, [[text_of(b"x"), "unwanted.txt"]])
    viewer.page.evaluate(PASTE, [text_of(b"x"), "unwanted.txt", "text/plain", ""])
    viewer.take()
    viewer.page.evaluate(DROP, [[text_of(b"x"), "wanted.txt"]])
    viewer.wait_toast("wanted.txt is on the desktop")
    assert not (home / "Downloads/unwanted.txt").exists()
    assert viewer.page.url == address
    viewer.hand_back()


def test_a_file_that_the_policy_asks_about_waits_for_the_answer(browser: Browser, tmp_path: Path) -> None:
    questions = Questions(timeout=120)
    policy = ClassPolicy(allow=["observe", "input"])
    with (
        deskhand.launch(
            size=(400, 300), window_manager=None, env={"HOME": str(tmp_path)}, policy=policy, ask=questions
        ) as desktop,
        watch.serve(desktop, questions=questions) as server,
    ):
        viewer = Viewer(browser, server.link("control", "approve", name="Ada"))
        viewer.wait_live(desktop)
        viewer.take()
        viewer.page.evaluate(DROP, [[text_of(b"x"), name] for name in ("allowed.txt", "denied.txt")])
        for name, answer in (("allowed.txt", "Allow once"), ("denied.txt", "Deny")):
            viewer.wait_text(".question .details", f"{tmp_path}/Downloads/{name}")
            assert viewer.text(".question h3") == "Ada wants: host_files"
            # Input goes on meanwhile.
            viewer.page.mouse.move(*viewer.at(123, 45 + len(name)))
            until(lambda name=name: desktop.pointer == (123, 45 + len(name)), LIMIT, "the pointer")
            viewer.page.locator(".question button", has_text=answer).click()
        viewer.wait_toast(f"allowed.txt is on the desktop: {tmp_path}/Downloads/allowed.txt")
        viewer.wait_toast("denied.txt: the policy denies copy_in")
        viewer.wait_text("#operations .denied .title", "denied.txt")
        assert [path.name for path in (tmp_path / "Downloads").iterdir()] == ["allowed.txt"]
        viewer.close()
        assert viewer.errors == []


def test_a_transfer_is_cancelled(opened: Callable[..., Viewer], home: Path) -> None:
    viewer = opened("watch", "control")
    viewer.take()
    # It never has a second piece.
    viewer.page.evaluate(
        "() => { const slice = Blob.prototype.slice;"
        " Blob.prototype.slice = function (from, to) { return from ? { arrayBuffer: () => new Promise(() => {}) }"
        " : slice.call(this, from, to); }; }"
    )
    viewer.page.evaluate(DROP, [[text_of(bytes(400_000)), "held.bin"], [text_of(b"x"), "waits.bin"]])
    viewer.wait_text("#transfer-text", "held.bin (1 of 2): 128 KiB of 391 KiB")
    viewer.page.click("#transfer button")
    viewer.wait_hidden("#transfer")
    viewer.page.evaluate(DROP, [[text_of(b"x"), "next.bin"]])
    viewer.wait_toast("next.bin is on the desktop")
    names = {path.name for path in (home / "Downloads").iterdir()}
    assert "next.bin" in names
    assert not names & {"held.bin", "waits.bin"}
    viewer.hand_back()
