"""What the kernel tells of a control group, in both of its forms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from deskhand.launchers.docker.cgroup import file_of, oom_kills

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        "low 0\nhigh 7\nmax 99\noom 5\noom_kill 2\noom_group_kill 1\n",
    ],
    ids=["cgroup", "cgroup2"],
)
def test_kills_are_counted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "events"
    file.write_text(text)
    assert oom_kills(file) == 2


def test_who_does_not_tell_has_killed_nobody(tmp_path: Path) -> None:
    assert oom_kills(tmp_path / "none") == 0
    # A kernel before 4.13.
    file = tmp_path / "old"
    file.write_text("oom_kill_disable 0\nunder_oom 0\n")
    assert oom_kills(file) == 0


def test_a_process_that_has_ended_is_in_no_group() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert file_of("", child, "memory", "memory.oom_control", "memory.events") is None
    assert file_of("", os.getpid(), "memory", "no.such.file", "no.such.file") is None


def test_a_group_of_another_name_is_not_the_containers() -> None:
    told = ("memory", "cgroup.procs", "cgroup.procs")
    if file_of("", os.getpid(), *told) is None:
        pytest.fail("this machine tells nothing of control groups: mount /sys/fs/cgroup")
    assert file_of("0123456789abcdef", os.getpid(), *told) is None
