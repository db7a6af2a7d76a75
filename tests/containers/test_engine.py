"""F29: the engine is away, in trouble, or does what nobody hears of. And F22: it has no room left."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import left
from containers.relay import Relay, Trouble, relaying
from deskhand import Type
from deskhand.launchers.docker import container as inside
from deskhand.launchers.docker import engine as engines
from deskhand.launchers.docker import host as launching
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.images import build_image
from faults.helpers import until, within
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

CREATE, START = r"^POST .*/containers/create", r"^POST .*/containers/[^/]+/start"
TROUBLES = list(product([500, "drop", "lose"], [CREATE, START])) if EVIDENCE else [("lose", CREATE), ("lose", START)]
# What a launch that failed still does, before its guard goes on alone.
FAILED_LIMIT, LOST_LIMIT, REMOVED_LIMIT = 10.0, 2.0, 10.0


@pytest.fixture
def relay(engine: Engine, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay that every engine of deskhand's goes through, `engine` excepted; and nobody waits long for one that is away."""
    del engine, runtime
    monkeypatch.setattr(launching, "_UNANSWERED_LIMIT", 1.0)
    # For so long a guard looks for what the engine may yet make; where it never heard of it, that is for nothing.
    monkeypatch.setattr(launching, "REMOVAL_LIMIT", 3.0)
    monkeypatch.setattr(engines, "_FIRST_PAUSE", 0.002)
    monkeypatch.setattr(inside, "_STATS_LIMIT", 0.5)
    with relaying(tmp_path) as relay:
        monkeypatch.setenv("DOCKER_HOST", relay.host)
        yield relay


def test_what_is_only_asked_is_asked_again(relay: Relay, image: str) -> None:
    relay.trouble(500, r"^GET .*/info", 3)
    relay.trouble(503, r"^GET .*/containers/json")
    relay.trouble("drop", r"^GET /_ping", 2)
    relay.trouble("lose", r"^GET .*/networks")
    with deskhand.launch("docker", image=image) as desktop:
        relay.trouble(500, r"^GET .*/logs", 2)
        relay.trouble("lose", r"^GET .*/exec/", 2)
        assert desktop.machine.logs() == ""
        desktop.machine.write_file("/tmp/well", b"well")
    assert all(trouble.times == 0 for trouble in relay.troubles)
    assert (relay.count(CREATE), relay.count(START)) == (1, 1)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_it_is_told_to_do_it_is_told_once(
    relay: Relay, image: str, engine: Engine, runtime: Path, trouble: tuple[str | int, str]
) -> None:
    relay.trouble(*trouble)
    with within(FAILED_LIMIT, "failing"), pytest.raises(deskhand.LaunchFailed, match=r"in trouble|does not answer"):
        deskhand.launch("docker", image=image)
    assert relay.count(trouble[1]) == 1
    # What it may have made all the same is removed, by us or by the guard, which goes on looking for it.
    until(lambda: left(engine, runtime) == [], REMOVED_LIMIT, "nothing to be left")
    with deskhand.launch("docker", image=image) as desktop:
        assert desktop.perform().settled


@pytest.mark.parametrize("request_", [CREATE, START] if EVIDENCE else [CREATE])
def test_an_engine_that_goes_in_the_middle_of_a_launch(
    relay: Relay, image: str, engine: Engine, runtime: Path, request_: str
) -> None:
    relay.trouble("vanish", request_)
    with within(FAILED_LIMIT, "failing"), pytest.raises(deskhand.LaunchFailed, match="does not answer"):
        deskhand.launch("docker", image=image)
    with pytest.raises(deskhand.LaunchFailed, match="systemctl start docker"):
        deskhand.launch("docker", image=image)
    relay.appear()
    until(lambda: left(engine, runtime) == [], REMOVED_LIMIT, "nothing to be left")
    with deskhand.launch("docker", image=image) as desktop:
        assert desktop.perform().settled


def test_an_engine_that_goes_while_a_desktop_lives(relay: Relay, image: str, engine: Engine, runtime: Path) -> None:
    desktop = deskhand.launch("docker", image=image)
    desktop.start("xterm")
    relay.vanish()
    # The desktop is reached through its socket, and knows nothing of it.
    assert desktop.perform(Type("true\n")).settled
    for ask in (desktop.machine.usage, desktop.machine.logs, lambda: desktop.machine.read_file("/etc/hostname")):
        with within(FAILED_LIMIT, "telling"), pytest.raises((deskhand.BackendError, deskhand.ShellError)):
            ask()
    with pytest.raises(deskhand.ShellError):
        desktop.machine.run("true")
    with pytest.raises(deskhand.ShellError):
        desktop.start("xterm")
    assert desktop.perform().settled
    engine.api.kill(desktop.name)
    with within(LOST_LIMIT, "telling"), pytest.raises(deskhand.DesktopLost) as lost:
        desktop.perform()
    assert lost.value.cause == "daemon"
    with within(FAILED_LIMIT, "closing"), pytest.raises(deskhand.BackendError, match="tried again"):
        desktop.close()
    relay.appear()
    until(lambda: left(engine, runtime) == [], REMOVED_LIMIT, "nothing to be left")


def test_an_engine_that_is_always_in_trouble(relay: Relay, image: str, engine: Engine, runtime: Path) -> None:
    relay.trouble(500, r"^GET .*/info", 1000)
    with within(FAILED_LIMIT, "failing"), pytest.raises(deskhand.LaunchFailed, match="in trouble"):
        deskhand.launch("docker", image=image)
    assert relay.count(CREATE) == 0
    assert left(engine, runtime) == []
    # Who is told only what is known soon does not wait for it.
    relay.troubles.clear()
    asked = connect_engine()
    relay.trouble(500, r"^GET /v.*/_ping", 1000)
    with asked.impatient(), within(1.0, "one question"), pytest.raises(asked.errors.APIError):
        asked.api.ping()
    assert relay.count(r"^GET /v.*/_ping") == 1
    asked.close()


def test_a_full_disk_of_the_engines(relay: Relay, image: str, engine: Engine, runtime: Path) -> None:
    for request in (CREATE, START):
        relay.trouble(500, request, message="mkdir /var/lib/docker/x: no space left on device")
        with pytest.raises(deskhand.LaunchFailed, match="docker system prune"):
            deskhand.launch("docker", image=image)
        assert left(engine, runtime) == []


def test_a_full_disk_while_an_image_is_built(relay: Relay, image: str, engine: Engine) -> None:
    before = engine.api.inspect_image(image)["Id"]
    steps = '{"stream": "Step 1/5 : FROM debian\\n"}\r\n{"error": "write /usr/bin/x: no space left on device"}\r\n'
    relay.troubles.append(Trouble(200, r"^POST .*/build", body=steps))
    with pytest.raises(deskhand.LaunchFailed, match="docker system prune") as failed:
        build_image("minimal")
    assert "Step 1/5" in failed.value.log_tail
    assert engine.api.inspect_image(image)["Id"] == before


def test_an_engine_that_could_not_look_in_time_is_asked_again(relay: Relay, image: str, engine: Engine) -> None:
    """It answers with nothing then, as it was seen to while a fork bomb went on."""
    empty = json.dumps({"memory_stats": {}, "pids_stats": {}, "cpu_stats": {"cpu_usage": {"total_usage": 0}}})
    with deskhand.launch("docker", image=image) as desktop:
        relay.troubles.append(Trouble(200, r"^GET .*/stats", times=2, body=empty))
        assert desktop.machine.usage().memory > 0
        engine.api.kill(desktop.name)
        with pytest.raises(deskhand.DesktopLost, match="it was killed"):
            desktop.machine.usage()


def test_a_killed_driver_leaves_nothing_though_the_engine_was_away(
    relay: Relay, image: str, engine: Engine, runtime: Path
) -> None:
    """Its guard finds none that it could speak to, at first."""
    code = "import deskhand, signal\nkept = deskhand.launch('docker')\nprint(1, flush=True)\nsignal.pause()\n"
    del image
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"1\n"
        relay.trouble(400, "^GET /_ping", 2)
        driver.kill()
    until(lambda: relay.troubles[0].times == 0, REMOVED_LIMIT, "its guard's attempts")
    until(lambda: left(engine, runtime) == [], REMOVED_LIMIT, "nothing to be left")
