"""Who is let in, and who is not: links, cookies, origins, names, messages, and programs inside the desktop."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import connect

import deskhand
from deskhand import ActionError, Move, watch
from deskhand.desktop.access import bare
from deskhand.watch import Grants, application
from deskhand.watch.hands import Hands
from deskhand.watch.watched import Watched
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from websockets.sync.connection import Connection

    from deskhand.watch import Server

LIMIT = 20.0
ENDED = 4401


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[deskhand.Desktop, Server]]:
    home = tmp_path_factory.mktemp("home")
    with (
        deskhand.launch(size=(320, 240), window_manager=None, env={"HOME": str(home)}) as desktop,
        watch.serve(desktop) as server,
    ):
        yield desktop, server


@pytest.fixture
def server(watched: tuple[deskhand.Desktop, Server]) -> Server:
    return watched[1]


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
    token = server.link(*scopes, **options).partition("#")[2]
    code, told, headers = ask(server, "POST", "/session", {"token": token})
    assert code == 200, told
    return headers["set-cookie"].partition(";")[0], told["key"]


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
    told: dict[str, Any] = json.loads(made.recv(timeout=60))
    if told["picture"]:
        assert isinstance(made.recv(timeout=60), bytes)
    made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
    return told


def closed_with(made: Connection) -> tuple[int, str]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            made.recv(timeout=60)
    return made.close_code or 0, made.close_reason or ""


def test_a_token_works_once_and_guesses_do_not(server: Server) -> None:
    token = server.link("watch").partition("#")[2]
    assert len(token) >= 43
    for guess in ("", "x", token[:-1], token + "x", token.swapcase(), "\0", "x" * 200):
        assert ask(server, "POST", "/session", {"token": guess})[0] in {400, 403}
    assert ask(server, "POST", "/session", {"token": token})[0] == 200
    code, told, _ = ask(server, "POST", "/session", {"token": token})
    assert (code, told) == (403, {"detail": "this link is unknown, was used already, or is too old: ask for a new one"})


def test_nothing_is_shown_without_a_grant(server: Server) -> None:
    keys, others = enter(server, "watch"), enter(server, "watch")
    assert ask(server, "GET", "/session", headers={"Cookie": keys[0], "X-Deskhand-Key": keys[1]})[0] == 200
    nothing = [("", ""), (keys[0], ""), ("", keys[1]), (keys[0], others[1]), (keys[0][:-1], keys[1])]
    for pair in nothing:
        assert ask(server, "GET", "/session", headers={"Cookie": pair[0], "X-Deskhand-Key": pair[1]})[0] == 401
        assert refused(server, pair) == 403
        assert refused(server, pair, "/grid") == 403


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server: Server) -> None:
    token = server.link("watch").partition("#")[2]
    _, _, headers = ask(server, "POST", "/session", {"token": token})
    parts = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
    assert headers["cache-control"] == "no-store"


FOREIGN = [
    "http://evil.example",
    "null",
    "https://127.0.0.1",
    "http://127.0.0.1.evil.example",
    "http://localhost:1",
    "file://",
    "",
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_pages_of_other_origins_are_refused(server: Server, origin: str) -> None:
    keys = enter(server, "watch", "control")
    assert refused(server, keys, headers={"Origin": origin}) == 403
    token = server.link("watch").partition("#")[2]
    assert ask(server, "POST", "/session", {"token": token}, headers={"Origin": origin})[0] == 403
    # It was not used up.
    assert ask(server, "POST", "/session", {"token": token})[0] == 200


def test_what_a_browser_calls_cross_site_is_refused(server: Server) -> None:
    keys = enter(server, "watch")
    assert refused(server, keys, headers={"Sec-Fetch-Site": "cross-site"}) == 403
    assert refused(server, keys, headers={"Sec-Fetch-Site": "same-site"}) == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::2]", "0"]
)
def test_other_names_of_this_machine_are_refused(server: Server, host: str) -> None:
    for path in ("/", "/main.js", "/session"):
        assert ask(server, "GET", path, headers={"Host": host})[0] in {400, 403}


def test_the_page_has_a_strict_policy_and_nothing_of_the_desktop(server: Server) -> None:
    for path in ("/", "/main.js", "/page.css", "/icon.svg", "/nothing", "/../server.py", "/%2e%2e/grants.py"):
        code, _, headers = ask(server, "GET", path)
        assert code == (200 if path in {"/", "/main.js", "/page.css", "/icon.svg"} else 404)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
    _, page, _ = ask(server, "GET", "/")
    assert b"<script>" not in page
    assert b"style=" not in page
    assert b"http" not in page.replace(b"http-equiv", b"")


def test_embedding_is_for_named_origins(watched: tuple[deskhand.Desktop, Server]) -> None:
    desktop, _ = watched
    with watch.serve(desktop, embed_in=["https://console.example"]) as server:
        _, _, headers = ask(server, "GET", "/")
        assert "frame-ancestors https://console.example;" in headers["content-security-policy"]
        assert "x-frame-options" not in headers
    for wrong in ("console.example", "https://", "https://a b", "*", "https://*", "https://x/y", "javascript:x"):
        with pytest.raises(ActionError):
            application(desktop, embed_in=[wrong])


MALFORMED = [
    "",
    "x",
    "[]",
    "null",
    "1e999",
    "{}",
    '{"type": 5}',
    '{"type": "nothing"}',
    '{"type": "ack"}',
    '{"type": "ack", "sequence": -1}',
    '{"type": "ack", "sequence": 99999}',
    '{"type": "ack", "sequence": true}',
    '{"type": "ack", "sequence": NaN}',
    '{"type": "move", "x": 1, "y": 70000}',
    '{"type": "move", "x": 1.5, "y": 1}',
    '{"type": "move", "x": 1, "y": 1, "z": 1}',
    '{"type": "key", "key": "", "down": true, "modifiers": []}',
    '{"type": "key", "key": "a", "down": 1, "modifiers": []}',
    '{"type": "key", "key": "a", "down": true, "modifiers": ["hyper"]}',
    '{"type": "button", "x": 1, "y": 1, "button": "sixth", "down": true, "modifiers": []}',
    '{"type": "wheel", "x": 1, "y": 1, "across": 0, "down": 1000, "modifiers": []}',
    '{"type": "text", "text": 5}',
    '{"type": "point", "x": -1, "y": 1}',
    '{"type": "point", "x": 1}',
    '{"type": "take"}',
    '{"type": "__class__"}',
    "[" * 100_000,
    json.dumps({"type": "text", "text": "x" * 70_000}),
]


def test_malformed_messages_end_the_connection(server: Server) -> None:
    for text in MALFORMED:
        # A link of its own: the connection before may count for a moment after it has ended.
        with socket(server, enter(server, "watch", "control", "approve")) as made:
            turn(made)
            made.send(text)
            assert closed_with(made)[0] == 1008, text[:100]
    with socket(server, enter(server, "watch", "control", "approve")) as made:
        made.send(b"\0" * 10)
        assert closed_with(made)[0] == 1008
    for large in ("x" * (1 << 20), b"x" * (1 << 20)):
        with socket(server, enter(server, "watch", "control", "approve")) as made:
            made.send(large)
            # 1006: the server has closed the connection while the rest of the message was on its way.
            assert closed_with(made)[0] in {1006, 1008, 1009}


def test_a_flood_of_messages_ends_the_connection(server: Server) -> None:
    keys = enter(server, "watch", "control")
    with socket(server, keys) as made:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(2000):
                made.send('{"type": "blur"}')
        assert closed_with(made) == (1008, "more than 300 messages a second")


CONTROLS = [
    {"type": "take", "private": False, "force": True},
    {"type": "move", "x": 1, "y": 1},
    {"type": "text", "text": "x"},
    {"type": "paste", "text": "x", "keys": True},
    {"type": "copy"},
    {"type": "pause"},
    {"type": "stop"},
    {"type": "release", "note": "x"},
    {"type": "decline", "id": 1, "note": ""},
    {"type": "answer", "id": 1, "allow": True, "session": False},
]


@pytest.mark.parametrize("message", CONTROLS, ids=lambda message: message["type"])
def test_a_viewer_does_what_its_link_is_for(watched: tuple[deskhand.Desktop, Server], message: dict[str, Any]) -> None:
    desktop, server = watched
    with socket(server, enter(server, "watch")) as made:
        made.send(json.dumps(message))
        errors: list[str] = []
        while not errors:
            errors = [answer["error"] for answer in turn(made).get("answers", [])]
        assert "it needs the scope" in errors[0]
    assert desktop.control.holder is None
    assert desktop.control.paused is None
    desktop.perform(Move((5, 5)))


def test_only_who_has_control_acts(watched: tuple[deskhand.Desktop, Server]) -> None:
    desktop, server = watched
    desktop.perform(Move((100, 100)))
    with socket(server, enter(server, "control")) as made:
        made.send(json.dumps({"type": "move", "x": 7, "y": 7}))
        errors: list[str] = []
        while not errors:
            errors = [answer["error"] for answer in turn(made).get("answers", [])]
        assert errors == ["you do not have control of this desktop: take it first"]
    assert desktop.pointer == (100, 100)


def test_the_picture_is_not_hidden_from_who_takes_control(
    watched: tuple[deskhand.Desktop, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for the moment in which the desktop is held already, and the page does not have the hold yet."""
    desktop, server = watched
    looked = threading.Event()
    hidden_from = Watched.hidden_from

    def looks(self: Watched, viewer: object) -> bool:
        hidden = hidden_from(self, viewer)
        if hidden:
            looked.set()
        return hidden

    def late(*arguments: Any, **options: Any) -> Hands:
        assert looked.wait(LIMIT), "the viewer has not looked"
        return Hands(*arguments, **options)

    monkeypatch.setattr(Watched, "hidden_from", looks)
    monkeypatch.setattr("deskhand.watch.watched.Hands", late)
    with socket(server, enter(server, "watch", "control", name="Ada")) as made:
        assert turn(made)["picture"]
        made.send(json.dumps({"type": "take", "private": True, "force": False}))
        states: list[dict[str, Any]] = []
        while not (states and states[-1]["holder"] and states[-1]["holder"]["mine"]):
            states += [told["state"] for told in [turn(made)] if "state" in told]
        assert [state["hidden"] for state in states] == [False] * len(states)
        made.send(json.dumps({"type": "release", "note": ""}))
        while states[-1]["holder"]:
            states += [told["state"] for told in [turn(made)] if "state" in told]
        assert [state["hidden"] for state in states] == [False] * len(states)
    assert desktop.control.holder is None


def test_an_answer_to_a_question_needs_the_scope_approve(server: Server) -> None:
    with socket(server, enter(server, "control")) as made:
        made.send(json.dumps({"type": "answer", "id": 1, "allow": True, "session": False}))
        errors: list[str] = []
        while not errors:
            errors = [answer["error"] for answer in turn(made).get("answers", [])]
        assert "scope approve" in errors[0]


def test_revoking_and_expiry_end_live_connections(watched: tuple[deskhand.Desktop, Server]) -> None:
    _, server = watched
    keys = enter(server, "watch", name="gone")
    with socket(server, keys) as made:
        turn(made)
        (grant,) = [each for each in server.grants.all() if each.name == "gone"]
        assert server.grants.revoke(grant.id)
        assert closed_with(made)[0] == ENDED
    assert refused(server, keys) == 403
    with socket(server, enter(server, "watch", lifetime=1.0)) as made:
        assert closed_with(made)[0] == ENDED


def test_a_grant_has_its_number_of_connections(server: Server) -> None:
    keys = enter(server, "watch", connections=1)
    with socket(server, keys) as made:
        turn(made)
        assert refused(server, keys) == 403

    def free() -> bool:
        with contextlib.suppress(InvalidStatus), socket(server, keys) as made:
            turn(made)
            return True
        return False

    until(free, LIMIT, "the connection to be free again")


def test_signing_out_ends_the_session(server: Server) -> None:
    keys = enter(server, "watch")
    headers = {"Cookie": keys[0], "X-Deskhand-Key": keys[1]}
    assert ask(server, "DELETE", "/session", headers={**headers, "Origin": "http://evil.example"})[0] == 403
    assert ask(server, "GET", "/session", headers=headers)[0] == 200
    assert ask(server, "DELETE", "/session", headers=headers)[0] == 204
    assert ask(server, "GET", "/session", headers=headers)[0] == 401


def test_large_and_broken_requests_are_refused(server: Server) -> None:
    for body in ("x" * 10_000, "{", "[]", '"x"', '{"token": 5}', json.dumps({"token": "x" * 300}), "[" * 4000):
        assert ask(server, "POST", "/session", body)[0] == 400


INSIDE = """
import http.client, json, sys
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
origin = "http://127.0.0.1:" + sys.argv[1]
client.request("POST", "/session", json.dumps({"token": sys.argv[2]}), {"Origin": origin})
answer = client.getresponse()
print(answer.status, answer.read().decode())
"""


def test_a_program_inside_the_desktop_cannot_use_a_link(
    watched: tuple[deskhand.Desktop, Server], tmp_path: Path
) -> None:
    desktop, server = watched
    script = tmp_path / "inside.py"
    script.write_text(INSIDE)
    token = server.link("watch", "approve").partition("#")[2]
    command = f"{sys.executable} {script} {urlsplit(server.url).port} {token}"
    assert bare(desktop).host.run(command).stdout.startswith("403")
    # A child that hides the display is known by its parent's.
    told = bare(desktop).host.run(f"env -u DISPLAY {command}").stdout
    assert told.startswith("403"), told
    assert "it comes from inside the desktop" in told
    assert ask(server, "POST", "/session", {"token": token})[0] == 200


def test_a_thousand_connections_leave_the_page_working(watched: tuple[deskhand.Desktop, Server]) -> None:
    import socket as sockets  # noqa: PLC0415 # the name is used for another thing here

    desktop, server = watched
    place = urlsplit(server.url)
    idle = []
    try:
        with contextlib.suppress(OSError):
            address = place.hostname or "", place.port or 0
            idle += [sockets.create_connection(address, timeout=5) for _ in range(1000)]
    finally:
        for each in idle:
            each.close()

    def works() -> bool:
        try:
            with socket(server, enter(server, "watch")) as made:
                return "state" in turn(made)
        except (OSError, InvalidStatus, InvalidMessage, AssertionError, http.client.HTTPException):
            return False

    assert until(works, LIMIT, "the page to work again")
    desktop.perform(Move((9, 9)))


def test_an_application_is_made_of_desktops(watched: tuple[deskhand.Desktop, Server]) -> None:
    desktop, _ = watched
    for wrong in ({}, {"name": "desktop"}, 5, None):
        with pytest.raises(ActionError):
            application(wrong)  # type: ignore[arg-type] # it is wrong on purpose
    with pytest.raises(ActionError):
        application(desktop, grants=5)  # type: ignore[arg-type] # likewise
    for host in ("a/b", "", "a b", "*", "http://x"):
        with pytest.raises(ActionError):
            application(desktop, hosts=[host])
    with pytest.raises(ActionError, match="others on the network could read"):
        watch.serve(desktop, host="0.0.0.0")
    assert isinstance(application(desktop).grants, Grants)
