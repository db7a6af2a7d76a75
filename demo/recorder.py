"""Acts on the desktop and keeps what was seen: one `Step` for each look, one `Check` for each claim.

This module shows the progress of a run while it goes on. Waiting is done here too, on a condition and with a deadline: the
pauses between two looks are those of deskhand's settling, never a sleep.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from PIL import Image
from rich.markup import escape

from deskhand import Drag, Type

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console

    from deskhand import Action, Desktop, Observation, Settle

__all__ = ["Check", "Recorder", "Step", "TooLate"]

T = TypeVar("T")

_LONGEST_SHOWN = 110


class TooLate(Exception):
    """A condition did not come true in time."""


@dataclass(frozen=True, slots=True)
class Step:
    """One act and what the screen answered.

    Attributes:
        number: Counted from 1.
        title: What it is for, ASCII.
        actions: What was done, a line each; none when it only looked.
        seen: The observation.
        wall: Seconds that it took for the demo, a program's start and all waiting included.
        frame: The picture's file name.
    """

    number: int
    title: str
    actions: tuple[str, ...]
    seen: Observation
    wall: float
    frame: str


@dataclass(frozen=True, slots=True)
class Check:
    """One claim and its outcome."""

    title: str
    expected: str
    found: str

    @property
    def ok(self) -> bool:
        """Whether the claim holds."""
        return self.expected == self.found


@dataclass
class Recorder:
    """Carries out the steps of a run on one desktop.

    Attributes:
        desktop: Where.
        folder: Where the frames go.
        console: Where the progress goes.
        steps: What was done so far.
        checks: What was checked so far.
    """

    desktop: Desktop
    folder: Path
    console: Console
    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def act(self, title: str, *actions: Action, settle: Settle | bool = True) -> Observation:
        """Do something, and keep what the screen answered."""
        begun = time.monotonic()
        return self._keep(
            title, [_describe(action) for action in actions], self.desktop.perform(*actions, settle=settle), begun
        )

    def start(self, title: str, command: list[str], folder: Path) -> Observation:
        """Start a program in a folder, and keep the picture of its window."""
        begun = time.monotonic()
        self.desktop.start(command, cwd=folder)
        return self._keep(title, [f"start {command[0]}"], self.desktop.perform(), begun)

    def until(self, title: str, condition: Callable[[], T | None], what: str, *, seconds: float = 15.0) -> T:
        """Look again until a condition gives something, and keep the last look.

        Raises:
            TooLate: It did not come true in time. The last look is kept.
        """
        begun = time.monotonic()
        while True:
            # Asked before the look: the picture that is kept must show the condition true.
            result = condition()
            seen = self.desktop.perform()
            if result is not None or time.monotonic() - begun > seconds:
                break
        self._keep(title, [f"wait for {what}"], seen, begun)
        if result is None:
            raise TooLate(f"{title}: waited {seconds:g} s for {what}")
        return result

    def check(self, title: str, expected: object, found: object) -> None:
        """Note whether two values are the same."""
        check = Check(title, _shown(expected), _shown(found))
        self.checks.append(check)
        if check.ok:
            self.console.print(f"    [green]ok[/]      {escape(title)}")
        else:
            self.console.print(f"    [bold red]FAILED[/]  {escape(title)}")
            self.console.print(
                f"            expected {escape(check.expected)}\n            found    {escape(check.found)}"
            )

    def check_steps(self) -> None:
        """Check what must be true of every step, from the files that it left."""
        unsettled = [f"{step.frame}: {step.seen.reason}" for step in self.steps if not step.seen.settled]
        self.check("every step settled", [], unsettled)
        sizes = {step.frame: _size((self.folder / step.frame).read_bytes()) for step in self.steps}
        wrong = {frame: size for frame, size in sizes.items() if size != tuple(self.desktop.size)}
        self.check("every frame is a PNG of the screen's size", {}, wrong)

    def _keep(self, title: str, actions: list[str], seen: Observation, begun: float) -> Observation:
        wall = time.monotonic() - begun
        number = len(self.steps) + 1
        name = "".join(char if char.isalnum() else "-" for char in title.lower())
        step = Step(number, title, tuple(actions), seen, wall, f"{number:02}-{name}.png")
        (self.folder / step.frame).write_bytes(seen.png)
        self.steps.append(step)
        state = "" if seen.settled else f" [yellow]{seen.reason}[/]"
        self.console.print(f"[dim]{number:3}[/] {escape(title)} [dim]{wall * 1000:.0f} ms[/]{state}")
        return seen


def _size(png: bytes) -> tuple[int, int]:
    # Pillow, not deskhand, decodes it, all of it: a frame is worth what others make of it.
    with Image.open(io.BytesIO(png)) as image:
        image.load()
        return image.size


def _describe(action: Action) -> str:
    """An action for a reader: its type and what is special about it."""
    match action:
        case Type(text=text):
            return f"type {_cut(repr(text))}"
        case Drag(path=path):
            return f"drag through {len(path)} points, {tuple(path[0])} to {tuple(path[-1])}"
        case _:
            fields = {
                key: value for key, value in action.to_dict().items() if key != "type" and value not in (None, [], ())
            }
            return _cut(" ".join([action.type, *(f"{key}={value}" for key, value in fields.items())]))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
