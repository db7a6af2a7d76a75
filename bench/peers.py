"""The peers in the benchmark, whether they are installed, and how to install them.

This module owns their names and their processes; how each of them looks at a screen is in `worker`. It does not judge them.
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
    """Another tool's way to look at a screen.

    Attributes:
        name: Its name in the tables.
        look: The function of `worker` that uses it.
        gives: `png` (a file's bytes), `array` (pixels only) or `scaled` (a PNG of 1366x768).
        modules: The Python modules that it needs, each with its distribution.
        programs: The programs that it needs, each with its Debian package.
        sleeps: Whether it has a process that works all the time, and is stopped while others are measured.
        everywhere: Whether it looks at every scene in every size; the others only look at the main one.
        hint: How to install it, if pip or apt with these names is not enough.
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
        """What is not installed, and how to install it; empty if nothing is missing."""
        packages = [package for program, package in self.programs if shutil.which(program) is None]
        if packages:
            return f"not installed: apt-get install {' '.join(packages)}"
        absent = [distribution for module, distribution in self.modules if importlib.util.find_spec(module) is None]
        if absent:
            return f"not installed: {self.hint or 'pip install ' + ' '.join(absent)}"
        return ""

    def versions(self) -> Iterator[tuple[str, str]]:
        """The versions of what it needs, by name."""
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
"""The peers that look through a VNC server of the desktop's own."""

VNC_LOOKERS = (Peer(OURS, "deskhand_xvnc"), *VNC_PEERS)
"""The same and deskhand, each in a process of its own."""


def package_version(package: str) -> str:
    """The version of a Debian package; `unknown` if dpkg does not know it."""
    try:
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return asked.stdout.strip() or "unknown"


class Crew:
    """The installed peers, each in a process of its own on one desktop.

    Attributes:
        missing: Why the others are missing, by name.
        failures: The failures of restarted peers, by name.
    """

    def __init__(self, desktop: Desktop, scratch: Path, peers: Iterable[Peer]) -> None:
        """Start them; those that cannot start are in `missing`."""
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
        # If it must be killed, its files are removed with this directory.
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
        """The names of the running peers, in the order of `PEERS`."""
        return list(self._children)

    def wake(self, name: str) -> bool:
        """Wake one that is stopped while others look; False if it never is.

        The screen should change once before it looks, because it may have missed earlier changes.
        """
        if not self._peers[name].sleeps:
            return False
        self._ask(name, self._children[name].ask, op="wake")
        return name in self._children

    def look(self, name: str, *, warm: bool = True) -> tuple[float, int] | None:
        """Let one look; returns milliseconds and bytes, or None if it failed.

        Args:
            name: The peer's name.
            warm: Look once before, without measuring.
        """
        answer = self._ask(name, self._children[name].ask, op="look", warm=warm, timeout=_LOOK_LIMIT)
        return (answer["ms"], answer["bytes"]) if answer is not None else None

    def save(self, name: str, path: Path) -> bool:
        """Let one look, and save the picture as a NumPy array in a file; False if it failed."""
        return self._ask(name, self._children[name].ask, op="save", path=str(path), timeout=_LOOK_LIMIT) is not None

    def until(
        self, name: str, since: float, path: Path, old: Path, rect: tuple[int, int, int, int]
    ) -> tuple[float, int] | None:
        """Let one look until its picture shows a change; returns milliseconds and bytes, or None if it failed.

        Args:
            name: The peer's name.
            since: When the change was on the screen, in `time.perf_counter`, which all processes share.
            path: The screen after the change, as a NumPy array in a file.
            old: The screen before the change, likewise.
            rect: The place of the change.
        """
        ask = self._children[name].ask
        answer = self._ask(
            name, ask, op="until", since=since, path=str(path), old=str(old), rect=rect, timeout=_LOOK_LIMIT
        )
        return (answer["ms"], answer["bytes"]) if answer is not None else None

    def watch(self, name: str, seconds: float, rate: float) -> tuple[float, float] | None:
        """Let one look `rate` times a second; returns the use of one core by its process in percent, and the real rate."""
        ask = self._children[name].ask
        answer = self._ask(name, ask, op="watch", seconds=seconds, rate=rate, timeout=_LOOK_LIMIT)
        return (answer["cpu_percent"], answer["rate"]) if answer is not None else None

    def _ask(self, name: str, ask: Callable[..., dict[str, Any]], *arguments: object, **message: object) -> Any:
        """Ask one; if it fails it is restarted and asked again, until it has failed too often."""
        try:
            return ask(*arguments, **message)
        except ChildError as error:
            failures = self.failures.setdefault(name, [])
            # One line of a table; a reader does not need the path of a peer's installation.
            failures.append(textwrap.shorten(re.sub(r"\S*/site-packages/", "", str(error)), 160))
            self._children.pop(name).close(limit=0)
        if len(failures) < _FAILURES:
            self._start(name)
            self._ask(name, self._children[name].answer, _START_LIMIT)
        else:
            self.missing[name] = f"failed {len(failures)} times, at last: {failures[-1]}"
        return None

    def close(self) -> None:
        """End them all. Further calls do nothing."""
        for child in self._children.values():
            child.close()
        self._children.clear()
