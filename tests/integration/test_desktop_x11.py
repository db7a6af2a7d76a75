"""A real desktop's windows, programs, clipboard, pointer and pictures."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deskhand
from deskhand import (
    ActionError,
    KeyPress,
    LaunchFailed,
    LeftClick,
    Move,
    Point,
    Reason,
    Scroll,
    ShellError,
    Type,
    Zoom,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 60.0


def until(desktop: deskhand.Desktop, condition: Callable[[], bool]) -> None:
    """Looks until the condition holds; whoever calls asserts it."""
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        desktop._core.watch.pause(0.05)


def chromium(desktop: deskhand.Desktop, home: Path, url: str, title: str) -> deskhand.Program:
    flags = ["--no-first-run", "--no-default-browser-check", "--disable-sync", "--password-store=basic"]
    flags += ["--no-sandbox"] if os.getuid() == 0 else []
    argv = ["chromium", *flags, f"--user-data-dir={home}/chromium", "--start-maximized", url]
    program = desktop.start(argv, timeout=60)
    until(desktop, lambda: any(window.title.startswith(title) for window in desktop.windows.list()))
    desktop.perform(settle=deskhand.Settle(quiet=0.5, reaction=0.5, timeout=PATIENCE))
    return program


def test_windows_come_up_get_the_keyboard_and_close(desktop: deskhand.Desktop) -> None:
    assert desktop.windows.list() == []
    xterm = desktop.start("xterm").window
    mousepad = desktop.start("mousepad").window
    assert xterm is not None
    assert mousepad is not None
    assert [w.class_name for w in desktop.windows.list()] == ["XTerm", "Mousepad"]
    assert [w.active for w in desktop.windows.list()] == [False, True]
    desktop.windows.activate(xterm)
    assert next(w for w in desktop.windows.list() if w.active).id == xterm.id
    assert desktop.windows.list()[-1].id == xterm.id, "the active window is on top"
    assert desktop.windows.close(xterm)
    assert [w.class_name for w in desktop.windows.list()] == ["Mousepad"]
    with pytest.raises(ActionError, match="no window"):
        desktop.windows.activate(xterm)


def test_alt_tab_goes_to_the_other_window_and_back(desktop: deskhand.Desktop) -> None:
    for name in ("first", "second"):
        desktop.start(["xterm", "-T", name])

    def active() -> str:
        return next((window.title for window in desktop.windows.list() if window.active), "none")

    # One chord, as an agent sends it: Alt is up again before a window manager could look whether it is held.
    for wanted in ("first", "second", "first"):
        desktop.perform(KeyPress(["alt+Tab"]))
        until(desktop, lambda wanted=wanted: active() == wanted)
        assert active() == wanted


def test_a_window_that_asks_before_it_closes_is_still_there(desktop: deskhand.Desktop) -> None:
    window = desktop.start("mousepad").window
    assert window is not None
    desktop.perform(Type("unsaved"))
    assert not desktop.windows.close(window, timeout=1.0)


def test_programs_that_do_not_come_up_say_why(desktop: deskhand.Desktop) -> None:
    with pytest.raises(ShellError, match="no-such-program"):
        desktop.start("no-such-program --x")
    with pytest.raises(LaunchFailed, match="status 3") as failed:
        desktop.start(["bash", "-c", "echo the reason; exit 3"])
    assert "the reason" in failed.value.log_tail
    with pytest.raises(LaunchFailed, match="window of sleep"):
        desktop.start("sleep 60", timeout=0.3)


def test_a_program_gets_the_desktop_s_environment(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    out = tmp_path / "env"
    desktop.start(["xterm", "-e", f"env > {out}; exec cat"], env={"GREETING": "hej"}, cwd=tmp_path)
    until(desktop, lambda: out.exists() and "GREETING" in out.read_text())
    found = dict(line.split("=", 1) for line in out.read_text().splitlines() if "=" in line)
    assert found["DISPLAY"].split(".")[0] == desktop.display
    assert (found["GREETING"], found["PWD"]) == ("hej", str(tmp_path))
    assert "UTF-8" in (found.get("LC_ALL") or found.get("LC_CTYPE") or found["LANG"])


def test_a_program_ignores_no_signal_that_its_guard_does(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    desktop.start(["sh", "-c", f"grep SigIgn /proc/self/status >'{tmp_path}/ignored'; exec xterm"])
    ignored = {
        number for number in signal.Signals if int((tmp_path / "ignored").read_text().split()[1], 16) >> number - 1 & 1
    }
    # Who starts the tests in the background has us ignore some from the beginning; Python itself ignores two more.
    inherited = {number for number in signal.Signals if signal.getsignal(number) is signal.SIG_IGN}
    assert ignored <= inherited - {signal.SIGPIPE, signal.SIGXFSZ}


def test_the_clipboard_both_ways(desktop: deskhand.Desktop, x_environment: dict[str, str]) -> None:
    assert desktop.clipboard.read() is None
    desktop.clipboard.write("naïve ☕ 你好\nline")
    xclip = ["xclip", "-selection", "clipboard"]
    read = subprocess.run([*xclip, "-o"], env=x_environment, capture_output=True, check=True, timeout=PATIENCE)
    assert read.stdout.decode() == "naïve ☕ 你好\nline"
    subprocess.run([*xclip, "-i"], input="Привет".encode(), env=x_environment, check=True, timeout=PATIENCE)
    # It goes to the background before it owns the selection.
    until(desktop, lambda: desktop.clipboard.read() == "Привет")
    assert desktop.clipboard.read() == "Привет"


def test_pasting_says_so_and_gives_the_clipboard_back(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("")
    desktop.start(["mousepad", str(file)])
    desktop.clipboard.write("mine")
    seen = desktop.perform(Type("naïve ☕ 你好 ＠" * 20, paste=True), KeyPress("ctrl+s"))
    assert seen.pasted
    assert desktop.clipboard.read() == "mine"
    # Keys would not bring the last one.
    assert file.read_text().rstrip("\n") == "naïve ☕ 你好 ＠" * 20


def test_the_pointer_is_in_the_picture_and_not_in_the_screen(desktop: deskhand.Desktop) -> None:
    away = desktop.perform(Move((10, 10)))
    there = desktop.perform(Move((500, 300)))
    assert there.cursor == Point(500, 300) == desktop.pointer
    assert not there.changed
    assert there.generation == away.generation
    different = np.argwhere((there.array() != away.array()).any(axis=2))
    assert {tuple(point) for point in different.tolist()} & {(300, 500), (301, 501), (302, 501)}
    without = desktop.screenshot(cursor=False)
    assert not np.array_equal(without.array(), there.array())


def test_a_region_is_that_part_of_the_whole(desktop: deskhand.Desktop) -> None:
    desktop.start("xterm")
    whole = desktop.screenshot(cursor=False)
    part = desktop.screenshot(region=(20, 30, 200, 100), cursor=False)
    assert np.array_equal(part.array(), whole.array()[30:130, 20:220])
    zoomed = desktop.perform(Zoom((20, 30, 200, 100)))
    assert zoomed.size == (200, 100)
    assert zoomed.viewport.to_screen((199, 99)) == (219, 129)
    assert desktop.screenshot(size=(500, 350)).size == (500, 350)


def test_what_changed_is_what_was_drawn(desktop: deskhand.Desktop) -> None:
    program = desktop.start("xterm")
    assert program.window is not None
    before = desktop.screenshot(cursor=False).array()
    seen = desktop.perform(Type("abc"))
    after = desktop.screenshot(cursor=False).array()
    different = (before != after).any(axis=2)
    covered = np.zeros_like(different)
    for x, y, width, height in seen.rects:
        covered[y : y + height, x : x + width] = True
    assert different.any()
    assert not (different & ~covered).any()
    assert covered.sum() < 3 * different.sum() + 2000


def test_a_smooth_scroll_has_ended_when_it_returns(desktop: deskhand.Desktop, home: Path) -> None:
    page = home / "long.html"
    rows = "".join(f"<p>row {n}</p>" for n in range(500))
    page.write_text(f"<!doctype html><title>long</title><body>{rows}")
    chromium(desktop, home, f"file://{page}", "long")
    desktop.perform(LeftClick((500, 400)))
    # Its end is the subject here; on a loaded machine the browser may take long to begin.
    patient = deskhand.Settle(reaction=2.0, timeout=PATIENCE)
    for n in range(6):
        seen = desktop.perform(Scroll((500, 400), magnitude=1, direction="down"), settle=patient)
        assert (seen.changed, seen.reason) == (True, Reason.QUIET), n
        desktop._core.watch.pause(0.5)
        assert np.array_equal(seen.array()[150:], desktop.screenshot().array()[150:]), n


def test_a_desktop_without_a_window_manager(launch: Callable[..., deskhand.Desktop]) -> None:
    desktop = launch(size=(600, 400), window_manager=None)
    assert desktop.windows.list() == []
    for title, place in {"left": "40x10+0+0", "right": "40x10+100+50"}.items():
        program = desktop.start(["xterm", "-T", title, "-geometry", place])
        assert program.window.title == title
    assert [window.title for window in desktop.windows.list()] == ["left", "right"]
    left, right = desktop.windows.list()
    assert (left.class_name, left.rect[:2], right.rect[:2]) == ("XTerm", (1, 1), (101, 51))
    for window in (left, right, left):
        desktop.windows.activate(window)
        assert [(w.id, w.active) for w in desktop.windows.list()][-1] == (window.id, True), "on top, with the keyboard"
    desktop.perform(Type("exit\n"))
    until(desktop, lambda: len(desktop.windows.list()) == 1)
    with deskhand.connect(f"x11:{desktop.display}", view_only=True, xauthority=desktop.xauthority) as looking:
        for change in (looking.windows.activate, looking.windows.close):
            with pytest.raises(deskhand.UnsupportedAction, match="view_only"):
                change(right)
    assert desktop.windows.close(right)
    assert desktop.windows.list() == []
    with pytest.raises(ActionError, match="no window"):
        desktop.windows.activate(right)


def test_a_named_desktop_is_found_by_its_name(launch: Callable[..., deskhand.Desktop]) -> None:
    desktop = launch(size=(600, 400), name=f"test-{os.getpid()}")
    with pytest.raises(ActionError, match="already"):
        launch(name=desktop.name)
    with deskhand.connect(str(desktop.name), view_only=True) as looking:
        assert looking.size == (600, 400)
        assert looking.screenshot().png == desktop.screenshot().png
    with pytest.raises(deskhand.ConnectFailed, match="no desktop of that name"):
        deskhand.connect("nobody-of-that-name")
    with pytest.raises(ActionError, match="cannot connect"):
        deskhand.connect("rdp://host")
