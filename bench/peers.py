"""Who is measured beside us, whether they are here, and how to get those that are not.

This module owns their names and the processes they run in; how each of them looks at a screen is in `worker`. What must never
appear here: a judgement.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from bench.child import Child, ChildError
from bench.figures import OURS
from bench.stage import environment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from deskhand.desktop.desktop import Desktop

__all__ = ["PEERS", "VNCDOTOOL", "VNC_LOOKERS", "VNC_PEERS", "Crew", "Peer", "package_version"]

NATIVE = "_modal_computer_use_x11_shm"
_START_LIMIT = 60.0
_LOOK_LIMIT = 12.0
_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Peer:
    """One way in which others look at a screen.

    Attributes:
        name: As the tables call it.
        look: The function of `worker` that does it.
        gives: `png` (a file's bytes), `array` (pixels only) or `scaled` (a PNG of 1366x768).
        modules: Python modules that it needs, each with the distribution it comes from.
        programs: Programs that it needs, each with the Debian package it comes from.
        sleeps: Whether a part of it works all the time, and is halted while others are measured.
        everywhere: Whether it looks at every scene in every size; the others only where most is at stake.
        hint: How to get it, where that is more than pip or apt and those names.
    """

    name: str
    look: str
    gives: str = "png"
    modules: tuple[tuple[str, str], ...] = ()
    programs: tuple[tuple[str, str], ...] = ()
    sleeps: bool = False
    everywhere: bool = False
    hint: str = ""

    def missing(self) -> str:
        """What is not installed, and how to get it; empty when it is all here."""
        packages = [package for program, package in self.programs if shutil.which(program) is None]
        if packages:
            return f"not installed: apt-get install {' '.join(packages)}"
        absent = [distribution for module, distribution in self.modules if importlib.util.find_spec(module) is None]
        if absent:
            return f"not installed: {self.hint or 'pip install ' + ' '.join(absent)}"
        return ""

    def versions(self) -> Iterator[tuple[str, str]]:
        """Of what it needs, by name."""
        for _, distribution in self.modules:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                yield distribution, importlib.metadata.version(distribution)
        for _, package in self.programs:
            yield package, package_version(package)


VNCDOTOOL, _ASYNCVNC = ("vncdotool", "vncdotool"), ("asyncvnc", "asyncvnc")
_MSS, _PIL, _XLIB = ("mss", "mss"), ("PIL", "pillow"), ("Xlib", "python-xlib")
_GUI_HINT = "pip install --no-deps PyAutoGUI PyScreeze PyMsgBox pytweening MouseInfo pyperclip"
_X11VNC = ("x11vnc", "x11vnc")

PEERS = (
    Peer(
        "modal-computer-use (its Rust MIT-SHM + PNG)",
        "modal",
        modules=((NATIVE, "modal-computer-use-x11-shm"),),
        everywhere=True,
        hint="in a clone of deskhand, tools/peers builds it from its own wheel",
    ),
    Peer("scrot (process, file)", "scrot", programs=(("scrot", "scrot"),), everywhere=True),
    Peer("ImageMagick import (process, file)", "imagemagick", programs=(("import", "imagemagick"),)),
    Peer("python-xlib get_image, raw only", "xlib_raw", "array", modules=(_XLIB,)),
    Peer("python-xlib + Pillow PNG level 6", "xlib_6", modules=(_XLIB, _PIL)),
    Peer("python-xlib + Pillow PNG level 1", "xlib_1", modules=(_XLIB, _PIL)),
    Peer("mss grab, raw only", "mss_raw", "array", modules=(_MSS,)),
    Peer("mss grab → RGB array (numpy)", "mss_array", "array", modules=(_MSS,)),
    Peer("mss grab + its to_png", "mss_png", modules=(_MSS,), everywhere=True),
    Peer("mss grab + Pillow PNG level 1", "mss_1", modules=(_MSS, _PIL), everywhere=True),
    # Its dependency python3-Xlib is an old fork that overwrites the files of python-xlib.
    Peer("PyAutoGUI screenshot + PNG", "pyautogui", modules=(("pyautogui", "PyAutoGUI"),), hint=_GUI_HINT),
    Peer(
        "vncdotool captureScreen over x11vnc",
        "vncdotool",
        modules=(VNCDOTOOL,),
        programs=(_X11VNC,),
        sleeps=True,
    ),
    Peer(
        "asyncvnc screenshot over x11vnc, array only",
        "asyncvnc",
        "array",
        modules=(_ASYNCVNC,),
        programs=(_X11VNC,),
        sleeps=True,
    ),
    Peer("mss grab + Pillow resize + PNG level 1", "mss_scaled", "scaled", modules=(_MSS, _PIL)),
    Peer(
        "scrot + ImageMagick convert (processes, files)",
        "scrot_scaled",
        "scaled",
        programs=(("scrot", "scrot"), ("convert", "imagemagick")),
    ),
)

VNC_PEERS = (
    Peer("vncdotool captureScreen over Xvnc", "vncdotool_xvnc", modules=(VNCDOTOOL,)),
    Peer("asyncvnc screenshot over Xvnc, array only", "asyncvnc_xvnc", "array", modules=(_ASYNCVNC,)),
)
"""Those that look through a VNC server of the desktop's own."""

VNC_LOOKERS = (Peer(OURS, "deskhand_xvnc"), *VNC_PEERS)
"""The same and we, each in a process of its own."""


def package_version(package: str) -> str:
    """Of a Debian package; `unknown` where dpkg does not know it."""
    try:
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return asked.stdout.strip() or "unknown"


class Crew:
    """The peers that are here, each at work in a process of its own on one desktop.

    Attributes:
        missing: Why the others are not, by name.
        failures: How those that were started anew had failed, by name.
    """

    def __init__(self, desktop: Desktop, scratch: Path, peers: Iterable[Peer]) -> None:
        """Start them; those that cannot are in `missing`."""
        self.missing: dict[str, str] = {}
        self.failures: dict[str, list[str]] = {}
        self._desktop = desktop
        self._scratch = scratch
        self._children: dict[str, Child] = {}
        self._peers = {peer.name: peer for peer in peers}
        try:
            for name, peer in self._peers.items():
                if reason := peer.missing():
                    self.missing[name] = reason
                else:
                    self._start(name)
            for name in self.names:
                self._ask(name, self._children[name].answer, _START_LIMIT)
        except BaseException:
            self.close()
            raise

    def _start(self, name: str) -> None:
        peer = self._peers[name]
        log = self._scratch / f"peer-{str(self._desktop.display).strip(':')}-{peer.look}.log"
        # Whatever it leaves behind, if it must be killed, goes with the rest.
        environment = {**environment_of(self._desktop), "TMPDIR": str(self._scratch), "PYTHONWARNINGS": "ignore"}
        child = Child("bench.worker", peer.look, *self._desktop.size, env=environment, log=log)
        self._children[name] = child
        child.tell(op="ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def names(self) -> list[str]:
        """Of those at work, in the order of `PEERS`."""
        return list(self._children)

    def wake(self, name: str) -> bool:
        """Wake one that sleeps while others look; False when it never does.

        The screen should change once before it looks: what changed while it slept, it may have missed.
        """
        if not self._peers[name].sleeps:
            return False
        self._ask(name, self._children[name].ask, op="wake")
        return name in self._children

    def look(self, name: str, *, warm: bool = True) -> tuple[float, int] | None:
        """Let one look; milliseconds and bytes. None when it failed.

        Args:
            name: Who.
            warm: Look once before, without the clock.
        """
        answer = self._ask(name, self._children[name].ask, op="look", warm=warm, timeout=_LOOK_LIMIT)
        return (answer["ms"], answer["bytes"]) if answer is not None else None

    def save(self, name: str, path: Path) -> bool:
        """Let one look, and keep the picture as a NumPy array in a file; False when it failed."""
        return self._ask(name, self._children[name].ask, op="save", path=str(path), timeout=_LOOK_LIMIT) is not None

    def until(
        self, name: str, since: float, path: Path, old: Path, rect: tuple[int, int, int, int]
    ) -> tuple[float, int] | None:
        """Let one look again and again until its picture shows a change; milliseconds and bytes. None when it failed.

        Args:
            name: Who.
            since: When the change was on the screen, by `time.perf_counter`, which all processes share.
            path: The screen after the change, as a NumPy array in a file.
            old: Before it, likewise.
            rect: Where it changed.
        """
        ask = self._children[name].ask
        answer = self._ask(
            name, ask, op="until", since=since, path=str(path), old=str(old), rect=rect, timeout=_LOOK_LIMIT
        )
        return (answer["ms"], answer["bytes"]) if answer is not None else None

    def watch(self, name: str, seconds: float, rate: float) -> tuple[float, float] | None:
        """Let one look `rate` times a second; the share of one core that its process used in percent, and the real rate."""
        ask = self._children[name].ask
        answer = self._ask(name, ask, op="watch", seconds=seconds, rate=rate, timeout=_LOOK_LIMIT)
        return (answer["cpu_percent"], answer["rate"]) if answer is not None else None

    def _ask(self, name: str, ask: Callable[..., dict[str, Any]], *arguments: object, **message: object) -> Any:
        """Ask one; when it fails it gets another try, from the start, until it has failed too often."""
        try:
            return ask(*arguments, **message)
        except ChildError as error:
            failures = self.failures.setdefault(name, [])
            # One line of a table; where a peer is installed says nothing to who reads it.
            failures.append(textwrap.shorten(re.sub(r"\S*/site-packages/", "", str(error)), 160))
            self._children.pop(name).close(limit=0)
        if len(failures) < _FAILURES:
            self._start(name)
            self._ask(name, self._children[name].answer, _START_LIMIT)
        else:
            self.missing[name] = f"failed {len(failures)} times, at last: {failures[-1]}"
        return None

    def close(self) -> None:
        """End them all; again is harmless."""
        for child in self._children.values():
            child.close()
        self._children.clear()
