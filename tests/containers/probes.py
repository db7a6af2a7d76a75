"""Tries to get out, in every way that needs no rights. Run in a desktop: `python3 probes.py '{"addresses": [...], ...}'`.

It prints how many ways it has tried, and which of them brought an answer. Whether something arrives elsewhere, those who listen
there must say. It needs nothing but Python, and imports nothing of ours.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = 4.0
UNANSWERABLE = {2, 5}  # what DNS calls SERVFAIL and REFUSED


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def tcp(address: str, port: int, mark: str) -> str:
    with socket.socket(family(address)) as client:
        client.settimeout(LIMIT)
        client.connect((address, port))
        client.sendall(mark.encode())
        return "connected"


def udp(address: str, port: int, mark: str) -> str:
    with socket.socket(family(address), socket.SOCK_DGRAM) as client:
        client.settimeout(LIMIT)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.sendto(mark.encode(), (address, port))
        return repr(client.recv(1500))


def question(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 0x4242, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def answered(reply: bytes) -> str:
    code = reply[3] & 15
    return "" if code in UNANSWERABLE else f"name server said {code}"


def dns_udp(address: str, name: str) -> str:
    with socket.socket(family(address), socket.SOCK_DGRAM) as client:
        client.settimeout(LIMIT)
        client.sendto(question(name), (address, 53))
        return answered(client.recv(1500))


def dns_tcp(address: str, name: str) -> str:
    with socket.socket(family(address)) as client:
        client.settimeout(LIMIT)
        client.connect((address, 53))
        asked = question(name)
        client.sendall(struct.pack(">H", len(asked)) + asked)
        return answered(client.recv(1500)[2:])


def lookup(name: str) -> str:
    return repr(socket.getaddrinfo(name, 443))


def ping(address: str) -> str:
    six = ":" in address
    kind = socket.getprotobyname("ipv6-icmp") if six else socket.IPPROTO_ICMP
    with socket.socket(family(address), socket.SOCK_DGRAM, kind) as client:
        client.settimeout(LIMIT)
        client.sendto(struct.pack(">BBHHH", 128 if six else 8, 0, 0, 1, 1) + b"deskhand", (address, 0))
        return repr(client.recv(1500))


def raw(kind: int, protocol: int) -> str:
    with socket.socket(kind, socket.SOCK_RAW, protocol):
        return "made"


def command(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    return "done" if done.returncode == 0 else ""


def asked(proxy: str, request: str) -> str:
    """What the proxy must not do: any answer of another host's."""
    host, _, port = proxy.rpartition(":")
    with socket.create_connection((host, int(port)), LIMIT) as client:
        client.settimeout(20)
        client.sendall(request.encode())
        status = client.recv(1500).split(b"\r\n")[0]
        code = status.split()[1:2]
        # 501 is what it says to a scheme that it does not speak.
        return "" if code and (code[0].startswith(b"4") or code[0] == b"501") else repr(status)


def ways(told: dict[str, Any]) -> Iterator[tuple[Callable[..., str], tuple[Any, ...]]]:
    everywhere = [*told["addresses"], *told["elsewhere"]]
    for address in everywhere:
        ports = told["ports"] if address in told["addresses"] else (22, 53, 80, 443, 3128)
        yield from ((tcp, (address, port, told["mark"])) for port in ports)
        yield from ((udp, (address, port, told["mark"])) for port in (*ports[:2], 443))
        yield ping, (address,)
    for number, server in enumerate(["127.0.0.11", "127.0.0.1", *everywhere]):
        yield dns_udp, (server, f"u{number}.example.org")
        yield dns_tcp, (server, f"t{number}.example.org")
    yield from ((lookup, (name,)) for name in ("example.org", "www.debian.org", "host.docker.internal", "gateway"))
    every = socket.ntohs(3)
    yield from ((raw, (socket.AF_INET, protocol)) for protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_RAW, 6, 17))
    yield raw, (socket.AF_PACKET, every)
    # What a program may do in a network of its own has no way to ours.
    into = "/proc/1/ns/net"
    yield command, ("nsenter", f"--net={into}", "true")
    yield command, ("unshare", "-Ur", "nsenter", f"--net={into}", "true")
    yield command, ("ip", "route", "add", "default", "via", told["addresses"][0])
    if told["proxy"]:
        yield from ((asked, (told["proxy"], request)) for request in requests(told))


def requests(told: dict[str, Any]) -> Iterator[str]:
    """To everything but the listed host: by its address, in all its spellings, and through what parsers differ in."""
    listed, port, closed = told["listed"], told["ports"][0], told["closed"]
    number = struct.unpack(">I", socket.inet_aton(closed))[0]
    spelt = [closed, str(number), hex(number), closed.replace(".", ".0"), f"[::ffff:{closed}]", "[::1]", "127.0.0.1"]
    names = ["localhost", "other.test", "proxy", f"x{listed}", f"{listed}.test", f"x.{listed}", f"{listed}@{closed}"]
    tricks = [f"{closed}%00.{listed}", f"{closed}#.{listed}", f"{closed}?.{listed}", f"{closed}\\@{listed}"]
    for host in [*spelt, *names, *told["elsewhere"][:3]]:
        yield f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {listed}\r\nConnection: close\r\n\r\n"
        yield f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {listed}:{port}\r\n\r\n"
    for host in tricks:
        yield f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {listed}\r\nConnection: close\r\n\r\n"
    for other in (1, 22, 25, 53, port + 1):
        yield f"CONNECT {listed}:{other} HTTP/1.1\r\n\r\n"
        yield f"GET http://{listed}:{other}/ HTTP/1.0\r\n\r\n"
    for scheme in ("ftp", "https", "gopher", "wais", "urn", "cache_object", "file"):
        yield f"GET {scheme}://{listed}:{port}/ HTTP/1.0\r\n\r\n"
    yield f"GET / HTTP/1.1\r\nHost: {closed}:{port}\r\nConnection: close\r\n\r\n"
    yield "GET http://proxy:3128/squid-internal-mgr/menu HTTP/1.0\r\n\r\n"


def tried(way: tuple[Callable[..., str], tuple[Any, ...]]) -> str:
    what, arguments = way
    try:
        found = what(*arguments)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found and f"{what.__name__} {arguments}: {found}"


def main() -> None:
    told = json.loads(sys.argv[1])
    all_ways = list(ways(told))
    with ThreadPoolExecutor(64) as pool:
        found = [text for text in pool.map(tried, all_ways) if text]
    kinds = {kind: len(list(group)) for kind, group in itertools.groupby(sorted(w[0].__name__ for w in all_ways))}
    print(json.dumps({"tried": len(all_ways), "kinds": kinds, "out": found, "user": os.getuid()}))


if __name__ == "__main__":
    main()
