"""What a desktop takes, a desktop under a policy takes: every method, with every kind of argument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import ActionClass, AuditLog, ClassPolicy, Fit, Guard, Operation, Size
from faults.helpers import need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

XTERM = need("xterm", "xterm")
EVERYTHING = [kind for kind in ActionClass if kind is not ActionClass.SAFETY_CHECK]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[deskhand.Desktop, deskhand.Desktop]]:
    """A desktop, and the same one under a policy that allows everything and writes it down."""
    log = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    with deskhand.launch(size=(800, 600)) as desktop:
        guard = Guard(policy=ClassPolicy(allow=EVERYTHING, environment=["PATH"]), limits=None, audit=AuditLog(log))
        yield desktop, desktop.also(guard)


def started(desktop: deskhand.Desktop, command: Any, **options: Any) -> Any:
    """Whether a program's window came up, which is closed again by its number."""
    program = desktop.start(command, **options)
    assert program.window is not None
    return desktop.windows.close(program.window.id, timeout=30), desktop.windows.list()


def windowed(desktop: deskhand.Desktop, use: Callable[[Any], Any]) -> Any:
    """Give a window the keyboard and close it, by what `use` makes of it."""
    window = desktop.start(XTERM).window
    assert window is not None
    desktop.windows.activate(use(window), timeout=30)
    return desktop.windows.close(use(window), timeout=30)


def in_shell(desktop: deskhand.Desktop, **options: Any) -> Any:
    with desktop.host.open_shell(**options) as shell:
        return shell.run("pwd; echo $A").stdout, shell.run("echo $A", env={"A": "b"}, cwd="/usr").stdout


def pasted(desktop: deskhand.Desktop, text: str) -> Any:
    desktop.clipboard.write(text)
    seen = desktop.clipboard.read()
    desktop.clipboard.write(text)
    return seen, desktop.clipboard.read()


def resized(desktop: deskhand.Desktop, size: Any) -> Any:
    desktop.resize(size)
    return desktop.size


TAKEN: dict[str, Callable[[deskhand.Desktop], Any]] = {
    "start, a line": lambda desktop: started(desktop, f"{XTERM} -T 'a b'"),
    "start, words": lambda desktop: started(desktop, [XTERM, "-T", "a b"]),
    "start, an iterator": lambda desktop: started(desktop, iter((XTERM, "-T", "a b"))),
    "start, a path": lambda desktop: started(desktop, Path(XTERM)),
    "start, paths in words": lambda desktop: started(desktop, [Path(XTERM), "-e", "cat"]),
    "start, env and cwd": lambda desktop: started(desktop, XTERM, env={"A": Path("/")}, cwd=Path("/"), timeout=60),
    "windows, by themselves": lambda desktop: windowed(desktop, lambda window: window),
    "windows, by number": lambda desktop: windowed(desktop, lambda window: window.id),
    "shell": lambda desktop: desktop.host.run("pwd; echo $A", cwd=Path("/"), env={"A": Path("/a")}).stdout,
    "shell, as text": lambda desktop: desktop.host.run("pwd; echo $A", cwd="/", env={"A": "a"}).stdout,
    "open_shell": lambda desktop: in_shell(desktop, cwd=Path("/"), env={"A": Path("/a")}),
    "open_shell, as text": lambda desktop: in_shell(desktop, cwd="/", env={"A": "a"}, timeout=60, limit=1000),
    "clipboard": lambda desktop: pasted(desktop, "naïve ☕\n"),
    "screenshot": lambda desktop: desktop.screenshot().size,
    "screenshot, a size": lambda desktop: desktop.screenshot((400, 300), cursor=False).size,
    "screenshot, a list": lambda desktop: desktop.screenshot([400, 300], region=[0, 0, 40, 30]).size,  # type: ignore[arg-type] # as JSON has it
    "screenshot, a factor": lambda desktop: desktop.screenshot(0.5, format="jpeg", quality=50).size,
    "screenshot, a box": lambda desktop: desktop.screenshot(Fit(400, 400)).size,
    "screenshot, a model": lambda desktop: desktop.screenshot("anthropic").size,
    "perform, nothing": lambda desktop: desktop.perform(settle=False).size,
    "perform, options": lambda desktop: desktop.perform(settle=False, size=0.5, format="raw", quality=1).size,
    "resize, a pair": lambda desktop: resized(desktop, (640, 480)),
    "resize, a list": lambda desktop: resized(desktop, [800, 600]),
    "resize, a size": lambda desktop: resized(desktop, Size(800, 600)),
    "probe": lambda desktop: desktop.health(timeout=30).ok,
    "operate": lambda desktop: desktop.operate(Operation("navigate", "https://example.org"), lambda: "done"),
    "release_all": lambda desktop: desktop.release(),
}


@pytest.mark.parametrize("what", TAKEN)
def test_a_policy_changes_nothing_of_what_is_taken(pair: tuple[deskhand.Desktop, deskhand.Desktop], what: str) -> None:
    bare, judged = (TAKEN[what](desktop) for desktop in pair)
    assert judged == bare
