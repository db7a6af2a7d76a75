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

import deskhand
from deskhand import ActionError, ClassPolicy, Desktop, Move, Questions, watch
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import bare
from deskhand.watch import Grants, application
from deskhand.watch.person_input import PersonInput
from deskhand.watch.transfers import LARGEST, PIECE
from deskhand.watch.watched import Watched
from faults.helpers import until
from watch.clients import ENDED, announce, ask, closed_with, enter, exchange, news, refused, socket, take_control, turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from websockets.sync.connection import Connection

    from deskhand.watch import Server

LIMIT = 20.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def watched(home: Path) -> Iterator[tuple[deskhand.Desktop, Server]]:
    with (
        deskhand.launch(size=(320, 240), window_manager=None, env={"HOME": str(home)}) as desktop,
        watch.serve(desktop) as server,
    ):
        yield desktop, server


@pytest.fixture
def server(watched: tuple[deskhand.Desktop, Server]) -> Server:
    return watched[1]


def test_a_token_works_once_and_guesses_do_not(server: Server) -> None:
    token = server.link("watch").partition("#")[2]
    assert len(token) >= 43
    for guess in ("", "x", token[:-1], token + "x", token.swapcase(), "\0", "x" * 200):
        assert exchange(server, guess)[0] in {400, 403}
    assert exchange(server, token)[0] == 200
    code, told, _ = exchange(server, token, "another page's key".center(43))
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
    _, _, headers = exchange(server, token)
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
    assert exchange(server, token, headers={"Origin": origin})[0] == 403
    # It was not used up.
    assert exchange(server, token)[0] == 200


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
    '{"type": "cancel", "id": 1}',
    '{"type": "upload", "id": 1, "kind": "file", "name": "x"}',
    '{"type": "upload", "id": 1, "kind": "link", "name": "x", "size": 1}',
    '{"type": "upload", "id": 1, "kind": "file", "name": ["x"], "size": 1}',
    '{"type": "upload", "id": 1, "kind": "file", "name": "x", "size": -1}',
    json.dumps({"type": "upload", "id": 1, "kind": "file", "name": "x", "size": LARGEST + 1}),
    json.dumps({"type": "upload", "id": 1, "kind": "file", "name": "x" * 2001, "size": 1}),
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
    {"type": "upload", "id": 1, "kind": "file", "name": "x", "size": 1},
    {"type": "cancel"},
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


def test_what_was_on_its_way_when_control_ended_is_no_error(watched: tuple[deskhand.Desktop, Server]) -> None:
    desktop, server = watched
    move = json.dumps({"type": "move", "x": 7, "y": 7})
    with (
        socket(server, enter(server, "control", name="Ada")) as made,
        socket(server, enter(server, "control", name="Bo")) as other,
    ):
        made.send(json.dumps({"type": "take", "private": False, "force": False}))
        while not ((told := _unanswered(made)).get("state", {}).get("holder") or {}).get("mine"):
            made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
        # Ada's page has not drawn that yet, and is told nothing more.
        turn(other)
        other.send(json.dumps({"type": "take", "private": False, "force": True}))
        until(lambda: desktop.control.holder is not None and desktop.control.holder.by == "Bo", LIMIT, "Bo's hold")
        made.send(move)
        made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
        told = _unanswered(made)
        assert "answers" not in told
        assert told["state"]["holder"]["by"] == "Bo"
        # This was on its way, too.
        made.send(move)
        made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
        made.send(json.dumps({"type": "answer", "id": 1, "allow": True, "session": False}))
        made.send(move)
        errors: list[str] = []
        while len(errors) < 2:
            errors += [answer["error"] for answer in turn(made).get("answers", [])]
        assert "it needs the scope" in errors[0]
        assert "you do not have control" in errors[1]
    until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")


def _unanswered(made: Connection) -> dict[str, Any]:
    """The next turn, not acknowledged."""
    told: dict[str, Any] = json.loads(made.recv(timeout=60))
    if told["picture"]:
        made.recv(timeout=60)
    return told


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

    def late(*arguments: Any, **options: Any) -> PersonInput:
        assert looked.wait(LIMIT), "the viewer has not looked"
        return PersonInput(*arguments, **options)

    monkeypatch.setattr(Watched, "hidden_from", looks)
    monkeypatch.setattr("deskhand.watch.watched.PersonInput", late)
    with socket(server, enter(server, "watch", "control", name="Ada")) as made:
        while not turn(made)["picture"]:
            pass
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


def test_who_leaves_while_taking_control_does_not_keep_it(
    watched: tuple[deskhand.Desktop, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop, server = watched
    takes, left = threading.Event(), threading.Event()
    leave = Watched.leave

    def leaves(self: Watched, viewer: object, **options: bool) -> None:
        leave(self, viewer, **options)
        left.set()

    def late(*arguments: Any, **options: Any) -> PersonInput:
        takes.set()
        assert left.wait(LIMIT), "the viewer has not left"
        return PersonInput(*arguments, **options)

    monkeypatch.setattr(Watched, "leave", leaves)
    monkeypatch.setattr("deskhand.watch.watched.PersonInput", late)
    with socket(server, enter(server, "control", name="Ada")) as made:
        made.send(json.dumps({"type": "take", "private": False, "force": False}))
        assert takes.wait(LIMIT), "control was not taken"
    until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")


def test_an_answer_to_a_question_needs_the_scope_approve(server: Server) -> None:
    with socket(server, enter(server, "control")) as made:
        made.send(json.dumps({"type": "answer", "id": 1, "allow": True, "session": False}))
        errors: list[str] = []
        while not errors:
            errors = [answer["error"] for answer in turn(made).get("answers", [])]
        assert "scope approve" in errors[0]


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
    token = server.link("watch").partition("#")[2]
    for key in ("", "short", "x" * 300, None):
        assert ask(server, "POST", "/session", {"token": token, "key": key})[0] == 400
    assert exchange(server, token)[0] == 200


INSIDE = """
import http.client, json, sys
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
origin = "http://127.0.0.1:" + sys.argv[1]
client.request("POST", "/session", json.dumps({"token": sys.argv[2], "key": "k" * 43}), {"Origin": origin})
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
    assert exchange(server, token)[0] == 200


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
    for wrong in ({"name": "desktop"}, {5: desktop}, 5, None):
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


def test_without_control_nothing_of_a_page_is_taken(server: Server, home: Path) -> None:
    with socket(server, enter(server, "control")) as made:
        turn(made)
        assert announce(made, 3)["error"] == "you do not have control of this desktop: take it first"
        made.send(b"abc")
        assert closed_with(made) == (1008, "these bytes were not announced")
    assert not (home / "Downloads").exists()


@pytest.mark.parametrize(
    ("size", "pieces"),
    [
        (0, [b"x"]),
        (3, [b"abcd"]),
        (3, [b"ab"]),
        (3, [b""]),
        (3, [b"abc", b"d"]),
        (PIECE + 1, [b"x"]),
        (PIECE + 1, [bytes(PIECE), b"xx"]),
        (2 * PIECE, [bytes(2 * PIECE - 1)]),
    ],
)
def test_bytes_that_were_not_announced_end_the_connection(
    watched: tuple[deskhand.Desktop, Server], size: int, pieces: list[bytes]
) -> None:
    desktop, server = watched
    with socket(server, enter(server, "control")) as made:
        take_control(made)
        assert not announce(made, size)["error"]
        for piece in pieces:
            made.send(piece)
        assert closed_with(made) == (1008, "these bytes were not announced")
    until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")


def test_a_second_file_waits_for_the_first(watched: tuple[deskhand.Desktop, Server], home: Path) -> None:
    desktop, server = watched
    with socket(server, enter(server, "control")) as made:
        take_control(made)
        announce(made, PIECE + 3, name="kept.txt")
        assert "not on the desktop yet" in announce(made, 3, name="second.txt")["error"]
        made.send('{"type": "cancel"}')
        made.send('{"type": "release", "note": ""}')
        until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")
        take_control(made)
        announce(made, 3, name="third.txt")
        made.send(b"abc")
        while not (told := news(made))["over"]:
            pass
        assert told["where"] == f"{home}/Downloads/third.txt"
    assert [path.name for path in (home / "Downloads").iterdir() if path.name in {"kept.txt", "second.txt"}] == []


@pytest.mark.parametrize("way", ["revoked", "taken over", "closed"])
def test_a_file_ends_with_the_control_of_who_sends_it(
    watched: tuple[deskhand.Desktop, Server], home: Path, way: str
) -> None:
    desktop, server = watched
    with socket(server, enter(server, "control", name=way)) as made:
        take_control(made)
        announce(made, PIECE + 3, name="part.txt")
        made.send(bytes(PIECE))
        while news(made)["received"] < PIECE:
            pass
        upload = server.application._roster.shown[0]._upload
        assert upload is not None
        if way == "revoked":
            (grant,) = [each for each in server.grants.all() if each.name == way]
            server.grants.revoke(grant)
            assert closed_with(made)[0] == ENDED
        elif way == "taken over":
            with desktop.control.take("Grace", force=True):
                until(lambda: upload.over, LIMIT, "the file to end")
                # What was on its way is no error.
                made.send(b"abc")
                assert "control of this desktop" in news(made)["error"]
        else:
            made.close()
    until(lambda: upload.over and desktop.control.holder is None, LIMIT, "the file to end")
    assert upload._data is None
    assert not (home / "Downloads/part.txt").exists()


def test_a_policy_judges_files_of_who_has_control(tmp_path: Path) -> None:
    policy = ClassPolicy(allow=["observe", "input"])
    with (
        deskhand.launch(size=(320, 240), window_manager=None, env={"HOME": str(tmp_path)}, policy=policy) as desktop,
        watch.serve(desktop) as server,
        socket(server, enter(server, "control")) as made,
    ):
        take_control(made)
        assert not announce(made, 3)["error"]
        made.send(b"abc")
        while not (told := news(made))["over"]:
            pass
        assert "copy_in" in told["error"]
    assert not (tmp_path / "Downloads").exists()


def test_what_the_desktop_cannot_take_is_told() -> None:
    """As over VNC: there are no files, and only texts on the clipboard."""
    with (
        Desktop(MemoryBackend((64, 48))) as desktop,
        watch.serve(desktop) as server,
        socket(server, enter(server, "control")) as made,
    ):
        take_control(made)
        assert "the files of its machine cannot be reached from here" in announce(made, 3)["error"]


def test_a_private_file_is_shown_to_who_decides_about_it_and_to_nobody_else(tmp_path: Path) -> None:
    questions = Questions(timeout=120)
    policy = ClassPolicy(allow=["observe", "input"])
    with contextlib.ExitStack() as stack:
        desktop = stack.enter_context(
            deskhand.launch(
                size=(320, 240), window_manager=None, env={"HOME": str(tmp_path)}, policy=policy, ask=questions
            )
        )
        server = stack.enter_context(watch.serve(desktop, questions=questions))
        made, watching, deciding = (
            stack.enter_context(socket(server, enter(server, scope))) for scope in ("control", "watch", "approve")
        )
        take_control(made, private=True)
        announce(made, 3)
        made.send(b"abc")
        until(lambda: questions.pending, LIMIT, "the question")
        seen: dict[str, Any] = {}
        while not seen.get("questions"):
            seen = turn(deciding).get("state", seen)
        assert ["content", "abc"] in seen["questions"][0]["details"]
        # Its state is told anew when the number of viewers changes.
        deciding.close()
        told = [turn(watching).get("state", {})]
        while not (told[-1].get("hidden") and told[-1]["viewers"] == 2):
            told.append(turn(watching).get("state", {}))
        assert [state["questions"] for state in told if state.get("questions")] == []
        questions.answer(questions.pending[0].id, allow=False, by="Bo")
        while not news(made)["over"]:
            pass
