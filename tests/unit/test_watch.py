"""The pure parts of the page's server: grants, messages, hosts and origins, keys, operations, and whose connection it is."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from deskhand import (
    ActionError,
    Answer,
    ClassPolicy,
    Desktop,
    Guard,
    KeyPress,
    Move,
    PolicyDenied,
    PressKeys,
    RateLimits,
    ReleaseKeys,
    Scroll,
    Type,
    watch,
)
from deskhand._core.redaction import Secret
from deskhand.actions import Drag, LeftClick, MouseDown
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import keep
from deskhand.desktop.control_state import ControlEvent
from deskhand.desktop.operations import Holder, Operation
from deskhand.watch.grants import Grants
from deskhand.watch.keyboard import Keyboard, merged
from deskhand.watch.listening import listening, server_of
from deskhand.watch.messages import TokenBucket, parse, update_bytes
from deskhand.watch.operation_list import Operations
from deskhand.watch.peers import Place, _encoded, _number, is_inside
from deskhand.watch.site import Site, is_loopback
from deskhand.watch.viewer import PROTOCOL, Viewer
from deskhand.watch.watched import Watched

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from deskhand.actions import Action

# What two pages have made.
KEY, OTHER = "k" * 43, "o" * 43


class Clock:
    """Seconds that pass when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def grants(clock: Clock) -> Grants:
    return Grants(clock)


def test_a_link_is_exchanged_once(grants: Grants) -> None:
    grant, token = grants.issue("control", name="Ada")
    assert grant.scopes == {"watch", "control"}
    assert grants.all() == (grant,)
    found, cookie = grants.redeem(token, KEY)
    assert found is grant
    assert grants.find(cookie, KEY) is grant
    assert grants.all() == (grant,)
    with pytest.raises(PolicyDenied, match="used already"):
        grants.redeem(token, OTHER)
    assert grants.find(cookie, KEY) is grant


def test_a_page_that_got_no_answer_gives_its_link_again(grants: Grants, clock: Clock) -> None:
    grant, token = grants.issue(connections=1)
    _, lost = grants.redeem(token, KEY)
    assert grants.enter(lost, KEY) is grant
    found, cookie = grants.redeem(token, KEY)
    assert found is grant
    assert grants.find(lost, KEY) is None
    assert grants.find(cookie, KEY) is grant
    # It is no way to more connections.
    with pytest.raises(PolicyDenied, match="allows no further connection"):
        grants.enter(cookie, KEY)
    grants.leave(grant)
    assert grants.enter(cookie, KEY) is grant
    clock.now += 601
    with pytest.raises(PolicyDenied, match="too old"):
        grants.redeem(token, KEY)
    assert grants.revoke(grant)
    assert grants.all() == ()


def test_a_link_that_was_used_is_revoked_with_its_grant(grants: Grants) -> None:
    grant, token = grants.issue()
    _, cookie = grants.redeem(token, KEY)
    assert grants.revoke(grant)
    assert grants.find(cookie, KEY) is None
    with pytest.raises(PolicyDenied):
        grants.redeem(token, KEY)


@pytest.mark.parametrize("key", ["", "x" * 42, "x" * 201])
def test_a_key_is_long_enough(grants: Grants, key: str) -> None:
    _, token = grants.issue()
    with pytest.raises(ActionError, match="43 to 200 characters"):
        grants.redeem(token, key)
    grants.redeem(token, KEY)


def test_links_and_grants_end(grants: Grants, clock: Clock) -> None:
    _, late = grants.issue(link_lifetime=60)
    _, token = grants.issue(lifetime=100)
    grant, cookie = grants.redeem(token, KEY)
    clock.now += 61
    with pytest.raises(PolicyDenied):
        grants.redeem(late, KEY)
    assert grants.is_valid(grant)
    clock.now += 40
    assert not grants.is_valid(grant)
    assert grants.find(cookie, KEY) is None
    assert grants.all() == ()


def test_both_secrets_are_needed(grants: Grants) -> None:
    cookies = [grants.redeem(grants.issue()[1], key)[1] for key in (KEY, OTHER)]
    assert grants.find(cookies[0], OTHER) is None
    assert grants.find(KEY, cookies[0]) is None
    assert grants.find("", "") is None
    assert grants.find("\ud800", "\ud800") is None


def test_connections_are_counted(grants: Grants) -> None:
    grant, token = grants.issue(connections=2)
    _, cookie = grants.redeem(token, KEY)
    for _ in range(2):
        assert grants.enter(cookie, KEY) is grant
    with pytest.raises(PolicyDenied, match="allows no further connection"):
        grants.enter(cookie, KEY)
    grants.leave(grant)
    assert grants.enter(cookie, KEY) is grant


def test_revoking_is_heard(grants: Grants) -> None:
    heard: list[str] = []
    end = grants.on_revoked(lambda grant: heard.append(grant.name))
    unused, _ = grants.issue(name="unused")
    grant, token = grants.issue(name="used")
    _, cookie = grants.redeem(token, KEY)
    assert grants.revoke(grant.id)
    assert grants.revoke(unused)
    assert not grants.revoke(grant)
    assert heard == ["used", "unused"]
    assert grants.find(cookie, KEY) is None
    end()
    grants.revoke(grants.issue()[0])
    assert heard == ["used", "unused"]


@pytest.mark.parametrize(
    ("scopes", "options"),
    [
        (("admin",), {}),
        (("watch",), {"lifetime": 0}),
        (("watch",), {"lifetime": 1e12}),
        (("watch",), {"link_lifetime": -1}),
        (("watch",), {"connections": 0}),
        (("watch",), {"name": " \n"}),
        (("watch",), {"name": 5}),
    ],
)
def test_wrong_grants_are_refused(grants: Grants, scopes: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ActionError):
        grants.issue(*scopes, **options)
    with pytest.raises(ActionError):
        grants.revoke("1")  # type: ignore[arg-type] # it is wrong on purpose


def test_names_are_cleaned_and_grants_are_bounded(grants: Grants) -> None:
    assert grants.issue(name="A\u202eda\n<b>")[0].name == "Ada <b>"
    for _ in range(999):
        grants.issue()
    with pytest.raises(ActionError, match="grants are in use"):
        grants.issue()


def test_messages_have_exactly_their_fields() -> None:
    assert parse('{"type": "move", "x": 3, "y": 4}') == {"type": "move", "x": 3, "y": 4}
    modifiers = {"type": "key", "key": "Enter", "down": True, "modifiers": ["shift", "ctrl"]}
    assert parse(json.dumps(modifiers))["modifiers"] == ("ctrl", "shift")
    for wrong in ({"type": "move", "x": 3}, {"type": "move", "x": 3, "y": 4, "by": 5}, {"x": 3}, ["move"]):
        with pytest.raises(ActionError):
            parse(json.dumps(wrong))


def test_an_update_is_bytes() -> None:
    data = update_bytes(7, (800, 600), [((1, 2, 3, 4), b"PNG")])
    assert data == bytes.fromhex("07000000 2003 5802 0100 0100 0200 0300 0400 03000000") + b"PNG"


def test_messages_are_limited() -> None:
    bucket = TokenBucket(rate=10, burst=3)
    assert [bucket.takes(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.takes(0.2) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("messages", "actions"),
    [
        ([{"type": "text", "text": "é"}], [Type(Secret("é"))]),
        ([{"type": "move", "x": 1, "y": 2}], [Move((1, 2))]),
        (
            [
                {"type": "key", "key": "Control", "down": True, "modifiers": ["ctrl"]},
                {"type": "chord", "key": "S", "modifiers": ["ctrl", "shift"]},
                {"type": "key", "key": "Control", "down": False, "modifiers": []},
            ],
            [PressKeys(["ctrl"]), PressKeys(["shift"]), KeyPress(["s"]), ReleaseKeys(["ctrl", "shift"])],
        ),
        # Shift is a part of the character: the desktop's layout has its own way to it.
        (
            [{"type": "chord", "key": "+", "modifiers": ["ctrl", "shift"]}],
            [PressKeys(["ctrl"]), KeyPress(["+"])],
        ),
        # Shift alone presses nothing: the next character comes with it applied.
        ([{"type": "key", "key": "Shift", "down": True, "modifiers": ["shift"]}], []),
        (
            [
                {"type": "key", "key": "ArrowLeft", "down": True, "modifiers": ["shift"]},
                {"type": "key", "key": "ArrowLeft", "down": True, "modifiers": ["shift"]},
                {"type": "key", "key": "ArrowLeft", "down": False, "modifiers": ["shift"]},
                {"type": "text", "text": "a"},
            ],
            [
                PressKeys(["shift"]),
                PressKeys(["ArrowLeft"]),
                ReleaseKeys(["ArrowLeft"]),
                ReleaseKeys(["shift"]),
                Type(Secret("a")),
            ],
        ),
        (
            [
                {"type": "button", "x": 1, "y": 2, "button": "left", "down": True, "modifiers": ["ctrl"]},
                {"type": "blur"},
            ],
            [PressKeys(["ctrl"]), MouseDown("left", (1, 2)), ReleaseKeys(["ctrl"])],
        ),
        ([{"type": "key", "key": "Enter", "down": False, "modifiers": []}], []),
        (
            [{"type": "wheel", "x": 5, "y": 6, "across": -2, "down": 3, "modifiers": []}],
            [
                Scroll((5, 6), direction="down", magnitude=3),
                Scroll((5, 6), direction="left", magnitude=2),
            ],
        ),
    ],
)
def test_messages_are_actions(messages: list[dict[str, Any]], actions: list[Action]) -> None:
    keyboard = Keyboard()
    assert [action for message in messages for action in keyboard.actions(message)] == actions


def test_messages_are_merged() -> None:
    moves = [{"type": "move", "x": x, "y": 0} for x in range(5)]
    texts = [{"type": "text", "text": text} for text in "ab"]
    other = {"type": "blur"}
    assert merged([*moves, *texts, other, *texts]) == [
        moves[-1], {"type": "text", "text": "ab"}, other, {"type": "text", "text": "ab"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8000", True),
        ("LOCALHOST", True),
        ("[::1]:9", True),
        ("desk.example", True),
        ("desk.example:8443", True),
        ("a.pool.example:1", True),
        ("pool.example", False),
        ("a.b.pool.example", False),
        ("only.example:1", True),
        ("only.example:2", False),
        ("only.example", False),
        ("evil.example", False),
        ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_hosts(host: str, *, known: bool) -> None:
    site = Site(["desk.example", "*.pool.example", "Only.example:1"])
    assert site.knows(host) is known


def test_changes_come_from_the_same_origin() -> None:
    site = Site()
    host = {"host": "localhost:1"}
    assert site.refusal("http", host, changes=False) == ""
    assert site.refusal("http", host, changes=True) != ""
    assert site.refusal("ws", {**host, "origin": "http://localhost:1"}, changes=True) == ""
    assert site.refusal("wss", {**host, "origin": "http://localhost:1"}, changes=True) != ""
    assert site.refusal("ws", {**host, "origin": "http://localhost:2"}, changes=True) != ""


def test_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.1.2.3", "::1", "0.0.0.0", "10.0.0.1", "desk")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_addresses_are_those_of_the_kernels_tables() -> None:
    assert _encoded("127.0.0.1", v6=False) == "0100007F"
    assert _encoded("127.0.0.1", v6=True) == "0000000000000000FFFF00000100007F"
    assert _encoded("::1", v6=True) == "00000000000000000000000001000000"
    assert _encoded("::ffff:127.0.0.1", v6=False) == "0100007F"


def test_displays_by_their_numbers() -> None:
    names = {":1": "1", ":12.0": "12", "unix:3": "3", "unix/host:4": "4", "localhost:10.0": "10", "host:1": "", "": ""}
    assert {name: _number(name) for name in names} == names


def test_a_client_at_the_address_of_a_container_is_inside() -> None:
    place = Place(container="abc", addresses=("172.17.0.5",))
    assert is_inside([place], ("172.17.0.5", 4000), ("172.17.0.1", 80))
    assert is_inside([place], ("::ffff:172.17.0.5", 4000), ("::ffff:172.17.0.1", 80))
    assert not is_inside([place], ("172.17.0.6", 4000), ("172.17.0.1", 80))
    assert not is_inside([Place()], ("172.17.0.5", 4000), ("172.17.0.1", 80))


def _shown(operations: Operations) -> list[str]:
    return [row["title"] for row in operations.newer(0)[1]]


def test_operations_are_shown_without_secrets_and_control_characters() -> None:
    operations = Operations()
    holder = Holder("Ada", 0.0)
    actions = (
        LeftClick((3, 4), modifiers=["ctrl"]),
        Type("a\nb\u202e"),
        Type(Secret("hunter2")),
        Scroll((1, 2), direction="down", magnitude=3),
        Drag([(1, 1), (5, 5)]),
    )
    operations.before(Operation("perform", actions=actions))
    operations.before(Operation("shell", "echo \x1b[31mred", env=(("A", "b"),)))
    operations.before(Operation("perform", actions=(Type("typed"),), holder=holder))
    operations.before(Operation("set_clipboard", "pasted", holder=holder))
    assert operations.before(Operation("perform", actions=(Move((1, 1)),), holder=holder)) is None
    assert operations.before(Operation("screenshot", holder=Holder("Ada", 0.0, private=True))) is None
    operations.control(ControlEvent("ask", text="help <b>"))
    assert _shown(operations) == [
        "left mouse click 3, 4 with ctrl · type “a⏎b” · type *** · scroll 1, 2 by 3 down · drag 1, 1 → 5, 5",
        "shell: echo [31mred",
        "type ***",
        "set clipboard: ***",
        "asks for help: help <b>",
    ]
    row = operations.newer(0)[1][0]
    assert row["marks"] == [[3, 4], [1, 2], [1, 1], [5, 5]]
    assert row["lines"] == [[[1, 1], [5, 5]]]


def test_operations_change_in_place_and_are_bounded() -> None:
    changes: list[int] = []
    clock = Clock()
    operations = Operations(lambda: changes.append(1), clock=clock)
    operation = Operation("shell", "x" * 10_000)
    token = operations.before(operation)
    revision, (row,) = operations.newer(0)
    assert row["state"] == "running"
    assert len(row["title"]) == 300
    clock.now += 0.25
    operations.after(operation, token, PolicyDenied("shell", "no <b>"))
    _, (row,) = operations.newer(revision)
    assert (row["state"], row["milliseconds"], row["text"]) == (
        "denied", 250.0, "the policy denies shell: no <b>",
    )  # fmt: skip
    assert len(changes) == 2
    for _ in range(600):
        operations.before(operation)
    assert len(operations.newer(0)[1]) == 500
    # It was pushed out meanwhile.
    operations.after(operation, token, None)
    assert len(operations.newer(0)[1]) == 500


def _asked(text: str) -> Answer:
    return Answer(allow=False, by="Ada", note=text)


@pytest.mark.parametrize(
    ("act", "title", "reason"),
    [
        (lambda desktop: desktop.clipboard.read(), "get clipboard", "denied"),
        (
            lambda desktop: desktop.perform(Type(Secret("word"))),
            "type ***",
            "it was asked about: Ada said no (not <b>)",
        ),
        (
            lambda desktop: desktop.perform(LeftClick((2, 3)), Type("x")),
            "left mouse click 2, 3 · type “x”",
            "actions are left",
        ),
        (lambda desktop: desktop.also(Guard(policy=ClassPolicy(allow=()))).screenshot(), "screenshot", "no one to ask"),
    ],
)
def test_what_a_policy_or_a_person_denies_is_listed(act: Any, title: str, reason: str) -> None:
    policy = ClassPolicy(deny=["clipboard_read"])
    limits = RateLimits(max_actions=1)
    with Desktop(MemoryBackend((100, 80))) as desktop:
        judged = keep(desktop, Guard(policy=policy, ask=lambda *_: _asked("not <b>"), limits=limits))
        watched = Watched("desktop", judged, agent=True)
        judged.screenshot()
        with pytest.raises(PolicyDenied):
            act(judged)
        _, rows = watched.operations.newer(0)
        watched.close()
    assert [row["state"] for row in rows] == ["done", "denied"]
    assert rows[1]["title"].startswith(title)
    assert reason in rows[1]["text"]
    assert "word" not in str(rows)


def test_what_is_denied_in_a_private_hold_is_not_listed() -> None:
    with Desktop(MemoryBackend((100, 80))) as desktop:
        judged = keep(desktop, Guard(policy=ClassPolicy(deny=["shell"])))
        watched = Watched("desktop", judged, agent=True)
        with judged.control.take("Ada", private=True) as hold, pytest.raises(PolicyDenied):
            hold.desktop.host.run("cat secret")
        _, rows = watched.operations.newer(0)
        watched.close()
    assert "secret" not in str(rows)


class _Idle(Viewer):
    """A viewer with nothing to show."""

    async def _turn(self) -> Any:
        return {}, None, (0, 0)


class _Line:
    """A connection that lasts until a test ends it."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def accept(self, _: str) -> None:
        pass

    async def receive(self) -> dict[str, Any]:
        await self.over.wait()
        return {"type": "websocket.disconnect"}


@pytest.mark.parametrize("steps", range(8))
def test_a_viewer_ends_whenever_news_comes(grants: Grants, steps: int) -> None:
    """The end of the connection and the news come that many steps of the loop apart."""

    async def main() -> bool:
        grant, token = grants.issue("watch")
        grants.redeem(token, KEY)
        line = _Line()
        viewer = _Idle(line, grant, grants)  # type: ignore[arg-type] # of what a socket has, what is used here
        serving = asyncio.ensure_future(viewer.serve())
        for _ in range(10):
            await asyncio.sleep(0)
        line.over.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        viewer._news.set()
        for _ in range(50):
            await asyncio.sleep(0)
        return serving.done()

    assert asyncio.run(main())


def test_a_page_that_leaves_while_something_is_sent_to_it_is_no_error() -> None:
    async def main() -> None:
        with Desktop(MemoryBackend((64, 48))) as desktop:
            page = watch.application(desktop)
            _, cookie = page.grants.redeem(page.link("http://127.0.0.1/", "watch").partition("#")[2], KEY)
            headers = {
                "host": "127.0.0.1",
                "origin": "http://127.0.0.1",
                "cookie": f"{page._cookie}={cookie}",
            }
            scope = {
                "type": "websocket",
                "scheme": "ws",
                "path": "/live/0",
                "root_path": "",
                "query_string": b"",
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
                "subprotocols": [PROTOCOL, f"key.{KEY}"],
            }
            events = iter([{"type": "websocket.connect"}])
            sent: list[str] = []

            async def receive() -> dict[str, Any]:
                for event in events:
                    return event
                await asyncio.Event().wait()
                raise AssertionError("the page never says that it leaves")

            async def send(message: MutableMapping[str, Any]) -> None:
                sent.append(message["type"])
                if message["type"] == "websocket.send":
                    raise OSError("the connection is closing")

            await page(scope, receive, send)
            assert sent == ["websocket.accept", "websocket.send"]
            page.close()

    asyncio.run(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_send_at_once(host: str) -> None:
    """Otherwise the second part of an answer waits for the acknowledgement of the first, which takes 40 ms."""
    with listening(host, 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# A client's first request, and the frame that ends its connection (RFC 6455, sections 1.3 and 5.5.1).
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
CLOSE = b"\x88\x82\0\0\0\0\x03\xe8"


def test_a_server_may_end_while_a_client_closes() -> None:
    async def accept(_: object, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        config = server_of(uvicorn, accept).config
        config.load()
        here, there = socket.socketpair()
        with there:
            there.settimeout(0)
            protocol: Any = config.ws_protocol_class(config=config, server_state=ServerState(), app_state={})
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, here)
            protocol.data_received(HANDSHAKE)
            assert (await loop.sock_recv(there, 1000)).startswith(b"HTTP/1.1 101")
            protocol.data_received(CLOSE)
            protocol.shutdown()
            assert transport.is_closing()
            assert await loop.sock_recv(there, 1000) == b"\x88\x02\x03\xe8"
            assert await loop.sock_recv(there, 1000) == b""

    asyncio.run(main())
