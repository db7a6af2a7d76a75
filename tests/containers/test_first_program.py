"""The command of a container that is started by hand, its first program: its window is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faults.helpers import until

if TYPE_CHECKING:
    from deskhand.launchers.docker.engine import Engine

# So many that some of their window managers are slow to start.
CONTAINERS = 8
LIMIT = 60.0


def windows(engine: Engine, container: str) -> list[str]:
    """Those that its window manager knows; asking does not disturb it."""
    command = ["xprop", "-display", ":0", "-root", "_NET_CLIENT_LIST"]
    made = engine.api.exec_create(container, command, environment={"XAUTHORITY": "/tmp/.X11-unix/xauthority"})
    said = engine.api.exec_start(made["Id"]).decode()
    return said.partition("window id # ")[2].split()


def test_its_window_is_managed(engine: Engine, image: str) -> None:
    """Openbox missed one that asked to be shown while Openbox started, until something else happened."""
    made: list[str] = []
    try:
        for _ in range(CONTAINERS):
            # Words that a shell would take apart.
            command = ["xterm", "-T", "a 'b' $c", "-e", "sleep 1000"]
            made.append(engine.api.create_container(image, command, network_disabled=True)["Id"])
        for container in made:
            engine.api.start(container)
        until(lambda: all(len(windows(engine, container)) == 1 for container in made), LIMIT, "all of their windows")
        run = engine.api.exec_create(made[0], ["pgrep", "-a", "xterm"])
        assert engine.api.exec_start(run["Id"]).decode().endswith("xterm -T a 'b' $c -e sleep 1000\n")
    finally:
        for container in made:
            engine.api.remove_container(container, force=True)
