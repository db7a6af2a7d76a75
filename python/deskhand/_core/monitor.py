"""A monitor, and which monitors a screen is made of by what the other side says: untrusted numbers and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand._core.geometry import Rect
from deskhand._core.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand._core.geometry import Size

_MOST = 64
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Monitor:
    """One monitor of a screen.

    Attributes:
        name: As the X server calls it, such as `HDMI-1`; over VNC, the number that the server gives it. Untrusted text; empty
            where the other side reports no monitors.
        rect: Its part of the screen, in screen pixels.
        primary: Whether it is the primary one: the X server says so, or there is only one. A VNC server says it of none.
    """

    name: str
    rect: Rect
    primary: bool


def monitors_of(reported: Iterable[tuple[str, tuple[int, int, int, int], bool]], size: Size) -> list[Monitor]:
    """The monitors of a screen: at most 64, each cut to the screen; the whole screen as one where none is left.

    Args:
        reported: Name, place and whether it is the primary one, of each that the other side reports.
        size: That of the screen.
    """
    screen = Rect(0, 0, *size)
    parts = ((name, Rect(*place).intersect(screen), primary) for name, place, primary in reported)
    monitors = [
        Monitor(one_line(name, _LONGEST_NAME), part, primary) for name, part, primary in parts if not part.empty
    ]
    match monitors:
        case []:
            return [Monitor("", screen, primary=True)]
        case [only]:
            return [Monitor(only.name, only.rect, primary=True)]
    return monitors[:_MOST]
