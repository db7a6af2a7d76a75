"""What Docker says of a desktop's health, by the image's own check; only the pause between two checks is shortened."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.launchers.docker.engine import Engine

SECOND = 10**9
LIMIT = 30


@contextlib.contextmanager
def checked_often(engine: Engine, image: str) -> Iterator[str]:
    """A container that somebody started by hand."""
    check = engine.api.inspect_image(image)["Config"]["Healthcheck"]
    made = engine.api.create_container(image, healthcheck={**check, "Interval": SECOND // 4})
    try:
        engine.api.start(made["Id"])
        yield made["Id"]
    finally:
        engine.api.remove_container(made["Id"], force=True)


def health(engine: Engine, container: str) -> dict[str, Any]:
    found: dict[str, Any] = engine.api.inspect_container(container)["State"]["Health"]
    return found


def test_a_stopped_server_is_unhealthy(engine: Engine, image: str) -> None:
    def run(container: str, command: str) -> None:
        made = engine.api.exec_create(container, ["sh", "-c", command])
        engine.api.exec_start(made["Id"])

    with checked_often(engine, image) as container:
        until(lambda: health(engine, container)["Status"] == "healthy", LIMIT, "health")
        run(container, "pkill -STOP Xvfb")
        until(lambda: health(engine, container)["Status"] == "unhealthy", LIMIT, "its loss")
        assert "display 0 does not answer" in health(engine, container)["Log"][-1]["Output"]
        run(container, "pkill -CONT Xvfb")
        until(lambda: health(engine, container)["Status"] == "healthy", LIMIT, "its return")
        assert engine.api.inspect_container(container)["State"]["Running"]


def test_it_is_told_within_a_minute(engine: Engine, image: str) -> None:
    check = engine.api.inspect_image(image)["Config"]["Healthcheck"]
    assert check["Retries"] * (check["Interval"] + check["Timeout"]) < 60 * SECOND


def test_what_has_not_started_is_told(desktop: deskhand.Desktop) -> None:
    """Also by the image itself: `started` wants a window manager."""
    probe = "/usr/local/lib/deskhand/probe"
    assert desktop.health() == deskhand.Health()
    # It gives the server a second, which a busy machine may exceed.
    until(
        lambda: desktop.machine.run(f"{probe} live && {probe} started").exit_code == 0, LIMIT, "the image's own check"
    )
    assert desktop.machine.run(f"{probe} ready").exit_code == 2


def test_without_a_window_manager(contained: Callable[..., deskhand.Desktop]) -> None:
    desktop = contained(window_manager=None)
    assert desktop.health() == deskhand.Health(), "none belongs to it"
    found = desktop.machine.run("/usr/local/lib/deskhand/probe started")
    assert (found.exit_code, found.stdout) == (1, "display 0 has no window manager\n")
    desktop.machine.run("pkill -STOP Xvfb")
    try:
        assert desktop.health(timeout=0.2).live == "no answer in 0.2 s"
    finally:
        desktop.machine.run("pkill -CONT Xvfb")
    until(lambda: desktop.health().ok, LIMIT, "the answer")
    # The container ends with its X server, perhaps before it has told how the command ended.
    with contextlib.suppress(deskhand.DesktopLost):
        desktop.machine.run("pkill -KILL Xvfb")
    until(lambda: "the X server ended" in desktop.health().live, LIMIT, "the loss")
    with pytest.raises(deskhand.DesktopLost):
        desktop.perform()
