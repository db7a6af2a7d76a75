"""A VNC server in another network namespace than its driver: `python over_packets.py SCENARIO` prints what happened as JSON."""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import deskhand
from conformance.packets import FAR, PORT, NetworkNamespace, PacketLine, Quality
from conformance.servers import Place, need, xvnc
from conformance.test_desktop import real_pixels, released
from deskhand import KeyPress, MouseDown, Move, PressKeys, Settle, Type
from deskhand.backends.vnc import backend as vnc
from deskhand.backends.vnc import login as vnc_login
from faults.test_line import CORNER, focused
from faults.test_malformed import memory

if TYPE_CHECKING:
    from collections.abc import Callable

URL = f"vnc://{FAR}::{PORT}"
FLOOD = "import os, time\nfor _ in range(100): print(os.urandom(600).hex(), flush=True), time.sleep(0.02)"
TEXT = "the quick brown fox, 42 times over"


def same(desktop: deskhand.Desktop, place: Place) -> bool:
    return bool((np.asarray(desktop.screenshot(cursor=False).array()) == real_pixels(place)).all())


def wait(done: Callable[[], bool], limit: float = 120.0) -> bool:
    deadline = time.monotonic() + limit
    while not (found := done()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def dropped(desktop: deskhand.Desktop, line: PacketLine) -> tuple[float, str]:
    """With keys and a button held nothing is sent, so that only keep-alive can tell; then the line is there again."""
    desktop.perform(Move(CORNER), PressKeys(["shift", "b"]), MouseDown("left"), settle=False)
    line.drop()
    begun = time.monotonic()
    native = desktop._core.backend._vnc  # type: ignore[attr-defined] # below what every backend has
    try:
        while True:
            native.wait(0.25)
    except deskhand.DesktopLost as lost:
        took, why = time.monotonic() - begun, lost.detail
    line.go()
    return took, why


def dropped_while_idle(place: Place, line: PacketLine, _: Path) -> dict[str, Any]:
    """What the old connection held is released at once."""
    with deskhand.connect(URL, timeout=60) as desktop:
        epoch = desktop._core.backend.screen.epoch
        took, why = dropped(desktop, line)
        try:
            desktop.perform()
            told = ""
        except deskhand.Reconnected as error:
            told = error.reason
        return {
            "took": took,
            "why": why,
            "told": told == why,
            "newer": desktop._core.backend.screen.epoch > epoch,
            "held": list(desktop.pressed),
            # Nothing is sent meanwhile: it must not wait for anything.
            "released": wait(lambda: released(place), 10),
            "settled": desktop.perform(Move((9, 9)), settle=Settle(timeout=60)).settled,
            "same": same(desktop, place),
        }


def dropped_for_good(place: Place, line: PacketLine, _: Path) -> dict[str, Any]:
    """From another port than before, the old connection stays."""
    vnc_login._Login._connected_again = lambda _: None  # type: ignore[method-assign]
    with deskhand.connect(URL, timeout=60) as desktop:
        dropped(desktop, line)
        try:
            desktop.perform()
            told = ""
        except deskhand.Reconnected as error:
            told = str(error)
        return {"told": told, "released": released(place)}


def dropped_while_sending(_: Place, line: PacketLine, __: Path) -> dict[str, Any]:
    """What was sent is not acknowledged; and the line stays as it is."""
    vnc._RECONNECT_LIMIT = 0.0
    with deskhand.connect(URL, timeout=60) as desktop:
        desktop.perform(Move(CORNER))
        line.drop()
        begun = time.monotonic()
        try:
            desktop.perform(KeyPress(["a"]), settle=Settle(timeout=60))
        except deskhand.DesktopLost as lost:
            return {"took": time.monotonic() - begun, "why": lost.detail, "cause": lost.cause}
    return {}


def late_lossy_and_narrow(place: Place, _: PacketLine, folder: Path) -> dict[str, Any]:
    """Typing, and a terminal that writes more than the line carries."""
    typed = folder / "typed"
    xterm = need("xterm", "xterm")
    argv = [xterm, "-title", "line", "-geometry", "60x12+20+20", "-e", "sh", "-c", f"stty -icanon; cat >{typed}"]
    flood = [xterm, "-geometry", "60x20+0+200", "-e", sys.executable, "-c", FLOOD]
    with subprocess.Popen(argv, env=place.environment) as terminal:
        try:
            focus = wait(lambda: typed.exists() and focused(place))
            gc.collect()
            Path("/proc/self/clear_refs").write_text("5")
            before = memory("VmRSS")
            with deskhand.connect(URL, timeout=120) as desktop:
                desktop.perform(Move(CORNER), settle=Settle(timeout=60))
                seen = desktop.perform(Type(TEXT), KeyPress(["Return"]), settle=Settle(timeout=60))
                right = bool((np.asarray(seen.image().convert("RGB")) == real_pixels(place)).all())
                subprocess.run(flood, env=place.environment, check=True)
                end = wait(lambda: same(desktop, place))
            return {
                "focus": focus,
                "settled": seen.settled,
                "right": right,
                "typed": typed.read_text(),
                "same at the end": end,
                "memory": memory("VmHWM") - before,
            }
        finally:
            terminal.kill()


SCENARIOS: dict[str, tuple[Callable[[Place, PacketLine, Path], dict[str, Any]], Quality]] = {
    "dropped while idle": (dropped_while_idle, Quality()),
    "dropped for good": (dropped_for_good, Quality()),
    "dropped while sending": (dropped_while_sending, Quality()),
    "late, lossy and narrow": (late_lossy_and_narrow, Quality(loss=0.02, delay=0.2, jitter=0.1, rate=125_000)),
}


def main() -> None:
    scenario, quality = SCENARIOS[sys.argv[1]]
    here, there = NetworkNamespace(), NetworkNamespace()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-")))
        place = there.run(stack.enter_context, xvnc(folder, "-rfbport", str(PORT)))
        line = PacketLine(here, there, quality)
        with line:
            told = here.run(scenario, place, line, folder)
    print(json.dumps({**told, "packets": line.counted}))


if __name__ == "__main__":
    main()
