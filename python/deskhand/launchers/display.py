"""What a display that is to be launched may be like, here or in a container.

This module owns the bounds. What must never appear here: how one is started.
"""

from __future__ import annotations

from deskhand._core.arguments import expect_integer, expect_size, expect_text, expect_word
from deskhand.errors import ActionError, shown
from deskhand.machine.program_arguments import check_timeout

__all__ = ["LARGEST_SCREEN", "check_display", "check_method"]

LARGEST_SCREEN = 16384
"""Pixels of a side."""

# A thousand times what a screen has; the X server takes it.
_LARGEST_DPI = 100_000
_METHODS = ("shared-fd", "shared-id", "socket")


def check_display(*, size: object, dpi: object, method: object, window_manager: object, timeout: object) -> None:
    """Let what `deskhand.launch` takes pass only if it can be.

    Raises:
        ActionError: It cannot.
    """
    expect_size("launch: size", size, LARGEST_SCREEN)
    expect_integer("launch: dpi", dpi, 1, _LARGEST_DPI)
    if window_manager is not None:
        expect_word("launch: window_manager", expect_text("launch: window_manager", window_manager))
    check_method("launch", method)
    check_timeout("launch", timeout)


def check_method(what: str, method: object) -> None:
    """Let a way to capture pass only if there is one, or None.

    Raises:
        ActionError: There is none.
    """
    if method is not None and method not in _METHODS:
        raise ActionError(f"{what}: method is one of {', '.join(_METHODS)}, or None, not {shown(method)}")
