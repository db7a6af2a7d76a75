"""Screens whose text is known: what OCR libraries are compared on. `make` shows a program and returns its picture and texts.

The truth comes from the accessibility tree (GTK, Qt, Chromium, LibreOffice) or from what the program was told to show (xterm,
Tk). What must never appear here: a measurement.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import deskhand
from bench import scenes
from deskhand import Settle
from deskhand._core.geometry import Rect
from deskhand.desktop.access import core_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from deskhand import Desktop

__all__ = ["NAMES", "Labelled", "make"]

SIZE = (1280, 800)
_SYSTEM_PYTHON = "/usr/bin/python3"
_QUIET = Settle(quiet=0.7, reaction=0.7, timeout=20)
_MENUS = ("File", "Edit", "View", "Search", "Tools", "Help")
_WORDS = (
    "Save As…", "Cancel", "Open recent", "Don't save", "OK", "Apply", "Reset to defaults", "Browse…", "Print (Ctrl+P)",
    "Close window", "192.168.0.1:8080", "/home/user/Documents", "report_2026-11.txt", "Total: $1,234.56", "50 %", "Größe",
    "Café Illusion", "Il1O0 lL|", "user@example.com", "https://example.com/a?b=1",
)  # fmt: skip
_CHECKS = ("Show hidden files", "Wrap lines", "Remember password", "Enable notifications", "Use dark theme")
_LINES = (
    "total 48", "drwxr-xr-x  5 user user  4096 Nov 25 20:44 Documents",
    "-rw-r--r--  1 user user 11834 Oct  3 07:15 notes.md",
    "$ git commit -m 'Fix the parser'", "[main 3e4d44e] Fix the parser", " 2 files changed, 17 insertions(+), 4 deletions(-)",
    "$ python3 -c 'print(sum(range(100)))'", "4950", "Traceback (most recent call last):",
    '  File "main.py", line 12, in <module>', "    value = table[key]", "KeyError: 'colour'",
    "PING 10.0.0.7 56(84) bytes of data.",
    "64 bytes from 10.0.0.7: icmp_seq=1 ttl=64 time=0.045 ms", "https://docs.python.org/3/library/os.html",
    "for (int i = 0; i < n; i++) { sum += a[i]; }",
    "O0 l1I| S5 B8 Z2 rn m vv w", "The quick brown fox jumps over the lazy dog.",
)  # fmt: skip
_PARAGRAPHS = (
    "A desktop is a set of windows. Each window belongs to an application, and an application may have several windows.",
    "The server tells which pixels have changed; the driver waits until 120 ms have passed without a change.",
    "Prices rose by 3.5 % in 2025, from $1,200 to $1,242 (see Table 7).",
)
_GTK = """
import gi, json, sys
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
menus, words, checks = json.loads(sys.argv[1])
window = Gtk.Window(title="Labels")
window.set_default_size(1000, 640)
column = Gtk.Box(orientation=1, spacing=6)
bar = Gtk.MenuBar()
for menu in menus:
    bar.append(Gtk.MenuItem(label=menu))
column.pack_start(bar, False, False, 0)
grid = Gtk.Grid(row_spacing=6, column_spacing=10, margin=10)
for at, word in enumerate(words):
    grid.attach(Gtk.Button(label=word), at % 4, at // 4, 1, 1)
    grid.attach(Gtk.Label(label=word, xalign=0), at % 4, 10 + at // 4, 1, 1)
for at, check in enumerate(checks):
    grid.attach(Gtk.CheckButton(label=check), at % 4, 20 + at // 4, 1, 1)
entry = Gtk.Entry(text="monthly report.ods")
grid.attach(entry, 0, 30, 2, 1)
column.add(grid)
window.add(column)
window.connect("destroy", Gtk.main_quit)
window.show_all()
Gtk.main()
"""
_QT = """
import json, sys
from PyQt5.QtGui import QColor, QPalette
from PyQt5.QtWidgets import QApplication, QCheckBox, QGridLayout, QLabel, QLineEdit, QMainWindow, QPushButton, QWidget
menus, words, checks = json.loads(sys.argv[1])
application = QApplication([])
application.setStyle("Fusion")
if sys.argv[2] == "dark":
    palette = QPalette()
    for role, colour in ((QPalette.Window, "#353535"), (QPalette.Base, "#232323"), (QPalette.Button, "#353535")):
        palette.setColor(role, QColor(colour))
    for role in (QPalette.WindowText, QPalette.Text, QPalette.ButtonText):
        palette.setColor(role, QColor("white"))
    application.setPalette(palette)
window = QMainWindow()
window.setWindowTitle("Labels")
for menu in menus:
    window.menuBar().addMenu(menu)
middle = QWidget()
grid = QGridLayout(middle)
for at, word in enumerate(words):
    grid.addWidget(QPushButton(word), at // 4, at % 4)
    grid.addWidget(QLabel(word), 10 + at // 4, at % 4)
for at, check in enumerate(checks):
    grid.addWidget(QCheckBox(check), 20 + at // 4, at % 4)
grid.addWidget(QLineEdit("monthly report.ods"), 30, 0, 1, 2)
window.setCentralWidget(middle)
window.resize(1000, 640)
window.show()
application.exec_()
"""
_TK = """
import json, sys, tkinter
menus, words, checks = json.loads(sys.argv[1])
dark = sys.argv[2] == "dark"
root = tkinter.Tk()
root.title("Labels")
root.geometry("1000x640")
colours = {"bg": "#202020", "fg": "#e8e8e8"} if dark else {}
root.configure(**{"bg": "#202020"} if dark else {})
shown = []
for at, word in enumerate(words):
    shown.append(tkinter.Button(root, text=word, **colours))
    shown[-1].grid(row=at // 4, column=at % 4, padx=5, pady=3)
    shown.append(tkinter.Label(root, text=word, **colours))
    shown[-1].grid(row=10 + at // 4, column=at % 4, sticky="w", padx=5, pady=3)
for at, check in enumerate(checks):
    shown.append(tkinter.Checkbutton(root, text=check, selectcolor="#202020" if dark else "white", **colours))
    shown[-1].grid(row=20 + at // 4, column=at % 4, sticky="w")
def tell():
    rows = [[w.cget("text"), w.winfo_rootx(), w.winfo_rooty(), w.winfo_width(), w.winfo_height()] for w in shown]
    with open(sys.argv[3], "w") as file:
        json.dump(rows, file)
root.after(500, tell)
root.mainloop()
"""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A picture, and the texts in it.

    Attributes:
        name: Such as `gtk-dark`.
        picture: Shape (height, width, 3), RGB.
        texts: Each text, and the box of what shows it.
    """

    name: str
    picture: NDArray[np.uint8]
    texts: tuple[tuple[str, Rect], ...]


NAMES = (
    "gtk-light", "gtk-dark", "qt-light", "qt-dark", "tk-light", "tk-dark", "xterm-fixed-light", "xterm-10-light",
    "xterm-10-dark", "xterm-12-dark", "chromium-light", "chromium-dark", "writer-light",
)  # fmt: skip
"""What there is."""


def make(name: str, scratch: Path) -> Labelled:
    """Show a program on a desktop of its own, and take its picture.

    Raises:
        Missing: A program that is in the picture is not installed.
    """
    program, *_, theme = name.split("-")
    environment = {**scenes.home_environment(scratch / f"home-{name}"), "GTK_THEME": f"Adwaita:{theme}"}
    with deskhand.launch(size=SIZE, env=environment) as desktop:
        texts = _xterm(desktop, name, scratch) if program == "xterm" else _window(desktop, program, theme, scratch)
        width, height, rgb = core_of(desktop).backend.screen.rgb(None, None, False)  # noqa: FBT003 # the pixels
        picture = np.frombuffer(rgb, np.uint8).reshape(height, width, 3)
    return Labelled(name, picture, texts)


def _window(desktop: Desktop, program: str, theme: str, scratch: Path) -> tuple[tuple[str, Rect], ...]:
    given = json.dumps([_MENUS, _WORDS, _CHECKS])
    if program == "chromium":
        page = scratch / "labels.html"
        page.write_text(_page(theme))
        desktop.start(scenes.chromium(page, scratch / f"profile-{theme}", (0, 0, *SIZE)), timeout=60)
    elif program == "writer":
        scenes.need("soffice", "libreoffice-writer libreoffice-gtk3")
        (scratch / "labels.txt").write_text("\n".join(_PARAGRAPHS + _LINES))
        profile = f"-env:UserInstallation=file://{scratch / 'office'}"
        command = ["soffice", profile, "--norestore", "--nologo", "--nofirststartwizard", "--writer"]
        desktop.start([*command, str(scratch / "labels.txt")], timeout=90)
    else:
        source = scratch / f"{program}.py"
        source.write_text({"gtk": _GTK, "qt": _QT, "tk": _TK}[program])
        told = scratch / f"{program}-{theme}.json"
        desktop.start([_SYSTEM_PYTHON, str(source), given, theme, str(told)], timeout=30)
    desktop.perform(settle=_QUIET)
    if program == "writer":
        # LibreOffice does not say where its paragraphs are: they are one text.
        (document,) = [e for e in desktop.elements(timeout=10) if e.role == "document" and e.box is not None]
        assert document.box is not None  # noqa: S101 # just looked for
        return ((" ".join(_PARAGRAPHS + _LINES), document.box),)
    if program == "tk":
        rows = json.loads(told.read_text())
        return tuple((text, Rect(x, y, width, height)) for text, x, y, width, height in rows)
    return _texts(desktop, program)


def _texts(desktop: Desktop, program: str) -> tuple[tuple[str, Rect], ...]:
    """The texts of a tree's leaves that show as a whole."""
    desktop.elements(timeout=10)
    desktop.perform(settle=_QUIET)
    elements = desktop.elements(timeout=10)
    screen = Rect(0, 0, *SIZE)
    inside = [e for e in elements if e.role == "document"] if program == "chromium" else []
    searched: Sequence[deskhand.Element] = elements.all if not inside else elements.within(inside[0].ref)
    found = {}
    for element in searched:
        said = element.text or element.name
        if element.role == "checkbox" and program == "chromium":
            # Its text is an element of its own, beside it.
            continue
        if not said.strip() or element.box is None or element.point is None or not element.box.within(screen):
            continue
        if any(inner.name or inner.text for inner in elements.within(element.ref)) or element.role == "window":
            continue
        found[element.box] = (said, element.box)
    return tuple(found.values())


def _xterm(desktop: Desktop, name: str, scratch: Path) -> tuple[tuple[str, Rect], ...]:
    scenes.need("xterm", "xterm")
    _, size, theme = name.split("-")
    (scratch / "lines.txt").write_text("\n".join(_LINES))
    colours = ["-fg", "#d0d0d0", "-bg", "black"] if theme == "dark" else ["-fg", "black", "-bg", "white"]
    font = [] if size == "fixed" else ["-fa", "DejaVu Sans Mono", "-fs", size]
    columns, rows = 80, 30
    shape = ["-geometry", f"{columns}x{rows}+40+40", "-b", "0", "+sb"]
    desktop.start(["xterm", *shape, *colours, *font, "-e", "sh", "-c", f"cat {scratch / 'lines.txt'}; sleep 1000"])
    desktop.perform(settle=_QUIET)
    (window,) = desktop.windows.list()
    rect = window.rect
    cell, line = rect.width / columns, rect.height / rows
    found = []
    for at, text in enumerate(_LINES):
        begin = rect.x + round((len(text) - len(text.lstrip())) * cell)
        box = Rect(begin, rect.y + round(at * line), round(len(text.strip()) * cell), round(line))
        found.append((text.strip(), box))
    return tuple(found)


def _page(theme: str) -> str:
    colours = "color:#e8e8e8;background:#202124" if theme == "dark" else "color:#202124;background:white"
    menus = "".join(f"<a href='#{menu}' style='margin-right:16px;color:inherit'>{menu}</a>" for menu in _MENUS)
    buttons = "".join(f"<button style='margin:4px'>{word}</button>" for word in _WORDS)
    rows = "".join(
        "<tr>" + "".join(f"<td style='padding:2px 12px'>{word}</td>" for word in _WORDS[at : at + 4]) + "</tr>"
        for at in range(0, len(_WORDS), 4)
    )
    paragraphs = "".join(
        f"<p style='font-size:{size}px'>{p}</p>" for size, p in zip((12, 14, 16), _PARAGRAPHS, strict=True)
    )
    checks = "".join(f"<div><label><input type='checkbox'><span>{check}</span></label></div>" for check in _CHECKS)
    return (
        f"<!doctype html><meta charset='utf-8'><title>Labels</title><body style='font:14px sans-serif;{colours}'>"
        f"<nav>{menus}</nav><h1>Monthly report</h1>{paragraphs}<div>{buttons}</div><table>{rows}</table>{checks}"
    )
