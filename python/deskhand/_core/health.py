"""The health of a desktop, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """What belongs to a desktop that has started, as far as the caller knows; nothing, for another user's desktop.

    Attributes:
        manager: Whether a window manager belongs to it.
        picture: Whether something has been drawn, the pointer's image included; a bare X server is all black.
        panel: The class of the panel's window, in small letters; empty for none.
    """

    manager: bool = False
    picture: bool = False
    panel: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a desktop: what each probe found wrong, in a few words; empty if nothing.

    Attributes:
        started: The window manager and the panel that belong to it are there, and something has been drawn.
        live: It answers.
        ready: Input arrives. False if it is not live, or was opened to look only.
    """

    started: str = ""
    live: str = ""
    ready: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.started or self.live or self.ready)

    def __str__(self) -> str:
        wrong = [f"{name}: {value}" for name in ("started", "live", "ready") if (value := getattr(self, name))]
        return "; ".join(wrong) or "started, live and ready"
