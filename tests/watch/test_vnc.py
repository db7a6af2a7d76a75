"""A desktop over VNC is watched by the pixels that its own connection keeps."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from conformance.servers import serving
from deskhand import watch
from deskhand.watch.mirror import Mirror
from faults.helpers import until
from watch.browser import Viewer, chromium
from watch.painter import Painter
from watch.pictures import DROP, PASTE, file_of, picture, text_of

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


def test_what_vnc_cannot_take_is_told() -> None:
    with (
        serving("xvnc") as place,
        place.connect() as desktop,
        watch.serve(desktop) as server,
        chromium() as browser,
    ):
        viewer = Viewer(browser, server.link("control"))
        viewer.wait_live(desktop)
        viewer.take()
        viewer.page.evaluate(DROP, [[text_of(b"x"), "a.txt"]])
        viewer.wait_toast("a.txt: vnc does not support the action 'taking files'")
        viewer.page.evaluate(PASTE, [text_of(file_of(picture())), "image.png", "image/png", ""])
        viewer.wait_toast("The picture: ")
        viewer.page.click("#copy")
        viewer.wait_toast("neither text nor a picture")
        assert "clipboard.write_data" in viewer.toasts
        viewer.hand_back()
        viewer.close()
        assert viewer.errors == []
