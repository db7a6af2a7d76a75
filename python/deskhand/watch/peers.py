"""Whether a connection comes from inside a watched desktop: a browser there that opens the page.

Those who see the page may approve what an agent wants to do, so an agent must not see it. On this machine the kernel
knows which process has the other end of a connection. It is inside if it, or one of those that started it, draws on the
desktop's display or is in its container. What cannot be known is in docs/watching.md.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.desktop.access import core_of, latest
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deskhand.desktop.desktop import Desktop

_PROC = Path("/proc")
_ESTABLISHED = "01"
_LARGEST_ENVIRONMENT = 1 << 20
_DEEPEST = 64
_DISPLAY = re.compile(r"(?:(?:unix(?:/[^:]*)?|localhost)?:)(\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the programs of a desktop run.

    Attributes:
        display: Its number on this machine; empty where it has none.
        container: The id of its container; empty where it has none.
        addresses: The addresses of its container.
    """

    display: str = ""
    container: str = ""
    addresses: tuple[str, ...] = ()


def place_of(desktop: Desktop) -> Place:
    """Where the programs of a desktop run, as far as this machine knows it."""
    core = core_of(latest(desktop))
    inside = core.inside
    container = getattr(inside, "id", "")
    addresses: tuple[str, ...] = ()
    with contextlib.suppress(DeskhandError):
        addresses = tuple(getattr(inside, "addresses", ()))
    return Place(_number(core.display or ""), container if isinstance(container, str) else "", addresses)


def is_inside(places: Iterable[Place], peer: Sequence[object], server: Sequence[object]) -> bool:
    """Whether the client of a connection is a program of one of these desktops.

    Args:
        places: Of the desktops.
        peer: Address and port of the client.
        server: Address and port of the server's end.
    """
    known = [place for place in places if place.display or place.container]
    if not known:
        return False
    address = str(peer[0]).removeprefix("::ffff:")
    if any(address in place.addresses for place in known):
        return True
    return any(_belongs(pid, known) for pid in _owners(peer, server))


def _number(display: str) -> str:
    found = _DISPLAY.fullmatch(display)
    return found[1] if found else ""


def _owners(peer: Sequence[object], server: Sequence[object]) -> Iterator[int]:
    """The processes of this machine that have the client's end of a connection, as far as they can be seen."""
    inodes = {f"socket:[{inode}]" for inode in _inodes(peer, server)}
    if not inodes:
        return
    for process in _PROC.iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if any(str(entry.readlink()) in inodes for entry in (process / "fd").iterdir()):
                yield int(process.name)


def _inodes(peer: Sequence[object], server: Sequence[object]) -> Iterator[str]:
    try:
        wanted = {(_encoded(str(peer[0]), v6), int(str(peer[1]))) for v6 in (False, True)}
        other = int(str(server[1]))
    except (ValueError, IndexError):
        return
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                near, _, near_port = fields[1].partition(":")
                far_port = fields[2].partition(":")[2]
                if fields[3] == _ESTABLISHED and (near, int(near_port, 16)) in wanted and int(far_port, 16) == other:
                    yield fields[9]


def _encoded(address: str, v6: bool) -> str:  # noqa: FBT001 # of a loop over both
    """An address as the kernel's tables have it: words in the machine's own order of bytes."""
    plain = ipaddress.ip_address(address)
    mapped = getattr(plain, "ipv4_mapped", None)
    plain = mapped or plain
    packed = plain.packed
    if v6 and plain.version == 4:
        packed = ipaddress.ip_address(f"::ffff:{plain}").packed
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def _belongs(pid: int, places: Sequence[Place]) -> bool:
    """Whether a process, or one of those that started it, is inside."""
    for _ in range(_DEEPEST):
        if pid <= 1:
            return False
        groups = _read(pid, "cgroup").decode("utf-8", "replace")
        environment = _read(pid, "environ").split(b"\0")
        shown = next((each[8:] for each in environment if each.startswith(b"DISPLAY=")), b"").decode("utf-8", "replace")
        number = _number(shown)
        for place in places:
            if (place.container and place.container in groups) or (place.display and number == place.display):
                return True
        fields = _read(pid, "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
    return False


def _read(pid: int, name: str) -> bytes:
    try:
        with (_PROC / str(pid) / name).open("rb") as file:
            return file.read(_LARGEST_ENVIRONMENT)
    except OSError:
        return b""
