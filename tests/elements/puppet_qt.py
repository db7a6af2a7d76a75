"""The same of Qt as `puppet_gtk`: `python3 puppet_qt.py SOCKET 5`, or 6."""

import importlib
import sys

from puppet_lines import Lines

VERSION = sys.argv[2]
core = importlib.import_module(f"PyQt{VERSION}.QtCore")
widgets_of_qt = importlib.import_module(f"PyQt{VERSION}.QtWidgets")

application = widgets_of_qt.QApplication(["puppet"])
application.setQuitOnLastWindowClosed(False)
told = []
widgets = {}
kept = []


def begin(title="Puppet"):
    """Show a window with nothing in it."""
    global window  # noqa: PLW0603 # it is the test's
    window = widgets_of_qt.QWidget()
    window.setWindowTitle(title)
    window.resize(600, 400)
    window.show()


def put(name, widget, x, y):
    """Add a widget at a place of the window."""
    widgets[name] = widget
    widget.setParent(window)
    widget.move(x, y)
    widget.show()


def button(name, x=20, y=20):
    """Add a button that tells of its clicks."""
    made = widgets_of_qt.QPushButton(name)
    made.clicked.connect(lambda: told.append(["clicked", name]))
    put(name, made, x, y)


def check(name, x=20, y=20, *, on=False):
    """Add a check box that tells of its changes."""
    made = widgets_of_qt.QCheckBox(name)
    made.setChecked(on)
    made.toggled.connect(lambda now: told.append(["toggled", name, now]))
    put(name, made, x, y)


def label(text, x=20, y=20):
    """Add a text."""
    put(text, widgets_of_qt.QLabel(text), x, y)


def entry(name, x=20, y=20, text="", *, secret=False, editable=True):
    """Add a line to write in; without a name it tells none."""
    made = widgets_of_qt.QLineEdit(text)
    made.setReadOnly(not editable)
    if secret:
        made.setEchoMode(widgets_of_qt.QLineEdit.EchoMode.Password)
    if name:
        made.setAccessibleName(name)
    put(name, made, x, y)


def spin(name, x=20, y=20):
    """Add a number to set."""
    made = widgets_of_qt.QSpinBox()
    made.setRange(0, 100)
    made.setAccessibleName(name)
    put(name, made, x, y)


def combo(name, options, x=20, y=20):
    """Add a list to choose from."""
    made = widgets_of_qt.QComboBox()
    made.addItems(options)
    made.setAccessibleName(name)
    put(name, made, x, y)


def enable(name, on):
    """Enable a widget, or disable it."""
    widgets[name].setEnabled(on)


def show(name, on):
    """Show a widget, or hide it."""
    widgets[name].setVisible(on)


def rename(name, text):
    """Change what is written on a button."""
    widgets[name].setText(text)


def remove(name):
    """Take a widget away."""
    widgets.pop(name).deleteLater()


def move(name, x, y):
    """Put a widget elsewhere."""
    widgets[name].move(x, y)


def value(name):
    """What is set in a widget."""
    widget = widgets[name]
    for get in ("value", "currentText", "text"):
        if hasattr(widget, get):
            return getattr(widget, get)()
    return None


def slide(name, steps, period):
    """Move a widget to the right by a pixel each `period` milliseconds."""
    timer = core.QTimer(widgets[name])
    left = [steps]

    def step():
        left[0] -= 1
        widgets[name].move(widgets[name].x() + 1, widgets[name].y())
        if not left[0]:
            timer.stop()

    timer.timeout.connect(step)
    timer.start(period)


def later(milliseconds, code):
    """Run code after a time."""
    core.QTimer.singleShot(milliseconds, lambda: exec(code, globals()))  # the test's own


def watch(descriptor, function):
    """Call a function whenever a descriptor can be read, until it says False."""
    kind = getattr(core.QSocketNotifier, "Type", core.QSocketNotifier).Read
    notifier = core.QSocketNotifier(descriptor, kind, application)
    notifier.activated.connect(lambda *_: function() or notifier.setEnabled(False))
    kept.append(notifier)


Lines(sys.argv[1], globals(), watch)
begin()
application.exec()
