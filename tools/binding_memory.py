"""Exercises memory that the binding handles itself, for `tools/sanitize`: filled bytes, and a descriptor."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand import _native
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Callable

W, H = SIZE = (64, 48)


def refused(call: Callable[..., object], *arguments: object, **named: object) -> None:
    """Check that the call fails, with one of our errors or with Python's own for wrong values."""
    try:
        call(*arguments, **named)
    except (DeskhandError, ValueError):
        return
    raise AssertionError(call)


def pictures() -> None:
    """Call every function that returns bytes of a screen, and those that fail after the memory was allocated."""
    screen = _native.Screen(W, H)
    for shade in range(4):
        screen.update((0, 0, W, H), bytes([shade * 60, shade, 200, 0]) * (W * H), float(shade))
        for size in (None, (1, 1), (33, 17), SIZE):
            for region in (None, (0, 0, 1, 1), (W - 3, H - 5, 3, 5)):
                width, height, pixels = screen.rgb(size, region)
                assert len(pixels) == 3 * width * height
                assert screen.png(size, region)[:4] == b"\x89PNG"
                assert screen.indexed_png(size, region)[:4] == b"\x89PNG"
    for region in ((0, 0, 0, 0), (W, H, 1, 1), (0, 0, W + 1, 1), (0xFFFFFFFF, 0, 2, 2)):
        refused(screen.rgb, None, region)
    refused(screen.rgb, (0, 5))
    refused(screen.update, (0, 0, W, H), bytes(5), 9.0)
    refused(_native.Screen, 0xFFFFFFFF, 0xFFFFFFFF)


def descriptors() -> None:
    """A connection owns the descriptor that it gets, even if the server closes at once."""
    refused(_native.Vnc, -1, SIZE, b"", local=True)
    for size in (SIZE, (0, 0)):
        ours, theirs = socket.socketpair()
        number = ours.detach()
        try:
            connection = _native.Vnc(number, size, b"", local=True)
        except DeskhandError:
            assert size == (0, 0)
        else:
            theirs.close()
            refused(connection.look, 5.0)
            connection.close()
        theirs.close()
    # The last one is closed by its reader thread, which ends after the call.
    assert len(list(Path("/proc/self/fd").iterdir())) < 20


if __name__ == "__main__":
    pictures()
    descriptors()
