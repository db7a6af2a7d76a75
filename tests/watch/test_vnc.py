"""A desktop over VNC is watched by the pixels that its own connection keeps."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from conformance.servers import serving
from deskhand.watch.mirror import Mirror
from faults.helpers import until
from watch.painter import Painter

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop

LIMIT = 20.0


def _same(mirror: Mirror, desktop: Desktop) -> bool:
    update = mirror.update(-1)
    shot = desktop.screenshot(format="raw")
    if update is None or update.size != shot.size:
        return False
    ((_, data),) = update.pieces
    return Image.open(io.BytesIO(data)).convert("RGB").tobytes() == shot.data


def test_the_picture_of_a_vnc_server_is_the_desktops() -> None:
    with serving("xvnc") as place, place.connect() as desktop, Painter(place.environment or {}) as painter:
        changes: list[int] = []
        mirror = Mirror(desktop, lambda: changes.append(1))
        mirror.start()
        try:
            for number in range(5):
                painter.paint(number)
                until(lambda: _same(mirror, desktop), LIMIT, "the picture to be the desktop's")
            before = len(changes)
            painter.paint(6)
            # Without a look by anybody.
            until(lambda: len(changes) > before, LIMIT, "the change to be noticed")
        finally:
            mirror.stop(wait=True)
        assert mirror.loss == ""
