"""C6: what a container may not do, judged by a checker that knows nothing of deskhand, and that is shown to say no."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from containers.helpers import own_name
from containers.outside import MEMORY, PROCESSES, ROWS, examine
from deskhand import Limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import deskhand
    from deskhand.launchers.docker.engine import Engine

# What is right, in Docker's own words; each of the wrong ones differs in what one row is about.
RIGHT: dict[str, Any] = {
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "read_only": True,
    "pids_limit": PROCESSES,
    "mem_limit": MEMORY,
    "memswap_limit": MEMORY,
    "ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
    "network_mode": "none",
    "init": True,
    "auto_remove": True,
}
WRONG: dict[str, dict[str, Any]] = {
    "nobody is root": {"user": "0:0"},
    "no capability": {"cap_add": ["NET_RAW"]},
    "no new privileges": {"security_opt": []},
    "system calls are filtered": {"security_opt": ["no-new-privileges", "seccomp=unconfined"]},
    "no setuid file": {"binds": ["{folder}/setuid:/opt:ro"]},
    "its root is read-only": {"read_only": False},
    "no engine's socket": {"binds": ["/run/docker.sock:/opt/harmless:ro"]},
    "no core dumps": {"ulimits": []},
    "a fork bomb stays within": {"pids_limit": 4 * PROCESSES},
    "a memory bomb ends inside": {"mem_limit": 4 * MEMORY, "memswap_limit": 4 * MEMORY},
}


def test_a_desktop_is_confined(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained(limits=Limits(memory=MEMORY, processes=PROCESSES))
    assert examine(engine.api, str(desktop.name)) == {row: [] for row in ROWS}
    # Neither bomb has harmed it.
    assert desktop.perform().settled


@pytest.fixture(scope="module")
def setuid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose subdirectory has a file with setuid."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "setuid").mkdir()
    shutil.copy("/bin/true", folder / "setuid" / "true")
    (folder / "setuid" / "true").chmod(0o4755)
    return folder


@pytest.mark.parametrize("row", [None, *(pytest.param(row, marks=pytest.mark.soak) for row in WRONG)])
def test_the_checker_sees_what_is_wrong(row: str | None, engine: Engine, image: str, setuid: Path) -> None:
    """A container that is right passes every row; one that is but for one thing fails that row."""
    options = {**RIGHT, **(WRONG[row] if row else {})}
    options["binds"] = [bind.format(folder=setuid) for bind in options.get("binds", [])]
    user = options.pop("user", f"{os.getuid() or 1000}:{os.getgid() or 1000}")
    api = engine.api
    name = own_name(f"outside-{list(WRONG).index(row) if row else 'right'}")
    host = api.create_host_config(**options)
    made = api.create_container(image, ["1000"], entrypoint="sleep", name=name, user=user, host_config=host)["Id"]
    try:
        api.start(made)
        found = examine(api, made, [row] if row else ROWS)
    finally:
        api.remove_container(made, force=True)
    assert [name for name, wrong in found.items() if wrong] == ([row] if row else []), found


def test_every_row_has_a_wrong_one() -> None:
    assert set(WRONG) == set(ROWS)
