"""What deskhand has left in an engine, its owner, and its removal.

This module owns the labels, and the rule of when a thing is not needed any more. What must never appear here: how it is made.

A desktop's containers and its network carry the name of its directory. Its lease is the lock that its guard holds on a file in
that directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.errors import BackendError, LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine

LABEL_DIRECTORY = "org.deskhand.directory"
LABEL_HOST = "org.deskhand.host"
LABEL_DRIVER = "org.deskhand.driver"
UNANSWERED = ".unanswered"
# For how many seconds a refused removal of a network is repeated, and how often.
_GOING_LIMIT, _GOING_PERIOD = 5.0, 0.05
SOCKETS = "/tmp/.X11-unix"  # noqa: S108 # where X clients look


def own_labels(directory: Path) -> dict[str, str]:
    """The labels of everything that is made for a desktop."""
    return {
        LABEL_DIRECTORY: str(directory),
        LABEL_HOST: _host(),
        LABEL_DRIVER: f"process {os.getpid()} on {socket.gethostname()}",
    }


@contextlib.contextmanager
def asked_for(engine: Engine, directory: Path, name: str) -> Iterator[None]:
    """Around a request for a container or network: after an interruption it is unknown whether the engine will make it."""
    unanswered = directory / UNANSWERED
    try:
        unanswered.write_text(name)
    except OSError:
        # An empty file would be waited for. Nothing was requested yet.
        unanswered.unlink(missing_ok=True)
        raise
    try:
        yield
    except LaunchFailed as error:
        # The engine did answer.
        if isinstance(error.__cause__, engine.errors.APIError):
            unanswered.unlink()
        raise
    unanswered.unlink()


def reap(engine: Engine) -> list[str]:
    """Remove what belongs to drivers of this machine that were killed together with their guards; returns the names.

    As long as a desktop's guard runs, it holds a lock on `.guard` in its directory.
    """
    wanted = {"label": [f"{LABEL_HOST}={_host()}"]}
    with engine.translated("the list of containers"):
        found = [*engine.api.containers(all=True, filters=wanted), *engine.api.networks(filters=wanted)]
    directories = {entry["Labels"].get(LABEL_DIRECTORY, "") for entry in found}
    removed: set[str] = set()
    for directory in map(Path, sorted(directories)):
        if directory.is_absolute() and _is_abandoned(directory):
            removed |= remove_of(engine, directory)
    return sorted(removed)


def remove_container(engine: Engine, container: str) -> bool:
    """Remove a container, running or not; False if it is gone already.

    Raises:
        BackendError: The engine refuses, or does not answer.
    """
    try:
        engine.api.remove_container(container, force=True, v=True)
    except engine.errors.NotFound:
        return False
    except (engine.errors.DockerException, OSError) as error:
        # Another process may be removing it.
        if "already in progress" not in str(error):
            raise BackendError(f"cannot remove the container {container}: {error}") from error
    return True


def remove_of(engine: Engine, directory: str | os.PathLike[str]) -> set[str]:
    """Remove the containers and the network of a directory, by label, as others may have their names. Returns those removed.

    Raises:
        BackendError: The engine refuses, or does not answer.
    """
    wanted = {"label": f"{LABEL_DIRECTORY}={os.fspath(directory)}"}
    try:
        containers = engine.api.containers(all=True, filters=wanted)
        networks = engine.api.networks(filters=wanted)
    except (engine.errors.DockerException, OSError) as error:
        raise BackendError(f"the Docker engine does not answer: {error}") from error
    # The engine lists a container before it can be removed: one that is not listed yet is still to come.
    removed = {_name_of(entry) for entry in containers if remove_container(engine, entry["Id"])}
    removed |= {entry["Name"] for entry in networks if _remove_network(engine, entry["Id"])}
    for link in links_to(directory):
        link.unlink(missing_ok=True)
    return removed


def _name_of(container: dict[str, Any]) -> str:
    # A network that is just coming or going may have none.
    return str((container["Names"] or [container["Id"]])[0]).lstrip("/")


def _remove_network(engine: Engine, network: str) -> bool:
    deadline = time.monotonic() + _GOING_LIMIT
    while True:
        try:
            # Also containers that other programs have put into it.
            for container in engine.api.inspect_network(network)["Containers"] or {}:
                engine.api.disconnect_container_from_network(container, network, force=True)
            engine.api.remove_network(network)
        except engine.errors.NotFound:
            return False
        except (engine.errors.DockerException, OSError) as error:
            # A container that another process is removing leaves the network by itself, and cannot be disconnected until then.
            if not isinstance(error, engine.errors.APIError) or time.monotonic() >= deadline:
                raise BackendError(f"cannot remove the network {network}: {error}") from error
            time.sleep(_GOING_PERIOD)
        else:
            return True


def settle_removal(engine: Engine, directory: Path) -> bool:
    """Remove everything of a directory; False if the engine may yet make something that was requested.

    Raises:
        BackendError: The engine refuses, or does not answer.
    """
    # In this order: the next look finds what the engine made after the first one.
    try:
        awaited = (directory / UNANSWERED).read_text()
    except FileNotFoundError:
        awaited = None
    removed = remove_of(engine, directory)
    if awaited in removed:
        (directory / UNANSWERED).unlink(missing_ok=True)
    return awaited is None or awaited in removed


def links_to(directory: str | os.PathLike[str]) -> list[Path]:
    """The display numbers of this user that lead into a directory."""
    found = []
    for path in Path(SOCKETS).glob("X*"):
        with contextlib.suppress(OSError):
            # Another user's cannot be removed, and may lead elsewhere in a moment.
            if path.lstat().st_uid == os.getuid() and path.readlink().is_relative_to(directory):
                found.append(path)
    return found


def _is_abandoned(directory: Path) -> bool:
    try:
        with (directory / ".guard").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _host() -> str:
    """This machine and user, in a form that no other machine of the engine has."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"{socket.gethostname()}/{machine}/{os.getuid()}"
