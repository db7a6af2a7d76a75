"""Is this machine ready for desktops, and what would mend it?

This module owns the checks, in two halves: `probe` asks the machine and returns `Facts`; everything that judges them is pure.
Whatever touches the machine goes through a `System`, so that a test can be any machine. What must never appear here: a change
to anything, and a decision made while probing.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import DeskhandError
from deskhand.launchers.local.launch import WINDOW_MANAGERS
from deskhand.machine import runtime_directory
from deskhand.machine.interface import SHARED_MEMORY_ENOUGH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Check", "DisplayFacts", "Facts", "Fonts", "Lock", "State", "System", "Target", "examine", "judge", "probe"]

# Where X11 clients and shared memory are, on every system.
_TMP = "/tmp"  # noqa: S108
_SHM = "/dev/shm"  # noqa: S108
_RUN_LIMIT = 10.0
_CJK = {"zh": "Chinese", "ja": "Japanese", "ko": "Korean"}
_EMOJI = "und-zsye"


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    WARN = "warn"
    """Desktops work, and something on them may not."""
    FAIL = "fail"
    """Desktops do not work."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: What was looked at.
        state: How it is.
        detail: What was found.
        fix: How to mend it; empty when nothing needs to be.
    """

    name: str
    state: State
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock file of an X display.

    Attributes:
        display: The number in its name.
        problem: Why no server can be behind it; empty when one is.
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
    """What one display is like.

    Attributes:
        name: As `DISPLAY` would name it.
        problem: Why it cannot be looked at; empty when it can.
        status: Why slower paths are in use.
        layout: Its keyboard layout, None when nobody can tell.
    """

    name: str
    problem: str
    status: tuple[str, ...]
    layout: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on a machine, without any judgement.

    Attributes:
        xvfb: Path of Xvfb.
        manager: Path of the window manager that a launch would take.
        bus: Path of dbus-daemon.
        fonts: None when fontconfig's program is missing.
        locale: The locale that programs would get from us, before it is made UTF-8; may be empty.
        locales: All that are installed, lower case without dashes; None when nobody can tell.
        shm: Bytes of /dev/shm in all and free; None when there is none.
        locks: The lock files of X displays.
        sockets: Mode of the directory of X sockets; None when it is missing.
        sockets_writable: Whether we may make sockets in it, or make the directory itself.
        runtime: The runtime directory; empty when there is a problem.
        runtime_problem: Why there is none.
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
    display: DisplayFacts | None


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What a program wrote; None when it is missing, failed, or took too long."""
    try:
        result = subprocess.run(
            argv, env=dict(environment), capture_output=True, timeout=_RUN_LIMIT, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.decode("utf-8", "replace") if result.returncode == 0 else None


def _look(target: Target) -> Sequence[str]:
    # Here and not above: this is the only check that needs the native extension to work.
    from deskhand.backends.x11.backend import X11Backend  # noqa: PLC0415

    backend = X11Backend(target.display, xauthority=target.xauthority, view_only=True)
    try:
        return tuple(backend.status)
    finally:
        backend.close()


@dataclass(frozen=True, slots=True)
class System:
    """The machine, as far as it is asked. Tests give another one.

    Attributes:
        tmp: Where X servers keep their locks and sockets.
        shm: The file system for shared memory.
        proc: The list of processes.
        environment: Environment variables.
        which: The path of a program, None when it is not installed.
        run: What a program writes to standard output, None when it cannot be run or fails.
        runtime: The runtime directory; raises DeskhandError when there can be none.
        look: Opens a display only to look; returns why slower paths are in use, raises DeskhandError.
    """

    tmp: Path = Path(_TMP)
    shm: Path = Path(_SHM)
    proc: Path = Path("/proc")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    which: Callable[[str], str | None] = shutil.which
    run: Callable[[Sequence[str], Mapping[str, str]], str | None] = _run
    runtime: Callable[[], Path] = runtime_directory.runtime_directory
    look: Callable[[Target], Sequence[str]] = _look


# --- probing ---


def probe(system: System, target: Target | None = None) -> Facts:
    """Ask the machine everything.

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
        display=_probe_display(system, target) if target is not None else None,
    )


def _probe_fonts(system: System) -> Fonts | None:
    def families(pattern: str) -> int | None:
        text = system.run(["fc-list", pattern, "family"], system.environment)
        return None if text is None else len({line for line in text.splitlines() if line.strip()})

    scalable = families(":scalable=true")
    if scalable is None:
        return None
    wanted = {**_CJK, _EMOJI: "emoji"}
    missing = tuple(name for tag, name in wanted.items() if not families(f":lang={tag}"))
    return Fonts(scalable, families(":scalable=false") or 0, families(":spacing=mono") or 0, missing)


def _squeeze(locale: str) -> str:
    """`en_US.UTF-8` and `en_US.utf8` are the same."""
    return locale.lower().replace("-", "")


def _probe_locales(system: System) -> frozenset[str] | None:
    text = system.run(["locale", "-a"], system.environment)
    return None if text is None else frozenset(map(_squeeze, text.split()))


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
        # Its server ended between the listing and now; a lock that leads nowhere looks the same, and is one of those below.
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


# --- judging ---


def examine(system: System, target: Target | None = None) -> list[Check]:
    """Probe and judge."""
    return judge(probe(system, target))


def judge(facts: Facts) -> list[Check]:
    """What the facts mean, in the order in which a launch would meet them."""
    checks = [
        _judge_xvfb(facts.xvfb),
        _judge_manager(facts.manager),
        _judge_bus(facts.bus),
        _judge_sockets(facts.sockets, writable=facts.sockets_writable),
        _judge_locks(facts.locks),
        _judge_runtime(facts.runtime, facts.runtime_problem),
        _judge_shm(facts.shm),
        _judge_locale(facts.locale, facts.locales),
        *_judge_fonts(facts.fonts),
    ]
    if facts.display is not None:
        checks += _judge_display(facts.display)
    return checks


def _judge_xvfb(path: str | None) -> Check:
    if path is None:
        return Check("Xvfb", State.FAIL, "not installed: nothing can be launched here", "apt-get install xvfb")
    return Check("Xvfb", State.OK, path)


def _judge_manager(path: str | None) -> Check:
    if path is None:
        fix = "apt-get install openbox, or launch(window_manager=None) and do without windows()"
        return Check("window manager", State.FAIL, "none is installed", fix)
    return Check("window manager", State.OK, path)


def _judge_bus(path: str | None) -> Check:
    if path is None:
        detail = "dbus-daemon is not installed: some applications start slowly, or not at all"
        return Check("session bus", State.WARN, detail, "apt-get install dbus")
    return Check("session bus", State.OK, path)


def _judge_sockets(mode: int | None, *, writable: bool) -> Check:
    name, path = "X sockets", f"{_TMP}/.X11-unix"
    if mode is None:
        if writable:
            return Check(name, State.OK, f"{path} will be made by the first X server")
        return Check(
            name, State.FAIL, f"{path} is missing, and cannot be made by you", f"as root: mkdir -m 1777 {path}"
        )
    fix = f"as root: chmod 1777 {path}"
    if not writable:
        return Check(name, State.FAIL, f"{path} has mode {mode:o} and is not writable for you", fix)
    if mode != 0o1777:
        return Check(name, State.WARN, f"{path} has mode {mode:o}, not 1777", fix)
    return Check(name, State.OK, path)


def _judge_locks(locks: Sequence[Lock]) -> Check:
    stale = [lock for lock in locks if lock.problem]
    if stale:
        found = "; ".join(f":{lock.display} {lock.problem}" for lock in stale)
        files = " ".join(f"{_TMP}/.X{lock.display}-lock {_TMP}/.X11-unix/X{lock.display}" for lock in stale)
        fix = f"rm -f {files} (unless they belong to a container that shares /tmp)"
        return Check("X locks", State.WARN, f"stale: {found}", fix)
    return Check("X locks", State.OK, f"{len(locks)} in use" if locks else "none in use")


def _judge_runtime(path: str, problem: str) -> Check:
    name = "runtime directory"
    if problem:
        return Check(name, State.FAIL, problem, "export XDG_RUNTIME_DIR to a directory of yours with mode 0700")
    lacking = (
        (State.FAIL, runtime_directory.GUARD_SOCKET, "the sockets in it"),
        (
            State.WARN,
            runtime_directory.BROWSER_SOCKET,
            "the sockets of browsers on desktops with a home directory of their own",
        ),
    )
    for state, below, whose in lacking:
        spare = runtime_directory.spare_bytes(Path(path), below)
        if spare < 0:
            fix = f"export XDG_RUNTIME_DIR to a path of at most {len(os.fsencode(Path(path).parent)) + spare} bytes"
            return Check(name, state, f"{path} is too long for {whose}", fix)
    return Check(name, State.OK, path)


def _judge_shm(shm: tuple[int, int] | None) -> Check:
    name = "shared memory"
    if shm is None:
        detail = f"no {_SHM}: frames take a slower way, and browsers crash"
        return Check(name, State.WARN, detail, f"mount -t tmpfs tmpfs {_SHM}")
    total, free = (size >> 20 for size in shm)
    fix = f"docker run --shm-size=1g, or mount -o remount,size=1g {_SHM}"
    if shm[0] < SHARED_MEMORY_ENOUGH:
        return Check(name, State.WARN, f"{_SHM} has {total} MB, browsers want {SHARED_MEMORY_ENOUGH >> 20}", fix)
    if shm[1] < SHARED_MEMORY_ENOUGH:
        return Check(name, State.WARN, f"{_SHM} has {free} MB left of {total} MB", f"empty it, or {fix}")
    return Check(name, State.OK, f"{_SHM} has {free} MB free of {total} MB")


def _judge_locale(locale: str, locales: frozenset[str] | None) -> Check:
    name = "locale"
    is_utf8 = "utf8" in _squeeze(locale)
    if locales is not None and not any("utf8" in known for known in locales):
        return Check(
            name, State.FAIL, "none with UTF-8 is installed: text arrives mangled", "apt-get install locales-all"
        )
    if not is_utf8:
        # This is what `program_environment` gives them then.
        if locales is not None and "c.utf8" not in locales:
            detail = f"{locale or 'none set'}, and C.UTF-8 is not installed: text arrives mangled"
            return Check(name, State.FAIL, detail, "export LANG to one of `locale -a` that ends in UTF-8")
        return Check(name, State.OK, f"{locale or 'none set'}; programs on desktops get C.UTF-8")
    if locales is not None and _squeeze(locale) not in locales:
        detail = f"{locale} is not installed: programs fall back to ASCII"
        return Check(
            name,
            State.FAIL,
            detail,
            f"export LANG=C.UTF-8, or: localedef -i {locale.partition('.')[0]} -f UTF-8 {locale}",
        )
    return Check(name, State.OK, locale)


def _judge_fonts(fonts: Fonts | None) -> list[Check]:
    name = "fonts"
    if fonts is None:
        return [Check(name, State.WARN, "fc-list is missing, so nobody can tell", "apt-get install fontconfig")]
    install = "apt-get install fonts-dejavu-core"
    if not fonts.scalable and not fonts.bitmap:
        return [Check(name, State.FAIL, "none: applications show boxes, or do not start", install)]
    if not fonts.scalable:
        return [Check(name, State.WARN, f"only bitmap fonts ({fonts.bitmap}): most text is unreadable", install)]
    checks = [Check(name, State.OK, f"{fonts.scalable} families")]
    if not fonts.monospace:
        checks[0] = Check(name, State.WARN, "none is monospaced: terminals are hard to read", install)
    missing = set(fonts.missing)
    if cjk := [language for language in _CJK.values() if language in missing]:
        detail = f"no font has {', '.join(cjk)}: those characters show as boxes"
        checks.append(Check("fonts for CJK", State.WARN, detail, "apt-get install fonts-noto-cjk"))
    else:
        checks.append(Check("fonts for CJK", State.OK, "Chinese, Japanese and Korean"))
    if "emoji" in missing:
        detail = "no font has emoji: they show as boxes"
        checks.append(Check("fonts for emoji", State.WARN, detail, "apt-get install fonts-noto-color-emoji"))
    else:
        checks.append(Check("fonts for emoji", State.OK, "there is one"))
    return checks


def _judge_display(display: DisplayFacts) -> list[Check]:
    name = f"display {display.name}"
    if display.problem:
        # The errors of this package say what to do by themselves.
        return [Check(name, State.FAIL, display.problem)]
    if display.status:
        fix = "run on the same machine, or in a container that shares its X socket and IPC"
        checks = [Check(name, State.WARN, "; ".join(display.status), fix)]
    else:
        checks = [Check(name, State.OK, "has all extensions; the fastest way of capture works")]
    if display.layout is None:
        detail = "unknown: setxkbmap is missing or was refused"
        checks.append(Check("keyboard layout", State.WARN, detail, "apt-get install x11-xkb-utils"))
    else:
        checks.append(Check("keyboard layout", State.OK, display.layout or "none set"))
    return checks
