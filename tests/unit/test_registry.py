"""The list of desktops that run."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from deskhand import ActionError, BackendError
from deskhand.launchers import registry
from deskhand.machine import runtime_directory
from deskhand.machine.guard.removal import remove_tree
from deskhand.machine.processes import Guard
from faults.helpers import until


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Entry:
    """One that is alive, in a list of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return registry.Entry("mine", ":7", "cookie", str(tmp_path / "d-first"), os.getpid(), "", 1.0)


@pytest.fixture
def runtime(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of those of desktops."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    return runtime_directory.runtime_directory()


def test_a_name_is_given_once(entry: registry.Entry) -> None:
    registry.add(entry)
    with pytest.raises(ActionError, match="already"):
        registry.add(replace(entry, display=":8"))
    assert registry.find("mine") == entry
    assert registry.free_name() == "desktop"


def test_who_leaves_late_does_not_take_the_next_one_off_the_list(entry: registry.Entry) -> None:
    registry.add(entry)
    registry.remove(entry)
    assert registry.entries() == []
    successor = replace(entry, directory=entry.directory + "-next")
    registry.add(successor)
    registry.remove(entry)
    assert registry.find("mine") == successor
    registry.remove(replace(successor, socket="since then it was left running"))
    assert registry.find("mine") is None


def test_what_cannot_be_read_is_removed(entry: registry.Entry, tmp_path: Path) -> None:
    registry.add(entry)
    (tmp_path / "deskhand" / "broken.json").write_text("{")
    assert registry.entries() == [entry]
    assert not (tmp_path / "deskhand" / "broken.json").exists()


def test_a_numbered_directory_is_the_first_that_is_free(runtime: Path) -> None:
    one, two = (runtime_directory.private_directory(numbered=True) for _ in range(2))
    assert [one, two] == [runtime / "d-01", runtime / "d-02"]
    shutil.rmtree(one)
    with runtime_directory.hold(two):
        assert runtime_directory.private_directory(numbered=True) == one
        assert two.is_dir()
    # Its guard is dead.
    assert runtime_directory.private_directory(numbered=True) == two
    assert not list(two.iterdir())


def test_a_number_that_was_given_anew_meanwhile_is_not_taken_away(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = runtime_directory.private_directory(numbered=True)
    runtime_directory.hold(old).close()
    lock, holders = fcntl.flock, []

    def late(file: IO[bytes], how: int) -> None:
        # Another driver removes it between our opening its lock and our locking it, and begins a desktop of that name.
        monkeypatch.setattr(fcntl, "flock", lock)
        shutil.rmtree(old)
        assert runtime_directory.private_directory(numbered=True) == old
        holders.append(runtime_directory.hold(old))
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert runtime_directory.private_directory(numbered=True) == runtime / "d-02"
    assert (old / ".guard").exists()
    holders[0].close()


def test_a_guard_that_has_ended_takes_nothing_from_the_next_one_of_that_number(runtime: Path) -> None:
    first = Guard.start(runtime_directory.private_directory(numbered=True))
    first._to.close()
    until(lambda: not first.directory.exists(), 10, "the end of the first guard's directory")
    second = Guard.start(runtime_directory.private_directory(numbered=True))
    assert second.directory == first.directory == runtime / "d-01"
    first.close()
    assert second.directory.is_dir()
    # What is left of one that was killed is removed all the same.
    os.kill(second.pid, signal.SIGKILL)
    second.close()
    assert not second.directory.exists()


def test_a_directory_whose_sockets_would_have_too_long_paths_is_refused(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest one serves, and one byte more is told before anything starts."""
    most = 107 - len("/deskhand/d-xxxxxxxx/guard.sock")
    base = short / ("r" * (most - len(f"{short}/")))
    for path in (base, base.with_name(base.name + "r")):
        path.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    directory = runtime_directory.private_directory()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / "guard.sock"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{base}r")
    with pytest.raises(BackendError, match=f"107 bytes; set XDG_RUNTIME_DIR to .* at most {most}$"):
        runtime_directory.private_directory()
    assert list((short / f"{base.name}r" / "deskhand").glob("d-*")) == []


def test_one_that_has_ended_is_not_alive_before_its_parent_looks(entry: registry.Entry) -> None:
    process = subprocess.Popen(["true"])
    zombie = replace(entry, pid=process.pid)
    # Not `wait`, which would make it go.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    assert not zombie.alive
    process.wait()
    assert not zombie.alive
    assert entry.alive


def test_a_directory_is_removed_whatever_is_in_it(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (outside / "kept").touch()
    (top / "x11" / "shut" / "in").mkdir(parents=True)
    (top / "x11" / "shut" / "in" / "file").touch()
    (top / "x11" / "shut").chmod(0)
    (top / "x11" / "out").symlink_to(outside)
    (top / "out").symlink_to(outside)
    os.mkfifo(top / "x11" / "fifo")
    # Deeper than Python calls itself, and than a path may be long.
    here = os.open(top / "x11", os.O_PATH)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_PATH, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(str(top))
    assert not top.exists()
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o700
    remove_tree(str(top))


def test_what_is_left_too_deep_is_no_hindrance(runtime: Path) -> None:
    """A guard that was killed leaves its directory to whoever makes one next."""
    left = runtime_directory.private_directory()
    with runtime_directory.hold(left):
        here = os.open(left, os.O_PATH)
        for _ in range(2000):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_PATH, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
    runtime_directory.private_directory().rmdir()
    assert list(runtime.glob("d-*")) == []


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
def test_a_runtime_directory_that_others_can_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = runtime_directory.runtime_directory()
    path.chmod(mode)
    with pytest.raises(BackendError, match="must belong to you with mode 0700; remove it or set XDG_RUNTIME_DIR"):
        runtime_directory.runtime_directory()
    path.chmod(0o700)
    assert runtime_directory.runtime_directory() == path


def test_a_runtime_directory_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "deskhand").symlink_to("elsewhere")
    with pytest.raises(BackendError, match="must belong to you"):
        runtime_directory.runtime_directory()
