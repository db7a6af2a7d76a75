"""Wrong arguments of what only containers have: the options of a launch, and the calls about files, logs and usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from containers.helpers import left
from deskhand import Desktop
from deskhand.launchers.docker.launch import launch_docker
from faults.surface import calls_of, function
from faults.wrong import Bench, examine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

OURS = [call for call in calls_of(Desktop) if call.name.startswith("machine.")]


@pytest.fixture
def bench(contained: Callable[..., Desktop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(lambda: contained(size=(320, 240)))


def test_the_calls_about_its_files(bench: Bench) -> None:
    assert {"machine.copy_in", "machine.logs", "machine.usage", "machine.write_file"} <= {call.name for call in OURS}
    assert not (wrong := examine(bench, OURS, lambda: bench.desktop)), "\n".join(wrong)


def test_the_options_of_a_launch(bench: Bench, engine: Engine, runtime: Path) -> None:
    """Each is refused before the engine is asked for anything."""
    there = left(engine, runtime)
    assert not (wrong := examine(bench, [function(launch_docker)], only="refused")), "\n".join(wrong)
    assert left(engine, runtime) == there
