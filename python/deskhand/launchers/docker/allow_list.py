"""The hosts that a desktop may reach: their notation, and the rules of the proxy that lets it reach them.

This module owns the spelling of a host and the text of Squid's configuration. What must never appear here: an engine, a
container, I/O of any kind.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from deskhand._core.arguments import expect_several
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Sequence

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

WEB = (80, 443)
"""The ports of a host that is listed without one."""

CLOSED = (
    # This machine, the networks around it, and addresses that answer only in them: a name in another party's server must not
    # lead there. Azure's service for its machines and the ways to write IPv4 in IPv6 are among them.
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"),
    *("::/127", "64:ff9b::/32", "2001::/32", "2002::/16", "fc00::/7", "fe80::/9", "ff00::/8"),
)
"""Where a listed name may not lead, unless its entry names the address."""

_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in ("0.0.0.0/8", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.192/32", "224.0.0.0/3")
) + tuple(ipaddress.ip_network(text) for text in ("::/127", "fd00:ec2::254/128", "fe80::/9", "ff00::/8"))

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# A name with such an end is an address, in one of many spellings, to some programs.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST = 253
_NETWORKS = frozenset({"none", "bridge", "host", "default"})


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One entry of a list.

    Attributes:
        name: In lower case and in ASCII, without its `*.`.
        below: Whether it means every name below it, and not the name itself.
        ports: The ports that may be reached.
        address: The address, instead of what its name resolves to.
    """

    name: str
    below: bool = False
    ports: tuple[int, ...] = WEB
    address: Address | None = None


def parse_hosts(hosts: Sequence[str]) -> tuple[AllowedHost, ...]:
    """The entries of a list: `example.org`, `*.example.org:443`, `intranet.example:8080=10.0.0.5`.

    Raises:
        ActionError: It is empty, or one of them is not a host.
    """
    found = tuple(dict.fromkeys(_parse(text) for text in expect_several("the hosts", hosts)))
    if not found:
        raise ActionError("the list of hosts is empty: for no network use network='none'")
    addresses: dict[str, Address] = {}
    for host in found:
        if host.address is not None and addresses.setdefault(host.name, host.address) != host.address:
            both = f"{addresses[host.name]} and {host.address}"
            raise ActionError(f"the host {host.name!r} is given two addresses, {both}: give it one")
    return found


def _parse(text: str) -> AllowedHost:
    if not isinstance(text, str):
        raise ActionError(f"a host is a text like 'example.org:443', not {text!r}")
    named, pinned, where = text.partition("=")
    name, colon, digits = named.partition(":")
    if "/" in text:
        host = named.partition("//")[2].partition("/")[0] or named.partition("/")[0]
        raise ActionError(f"a host is no URL, and has no path: {host!r}, not {text!r}")
    if name.strip().lower() in _NETWORKS:
        raise ActionError(f"{name!r} is no host: give a network by itself, network='none' or network='bridge'")
    if (address := _address(named)) is not None:
        raise ActionError(f"a host has a name: 'some.name={address}', not {text!r}, and call it by that")
    below = name.startswith("*.")
    plain = _ascii(name.removeprefix("*."), text)
    ports = WEB if not colon else (_port(digits, text),)
    if not pinned:
        return AllowedHost(plain, below, ports)
    if below:
        raise ActionError(f"an address belongs to one name: list the names below {plain!r} one by one, not {text!r}")
    return AllowedHost(plain, below, ports, _reachable(where, text))


def _ascii(name: str, text: str) -> str:
    example = "give a name like 'example.org' or '*.example.org', with ':443' for one port"
    try:
        plain = name.lower() if name.isascii() else name.encode("idna").decode()
    except UnicodeError as error:
        raise ActionError(f"{text!r} is no host: {example}") from error
    plain = plain.removesuffix(".")
    labels = plain.split(".")
    if len(plain) > _LONGEST or not all(_LABEL.fullmatch(label) for label in labels):
        raise ActionError(f"{text!r} is no host: {example}")
    if _NUMBER.fullmatch(labels[-1]):
        raise ActionError(f"{text!r} would be taken for an address: {example}")
    return plain


def _port(digits: str, text: str) -> int:
    # isdecimal() alone would accept digits of other scripts.
    if not (digits.isascii() and digits.isdecimal() and 1 <= int(digits) <= 65535):
        raise ActionError(f"a port is a number from 1 to 65535, not {digits!r} in {text!r}")
    return int(digits)


def _address(text: str) -> Address | None:
    host, _, port = text.rpartition(":")
    for candidate in (text, text.strip("[]"), host.strip("[]") if port.isdecimal() else ""):
        try:
            return ipaddress.ip_address(candidate)
        except ValueError:
            continue
    return None


def _reachable(where: str, text: str) -> Address:
    try:
        address = ipaddress.ip_address(where)
    except ValueError as error:
        raise ActionError(
            f"after '=' comes an IP address, as in 'some.name=10.0.0.5', not {where!r} in {text!r}"
        ) from error
    plain = getattr(address, "ipv4_mapped", None) or address
    if any(plain in network for network in _NEVER):
        raise ActionError(
            f"{address} in {text!r} is the proxy's own, or only of this link: nothing there may be reached"
        )
    return plain


def configuration(hosts: Sequence[AllowedHost], listen: str, desktop: str) -> str:
    """Squid's configuration: who may reach what, and no cache.

    Args:
        hosts: Everything that may be reached.
        listen: Its own address and port in the desktop's network, the only place where it listens.
        desktop: The only address that may send requests.
    """
    rules = [
        f"acl desktop src {desktop}",
        *(f"acl closed dst {network}" for network in CLOSED),
        # Everything that a name can lead to, but not nothing: Squid would resolve it again later, without a check.
        "acl resolved dst 0.0.0.0/0",
        "acl resolved dst ::/0",
        "deny_info 503:ERR_DNS_FAIL resolved",
    ]
    allowed = []
    for number, host in enumerate(hosts):
        # -n: an address in a request is not looked up to find a name for it.
        rules += [
            f"acl host{number} dstdom_regex -n -i ^.+\\.{re.escape(host.name)}$"
            if host.below
            else f"acl host{number} dstdomain -n {host.name}",
            f"acl ports{number} port {' '.join(map(str, host.ports))}",
        ]
        # The name comes first: a name that is not listed must not reach any server, not even a name server.
        if host.address is None:
            allowed.append(f"http_access deny host{number} ports{number} !resolved")
            allowed.append(f"http_access allow host{number} ports{number} !closed")
        else:
            allowed.append(f"http_access allow host{number} ports{number}")
    return "\n".join([f"http_port {listen}", *rules, *_ALWAYS, *allowed, "http_access deny all", ""])


_ALWAYS = (
    "acl tunnel method CONNECT",
    # Otherwise Squid would speak FTP, TLS and others by itself.
    "acl web proto HTTP",
    "http_access deny manager",
    "http_access deny !desktop",
    "http_access deny !tunnel !web",
    # The socket for name lookups: only its own resolver can send to it.
    "udp_incoming_address 127.0.0.1",
    "dns_defnames off",
    "relaxed_header_parser off",
    "via off",
    "forwarded_for delete",
    "httpd_suppress_version_string on",
    "visible_hostname proxy",
    "email_err_data off",
    "cache deny all",
    "cache_mem 0",
    "memory_pools off",
    "max_filedescriptors 1024",
    # It has no helpers, but checks that they are there.
    "unlinkd_program /usr/bin/true",
    "pinger_enable off",
    "netdb_filename none",
    "pid_filename none",
    "coredump_dir none",
    "cache_store_log none",
    "logfile_rotate 0",
    "shutdown_lifetime 0 seconds",
    # The requests, without paths, which are private to the desktop.
    "logformat asked %ts.%03tu %rm %>rd:%>rP %>Hs %<a",
    "access_log stdio:/dev/stdout asked",
    "cache_log stdio:/dev/stderr",
)
