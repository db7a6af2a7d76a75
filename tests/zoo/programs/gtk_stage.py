"""A stage of GTK 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gi

# Gdk too, or the newest one that is installed would be taken.
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from actor import SIZE, Actor  # noqa: E402
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


class Stage(Gtk.Window):
    def __init__(self) -> None:
        super().__init__(title="zoo")
        self.set_default_size(*SIZE)
        self._area = Gtk.DrawingArea()
        self._area.connect("draw", self._draw)
        self.add(self._area)
        self._painted: dict[tuple[int, int, int, int], int] = {}
        self.add_events(Gdk.EventMask.BUTTON_PRESS_MASK)
        self.connect("key-press-event", lambda *_: self.actor.input())
        self.connect("button-press-event", lambda *_: self.actor.input() or True)
        self.connect("destroy", Gtk.main_quit)
        self.show_all()
        self.actor = Actor(self)

    def call(self, do: Callable[[], object]) -> None:
        GLib.idle_add(lambda: do() and False)

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        GLib.timeout_add(round(seconds * 1000), lambda: do() and False)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        self._painted[rect] = colour
        self._area.queue_draw_area(*rect)

    def point(self, *, busy: bool) -> None:
        name = "wait" if busy else "default"
        self.get_window().set_cursor(Gdk.Cursor.new_from_name(self.get_display(), name))

    def _draw(self, _: Gtk.Widget, context: object) -> None:
        context.set_source_rgb(0.12, 0.12, 0.12)
        context.paint()
        for rect, colour in self._painted.items():
            context.set_source_rgb(*(channel / 255 for channel in colour.to_bytes(3, "big")))
            context.rectangle(*rect)
            context.fill()
        # The frame is handed to the server when all of it has been drawn.
        GLib.idle_add(self.actor.drawn, priority=GLib.PRIORITY_HIGH_IDLE + 21)


Stage()
Gtk.main()
