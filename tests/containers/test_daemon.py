"""F29 with an engine that really ends and comes back: with and without its containers, and in the middle of a launch.

Part of the evidence: it has an engine of its own.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.daemon import Daemon, own_daemon
from containers.helpers import left
from deskhand import Pool, Type
from deskhand.launchers.docker import host as launching
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.engine import connect_engine
from faults.helpers import until, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A container is stopped in order before its engine ends, which may take 10 s; then the loss is told at once.
LOST_LIMIT, REMOVED_LIMIT, AGAIN_LIMIT = 2.0, 40.0, 60.0


@pytest.fixture(scope="module")
def daemon(image: str) -> Iterator[Daemon]:
    engine = connect_engine()
    with own_daemon(engine) as daemon:
        daemon.start()
        daemon.load(engine, image)
        if image != DEFAULT_IMAGE:
            pytest.fail("this needs the image under its own name: unset DESKHAND_TEST_IMAGE")
        yield daemon
    engine.close()


@pytest.fixture
def own(daemon: Daemon, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """It, as the engine of this test's desktops, which are all gone in the end."""
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    monkeypatch.setattr(launching, "_UNANSWERED_LIMIT", 1.0)
    # For so long a guard looks for what the engine may yet make: what it never heard of, or forgot, it will not.
    monkeypatch.setattr(launching, "REMOVAL_LIMIT", 15.0)
    yield daemon
    if daemon.process is None:
        daemon.start()
    engine = connect_engine()
    until(lambda: left(engine, runtime) == [], REMOVED_LIMIT, "nothing to be left")
    assert engine.api.containers(all=True) == []
    engine.close()


def test_a_desktop_outlives_an_engine_that_keeps_its_containers(own: Daemon) -> None:
    """`live-restore`: while it is away the desktop is driven, and afterwards everything is as before."""
    own.stop()
    own.start("--live-restore")
    try:
        with deskhand.launch("docker") as desktop:
            desktop.start("xterm")
            own.stop()
            assert desktop.perform(Type("echo typed meanwhile >/tmp/typed\n")).settled
            with pytest.raises((deskhand.ShellError, deskhand.BackendError)):
                desktop.machine.run("true")
            own.start()
            until(lambda: desktop.machine.run("cat /tmp/typed").stdout == "typed meanwhile\n", 10, "what was typed")
            # Killed, it says goodbye to nobody.
            own.stop(signal.SIGKILL)
            assert desktop.perform(Type("echo and again >/tmp/typed\n")).settled
            own.start()
            until(lambda: desktop.machine.run("cat /tmp/typed").stdout == "and again\n", 10, "what was typed")
            assert desktop.health() == deskhand.Health()
    finally:
        own.stop()
        own.start("--live-restore=false")


def test_a_desktop_that_ends_with_its_engine_is_told(own: Daemon) -> None:
    desktop = deskhand.launch("docker")
    own.stop()
    with within(LOST_LIMIT, "telling"), pytest.raises(deskhand.DesktopLost) as lost:
        desktop.perform()
    assert lost.value.cause == "daemon"
    with pytest.raises(deskhand.LaunchFailed, match="systemctl start docker"):
        deskhand.launch("docker")
    own.start()
    # It is gone for good: nothing starts it again by itself.
    desktop.close()
    with deskhand.launch("docker") as again:
        assert again.perform().settled


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("delay", [0.02, 0.1, 0.2, 0.3, 0.4, 0.6])
def test_an_engine_that_restarts_in_the_middle_of_a_launch(own: Daemon, number: signal.Signals, delay: float) -> None:
    """Whatever it was doing: there is one desktop or none, and never a container that nobody knows of."""
    made: list[deskhand.Desktop] = []

    def launch() -> None:
        with contextlib.suppress(deskhand.LaunchFailed):
            made.append(deskhand.launch("docker", timeout=60))

    launching = threading.Thread(target=launch)
    launching.start()
    # It may be restarted at any moment of a launch; this is about time, and needs no exact one.
    time.sleep(delay)
    own.stop(number)
    own.start()
    launching.join(120)
    assert not launching.is_alive()
    engine = connect_engine()
    running = [entry["Names"][0] for entry in engine.api.containers()]
    engine.close()
    for desktop in made:
        if running:
            assert running == [f"/{desktop.name}"]
            assert desktop.perform().settled
        desktop.close()
    assert made or running == []


def test_a_pool_goes_on(own: Daemon) -> None:
    with Pool("docker", size=2, warm=1, timeout=60, screen=(320, 240)) as pool:
        with pool.acquire(timeout=60) as desktop:
            own.stop()
            with pytest.raises(deskhand.DesktopLost):
                desktop.perform()
            own.start()
        with within(AGAIN_LIMIT, "another desktop"), pool.acquire(timeout=600) as desktop:
            assert desktop.perform().settled
