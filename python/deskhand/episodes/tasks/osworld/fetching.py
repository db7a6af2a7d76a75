"""Downloads one file of a task: over HTTPS from hosts that are allowed, of a bounded size, going on where it was cut off.

This module owns the requests. What must never appear here: where files are kept (see `assets`).
"""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

HOSTS = ("huggingface.co", "hf.co")
"""The hosts that upstream keeps its files on; names below these count too."""

_TIMEOUT = 60.0
_PIECE = 1 << 16
_SHA256, _SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


def check_address(url: str, hosts: Collection[str]) -> None:
    """Check that an address may be asked: task files are untrusted, and name any.

    Raises:
        EpisodeError: It is no address of the web, or of a host that is not allowed.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise EpisodeError(f"the address {url[:200]!r} cannot be read: {error}") from None
    plain = parts.scheme == "http" and _allowed(f"{host}:{port}", hosts, exact=True)
    if not (parts.scheme == "https" or plain) or parts.username is not None or not url.isprintable() or " " in url:
        raise EpisodeError(
            f"the address {url[:200]!r} is not one of https://", "--host HOST:PORT allows http:// of one server"
        )
    if not plain and not _allowed(host, hosts):
        raise EpisodeError(f"{host} is not one of the hosts that files are fetched from", f"to allow it: --host {host}")


def _allowed(host: str, hosts: Collection[str], *, exact: bool = False) -> bool:
    return host in hosts or (not exact and any(host.endswith(f".{each}") for each in hosts))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only to where a request may go too."""

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = hosts
        self.known = ""

    def redirect_request(  # noqa: PLR0917 # urllib's own signature
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_address(newurl, self._hosts)
        # The first answer has the checksum, and the one that follows has the data.
        self.known = self.known or _stated(headers)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, part: Path, *, hosts: Collection[str], most: int) -> str:
    """Download a file, going on after what is there already.

    Args:
        url: Its address.
        part: The file for the data; what is in it is taken to be its beginning.
        hosts: The hosts that may be asked.
        most: The most bytes that it may have.

    Returns:
        The SHA-256 of the file, as hexadecimal digits.

    Raises:
        EpisodeError: It cannot be fetched, is too large, or differs from the length or the checksum that the server stated.
            What has arrived stays in `part`, unless it is wrong.
    """
    check_address(url, hosts)
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "deskhand", "Accept-Encoding": "identity"})  # noqa: S310 # checked above
    if have:
        request.add_header("Range", f"bytes={have}-")
    redirects = _Redirects(hosts)
    opener = urllib.request.build_opener(redirects)
    try:
        with opener.open(request, timeout=_TIMEOUT) as answer:
            known = redirects.known or _stated(answer.headers)
            begun = have if answer.status == http.client.PARTIAL_CONTENT else 0
            length = int(answer.headers.get("Content-Length") or -1)
            _check_answer(url, answer.headers.get("Content-Range", ""), part, begun, begun + max(length, 0), most)
            with part.open("r+b" if begun else "wb") as file:
                file.seek(begun)
                got = _copied(answer, file, url, most - begun)
    except EpisodeError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            part.unlink()
        raise EpisodeError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EpisodeError(
            f"{url} cannot be fetched: {getattr(error, 'reason', error)}", "is there a network?"
        ) from error
    if 0 <= length != got:
        raise EpisodeError(
            f"{url}: {begun + got} bytes arrived of {begun + length}", "fetch again, which goes on from there"
        )
    return _verified(url, part, known)


def _check_answer(url: str, place: str, part: Path, begun: int, size: int, most: int) -> None:  # noqa: PLR0917 # one caller
    if begun and not place.startswith(f"bytes {begun}-"):
        part.unlink()
        raise EpisodeError(f"{url}: the server continues at another place than was asked for", "fetch again")
    if size > most:
        raise EpisodeError(f"{url}: it has {size} bytes", f"at most {most} are fetched: --most MIB")


def _copied(answer: IO[bytes], file: IO[bytes], url: str, most: int) -> int:
    got = 0
    while piece := answer.read(_PIECE):
        got += len(piece)
        if got > most:
            raise EpisodeError(f"{url}: it has more than {most} bytes", "to fetch larger ones: --most MIB")
        file.write(piece)
    return got


def _stated(headers: Any) -> str:
    """The checksum that the hub states: the SHA-256 of a large file, or git's SHA-1 of a small one."""
    for name in ("X-Linked-Etag", "ETag"):
        value = str(headers.get(name) or "").removeprefix("W/").strip('"')
        if _SHA256.fullmatch(value) or (_SHA1.fullmatch(value) and headers.get("X-Repo-Commit")):
            return value
    return ""


def _verified(url: str, part: Path, known: str) -> str:
    data = part.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    if known and known not in {found, git}:
        part.unlink()
        raise EpisodeError(f"{url}: what arrived has another checksum than the server states", "fetch again")
    return found
