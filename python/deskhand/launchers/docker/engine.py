"""The Docker engine: one client, and its errors as those of deskhand.

This module owns the import of the Docker SDK, which nothing else of deskhand needs. What must never appear here: knowledge of
desktops.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import socket
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deskhand.errors import LaunchFailed, MissingExtra
from deskhand.launchers.docker.engine_address import find_engine
from deskhand.launchers.docker.tunnel import Tunnel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.launchers.docker.engine_address import Address

ROOM_HINT = "the engine's disk is full; remove what is not needed: docker system prune"

_TIMEOUT = 60.0
# A failed read is repeated after 0, 0.1, 0.2, 0.4 ... 3.2 s: 6 s in all, which a restart of the engine may take.
_ATTEMPTS, _FIRST_PAUSE = 7, 0.05
_TROUBLED = (500, 502, 503, 504)
_patient = ContextVar("_patient", default=True)
# Seconds until another machine must answer.
_REACH_LIMIT = 10.0
# Docker 20.10: the options for networks and limits exist since then.
_OLDEST = (1, 41)
# What Docker says of the controllers of control groups that it may use.
_FEATURES = {"memory": "MemoryLimit", "pids": "PidsLimit", "cpu": "CpuCfsQuota"}
_FORBIDDEN = (
    "you may not use the engine's socket: run `sudo usermod -aG docker $USER` and log in again, or use rootless Podman"
)
_ABSENT = (
    "start it (`sudo systemctl start docker`), install it (`sudo apt-get install docker.io`), or name another one "
    "with DOCKER_HOST, such as Podman's: unix:///run/podman/podman.sock"
)
_UNREACHED = "check host and port of DOCKER_HOST (or of the context), and that its engine listens there"
_REFUSED = "it does not take our certificate: use a cert.pem and key.pem that its authority has signed"
# The messages of TLS, and what to do about each; the first one in the text counts.
_TLS_HINTS = (
    ("Hostname mismatch", "its certificate is for another name: write the one that it has into DOCKER_HOST"),
    ("IP address mismatch", "its certificate is for another address: write the one that it has into DOCKER_HOST"),
    ("has expired", "its certificate has expired: it needs another one"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not signed by ca.pem: use the ca.pem of that engine"),
    ("alert", _REFUSED),
    # With TLS 1.3 a certificate is refused after the handshake, and the reason may be lost with the connection: what is left
    # depends on when it broke.
    ("EOF occurred", _REFUSED),
    ("reset by peer", _REFUSED),
    ("Connection aborted", _REFUSED),
    (
        "WRONG_VERSION_NUMBER",
        "it speaks no TLS at that port: name the other port, or unset DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
    ),
)
_WANTS_TLS = "it wants TLS, as it seems: set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH"
_PLAIN_HINTS = (("HTTP request to an HTTPS server", _WANTS_TLS), ("Connection aborted", _WANTS_TLS))


class Engine:
    """A connection to an engine; `api` is the SDK's own.

    Attributes:
        api: `docker.APIClient`.
        errors: `docker.errors`.
        address: The engine's address.
        is_podman: Whether it is Podman, which differs from Docker in a few requests.
    """

    def __init__(
        self, api: Any, errors: Any, address: Address, tunnel: Tunnel | None = None, *, is_podman: bool = False
    ) -> None:
        """Use `connect_engine`."""
        self.api = api
        self.errors = errors
        self.address = address
        self.is_podman = is_podman
        self._tunnel = tunnel

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        """The engine's description of itself and its machine, in Docker's words."""
        with self.translated("the Docker engine"):
            if not self.is_podman:
                found: dict[str, Any] = self.api.info()
                return found
            # What it tells Docker's clients takes it 0.8 s more, and claims limits that it leaves out with a warning.
            answer = self.api.get(f"{self.api.base_url}/v4.0.0/libpod/info")
            answer.raise_for_status()
        return _in_dockers_words(answer.json()["host"])

    @property
    def is_rootless(self) -> bool:
        """Whether it is Podman without root's rights: it runs containers in a user namespace."""
        return self.is_podman and "name=rootless" in self.info["SecurityOptions"]

    @property
    def is_local(self) -> bool:
        """Whether its containers' files and sockets are on this machine, judging by its address."""
        return self.address.is_local

    def impatient(self) -> contextlib.AbstractContextManager[None]:
        """In this block no request is repeated, for callers that need an answer soon."""
        return _impatient()

    @contextlib.contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Raise engine errors as `LaunchFailed`, with what was being done."""
        try:
            yield
        except self.errors.APIError as error:
            text = str(error.explanation or error)
            hint = ROOM_HINT if "no space left" in text else text
            raise LaunchFailed(doing, 0.0, text if hint != text else "", hint) from error
        except (self.errors.DockerException, OSError) as error:
            raise LaunchFailed(doing, 0.0, str(error), "the Docker engine does not answer") from error

    def revive(self) -> None:
        """Restore the connection to another machine if it broke.

        Raises:
            LaunchFailed: It could not be made.
        """
        if self._tunnel is not None:
            self._tunnel.revive()

    def close(self) -> None:
        """Close the connections."""
        self.api.close()
        if self._tunnel is not None:
            self._tunnel.close()


def _in_dockers_words(host: Mapping[str, Any]) -> dict[str, Any]:
    """What Podman says of its machine, as far as deskhand asks Docker for it."""
    security = host["security"]
    options = {"name=seccomp": security["seccompEnabled"], "name=rootless": security["rootless"]}
    return {
        "NCPU": host["cpus"],
        "Architecture": host["arch"],
        "SecurityOptions": [option for option, on in options.items() if on],
        **{feature: controller in host["cgroupControllers"] for controller, feature in _FEATURES.items()},
    }


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    token = _patient.set(False)
    try:
        yield
    finally:
        _patient.reset(token)


def check_sdk() -> None:
    """Check that the Docker SDK is there, without importing it.

    Raises:
        MissingExtra: It is not installed.
    """
    if importlib.util.find_spec("docker") is None:
        raise MissingExtra("the Docker SDK", "docker")


def connect_engine(timeout: float = _TIMEOUT, environment: Mapping[str, str] | None = None) -> Engine:
    """The engine that `DOCKER_HOST` or the chosen Docker context names, or else the one of this machine.

    An engine that restarts is waited for, for 6 s. A failed request that only reads (GET) is repeated; any other
    is sent once.

    Args:
        timeout: Seconds for each of its answers.
        environment: Added to this process's own: it names the engine, and is that of ssh.

    Raises:
        LaunchFailed: No usable engine answers; the message says what to do.
        MissingExtra: The SDK is not installed.
    """
    try:
        import docker  # noqa: PLC0415 # it takes 0.2 s, and is an extra
        import docker.errors  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("the Docker SDK", "docker") from error
    whole = {**os.environ, **(environment or {})}
    address = find_engine(whole)
    tunnel = None
    try:
        if address.scheme == "ssh":
            tunnel = Tunnel(address.url, whole, _REACH_LIMIT)
        else:
            _knock(address)
        api, is_podman = _client(docker, address, tunnel, timeout)
        return Engine(api, docker.errors, address, tunnel, is_podman=is_podman)
    except BaseException:
        if tunnel is not None:
            tunnel.close()
        raise


def _client(docker: Any, address: Address, tunnel: Tunnel | None, timeout: float) -> tuple[Any, bool]:
    """The SDK's client of an engine, and whether that is Podman."""
    url = address.url if tunnel is None else f"unix://{tunnel.socket}"
    awaited = "the Docker engine" if address.is_local else f"the Docker engine {address.url}"

    def made(version: str) -> Any:
        api = docker.APIClient(base_url=url, version=version, timeout=timeout, tls=_tls(docker, address))
        # Otherwise requests uses REQUESTS_CA_BUNDLE, if set, instead of the given authorities.
        api.trust_env = False
        path = url.removeprefix("unix://")
        if path != url:
            api.get_adapter(api.base_url).close()
            # ssh listens at this end of a tunnel, and is started again only when this is called.
            api.mount(api.base_url, _adapter(path, timeout, waits=tunnel is None))
        api.get_adapter(api.base_url).max_retries = _retries()
        return api

    try:
        # A far machine that refuses would do so again.
        patience = contextlib.nullcontext() if address.is_local else _impatient()
        with patience, contextlib.closing(made(".".join(map(str, _OLDEST)))) as probe:
            version, is_podman = _ping(docker, probe, timeout)
        if tuple(map(int, version.split("."))) >= _OLDEST:
            return made(version), is_podman
    except docker.errors.TLSParameterError as error:
        needed = f"{address.certificates} must have ca.pem, cert.pem and key.pem"
        raise LaunchFailed(awaited, 0.0, "", f"{needed}: copy them there, or set DOCKER_CERT_PATH") from error
    except (docker.errors.DockerException, OSError, KeyError, ValueError) as error:
        text = str(error)
        if tunnel is not None:
            hint = (
                "ssh gets there, and not through to the engine's socket: see AllowStreamLocalForwarding of sshd there"
            )
            raise LaunchFailed(awaited, 0.0, f"{text}\n{tunnel.log}", hint) from error
        hint = _ABSENT if address.is_local else _UNREACHED
        if address.scheme == "tcp":
            hints = _PLAIN_HINTS if address.certificates is None else _TLS_HINTS
            hint = next((hint for words, hint in hints if words in text), hint)
        raise LaunchFailed(awaited, 0.0, text, hint) from error
    hint = f"its API is {version}, {'.'.join(map(str, _OLDEST))} is needed: update it to Docker 20.10 or newer"
    raise LaunchFailed(awaited, 0.0, "", hint)


def _ping(docker: Any, api: Any, timeout: float) -> tuple[str, bool]:
    """The version of an engine's API, and whether the engine is Podman."""
    # In answer to /version Podman asks its runtime, which takes 0.7 s.
    answer = api.get(f"{api.base_url}/_ping", timeout=timeout)
    if not answer.ok:
        raise docker.errors.APIError(answer.text, answer, answer.text)
    if (version := answer.headers.get("Api-Version")) is None:
        raise docker.errors.DockerException("its answer names no version of the API: it is no engine")
    return str(version), "Libpod-Api-Version" in answer.headers


def _tls(docker: Any, address: Address) -> Any:
    directory = address.certificates
    if address.scheme != "tcp" or directory is None:
        return False
    pair = (str(directory / "cert.pem"), str(directory / "key.pem"))
    return docker.tls.TLSConfig(client_cert=pair, ca_cert=str(directory / "ca.pem"), verify=address.verify)


def _knock(address: Address) -> None:
    """Check that a server listens: the SDK would try for a minute."""
    if not address.is_local:
        parts = urlsplit(address.url)
        try:
            socket.create_connection((parts.hostname, parts.port), _REACH_LIMIT).close()
        except OSError as error:
            raise LaunchFailed(f"the Docker engine {address.url}", 0.0, str(error), _UNREACHED) from error
        return
    try:
        _knock_at(address.url.removeprefix("unix://"))
    except PermissionError as error:
        raise LaunchFailed("the Docker engine", 0.0, str(error), _FORBIDDEN) from error
    except OSError as error:
        raise LaunchFailed("the Docker engine", 0.0, f"{address.url}: {error}", _ABSENT) from error


def _knock_at(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def _adapter(path: str, timeout: float, *, waits: bool) -> Any:
    """The SDK's own adapter for a socket; one that `waits` waits for the server."""
    from docker.transport import UnixHTTPAdapter  # noqa: PLC0415 # with an engine it is installed
    from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool  # noqa: PLC0415

    class Connection(UnixHTTPConnection):  # type: ignore[misc] # the SDK has no types
        def connect(self) -> None:
            # The SDK's own adapter leaves a socket open that it cannot connect.
            client = socket.socket(socket.AF_UNIX)
            try:
                client.settimeout(self.timeout)
                client.connect(path)
            except BaseException:
                client.close()
                raise
            self.sock = client

    class Pool(UnixHTTPConnectionPool):  # type: ignore[misc] # the SDK has no types
        def _new_conn(self) -> Connection:
            return Connection(self.base_url, path, self.timeout)

    class Adapter(UnixHTTPAdapter):  # type: ignore[misc] # the SDK has no types
        def send(self, *arguments: Any, **named: Any) -> Any:
            # This is before anything is sent, so any request may be repeated.
            for attempt in itertools.count():
                try:
                    _knock_at(path)
                    break
                except OSError:
                    if attempt == _ATTEMPTS or not waits or not _patient.get():
                        raise
                if attempt:
                    time.sleep(_FIRST_PAUSE * 2**attempt)
            return super().send(*arguments, **named)

        def get_connection(self, url: str, proxies: object = None) -> Pool:
            del proxies
            with self.pools.lock:
                if url not in self.pools:
                    self.pools[url] = Pool(url, path, self.timeout, maxsize=self.max_pool_size)
                pool: Pool = self.pools[url]
                return pool

    return Adapter(f"http+unix://{path}", timeout)


def _retries() -> Any:
    """Decides what follows a missing answer: a request that changes nothing is sent again."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError, SSLError  # noqa: PLC0415
    from urllib3.util.retry import Retry  # noqa: PLC0415 # with an engine it is installed

    class Again(Retry):
        def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: FBT001, FBT002
            return _patient.get() and super().is_retry(method, status_code, has_retry_after)

        def increment(  # type: ignore[override] # other arguments are passed on
            self, method: str | None = None, url: str | None = None, *, error: Exception | None = None, **named: Any
        ) -> Retry:
            # After a whole timeout there is no further wait, and a wrong certificate does not change.
            waited = isinstance(error, (ReadTimeoutError, ConnectTimeoutError)) and not isinstance(
                error, NewConnectionError
            )
            if error is not None and (waited or isinstance(error, SSLError) or not _patient.get()):
                raise error
            return super().increment(method, url, error=error, **named)

    return Again(
        total=_ATTEMPTS,
        allowed_methods=frozenset({"GET"}),
        status_forcelist=_TROUBLED,
        backoff_factor=_FIRST_PAUSE,
        raise_on_status=False,
    )
