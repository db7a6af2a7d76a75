"""A window of GTK 3 whose widgets a test makes and changes. It runs each line that it is sent, and answers with the value.

Run by the system's Python, which has GTK: `python3 puppet_gtk.py SOCKET`.
"""

import json
import socket
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk  # noqa: E402 # the version is chosen first

told = []
widgets = {}
window = Gtk.Window(title="Puppet")
window.set_default_size(600, 400)
place = Gtk.Fixed()
window.add(place)
window.connect("destroy", Gtk.main_quit)


def put(name, widget, x, y):
    """Add a widget at a place of the window."""
    widgets[name] = widget
    place.put(widget, x, y)
    widget.show_all()


def button(name, x=20, y=20):
    """Add a button that tells of its clicks."""
    made = Gtk.Button(label=name)
    made.connect("clicked", lambda _: told.append(["clicked", name]))
    put(name, made, x, y)


def check(name, x=20, y=20):
    """Add a check box that tells of its changes."""
    made = Gtk.CheckButton(label=name)
    made.connect("toggled", lambda each: told.append(["toggled", name, each.get_active()]))
    put(name, made, x, y)


def entry(name, x=20, y=20, text="", *, secret=False):
    """Add a line to write in."""
    made = Gtk.Entry(text=text, visibility=not secret)
    made.get_accessible().set_name(name)
    put(name, made, x, y)


def combo(name, options, x=20, y=20):
    """Add a list to choose from."""
    made = Gtk.ComboBoxText()
    for option in options:
        made.append_text(option)
    made.get_accessible().set_name(name)
    put(name, made, x, y)


def slide(name, steps, period):
    """Move a widget to the right by a pixel each `period` milliseconds."""
    left = [steps]

    def step():
        left[0] -= 1
        widget = widgets[name]
        place.move(widget, place.child_get_property(widget, "x") + 1, place.child_get_property(widget, "y"))
        return left[0] > 0

    GLib.timeout_add(period, step)


def later(milliseconds, code):
    """Run code after a time."""
    GLib.timeout_add(milliseconds, lambda: exec(code, globals()))  # the test's own


def flood(count):
    """Change the name of every widget `count` times, as fast as events are handled."""
    left = [count]

    def step():
        left[0] -= 1
        for name, widget in widgets.items():
            widget.get_accessible().set_name(f"{name} {left[0]}")
        return left[0] > 0

    GLib.idle_add(step)


def serve(listener, _condition):
    """Run the lines of one connection."""
    connection, _ = listener.accept()
    lines = connection.makefile("r", encoding="utf-8")

    def run(source, _condition):
        line = source.readline()
        if not line:
            return False
        try:
            answer = eval(json.loads(line), globals())  # the test's own
        except SyntaxError:
            answer = exec(json.loads(line), globals())  # the test's own
        connection.sendall(json.dumps(answer if isinstance(answer, int | str | list | dict) else None).encode() + b"\n")
        return True

    GLib.io_add_watch(lines, GLib.IO_IN | GLib.IO_HUP, run)
    return True


def main():
    """Show the window, and serve."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    GLib.io_add_watch(listener, GLib.IO_IN, serve)
    window.show_all()
    Gtk.main()


main()
