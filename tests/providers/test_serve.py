"""Cua's computer-server, served by `deskhand serve`: its protocol over real sockets, on a real desktop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import deskhand
from faults.scale import MUTATED_PAYLOADS
from integration.observer import Observer
from providers.strategies import damaged
from providers.test_cua import downs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


KEY = "s3cret"


class Served:
    """A desktop that stays until it is ended, as `deskhand up` makes it: the server drives it alone."""

    def __init__(self, runtime: Path) -> None:
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "HOME": str(runtime)}
        self.environment["DESKHAND_API_KEY"] = KEY
        made = json.loads(self.run("up", "--name", "served", "--json"))
        self.environment |= {"DISPLAY": made["display"], "XAUTHORITY": made["xauthority"]}

    def run(self, *words: str) -> str:
        command = [sys.executable, "-m", "deskhand", *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=self.environment).stdout


def _kept(runtime: Path) -> Iterator[Served]:
    served = Served(runtime)
    yield served
    served.run("down", "served")


@pytest.fixture(scope="module")
def served(_apart: Path) -> Iterator[Served]:
    yield from _kept(Path(tempfile.mkdtemp(dir=_apart)))


@pytest.fixture
def private(short: Path) -> Iterator[Served]:
    """One that no other test's server drives."""
    yield from _kept(short)


@pytest.fixture(scope="module")
def observer(served: Served) -> Iterator[Observer]:
    with Observer(served.environment) as observer:
        yield observer


class Server:
    """`deskhand serve` in a process of its own."""

    def __init__(self, served: Served, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deskhand", "serve", "-d", "served", "--port", "0", *options],
            env={**served.environment, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address = line.rpartition("http://")[2].strip()
        assert self.address, line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 128 + signal.SIGINT
        assert self.process.stdout is not None
        self.process.stdout.close()

    def get(self, path: str) -> Any:
        return self._asked("GET", path, None, {})[1]

    def post(self, body: Any, **headers: str) -> tuple[int, Any]:
        return self._asked("POST", "/cmd", body if isinstance(body, str | bytes) else json.dumps(body), headers)

    def _asked(self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
        line = http.client.HTTPConnection(self.address, timeout=60)
        shown = {"X_API_Key": KEY, **headers}
        line.request(method, path, body, {name.replace("_", "-"): value for name, value in shown.items()})
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        if text.startswith("data: "):
            assert answer.headers["content-type"].startswith("text/plain")
            assert text.endswith("\n\n")
            text = text[6:]
        return answer.status, json.loads(text)


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    with Server(served, "--programs", "--policy", "all") as server:
        yield server


def test_a_key_is_always_asked_for(private: Served) -> None:
    with Server(private) as server:
        version = {"command": "version"}
        assert server.post(version, X_API_Key="")[0] == 401
        assert server.post(version, X_API_Key="wrong")[0] == 401
        with connect(f"ws://{server.address}/ws") as line:
            line.send(json.dumps(version))
            assert json.loads(line.recv()) == {"success": False, "error": "Authentication failed"}
        with connect(f"ws://{server.address}/ws") as line:
            line.send(json.dumps({"command": "authenticate", "params": {"api_key": "s3cret"}}))
            assert json.loads(line.recv())["success"] is True
            line.send(json.dumps(version))
            assert json.loads(line.recv())["success"] is True
        status, answer = server.post({"command": "launch", "params": {"app": "xterm"}})
        assert status == 200
        assert "--programs" in answer["error"]


COMMANDS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("left_click", {"x": 10, "y": 20}, [(1, [10, 20])]),
    ("click", {"x": 10, "y": 21, "button": "middle"}, [(2, [10, 21])]),
    ("right_click", {"x": 10, "y": 22}, [(3, [10, 22])]),
    ("middle_click", {}, [(2, [10, 22])]),
    ("double_click", {"x": 300, "y": 20}, [(1, [300, 20])] * 2),
    ("mouse_down", {"x": 5, "y": 6, "button": "right"}, [(3, [5, 6])]),
    ("mouse_up", {"button": "right"}, []),
    ("move_cursor", {"x": 50, "y": 60, "speed": 3}, []),
    ("drag_to", {"x": 80, "y": 90, "duration": 0.5}, [(1, [50, 60])]),
    ("drag", {"path": [[1, 2], [3, 4]], "duration": 0.5}, [(1, [1, 2])]),
    ("scroll", {"x": 0, "y": 2}, [(4, [3, 4])] * 2),
    ("scroll", {"x": -1, "y": 0}, [(6, [3, 4])]),
    ("scroll_up", {"clicks": 1}, [(4, [3, 4])]),
    ("scroll_down", {}, [(5, [3, 4])]),
    ("scroll_direction", {"direction": "Right", "clicks": 2}, [(7, [3, 4])] * 2),
    ("key_down", {"key": "shift"}, ["Shift_L"]),
    ("key_up", {"key": "shift"}, []),
    ("press_key", {"key": "pagedown"}, ["Next"]),
    ("key", {"key": "enter"}, ["Return"]),
    ("hotkey", {"keys": ["ctrl", "c"]}, ["Control_L", "c"]),
    ("type_text", {"text": "ab"}, ["a", "b"]),
]


@pytest.mark.parametrize(("command", "params", "expected"), COMMANDS, ids=str)
def test_every_command_of_input(
    server: Server, observer: Observer, command: str, params: dict[str, Any], expected: list[Any]
) -> None:
    observer.events()
    assert server.post({"command": command, "params": params}) == (200, {"success": True})
    assert downs(observer) == expected


def test_what_it_tells_of_the_desktop(server: Server) -> None:
    assert server.get("/status") == {"status": "ok", "os_type": "linux", "features": []}
    assert server.post({"command": "version"})[1]["protocol"] == 1
    assert server.post({"command": "get_screen_size"})[1]["size"] == {"width": 1280, "height": 800}
    server.post({"command": "move_cursor", "params": {"x": 7, "y": 8}})
    assert server.post({"command": "get_cursor_position"})[1]["position"] == {"x": 7, "y": 8}
    for kind in ("png", "jpeg"):
        seen = server.post({"command": "screenshot", "params": {"format": kind}})[1]
        image = Image.open(io.BytesIO(base64.b64decode(seen["image_data"])))
        assert (image.size, image.format, seen["format"]) == ((1280, 800), kind.upper(), kind)
    assert server.post({"command": "set_clipboard", "params": {"text": "é☕"}})[1] == {"success": True}
    assert server.post({"command": "copy_to_clipboard"})[1] == {"success": True, "content": "é☕"}


def test_it_lists_its_commands_with_their_parameters(server: Server) -> None:
    listed = server.get("/commands")
    assert listed["aliases"]["shell"] == "run_command"
    assert listed["commands"]["move_cursor"] == {
        "params": [{"name": "x", "required": True, "default": None}, {"name": "y", "required": True, "default": None}]
    }
    assert listed["commands"]["press_key"]["aliases"] == ["key"]
    assert {"left_click", "drag", "screenshot", "run_command", "read_bytes", "activate_window"} <= set(
        listed["commands"]
    )
    assert not {"answer", "catalogue", "listed"} & set(listed["commands"])


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"command": "move_cursor", "params": {"x": 5}}, "'y'"),
        ({"command": "move_cursor", "params": {"x": 5000, "y": 1}}, "outside"),
        ({"command": "move_cursor", "params": {"x": "left", "y": 1}}, "number"),
        ({"command": "left_click", "params": {"button": "fourth"}}, "button"),
        ({"command": "press_key", "params": {"key": "nokey"}}, "unknown key"),
        ({"command": "drag", "params": {"path": 5}}, "list"),
        ({"command": "get_window_name", "params": {"window_id": 1}}, "no window"),
        ({"command": "run_command", "params": {"command": "true"}}, "desktop.machine"),
        ({"command": "read_text", "params": {"path": "/etc/passwd"}}, "desktop.machine"),
        ({"command": "screenshot", "params": {"quality": 1000}}, "quality"),
    ],
)
def test_what_cannot_be_done_is_told(server: Server, message: dict[str, Any], error: str) -> None:
    status, answer = server.post(message)
    assert (status, answer["success"]) == (200, False)
    assert error in answer["error"]


def test_requests_that_are_none(server: Server) -> None:
    assert server.post("{")[0] == 400
    assert server.post("[" * 100_000)[0] == 400
    assert server.post([1])[0] == 400
    assert server.post({"command": "__init__"})[0] == 400
    assert server.post({"command": "answer"})[0] == 400
    assert server.post({"command": "version"}, Origin="http://127.0.0.1:1")[0] == 403
    assert server.post("x" * (17 << 20))[0] == 413


def test_a_socket_answers_in_order_and_survives_nonsense(server: Server) -> None:
    with connect(f"ws://{server.address}/ws", additional_headers={"X-API-Key": KEY}) as line:
        for text in ("{", "[1]", '"x"', '{"command": "nothing"}'):
            line.send(text)
            assert json.loads(line.recv())["success"] is False
        line.send(json.dumps({"command": "get_screen_size", "params": None}))
        line.send(json.dumps({"command": "version"}))
        assert "size" in json.loads(line.recv())
        assert "protocol" in json.loads(line.recv())
        line.send(json.dumps({"command": "authenticate", "params": {"api_key": KEY, "container_name": "c"}}))
        assert json.loads(line.recv())["success"] is True


def test_what_is_no_http_or_no_text_ends_nothing(server: Server) -> None:
    host, _, port = server.address.partition(":")
    for raw in (
        b"POST /cmd HTTP/1.1\r\nHost: x\r\nX-API-Key: s3cret\r\nContent-Length: 100\r\n\r\n{",
        b"POST /cmd HTTP/1.1\r\nHost: x\r\nX-API-Key: s3cret\r\nContent-Length: -5\r\n\r\n{}",
        b"POST /cmd HTTP/1.1\r\nHost: x\r\nX-API-Key: s3cret\r\nContent-Length: many\r\n\r\n{}",
        b"POST /cmd HTTP/1.1\r\nHost: x\r\nX-API-Key: s3cret\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01 no http at all\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=60) as line:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := line.recv(4096):
                answer += piece
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400"), answer
    assert server.post(b'{"command": "\xff\xfe"}')[0] == 400
    assert server.post(json.dumps({"command": "\ud800"}))[0] == 400
    assert server._asked("GET", "/nowhere", None, {}) == (404, {"detail": "Not Found"})
    assert server._asked("GET", "/cmd", None, {}) == (405, {"detail": "Method Not Allowed"})
    with connect(f"ws://{server.address}/ws", additional_headers={"X-API-Key": KEY}) as line:
        for message in (b"\xff\xfe", b"", json.dumps({"command": "\ud800"}), "[" * 100_000, '{"command": 1e400}'):
            line.send(message)
            assert json.loads(line.recv())["success"] is False
        line.send(b'{"command": "version"}')
        assert json.loads(line.recv())["success"] is True
    with connect(f"ws://{server.address}/ws", additional_headers={"X-API-Key": KEY}) as line:
        line.send("x" * (17 << 20))
        with pytest.raises(ConnectionClosed) as closed:
            line.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    assert server.post({"command": "version"})[1]["success"] is True


class Failing:
    """A desktop whose every command ends as a test wants it."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    async def run(self, _: object) -> object:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (KeyError("secret"), "the server failed (KeyError)"),
        (OSError(28, "secret"), "the server failed (OSError)"),
        (RecursionError("secret"), "the server failed (RecursionError)"),
        (MemoryError(), "the server failed (MemoryError)"),
        (AssertionError("secret"), "the server failed (AssertionError)"),
        (UnicodeEncodeError("utf-8", "secret", 0, 1, "secret"), "the server failed (UnicodeEncodeError)"),
        (TimeoutError("secret"), "the server failed (TimeoutError)"),
        (deskhand.DeskhandTimeout("the clipboard's owner is slow"), "the clipboard's owner is slow"),
        (deskhand.ActionError("no such key"), "no such key"),
        ({"content": b"bytes"}, "the server failed (TypeError)"),
    ],
)
def test_every_failure_is_an_answer(outcome: object, told: str, caplog: pytest.LogCaptureFixture) -> None:
    from starlette.testclient import TestClient  # noqa: PLC0415 # of the extra, as its server is

    from deskhand.providers.cua.server import application  # noqa: PLC0415

    served = application(Failing(outcome), api_key="key")  # type: ignore[arg-type] # it has what is used
    with TestClient(served) as client:
        message = {"command": "version", "params": {}}
        answer = client.post("/cmd", json=message, headers={"X-API-Key": "key"})
        assert answer.status_code == 200
        said = json.loads(answer.text.removeprefix("data: "))
        assert said["success"] is False
        assert said["error"].startswith(told) or told in said["error"]
        assert "secret" not in answer.text
        with client.websocket_connect("/ws", headers={"X-API-Key": "key"}) as line:
            for _ in range(2):
                line.send_text(json.dumps(message))
                assert json.loads(line.receive_text()) == said
        # Half a character is no key, and no reason to fail.
        with client.websocket_connect("/ws") as line:
            line.send_text('{"command": "authenticate", "params": {"api_key": "\\ud800"}}')
            assert json.loads(line.receive_text()) == {"success": False, "error": "Authentication failed"}
    assert ("failed" in caplog.text) is ("the server failed" in told)


def test_a_failure_outside_of_a_command_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient  # noqa: PLC0415 # likewise

    from deskhand.providers.cua import server as cua  # noqa: PLC0415

    def broken() -> None:
        raise KeyError("secret")

    monkeypatch.setattr(cua.Commands, "catalogue", broken)
    with TestClient(cua.application(Failing({}), api_key=KEY), raise_server_exceptions=False) as client:  # type: ignore[arg-type] # likewise
        answer = client.get("/commands")
        assert (answer.status_code, answer.json()) == (
            500, {"detail": "the server failed (KeyError); its log says more"},
        )  # fmt: skip
        assert client.get("/status").json()["status"] == "ok"


def test_windows_and_programs(server: Server) -> None:
    from conftest import need  # noqa: PLC0415 # beside the tests' root

    need("xterm", "xterm")
    started = server.post({"command": "launch", "params": {"app": "xterm", "args": ["-T", "served"]}})[1]
    assert started["success"], started
    found = server.post({"command": "get_application_windows", "params": {"app": "XTerm"}})[1]["windows"]
    assert len(found) == 1
    this = {"window_id": found[0]}
    assert server.post({"command": "get_window_name", "params": this})[1]["name"] == "served"
    size = server.post({"command": "get_window_size", "params": {"window_id": str(found[0])}})[1]
    assert size["width"] > 100
    assert server.post({"command": "get_window_position", "params": this})[1]["x"] >= 0
    assert server.post({"command": "activate_window", "params": this})[1] == {"success": True}
    assert server.post({"command": "close_window", "params": this})[1] == {"success": True}
    assert server.post({"command": "get_application_windows", "params": {"app": "XTerm"}})[1]["windows"] == []


def test_a_key_is_made_where_none_is_set(private: Served) -> None:
    with Server(private, DESKHAND_API_KEY="") as server:
        assert server.process.stdout is not None
        key = server.process.stdout.readline().rpartition(" ")[2].strip()
        assert len(key) >= 32
        assert server.post({"command": "version"})[0] == 401
        assert server.post({"command": "version"}, X_API_Key=key)[0] == 200


def test_what_clients_ask_for_is_judged_and_written_down(private: Served, tmp_path: Path) -> None:
    """By default they may look and use pointer and keyboard. Who is asked is a program here."""
    asked, log = tmp_path / "asked", tmp_path / "audit.jsonl"
    program = tmp_path / "approve"
    program.write_text(f"#!/bin/sh\ncat >>{asked}\nexit 1\n")
    program.chmod(0o700)
    with Server(private, "--ask", str(program), "--audit", str(log)) as server:
        assert server.post({"command": "get_screen_size"})[1]["success"]
        assert server.post({"command": "left_click", "params": {"x": 5, "y": 5}})[1]["success"]
        refused = server.post({"command": "copy_to_clipboard"})[1]
        assert (refused["success"], "policy denies get_clipboard" in refused["error"]) == (False, True)
    question = json.loads(asked.read_text())
    assert (question["action"]["type"], question["class"]) == ("get_clipboard", "clipboard_read")
    decided = [json.loads(line) for line in log.read_text().splitlines()]
    told = [(line["action"]["type"], line["decision"]) for line in decided if line["event"] == "decision"]
    assert told == [("left_mouse_click", "allow"), ("get_clipboard", "deny")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "give --certificate for TLS"),
        (("--policy", "observe,everything"), "no class 'everything'"),
        (("--policy", "no_such_module:Policy"), "No module named"),
        (("--ask", "terminal"), "has no terminal"),
    ],
)
def test_what_would_not_be_safe_is_refused(served: Served, options: tuple[str, ...], message: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "deskhand", "serve", "-d", "served", "--port", "0", *options],
        capture_output=True,
        text=True,
        check=False,
        env=served.environment,
        start_new_session=True,
    )
    assert ended.returncode == 1
    assert message in ended.stderr


def test_an_application_without_sockets(shared: deskhand.Desktop) -> None:
    """Whoever has an ASGI server of their own mounts it there."""
    from deskhand import AsyncDesktop  # noqa: PLC0415
    from deskhand.providers.cua.server import application  # noqa: PLC0415

    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b'{"command": "get_screen_size"}', "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/cmd",
            "headers": [(b"x-api-key", KEY.encode())],
            "query_string": b"",
            "root_path": "",
        }
        await application(AsyncDesktop(shared), api_key=KEY)(scope, receive, send)

    asyncio.run(ask())
    assert b'"width": 1280' in b"".join(message.get("body", b"") for message in sent)


def test_damaged_commands_are_carried_out_or_refused() -> None:
    from deskhand import DeskhandError, Desktop  # noqa: PLC0415
    from deskhand.backends.memory import MemoryBackend  # noqa: PLC0415
    from deskhand.providers.cua.commands import Commands  # noqa: PLC0415

    more: list[tuple[str, dict[str, Any]]] = [
        ("run_command", {"command": "true", "timeout": 5}),
        ("write_bytes", {"path": "/tmp/x", "content_b64": "QQ==", "append": False}),
        ("read_bytes", {"path": "/tmp/x", "offset": 0, "length": 3}),
        ("get_window_name", {"window_id": "12"}),
        ("screenshot", {"format": "png", "quality": 80}),
        ("set_clipboard", {"text": "x"}),
        ("launch", {"app": "xterm", "args": ["-e"]}),
    ]
    whole = [(name, params) for name, params, _ in COMMANDS] + more
    now = [100.0]
    backend = MemoryBackend(clock=lambda: now[0])
    backend.on_wait = lambda seconds: now.__setitem__(0, now[0] + seconds)
    with Desktop(backend, clock=lambda: now[0]) as desktop:
        with pytest.raises(DeskhandError, match="window_id"):
            Commands(desktop).answer("get_window_name", {"window_id": "12" + "0" * 5000})
        for seed in range(MUTATED_PAYLOADS):
            name, params = whole[seed % len(whole)]
            with contextlib.suppress(DeskhandError):
                assert isinstance(Commands(desktop).answer(name, damaged(params, seed)), dict)
