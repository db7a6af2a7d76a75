"""The Model Context Protocol, through the SDK's own client: in memory, over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import io
import itertools
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from PIL import Image

import deskhand
from deskhand import ActionError, ClassPolicy, UnsupportedAction
from deskhand import actions as a
from deskhand.providers import mcp
from deskhand.providers.action_tools import encode_plain
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Finish, Picture, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS
from providers.helpers import load_example
from providers.seen import SEEN
from providers.strategies import EXAMPLES, HALVED, VIEWPORT, damaged, pictures, points, texts
from providers.test_cua import downs
from providers.test_plain import actions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from integration.observer import Observer


def with_client(server: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(main())


def image_of(result: Any) -> Image.Image:
    blocks = [block for block in result.content if block.type == "image"]
    assert [block.mime_type for block in blocks] == ["image/png"]
    return Image.open(io.BytesIO(base64.b64decode(blocks[0].data)))


@pytest.mark.parametrize("single", [False, True], ids=["a tool each", "one tool"])
def test_every_action_through_the_client(shared: deskhand.Desktop, observer: Observer, *, single: bool) -> None:
    server = mcp.server(shared, single=single)

    async def work(client: Any) -> None:
        for action, expected in SEEN:
            name, arguments = encode_plain(action, VIEWPORT)
            observer.events()
            if single:
                result = await client.call_tool("computer", {"action": name, **arguments})
            else:
                result = await client.call_tool(name, arguments)
            assert not result.is_error, result
            assert downs(observer) == expected, action
            size = (200, 100) if isinstance(action, a.Zoom) else shared.size
            assert image_of(result).size == size
            assert result.structured_content["settled"] is True
        shared.perform(a.Move((7, 8)))
        asked = await (
            client.call_tool("computer", {"action": "cursor_position"})
            if single
            else client.call_tool("cursor_position", {})
        )
        assert [block.type for block in asked.content] == ["text"], "who asks where the pointer is pays for no picture"
        assert (asked.content[0].text, asked.structured_content["cursor"]) == ("X=7,Y=8", [7, 8])

    with_client(server, work)


def test_the_list_of_tools(shared: deskhand.Desktop) -> None:
    listed = with_client(mcp.server(shared, size=(640, 400)), lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == [*a.ACTIONS, "elements"]
    assert all("640x400" in tool.description for tool in listed[:-1])
    read_only = {tool.name for tool in listed if tool.annotations.read_only_hint}
    assert read_only == {"screenshot", "zoom", "cursor_position", "wait", "elements"}
    assert [types.Tool.model_validate(tool) for tool in mcp.declare(shared, size=(640, 400))] == listed
    single = with_client(mcp.server(shared, single=True), lambda client: client.list_tools()).tools
    assert [tool.name for tool in single] == ["computer", "elements"]


def test_what_changed_is_told(shared: deskhand.Desktop) -> None:
    model_session = ModelSession(shared, size=(640, 400))

    async def work(client: Any) -> None:
        first = await client.call_tool("move", {"xy": [3, 4]})
        assert first.structured_content == {"size": [640, 400], "changed": False, "settled": True}
        assert shared.pointer == (7, 9)
        assert image_of(first).size == (640, 400)

    with_client(mcp.server(model_session), work)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("fly", {}, "fly"),
        ("computer", {}, "None"),
        ("move", {"xy": [5000, 1]}, "outside"),
        ("move", {"xy": [1]}, "xy"),
        ("move", {}, "missing"),
        ("move", {"xy": [1, 1], "speed": 3}, "speed"),
        ("type", {"text": "x", "secret": True}, "secret"),
        ("keypress", {"keys": ["nokey"]}, "unknown key"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_the_model_can_read(
    shared: deskhand.Desktop, observer: Observer, name: str, arguments: dict[str, Any], reason: str
) -> None:
    observer.events()
    result = with_client(mcp.server(shared), lambda client: client.call_tool(name, arguments))
    assert result.is_error
    assert reason in result.content[0].text
    assert downs(observer) == []


def test_a_policy_is_asked(shared: deskhand.Desktop) -> None:
    asked: list[Any] = []

    class Careful:
        def before(self, action: Any, context: Any) -> str:
            asked.append((action, context.provider))
            return "deny"

    result = with_client(mcp.server(shared, policy=Careful()), lambda client: client.call_tool("type", {"text": "x"}))
    assert result.is_error
    assert "denies" in result.content[0].text
    assert asked[0] == (a.Type("x"), "mcp")


def test_over_standard_input_and_output(tmp_path: Any, short: Any) -> None:
    """As clients start it: a desktop of its own, which ends with it."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(short)}
    environment.pop("DESKHAND_DESKTOP", None)
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "deskhand", "mcp", "--size", "320x200"], env=environment
    )

    async def main() -> None:
        async with stdio_client(parameters) as (incoming, outgoing), Client(Joined(incoming, outgoing)) as client:
            assert len((await client.list_tools()).tools) == len(a.ACTIONS) + 1
            seen = await client.call_tool("screenshot", {})
            assert image_of(seen).size == (320, 200)

    asyncio.run(main())
    listed = subprocess.run(
        [sys.executable, "-m", "deskhand", "ls", "--json"], env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(listed.stdout) == []


class Joined:
    """Two streams as the client's transport."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._streams = incoming, outgoing

    async def __aenter__(self) -> tuple[Any, Any]:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        return None


def test_the_example(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    example = load_example("mcp_client")
    elements, screenshot = asyncio.run(example.main())
    assert image_of(screenshot).size == (1024, 640)
    assert "Typed by an MCP client." in elements.content[0].text


@contextlib.contextmanager
def served(tmp_path: Any, short: Any, *options: str) -> Iterator[tuple[str, str]]:
    """The address and the key of `deskhand mcp --http`, which ends by Ctrl-C."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(short)}
    environment.pop("DESKHAND_DESKTOP", None)
    command = [sys.executable, "-m", "deskhand", "mcp", "--http", "--port", "0", *options]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1], process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
        process.stdout.close()


def test_the_example_over_http(tmp_path: Any, short: Any) -> None:
    with served(tmp_path, short, "--size", "1024x640", "--start", "mousepad") as (url, key):
        elements, screenshot = asyncio.run(load_example("mcp_client").main(url, key))
    assert image_of(screenshot).size == (1024, 640)
    assert "Typed by an MCP client." in elements.content[0].text


def test_over_http_to_this_machine_only(tmp_path: Any, short: Any) -> None:
    with served(tmp_path, short, "--single") as (url, key):
        assert url.startswith("http://127.0.0.1:")
        shown = {"Authorization": f"Bearer {key}"}

        async def main() -> None:
            async with (
                httpx2.AsyncClient(headers=shown) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                moved = await client.call_tool("computer", {"action": "move", "xy": [5, 6]})
                assert image_of(moved).size == (1280, 800)

        asyncio.run(main())
        line = http.client.HTTPConnection(url.split("/")[2], timeout=60)
        line.request("POST", "/mcp/", "{}", {"Host": "evil.example", "Content-Type": "application/json", **shown})
        assert line.getresponse().status in (403, 421), "a page that was led here by another name"
        line.close()
        for path, wrong in itertools.product(("/mcp", "/mcp/"), ({}, {"Authorization": "Bearer wrong"})):
            line = http.client.HTTPConnection(url.split("/")[2], timeout=60)
            line.request("POST", path, "{}", {"Content-Type": "application/json", **wrong})
            assert line.getresponse().status == 401
            line.close()


def test_a_program_is_started_where_that_is_offered(launch: Callable[..., deskhand.Desktop]) -> None:
    desktop = launch(size=(400, 300), elements=False)
    listed = with_client(mcp.server(desktop, programs=True), lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed][-2:] == ["elements", "start"]
    assert [types.Tool.model_validate(tool) for tool in mcp.declare(desktop, programs=True)] == listed

    async def start(client: Any) -> Any:
        return await client.call_tool("start", {"command": "xterm -T 'by a client'"})

    refused = with_client(mcp.server(desktop), start)
    assert refused.is_error
    assert "does not support the action 'start'" in refused.content[0].text
    denied = with_client(mcp.server(desktop, programs=True, policy=ClassPolicy(allow=["observe", "input"])), start)
    assert denied.is_error
    assert "the policy denies start" in denied.content[0].text
    assert desktop.windows.list() == []

    started = with_client(mcp.server(desktop, programs=True, policy=ClassPolicy(allow=["observe", "shell"])), start)
    assert not started.is_error
    assert image_of(started).size == (400, 300)
    assert [window.title for window in desktop.windows.list()] == ["by a client"]
    for wrong, said in (({}, "command"), ({"command": ""}, "empty"), ({"command": "xterm", "shell": 1}, "'shell'")):
        with pytest.raises(ActionError, match=said):
            mcp.decode({"name": "start", "arguments": wrong}, VIEWPORT)
    call = mcp.decode({"name": "start", "arguments": {"command": "xterm"}}, VIEWPORT)
    assert mcp.encode_call(call) == {"name": "start", "arguments": {"command": "xterm"}}


def test_an_action_alone_is_no_call() -> None:
    with pytest.raises(ActionError, match=r"write ProviderCall\(steps=\(action,\), viewport="):
        mcp.encode_call(a.LeftClick((1, 2)))


@pytest.mark.parametrize("classes", ["observe,shell", "observe"])
def test_what_clients_ask_for_is_judged(tmp_path: Any, short: Any, classes: str) -> None:
    """A policy on the command line holds for every tool, over standard input and output: also for that of `--programs`."""
    log, may = tmp_path / "audit.jsonl", "shell" in classes
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(short)}
    environment.pop("DESKHAND_DESKTOP", None)
    server = StdioServerParameters(
        command=sys.executable,
        args=[
            *("-m", "deskhand", "mcp", "--single", "--policy", classes),
            *("--audit", str(log), "--programs", "--start", "xterm -T ours"),
        ],
        env=environment,
    )

    async def main() -> tuple[Any, Any, Any]:
        async with Client(stdio_client(server)) as client:
            return (
                await client.call_tool("computer", {"action": "screenshot"}),
                await client.call_tool("computer", {"action": "move", "xy": [5, 6]}),
                await client.call_tool("start", {"command": "xterm -T theirs"}),
            )

    seen, moved, started = asyncio.run(main())
    assert bool(started.is_error) is not may
    assert may or "the policy denies start" in started.content[0].text
    assert (bool(seen.is_error), bool(moved.is_error)) == (False, True)
    assert "the policy denies move" in moved.content[0].text
    decided = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["provider"] for line in decided if line["event"] == "decision"} == {"mcp"}
    assert [line["decision"] for line in decided if line.get("action", {}).get("type") == "move"] == ["deny"]
    asked = [line["action"]["target"] for line in decided if line.get("action", {}).get("type") == "start"]
    assert asked == ["xterm -T theirs"], "what the command line starts is no client's request"


# --- there and back ---


@given(actions, st.sampled_from([None, "computer"]), st.dictionaries(st.just("_meta"), st.dictionaries(texts, texts)))
def test_a_call_comes_back_as_it_was(action: a.Action, tool: str | None, extra: dict[str, Any]) -> None:
    call = ProviderCall(steps=(action,), viewport=VIEWPORT, name=tool or action.type, extra=extra)
    payload = mcp.encode_call(call)
    types.CallToolRequestParams.model_validate(payload)
    assert mcp.decode(payload, VIEWPORT) == call


@given(pictures, st.none() | texts, st.none() | points)
def test_a_result_comes_back_as_it_was(picture: Picture, error: str | None, cursor: tuple[int, int] | None) -> None:
    asked: a.Action = a.TakeScreenshot() if cursor is None else a.CursorPosition()
    call = ProviderCall(steps=(asked,), viewport=VIEWPORT)
    if error is not None:
        result = Result(call=call, error=error)
    elif cursor is not None:
        result = Result(call=call, cursor=deskhand.Point(*cursor))
    else:
        result = Result(call=call, picture=picture)
    payload = mcp.encode(result)
    types.CallToolResult.model_validate(payload)
    assert mcp.decode_result(payload, call) == result


def test_damaged_calls_are_read_or_refused() -> None:
    whole = [mcp.encode_call(ProviderCall(steps=(action,), viewport=VIEWPORT)) for action in EXAMPLES]
    whole += [mcp.encode_call(ProviderCall(steps=(action,), viewport=VIEWPORT, name="computer")) for action in EXAMPLES]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            assert isinstance(mcp.decode(damaged(whole[seed % len(whole)], seed), HALVED), ProviderCall)


def test_damaged_results_are_read_or_refused() -> None:
    call = ProviderCall(steps=(a.CursorPosition(),), viewport=VIEWPORT)
    whole = [
        mcp.encode(Result(call=call, cursor=deskhand.Point(1, 2))),
        mcp.encode(Result(call=ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT), picture=Picture(b"png"))),
    ]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            assert isinstance(mcp.decode_result(damaged(whole[seed % 2], seed), call), Result)


@pytest.mark.parametrize("steps", [(), (a.Wait(), a.Wait()), (Finish(),)])
def test_what_one_tool_cannot_do_is_refused(steps: tuple[Any, ...]) -> None:
    with pytest.raises(UnsupportedAction, match="MCP"):
        mcp.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT))
