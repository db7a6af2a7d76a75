"""A viewer on a slow line gets JPEG first, and every pixel in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from Xlib import X, display

from deskhand.watch.line import Line
from deskhand.watch.mirror import Mirror
from integration.apps import environment_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import deskhand
    from deskhand.watch import Server
    from watch.browser import Viewer

_SIZE = (400, 300)
# Rows that one request of X carries.
_ROWS = 50


@pytest.fixture
def blurred(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int, int]]:
    """Every line is slow for what is large; the parts that were sent as JPEG."""
    found: list[tuple[int, int, int, int]] = []
    part = Mirror.part

    def made(self: Mirror, rect: tuple[int, int, int, int], *, sharp: bool) -> bytes:
        if not sharp:
            found.append(rect)
        return part(self, rect, sharp=sharp)

    monkeypatch.setattr(Mirror, "part", made)
    monkeypatch.setattr(Line, "is_slow_for", lambda _, size: size > 10_000)
    return found


def test_every_pixel_is_there_in_the_end(
    watched: tuple[deskhand.Desktop, Server],
    opened: Callable[..., Viewer],
    blurred: list[tuple[int, int, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desktop, viewer = watched[0], opened("watch")
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, environment_of(desktop)[name])
    client = display.Display()
    root = client.screen().root
    window = root.create_window(20, 30, *_SIZE, 0, client.screen().root_depth, override_redirect=True)
    window.map()
    context = window.create_gc()
    width, height = _SIZE
    for seed in range(3):
        blurred.clear()
        noise = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
        for top in range(0, height, _ROWS):
            rows = noise[top : top + _ROWS].tobytes()
            window.put_image(context, 0, top, width, _ROWS, X.ZPixmap, client.screen().root_depth, 0, rows)
        client.sync()
        viewer.wait_same(desktop)
        assert blurred
    window.destroy()
    client.close()
    viewer.wait_same(desktop)
