"""A GTK window that is covered when it is clicked: `/usr/bin/python3 overlay.py KIND`.

KIND is `dialog` (modal), `notification`, `screen-saver` (which takes keyboard and pointer too), or `crash`: then the process
ends by a signal, and what started it may say so.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import gi

# Gdk too, or the newest one that is installed would be taken.
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402


def dialog(window: Any) -> Any:
    return Gtk.MessageDialog(transient_for=window, modal=True, text="Save changes?", buttons=Gtk.ButtonsType.YES_NO)


def notification(window: Any) -> Any:
    cover = Gtk.Window(type=Gtk.WindowType.POPUP, type_hint=Gdk.WindowTypeHint.NOTIFICATION)
    cover.set_default_size(220, 60)
    cover.move(window.get_screen().get_width() - 230, 10)
    cover.add(Gtk.Label(label="You have new mail"))
    return cover


def screen_saver(window: Any) -> Any:
    cover = Gtk.Window(type=Gtk.WindowType.POPUP)
    screen = window.get_screen()
    cover.set_default_size(screen.get_width(), screen.get_height())
    cover.override_background_color(Gtk.StateFlags.NORMAL, Gdk.RGBA(0, 0, 0, 1))
    model_session = Gdk.Display.get_default().get_default_seat()

    def grab(*_: object) -> bool:
        # Refused as long as the press of the click has the pointer.
        status = model_session.grab(cover.get_window(), Gdk.SeatCapabilities.ALL, True, None, None, None, None)  # noqa: FBT003 # GDK takes no names
        return bool(status != Gdk.GrabStatus.SUCCESS)

    cover.connect("map-event", lambda *_: GLib.timeout_add(10, grab))
    cover.add_events(Gdk.EventMask.STRUCTURE_MASK)
    return cover


COVERS = {"dialog": dialog, "notification": notification, "screen-saver": screen_saver, "crash": lambda _: os.abort()}


def main() -> None:
    window = Gtk.Window(title="target")
    window.set_default_size(300, 200)
    window.add_events(Gdk.EventMask.BUTTON_PRESS_MASK)
    window.connect("button-press-event", lambda *_: COVERS[sys.argv[1]](window).show_all() or True)
    window.show_all()
    Gtk.main()


if __name__ == "__main__":
    main()
