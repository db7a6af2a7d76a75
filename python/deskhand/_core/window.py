"""A window, as a window system describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deskhand._core.geometry import Rect


@dataclass(frozen=True, slots=True)
class Window:
    """One window as the window manager lists it.

    Attributes:
        id: Its number on that display.
        title: As the application set it: untrusted text.
        class_name: The application's class, such as `Mousepad`; may be empty.
        pid: Process id, as the X server counts processes (in a container, the container's own); where it is unknown, the one
            that the application gives.
        rect: Its content in screen pixels, without the frame; may reach beyond the screen.
        active: Whether the window manager calls it the active one.
        minimized: Whether it is minimised: listed, and not shown.
        startup_id: What its program was started with (`DESKTOP_STARTUP_ID`), where its toolkit publishes it: untrusted text.
    """

    id: int
    title: str
    class_name: str
    pid: int | None
    rect: Rect
    active: bool
    minimized: bool = False
    startup_id: str = field(default="", repr=False)
