"""The properties that a new display may have, here or in a container.

This module owns the bounds. What must never appear here: how one is started.
"""

from __future__ import annotations

from deskhand._core.arguments import expect_integer, expect_size, expect_text, expect_word
from deskhand.errors import ActionError, shown
from deskhand.machine.program_arguments import check_timeout

LARGEST_SCREEN = 16384
"""Pixels of a side."""

# A thousand times the value of a real screen; the X server accepts it.
_LARGEST_DPI = 100_000
_METHODS = ("shared-fd", "shared-id", "socket")


def check_display(*, size: object, dpi: object, method: object, window_manager: object, timeout: object) -> None:
    """Check the size and resolution of a display for `deskhand.launch`.

    Raises:
        ActionError: They are impossible.
    """
    expect_size("launch: size", size, LARGEST_SCREEN)
    expect_integer("launch: dpi", dpi, 1, _LARGEST_DPI)
    if window_manager is not None:
        expect_word("launch: window_manager", expect_text("launch: window_manager", window_manager))
    check_method("launch", method)
    check_timeout("launch", timeout)


def check_method(what: str, method: object) -> None:
    """Check the name of a capture method, or None.

    Raises:
        ActionError: There is no such method.
    """
    if method is not None and method not in _METHODS:
        raise ActionError(f"{what}: method is one of {', '.join(_METHODS)}, or None, not {shown(method)}")
