"""Waiting for a child process: in time, by force, and again after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from deskhand.machine import children


def test_a_child_is_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    assert children.has_ended(process, 60)
    assert process.returncode == 3
    assert children.has_ended(process)


def test_a_child_that_does_not_end_is_killed() -> None:
    process = subprocess.Popen(["sleep", "600"])
    assert not children.has_ended(process)
    assert not children.has_ended(process, 0.01)
    children.end(process, 0.01)
    assert process.returncode == -signal.SIGKILL


def test_an_interrupted_wait_of_popen_can_be_repeated() -> None:
    """`Popen.wait` that is interrupted at a bad moment keeps its lock, and waits for it for ever when it is called again."""
    process = subprocess.Popen(["sleep", "600"])
    process._waitpid_lock.acquire()  # type: ignore[attr-defined] # what the interruption leaves behind
    children.end(process, 0)
    assert process.returncode == -signal.SIGKILL


def test_a_status_that_an_interrupted_wait_has_read_is_lost() -> None:
    process = subprocess.Popen(["true"])
    os.waitpid(process.pid, 0)
    assert children.has_ended(process)
    assert process.returncode == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)
