"""A driver whose container is hostile, in a process of its own: it tells what became of this machine.

Usage: `hostile.py attacks` or `hostile.py resets COUNT`. It writes one JSON object to standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand.backends.x11.backend import X11Backend
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOCKETS = "/tmp/.X11-unix"
USER = (1000, 1000)
# Process, user and group of who is at the other end of a local socket.
_UCRED = struct.Struct("3i")
SIZE = (800, 600)
LIMIT = 60
# What a hostile program has done before its driver comes.
ATTEMPTS = 30
INSIDE = Path(__file__).with_name("hostile_inside.py")


class Hung(BaseException):
    """An attack made the driver wait without end."""


class Host:
    """What of this machine must stay as it is: files, and a display of somebody else's."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="deskhand-host-"))
        # What is not found cannot be overwritten: the container's user may look, but not write.
        self.home.chmod(0o755)
        self.files = [self.home / name for name in (".Xauthority", "shadow", "script")]
        for number, path in enumerate(self.files):
            path.write_bytes(b"canary" * (number + 1))
            path.chmod(0o600)
        self.absent = self.home / "absent"
        self.knocks = 0
        self.listener = socket.socket(socket.AF_UNIX)
        Path(SOCKETS).mkdir(mode=0o1777, exist_ok=True)
        while True:
            self.display = Path(SOCKETS, f"X{random.randrange(10_000, 60_000)}")
            with contextlib.suppress(OSError):
                self.listener.bind(str(self.display))
                break
        self.display.chmod(0o777)
        self.listener.listen()
        threading.Thread(target=self._count, daemon=True).start()
        self.before = self.look()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.knocks += 1
            connection.close()

    def look(self) -> object:
        found = [self.home.lstat(), *(path.lstat() for path in self.files)]
        told = [(i.st_mode, i.st_uid, i.st_gid, i.st_size, i.st_mtime_ns, i.st_ctime_ns, i.st_nlink) for i in found[1:]]
        return (
            told,
            sorted(path.name for path in self.home.iterdir()),
            found[0].st_mode,
            [path.read_bytes() for path in self.files],
        )

    def close(self) -> None:
        self.listener.close()
        self.display.unlink()
        for path in self.home.iterdir():
            path.unlink()
        self.home.rmdir()


def launch(**options: Any) -> deskhand.Desktop:
    image = os.environ["DESKHAND_TEST_IMAGE"]
    user = USER if os.getuid() == 0 else (os.getuid(), os.getgid())
    return deskhand.launch("docker", image=image, user=user, size=SIZE, vnc=True, **options)


def sockets_of(desktop: deskhand.Desktop) -> Path:
    """The directory that the container can write."""
    assert desktop.xauthority is not None
    return desktop.xauthority.parent.parent / "x11"


def look(desktop: deskhand.Desktop) -> None:
    """Another driver comes by name, and looks."""
    with deskhand.connect(f"docker://{desktop.name}", view_only=True, timeout=1) as other:
        assert other.size == SIZE, f"another display was served: {other.size}"


def look_over_vnc(desktop: deskhand.Desktop) -> None:
    assert desktop.xauthority is not None
    with deskhand.connect(f"vnc+unix://{desktop.xauthority.with_name('vnc')}", timeout=5) as other:
        assert other.size == SIZE, f"another display was served: {other.size}"


def read_elements(desktop: deskhand.Desktop, timeout: float = 5.0) -> None:
    """Another driver comes by name, and reads what programs show."""
    with deskhand.connect(f"docker://{desktop.name}", view_only=True, timeout=5) as other:
        assert len(other.elements(timeout=timeout)) == 0


class Attacks:
    """Each plants something in the container's directory, and has the driver step on it. They return the desktop."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def _renewed(self, desktop: deskhand.Desktop, script: str) -> deskhand.Desktop:
        done = desktop.machine.run(f"cd {SOCKETS} && {script}")
        assert done.exit_code == 0, done
        desktop = desktop.reset()
        assert desktop.size == SIZE
        return desktop

    def cookie_is_a_link(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, f"rm -f xauthority && ln -s {self.host.files[1]} xauthority")

    def cookie_is_a_link_to_nothing(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, f"rm -f xauthority && ln -s {self.host.absent} xauthority")

    def cookie_is_a_fifo(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, "rm -f xauthority && mkfifo xauthority")

    def cookie_is_a_directory(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, "rm -f xauthority && mkdir xauthority")

    def cookie_is_a_hard_link(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        # Of the same directory: the kernel makes none across mounts.
        return self._renewed(desktop, "! ln /etc/passwd xauthority2 && touch file && ln -f file xauthority")

    def socket_is_a_directory(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, "rm -f X0 && mkdir X0 && touch X0/file && chmod 0 X0 && mkdir -p a/b && mv a c")

    def directory_is_shut(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._renewed(desktop, f"! mv {SOCKETS} /tmp/other && chmod 0 {SOCKETS}")

    def files_outlive_a_reset(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        desktop = self._renewed(desktop, "mkdir -p a/b .c && touch a/b/left .c/left left .left")
        assert "left" not in desktop.machine.run(f"find {SOCKETS}").stdout
        return desktop

    def socket_is_a_link(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        desktop.machine.run(f"cd {SOCKETS} && mv X0 real && ln -s {self.host.display} X0")
        self._refused(desktop, "symbolic link")
        # What was opened before stays what it was.
        desktop.clipboard.write("mine")
        assert desktop.clipboard.read() == "mine"
        desktop.machine.run(f"cd {SOCKETS} && mv -f real X0")
        look(desktop)
        return desktop

    def _refused(self, desktop: deskhand.Desktop, why: str) -> None:
        with pytest.raises(deskhand.ConnectFailed, match=why):
            look(desktop)

    def socket_is_a_fifo(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        desktop.machine.run(f"cd {SOCKETS} && mv X0 real && mkfifo X0")
        self._refused(desktop, "FIFO")
        desktop.machine.run(f"cd {SOCKETS} && mv -f real X0")
        return desktop

    def socket_is_swapped(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        """Between the check and the connection, and at any other moment."""
        script = (
            "import os\n"
            "os.link('X0', 'real')\n"
            "while True:\n"
            f"    os.symlink({str(self.host.display)!r}, 'new'); os.rename('new', 'X0')\n"
            "    os.link('real', 'new'); os.rename('new', 'X0')\n"
        )
        desktop.machine.write_file("/home/user/swap.py", script.encode())
        pid = desktop.machine.run(f"cd {SOCKETS} && setsid python3 ~/swap.py >/dev/null 2>&1 & echo $!").stdout.strip()
        served = 0
        for _ in range(30):
            with contextlib.suppress(deskhand.ConnectFailed):
                look(desktop)
                served += 1
        desktop.machine.run(f"pkill -KILL -f swap.py; cd {SOCKETS} && ln -f real X0 && rm real")
        look(desktop)
        assert pid
        assert served, "its own display is served whenever it is there"
        return desktop

    def socket_of_another_process(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        """One that is not in the container, whatever it leads to."""
        with self._of_another_process(desktop, "X0"):
            self._refused(desktop, "not in the container")
        look(desktop)
        return desktop

    @contextlib.contextmanager
    def _of_another_process(self, desktop: deskhand.Desktop, name: str) -> Iterator[None]:
        """One of the container's sockets is ours meanwhile, and must be told nothing."""
        desktop.machine.run(f"cd {SOCKETS} && mv {name} real")
        path = sockets_of(desktop) / name
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            if os.getuid() == 0:
                os.chown(path, *USER)
            listener.listen()

            told: list[bytes] = []

            def accept() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        with listener.accept()[0] as connection:
                            peer, _, _ = _UCRED.unpack(
                                connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
                            )
                            # The container's own health check may come, too.
                            if peer == os.getpid():
                                told.append(connection.recv(4096))

            threading.Thread(target=accept, daemon=True).start()
            try:
                yield
            finally:
                assert not any(told), f"it was told something: {told!r}"
        desktop.machine.run(f"cd {SOCKETS} && mv -f real {name}")

    def socket_accepts_nothing(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        script = (
            "import socket, time\n"
            "a = socket.socket(socket.AF_UNIX); a.bind('X0'); a.listen(0)\n"
            "b = socket.socket(socket.AF_UNIX); b.connect('X0')\n"
            "print('ready', flush=True); time.sleep(600)\n"
        )
        desktop.machine.write_file("/home/user/queue.py", script.encode())
        desktop.machine.run(f"cd {SOCKETS} && mv X0 real && (setsid python3 ~/queue.py >~/out 2>&1 &)")
        desktop.machine.run("until grep -q ready ~/out; do sleep 0.01; done")
        self._refused(desktop, "")
        desktop.machine.run(f"pkill -KILL -f queue.py; cd {SOCKETS} && mv -f real X0")
        look(desktop)
        return desktop

    def published_number_is_redirected(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        """Other programs of this machine know the display by a number, which leads to the container's socket."""
        assert desktop.display is not None
        desktop.machine.run(f"cd {SOCKETS} && mv X0 real && ln -s {self.host.display} X0")
        backend = X11Backend(desktop.display, xauthority=desktop.xauthority, view_only=True)
        assert backend.size == SIZE
        backend.close()
        desktop.machine.run(f"cd {SOCKETS} && mv -f real X0")
        return desktop

    def vnc_is_a_link(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        for _ in range(10):
            # Nor does who looks at the socket count as an intruder.
            look(desktop)
        desktop.machine.run(f"cd {SOCKETS} && mv vnc real && ln -s {self.host.display} vnc")
        look_over_vnc(desktop)
        with contextlib.suppress(deskhand.ConnectFailed):
            deskhand.connect(f"vnc+unix://{sockets_of(desktop) / 'vnc'}", timeout=2).close()
        desktop.machine.run(f"cd {SOCKETS} && mv -f real vnc")
        return desktop

    def _not_read(self, desktop: deskhand.Desktop, script: str, why: str) -> deskhand.Desktop:
        """What is there instead of the accessibility bus is refused, in time; and that is read when it is back."""
        read_elements(desktop)
        desktop.machine.run(f"cd {SOCKETS} && mv bus_0 real && {script}")
        begun = time.monotonic()
        with pytest.raises(deskhand.BackendError, match=why):
            read_elements(desktop, 0.3)
        assert time.monotonic() - begun < LIMIT
        desktop.machine.run(f"pkill -KILL -f bus.py; cd {SOCKETS} && rm -f bus_0 && mv real bus_0")
        read_elements(desktop)
        return desktop

    def bus_is_a_link(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._not_read(desktop, f"ln -s {self.host.display} bus_0", "symbolic link")

    def bus_is_a_link_to_itself(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._not_read(desktop, "ln -s real bus_0", "symbolic link")

    def bus_is_a_fifo(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._not_read(desktop, "mkfifo bus_0", "FIFO")

    def bus_is_a_file(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._not_read(desktop, "truncate -s 1T bus_0", "regular file")

    def bus_is_absent(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        return self._not_read(desktop, "true", "No such file")

    def bus_of_another_process(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        read_elements(desktop)
        with (
            self._of_another_process(desktop, "bus_0"),
            pytest.raises(deskhand.BackendError, match="not in the container"),
        ):
            read_elements(desktop, 0.3)
        read_elements(desktop)
        return desktop

    def _other_bus(self, desktop: deskhand.Desktop, program: str, why: str) -> deskhand.Desktop:
        """A program of the container's serves in its place."""
        script = f"import os, socket, time\na = socket.socket(socket.AF_UNIX); a.bind('bus_0')\n{program}\n"
        desktop.machine.write_file("/home/user/bus.py", script.encode())
        start = "(setsid python3 ~/bus.py >~/out 2>&1 &); until grep -q ready ~/out; do sleep 0.01; done"
        return self._not_read(desktop, f"rm -f ~/out; touch ~/out; {start}", why)

    def bus_accepts_nothing(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        program = (
            "a.listen(0); b = socket.socket(socket.AF_UNIX); b.connect('bus_0')\n"
            "print('ready', flush=True); time.sleep(600)"
        )
        return self._other_bus(desktop, program, "temporarily unavailable")

    def bus_says_nothing(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        program = "a.listen(9); print('ready', flush=True); time.sleep(600)"
        return self._other_bus(desktop, program, "did not answer in time")

    def bus_says_anything(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        program = (
            "a.listen(9); print('ready', flush=True)\n"
            "while True:\n"
            "    connection = a.accept()[0]\n"
            "    try:\n"
            "        connection.sendall(b'OK 0123\\r\\n')\n"
            "        while True: connection.sendall(os.urandom(65536))\n"
            "    except OSError: pass"
        )
        return self._other_bus(desktop, program, "bus")

    def restarts_are_endless(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        for script in (
            "truncate -s 1T restarted",
            "ln -s /dev/zero restarted",
            f"ln -s {self.host.files[0]} restarted",
            "mkfifo restarted",
            "mkdir restarted",
            "yes panel | head -c 100000 >restarted",
        ):
            done = desktop.machine.run(f"cd {SOCKETS} && rm -rf restarted && {script}")
            assert done.exit_code == 0, done
            begun = time.monotonic()
            told = " ".join(desktop.status)
            assert time.monotonic() - begun < LIMIT
            assert "canary" not in told
        return self._renewed(desktop, "true")

    def cookies_are_read_only(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        script = (
            'd=${XAUTHORITY%/*}; cd "$d" && ! touch x && ! ln -sf / xauthority && ! rm -f xauthority && '
            "! chmod 666 xauthority && ! (: >xauthority) && test -s xauthority"
        )
        done = desktop.machine.run(script)
        assert done.exit_code == 0, done
        return desktop

    def directories_are_deep(self, desktop: deskhand.Desktop) -> deskhand.Desktop:
        """What a driver leaves is removed by others: by its guard, and by whoever makes a directory next."""
        script = f"import os\nos.chdir({SOCKETS!r})\nfor number in range(3000):\n    os.mkdir('d'); os.chdir('d')\n"
        desktop.machine.write_file("/home/user/deep.py", script.encode())
        done = desktop.machine.run("python3 ~/deep.py", timeout=60)
        assert done.exit_code == 0, done
        directory = sockets_of(desktop).parent
        desktop.close()
        end = time.monotonic() + LIMIT
        while directory.exists():
            assert time.monotonic() < end, "its directory stays"
            time.sleep(0.01)
        runtime_directory.private_directory().rmdir()
        return launch()


NAMES = tuple(name for name in vars(Attacks) if not name.startswith("_"))


def attacks(host: Host) -> dict[str, str]:
    """What went wrong with each, and nothing if nothing did."""
    told: dict[str, str] = {}
    desktop = launch()
    known = Attacks(host)
    for name in NAMES:
        before = host.knocks
        wrong = []
        signal.alarm(LIMIT)
        try:
            desktop = getattr(known, name)(desktop)
        except (Exception, Hung, pytest.fail.Exception) as error:  # noqa: BLE001 # whatever it is, it is told
            wrong.append(f"{type(error).__name__}: {error}")
        signal.alarm(0)
        if host.look() != host.before:
            wrong.append(f"this machine's files were changed: {host.look()}")
            for number, path in enumerate(host.files):
                path.write_bytes(b"canary" * (number + 1))
                path.chmod(0o600)
                if os.getuid() == 0:
                    os.chown(path, 0, 0)
            host.absent.unlink(missing_ok=True)
            host.before = host.look()
        if host.knocks > before:
            wrong.append("somebody else's display was connected to")
        told[name] = "; ".join(wrong)
        if wrong:
            with contextlib.suppress(Exception):
                desktop.close()
            # What it has left may keep every other launch there from succeeding.
            os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="deskhand-")
            desktop = launch()
    desktop.close()
    return told


def resets(host: Host, count: int) -> dict[str, object]:
    """All at once, in a loop, over so many resets."""
    served = refused = tried = 0
    begun = time.monotonic()
    waits = []
    desktop = launch()
    with launch() as other:
        for number in range(count):
            desktop.machine.write_file("/home/user/inside.py", INSIDE.read_bytes())
            victims = ",".join(map(str, (*host.files, host.absent)))
            displays = ",".join(map(str, (host.display, sockets_of(other) / "X0")))
            desktop.machine.run(f"(setsid python3 ~/inside.py {victims} {displays} >~/out 2>&1 &)")
            signal.alarm(2 * LIMIT)
            desktop.machine.run(f"until [ $(cat ~/tried || echo 0) -ge {ATTEMPTS} ] 2>/dev/null; do sleep 0.01; done")
            tries: list[Callable[[deskhand.Desktop], None]] = [look, look, look_over_vnc]
            for attempt in tries:
                try:
                    attempt(desktop)
                    served += 1
                except (deskhand.ConnectFailed, deskhand.DesktopLost):
                    refused += 1
            assert isinstance(desktop.status, tuple)
            desktop.clipboard.write(f"text {number}")
            assert desktop.clipboard.read() == f"text {number}"
            assert desktop.size == SIZE
            assert "Traceback" not in (out := desktop.machine.run("cat ~/out").stdout), out
            tried += int(desktop.machine.run("cat ~/tried").stdout or 0)
            at = time.monotonic()
            desktop = desktop.reset()
            waits.append(time.monotonic() - at)
            print(f"reset {number + 1}: {waits[-1]:.2f} s, {tried} attacks", file=sys.stderr, flush=True)
            assert desktop.size == SIZE
            signal.alarm(0)
        assert other.clipboard.read() is None, "the other desktop was written to"
        assert other.perform().settled
        directory = sockets_of(desktop).parent
        desktop.close()
    end = time.monotonic() + LIMIT
    while directory.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return {
        "resets": len(waits),
        "changed": host.look() != host.before,
        "knocks": host.knocks,
        "directory left": directory.exists(),
        "tried": tried,
        "served": served,
        "refused": refused,
        "seconds": round(time.monotonic() - begun, 1),
        "median reset": round(sorted(waits)[len(waits) // 2], 3),
    }


def main() -> None:
    def hung(*_: object) -> None:
        raise Hung("the driver hangs")

    signal.signal(signal.SIGALRM, hung)
    host = Host()
    try:
        told = attacks(host) if sys.argv[1] == "attacks" else resets(host, int(sys.argv[2]))
    finally:
        host.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
