"""An application in a container that was frozen (`docker pause`), on a desktop outside of it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import deskhand
from deskhand import KeyPress, Reason, Settle, Type
from faults.helpers import until, window_expected

if TYPE_CHECKING:
    from deskhand.launchers.docker.engine import Engine

PATIENCE = 20.0


def test_what_it_has_not_read_is_not_answered(image: str, engine: Engine) -> None:
    """It shows no work, and xterm answers no pings."""
    with deskhand.launch(size=(640, 480)) as desktop:
        assert desktop.display is not None
        number = desktop.display.removeprefix(":")
        binds = [f"/tmp/.X11-unix/X{number}:/tmp/.X11-unix/X{number}", f"{desktop.xauthority}:/cookie:ro"]
        # The cookie is for a display of this machine's name.
        container = engine.api.create_container(
            image,
            ["xterm", "+bc", "-e", "cat"],
            entrypoint=[],
            user="0",
            hostname=socket.gethostname(),
            environment={"DISPLAY": desktop.display, "XAUTHORITY": "/cookie"},
            host_config=engine.api.create_host_config(binds=binds, network_mode="none", auto_remove=True),
        )["Id"]
        try:
            with window_expected(desktop):
                engine.api.start(container)
                until(lambda: any(window.active for window in desktop.windows.list()), PATIENCE, "the terminal")
            assert desktop.perform(Type("a")).reason is Reason.QUIET
            engine.api.pause(container)
            seen = desktop.perform(KeyPress(("b",)), settle=Settle(timeout=0.5))
            assert (seen.settled, seen.reason, seen.changed) == (False, Reason.WINDOW_BUSY, False)
            engine.api.unpause(container)
            seen = desktop.perform(KeyPress(("c",)))
            assert (seen.settled, seen.reason, seen.changed) == (True, Reason.QUIET, True)
        finally:
            engine.api.remove_container(container, force=True)
