"""Listening for clients, and serving them with uvicorn.

This module owns the socket, and the rule that beyond this machine only TLS is spoken.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from deskhand.errors import ActionError, ConnectFailed
from deskhand.watch.site import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

WEB_SOCKETS = "deskhand.watch.closing:Protocol"
"""What serves WebSockets, for uvicorn's option `ws`."""


def refuse_plain(host: str, certificate: str | None, what: str) -> None:
    """Refuse to serve others on the network without TLS.

    Args:
        host: The address to listen at.
        certificate: The certificate's file, if there is one.
        what: What others could read.

    Raises:
        ActionError: Others could.
    """
    if certificate is None and not is_loopback(host):
        raise ActionError(
            f"at {host} others on the network could read {what}: give --certificate for TLS, or listen at "
            "127.0.0.1 and let a tunnel (ssh -L) or a proxy with TLS lead there"
        )


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at a socket; with port 0 at a free one.

    Raises:
        ConnectFailed: That is not possible.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConnectFailed(f"{host}:{port}", f"cannot listen there: {error.strerror or error}") from error
    with listener:
        # Its connections have this too. asyncio leaves them out, and an answer of two parts waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


class UvicornOptions(TypedDict, total=False):
    """Options of `uvicorn.Config`, as that names them."""

    access_log: bool
    lifespan: str
    limit_concurrency: int
    server_header: bool
    ssl_certfile: str | None
    ssl_keyfile: str | None
    timeout_graceful_shutdown: int
    ws: str
    ws_max_size: int
    ws_per_message_deflate: bool


def server_of(uvicorn: Any, served: object, **options: Unpack[UvicornOptions]) -> Any:
    """The server of uvicorn for an application.

    Args:
        uvicorn: The library, which comes with an extra.
        served: The application.
        options: Further options of `uvicorn.Config`.
    """
    # The last request may be a long wait on the desktop, and its client is gone.
    given = {"timeout_graceful_shutdown": 1, "ws": WEB_SOCKETS, **options}
    return uvicorn.Server(uvicorn.Config(served, log_level="warning", **given))


def names_of(certificate: str) -> tuple[str, ...]:
    """The names that a certificate is for.

    Args:
        certificate: Its file, PEM.

    Raises:
        ActionError: It is no certificate.
    """
    from cryptography import x509  # noqa: PLC0415 # slow to import, and only TLS needs it

    try:
        with open(certificate, "rb") as file:  # noqa: PTH123 # one read
            found = x509.load_pem_x509_certificate(file.read())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    except (OSError, ValueError) as error:
        raise ActionError(f"{certificate} is no certificate in PEM: {error}") from error
    addresses = (f"[{each}]" if each.version == 6 else str(each) for each in names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)
