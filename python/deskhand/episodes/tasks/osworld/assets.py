"""The cache of files that tasks download: fetched once, checked at each use, shared by all workers.

    DIR/SHA-256 of the address/file, and meta.json with its address, size and SHA-256

This module owns that layout. A file appears whole or not at all. What must never appear here: a request (see `fetching`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.episodes.tasks.osworld.fetching import HOSTS, download
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DIRECTORY = "DESKHAND_ASSETS"
"""The variable that names the cache."""

MOST = 512 << 20
"""The largest file that is fetched unless another limit is given, in bytes."""

_FILE, _META, _PART, _LOCK = "file", "meta.json", "part", "lock"
_LARGEST_META = 1 << 16


def find_assets() -> Assets:
    """The cache that `DESKHAND_ASSETS` names, or the one in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Assets(Path(os.environ.get(DIRECTORY) or Path(base) / "deskhand" / "assets"))


def use_directory(directory: str) -> None:
    """Make a directory the cache of this process and of those that it starts."""
    os.environ[DIRECTORY] = str(Path(directory).absolute())


class Assets:
    """A cache in a directory."""

    def __init__(self, directory: Path) -> None:
        """Use a directory, which is made when the first file comes."""
        self.directory = directory

    def has(self, url: str) -> bool:
        """Whether a file is there, by its size; `read` checks its content."""
        meta = self._meta(url)
        try:
            return meta is not None and self._place(url, _FILE).stat().st_size == meta["size"]
        except OSError:
            return False

    def read(self, url: str) -> bytes:
        """A file's content.

        Raises:
            EpisodeError: It is not there, or has changed since it came.
        """
        meta = self._meta(url)
        if meta is None:
            hint = f"deskhand assets fetch osworld:PATH --assets {self.directory}"
            raise EpisodeError(f"the file of {url} is not in the cache", f"where there is a network: {hint}")
        try:
            data = self._place(url, _FILE).read_bytes()
        except OSError as error:
            raise EpisodeError(f"the file of {url} in the cache cannot be read: {error}", "fetch it again") from error
        if hashlib.sha256(data).hexdigest() != meta["sha256"]:
            raise EpisodeError(f"the file of {url} in the cache has changed since it came", "fetch it again")
        return data

    def put(self, url: str, source: Path) -> None:
        """Take a file that came in another way.

        Raises:
            EpisodeError: It cannot be read, or the cache not be written.
        """
        with self._writing(url), _named(url):
            part = self._place(url, _PART)
            shutil.copyfile(source, part)
            self._keep(url, part, hashlib.sha256(part.read_bytes()).hexdigest())

    def fetch(self, url: str, *, hosts: Collection[str] = HOSTS, most: int = MOST) -> bool:
        """Fetch a file unless it is there and right; returns whether it was fetched.

        Args:
            url: Its address.
            hosts: The hosts that may be asked.
            most: The most bytes that it may have.

        Raises:
            EpisodeError: It cannot be fetched; the message says why.
        """
        with self._writing(url), _named(url):
            try:
                self.read(url)
            except EpisodeError:
                part = self._place(url, _PART)
                self._keep(url, part, download(url, part, hosts=hosts, most=most))
                return True
        return False

    # --- internals ---

    def _place(self, url: str, name: str) -> Path:
        return self.directory / hashlib.sha256(url.encode()).hexdigest() / name

    def _meta(self, url: str) -> dict[str, Any] | None:
        try:
            with self._place(url, _META).open("rb") as file:
                meta = json.loads(file.read(_LARGEST_META))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(meta, dict) or meta.get("url") != url:
            return None
        return meta if isinstance(meta.get("size"), int) and isinstance(meta.get("sha256"), str) else None

    @contextlib.contextmanager
    def _writing(self, url: str) -> Iterator[None]:
        """Hold the lock of one file: two commands that fetch it do so one after the other."""
        with _named(url):
            place = self._place(url, _LOCK)
            place.parent.mkdir(parents=True, exist_ok=True)
            lock = place.open("wb")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _keep(self, url: str, part: Path, digest: str) -> None:
        meta = {"url": url, "size": part.stat().st_size, "sha256": digest}
        place = self._place(url, _FILE)
        # The description goes last: without it there is no file.
        self._place(url, _META).unlink(missing_ok=True)
        part.replace(place)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as file:
            json.dump(meta, file)
        Path(file.name).replace(self._place(url, _META))


@contextlib.contextmanager
def _named(url: str) -> Iterator[None]:
    try:
        yield
    except EpisodeError:
        raise
    except OSError as error:
        raise EpisodeError(f"the file of {url} cannot be kept in the cache: {error}") from error
