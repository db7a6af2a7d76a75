"""Judges whether a machine is ready for desktops, and how to mend it, by the facts of `doctor_facts`. Pure."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.cli.doctor_facts import CJK, SHM, TMP, DisplayFacts, Facts, Fonts, Lock, System, Target, probe, squeeze
from deskhand.machine import runtime_directory
from deskhand.machine.interface import SHARED_MEMORY_ENOUGH

if TYPE_CHECKING:
    from collections.abc import Sequence


class State(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    """Desktops work, but something on them may not."""
    FAIL = "fail"
    """Desktops do not work."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: The part that was checked.
        state: Its state.
        detail: The facts.
        fix: How to mend it; empty if nothing is wrong.
    """

    name: str
    state: State
    detail: str
    fix: str = ""


# --- probing ---


# --- judging ---


def examine(system: System, target: Target | None = None) -> list[Check]:
    """Probe and judge."""
    return judge(probe(system, target))


def judge(facts: Facts) -> list[Check]:
    """The checks, in the order in which a launch would depend on them."""
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
        _judge_containers(facts.docker, facts.debootstrap),
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
    name, path = "X sockets", f"{TMP}/.X11-unix"
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
        files = " ".join(f"{TMP}/.X{lock.display}-lock {TMP}/.X11-unix/X{lock.display}" for lock in stale)
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
        detail = f"no {SHM}: frames take a slower way, and browsers crash"
        return Check(name, State.WARN, detail, f"mount -t tmpfs tmpfs {SHM}")
    total, free = (size >> 20 for size in shm)
    fix = f"docker run --shm-size=1g, or mount -o remount,size=1g {SHM}"
    if shm[0] < SHARED_MEMORY_ENOUGH:
        return Check(name, State.WARN, f"{SHM} has {total} MB, browsers want {SHARED_MEMORY_ENOUGH >> 20}", fix)
    if shm[1] < SHARED_MEMORY_ENOUGH:
        return Check(name, State.WARN, f"{SHM} has {free} MB left of {total} MB", f"empty it, or {fix}")
    return Check(name, State.OK, f"{SHM} has {free} MB free of {total} MB")


def _judge_locale(locale: str, locales: frozenset[str] | None) -> Check:
    name = "locale"
    is_utf8 = "utf8" in squeeze(locale)
    if locales is not None and not any("utf8" in known for known in locales):
        return Check(
            name, State.FAIL, "none with UTF-8 is installed: text arrives mangled", "apt-get install locales-all"
        )
    if not is_utf8:
        # `program_environment` gives them this locale then.
        if locales is not None and "c.utf8" not in locales:
            detail = f"{locale or 'none set'}, and C.UTF-8 is not installed: text arrives mangled"
            return Check(name, State.FAIL, detail, "export LANG to one of `locale -a` that ends in UTF-8")
        return Check(name, State.OK, f"{locale or 'none set'}; programs on desktops get C.UTF-8")
    if locales is not None and squeeze(locale) not in locales:
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
        return [Check(name, State.WARN, "fc-list is missing, so the fonts are unknown", "apt-get install fontconfig")]
    install = "apt-get install fonts-dejavu-core"
    if not fonts.scalable and not fonts.bitmap:
        return [Check(name, State.FAIL, "none: applications show boxes, or do not start", install)]
    if not fonts.scalable:
        return [Check(name, State.WARN, f"only bitmap fonts ({fonts.bitmap}): most text is unreadable", install)]
    checks = [Check(name, State.OK, f"{fonts.scalable} families")]
    if not fonts.monospace:
        checks[0] = Check(name, State.WARN, "none is monospaced: terminals are hard to read", install)
    missing = set(fonts.missing)
    if cjk := [language for language in CJK.values() if language in missing]:
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


def _judge_containers(docker: str | None, debootstrap: str | None) -> Check:
    name = "containers"
    if docker is None:
        return Check(name, State.OK, "neither Docker nor Podman is installed; only desktops in containers need one")
    if debootstrap is None:
        detail = "debootstrap is not installed: where no registry can be reached, no image can be built"
        return Check(name, State.WARN, detail, "apt-get install debootstrap")
    return Check(name, State.OK, f"{docker}; images: deskhand image build")


def _judge_display(display: DisplayFacts) -> list[Check]:
    name = f"display {display.name}"
    if display.problem:
        # The errors of this package say what to do.
        return [Check(name, State.FAIL, display.problem)]
    if display.status:
        fix = "run on the same machine, or in a container that shares its X socket and IPC"
        if any("Xwayland" in line for line in display.status):
            fix = "use a desktop of its own (deskhand.launch), or connect to the compositor's VNC server"
        checks = [Check(name, State.WARN, "; ".join(display.status), fix)]
    else:
        checks = [Check(name, State.OK, "has all extensions; the fastest way of capture works")]
    if display.layout is None:
        detail = "unknown: setxkbmap is missing or was refused"
        checks.append(Check("keyboard layout", State.WARN, detail, "apt-get install x11-xkb-utils"))
    else:
        checks.append(Check("keyboard layout", State.OK, display.layout or "none set"))
    return checks
