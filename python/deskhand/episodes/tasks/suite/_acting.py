"""How an oracle or a setup acts: with keys and clicks, and by waiting until the desktop shows the next state.

This module owns the waits, each with a condition and a deadline, and the dialogs that all applications share. It never waits
for a fixed time, and has no task.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deskhand._core.settle import Settle
from deskhand.actions import KeyPress, Type
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.window import Window
    from deskhand.desktop.desktop import Desktop

PATIENCE = 60.0
"""Seconds after which a wait fails; long enough even for a busy machine."""

_PERIOD = 0.01
_SWALLOWED = 1.5
_STILL = Settle(quiet=0.1, reaction=0.2, timeout=20.0)


def wait_until(condition: Callable[[], bool], what: str, *, timeout: float = PATIENCE) -> None:
    """Wait until a condition holds.

    Args:
        condition: Must only look; it is called a hundred times a second.
        what: The name of the condition in an error.
        timeout: Seconds.

    Raises:
        EpisodeError: The condition did not hold in time.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise EpisodeError(f"{what} did not come in {timeout:g} s")
        time.sleep(_PERIOD)


def find_window(desktop: Desktop, title: str = "", class_name: str = "") -> Window | None:
    """The topmost window whose title and class contain these words, ignoring case; None if there is none."""
    for window in reversed(desktop.windows.list()):
        if title.lower() in window.title.lower() and class_name.lower() in window.class_name.lower():
            return window
    return None


def wait_for_window(
    desktop: Desktop,
    title: str = "",
    class_name: str = "",
    *,
    timeout: float = PATIENCE,
    check: Callable[[], None] = lambda: None,
) -> Window:
    """Wait until such a window has the keyboard and is drawn, and return it.

    Args:
        desktop: The desktop.
        title: Words of its title, ignoring case.
        class_name: Words of its class.
        timeout: Seconds.
        check: Raises if the window will not appear any more.

    Raises:
        EpisodeError: The window did not appear in time; the message lists the windows that were there.
    """

    def active() -> bool:
        check()
        window = find_window(desktop, title, class_name)
        return window is not None and window.active

    wanted = " ".join(filter(None, (class_name, f"with {title!r} in its title" if title else "")))
    try:
        wait_until(active, f"an active window {wanted}", timeout=timeout)
    except EpisodeError as error:
        there = ", ".join(
            f"{w.title!r} ({w.class_name}{', active' if w.active else ''})" for w in desktop.windows.list()
        )
        raise EpisodeError(f"{error}; there were {there or 'no windows'}") from None
    settled(desktop)
    window = find_window(desktop, title, class_name)
    # Its title may have changed while it was drawn; the caller's next wait then uses the new one.
    return window if window is not None else next(w for w in desktop.windows.list() if w.active)


def wait_until_gone(desktop: Desktop, window: Window, *, timeout: float = PATIENCE) -> None:
    """Wait until a window is no longer there.

    Raises:
        EpisodeError: The window is still there.
    """
    wait_until(
        lambda: all(other.id != window.id for other in desktop.windows.list()),
        f"the end of the window {window.title!r}",
        timeout=timeout,
    )


def settled(desktop: Desktop) -> None:
    """Wait until nothing moves."""
    desktop.perform(settle=_STILL)


def press(desktop: Desktop, *chords: str) -> None:
    """Press key combinations in order, waiting for the screen after each: `press(desktop, "ctrl+a", "Delete")`."""
    desktop.perform(*(KeyPress((chord,)) for chord in chords))


def type_text(desktop: Desktop, text: str) -> None:
    """Type a text at the keyboard focus."""
    desktop.perform(Type(text))


def choose_file(desktop: Desktop, path: str, *, title: str) -> None:
    """Enter a path in the file dialog with this title, to open or to save, and wait until it has closed.

    The dialogs of GTK and Qt accept a whole path in the focused field, and Return.
    """
    dialog = wait_for_window(desktop, title)
    desktop.perform(KeyPress(("ctrl+a",)), Type(path))
    press(desktop, "Return")
    try:
        wait_until_gone(desktop, dialog, timeout=_SWALLOWED)
    except EpisodeError:
        # GTK's list of completions appears when GTK has read the folder, and swallows a Return. The button also has a key,
        # which does nothing to a text if the dialog has just closed.
        settled(desktop)
        if any(window.id == dialog.id and window.active for window in desktop.windows.list()):
            press(desktop, "alt+o" if "open" in dialog.title.lower() else "alt+s")
        wait_until_gone(desktop, dialog)
    settled(desktop)
