"""What the pointer looks like, as toolkits say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from conformance.servers import xvnc
from deskhand import Move
from faults.helpers import until
from faults.xserver import CURSOR, CURSOR_NOTIFY, Request, Server, u16, u32
from zoo.stages import need_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop

# Six places of 100 pixels, one beside the other.
_TK = """
import tkinter
root = tkinter.Tk()
root.geometry("600x100")
for number, name in enumerate(("xterm", "hand2", "watch", "fleur", "gumby", "left_ptr")):
    tkinter.Frame(root, cursor=name, width=100, height=100).place(x=100 * number, y=0)
root.mainloop()
"""
_GTK = """
import gi
gi.require_version("Gtk", "3.0")
gi.require_version("Gdk", "3.0")
from gi.repository import Gdk, Gtk
window, box = Gtk.Window(), Gtk.Fixed()
busy = Gtk.EventBox()
places = (Gtk.Entry(width_chars=1), Gtk.LinkButton(uri="http://example.org", label="link"), busy)
for number, widget in enumerate(places):
    widget.set_size_request(100, 100)
    box.put(widget, 100 * number, 0)
window.add(box)
window.show_all()
busy.get_window().set_cursor(Gdk.Cursor.new_from_name(Gdk.Display.get_default(), "wait"))
Gtk.main()
"""
_QT = """
from PyQt5 import QtCore, QtWidgets
application, window = QtWidgets.QApplication([]), QtWidgets.QWidget()
for number, name in enumerate(("IBeam", "PointingHand", "Wait", "OpenHand", "Forbidden")):
    label = QtWidgets.QLabel(window)
    label.setGeometry(100 * number, 0, 100, 100)
    label.setCursor(getattr(QtCore.Qt, name + "Cursor"))
window.resize(500, 100)
window.show()
application.exec()
"""


def _shapes(desktop: Desktop, module: str, package: str, program: str, count: int) -> list[str]:
    window = desktop.start([need_module(module, package), "-c", program], timeout=60).window
    assert window is not None
    rect = window.rect
    # Applications set a cursor when they have seen the pointer come.
    return [desktop.perform(Move((rect.x + 100 * number + 50, rect.y + 50))).pointer_shape for number in range(count)]


def test_tk(desktop: Desktop) -> None:
    # There is no gumby in themes: X draws it of a font, without a name.
    shapes = ["text", "pointer", "wait", "move", "", "default"]
    assert _shapes(desktop, "tkinter", "python3-tk", _TK, 6) == shapes
    assert desktop.screenshot().pointer_shape == "default"


def test_gtk(desktop: Desktop) -> None:
    package = "python3-gi gir1.2-gtk-3.0"
    assert _shapes(desktop, "gi.repository.Gtk", package, _GTK, 3) == ["text", "pointer", "wait"]


def test_qt(desktop: Desktop) -> None:
    shapes = ["text", "pointer", "wait", "grab", "not-allowed"]
    assert _shapes(desktop, "PyQt5.QtWidgets", "python3-pyqt5", _QT, 5) == shapes


def test_a_cursor_that_moves_has_no_name(launch: Callable[..., Desktop]) -> None:
    desktop = launch(size=(1000, 700), animations=True)
    assert _shapes(desktop, "tkinter", "python3-tk", _TK, 3) == ["text", "pointer", ""]


def test_vnc_tells_none(tmp_path: Path) -> None:
    with xvnc(tmp_path) as place, place.connect() as desktop:
        assert desktop.perform(Move((5, 5))).pointer_shape == ""


def _cursor(name: bytes, *, told: int | None = None) -> Callable[[Request], bytes]:
    """An image of one pixel, and a name of which another length may be told."""
    count = len(name) if told is None else told
    fixed = u16(0, 0, 1, 1, 0, 0) + u32(1, 0) + u16(count)
    return lambda request: request.reply(fixed, u32(0xFFFFFFFF) + name)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (b"xterm", "text"),
        (b"x\0te\x1b[31mrm\n\xff", "xte[31mrm"),
        (b"a" * 65535, "a" * 64),
        (b"\n" * 65535, ""),
        (b"  wait  ", "wait"),
    ],
    ids=["a word", "an escape", "long", "nothing", "spaces"],
)
def test_names_are_cleaned(tmp_path: Path, name: bytes, shape: str) -> None:
    answers = {CURSOR: _cursor(name)}
    with Server(tmp_path, answers) as server, deskhand.connect(server.url) as desktop:
        assert desktop.screenshot().pointer_shape == shape
        assert desktop.perform(settle=False).pointer_shape == shape


def test_a_name_that_is_not_there_is_a_violation(tmp_path: Path) -> None:
    answers: dict[str, Any] = {CURSOR: _cursor(b"abcd", told=65535)}
    with Server(tmp_path, answers) as server, pytest.raises(deskhand.DeskhandError, match="cannot be read"):
        deskhand.connect(server.url)


def test_looking_asks_for_nothing_more(tmp_path: Path) -> None:
    """The name comes with the image, and only when that has changed."""
    asked: list[str] = []

    class Counting(Server):
        def usual(self, request: Request) -> bytes:
            asked.append(request.name)
            return super().usual(request)

    with Counting(tmp_path) as server, deskhand.connect(server.url) as desktop:
        desktop.screenshot()
        asked.clear()
        desktop.screenshot()
        assert asked == ["QueryPointer"]
        server.clients[0].sendall(Request("", server.sequence, b"", server.size).event(CURSOR_NOTIFY))
        until(lambda: CURSOR in asked, 20, "the cursor to be read")
        desktop.screenshot()
        assert sorted(asked) == ["QueryPointer", "QueryPointer", CURSOR]
