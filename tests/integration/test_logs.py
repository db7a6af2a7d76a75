"""What programs write: each start has a log of its own, of a bounded size, whatever the program does."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import LaunchFailed, ShellError
from deskhand.machine import runtime_directory
from deskhand.machine.guard import log as guarding
from deskhand.machine.processes import Guard, tail
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST = 256 << 10
PATIENT = 30


@pytest.fixture
def guard() -> Iterator[Guard]:
    """A guard process without a desktop."""
    found = Guard.start(runtime_directory.private_directory())
    yield found
    found.close()


def spawn(guard: Guard, script: str, *, name: str = "sh") -> int:
    return guard.spawn([name, "-c", script], env=dict(os.environ))[0]


def ended(guard: Guard, pid: int) -> int:
    until(lambda: guard.exit_status(pid) is not None, PATIENT, "the end of the program")
    status = guard.exit_status(pid)
    assert status is not None
    return status


def test_a_program_that_goes_on_printing_fills_nothing(desktop: deskhand.Desktop) -> None:
    script = "echo the beginning; seq 2000000; echo the end; exec xterm"
    program = desktop.start(["sh", "-c", script])
    said = program.log.read_bytes()
    assert len(said) <= MOST
    assert said.startswith(b"the beginning\n1\n2\n")
    assert said.endswith(b"\n1999999\n2000000\nthe end\n")
    before, _, after = said.partition(b"\n[... ")
    left_out, _, after = after.partition(b" bytes left out ...]\n")
    assert len(before) >= 32 << 10
    assert len(after) >= 64 << 10
    whole = sum(9 * 10 ** (digits - 1) * (digits + 1) for digits in range(1, 7)) + 1000001 * 8
    assert len(before) + int(left_out) + len(after) == len("the beginning\n") + whole + len("the end\n")


def test_a_failed_start_shows_its_own_output(desktop: deskhand.Desktop) -> None:
    first = desktop.start(["sh", "-c", "echo of the first; exec xterm"])
    with pytest.raises(LaunchFailed) as failed:
        desktop.start(["sh", "-c", "echo of the second; exit 3"])
    assert failed.value.log_tail == "of the second\n"
    with pytest.raises(LaunchFailed) as failed:
        desktop.start(["sh", "-c", "exit 3"])
    assert failed.value.log_tail == ""
    assert first.log.read_text() == "of the first\n"


def test_what_is_told_of_the_end_is_after_what_was_written(guard: Guard) -> None:
    for number in range(30):
        pid = spawn(guard, f"seq 5000; echo said {number}; exit 5")
        assert ended(guard, pid) == 5
        assert guard.log_of("sh", pid).read_text().endswith(f"\n5000\nsaid {number}\n")


def test_the_tail_of_one_that_runs_has_what_it_wrote(guard: Guard, tmp_path: Path) -> None:
    for number in range(10):
        pid = spawn(guard, f"echo said; echo >{tmp_path}/{number}; exec sleep 1000")
        until((tmp_path / str(number)).exists, PATIENT, "the program")
        assert guard.tail("sh", pid) == "said\n"


def test_logs_of_ended_programs_are_bounded_in_number(guard: Guard) -> None:
    """Those of programs that run, or have left something running, stay."""
    kept = spawn(guard, "echo kept; exec sleep 1000")
    left = spawn(guard, "echo left; sleep 1000 & echo gone")
    ended(guard, left)
    pids = []
    # One after the other: the last that have ended are known then.
    for number in range(200):
        pids.append(spawn(guard, f"echo {number}"))
        ended(guard, pids[-1])
    assert guard.tail("sh", kept) == "kept\n"
    assert guard.tail("sh", left) == "left\ngone\n"
    assert {path.name for path in guard.directory.glob("sh-*.log")} == {
        guard.log_of("sh", pid).name for pid in [kept, left, *pids[-32:]]
    }
    assert [guard.tail("sh", pid) for pid in pids[-32:]] == [f"{number}\n" for number in range(168, 200)]


def test_more_programs_than_files_may_be_open() -> None:
    """The guard takes what it may have; programs get what we had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        guard = Guard.start(runtime_directory.private_directory())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        pids = [spawn(guard, "ulimit -n; exec sleep 1000") for _ in range(70)]
        for pid in (pids[0], pids[-1]):
            until(lambda pid=pid: guard.tail("sh", pid), PATIENT, "its first line")
            assert guard.tail("sh", pid) == "64\n"
    finally:
        guard.close()


def test_who_says_a_lot_as_it_ends_is_heard(tmp_path: Path) -> None:
    guard = Guard.start(runtime_directory.private_directory())
    pid = spawn(
        guard, f"trap 'seq 100000; echo >{tmp_path}/done; exit' TERM; echo >{tmp_path}/up; while :; do sleep 0.01; done"
    )
    until((tmp_path / "up").exists, PATIENT, "the program")
    assert guard.exit_status(pid) is None
    guard.close()
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize("script", ["exec >&- 2>&-; sleep 0; exit 4", "exec >/dev/null 2>&1; exit 4"])
def test_who_closes_its_output_goes_on(guard: Guard, script: str) -> None:
    pid = spawn(guard, script)
    assert ended(guard, pid) == 4
    assert guard.tail("sh", pid) == ""
    assert ended(guard, spawn(guard, "exit 6")) == 6


@pytest.mark.parametrize("name", ["n" * 255, "naïve ☕", "-rf", "a\nb", "x\udcff", "..x", "p" * 60 + ".log"])
def test_a_program_of_any_name_has_a_log(guard: Guard, tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)
    pid = guard.spawn([str(program)], env=dict(os.environ))[0]
    assert ended(guard, pid) == 0
    assert guard.log_of(str(program), pid).parent == guard.directory
    assert guard.tail(str(program), pid) == "here\n"


@pytest.mark.parametrize("kind", ["link", "dangling", "directory", "pipe"])
def test_what_is_in_a_log_s_place_is_neither_followed_nor_waited_for(tmp_path: Path, kind: str) -> None:
    place, victim = tmp_path / "log", tmp_path / "victim"
    victim.write_text("somebody's own")
    if kind == "directory":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(victim if kind == "link" else tmp_path / "absent")
    assert tail(place) == ""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    log = guarding.Log(reading, str(place))
    os.write(writing, b"said\n")
    assert log.drain()
    os.close(writing)
    assert not log.drain()
    log.close()
    assert victim.read_text() == "somebody's own"
    assert not (tmp_path / "absent").exists()
    assert tail(place) == ("" if kind == "directory" else "said\n")


def test_a_full_disk_does_not_hold_a_program_up(tmp_path: Path) -> None:
    reading, writing = os.pipe2(os.O_NONBLOCK)
    log = guarding.Log(reading, str(tmp_path / "log"))
    assert log.file is not None
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, log.file)
    os.close(full)
    for _ in range(20):
        os.write(writing, bytes(64 << 10))
        assert log.drain()
    os.close(writing)
    assert not log.drain()
    log.close()


def test_why_a_program_does_not_start(guard: Guard, tmp_path: Path) -> None:
    """Only what is not found is to be installed."""

    def told(*argv: str) -> str:
        with pytest.raises(ShellError) as failed:
            guard.spawn(argv, env=dict(os.environ))
        return str(failed.value)

    script = tmp_path / "script"
    script.write_text("#!/no/interpreter\n")
    assert "check its rights" in told(str(script))
    script.chmod(0o755)
    assert f"{script} is there: what its first line names" in told(str(script))
    script.write_bytes(b"\x7fELF nothing")
    assert "no program that this machine can run" in told(str(script))
    assert "too long together" in told("true", "x" * (4 << 20))
    assert "on PATH" in told("no-such-program")


def test_what_ended_a_program_is_told(desktop: deskhand.Desktop) -> None:
    with pytest.raises(LaunchFailed, match="it was ended by SIGSEGV"):
        desktop.start(["sh", "-c", "kill -SEGV $$"])
    with pytest.raises(LaunchFailed, match=r"it ended with status 139 \(as SIGSEGV ends a program\)"):
        desktop.start(["sh", "-c", "sh -c 'kill -SEGV $$'; exit $?"])
    with pytest.raises(LaunchFailed, match=r"it ended with status 255 \("):
        desktop.start(["sh", "-c", "exit 255"])
