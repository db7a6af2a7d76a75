"""A desktop that is made as new: nothing of what was on it before is left, and who kept the old object can do nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import LeftMouseDown, PressKeys, Type
from deskhand.desktop.access import pass_on
from faults.helpers import NOTHING, guard_pid, marked, server_pid, until, x_environment, xclient

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTLIVE = "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nos.setsid()\ntime.sleep(99)"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A home directory to copy."""
    path = tmp_path / "template"
    (path / ".config").mkdir(parents=True)
    (path / ".config" / "settings").write_text("as delivered")
    (path / "link").symlink_to("/etc/hostname")
    return path


@pytest.fixture
def used(runtime: Path, mark: str, template: Path) -> Iterator[deskhand.Desktop]:
    """A desktop on which somebody left whatever can be left."""
    del runtime, mark
    desktop = deskhand.launch(size=(640, 480), home=template)
    home = Path(desktop._core.environment["HOME"])
    desktop.start("xterm")
    desktop.start(["xterm", "-e", sys.executable, "-c", f"import os\nif os.fork() == 0:\n exec({_OUTLIVE!r})\ninput()"])
    (home / "secret").write_text("mine")
    (home / ".config" / "settings").write_text("changed")
    (home / "link").unlink()
    (home / "read-only").mkdir()
    (home / "read-only" / "file").touch()
    (home / "read-only").chmod(0o500)
    (home.parent / "tmp" / "left").write_text("mine")
    desktop.clipboard.write("secret")
    desktop.resize((320, 240))
    desktop.perform(Type("abc"), PressKeys(["shift"]), LeftMouseDown((20, 20)), settle=False)
    yield desktop
    desktop.close()


def test_nothing_is_left(used: deskhand.Desktop, mark: str) -> None:
    """Windows, programs (also those that made themselves daemons and ignore SIGTERM), files, clipboard, keys: all are gone."""
    before = marked(mark)
    assert used.display is not None
    server = server_pid(used.display)
    kept = pass_on(used)
    with kept.reset() as desktop:
        assert set(marked(mark)) & set(before) == {server, guard_pid(mark)}
        assert sorted(marked(mark).values()) == sorted(["Xvfb", "dbus-daemon", "openbox", "python"])
        assert desktop.windows.list() == []
        assert desktop.clipboard.read() is None
        assert desktop.size == (640, 480)
        assert desktop.pointer == (320, 240)
        home = Path(desktop._core.environment["HOME"])
        assert (home / ".config" / "settings").read_text() == "as delivered"
        assert (home / "link").is_symlink()
        assert not (home / "secret").exists()
        assert not (home / "read-only").exists()
        assert list((home.parent / "tmp").iterdir()) == []
        assert list(home.parent.glob("xterm*.log")) == []
        with xclient(desktop) as witness:
            assert witness.ask("pressed") == NOTHING
            assert witness.ask("clipboard_owner") == 0
        assert desktop.start("xterm").window is not None
        for stale in (used, kept):
            with pytest.raises(deskhand.BackendError, match="closed"):
                stale.perform(Type("x"))
            stale.interrupt()
            stale.close()
        assert desktop.perform(Type("x")).changed
    assert marked(mark) == {}


def test_a_kept_cookie_is_refused(used: deskhand.Desktop, tmp_path: Path) -> None:
    """Who could join the display before, from outside of it, cannot any more."""
    assert used.xauthority is not None
    cookie = tmp_path / "kept"
    cookie.write_bytes(used.xauthority.read_bytes())
    environment = {**x_environment(used), "XAUTHORITY": str(cookie)}
    inside = subprocess.Popen(["xev", "-root"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert subprocess.run(["xdpyinfo"], env=environment, capture_output=True, check=False).returncode == 0
    with used.reset():
        assert subprocess.run(["xdpyinfo"], env=environment, capture_output=True, check=False).returncode != 0
        until(lambda: inside.poll() is not None, 5, "the other client to be thrown out")


def test_a_renewal_that_fails_leaves_nothing(used: deskhand.Desktop, mark: str, template: Path) -> None:
    """The template is gone: the error says so, and the desktop has been ended with all that belongs to it."""
    template.rename(template.with_name("elsewhere"))
    with pytest.raises(deskhand.ActionError, match="template"):
        used.reset()
    assert marked(mark) == {}
    used.close()


def test_a_dead_server_is_not_renewed(used: deskhand.Desktop, mark: str) -> None:
    assert used.display is not None
    os.kill(server_pid(used.display), signal.SIGKILL)
    with pytest.raises(deskhand.DesktopLost):
        used.reset()
    assert marked(mark) == {}


def test_only_what_can_be_renewed_is(runtime: Path) -> None:
    del runtime
    with deskhand.launch(size=(320, 240)) as desktop:
        url = f"x11:{desktop.display}"
        with deskhand.connect(url, xauthority=desktop.xauthority, view_only=True) as other:
            with pytest.raises(deskhand.UnsupportedAction, match="renew"):
                other.reset()
            assert other.size == (320, 240)


def test_a_home_that_is_none(runtime: Path, tmp_path: Path) -> None:
    del runtime
    with pytest.raises(deskhand.ActionError, match="nowhere"):
        deskhand.launch(home=tmp_path / "nowhere")
