"""Where a VNC server is and with which credentials: its URL, and the places a password may come from.

This module owns the spelling of VNC targets. What must never appear here: a connection. What must never leave it in a
message, a repr or a log: a password.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ActionError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_TCP, _UNIX = "vnc://", "vnc+unix://"
_FIRST_PORT = 5900
# A number after one colon that is smaller counts displays, as in every VNC viewer.
_FIRST_REAL_PORT = 100
_FORMS = "vnc://[user[:password]@]host[:display or :port or ::port], with IPv6 in brackets, or vnc+unix:///path"


@dataclass(frozen=True, slots=True)
class VncTarget:
    """One server, and its credentials.

    Attributes:
        host: Name or address; empty for a Unix socket.
        port: TCP port.
        path: The Unix socket; empty for TCP.
        username: For servers that ask for one.
        password: Returns the password when a server asks for it; None when there is none.
        certificates: File with the authorities that may sign the server's certificate, which it then must show; None for those
            of the system, and also for servers without a certificate.
        verify: Whether the server's certificate is checked.
        opener: Connects in another way; it must raise an OSError or an error of this package.
        shown: The name of such a target in messages.
    """

    host: str = ""
    port: int = _FIRST_PORT
    path: str = ""
    username: str | None = field(default=None, repr=False)
    password: Callable[[], str] | None = field(default=None, repr=False)
    certificates: str | None = None
    verify: bool = True
    opener: Callable[[], socket.socket] | None = field(default=None, repr=False)
    shown: str = ""

    def __str__(self) -> str:
        """The URL without name and password."""
        if self.shown:
            return self.shown
        if self.path:
            return f"{_UNIX}{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_TCP}{host}:{self.port}"


def is_vnc(url: str) -> bool:
    """Whether this is the URL of a VNC server."""
    return url.startswith((_TCP, _UNIX))


def parse_target(
    url: str,
    *,
    username: str | None = None,
    password: str | Callable[[], str] | None = None,
    password_file: str | os.PathLike[str] | None = None,
    certificates: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> VncTarget:
    """Read a URL.

    The password is the first that is given of: `password` (a text, or what returns one, called when the server asks), the first
    line of `password_file`, the URL's, `DESKHAND_VNC_PASSWORD`, the first line of the file `DESKHAND_VNC_PASSWORD_FILE`.

    Raises:
        ActionError: It is not one. The message does not repeat it, since it may hold a password.
    """
    from urllib.parse import unquote  # noqa: PLC0415 # most desktops are not reached by VNC

    rest = url.removeprefix(_UNIX if url.startswith(_UNIX) else _TCP)
    entry, at, place = rest.rpartition("@")
    name, colon, secret = entry.partition(":")
    chosen = _password(password, password_file, unquote(secret) if colon else None)
    user = username if username is not None else (unquote(name) or None if at else None)
    if url.startswith(_UNIX):
        if not place.startswith("/"):
            raise _malformed()
        where = VncTarget(path=unquote(place), username=user, password=chosen)
    else:
        host, port = _host_and_port(place.removesuffix("/"))
        where = VncTarget(host=host, port=port, username=user, password=chosen)
    authorities = None if certificates is None else os.fspath(certificates)
    return VncTarget(where.host, where.port, where.path, user, chosen, authorities, verify)


def _malformed() -> ActionError:
    return ActionError(f"this is no VNC target: write {_FORMS}")


def _host_and_port(place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, bracket, tail = place[1:].partition("]")
        if not bracket:
            raise _malformed()
    else:
        host, colon, number = place.partition(":")
        tail = colon + number
    number = tail.lstrip(":")
    colons = len(tail) - len(number)
    if (
        not host
        or colons > 2
        or (bool(number) != bool(colons))
        or (number and not (number.isascii() and number.isdigit()))
    ):
        raise _malformed()
    port = int(number[:6]) if number else 0
    if colons != 2 and port < _FIRST_REAL_PORT:
        port += _FIRST_PORT
    if not 0 < port <= 65535:
        raise _malformed()
    return host, port


def _password(
    given: str | Callable[[], str] | None, file: str | os.PathLike[str] | None, of_url: str | None
) -> Callable[[], str] | None:
    if given is not None:
        return given if callable(given) else lambda: given
    if file is not None:
        return _of_file(file)
    if of_url is not None:
        return lambda: of_url
    if (of_environment := os.environ.get("DESKHAND_VNC_PASSWORD")) is not None:
        return lambda: of_environment
    named = os.environ.get("DESKHAND_VNC_PASSWORD_FILE")
    return _of_file(named) if named else None


def _of_file(file: str | os.PathLike[str]) -> Callable[[], str]:
    def read() -> str:
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            # The text of a decoding error shows the bytes that it could not decode.
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ActionError(f"cannot read the password file {os.fspath(file)!r}: {reason}") from None
        return lines[0] if lines else ""

    return read
