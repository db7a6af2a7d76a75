"""Small programs of several toolkits that tell what the pointer does to them, and a page that does.

Each writes what happened into a file, a JSON list a line, with points of the screen: first `["ready", x, y]`, with the place of
its inside; then `press`, `motion` and `release` with a point, `double`, `begin` and `drop` of a drag, `item` and `under` of a
menu.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from conftest import need
from deskhand import Move
from integration.apps import PATIENCE, chromium_command, serve_page, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import deskhand

_SAY = """
import json, sys
out = open(sys.argv[1], "a", buffering=1)
def say(*what):
    out.write(json.dumps(what) + "\\n")
"""

_TK = """
import tkinter
root = tkinter.Tk()
root.geometry("400x300+100+100")
canvas = tkinter.Canvas(root, width=400, height=300, bg="white", highlightthickness=0)
canvas.pack()
last = []
def press(event):
    last[:] = [event.x, event.y]
    say("press", event.x_root, event.y_root)
def motion(event):
    canvas.create_line(*last, event.x, event.y)
    last[:] = [event.x, event.y]
    say("motion", event.x_root, event.y_root)
canvas.bind("<ButtonPress-1>", press)
canvas.bind("<B1-Motion>", motion)
canvas.bind("<ButtonRelease-1>", lambda event: say("release", event.x_root, event.y_root))
canvas.bind("<Double-Button-1>", lambda event: say("double"))
menu = tkinter.Label(canvas, text="Menu", bg="#ccc")
menu.place(x=20, y=20, width=100, height=30)
item = tkinter.Button(canvas, text="Item", command=lambda: say("item"))
under = tkinter.Button(canvas, text="Under", command=lambda: say("under"))
under.place(x=20, y=50, width=100, height=30)
menu.bind("<Enter>", lambda event: (item.place(x=20, y=50, width=100, height=30), item.lift()))
canvas.bind("<Motion>", lambda event: item.place_forget())
canvas.bind("<Map>", lambda event: say("ready", root.winfo_rootx(), root.winfo_rooty()))
root.mainloop()
"""

_GTK = """
import gi
# Gdk too, or the newest one that is installed would be taken.
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk
window = Gtk.Window()
window.set_default_size(400, 300)
box = Gtk.Box()
canvas, source, target = Gtk.DrawingArea(), Gtk.EventBox(), Gtk.EventBox()
source.add(Gtk.Label(label="source"))
target.add(Gtk.Label(label="target"))
canvas.set_size_request(200, 300)
for part in (canvas, source, target):
    box.pack_start(part, True, True, 0)
window.add(box)
EVENTS = Gdk.EventMask
canvas.add_events(EVENTS.BUTTON_PRESS_MASK | EVENTS.BUTTON_RELEASE_MASK | EVENTS.BUTTON_MOTION_MASK)
points = []
KINDS = {Gdk.EventType.BUTTON_PRESS: "press", Gdk.EventType._2BUTTON_PRESS: "double", Gdk.EventType._3BUTTON_PRESS: "triple"}
def motion(widget, event):
    points.append((event.x, event.y))
    widget.queue_draw()
    say("motion", event.x_root, event.y_root)
def draw(widget, context):
    for point in points:
        context.line_to(*point)
    context.stroke()
canvas.connect("button-press-event", lambda widget, event: say(KINDS[event.type], event.x_root, event.y_root))
canvas.connect("motion-notify-event", motion)
canvas.connect("draw", draw)
canvas.connect("button-release-event", lambda widget, event: say("release", event.x_root, event.y_root))
kinds = [Gtk.TargetEntry.new("text/plain", 0, 0)]
source.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, kinds, Gdk.DragAction.COPY)
target.drag_dest_set(Gtk.DestDefaults.ALL, kinds, Gdk.DragAction.COPY)
source.connect("drag-begin", lambda *_: say("begin"))
source.connect("drag-data-get", lambda widget, context, data, info, time: data.set_text("hello", -1))
target.connect("drag-data-received", lambda widget, context, x, y, data, info, time: say("drop", data.get_text()))
window.connect("destroy", Gtk.main_quit)
window.show_all()
def ready(*_):
    say("ready", *window.get_window().get_origin()[1:])
window.connect("map-event", lambda *_: GLib.idle_add(ready) and False)
Gtk.main()
"""

_QT = """
from PyQt5 import QtCore, QtGui, QtWidgets
application = QtWidgets.QApplication(sys.argv)
def place(event):
    return event.globalPos().x(), event.globalPos().y()
class Canvas(QtWidgets.QWidget):
    points = []
    def mousePressEvent(self, event):
        say("press", *place(event))
    def mouseDoubleClickEvent(self, event):
        say("double")
    def mouseMoveEvent(self, event):
        self.points.append(event.pos())
        self.update()
        say("motion", *place(event))
    def mouseReleaseEvent(self, event):
        say("release", *place(event))
    def paintEvent(self, event):
        painter = QtGui.QPainter(self)
        for start, end in zip(self.points, self.points[1:]):
            painter.drawLine(start, end)
window = QtWidgets.QWidget()
window.setFixedSize(400, 300)
layout = QtWidgets.QHBoxLayout(window)
layout.setContentsMargins(0, 0, 0, 0)
layout.setSpacing(0)
canvas, source, target = Canvas(), QtWidgets.QListWidget(), QtWidgets.QListWidget()
for part, width in ((canvas, 200), (source, 100), (target, 100)):
    part.setFixedWidth(width)
    layout.addWidget(part)
source.addItems(["source"] * 20)
source.setDragEnabled(True)
source.setDefaultDropAction(QtCore.Qt.CopyAction)
source.itemPressed.connect(lambda item: say("begin"))
target.setAcceptDrops(True)
target.setDragDropMode(QtWidgets.QAbstractItemView.DropOnly)
target.model().rowsInserted.connect(lambda *_: say("drop", "hello"))
window.show()
def ready():
    origin = window.mapToGlobal(QtCore.QPoint(0, 0))
    say("ready", origin.x(), origin.y())
QtCore.QTimer.singleShot(300, ready)
application.exec_()
"""

_PAGE = """<!doctype html><meta charset="utf-8"><title>page</title>
<style>
body { margin: 0; font: 16px sans-serif }
canvas, div { position: absolute }
canvas { left: 0; top: 0; background: #eee }
#source, #target { top: 100px; width: 80px; height: 80px; background: #cde }
#source { left: 210px } #target { left: 310px }
#speck { left: 350px; top: 30px; width: 6px; height: 6px; background: #48c }
#under, #menu { left: 210px; top: 10px; width: 100px; height: 30px; background: #ccc }
#under { top: 40px; background: #c99 }
#item { display: none; left: 0; top: 30px; width: 100px; height: 30px; background: #9c9 }
#menu:hover #item { display: block }
</style>
<canvas id="canvas" width="200" height="300"></canvas>
<div id="source" draggable="true">source</div><div id="target">target</div><div id="speck"></div>
<div id="under">under</div><div id="menu">menu<div id="item">item</div></div>
<script>
let told = Promise.resolve();
const say = (...what) => { told = told.then(() => fetch('/say', {method: 'POST', body: JSON.stringify(what)})); };
source.ondragstart = event => { event.dataTransfer.setData('text/plain', 'hello'); say('begin'); };
for (const place of [target, speck]) {
  place.ondragover = event => event.preventDefault();
  place.ondrop = event => { event.preventDefault(); say('drop', event.dataTransfer.getData('text/plain')); };
}
item.onclick = event => { say('item'); event.stopPropagation(); };
under.onclick = event => say('under');
const pen = canvas.getContext('2d');
let last = null;
canvas.onmousedown = event => { last = [event.offsetX, event.offsetY]; say('press', event.screenX, event.screenY); };
canvas.onmousemove = event => {
  if (!last) return;
  pen.beginPath(); pen.moveTo(...last); last = [event.offsetX, event.offsetY]; pen.lineTo(...last); pen.stroke();
  say('motion', event.screenX, event.screenY);
};
canvas.onmouseup = event => { last = null; say('release', event.screenX, event.screenY); };
canvas.ondblclick = event => say('double');
let first = true;
addEventListener('mousemove', event => {
  if (first) say('ready', event.screenX - event.clientX, event.screenY - event.clientY);
  first = false;
});
</script>"""


class Pointed:
    """A program that tells what the pointer does to it. Its inside is 400 pixels wide and 300 high.

    Attributes:
        origin: Where its inside begins on the screen.
        canvas: The size of the part, from there on, that draws what is dragged over it.
        source, target: What is dragged, and where it may be dropped; None where there is nothing.
        menu, item: A menu that opens under the pointer, and its item, which covers something else; None where there is none.
    """

    canvas = 200, 300
    source: tuple[int, int] | None = 250, 140
    target: tuple[int, int] | None = 350, 160
    menu: tuple[int, int] | None = None
    item: tuple[int, int] | None = None

    def __init__(self, desktop: deskhand.Desktop, home: Path, source: str, python: tuple[str, str]) -> None:
        """Start it; `source` is its program, `python` the interpreter and the package that brings what it needs."""
        self._file = home / f"pointed-{time.monotonic_ns()}"
        self._file.touch()
        program = desktop.start([need(*python), "-c", _SAY + source, str(self._file)])
        assert program.window is not None
        self.desktop, self.window = desktop, program.window
        self.pid = program.window.pid or program.pid
        self._begin()

    def _begin(self) -> None:
        self._seen = 0
        assert until(lambda: bool(self.told()))
        (_, x, y), *_ = self.news()
        self.origin = x, y

    def at(self, place: tuple[int, int]) -> tuple[int, int]:
        """That place of its inside, on the screen."""
        return self.origin[0] + place[0], self.origin[1] + place[1]

    def told(self) -> list[list[Any]]:
        """All that it has told."""
        return [json.loads(line) for line in self._file.read_text().splitlines() if line.endswith("]")]

    def news(self, last: str = "") -> list[list[Any]]:
        """What it has told since this was asked last, as soon as that has a `last` one, if one is named."""
        until(lambda: not last or any(what[0] == last for what in self.told()[self._seen :]), PATIENCE / 3)
        news = self.told()[self._seen :]
        self._seen += len(news)
        return news

    def close(self) -> None:
        """End what it left here."""


class _Tk(Pointed):
    canvas = 400, 300
    source = target = None
    menu, item = (40, 35), (60, 65)

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        super().__init__(desktop, home, _TK, ("/usr/bin/python3", "python3-tk"))


class _Gtk(Pointed):
    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        super().__init__(desktop, home, _GTK, ("/usr/bin/python3", "python3-gi gir1.2-gtk-3.0"))


class _Qt(Pointed):
    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        super().__init__(desktop, home, _QT, ("/usr/bin/python3", "python3-pyqt5"))


class Page(Pointed):
    menu, item = (230, 25), (250, 55)
    # A target of a few pixels.
    speck = 353, 33

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self._told: list[list[Any]] = []
        told = self._told
        self._server, url = serve_page(lambda _: _PAGE.encode(), lambda body: told.append(json.loads(body)))
        command = chromium_command(url, home / "pointed")
        program = desktop.start(command, timeout=PATIENCE)
        assert program.window is not None
        self.desktop, self.window = desktop, program.window
        self.pid = program.window.pid or program.pid
        area = self.window.rect
        corner = area.right - 9, area.bottom - 9

        def has_moved() -> bool:
            desktop.perform(Move(corner))
            desktop.perform(Move((corner[0] - 1, corner[1])))
            return bool(self._told)

        assert until(has_moved)
        self._begin()

    def told(self) -> list[list[Any]]:
        return list(self._told)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


POINTED: Mapping[str, Callable[[deskhand.Desktop, Path], Pointed]] = {
    "tk": _Tk,
    "gtk": _Gtk,
    "qt": _Qt,
    "chromium": Page,
}
