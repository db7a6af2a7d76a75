"""What covers the target in the middle of its use is among what the observation reports as changed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deskhand import LeftClick
from deskhand._core.geometry import Rect
from faults.helpers import need, xclient
from zoo.stages import need_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import deskhand

PYTHON = "/usr/bin/python3"
OVERLAY = Path(__file__).with_name("overlay.py")


def covered(area: Rect, rects: Iterable[Rect]) -> bool:
    """Whether the rectangles together contain the area."""
    missing = np.ones((area.height, area.width), bool)
    for rect in rects:
        part = rect.intersect(area)
        missing[part.y - area.y : part.bottom - area.y, part.x - area.x : part.right - area.x] = False
    return not missing.any()


@pytest.mark.parametrize("kind", ["dialog", "crash", "screen-saver", "notification"])
def test_what_covers_the_target_is_reported(kind: str, launch: Callable[..., deskhand.Desktop]) -> None:
    """F31. Of a crash the target's own end is the one half, and a dialog of another process the other."""
    need_module("gi.repository.Gtk", "python3-gi gir1.2-gtk-3.0")
    desktop = launch(size=(800, 600))
    command = shlex.join([PYTHON, str(OVERLAY), kind])
    told = shlex.join([need("xmessage", "x11-utils"), "-center", "target has crashed"])
    window = desktop.start(["sh", "-c", f"{command} || {told}"]).window
    assert window is not None
    with xclient(desktop) as client:
        # What is painted over in its own colour has not changed.
        client.ask("paint", 0x336699)
        clean = np.asarray(desktop.perform().array())
        before = client.ask("shown")
        seen = desktop.perform(LeftClick((window.rect.x + 20, window.rect.y + 20)))
        after = client.ask("shown")
        new = [Rect(*rect) for window, rect in after.items() if window not in before]
        assert len(new) == 1, (before, after)
        (cover,) = new
    visible = cover.intersect(Rect(0, 0, 800, 600))
    assert seen.changed
    assert covered(visible, seen.rects), (visible, seen.rects)
    # It is in the picture, and the pictures differ only where that is said.
    different = (np.asarray(seen.array()) != clean).any(axis=2)
    assert different[visible.y : visible.bottom, visible.x : visible.right].mean() > 0.1
    # The pointer is in pictures, and no change of the screen.
    pointer = [Rect(x - 32, y - 32, 64, 64) for x, y in (seen.cursor, (400, 300))]
    for rect in (*seen.rects, *seen.busy, *pointer):
        different[rect.y : rect.bottom, rect.x : rect.right] = False
    assert not different.any()
