"""A desktop whose input is observed from outside, and what was observed in short."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import deskhand
from integration.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = (1280, 800)


@contextmanager
def observed(size: tuple[int, int] = SIZE) -> Iterator[tuple[deskhand.Desktop, Observer]]:
    """A desktop, and the program that writes down its input."""
    with deskhand.launch(size=size) as desktop:
        assert desktop.display is not None
        environment = {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}
        with Observer(environment) as observer:
            desktop.perform()
            yield desktop, observer


def at_rest(desktop: deskhand.Desktop, observer: Observer) -> None:
    """The pointer at (100, 100) and nothing pressed; what comes next is no second click of what was."""
    desktop.release()
    # A double click would else wait until an earlier one at its place is forgotten.
    desktop.perform(deskhand.RightClick((1, 1)), deskhand.Move((100, 100)), settle=False)
    observer.events()


def told(observer: Observer) -> list[str]:
    """What happened since, in short: `+1@5,6` a press of button 1 there, `+Return` a press of that key; motion aside."""
    return [short(event) for event in observer.events() if event["kind"] != "motion"]


def short(event: dict[str, Any]) -> str:
    sign = "+" if event["down"] else "-"
    if event["kind"] == "key":
        return f"{sign}{event['name']}"
    x, y = event["at"]
    return f"{sign}{event['button']}@{x},{y}"
