"""What a container may do, judged from this machine and by programs run in it: nothing of deskhand is asked or imported.

Every row is one promise of a container's; see `examine`. The engine must be on this machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The most processes that a container may be allowed, and the most memory that it may be for these checks: a bomb takes more.
PROCESSES, MEMORY = 128, 320 << 20
_GROUPS = Path("/sys/fs/cgroup")
_MARK = b"7011"
_KILLED = 128 + signal.SIGKILL
# Each ends by itself where nothing limits it.
FORKS = f"""
import os
for number in range({PROCESSES} + 100):
    try:
        os.fork() or os.execlp("sleep", "sleep", "{_MARK.decode()}")
    except OSError:
        break
print(number)
"""
TAKES = f"""
import mmap
taken = mmap.mmap(-1, {MEMORY + (128 << 20)})
for at in range(0, len(taken), 4096):
    taken[at] = 1
print("taken")
"""


class Outside:
    """One running container, as this machine sees it."""

    def __init__(self, api: Any, container: str) -> None:
        self._api = api
        state = api.inspect_container(container)
        self._id, self._first = state["Id"], state["State"]["Pid"]

    def run(self, *argv: str) -> tuple[int | None, str]:
        """A program in it, as the container's own user: how it ended and what it said."""
        made = self._api.exec_create(self._id, list(argv))["Id"]
        said = self._api.exec_start(made).decode(errors="replace")
        return self._api.exec_inspect(made)["ExitCode"], said.strip()

    def group(self, *names: str) -> Path | None:
        """The first file of its control groups that has one of these names, of version 1 or 2."""
        for folder, folders, files in os.walk(_GROUPS):
            if self._id in folder:
                for name in names:
                    if name in files:
                        return Path(folder, name)
                folders.clear()
        return None

    def limit(self, *names: str) -> int:
        """A limit of its control groups; a very large number where there is none."""
        file = self.group(*names)
        text = file.read_text().strip() if file is not None else "max"
        return 1 << 62 if text == "max" else int(text)

    def processes(self) -> list[int]:
        """All processes in it."""
        file = self.group("cgroup.procs")
        assert file is not None, f"nothing in {_GROUPS} has the container's id: is the engine on this machine?"
        return [int(line) for line in file.read_text().split()]

    def status(self, *keys: str) -> Iterator[tuple[str, list[str]]]:
        """These lines of every process's `/proc/PID/status`."""
        for pid in self.processes():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
            for key in keys:
                yield f"{found['Name'][0]} {key}", found[key]

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every file that it sees, but what the kernel makes up."""
        root = f"/proc/{self._first}/root"
        for folder, folders, names in os.walk(root):
            if folder == root:
                folders[:] = [name for name in folders if name not in {"proc", "sys"}]
            for name in names:
                path = f"{folder}/{name}"
                yield path.removeprefix(root), os.lstat(path)

    def opened(self) -> Iterator[str]:
        """What of each mount of its root says that it may be written."""
        for line in Path(f"/proc/{self._first}/mountinfo").read_text().splitlines():
            fields = line.split()
            if fields[4] == "/" and "ro" not in fields[5].split(","):
                yield line


def _users(seen: Outside) -> list[str]:
    return [f"{name} {numbers}" for name, numbers in seen.status("Uid", "Gid") if "0" in numbers]


def _capabilities(seen: Outside) -> list[str]:
    kinds = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    return [f"{name} {mask}" for name, (mask,) in seen.status(*kinds) if int(mask, 16)]


def _new_privileges(seen: Outside) -> list[str]:
    return [name for name, value in seen.status("NoNewPrivs") if value != ["1"]]


def _seccomp(seen: Outside) -> list[str]:
    return [name for name, value in seen.status("Seccomp") if value != ["2"]]


def _setuid(seen: Outside) -> list[str]:
    wrong = stat.S_ISUID | stat.S_ISGID
    return [path for path, found in seen.files() if stat.S_ISREG(found.st_mode) and found.st_mode & wrong]


def _root(seen: Outside) -> list[str]:
    code, said = seen.run("touch", "/.probe")
    return [*seen.opened(), *(["/.probe was made"] if code == 0 or "Read-only file system" not in said else [])]


def _engine(seen: Outside) -> list[str]:
    # It may have any name there; it is the same file.
    mine = {
        (found.st_dev, found.st_ino) for path in ("/run/docker.sock", "/var/run/docker.sock") if (found := _there(path))
    }
    assert mine, "no engine's socket is on this machine"
    return [path for path, found in seen.files() if (found.st_dev, found.st_ino) in mine]


def _there(path: str) -> os.stat_result | None:
    return Path(path).stat() if Path(path).exists() else None


def _core(seen: Outside) -> list[str]:
    lines = [(pid, Path(f"/proc/{pid}/limits").read_text().splitlines()) for pid in seen.processes()]
    return [
        f"{pid} {line}"
        for pid, all_lines in lines
        for line in all_lines
        if line.startswith("Max core file size") and line.split()[4:6] != ["0", "0"]
    ]


def _forks(seen: Outside) -> list[str]:
    allowed = seen.limit("pids.max")
    wrong = [f"pids.max is {allowed}"] if allowed > PROCESSES else []
    _, said = seen.run("python3", "-c", FORKS)
    there = seen.processes()
    for pid in there:
        # From here: in it there may be no room for a process.
        with contextlib.suppress(OSError):
            if _MARK in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
    return [*wrong, *([f"{len(there)} processes were made: {said}"] if len(there) > PROCESSES else [])]


def _memory(seen: Outside) -> list[str]:
    memory, swap = ("memory.max", "memory.limit_in_bytes"), ("memory.swap.max", "memory.memsw.limit_in_bytes")
    allowed = seen.limit(*memory)
    # Version 1 counts memory and swap together. A kernel without swap has no such file.
    wrong = [f"memory {allowed}"] if allowed > MEMORY else []
    if seen.group(*swap) is not None and seen.limit(*swap) not in {0, allowed}:
        wrong.append(f"swap {seen.limit(*swap)}")
    code, said = seen.run("python3", "-c", TAKES)
    return [*wrong, *([f"a bomb ended with {code}: {said}"] if code != _KILLED else [])]


ROWS = {
    "nobody is root": _users,
    "no capability": _capabilities,
    "no new privileges": _new_privileges,
    "system calls are filtered": _seccomp,
    "no setuid file": _setuid,
    "its root is read-only": _root,
    "no engine's socket": _engine,
    "no core dumps": _core,
    "a fork bomb stays within": _forks,
    "a memory bomb ends inside": _memory,
}


def examine(api: Any, container: str, rows: Iterable[str] = ROWS) -> dict[str, list[str]]:
    """What is wrong, by row; a row where nothing is has an empty list.

    Args:
        api: Docker's own client.
        container: Its name or id.
        rows: Which of `ROWS`.
    """
    seen = Outside(api, container)
    return {row: ROWS[row](seen) for row in rows}
