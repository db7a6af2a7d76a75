"""Clients of the page's server that are no page: requests and sockets, as well made or as badly as a test wants."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from websockets.sync.connection import Connection

    from deskhand.watch import Server

# The code that a connection is closed with whose grant has ended.
ENDED = 4401


def ask(
    server: Server, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, dict[str, str]]:
    """A request as this server's own page makes it; `headers` change that, and an empty one is left out."""
    place = urlsplit(server.url)
    sent = {"Host": place.netloc, "Origin": server.url.rstrip("/"), **(headers or {})}
    client = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        data = json.dumps(body) if body is not None and not isinstance(body, str) else body
        client.putrequest(method, path, skip_host=True)
        for name, value in {**sent, **({"Content-Length": str(len(data))} if data else {})}.items():
            if value:
                client.putheader(name, value)
        client.endheaders(data.encode() if data else None)
        answer = client.getresponse()
        text = answer.read()
        told = json.loads(text) if answer.headers.get_content_type() == "application/json" and text else text
        return answer.status, told, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        client.close()


def enter(server: Server, *scopes: Any, **options: Any) -> tuple[str, str]:
    """Open a link: the cookie and the key."""
    key = secrets.token_urlsafe(32)
    code, told, headers = exchange(server, server.link(*scopes, **options).partition("#")[2], key)
    assert code == 200, told
    return headers["set-cookie"].partition(";")[0], key


def exchange(server: Server, token: str, key: str = "k" * 43, **options: Any) -> tuple[int, Any, dict[str, str]]:
    """Give a link's token, as a page with this key."""
    return ask(server, "POST", "/session", {"token": token, "key": key}, **options)


@contextlib.contextmanager
def socket(
    server: Server, keys: tuple[str, str], path: str = "/live/0", *, headers: Mapping[str, str] | None = None
) -> Iterator[Connection]:
    place = urlsplit(server.url)
    sent = {"Cookie": keys[0], "Origin": server.url.rstrip("/"), **(headers or {})}
    with connect(
        f"ws://{place.netloc}{path}",
        additional_headers={name: value for name, value in sent.items() if value and name != "Origin"},
        origin=sent["Origin"] or None,  # type: ignore[arg-type] # a text of its own type
        subprotocols=["deskhand.watch.1", f"key.{keys[1]}"],  # type: ignore[list-item] # likewise
        max_size=None,
        open_timeout=60,
    ) as made:
        yield made


def refused(server: Server, keys: tuple[str, str], path: str = "/live/0", **options: Any) -> int:
    """The status with which a socket is refused."""
    with pytest.raises((InvalidStatus, InvalidMessage)) as caught, socket(server, keys, path, **options):
        pass
    assert isinstance(caught.value, InvalidStatus)
    return caught.value.response.status_code


def turn(made: Connection) -> dict[str, Any]:
    """The next turn, acknowledged."""
    return turn_and_picture(made)[0]


def turn_and_picture(made: Connection) -> tuple[dict[str, Any], bytes]:
    """The next turn, acknowledged, and the bytes of its picture."""
    told: dict[str, Any] = json.loads(made.recv(timeout=60))
    data = made.recv(timeout=60) if told["picture"] else b""
    assert isinstance(data, bytes)
    made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
    return told, data


def closed_with(made: Connection) -> tuple[int, str]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            made.recv(timeout=60)
    return made.close_code or 0, made.close_reason or ""


def news(made: Connection) -> dict[str, Any]:
    """What the page is told next of what it sends."""
    while "upload" not in (told := turn(made)):
        pass
    found: dict[str, Any] = told["upload"]
    return found


def announce(made: Connection, size: int, kind: str = "file", name: str = "a.txt") -> dict[str, Any]:
    made.send(json.dumps({"type": "upload", "id": 1, "kind": kind, "name": name, "size": size}))
    return news(made)


def take_control(made: Connection, *, private: bool = False) -> None:
    made.send(json.dumps({"type": "take", "private": private, "force": True}))
    while not ((state := turn(made).get("state")) and state["holder"] and state["holder"]["mine"]):
        pass
