"""Files dropped on applications of several toolkits arrive in them; where they are not taken, the call says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import ActionError, BackendError, DeskhandTimeout, OutOfBounds
from integration.apps import chromium_command, environment_of, serve_page, until

if TYPE_CHECKING:
    from pathlib import Path

_GTK = """
import sys
import gi
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gtk
window = Gtk.Window(title="target")
window.set_default_size(400, 300)
kinds = [Gtk.TargetEntry.new(sys.argv[2], 0, 0)]
window.drag_dest_set(Gtk.DestDefaults.ALL, kinds, Gdk.DragAction.COPY)
def received(widget, context, x, y, data, info, time):
    with open(sys.argv[1], "a") as out:
        out.writelines(uri + "\\n" for uri in data.get_uris())
window.connect("drag-data-received", received)
window.show_all()
Gtk.main()
"""
_QT = """
import sys
from PyQt5 import QtWidgets
application = QtWidgets.QApplication(sys.argv)
class Target(QtWidgets.QWidget):
    def dragEnterEvent(self, event):
        event.acceptProposedAction()
    def dropEvent(self, event):
        with open(sys.argv[1], "a") as out:
            out.writelines(url.toString(url.FullyEncoded) + "\\n" for url in event.mimeData().urls())
        event.acceptProposedAction()
target = Target()
target.setWindowTitle("target")
target.resize(400, 300)
target.setAcceptDrops(True)
target.show()
application.exec_()
"""
_PAGE = """<!doctype html><title>page</title><body style="height: 500px">drop here<script>
addEventListener('dragover', event => event.preventDefault());
addEventListener('drop', async event => {
  event.preventDefault();
  const files = [];
  for (const file of event.dataTransfer.files) files.push([file.name, await file.text()]);
  await fetch('/got', {method: 'POST', body: JSON.stringify(files)});
});
</script>"""
# Letters, blanks and signs that a URI must quote, and a byte that is no UTF-8.
NAMES = ["plain.txt", "größe und ☕.txt", "100% #1?.txt", os.fsdecode(b"not \xff utf-8.txt")]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Files with names of every kind, each with its name in it."""
    made = []
    for name in NAMES:
        file = tmp_path / name
        file.write_bytes(os.fsencode(name))
        made.append(str(file))
    return made


def show(desktop: deskhand.Desktop, program: str, *arguments: str) -> tuple[int, tuple[int, int]]:
    """A window of a program, and its middle."""
    packages = "python3-gi gir1.2-gtk-3.0 python3-pyqt5"
    started = desktop.start([need("/usr/bin/python3", packages), "-c", program, *arguments])
    assert started.window is not None
    rect = started.window.rect
    return started.pid, (rect.x + rect.width // 2, rect.y + rect.height // 2)


@pytest.mark.parametrize("program", [_GTK, _QT], ids=["gtk", "qt"])
def test_files_are_dropped_on_a_window(
    desktop: deskhand.Desktop, files: list[str], tmp_path: Path, program: str
) -> None:
    got = tmp_path / "got"
    got.touch()
    _, middle = show(desktop, program, str(got), "text/uri-list")
    desktop.windows.drop(files, middle)
    wanted = [_uri(file) for file in files]
    assert until(lambda: got.read_text().splitlines() == wanted), got.read_text()
    desktop.windows.drop(files[:1], middle)
    assert until(lambda: got.read_text().splitlines() == [*wanted, wanted[0]])
    assert desktop.clipboard.types() == ()


def _uri(path: str) -> str:
    """As RFC 3986 writes it, by another implementation than the driver's."""
    plain = b"/-_.~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "file://" + "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.fsencode(path))


def test_files_are_dropped_on_a_page(desktop: deskhand.Desktop, files: list[str], tmp_path: Path) -> None:
    """Chromium first asks what is offered, and the page decides after that."""
    got: list[bytes] = []
    server, url = serve_page(lambda _: _PAGE.encode(), got.append)
    try:
        program = desktop.start(chromium_command(url, tmp_path / "profile"), timeout=60)
        assert program.window is not None
        rect = program.window.rect
        desktop.windows.drop(files[:3], (rect.x + 300, rect.y + 300))
        assert until(lambda: bool(got))
    finally:
        server.shutdown()
        server.server_close()
    assert json.loads(got[0]) == [[name, name] for name in NAMES[:3]]


def test_a_file_manager_copies_what_is_dropped(desktop: deskhand.Desktop, files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    program = desktop.start([need("pcmanfm", "pcmanfm"), "--new-win", str(folder)], timeout=60)
    assert program.window is not None
    rect = program.window.rect
    desktop.windows.drop(files[:2], (rect.right - 60, rect.bottom - 60))
    assert until(lambda: sorted(path.name for path in folder.iterdir()) == sorted(NAMES[:2]))
    assert (folder / NAMES[1]).read_text() == NAMES[1]


def test_what_takes_no_files_is_told(desktop: deskhand.Desktop, files: list[str], tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="takes no drops"):
        desktop.windows.drop(files, (990, 690))
    with pytest.raises(OutOfBounds):
        desktop.windows.drop(files, (1000, 10))
    for wrong in ([], ["relative"], [""], files[0]):
        with pytest.raises(ActionError):
            desktop.windows.drop(wrong, (10, 10))
    terminal = desktop.start("xterm").window
    assert terminal is not None
    with pytest.raises(BackendError, match="takes no drops"):
        desktop.windows.drop(files, (terminal.rect.x + 50, terminal.rect.y + 50))
    pid, middle = show(desktop, _GTK, str(tmp_path / "got"), "image/png")
    with pytest.raises(BackendError, match="takes no files there"):
        desktop.windows.drop(files, middle)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeskhandTimeout, match="the application to take the files"):
            desktop.windows.drop(files, middle, timeout=0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not (tmp_path / "got").exists()


def test_an_application_that_breaks_the_rules(desktop: deskhand.Desktop, files: list[str], tmp_path: Path) -> None:
    """It names a proxy that is gone, or a version of the future or of the past."""
    got = tmp_path / "got"
    _, middle = show(desktop, _GTK, str(got), "text/uri-list")

    def change(name: str, kind: str, value: str) -> None:
        command = [need("xprop", "x11-utils"), "-name", "target", "-f", name, f"32{kind}", "-set", name, value]
        subprocess.run(command, env=environment_of(desktop), check=True, capture_output=True)

    change("XdndAware", "c", "2")
    with pytest.raises(BackendError, match="takes no drops"):
        desktop.windows.drop(files, middle)
    change("XdndAware", "c", "4000000000")
    change("XdndProxy", "c", "123456789")
    desktop.windows.drop(files[:1], middle)
    assert until(lambda: got.exists() and len(got.read_text().splitlines()) == 1)
