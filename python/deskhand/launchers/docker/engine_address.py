"""Finds the Docker engine to use: `DOCKER_HOST`, `DOCKER_CONTEXT`, or the context chosen with `docker context use`.

This module owns that order, which is the one of Docker's own command, and the variables that lead there later. What must
never appear here: a connection.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deskhand._core.arguments import expect_mapping
from deskhand.errors import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT = "unix:///var/run/docker.sock"
_DEFAULT_CONTEXT = "default"
_HOST, _CONTEXT, _TLS, _CERTIFICATES = "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"
_SCHEMES = ("unix", "tcp", "http", "https", "ssh")
_FORMS = "unix:///path, tcp://host:port or ssh://user@host"


@dataclass(frozen=True, slots=True)
class Address:
    """One engine.

    Attributes:
        url: `unix:///path`, `tcp://host:port` or `ssh://user@host:port/path`.
        certificates: The directory with `ca.pem`, `cert.pem` and `key.pem`; None without TLS.
        verify: Whether the engine's certificate is checked.
        variables: The environment variables that lead to it later, even if another context is chosen by then.
    """

    url: str
    certificates: Path | None
    verify: bool
    variables: dict[str, str]

    @property
    def scheme(self) -> str:
        """`unix`, `tcp` (also for http and https) or `ssh`."""
        scheme = urlsplit(self.url).scheme
        return "tcp" if scheme in {"http", "https"} else scheme

    @property
    def is_local(self) -> bool:
        """Whether it is reached through a socket of this machine, so that its containers can have directories of it."""
        return self.scheme == "unix"


def find_engine(environment: Mapping[str, str] | None = None) -> Address:
    """The engine that an environment names.

    Args:
        environment: By default this process's own.

    Raises:
        LaunchFailed: It names none, or a context that does not exist.
    """
    environment = os.environ if environment is None else expect_mapping("environment", environment)
    if host := environment.get(_HOST):
        variables = {name: environment[name] for name in (_HOST, _TLS, _CERTIFICATES) if environment.get(name)}
        wanted = bool(environment.get(_TLS) or environment.get(_CERTIFICATES))
        directory = Path(environment.get(_CERTIFICATES) or _directory(environment)) if wanted else None
        return _checked(Address(host, directory, bool(environment.get(_TLS)), variables))
    name = environment.get(_CONTEXT) or _chosen_context(environment)
    if name == _DEFAULT_CONTEXT:
        return Address(_DEFAULT, None, verify=False, variables={_CONTEXT: name})
    return _checked(_of_context(name, _directory(environment)))


def _checked(address: Address) -> Address:
    parts = urlsplit(address.url)
    # The message has only a part of it: it may hold a password.
    if parts.scheme not in _SCHEMES or parts.password is not None:
        why = "a password does not belong into it" if parts.password is not None else f"write {_FORMS}"
        raise LaunchFailed("the Docker engine", 0.0, "", f"{_HOST} or the context names none: {why}")
    try:
        complete = parts.scheme == "unix" or bool(parts.hostname and (parts.scheme == "ssh" or parts.port))
    except ValueError:
        complete = False
    if not complete or (parts.hostname or "").startswith("-"):
        raise LaunchFailed("the Docker engine", 0.0, "", f"{address.url!r} names none: write {_FORMS}")
    return address


def _directory(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("DOCKER_CONFIG") or Path.home() / ".docker")


def _chosen_context(environment: Mapping[str, str]) -> str:
    try:
        found = json.loads((_directory(environment) / "config.json").read_text())
        return str(found.get("currentContext") or _DEFAULT_CONTEXT)
    except (OSError, ValueError, AttributeError):
        return _DEFAULT_CONTEXT


def _of_context(name: str, directory: Path) -> Address:
    # Read here, because the SDK's own reader finds no context without a config.json, and raises a bare `Exception`.
    place = hashlib.sha256(name.encode()).hexdigest()
    try:
        found: dict[str, Any] = json.loads((directory / "contexts" / "meta" / place / "meta.json").read_text())
        endpoint = found["Endpoints"]["docker"]
        url = str(endpoint.get("Host") or _DEFAULT)
        skips = bool(endpoint.get("SkipTLSVerify"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"there is no context {name!r} in {directory} that can be read: see `docker context ls`"
        raise LaunchFailed("the Docker engine", 0.0, "", hint) from error
    certificates = directory / "contexts" / "tls" / place / "docker"
    variables = {_CONTEXT: name, "DOCKER_CONFIG": str(directory)}
    return Address(url, certificates if certificates.is_dir() else None, not skips, variables)
