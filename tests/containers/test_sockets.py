"""The directory of a container's X socket, which the container can write: whatever is in it, nobody outside is harmed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers import hostile
from containers.helpers import own_name
from deskhand.backends.x11.backend import X11Backend
from deskhand.launchers.docker.confinement import confined
from faults.helpers import ROOT, need
from faults.scale import EVIDENCE, HOSTILE_RESETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.launchers.docker.engine import Engine

PROGRAM = ROOT / "tests" / "containers" / "hostile.py"
LIMIT = 1800
# Whoever runs the tests; and, where that is root, the user that programs in a container have too.
DRIVERS = ("root", "user") if os.getuid() == 0 else ("user",)


def interpreter(prefix: list[str], environment: dict[str, str]) -> str:
    """A Python that this user may run, with the packages of the one that runs the tests."""
    for found in (sys.executable, shutil.which(f"python3.{sys.version_info[1]}", path="/usr/local/bin:/usr/bin:/bin")):
        # What it starts has to start too: what setpriv itself starts still passes through directories of root's.
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import deskhand, docker, pytest'], check=True)"
        ask = [*prefix, str(found), "-c", code]
        if found and subprocess.run(ask, env=environment, capture_output=True, check=False).returncode == 0:
            return found
    pytest.fail(f"no python3.{sys.version_info[1]} can be run by user {hostile.USER[0]}: install one in /usr/bin")


@contextlib.contextmanager
def somebody(who: str, image: str, engine: Engine) -> Iterator[tuple[list[str], dict[str, str]]]:
    """How a Python program is started as that user, and its environment."""
    packages = [ROOT / "python", *(Path(place) for place in sys.path if place.endswith("site-packages"))]
    # Not below the tests' own directory, which is their user's only.
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder:
        prefix = []
        if who == "user" and os.getuid() == 0:
            os.chown(folder, *hostile.USER)
            group = Path(engine.address.url.removeprefix("unix://")).stat().st_gid
            numbers = [f"--reuid={hostile.USER[0]}", f"--regid={hostile.USER[1]}", f"--groups={group}"]
            prefix = [need("setpriv", "util-linux"), *numbers]
        environment = {
            **os.environ,
            "HOME": folder,
            "XDG_RUNTIME_DIR": folder,
            "PYTHONPATH": ":".join(map(str, dict.fromkeys(packages))),
            "DESKHAND_TEST_IMAGE": image,
        }
        yield [*prefix, interpreter(prefix, environment)], environment


def run(who: str, image: str, engine: Engine, *arguments: str) -> dict[str, Any]:
    """`hostile.py` as that user."""
    with somebody(who, image, engine) as (python, environment):
        command = [*python, str(PROGRAM), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture(scope="module")
def outcomes(image: str) -> Callable[[str], dict[str, str]]:
    """What came of each attack, by who drives."""
    from deskhand.launchers.docker.engine import connect_engine  # noqa: PLC0415

    @functools.cache
    def told(who: str) -> dict[str, str]:
        engine = connect_engine()
        try:
            return run(who, image, engine, "attacks")
        finally:
            engine.close()

    return told


@pytest.mark.parametrize("who", [DRIVERS[0], *(pytest.param(who, marks=pytest.mark.soak) for who in DRIVERS[1:])])
@pytest.mark.parametrize("name", hostile.NAMES)
def test_an_attack_does_no_harm(outcomes: Callable[[str], dict[str, str]], who: str, name: str) -> None:
    assert outcomes(who)[name] == ""


# As its own user first: what root could overwrite is in the attacks above, and in the whole proof.
@pytest.mark.soak
@pytest.mark.parametrize("who", DRIVERS if EVIDENCE else DRIVERS[-1:])
def test_a_hostile_container_over_many_resets(image: str, engine: Engine, who: str) -> None:
    told = run(who, image, engine, "resets", str(HOSTILE_RESETS))
    print(who, told)
    assert told["resets"] == HOSTILE_RESETS
    assert told["tried"] > HOSTILE_RESETS
    assert (told["changed"], told["knocks"], told["directory left"]) == (False, 0, False)


@pytest.fixture
def by_hand(engine: Engine, image: str, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A container that somebody started with a directory for its sockets, in which it makes its cookie itself."""
    sockets = tmp_path / "x11"
    sockets.mkdir(mode=0o700)
    user = hostile.USER if os.getuid() == 0 else (os.getuid(), os.getgid())
    if os.getuid() == 0:
        os.chown(sockets, *user)
    host = confined(
        engine,
        memory=1 << 30,
        cpus=1,
        processes=200,
        tmpfs={
            "/tmp": "mode=1777",
            "/run": f"uid={user[0]},gid={user[1]}",
            "/home/user": f"uid={user[0]},gid={user[1]}",
        },
        binds={str(sockets): {"bind": hostile.SOCKETS, "mode": "rw"}},
        network_mode="none",
    )
    made = engine.api.create_container(
        image, name=own_name("by-hand"), user=f"{user[0]}:{user[1]}", host_config=host, detach=True
    )
    try:
        engine.api.start(made["Id"])
        yield made["Id"], sockets
    finally:
        engine.api.remove_container(made["Id"], force=True)


def test_the_cookie_of_another_container_is_taken_from_it_once(
    by_hand: tuple[str, Path], runtime: Path, tmp_path: Path
) -> None:
    container, sockets = by_hand
    with deskhand.connect(f"docker://{container}") as desktop:
        cookie = Path(str(desktop.xauthority))
        assert cookie.is_relative_to(runtime)
        assert cookie.read_bytes() == (sockets / "xauthority").read_bytes()
        assert str(desktop.display).startswith("unix:/")
        # As who cleans up after a killed driver does.
        X11Backend(str(desktop.display), xauthority=cookie, view_only=True).close()
        secret = tmp_path / "secret"
        shutil.copy(cookie, secret)
        desktop.machine.run(f"cd {hostile.SOCKETS} && mv xauthority real && ln -s {secret} xauthority")
        with pytest.raises(deskhand.ConnectFailed, match=r"uthorization|authentication"):
            deskhand.connect(f"docker://{container}", view_only=True, timeout=1)
        desktop.machine.run(f"cd {hostile.SOCKETS} && mv -f real xauthority")
        deskhand.connect(f"docker://{container}", view_only=True).close()
    assert not cookie.exists()
    assert list(runtime.glob("d-*")) == []


# Says who it is, and what becomes of that: whether the bus still listens, or has hung up.
_KNOCK = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as bus:
    bus.connect(sys.argv[1])
    bus.sendall(b"\\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\\r\\n")
    if not bus.recv(100).startswith(b"OK "):
        sys.exit("refused")
    bus.sendall(b"BEGIN\\r\\n")
    bus.settimeout(0.5)
    try:
        sys.exit("hung up" if not bus.recv(100) else "spoke first")
    except TimeoutError:
        print("listens")
"""


def test_what_programs_of_another_container_show_is_read_by_its_user_only(by_hand: tuple[str, Path]) -> None:
    """Its directory may be open to everybody, as this one: X asks for the cookie, and the accessibility bus who it is."""
    container, sockets = by_hand
    with deskhand.connect(f"docker://{container}") as desktop:
        assert len(desktop.elements(timeout=30)) == 0
        sockets.chmod(0o755)
        told = {}
        # One whom nobody knows in there, and one who is known. Only root can play others.
        for user in (hostile.USER[0], 4343, 33) if os.getuid() == 0 else (os.getuid(),):
            rights = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.getuid() == 0 else []
            # By its directory, which it could not find from above: that is the tests' own.
            command = [need("setpriv", "util-linux"), *rights, "/usr/bin/python3", "-c", _KNOCK, "bus_0"]
            done = subprocess.run(command, cwd=sockets, capture_output=True, text=True, check=False)
            told[user] = done.stdout or done.stderr
    assert told.pop(desktop._core.inside.slot.user[0]) == "listens\n"  # type: ignore[union-attr]
    assert set(told.values()) <= {"refused\n", "hung up\n"}, told


def test_after_a_restart_by_hand_it_is_found_again(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    engine.api.restart(desktop.name, timeout=0)
    with deskhand.connect(f"docker://{desktop.name}") as again:
        assert again.display == desktop.display
        environment = {**os.environ, "DISPLAY": str(again.display), "XAUTHORITY": str(again.xauthority)}
        done = subprocess.run(["xdpyinfo"], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_where_the_other_process_cannot_be_seen_the_status_says_so(
    image: str, driver_environment: dict[str, str]
) -> None:
    """A driver in a PID namespace of its own, as in a container beside the desktop's."""
    script = (
        "import deskhand, json\n"
        f"with deskhand.launch('docker', image={image!r}) as desktop:\n"
        "    desktop.clipboard.write('text')\n"
        "    print(json.dumps([desktop.clipboard.read(), *desktop.status]))\n"
    )
    rights = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    command = [need("unshare", "util-linux"), *rights, "--pid", "--fork", "--mount-proc", sys.executable, "-c", script]
    done = subprocess.run(command, env=driver_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text, *status = json.loads(done.stdout)
    assert text == "text"
    assert [sentence for sentence in status if "only the owner of its socket was checked" in sentence]


def test_a_driver_may_be_neither_root_nor_the_containers_user(image: str, engine: Engine) -> None:
    """It may give the sockets no names of its own, so no display number leads to what the container can redirect.

    Nor need the image know that user: without a name for it the session bus would end, and with it the desktop. The
    accessibility bus lets that driver in.
    """
    script = (
        "import deskhand, json\n"
        f"with deskhand.launch('docker', image={image!r}, user=(4242, 4242)) as desktop:\n"
        "    desktop.clipboard.write('text')\n"
        "    desktop = desktop.reset()\n"
        "    assert len(desktop.elements(timeout=30)) == 0\n"
        "    desktop.machine.run('until test -S $XDG_RUNTIME_DIR/bus; do sleep 0.01; done')\n"
        "    print(json.dumps([desktop.clipboard.read(), desktop.display, len(desktop.windows.list()),\n"
        "        desktop.machine.logs(), desktop.machine.run('whoami; pgrep -xc dbus-daemon').stdout]))\n"
        "    desktop.close()\n"
    )
    with somebody("user", image, engine) as (python, environment):
        done = subprocess.run([*python, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    clipboard, display, windows, log, inside = json.loads(done.stdout)
    assert (clipboard, windows) == (None, 0)
    assert "ended" not in log
    assert inside.split()[0] == "desktop"
    assert int(inside.split()[1]) > 0
    assert display.startswith("unix:/") or Path("/proc/sys/fs/protected_hardlinks").read_text().strip() == "0"
