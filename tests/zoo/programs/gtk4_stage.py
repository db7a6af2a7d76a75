"""A stage of GTK 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gi

gi.require_version("Gdk", "4.0")
gi.require_version("Gtk", "4.0")
from actor import SIZE, Actor  # noqa: E402
from gi.repository import GLib, Gtk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


class Stage(Gtk.Window):
    def __init__(self, loop: GLib.MainLoop) -> None:
        super().__init__(title="zoo", decorated=False)
        self.set_default_size(*SIZE)
        self._area = Gtk.DrawingArea()
        self._area.set_draw_func(self._draw)
        self.set_child(self._area)
        self._painted: dict[tuple[int, int, int, int], int] = {}
        keys, clicks = Gtk.EventControllerKey(), Gtk.GestureClick()
        keys.connect("key-pressed", lambda *_: self.actor.input())
        clicks.connect("pressed", lambda *_: self.actor.input())
        self.add_controller(keys)
        self.add_controller(clicks)
        self.connect("close-request", lambda _: loop.quit())
        self.present()
        self.actor = Actor(self)

    def call(self, do: Callable[[], object]) -> None:
        GLib.idle_add(lambda: do() and False)

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        GLib.timeout_add(round(seconds * 1000), lambda: do() and False)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        self._painted[rect] = colour
        self._area.queue_draw()

    def point(self, *, busy: bool) -> None:
        self.set_cursor_from_name("wait" if busy else None)

    def _draw(self, _: Gtk.Widget, context: object, *__: int) -> None:
        context.set_source_rgb(0.12, 0.12, 0.12)
        context.paint()
        for rect, colour in self._painted.items():
            context.set_source_rgb(*(channel / 255 for channel in colour.to_bytes(3, "big")))
            context.rectangle(*rect)
            context.fill()
        # The frame is handed to the server when all of it has been drawn.
        GLib.idle_add(self.actor.drawn, priority=GLib.PRIORITY_HIGH_IDLE + 21)


main = GLib.MainLoop()
stage = Stage(main)
main.run()
