"""Who else is on Docker's bridge: a server in a container, which tells who has come to it. And the same on this machine."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faults.helpers import until
from ports import begin_at_a_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.launchers.docker.engine import Engine

PORT = 8000
_READY_LIMIT = 30.0
_SERVER = """
import http.server, socket, sys, threading
name = sys.argv[1]
class Server(http.server.ThreadingHTTPServer):
    def verify_request(self, request, address):
        print("tcp", address[0], flush=True)
        return True
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(name.encode())
    def log_message(self, *_):
        pass
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 8000))
def echo():
    while True:
        data, address = datagrams.recvfrom(1500)
        print("udp", address[0], flush=True)
        datagrams.sendto(data, address)
threading.Thread(target=echo, daemon=True).start()
server = Server(("", 8000), Answer)
print("ready", flush=True)
server.serve_forever()
"""

# Each question gets the next of the answers that its name has, `fail` and `none` among them; what it
# does not know does not exist. An address has a life of no second.
_RESOLVER = """
import ipaddress, json, socket, struct, sys
names = json.loads(sys.argv[1])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 53))
print("ready", flush=True)
while True:
    query, address = server.recvfrom(1500)
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    name, kind = ".".join(labels), struct.unpack_from(">H", query, at + 1)[0]
    question = query[12 : at + 5]
    answers = names.get(name, {}).get({1: "A", 28: "AAAA"}.get(kind), ["none"])
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    print("asked", name, {1: "A", 28: "AAAA"}.get(kind, kind), answer, flush=True)
    code = 2 if answer == "fail" else 3 if name not in names else 0
    found = b"" if answer in ("fail", "none") else ipaddress.ip_address(answer).packed
    record = struct.pack(">3HLH", 0xC00C, kind, 1, 0, len(found)) + found if found else b""
    head = query[:2] + struct.pack(">5H", 0x8180 | code, 1, 1 if found else 0, 0, 0)
    server.sendto(head + question + record, address)
"""


@dataclass
class Neighbour:
    """A container with a server at port 8000, TCP and UDP; `gateway` is this machine, as it sees it."""

    engine: Engine
    container: str
    address: str
    gateway: str

    def visits(self) -> list[str]:
        """Who came: `tcp 172.17.0.3`."""
        return [line for line in self.engine.api.logs(self.container).decode().splitlines() if line != "ready"]


@contextlib.contextmanager
def neighbour(engine: Engine, image: str, answer: str) -> Iterator[Neighbour]:
    """A server on the default bridge that answers every GET with `answer`."""
    with _running(engine, image, _SERVER, answer) as found:
        yield found


@contextlib.contextmanager
def name_server(engine: Engine, image: str, names: Mapping[str, Mapping[str, list[str]]]) -> Iterator[Neighbour]:
    """A name server on the default bridge, which gives `{"name": {"A": ["first answer", "all others"], "AAAA": [...]}}`."""
    with _running(engine, image, _RESOLVER, json.dumps(names)) as found:
        yield found


@contextlib.contextmanager
def _running(engine: Engine, image: str, script: str, argument: str) -> Iterator[Neighbour]:
    name = f"deskhand-test-{secrets.token_hex(6)}"
    entrypoint = ["python3", "-c", script, argument]
    made = engine.api.create_container(image, name=name, entrypoint=entrypoint, detach=True)["Id"]
    try:
        engine.api.start(made)
        until(lambda: b"ready" in engine.api.logs(made), _READY_LIMIT, "the neighbour")
        found = engine.api.inspect_container(made)["NetworkSettings"]["Networks"]["bridge"]
        yield Neighbour(engine, made, found["IPAddress"], found["Gateway"])
    finally:
        engine.api.remove_container(made, force=True, v=True)


@dataclass
class Listener:
    """A port of this machine, TCP and UDP, at all its addresses."""

    port: int
    heard: list[str] = field(default_factory=list)


def _both(port: int) -> tuple[socket.socket, socket.socket]:
    server, datagrams = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        for each in (server, datagrams):
            each.bind(("", port))
        server.listen(64)
    except OSError:
        server.close()
        datagrams.close()
        raise
    return server, datagrams


@contextlib.contextmanager
def listening_here(mark: str) -> Iterator[Listener]:
    """Listen on this machine, and note whoever says `mark`: it may have other visitors."""
    server, datagrams = begin_at_a_port(_both)
    with server, datagrams:
        listener = Listener(server.getsockname()[1])

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, address = server.accept()
                    with client:
                        client.settimeout(5)
                        with contextlib.suppress(TimeoutError):
                            note("tcp", client.recv(1500), address[0])

        def receive() -> None:
            with contextlib.suppress(OSError):
                while True:
                    data, address = datagrams.recvfrom(1500)
                    if address is None:
                        return  # shut down
                    note("udp", data, address[0])
                    datagrams.sendto(data, address)

        def note(kind: str, data: bytes, address: str) -> None:
            if data == mark.encode():
                listener.heard.append(f"{kind} {address}")

        threads = [threading.Thread(target=work, daemon=True) for work in (accept, receive)]
        for thread in threads:
            thread.start()
        yield listener
        # It wakes who waits in them, which closing alone does not.
        for waiting in (server, datagrams):
            with contextlib.suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)
