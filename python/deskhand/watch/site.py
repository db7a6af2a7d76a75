"""Whose page a request comes from: the checks of `Host` and `Origin`, and the headers of every answer.

A name that an attacker's DNS points to this machine (DNS rebinding) shows in `Host`; a page of another site that opens a socket
here shows in `Origin`. This module is pure.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deskhand._core.arguments import expect_texts
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SCHEMES = {"http": "http", "ws": "http", "https": "https", "wss": "https"}


class Site:
    """The names that a server answers to, and who may put its page into a frame."""

    def __init__(self, hosts: Iterable[str] = (), embed_in: Iterable[str] = ()) -> None:
        """Check both.

        Args:
            hosts: Names beside those of loopback, as `Host` has them: `desk.example`, for any port, or `desk.example:8443`;
                `*.example` for every name one step below.
            embed_in: The origins of pages that may show this one in a frame, as `https://console.example`.

        Raises:
            ActionError: One of them is no host or no origin.
        """
        self._hosts: frozenset[str] = frozenset(map(_host, expect_texts("hosts", hosts)))
        self.embed_in: tuple[str, ...] = tuple(map(_origin, expect_texts("embed_in", embed_in)))

    def knows(self, host: str) -> bool:
        """Whether a `Host` header names this server."""
        host = host.lower()
        name = _name(host)
        if name in _LOOPBACK:
            return True
        above = f"*.{name.partition('.')[2]}"
        return bool({host, name, above} & self._hosts)

    def refusal(self, scheme: str, headers: Mapping[str, str], *, changes: bool) -> str:
        """Why a request is refused; empty if it is not.

        Args:
            scheme: `http`, `https`, `ws` or `wss`.
            headers: Its headers, their names in lower case.
            changes: It opens a socket or changes something, so it must come from this server's own page.
        """
        host = headers.get("host", "")
        if not self.knows(host):
            return "this server does not answer to that name: open the link that it printed"
        if not changes:
            return ""
        if headers.get("origin", "").lower() != f"{_SCHEMES.get(scheme, '')}://{host.lower()}":
            return "only this server's own page may do this"
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return "only this server's own page may do this"
        return ""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The security headers of every answer."""
        ancestors = " ".join(self.embed_in) or "'none'"
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
            f"base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        headers = {
            "content-security-policy": policy,
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        }
        if not self.embed_in:
            headers["x-frame-options"] = "DENY"
        return [(name.encode(), value.encode()) for name, value in headers.items()]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _host(given: str) -> str:
    host = given.lower()
    try:
        parts = urlsplit(f"//{host}")
        known = parts.hostname is not None and parts.netloc == host and not parts.username and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known or set(host) & set(" /;,'\"?#@") or "*" in host.removeprefix("*."):
        raise ActionError(f"hosts: {shown(given)} is no host: write it as desk.example or desk.example:8443")
    return host


def _origin(given: str) -> str:
    scheme, _, host = given.partition("://")
    if scheme not in {"http", "https"}:
        raise ActionError(f"embed_in: {shown(given)} is no origin: write it as https://console.example")
    try:
        return f"{scheme}://{_host(host)}"
    except ActionError:
        raise ActionError(f"embed_in: {shown(given)} is no origin: write it as https://console.example") from None
