"""A desktop in a container made as new: the same container, and nothing of what was in it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import containers
from deskhand import LeftMouseDown, Mount, PressKeys, Type
from faults.helpers import NOTHING, until, xclient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine


def test_nothing_is_left(contained: Callable[..., deskhand.Desktop], engine: Engine, tmp_path: Path) -> None:
    """Windows, processes of all kinds, files, clipboard, keys, and whoever had the cookie."""
    tmp_path.chmod(0o777)
    first = contained(mounts=[Mount(tmp_path, "/data", writable=True)])
    first.start("xterm")
    first.machine.run("mkdir ~/shut && touch ~/shut/in && chmod 500 ~/shut; rm ~/.profile; touch /data/kept")
    # The last one: the next would be held up by what goes on.
    first.machine.run(
        "touch ~/secret /tmp/secret /run/deskhand/secret /dev/shm/secret; (trap '' TERM; setsid env -i sleep 9999 &)"
    )
    first.clipboard.write("secret")
    first.perform(Type("abc"), PressKeys(["shift"]), LeftMouseDown((20, 20)), settle=False)
    assert first.xauthority is not None
    assert first.display is not None
    cookie = tmp_path / "cookie"
    cookie.write_bytes(first.xauthority.read_bytes())
    stranger = {**os.environ, "DISPLAY": first.display, "XAUTHORITY": str(cookie)}
    assert subprocess.run(["xdpyinfo"], env=stranger, capture_output=True, check=False).returncode == 0
    with first.reset() as second:
        assert (second.name, second.display) == (first.name, first.display)
        assert second.health() == deskhand.Health()
        assert second.windows.list() == []
        assert second.clipboard.read() is None
        assert second.pointer == (640, 400)
        found = second.machine.run("ls -a ~ /tmp /run/deskhand /dev/shm; pgrep -a sleep").stdout
        assert "secret" not in found
        assert "shut" not in found
        assert "sleep" not in found
        assert ".profile" in found
        assert (tmp_path / "kept").exists(), "a mount is its owner's"
        with xclient(second) as witness:
            assert witness.ask("pressed") == NOTHING
        assert subprocess.run(["xdpyinfo"], env=stranger, capture_output=True, check=False).returncode != 0
        with pytest.raises(deskhand.BackendError, match="closed"):
            first.perform(Type("x"))
        name = second.name
    assert name not in containers(engine)


def test_one_that_cannot_is_removed(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    engine.api.remove_container(desktop.name, force=True)
    with pytest.raises(deskhand.DesktopLost, match="was removed"):
        desktop.reset()
    assert desktop.display is not None
    until(lambda: not os.path.lexists(f"/tmp/.X11-unix/X{str(desktop.display)[1:]}"), 10, "the link's removal")
