"""A local desktop starts clean: what its programs see of the user's own, and what an earlier run has left there."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import deskhand
from conftest import need
from deskhand.launchers.local.environment import Home

_WRITES = """
import sys
import deskhand
from deskhand import KeyPress, LeftClick, Type
with deskhand.launch() as desktop:
    desktop.start("mousepad")
    desktop.perform(LeftClick((640, 400)), Type("naïve ☕ text 你好"), KeyPress(["ctrl", "a"]))
    desktop.perform(KeyPress(["ctrl", "c"]))
    print(desktop.clipboard.read())
"""


@pytest.mark.soak
def test_no_run_sees_what_an_earlier_one_left(home: Path) -> None:
    """In the user's own home, mousepad greets the second run with what the first did not save."""
    before = sorted(home.rglob("*"))
    for _ in range(5):
        driver = {**os.environ, "HOME": str(home)}
        ran = subprocess.run([sys.executable, "-c", _WRITES], env=driver, capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.stderr) == ("naïve ☕ text 你好\n", "")
    assert sorted(home.rglob("*")) == before


def ask(desktop: deskhand.Desktop, *argv: str) -> str:
    """What a program on the desktop prints."""
    need(argv[0], {"fc-list": "fontconfig", "dbus-send": "dbus-bin"}.get(argv[0], argv[0]))
    environment = desktop._core.environment
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False).stdout


def test_nothing_leads_to_the_users_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    with deskhand.launch() as desktop:
        assert desktop.host.home is not None
        assert ask(desktop, "sh", "-c", "echo ~; echo $SSH_AUTH_SOCK") == f"{desktop.host.home}\n\n"
        assert not (Path(desktop.host.home) / ".ssh").exists()
        ping = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/", "a.b.c"]
        answer = subprocess.run(ping, env=desktop._core.environment, capture_output=True, text=True, check=False)
        assert "ChildExited" in answer.stderr
    assert not Path(desktop.host.home).exists()
    with deskhand.launch(home=False) as desktop:
        assert ask(desktop, "sh", "-c", "echo ~; echo $SSH_AUTH_SOCK") == f"{home}\n/run/agent\n"


def test_installed_fonts_and_themes_are_seen(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where the base directories of XDG are elsewhere; a desktop that ends leaves them as they are."""
    data = tmp_path / "data"
    fonts = [home / ".fonts" / "own.ttf", data / "fonts" / "shared.ttf"]
    for path in fonts:
        path.parent.mkdir(parents=True)
        shutil.copy("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", path)
    (home / ".themes" / "Mine").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    with deskhand.launch() as desktop:
        assert desktop.host.home is not None
        listed = {line.partition(":")[0] for line in ask(desktop, "fc-list").splitlines()}
        shown = Path(desktop.host.home)
        assert {str(shown / ".fonts" / "own.ttf"), str(shown / ".local/share/fonts/shared.ttf")} <= listed
        assert (shown / ".themes" / "Mine").is_dir()
    assert not shown.exists()
    assert all(path.exists() for path in fonts)
    assert (home / ".themes" / "Mine").is_dir()


def test_what_the_session_bus_starts_is_on_the_desktop(tmp_path: Path) -> None:
    template = tmp_path / "template"
    services = template / ".local/share/dbus-1/services"
    services.mkdir(parents=True)
    said = tmp_path / "said"
    command = f"/bin/sh -c 'echo $DISPLAY $HOME $XAUTHORITY > {said}; exit 1'"
    (services / "own.service").write_text(f"[D-BUS Service]\nName=org.example.Own\nExec={command}\n")
    with deskhand.launch(home=template) as desktop:
        ask(desktop, "dbus-send", "--session", "--print-reply", "--dest=org.example.Own", "/", "a.b.c")
        assert said.read_text() == f"{desktop.display} {desktop.host.home} {desktop.xauthority}\n"


def test_a_dirty_template_is_copied_but_for_what_is_no_file(tmp_path: Path) -> None:
    """What is in a home that somebody has used: sockets, pipes, links that lead anywhere, odd names."""
    template, place = tmp_path / "template", tmp_path / "place"
    (template / "deep").mkdir(parents=True)
    place.mkdir()
    (template / "file").write_text("kept")
    (template / "link").symlink_to("/etc/passwd")
    (template / "dangling").symlink_to("/nowhere")
    (template / "odd\udcff\n").write_text("kept too")
    os.mkfifo(template / "deep" / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(template / "socket"))
    with pytest.warns(deskhand.LeftOutWarning) as warned:
        Home(place, template).fill()
    assert "'deep/pipe' (a named pipe)" in str(warned[0].message)
    assert "'socket' (a socket)" in str(warned[0].message)
    home = place / "home"
    assert sorted(path.name for path in home.rglob("*")) == ["dangling", "deep", "file", "link", "odd\udcff\n"]
    assert (home / "link").readlink() == Path("/etc/passwd")


def test_a_template_that_cannot_be_copied_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(deskhand.ActionError, match="home: there is no directory"):
        Home(tmp_path, tmp_path / "absent").fill()
    template, place = tmp_path / "template", tmp_path / "place"
    template.mkdir()
    place.mkdir()
    (template / "file").write_text("x")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(deskhand.BackendError, match=r"home: cannot copy .*template/file.*No space left"):
        Home(place, template).fill()
