"""The place of one desktop in a container: its display, cookie, directories, and how it is reached from this machine.

Two directories of this machine belong to it. The container can write `sockets`: this process does not, and checks what
it opens there (`deskhand._core.untrusted`). It can only read `own`: it has the cookie, and a further name of each
socket that was checked, for other programs of this machine.

This module owns those names and files. What must never appear here: how a container is made, or what runs in it. The image's
`supervisor` and `end-desktop` get them through the environment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from deskhand._core.untrusted import PinnedSocket, read_regular
from deskhand.errors import ConnectFailed
from deskhand.launchers.docker.leftovers import SOCKETS, links_to

DEFAULT_IMAGE = "deskhand/minimal"
HOME = "/home/user"
OWN = "/var/lib/deskhand"
"""Where a container sees `DisplaySlot.own`, read-only."""
_RUNTIME = "/run/deskhand"
_COOKIE_BYTES = 16
_FAMILY_LOCAL, _FAMILY_WILD = 256, 65535
_FIRST_NUMBER, _NUMBERS = 100, 9900
_LARGEST_COOKIE_FILE = 1 << 16


@dataclass(frozen=True, slots=True)
class DisplaySlot:
    """One desktop's place.

    Attributes:
        sockets: The directory of this machine that its container sees, and writes, as `/tmp/.X11-unix`; None where there is
            none, for example because the container is on another machine.
        number: Its display's number in there.
        shared: Whether the container has other desktops. A single one uses the names in the image's environment.
        own: The directory of this machine that its container cannot write; None where `sockets` is.
        user: The numbers of user and group that its programs run as; None if unknown.
        adopted: Whether another program started the container, which then has made its cookie itself, in `sockets`.
    """

    sockets: Path | None
    number: int = 0
    shared: bool = False
    own: Path | None = None
    user: tuple[int, int] | None = None
    adopted: bool = False

    @property
    def _suffix(self) -> str:
        return f"-{self.number}" if self.shared else ""

    @property
    def _part(self) -> str:
        return f"/{self.number}" if self.shared else ""

    def _theirs(self, name: str) -> Path:
        assert self.sockets is not None  # noqa: S101 # callers have that directory
        return self.sockets / name

    def _ours(self, name: str) -> Path:
        assert self.own is not None  # noqa: S101 # both directories are set together
        return self.own / name

    @property
    def _cookie_name(self) -> str:
        return f"xauthority{self._suffix}"

    @property
    def _restarted_name(self) -> str:
        return f"restarted{self._suffix}"

    @property
    def _socket_name(self) -> str:
        return f"X{self.number}"

    @property
    def _vnc_name(self) -> str:
        return f"vnc{self._suffix}"

    @property
    def _accessibility_name(self) -> str:
        # The image's supervisor has at-spi-bus-launcher put it here, which derives this name from the display's.
        return f"bus_{self.number}"

    @property
    def xauthority(self) -> Path | None:
        """Its cookie file, as this machine names it."""
        return None if self.own is None else self._ours(self._cookie_name)

    @property
    def socket(self) -> str:
        """Its X socket, as `DISPLAY` would name it here, if it is on this machine."""
        kept = self._ours(self._socket_name)
        return f"unix:{kept if kept.exists() else self._theirs(self._socket_name)}"

    @property
    def address(self) -> str | None:
        """Its best name for `DISPLAY`; None if no such name of this machine leads to it."""
        return None if self.sockets is None else self.display or self.socket

    @property
    def restarted(self) -> Path | None:
        """The file where its supervisor notes what it starts again."""
        return None if self.sockets is None else self._theirs(self._restarted_name)

    @property
    def home(self) -> str:
        """Its home directory in the container."""
        return HOME + self._part

    @property
    def runtime(self) -> str:
        """Its `XDG_RUNTIME_DIR` in the container, with its logs."""
        return _RUNTIME + self._part

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its programs, besides the container's."""
        if not self.shared:
            return {}
        return {
            # It is also the mark by which its processes are found at the end.
            "DESKHAND_DESKTOP": str(self.number),
            "DISPLAY": f":{self.number}",
            "XAUTHORITY": f"{OWN}/{self._cookie_name}",
            "HOME": self.home,
            "TMPDIR": f"/tmp/desktop{self._suffix}",  # noqa: S108 # the container's own
            "XDG_RUNTIME_DIR": self.runtime,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.runtime}/bus",
        }

    def write_cookie(self) -> None:
        """Make a new cookie for the next X server that reads it, which then refuses all others."""
        cookie = secrets.token_bytes(_COOKIE_BYTES)
        entries = _cookie_entry(_FAMILY_WILD, b"", b"", cookie)
        if (published := self.display) is not None:
            entries = _local_entry(published, cookie) + entries
        self._write_cookies(entries)

    def _write_cookies(self, entries: bytes) -> None:
        path = self._ours(self._cookie_name)
        # A process that reads it meanwhile finds all of the old ones.
        new = path.with_name(f".{path.name}")
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)
        new.write_bytes(entries)
        # The files of another program's container are for programs of this machine only.
        if not self.adopted and self.user is not None and self.user[0] != os.getuid():
            try:
                os.chown(new, *self.user)
            except PermissionError:
                # Only root may give files away. The directory above keeps other users out.
                new.chmod(0o644)
        new.replace(path)

    def enter(self, container: str) -> PinnedSocket:
        """Its X socket, to connect to; the caller closes it.

        Args:
            container: The full id of its container.

        Raises:
            ConnectFailed: It is not there, or it is not that container's.
        """
        found = self._pinned(self._socket_name, container)
        if self.adopted:
            # Other programs of this machine would follow a link to another user's cookie.
            self._write_cookies(read_regular(self._theirs(self._cookie_name), _LARGEST_COOKIE_FILE))
        return found

    def keep(self, entered: PinnedSocket, container: str) -> None:
        """Give that socket and its VNC server's a name in `own`, where other programs of this machine find them.

        Where that is not possible (see `PinnedSocket.link`), they keep the names that the container gave them.
        """
        with contextlib.suppress(OSError):
            entered.link(self._ours(self._socket_name))
        theirs, ours = self._theirs(self._vnc_name), self._ours(self._vnc_name)
        with contextlib.suppress(OSError, ConnectFailed):
            # Once only: VNC servers count a silent client as an intruder, and refuse all clients after a few.
            if not (ours.exists() and os.path.samestat(theirs.lstat(), ours.lstat())):
                with self._pinned(self._vnc_name, container) as vnc:
                    vnc.link(ours)

    def enter_accessibility(self, container: str) -> int:
        """A descriptor of a socket that is connected to its accessibility bus; the caller owns it.

        Args:
            container: The full id of its container.

        Raises:
            ConnectFailed: It is not there, or it is not that container's.
        """
        with self._pinned(self._accessibility_name, container) as found, socket.socket(socket.AF_UNIX) as connection:
            # Connecting to one whose queue is full would wait without end.
            connection.settimeout(0)
            try:
                connection.connect(found.address)
            except OSError as error:
                raise ConnectFailed(str(found.path), error.strerror or str(error)) from error
            return connection.detach()

    def _pinned(self, name: str, container: str) -> PinnedSocket:
        owner = None if self.user is None else self.user[0]
        return PinnedSocket(self._theirs(name), owner=owner, container=container)

    @property
    def display(self) -> str | None:
        """The number under which X clients of this machine find it."""
        links = links_to(self._ours(self._socket_name))
        return next((f":{link.name.removeprefix('X')}" for link in links), None)

    def publish(self) -> None:
        """Give it such a number; most clients accept no other name of a display."""
        target = self._ours(self._socket_name)
        if not target.exists():
            # A socket that a container can redirect gets none: it could lead clients to any display of this machine.
            return
        while True:
            number = _FIRST_NUMBER + secrets.randbelow(_NUMBERS)
            if Path(f"/tmp/.X{number}-lock").exists():  # noqa: S108 # where every X server has it
                continue
            try:
                (Path(SOCKETS) / f"X{number}").symlink_to(target)
            except FileExistsError:
                continue
            except OSError:
                # No X server has ever run here, or not for this user: the driver's own connection uses the path anyway.
                return
            break
        # Not every client knows wildcards (python-xlib does not, and with it PyAutoGUI and pynput).
        entries = self._ours(self._cookie_name).read_bytes()
        self._write_cookies(_local_entry(f":{number}", entries[-_COOKIE_BYTES:]) + entries)

    def clear(self) -> None:
        """Remove its files on this machine."""
        for link in links_to(self._ours(self._socket_name)):
            link.unlink(missing_ok=True)
        for name in (self._cookie_name, self._socket_name, self._vnc_name):
            self._ours(name).unlink(missing_ok=True)
        # A program in the container may have replaced it; the replacement ends with the container.
        with contextlib.suppress(OSError):
            self._theirs(self._restarted_name).unlink()


def _cookie_entry(family: int, address: bytes, number: bytes, cookie: bytes) -> bytes:
    fields = (address, number, b"MIT-MAGIC-COOKIE-1", cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in fields)


def _local_entry(display: str, cookie: bytes) -> bytes:
    number = display.removeprefix(":").encode()
    return _cookie_entry(_FAMILY_LOCAL, socket.gethostname().encode(), number, cookie)
