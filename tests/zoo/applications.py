"""Applications as people use them: menus, dialogs, drags, windows that open, pages that load, commands.

They keep no log of their changes: the frame is compared with one taken a second and a half later. A caret may blink anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deskhand import Drag, KeyPress, LeftClick, Move, RightClick, Scroll, Settle, Type

from .measure import measure
from .stages import CHROMIUM, WebLink, need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import deskhand
    from deskhand import Action

    from .measure import Result

__all__ = ["APPLICATIONS", "run_application"]

_LATER = 1.5
# Between two scenes nothing may be on its way any more.
_CALM = Settle(quiet=0.7, reaction=0.7, timeout=10.0)
_START_LIMIT = 90.0


@dataclass(frozen=True)
class Scene:
    """One thing to do in an application, and how to undo it.

    Attributes:
        name: What it is.
        act: The actions that are measured.
        undo: Afterwards.
        group: Of the table's row, by default the application.
        sign: False where the application sleeps until a timer.
    """

    name: str
    act: tuple[Action, ...]
    undo: tuple[Action, ...] = ()
    group: str = ""
    sign: bool = True


def key(*chord: str) -> KeyPress:
    return KeyPress(chord)


_ESCAPE = (key("Escape"),)


def _close_others(desktop: deskhand.Desktop, keep: set[int]) -> None:
    for window in desktop.windows.list():
        if window.id not in keep:
            desktop.windows.close(window)


def mousepad(desktop: deskhand.Desktop, home: Path) -> list[Scene]:
    file = home / "text.txt"
    file.write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    window = desktop.start([need("mousepad", "mousepad"), str(file)], cwd=home).window
    assert window is not None
    x, y = window.rect.x, window.rect.y
    there, here = (x + 300, y - 8), (x + 340, y + 20)
    # After anything that moves the pointer or the text, GTK fades its scrollbar out a second later, by a timer.
    return [
        Scene("a letter", (Type("a"),)),
        Scene("a line", (Type("hello world\n"),)),
        Scene("a menu", (key("alt", "f"),), _ESCAPE),
        Scene("the next menu", (key("alt", "f"), key("Right")), _ESCAPE),
        Scene("a context menu", (RightClick((x + 200, y + 200)),), _ESCAPE, sign=False),
        Scene("find", (key("ctrl", "f"),), _ESCAPE),
        Scene("a dialog", (key("ctrl", "r"),), _ESCAPE),
        Scene("the file dialog", (key("ctrl", "shift", "s"),), _ESCAPE),
        Scene("a new window", (key("ctrl", "n"),), (key("ctrl", "w"),)),
        Scene("a drag over text", (Drag([(x + 50, y + 100), (x + 200, y + 160), (x + 260, y + 200)]),), sign=False),
        Scene("a drag of the window", (Drag([there, here]),), (Drag([here, there]),)),
        Scene("page down", (key("Next"),), (key("Prior"),), sign=False),
        Scene("the wheel", (Scroll((x + 200, y + 200), magnitude=3, direction="down"),), sign=False),
        Scene("select all", (key("ctrl", "a"),), (key("Left"),)),
    ]


def featherpad(desktop: deskhand.Desktop, home: Path) -> list[Scene]:
    file = home / "feather.txt"
    file.write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    window = desktop.start([need("featherpad", "featherpad"), str(file)], cwd=home).window
    assert window is not None
    x, y = window.rect.x, window.rect.y
    return [
        Scene("a letter", (Type("a"),)),
        Scene("a line", (Type("hello world\n"),)),
        Scene("a menu", (key("alt", "f"),), (key("Escape"), key("Escape"))),
        Scene("find", (key("ctrl", "f"),), _ESCAPE),
        Scene("the file dialog", (key("ctrl", "shift", "s"),), _ESCAPE),
        Scene("preferences", (key("ctrl", "shift", "p"),), _ESCAPE),
        Scene("a drag over text", (Drag([(x + 60, y + 120), (x + 200, y + 180), (x + 260, y + 200)]),)),
        Scene("page down", (key("Next"),), (key("Prior"),)),
        Scene("the wheel", (Scroll((x + 200, y + 200), magnitude=3, direction="down"),)),
        Scene("a new tab", (key("ctrl", "n"),), (key("ctrl", "w"),)),
    ]


def xterm(desktop: deskhand.Desktop, home: Path) -> list[Scene]:
    window = desktop.start([need("xterm", "xterm"), "-geometry", "100x40", "-e", "sh"], cwd=home).window
    assert window is not None
    x, y = window.rect.x, window.rect.y
    python = "python3 -c 'sum(range(10**7)); print(1)'\n"
    return [
        Scene("a letter", (Type("a"),), (key("BackSpace"),)),
        Scene("a short command", (Type("echo hello\n"),)),
        Scene("a long output", (Type("seq 20000\n"),)),
        Scene("a search of the disk", (Type("find /usr -name '*.so' | wc -l\n"),)),
        Scene("a command that computes", (Type(python),)),
        Scene("many short commands", (Type("for i in 1 2 3 4 5 6 7 8 9; do expr $i + 1; done\n"),)),
        Scene("a command that sleeps", (Type("sleep 0.6; echo done\n"),), sign=False),
        Scene("clear", (Type("clear\n"),)),
        Scene("a drag over text", (Drag([(x + 20, y + 60), (x + 200, y + 100)]),), (LeftClick((x + 20, y + 20)),)),
        Scene("another window", (Type("xterm -geometry 40x10+700+500 &\n"),), (Type("exit\n"),)),
    ]


def chromium(desktop: deskhand.Desktop, home: Path) -> list[Scene]:
    page = home / "page.html"
    rows = "".join(f"<p>line {n} of a long page <a href='#{n}'>a link</a></p>" for n in range(400))
    page.write_text(f"<!doctype html><title>page</title><textarea rows=8 cols=60></textarea>{rows}")
    command = [need("chromium", "chromium"), *CHROMIUM, f"--user-data-dir={home / 'chromium'}", f"file://{page}"]
    window = desktop.start(command, timeout=_START_LIMIT).window
    assert window is not None
    x, y = window.rect.x + window.rect.width // 2, window.rect.y + window.rect.height // 2
    web = WebLink()

    def load(times: Sequence[int], what: str, *, sign: bool = True) -> Scene:
        url = f"http://127.0.0.1:{web.port}/page?{','.join(map(str, times))}"
        act = (key("ctrl", "l"), Type(url), key("Return"))
        return Scene(f"{what}, {times[-1]} ms", act, group="chromium loads", sign=sign)

    return [
        Scene("a letter", (LeftClick((window.rect.x + 150, window.rect.y + 150)), Type("a"))),
        Scene("a line", (Type("hello world "),)),
        Scene("a context menu", (RightClick((x, y)),), _ESCAPE),
        Scene("the menu", (key("alt", "f"),), _ESCAPE),
        Scene("find", (key("ctrl", "f"),), _ESCAPE),
        Scene("the wheel", (Scroll((x, y), magnitude=3, direction="down"),)),
        Scene("page down", (key("Next"),)),
        Scene("a drag over text", (Drag([(x - 200, y), (x, y + 40), (x + 50, y + 90)]),)),
        Scene("the address", (key("ctrl", "l"), Type("about:blank")), (key("Escape"), key("Escape"))),
        Scene("a new tab", (key("ctrl", "t"),), (key("ctrl", "w"),)),
        Scene("a new window", (key("ctrl", "n"),), (key("ctrl", "w"),)),
        # The bubble that tells of it goes away by a timer.
        Scene("zoom", (key("ctrl", "plus"),), (key("ctrl", "0"),), sign=False),
        *(load([at], "a page") for at in (0, 30, 80, 200, 600, 1500)),
        *(load([0, at // 2, at], "a page in parts") for at in (80, 200, 600, 1500)),
    ]


def libreoffice(desktop: deskhand.Desktop, home: Path) -> list[Scene]:
    office = f"-env:UserInstallation=file://{home}/office"
    command = [need("soffice", "libreoffice-writer libreoffice-gtk3"), office, "--norestore", "--nologo", "--writer"]
    window = desktop.start(command, timeout=_START_LIMIT).window
    assert window is not None
    desktop.perform(settle=Settle(quiet=2.0, reaction=3.0, timeout=20.0))
    # The tip of the day.
    desktop.perform(key("Escape"))
    x, y = window.rect.x + window.rect.width // 2, window.rect.y + window.rect.height // 2
    # It sleeps until a timer of a fifth of a second brings its toolbars, its status bar and its submenus up to date.
    scenes = [
        Scene("a letter", (Type("a"),)),
        Scene("a line", (Type("the quick brown fox\n"),)),
        Scene("a word in bold", (key("ctrl", "b"), Type("bold "), key("ctrl", "b"))),
        Scene("a menu", (key("alt", "f"),), _ESCAPE),
        Scene("a context menu", (RightClick((x, y)),), _ESCAPE),
        Scene("find", (key("ctrl", "f"),), _ESCAPE),
        Scene("a dialog", (key("ctrl", "h"),), _ESCAPE),
        Scene("the table dialog", (key("ctrl", "F12"),), _ESCAPE),
        Scene("the file dialog", (key("ctrl", "o"),), _ESCAPE),
        Scene("select all", (key("ctrl", "a"),), (key("Left"),)),
        Scene("a drag over text", (Drag([(x - 100, y - 100), (x, y), (x + 100, y)]),)),
        Scene("the wheel", (Scroll((x, y), magnitude=3, direction="down"),)),
        Scene("undo", (key("ctrl", "z"),)),
    ]
    return [replace(scene, sign=False) for scene in scenes]


APPLICATIONS: dict[str, Callable[[deskhand.Desktop, Path], list[Scene]]] = {
    "mousepad": mousepad,
    "featherpad": featherpad,
    "xterm": xterm,
    "chromium": chromium,
    "libreoffice": libreoffice,
}


def run_application(desktop: deskhand.Desktop, name: str, home: Path, match: str) -> Iterator[Result]:
    """All scenes of one application."""
    scenes = APPLICATIONS[name](desktop, home)
    keep = {window.id for window in desktop.windows.list()}
    # Away from what scenes click at, and from anything that lights up under it.
    rest = Move((desktop.size.width - 2, desktop.size.height - 2))
    for scene in scenes:
        if match not in f"{name} {scene.name}":
            continue
        desktop.perform(rest, settle=_CALM)
        yield measure(
            desktop,
            scene.act,
            name=f"{name}: {scene.name}",
            group=scene.group or f"{name} (application)",
            sign=scene.sign,
            caret=True,
            later=_LATER,
        )
        desktop.perform(*scene.undo, settle=_CALM)
        _close_others(desktop, keep)
