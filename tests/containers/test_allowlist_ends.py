"""A network of listed hosts whose launch fails, is interrupted, or whose driver dies: nothing of it stays."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import guards, networks, there
from deskhand.launchers.docker import confinement, proxy
from deskhand.launchers.docker.leftovers import own_labels, reap
from faults.helpers import driver, until
from faults.scale import EVIDENCE
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.launchers.docker.engine import Engine

DESKHAND = Path(sys.executable).with_name("deskhand")
REMOVED_LIMIT, ENGINE_LIMIT = 30.0, 240.0


LAUNCHING = """
import deskhand
say(ready=1)
desktop = deskhand.launch("docker", network=["listed.test"])
say(directory=str(desktop.xauthority.parent.parent))
wait_forever()
"""


def test_a_killed_driver_leaves_nothing(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    for _ in range(20 if EVIDENCE else 1):
        with driver(LAUNCHING, driver_environment) as lines:
            lines.read()
            directory = lines.read()["directory"]
            assert len(there(engine, directory)) == 3
            lines.process.kill()
            until(lambda: there(engine, directory) == set(), REMOVED_LIMIT, "the removal")  # noqa: B023


@pytest.mark.soak
def test_who_is_killed_with_his_guard_is_cleared_up_after(
    engine: Engine, driver_environment: Mapping[str, str]
) -> None:
    with driver(LAUNCHING, driver_environment) as lines:
        lines.read()
        directory = lines.read()["directory"]
        names = there(engine, directory)
        for pid in (lines.process.pid, *guards(lines.process.pid)):
            os.kill(pid, signal.SIGKILL)
        assert len(names) == 3

        def cleared_up() -> bool:
            # Others' launches, of other processes of this run, clear up too.
            reap(engine)
            return there(engine, directory) == set()

        until(cleared_up, REMOVED_LIMIT, "the reaper")


def test_a_network_alone_is_cleared_up_after_too(engine: Engine, tmp_path: Path) -> None:
    """Who was killed before there was a container."""
    proxy._make_network(engine, tmp_path, own_labels(tmp_path / "gone"))
    # A launch of another process of this run may clear it up first.
    reap(engine)
    until(lambda: networks(engine, str(tmp_path / "gone")) == [], REMOVED_LIMIT, "the reaper")


CALLS = ["create_network", "create_container", "connect_container_to_network", "start", "create_container 2", "start 2"]


@pytest.mark.parametrize(
    ("call", "when"),
    soaked([(call, when) for call in CALLS for when in ("before", "after")], but=[("start 2", "after")]),
)
def test_an_interrupted_launch_leaves_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, call: str, when: str
) -> None:
    """Ctrl-C at each step of it: when the engine has not been asked yet, and when it has done what we do not know of."""
    before = there(engine)
    name, _, count = call.partition(" ")
    remaining = [int(count or 1)]
    real = getattr(type(engine.api), name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        remaining[0] -= 1
        if remaining[0] == 0 and when == "before":
            raise KeyboardInterrupt
        result = real(*arguments, **options)
        if remaining[0] == 0:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(type(engine.api), name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        deskhand.launch("docker", network=["listed.test"])
    assert remaining == [0]
    until(lambda: there(engine) <= before, REMOVED_LIMIT, "nothing to be left")


@pytest.mark.parametrize("call", CALLS)
def test_a_launch_that_fails_leaves_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    before = there(engine)
    name, _, count = call.partition(" ")
    remaining = [int(count or 1)]
    real = getattr(type(engine.api), name)

    def failing(*arguments: Any, **options: Any) -> Any:
        remaining[0] -= 1
        if remaining[0] == 0:
            raise engine.errors.APIError("the engine has had enough")
        return real(*arguments, **options)

    monkeypatch.setattr(type(engine.api), name, failing)
    with pytest.raises(deskhand.LaunchFailed, match="had enough"):
        deskhand.launch("docker", network=["listed.test"])
    assert there(engine) == before


@pytest.mark.soak
def test_a_signal_at_any_moment_leaves_nothing(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    before = there(engine)
    for delay in (0.1, 0.3, 0.5, 0.7, 0.9, 1.1) if EVIDENCE else (0.4, 0.8):
        with driver(LAUNCHING, driver_environment) as lines:
            lines.read()
            # Ctrl-C may come at any moment of a launch; this is about time, and needs no exact one.
            time.sleep(delay)
            lines.process.send_signal(signal.SIGINT)
            lines.process.wait(ENGINE_LIMIT)
            until(lambda: there(engine) <= before, REMOVED_LIMIT, "nothing to be left")


# --- what goes wrong ---


def test_no_network_left_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch, image: str) -> None:
    before = there(engine)
    monkeypatch.setattr(proxy, "_POOL", ipaddress.IPv4Network("198.18.0.0/29"))
    with deskhand.launch("docker", image=image, network=["listed.test"]):
        taken = there(engine)
        with pytest.raises(deskhand.LaunchFailed, match="docker network prune"):
            deskhand.launch("docker", network=["listed.test"])
        assert there(engine) == taken
    assert there(engine) == before


def test_a_missing_proxy_names_the_command_that_builds_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = there(engine)
    for module in (proxy, confinement):
        monkeypatch.setattr(module, "PROXY_IMAGE", "deskhand/nothing-of-that-name")
    with pytest.raises(deskhand.LaunchFailed, match="does not exist: build it with `deskhand image build`"):
        deskhand.launch("docker", network=["listed.test"])
    assert there(engine) == before


def test_a_proxy_that_does_not_start_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = there(engine)
    monkeypatch.setattr(proxy, "configuration", lambda *_: "no_such_option on\nhttp_port nowhere:at:all\n")
    with pytest.raises(deskhand.LaunchFailed, match="FATAL"):
        deskhand.launch("docker", network=["listed.test"])
    assert there(engine) == before


def test_what_belongs_to_a_program_goes_by_name_too(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    before = there(engine)
    with driver(LAUNCHING.replace("network=", "name='walled-of-a-test', network="), driver_environment) as lines:
        lines.read()
        lines.read()
        down = subprocess.run(
            [DESKHAND, "down", "walled-of-a-test"], env=driver_environment, capture_output=True, text=True, check=False
        )
        assert down.returncode == 0, down.stderr
        assert there(engine) == before
