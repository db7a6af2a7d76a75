"""The facts of a machine: programs, fonts, locales, sockets, locks and shared memory.

All access to the machine goes through a `System`, which a test can replace. Nothing is changed or judged.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import DeskhandError
from deskhand.launchers.local.launch import WINDOW_MANAGERS
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Where X11 clients and shared memory are, on every system.
TMP = "/tmp"  # noqa: S108
SHM = "/dev/shm"  # noqa: S108
_RUN_LIMIT = 10.0
CJK = {"zh": "Chinese", "ja": "Japanese", "ko": "Korean"}
_EMOJI = "und-zsye"


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock file of an X display.

    Attributes:
        display: The number in its name.
        problem: Why it cannot belong to a server; empty if it does.
    """

    display: str
    problem: str


@dataclass(frozen=True, slots=True)
class Fonts:
    """What fontconfig lists: families by kind."""

    scalable: int
    bitmap: int
    monospace: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A display to look at: as `DISPLAY` would name it, and its cookie file."""

    display: str
    xauthority: str | None


@dataclass(frozen=True, slots=True)
class DisplayFacts:
    """The state of one display.

    Attributes:
        name: As `DISPLAY` would name it.
        problem: Why it cannot be looked at; empty when it can.
        status: Why slower paths are in use.
        layout: Its keyboard layout, None if unknown.
    """

    name: str
    problem: str
    status: tuple[str, ...]
    layout: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a machine, without any judgement.

    Attributes:
        xvfb: Path of Xvfb.
        manager: Path of the window manager that a launch would take.
        bus: Path of dbus-daemon.
        fonts: None when fontconfig's program is missing.
        locale: The locale that programs would get from this process, before it is made UTF-8; may be empty.
        locales: The installed ones, lower case without dashes; None if unknown.
        shm: Bytes of /dev/shm in all and free; None when there is none.
        locks: The lock files of X displays.
        sockets: Mode of the directory of X sockets; None when it is missing.
        sockets_writable: Whether this user may make sockets in it, or make the directory itself.
        runtime: The runtime directory; empty when there is a problem.
        runtime_problem: Why there is none.
        docker: Path of the program of Docker, or of Podman.
        debootstrap: Path of debootstrap.
        display: The chosen desktop's display, when one was chosen.
    """

    xvfb: str | None
    manager: str | None
    bus: str | None
    fonts: Fonts | None
    locale: str
    locales: frozenset[str] | None
    shm: tuple[int, int] | None
    locks: tuple[Lock, ...]
    sockets: int | None
    sockets_writable: bool
    runtime: str
    runtime_problem: str
    docker: str | None
    debootstrap: str | None
    display: DisplayFacts | None


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """A program's output; None if it is missing, failed, or took too long."""
    try:
        result = subprocess.run(
            argv, env=dict(environment), capture_output=True, timeout=_RUN_LIMIT, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.decode("utf-8", "replace") if result.returncode == 0 else None


def _look(target: Target) -> Sequence[str]:
    # Imported here and not above, because only this check needs the native extension.
    from deskhand.backends.x11.backend import X11Backend  # noqa: PLC0415

    backend = X11Backend(target.display, xauthority=target.xauthority, view_only=True)
    try:
        return tuple(backend.status)
    finally:
        backend.close()


@dataclass(frozen=True, slots=True)
class System:
    """Access to the machine. Tests supply another one.

    Attributes:
        tmp: The directory of the locks and sockets of X servers.
        shm: The file system for shared memory.
        proc: The list of processes.
        environment: Environment variables.
        which: The path of a program, None when it is not installed.
        run: A program's standard output, None if it cannot be run or fails.
        runtime: The runtime directory; raises DeskhandError if it cannot exist.
        look: Opens a display only to look; returns why slower paths are in use, raises DeskhandError.
    """

    tmp: Path = Path(TMP)
    shm: Path = Path(SHM)
    proc: Path = Path("/proc")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    which: Callable[[str], str | None] = shutil.which
    run: Callable[[Sequence[str], Mapping[str, str]], str | None] = _run
    runtime: Callable[[], Path] = runtime_directory.runtime_directory
    look: Callable[[Target], Sequence[str]] = _look


def probe(system: System, target: Target | None = None) -> Facts:
    """Collect all facts of the machine.

    Args:
        system: The machine.
        target: The display of the chosen desktop, if there is one.
    """
    runtime, problem = "", ""
    try:
        runtime = str(system.runtime())
    except DeskhandError as error:
        problem = str(error)
    sockets = system.tmp / ".X11-unix"
    try:
        mode = stat.S_IMODE(sockets.stat().st_mode)
    except OSError:
        mode = None
    where = sockets if mode is not None else system.tmp
    variables = (system.environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return Facts(
        xvfb=system.which("Xvfb"),
        manager=next(filter(None, map(system.which, WINDOW_MANAGERS)), None),
        bus=system.which("dbus-daemon"),
        fonts=_probe_fonts(system),
        locale=next(filter(None, variables), ""),
        locales=_probe_locales(system),
        shm=_probe_shm(system),
        locks=_probe_locks(system),
        sockets=mode,
        sockets_writable=os.access(where, os.W_OK | os.X_OK),
        runtime=runtime,
        runtime_problem=problem,
        docker=system.which("docker") or system.which("podman"),
        # Where it is installed is not on every user's PATH.
        debootstrap=system.which("debootstrap") or system.which("/usr/sbin/debootstrap"),
        display=_probe_display(system, target) if target is not None else None,
    )


def _probe_fonts(system: System) -> Fonts | None:
    def families(pattern: str) -> int | None:
        text = system.run(["fc-list", pattern, "family"], system.environment)
        return None if text is None else len({line for line in text.splitlines() if line.strip()})

    scalable = families(":scalable=true")
    if scalable is None:
        return None
    wanted = {**CJK, _EMOJI: "emoji"}
    missing = tuple(name for tag, name in wanted.items() if not families(f":lang={tag}"))
    return Fonts(scalable, families(":scalable=false") or 0, families(":spacing=mono") or 0, missing)


def squeeze(locale: str) -> str:
    """`en_US.UTF-8` and `en_US.utf8` are the same."""
    return locale.lower().replace("-", "")


def _probe_locales(system: System) -> frozenset[str] | None:
    text = system.run(["locale", "-a"], system.environment)
    return None if text is None else frozenset(map(squeeze, text.split()))


def _probe_shm(system: System) -> tuple[int, int] | None:
    try:
        info = os.statvfs(system.shm)
    except OSError:
        return None
    return info.f_frsize * info.f_blocks, info.f_frsize * info.f_bavail


def _probe_locks(system: System) -> tuple[Lock, ...]:
    locks = []
    for path in system.tmp.glob(".X*-lock"):
        display = path.name.removeprefix(".X").removesuffix("-lock")
        if display.isdecimal():
            locks.append(Lock(display, _lock_problem(system, path)))
    return tuple(sorted(locks, key=lambda lock: int(lock.display)))


def _lock_problem(system: System, path: Path) -> str:
    try:
        text = path.read_bytes().strip()
    except FileNotFoundError:
        # Its server ended between the listing and now; a broken link looks the same, and is handled below.
        return "leads nowhere" if path.is_symlink() else ""
    except OSError as error:
        return f"unreadable ({error.strerror})"
    if not text:
        return "empty"
    if not text.isdigit():
        return "names no process"
    return "" if (system.proc / text.decode()).exists() else f"its process {int(text)} is dead"


def _probe_display(system: System, target: Target) -> DisplayFacts:
    try:
        status = tuple(system.look(target))
    except DeskhandError as error:
        return DisplayFacts(target.display, str(error), (), None)
    environment = dict(system.environment)
    if target.xauthority is not None:
        environment["XAUTHORITY"] = target.xauthority
    text = system.run(["setxkbmap", "-display", target.display, "-query"], environment)
    layout = None
    if text is not None:
        pairs = dict(line.partition(":")[::2] for line in text.splitlines())
        layout = " ".join(filter(None, (pairs.get(name, "").strip() for name in ("layout", "variant"))))
    return DisplayFacts(target.display, "", status, layout)
