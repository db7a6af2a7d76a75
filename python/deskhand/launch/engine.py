"""The Docker engine: one client, and its errors as ours.

This module owns the import of the Docker SDK, which nothing else of deskhand needs. What must never appear here: knowledge of
desktops.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from typing import TYPE_CHECKING, Any

from deskhand.errors import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Engine", "connect_engine"]

_TIMEOUT = 60.0
_DEFAULT_HOST = "unix:///var/run/docker.sock"
_FORBIDDEN = (
    "you may not use the engine's socket: run `sudo usermod -aG docker $USER` and log in again, or use an engine of "
    "your own (rootless)"
)
_ABSENT = (
    "start it (`sudo systemctl start docker`), install it (`sudo apt-get install docker.io`), or name another one "
    "with DOCKER_HOST"
)


class Engine:
    """A connection to an engine; `api` is the SDK's own.

    Attributes:
        api: `docker.APIClient`.
        errors: `docker.errors`.
    """

    def __init__(self, api: Any, errors: Any) -> None:
        """Use `connect_engine`."""
        self.api = api
        self.errors = errors

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        """What the engine tells of itself and its machine."""
        found: dict[str, Any] = self.api.info()
        return found

    @property
    def is_local(self) -> bool:
        """Whether its containers' files and sockets are this machine's."""
        return str(self.api.base_url).startswith("http+docker://") and not os.environ.get("DOCKER_HOST", "").startswith(
            "ssh"
        )

    @contextlib.contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Engine errors as `LaunchFailed`, saying what was being done."""
        try:
            yield
        except self.errors.APIError as error:
            text = str(error.explanation or error)
            hint = "remove what is not needed: docker system prune" if "no space left" in text else text
            raise LaunchFailed(doing, 0.0, text if hint != text else "", hint) from error
        except (self.errors.DockerException, OSError) as error:
            raise LaunchFailed(doing, 0.0, str(error), "the Docker engine does not answer") from error

    def close(self) -> None:
        """Give the connections back."""
        self.api.close()


def connect_engine(timeout: float = _TIMEOUT) -> Engine:
    """The engine that `DOCKER_HOST` names, else the one of this machine.

    Raises:
        LaunchFailed: The SDK is missing, or no engine answers.
    """
    try:
        import docker  # noqa: PLC0415 # 0.2 s that nobody else needs to wait, and an extra that not everybody has
        import docker.errors  # noqa: PLC0415
    except ImportError as error:
        raise LaunchFailed("the Docker SDK", 0.0, "", "it is not installed: pip install 'deskhand[docker]'") from error
    _knock()
    try:
        api = docker.from_env(timeout=timeout, version="auto").api
    except docker.errors.DockerException as error:
        raise LaunchFailed("the Docker engine", 0.0, str(error), _ABSENT) from error
    return Engine(api, docker.errors)


def _knock() -> None:
    """Whether somebody is there: the SDK leaves a socket open that it could not connect."""
    host = os.environ.get("DOCKER_HOST") or _DEFAULT_HOST
    if not host.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(host.removeprefix("unix://"))
        except PermissionError as error:
            raise LaunchFailed("the Docker engine", 0.0, str(error), _FORBIDDEN) from error
        except OSError as error:
            raise LaunchFailed("the Docker engine", 0.0, f"{host}: {error}", _ABSENT) from error
