"""Beside compositors and a tiling window manager, frames are final and `changed` is true to the pixels."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deskhand import KeyPress, LeftClick, Move, Reason, Type
from faults.helpers import need, until, window_expected
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    import deskhand
    from deskhand._core.geometry import Rect

PATIENCE = 20.0
COMPOSITORS = {
    "picom": ["picom", "--backend", "xrender", "--config", "/dev/null"],
    "xcompmgr": ["xcompmgr"],
}
I3 = """
font pango:monospace 10
bindsym Mod1+Return exec xterm +bc
bindsym Mod1+q kill
bindsym Mod1+v split v
bindsym Mod1+s layout stacking
bindsym Mod1+e layout toggle split
bindsym Mod1+f fullscreen toggle
"""


@contextlib.contextmanager
def running(desktop: deskhand.Desktop, package: str, command: Sequence[str]) -> Iterator[None]:
    argv = [need(command[0], package), *command[1:]]
    environment = dict(desktop._core.environment)
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.poll() is None, f"{command[0]} has ended"
        finally:
            process.kill()


def pixels(shot: deskhand.Screenshot, without: Sequence[Rect] = ()) -> NDArray[np.uint8]:
    array = shot.array().copy()
    for rect in without:
        array[rect.y : rect.bottom, rect.x : rect.right] = 0
    return array


def assert_final(desktop: deskhand.Desktop, seen: deskhand.Observation, what: object) -> None:
    """The frame shows what is there a second later, or it says that it may not; a caret moves on its own."""
    desktop._core.watch.pause(1.0)
    later = desktop.screenshot()
    different = np.argwhere((pixels(seen, seen.busy) != pixels(later, seen.busy)).any(axis=2))
    is_caret = different.size == 0 or np.ptp(different[:, 1]) < 3
    assert is_caret or not seen.settled or seen.may_change, (what, seen.reason, different.min(0), different.max(0))


@pytest.mark.parametrize("name", soaked(COMPOSITORS, but=["picom"]))
def test_beside_a_compositor_frames_are_final(desktop: deskhand.Desktop, name: str) -> None:
    with running(desktop, name, COMPOSITORS[name]):
        with window_expected(desktop):
            desktop.start(["xterm", "+bc", "-e", "bash", "--norc"])
        window = desktop.windows.list()[0].rect
        middle = (window.x + window.width // 2, window.y + window.height // 2)
        for action in (LeftClick(middle), Type("ls /"), KeyPress(("Return",)), Type("seq 5000"), KeyPress(("Return",))):
            seen = desktop.perform(action)
            assert (seen.settled, seen.reason in {Reason.QUIET, Reason.UNCHANGED}) == (True, True)
            assert_final(desktop, seen, action)


@pytest.mark.parametrize("name", COMPOSITORS)
def test_what_a_compositor_has_yet_to_show_is_a_change(desktop: deskhand.Desktop, name: str) -> None:
    """A window is unmapped and mapped again; what the screen showed when the call began is what counts."""
    begun: list[deskhand.Screenshot] = []
    with running(desktop, name, COMPOSITORS[name]):
        with window_expected(desktop):
            desktop.start(["xterm", "+bc"])
        (window,) = desktop.windows.list()
        # The pointer's shape is in pictures, and no change of the screen.
        desktop.perform(Move((2, 2)))
        watch, environment = desktop._core.watch, dict(desktop._core.environment)
        catch_up = watch.catch_up

        def caught_up(limit: float | None = None) -> None:
            catch_up(limit)
            begun.append(watch.picture(None, None, cursor=True, format="raw", quality=80))

        watch.catch_up = caught_up  # type: ignore[method-assign] # the only way to see what a call begins with
        for _ in range(5):
            again = ["xdotool", "windowunmap", str(window.id), "windowmap", str(window.id)]
            subprocess.run(again, env=environment, check=True)
            seen = desktop.perform(KeyPress(("shift",)))
            same = (pixels(begun[-1], seen.busy) == pixels(seen, seen.busy)).all()
            assert seen.changed is not bool(same), (seen.reason, seen.rects)


@pytest.mark.soak
def test_in_i3_frames_are_final(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    config = tmp_path / "i3"
    config.write_text(I3)
    desktop = launch(window_manager=None)
    with running(desktop, "i3-wm", ["i3", "-c", str(config)]):
        until(desktop._core.backend.has_window_manager, PATIENCE, "i3")
        with window_expected(desktop):
            desktop.start(["xterm", "+bc", "-e", "bash", "--norc"])
        for key in ("alt+v", "alt+Return", "alt+s", "alt+e", "alt+f", "alt+f", "alt+q"):
            seen = desktop.perform(KeyPress((key,)))
            assert seen.settled, key
            assert_final(desktop, seen, key)
        # A flood that the action begins.
        for command in ("seq 100000", "for i in $(seq 3000); do echo $i; done"):
            desktop.perform(Type(command))
            seen = desktop.perform(KeyPress(("Return",)))
            assert_final(desktop, seen, command)
