"""Hosts that are not as they should be: a desktop comes up all the same, or an error names what is wrong."""

from __future__ import annotations

import itertools
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import KeyPress
from deskhand.launchers.local import x_server
from faults.helpers import DRIVER, display_files, in_namespace, marked, need, server_pid
from faults.scale import THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534
_TRY = """
try:
    with deskhand.launch(size=(320, 240)) as desktop:
        seen = desktop.perform(KeyPress(["a"]))
        say(ok=seen.settled, status=desktop.status)
except DeskhandError as error:
    say(error=type(error).__name__, message=str(error))
"""


def _unused_number() -> int:
    """A display number that nobody uses: another run of these tests has others, and `launch` takes lower ones."""
    return random.SystemRandom().randrange(20_000, 50_000)


class _UnusedNumbers:
    """As many as are asked for, because one may be used by the time that it is tried; `given` is the last one."""

    given = 0

    def __iter__(self) -> _UnusedNumbers:
        return self

    def __next__(self) -> int:
        self.given = _unused_number()
        return self.given


@pytest.fixture
def stale() -> Iterator[list[Path]]:
    """Locks of four kinds, on the only four numbers that a launch may then try first."""
    first = _unused_number()
    paths = [Path(f"/tmp/.X{number}-lock") for number in range(first, first + 4)]
    gone = subprocess.Popen(["true"])
    gone.wait()
    contents = [f"{os.getpid():10d}\n", f"{gone.pid:10d}\n", "", "garbage\n"]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    paths[3].chmod(0)
    yield paths
    for path in paths:
        path.unlink(missing_ok=True)


def test_stale_locks(
    launch: Callable[..., deskhand.Desktop], stale: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F6: locks of a live foreign process, of a dead one, empty and unreadable: another number, and nobody's lock removed."""
    before = [(path.stat().st_ino, path.stat().st_size) for path in stale]
    locked = [int(path.stem.removeprefix(".X").removesuffix("-lock")) for path in stale]
    free = _UnusedNumbers()
    numbers = itertools.chain(locked, locked, free)
    monkeypatch.setattr(secrets, "randbelow", lambda _: next(numbers) - x_server._FIRST_NUMBER)
    desktop = launch(size=(320, 240))
    assert desktop.display == f":{free.given}"
    desktop.close()
    assert [(path.stat().st_ino, path.stat().st_size) for path in stale] == before


def test_lock_taken_meanwhile(launch: Callable[..., deskhand.Desktop], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server takes the number between our look and our start: the next number is tried."""
    first = launch(size=(320, 240))
    assert first.display is not None
    taken = int(first.display[1:])
    free = _UnusedNumbers()
    numbers = itertools.chain([taken], free)
    monkeypatch.setattr(x_server, "_free_number", lambda: next(numbers))
    second = launch(size=(200, 100))
    assert second.display == f":{free.given}"
    assert first.perform(KeyPress(["a"])).settled
    assert first.size == (320, 240)


@pytest.mark.soak
def test_many_at_once(runtime: Path, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F30: 200 launches, eight at a time, on so few numbers that they are all in use again and again."""
    monkeypatch.setattr(x_server, "_FIRST_NUMBER", 20_100)
    monkeypatch.setattr(x_server, "_NUMBERS", 2 * THREADS)
    living: set[object] = set()
    displays: set[str] = set()

    def one(number: int) -> None:
        with deskhand.launch(size=(200 + number, 100), window_manager=None) as desktop:
            assert desktop.display is not None
            assert desktop.xauthority is not None
            lock, socket = display_files(desktop.display)
            own = {desktop.display, server_pid(desktop.display), socket.stat().st_ino, desktop.xauthority}
            assert not own & living
            living.update(own)
            displays.add(desktop.display)
            # The server that it is connected to is the one that it started.
            assert desktop.screenshot().size == (200 + number, 100)
            assert lock.exists()
            living.difference_update(own)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, range(200)))
    assert not living
    assert marked(mark) == {}
    assert [path for display in displays for path in display_files(display)] == []
    assert [path.name for path in runtime.iterdir() if path.is_dir()] == []


def _empty_tmp() -> str:
    """The commands that give a mount namespace an empty /tmp, in which this project stays where it is."""
    root = Path(sys.prefix).parent
    empty = "mount -t tmpfs -o mode=1777 tmpfs /tmp"
    if not root.is_relative_to("/tmp"):
        return empty
    return f"mount --bind {root} /mnt\n{empty}\nmkdir -p {root}\nmount --bind /mnt {root}"


def test_read_only_tmp(environment: dict[str, str]) -> None:
    """F7: nothing can be written to /tmp: an error that names it."""
    run = Path("/dev/shm") / f"deskhand-test-{os.getpid()}"
    run.mkdir(mode=0o700)
    try:
        said = in_namespace(
            f"{_empty_tmp()}\nmkdir -m 1777 /tmp/.X11-unix\nmount -o remount,ro /tmp",
            _TRY,
            {**os.environ, **environment, "HOME": str(run), "XDG_RUNTIME_DIR": str(run)},
        )
    finally:
        shutil.rmtree(run)
    assert said["error"] == "LaunchFailed"
    assert "/tmp" in str(said["message"])


def test_missing_socket_directory(environment: dict[str, str]) -> None:
    """F7: no /tmp/.X11-unix: it is made, with the mode that X clients expect."""
    said = in_namespace(
        _empty_tmp(),
        _TRY.replace("ok=seen.settled", "ok=seen.settled, mode=os.stat('/tmp/.X11-unix').st_mode & 0o7777"),
        {**os.environ, **environment, "HOME": "/", "XDG_RUNTIME_DIR": ""},
    )
    assert said == {"ok": True, "mode": 0o1777, "status": []}


def test_unwritable_socket_directory(environment: dict[str, str]) -> None:
    """F7: /tmp/.X11-unix not writable for an ordinary user: an error that names it and says what to do."""
    need("setpriv", "util-linux")
    code = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n" + _TRY
    said = in_namespace(
        f"{_empty_tmp()}\nmkdir -m 0755 /tmp/.X11-unix",
        code,
        {**os.environ, **environment, "HOME": "/", "XDG_RUNTIME_DIR": ""},
    )
    assert said["error"] == "LaunchFailed"
    assert "/tmp/.X11-unix" in str(said["message"])
    assert "chmod 1777" in str(said["message"])


_TRY_FULL = """
try:
    deskhand.launch(size=(320, 240), name="full", window_manager=None).close()
    said = {}
except DeskhandError as error:
    said = dict(error=type(error).__name__, message=str(error))
place = os.environ["XDG_RUNTIME_DIR"] + "/deskhand"
say(**said, left=[name for name in os.listdir(place) if name != ".lock"])
"""


@pytest.mark.parametrize("pages", [0, 1])
def test_full_disk(environment: dict[str, str], short: Path, pages: int) -> None:
    """F22: no room, or only for the first file, where a desktop keeps its own: an error that names it, and nothing is left."""
    run = short
    setup = f"""mount -t tmpfs -o mode=0700,size=256k tmpfs {run}
mkdir -m 0700 {run}/deskhand
dd if=/dev/zero of={run}/filler bs=4k 2>/dev/null || true
truncate -s -{pages * 4096} {run}/filler"""
    said = in_namespace(setup, _TRY_FULL, {**os.environ, **environment, "HOME": "/", "XDG_RUNTIME_DIR": str(run)})
    assert said["left"] == []
    assert said["error"] == "LaunchFailed", said
    assert f"{run}/deskhand: No space left" in str(said["message"])


def _launch_with(environment: dict[str, str], code: str = _TRY) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER + code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _path_without(tmp_path: Path, *programs: str) -> str:
    """A PATH with everything that a launch may use except these programs."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in {"Xvfb", "openbox", "dbus-daemon", "xkbcomp", "sh", "xterm"} - set(programs):
        path = shutil.which(name)
        if path is not None:
            (directory / name).symlink_to(path)
    return str(directory)


def test_no_bus(driver_environment: dict[str, str], tmp_path: Path) -> None:
    """F19: without dbus-daemon a desktop comes up."""
    said = _launch_with({**driver_environment, "PATH": _path_without(tmp_path, "dbus-daemon")})
    assert said.get("ok") is True, said


def test_no_server(driver_environment: dict[str, str], tmp_path: Path) -> None:
    """Without Xvfb: an error that names the package."""
    said = _launch_with({**driver_environment, "PATH": _path_without(tmp_path, "Xvfb")})
    assert said["error"] == "LaunchFailed"
    assert "apt-get install xvfb" in str(said["message"])


def test_no_window_manager(driver_environment: dict[str, str], tmp_path: Path) -> None:
    """Without any window manager: an error that says what to do."""
    said = _launch_with({**driver_environment, "PATH": _path_without(tmp_path, "openbox")})
    assert said["error"] == "LaunchFailed"
    assert "window_manager=None" in str(said["message"])


def test_no_runtime_directory(driver_environment: dict[str, str]) -> None:
    """F19: no XDG_RUNTIME_DIR, or one that does not exist: /tmp serves."""
    without = {key: value for key, value in driver_environment.items() if key != "XDG_RUNTIME_DIR"}
    assert _launch_with(without).get("ok") is True
    assert _launch_with({**without, "XDG_RUNTIME_DIR": "/nonexistent"}).get("ok") is True


def test_no_home(driver_environment: dict[str, str]) -> None:
    """F19: HOME is not there or cannot be written: a desktop comes up, and programs run."""
    code = _TRY.replace("seen =", "desktop.start('xterm'); seen =")
    for home in ("/nonexistent", "/proc"):
        assert _launch_with({**driver_environment, "HOME": home}, code).get("ok") is True
    without = {key: value for key, value in driver_environment.items() if key != "HOME"}
    assert _launch_with(without, code).get("ok") is True


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "xx_YY.UTF-8"}, {"LC_ALL": "POSIX"}, {}])
def test_locales(driver_environment: dict[str, str], tmp_path: Path, locale: dict[str, str]) -> None:
    """F18: LANG=C, a locale that is not installed, none at all: UTF-8 text arrives in a terminal."""
    text = "naïve ☕ Жук 漢字 żółć"
    out = tmp_path / "out"
    code = f"""
with deskhand.launch(size=(500, 300)) as desktop:
    desktop.start(["xterm", "-e", "sh", "-c", "stty -echo; cat > {out}"])
    desktop.perform(Type({text!r}), KeyPress(["Return"]), KeyPress(["ctrl", "d"]))
    deadline = time.monotonic() + 5
    while desktop.windows.list() and time.monotonic() < deadline:
        desktop.perform(Wait(0.02))
    say(done=not desktop.windows.list())
"""
    environment = {key: value for key, value in driver_environment.items() if not key.startswith(("LANG", "LC_"))}
    assert _launch_with({**environment, **locale}, code) == {"done": True}
    assert out.read_text(encoding="utf-8") == text + "\n"


def test_wrong_cookie(desktop: deskhand.Desktop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cookie file with another cookie: AuthFailed; one that is not there or broken: ConnectFailed."""
    assert desktop.xauthority is not None
    data = desktop.xauthority.read_bytes()
    wrong = tmp_path / "wrong"
    wrong.write_bytes(data[: data.index(b"COOKIE-1") + 10] + bytes(16))
    with pytest.raises(deskhand.AuthFailed, match="xauthority="):
        deskhand.connect(f"x11:{desktop.display}", xauthority=wrong)
    for path, content in ((tmp_path / "none", None), (tmp_path / "broken", b"\x01\x00\xff\xff")):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises((deskhand.ConnectFailed, deskhand.AuthFailed)):
            deskhand.connect(f"x11:{desktop.display}", xauthority=path)
    assert desktop.perform(KeyPress(["a"]), KeyPress(["b"])).settled
    assert capsys.readouterr().out == ""


def test_no_such_display() -> None:
    """A display that is not there: ConnectFailed that names it, at once, and no TCP port is asked."""
    with pytest.raises(deskhand.ConnectFailed, match=":19999") as caught:
        deskhand.connect("x11::19999")
    assert "localhost" not in str(caught.value)
    for url in (
        "",
        "x11:",
        "x11:nonsense",
        "vnc//",
        "no such name",
        "http://example.invalid",
        "x11::-1",
        "x11::99999999",
    ):
        with pytest.raises((deskhand.ActionError, deskhand.ConnectFailed)):
            deskhand.connect(url, timeout=0.1)
