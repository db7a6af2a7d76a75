"""A window of GTK whose widgets a test makes and changes, and which tells what happened to them.

Run by the system's Python, which has GTK: `python3 puppet_gtk.py SOCKET 3`, or 4.
"""

import sys

import gi

FOUR = sys.argv[2] == "4"
for name in ("Gdk", "Gtk"):
    gi.require_version(name, "4.0" if FOUR else "3.0")
from gi.repository import Gdk, GLib, GObject, Gtk  # noqa: E402 # the version is chosen first
from puppet_lines import Lines  # noqa: E402 # the same

told = []
widgets = {}
loop = GLib.MainLoop()


def begin(title="Puppet"):
    """Show a window with nothing in it."""
    global window, place  # noqa: PLW0603 # they are the test's
    window = Gtk.Window(title=title)
    window.set_default_size(600, 400)
    place = Gtk.Fixed()
    if FOUR:
        window.set_child(place)
        window.present()
    else:
        window.add(place)
        window.show_all()


def put(name, widget, x, y):
    """Add a widget at a place of the window."""
    widgets[name] = widget
    place.put(widget, x, y)
    if not FOUR:
        widget.show_all()


def call(widget, name):
    """Give a widget the name that it tells."""
    if FOUR:
        label = GObject.Value(str, name)
        widget.update_property([Gtk.AccessibleProperty.LABEL], [label])
    else:
        widget.get_accessible().set_name(name)


def button(name, x=20, y=20):
    """Add a button that tells of its clicks."""
    made = Gtk.Button(label=name)
    made.connect("clicked", lambda _: told.append(["clicked", name]))
    put(name, made, x, y)


def check(name, x=20, y=20, *, on=False):
    """Add a check box that tells of its changes."""
    made = Gtk.CheckButton(label=name)
    made.set_active(on)
    made.connect("toggled", lambda each: told.append(["toggled", name, each.get_active()]))
    put(name, made, x, y)


def label(text, x=20, y=20):
    """Add a text."""
    put(text, Gtk.Label(label=text), x, y)


def entry(name, x=20, y=20, text="", *, secret=False, editable=True):
    """Add a line to write in; without a name it tells none."""
    made = Gtk.Entry(text=text, visibility=not secret, editable=editable)
    if name:
        call(made, name)
    put(name, made, x, y)


def completes(name, texts):
    """Offer texts below a field while it is written in (GTK 3)."""
    model = Gtk.ListStore(str)
    for text in texts:
        model.append([text])
    completion = Gtk.EntryCompletion(model=model, text_column=0)
    completion.set_text_column(0)
    widgets[name].set_completion(completion)


def spin(name, x=20, y=20):
    """Add a number to set."""
    made = Gtk.SpinButton.new_with_range(0, 100, 1)
    call(made, name)
    put(name, made, x, y)


def combo(name, options, x=20, y=20):
    """Add a list to choose from."""
    made = Gtk.ComboBoxText()
    for option in options:
        made.append_text(option)
    call(made, name)
    put(name, made, x, y)


def source(name, x=20, y=20):
    """Add a button that can be dragged (GTK 3)."""
    made = Gtk.Button(label=name)
    made.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, [Gtk.TargetEntry.new("text/plain", 0, 0)], Gdk.DragAction.COPY)
    made.connect("drag-data-get", lambda _, __, data, *___: data.set_text(name, -1))
    put(name, made, x, y)


def target(name, x=20, y=20):
    """Add a button that tells what was dropped on it (GTK 3)."""
    made = Gtk.Button(label=name)
    made.drag_dest_set(Gtk.DestDefaults.ALL, [Gtk.TargetEntry.new("text/plain", 0, 0)], Gdk.DragAction.COPY)
    made.connect(
        "drag-data-received", lambda _, __, ___, ____, data, *_____: told.append(["dropped", data.get_text(), name])
    )
    put(name, made, x, y)


def enable(name, on):
    """Enable a widget, or disable it."""
    widgets[name].set_sensitive(on)


def show(name, on):
    """Show a widget, or hide it."""
    widgets[name].set_visible(on)


def rename(name, text):
    """Change what is written on a button."""
    widgets[name].set_label(text)


def remove(name):
    """Take a widget away."""
    place.remove(widgets.pop(name))


def move(name, x, y):
    """Put a widget elsewhere."""
    place.move(widgets[name], x, y)


def value(name):
    """What is set in a widget."""
    widget = widgets[name]
    for kind, get in ((Gtk.SpinButton, "get_value"), (Gtk.Entry, "get_text"), (Gtk.ComboBoxText, "get_active_text")):
        if isinstance(widget, kind):
            return getattr(widget, get)()
    return widget.get_active()


def rows(count):
    """Add a list of so many buttons, of which a few show."""
    column = Gtk.ListBox()
    for number in range(count):
        made = Gtk.Button(label=f"Row {number}")
        made.connect("clicked", lambda each: told.append(["clicked", each.get_label()]))
        column.add(made)
    around = Gtk.ScrolledWindow(width_request=400, height_request=300)
    around.add(column)
    put("rows", around, 20, 20)


def slide(name, steps, period):
    """Move a widget to the right by a pixel each `period` milliseconds."""
    left = [steps]

    def step():
        left[0] -= 1
        widget = widgets[name]
        if FOUR:
            # What GTK 4 calls the child's position is that of its label, inside of its padding.
            at = place.get_layout_manager().get_layout_child(widget).get_transform().to_translate()
        else:
            at = [place.child_get_property(widget, axis) for axis in "xy"]
        place.move(widget, at[0] + 1, at[1])
        return left[0] > 0

    GLib.timeout_add(period, step)


def dialog(text):
    """Open a modal dialog over the window, with a button to close it."""
    made = Gtk.Window(title=text, modal=True, transient_for=window)
    made.set_default_size(620, 420)
    closes = Gtk.Button(label="Close it")

    def close(_):
        told.append(["clicked", "Close it"])
        made.destroy()

    closes.connect("clicked", close)
    if FOUR:
        made.set_child(closes)
        made.present()
    else:
        made.add(closes)
        made.show_all()


def popover(name, over):
    """Open a popover at a widget, with a button in it."""
    made = Gtk.Popover()
    inner = Gtk.Button(label=name)
    inner.set_size_request(300, 120)
    inner.connect("clicked", lambda _: told.append(["clicked", name]))
    if FOUR:
        made.set_child(inner)
        made.set_parent(widgets[over])
        made.popup()
    else:
        made.add(inner)
        made.set_relative_to(widgets[over])
        made.show_all()
    widgets[name] = made


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


def watch(descriptor, function):
    """Call a function whenever a descriptor can be read, until it says False."""
    GLib.io_add_watch(descriptor, GLib.IO_IN | GLib.IO_HUP, lambda *_: function())


Lines(sys.argv[1], globals(), watch)
begin()
loop.run()
