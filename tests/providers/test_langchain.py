"""LangChain: its own tools, a scripted chat model, and ChatOpenAI and ChatAnthropic with the requests that they send."""

from __future__ import annotations

import asyncio
import base64
import functools
import io
import json
import operator
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_openai import ChatOpenAI
from openai.types.responses import response_input_item_param as items
from openai.types.responses.response_computer_tool_call import PendingSafetyCheck
from PIL import Image
from pydantic import TypeAdapter

import deskhand
from deskhand import actions as a
from deskhand.aio.desktop import AsyncDesktop
from deskhand.errors import ActionError, DesktopLost
from deskhand.providers import langchain
from deskhand.providers.action_tools import encode_plain
from deskhand.providers.session import ModelSession
from providers import anthropic_helpers, openai_helpers
from providers.helpers import load_example
from providers.seen import SEEN
from providers.strategies import VIEWPORT
from providers.test_cua import downs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.messages import BaseMessage

    from integration.observer import Observer

OUTPUT: TypeAdapter[Any] = TypeAdapter(items.ComputerCallOutput)


class Scripted(GenericFakeChatModel):
    """LangChain's own scripted model, which takes tools and keeps what it was asked."""

    bound: list[Any] = []  # noqa: RUF012 # a field of a pydantic model
    asked: list[list[Any]] = []  # noqa: RUF012

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.bound.extend(tools)
        return self

    def _generate(self, messages: list[Any], *args: Any, **options: Any) -> Any:
        self.asked.append(list(messages))
        return super()._generate(messages, *args, **options)


def asks(name: str, id: str = "call_1", **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": args, "id": id}


def image_of(message: BaseMessage) -> Image.Image:
    blocks = [block for block in message.content_blocks if block["type"] == "image"]
    assert [block.get("mime_type") for block in blocks] == ["image/png"]
    return Image.open(io.BytesIO(base64.b64decode(blocks[0]["base64"])))


def named(desktop: Any, *, single: bool = False, **options: Any) -> dict[str, Any]:
    made = [langchain.tool(desktop, **options)] if single else langchain.tools(desktop, **options)
    return {tool.name: tool for tool in made}


# --- our own actions as tools ---


@pytest.mark.parametrize("single", [False, True], ids=["a tool each", "one tool"])
def test_every_action_through_its_tool(shared: deskhand.Desktop, observer: Observer, *, single: bool) -> None:
    tools = named(shared, single=single)
    assert list(tools) == (["computer"] if single else [*a.ACTIONS, "elements"])
    # Where the pointer is, is asked below.
    assert {type(action) for action, _ in SEEN} | {a.CursorPosition} == set(a.ACTIONS.values())
    for action, expected in SEEN:
        name, args = encode_plain(action, VIEWPORT)
        call = asks("computer", action=name, **args) if single else asks(name, **args)
        observer.events()
        message = tools[call["name"]].invoke(call)
        assert downs(observer) == expected, action
        assert isinstance(message, ToolMessage)
        assert (message.status, message.tool_call_id, message.name) == ("success", "call_1", call["name"])
        assert image_of(message).size == ((200, 100) if isinstance(action, a.Zoom) else shared.size)
        assert message.artifact["settled"] is True
        assert message.artifact.result.call.steps == (action,)
    shared.perform(a.Move((7, 8)))
    call = asks("computer", action="cursor_position") if single else asks("cursor_position")
    message = tools[call["name"]].invoke(call)
    assert message.content == [{"type": "text", "text": "X=7,Y=8"}], "who asks where the pointer is pays for no picture"


def test_tools_with_coroutines(shared: deskhand.Desktop) -> None:
    async def main() -> None:
        tool = named(AsyncDesktop(shared))["move"]
        message = await tool.ainvoke(asks("move", xy=[3, 4]))
        assert (message.status, shared.pointer) == ("success", (3, 4))
        refused = await tool.ainvoke(asks("move", xy=[9000, 4]))
        assert (refused.status, refused.tool_call_id) == ("error", "call_1")

    asyncio.run(main())


def test_a_loop_without_the_tools(shared: deskhand.Desktop) -> None:
    """`run` answers with the fields of the message that the tool would have answered with."""
    seen = langchain.run(shared, asks("move", xy=[5, 6]))
    assert (shared.pointer, ToolMessage(**seen).status, seen["tool_call_id"]) == ((5, 6), "success", "call_1")
    refused = asyncio.run(langchain.run_async(AsyncDesktop(shared), asks("move", id="call_2", xy=[9000, 4])))
    told = named(shared)["move"].invoke(asks("move", id="call_2", xy=[9000, 4]))
    assert ToolMessage(**refused).content == told.content
    assert (refused["status"], refused["tool_call_id"], refused["name"]) == ("error", "call_2", "move")
    assert langchain.run(shared, "no call")["status"] == "error"


def test_smaller_pictures_are_pointed_into(shared: deskhand.Desktop) -> None:
    tools = named(shared, size=(640, 400))
    assert all("640x400" in tool.description for name, tool in tools.items() if name != "elements")
    assert image_of(tools["move"].invoke(asks("move", xy=[3, 4]))).size == (640, 400)
    assert shared.pointer == (7, 9)


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("move", {"xy": [5000, 1]}, "outside"),
        ("move", {"xy": [1]}, "xy"),
        ("move", {}, "missing"),
        ("move", {"xy": [1, 1], "speed": 3}, "speed"),
        ("move", {"xy": [1, 1], "self": 1, "config": {}, "run_manager": 1, "callbacks": 1}, "callbacks.*config"),
        ("type", {"text": "x", "secret": True}, "secret"),
        ("keypress", {"keys": ["nokey"]}, "unknown key"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_the_model_can_read(
    shared: deskhand.Desktop, observer: Observer, name: str, args: dict[str, Any], reason: str
) -> None:
    tool = named(shared)[name]
    observer.events()
    message = tool.invoke({"type": "tool_call", "name": name, "args": args, "id": "call_1"})
    assert (message.status, message.tool_call_id, message.name) == ("error", "call_1", name)
    (block,) = message.content
    assert block["type"] == "text"
    assert re.search(reason, block["text"])
    assert tool.invoke(args) == block["text"], "without a call's id there is only text"
    assert "args is an object" in tool.invoke("a string")
    assert downs(observer) == []


def test_a_policy_is_asked_with_the_calls_id(shared: deskhand.Desktop) -> None:
    asked: list[Any] = []

    class Careful:
        def before(self, action: Any, context: Any) -> str:
            asked.append((action, context.provider, context.call_id))
            return "deny"

    message = named(shared, policy=Careful())["type"].invoke(asks("type", text="x"))
    assert (message.status, message.artifact["denied"]) == ("error", True)
    assert asked[0] == (a.Type("x"), "langchain", "call_1")


def test_a_history_goes_through_json(shared: deskhand.Desktop) -> None:
    tools = named(shared)
    history = [
        AIMessage("", tool_calls=[asks("screenshot")]),
        tools["screenshot"].invoke(asks("screenshot")),
        tools["move"].invoke(asks("move", xy=[9000, 1])),
    ]
    again = messages_from_dict(json.loads(json.dumps(messages_to_dict(history))))
    assert [message.content for message in again] == [message.content for message in history]
    assert again[1].artifact["changed"] is False  # type: ignore[attr-defined]


def test_a_lost_desktop_ends_the_run() -> None:
    with deskhand.launch(size=(320, 200)) as desktop:
        tool = named(desktop)["move"]
        model_session = ModelSession(desktop)
        desktop.close()
    with pytest.raises((DesktopLost, deskhand.BackendError)):
        tool.invoke(asks("move", xy=[1, 1]))
    with pytest.raises((DesktopLost, deskhand.BackendError)):
        langchain.respond(model_session, AIMessage("", tool_calls=[asks("computer", action="screenshot")]))


def test_the_example_with_langchains_scripted_model() -> None:
    script: Iterator[Any] = iter(
        [
            AIMessage("", tool_calls=[asks("right_click", "c1", xy=[640, 400]), asks("fly", "c2")]),
            AIMessage("", tool_calls=[asks("keypress", "c3", keys=["Escape"])]),
            AIMessage("The menu is there."),
        ]
    )
    model = Scripted(messages=script, bound=[], asked=[])
    messages = load_example("langchain_agent").main("Look for a menu", model)
    assert [message.type for message in messages] == ["human", "ai", "tool", "tool", "ai", "tool", "ai"]
    assert [message.status for message in messages if isinstance(message, ToolMessage)] == [
        "success",
        "error",
        "success",
    ]
    assert messages[-1].text == "The menu is there."
    assert {tool.name for tool in model.bound} == {*a.ACTIONS, "elements"}
    assert model.asked[1] == messages[:4], "the model was given the answers"
    assert image_of(messages[2]).size == (1280, 800)


# --- ChatOpenAI ---


class Service(openai_helpers.Service):
    """OpenAI's service at the other end of ChatOpenAI."""

    def chat(self, **options: Any) -> ChatOpenAI:
        client = httpx2.Client(transport=self._transport)
        return ChatOpenAI(model="computer-model", api_key="none", http_client=client, max_retries=0, **options)


def converse(
    model: Any, desktop: Any, messages: list[Any], answer: Callable[..., list[Any]] = langchain.respond, **options: Any
) -> list[Any]:
    """The loop of a user's: until there is nothing to do."""
    while True:
        messages.append(said := model.invoke(messages))
        answers = answer(desktop, said, **options)
        if not answers:
            return messages
        messages += answers


def test_every_action_of_openai_through_chatopenai() -> None:
    batch = openai_helpers.call(*openai_helpers.EVERY)
    service = Service(openai_helpers.response(batch), openai_helpers.response(openai_helpers.said("Done"), id="resp_2"))
    with openai_helpers.watched() as watched:
        model_session = ModelSession(watched.desktop, size="openai")
        model = service.chat().bind_tools(langchain.declare(model_session, provider="openai"))
        messages = converse(model, model_session, [HumanMessage("Do all")])
        assert watched.events() == openai_helpers.SEEN
    first, second = service.requests
    assert first["tools"] == [{"type": "computer"}]
    *_, call, output = second["input"]
    assert (call["type"], call["call_id"], len(call["actions"])) == (
        "computer_call",
        "call_1",
        len(openai_helpers.EVERY),
    )
    OUTPUT.validate_python(output)
    assert (output["call_id"], output["output"]["type"], output["output"]["detail"]) == (
        "call_1",
        "computer_screenshot",
        "original",
    )
    data = base64.b64decode(output["output"]["image_url"].partition(",")[2])
    assert Image.open(io.BytesIO(data)).size == openai_helpers.SIZE
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[2].additional_kwargs["type"] == "computer_call_output"


@pytest.mark.parametrize("version", ["responses/v1", "v1", "v0"])
def test_chatopenais_ways_to_hold_a_call(shared: deskhand.Desktop, version: str) -> None:
    asked = openai_helpers.call(openai_helpers.of.Move(type="move", x=31, y=len(version)))
    service = Service(openai_helpers.response(asked), openai_helpers.response(openai_helpers.said("Done"), id="resp_2"))
    model = service.chat(output_version=version).bind_tools(langchain.declare(shared, provider="openai"))
    converse(model, shared, [HumanMessage("Move")])
    assert shared.pointer == (31, len(version))
    assert [item["type"] for item in service.requests[1]["input"][1:]] == ["computer_call", "computer_call_output"]


def test_what_openai_cannot_be_told_in_the_output_is_told_after_all_of_them(shared: deskhand.Desktop) -> None:
    off = openai_helpers.of.Click(type="click", button="left", x=9000, y=0)
    service = Service(
        openai_helpers.response(
            openai_helpers.call(off, id="call_1", preview=True),
            openai_helpers.call(openai_helpers.of.Screenshot(type="screenshot"), id="call_2", preview=True),
        ),
        openai_helpers.response(openai_helpers.said("Done"), id="resp_2"),
    )
    tools = langchain.declare(shared, provider="openai", preview=True)
    messages = converse(service.chat().bind_tools(tools), shared, [HumanMessage("Click")])
    first, second = service.requests
    assert first["tools"][0] | {"environment": ""} == {
        "type": "computer_use_preview", "display_width": 1280, "display_height": 800, "environment": "",
    }  # fmt: skip
    assert [item["type"] for item in second["input"][-3:]] == ["computer_call_output"] * 2 + ["message"]
    assert (second["input"][-1]["role"], messages[-2].type) == ("user", "human")
    assert "outside" in messages[-2].text
    assert messages[-2].text in json.dumps(second["input"][-1], ensure_ascii=False)
    assert [message.status for message in messages[2:4]] == ["error", "success"]


def test_safety_checks_are_confirmed_by_whoever_is_asked(shared: deskhand.Desktop) -> None:
    check = PendingSafetyCheck(id="sc_1", code="malicious", message="Careful")
    asked = openai_helpers.call(openai_helpers.of.Move(type="move", x=11, y=12), checks=(check,))

    def answered(**options: Any) -> tuple[dict[str, Any], Any]:
        service = Service(
            openai_helpers.response(asked), openai_helpers.response(openai_helpers.said("Done"), id="resp_2")
        )
        shared.perform(a.Move((1, 1)))
        model = service.chat().bind_tools(langchain.declare(shared, provider="openai"))
        messages = converse(model, shared, [HumanMessage("Move")], **options)
        outputs = [item for item in service.requests[1]["input"] if item["type"] == "computer_call_output"]
        return outputs[0], messages[2]

    output, message = answered()
    assert ("acknowledged_safety_checks" in output, message.status, shared.pointer) == (False, "error", (1, 1))
    output, message = answered(ask=lambda *_: True)
    assert output["acknowledged_safety_checks"] == [{"id": "sc_1", "code": "malicious", "message": "Careful"}]
    assert (message.status, shared.pointer) == ("success", (11, 12))


def test_nothing_of_a_response_that_was_cut_off_is_done(shared: deskhand.Desktop) -> None:
    move = openai_helpers.of.Move(type="move", x=50, y=60)
    service = Service(openai_helpers.response(openai_helpers.call(move), status="incomplete"))
    shared.perform(a.Move((1, 1)))
    output, note = langchain.respond(shared, service.chat(use_responses_api=True).invoke("Move"))
    assert (output.status, note.type, shared.pointer) == ("error", "human", (1, 1))  # type: ignore[attr-defined]
    assert "incomplete" in note.text


def test_our_own_tools_through_chatopenai(shared: deskhand.Desktop) -> None:
    call = {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "move", "arguments": '{"xy": [9, 8]}',
        "status": "completed",
    }  # fmt: skip
    response = openai_helpers.response(openai_helpers.said("I move"))
    response["output"].append(call)
    service = Service(response, openai_helpers.response(openai_helpers.said("Done"), id="resp_2"))
    tools = named(shared)
    model = service.chat(use_responses_api=True).bind_tools(list(tools.values()))
    converse(
        model,
        shared,
        [HumanMessage("Move")],
        lambda _, said: [tools[asked["name"]].invoke(asked) for asked in said.tool_calls],
    )
    first, second = service.requests
    assert {tool["name"] for tool in first["tools"]} == {*a.ACTIONS, "elements"}
    assert [each["function"]["name"] for each in langchain.declare(shared)] == [*a.ACTIONS, "elements"]
    output = second["input"][-1]
    assert (output["type"], output["call_id"]) == ("function_call_output", "call_1")
    (block,) = output["output"]
    assert block["type"] == "input_image"
    assert block["image_url"].startswith("data:image/png;base64,")
    assert shared.pointer == (9, 8)


# --- ChatAnthropic ---


def chat_anthropic(api: anthropic_helpers.Api, **options: Any) -> ChatAnthropic:
    model = ChatAnthropic(model="claude-opus-5-5", api_key="none", max_tokens=100, max_retries=0, **options)
    # It has no parameter for a transport; its clients are made when they are first asked for.
    model.__dict__["_client"] = api.client()
    model.__dict__["_async_client"] = api.async_client()
    return model


@pytest.mark.parametrize("version", ["computer_20250124", "computer_20251124"])
@pytest.mark.parametrize("output", ["v0", "v1"])
def test_anthropics_single_tools_through_chatanthropic(
    shared: deskhand.Desktop, observer: Observer, version: str, output: str
) -> None:
    api = anthropic_helpers.Api(
        [anthropic_helpers.flat("left_click", "t1", coordinate=[40, 50], text="ctrl")],
        [
            anthropic_helpers.flat("type", "t2", text="hi"),
            anthropic_helpers.flat("left_click", "t3", coordinate=[9000, 5]),
            anthropic_helpers.flat("type", "t4", text="never"),
        ],
    )
    model_session = ModelSession(shared, size="anthropic")
    tools = langchain.declare(model_session, provider="anthropic", version=version)
    observer.events()
    model = chat_anthropic(api, output_version=output).bind_tools(tools)
    messages = converse(model, model_session, [HumanMessage("Go")], version=version)
    assert downs(observer) == ["Control_L", (1, [40, 50]), "h", "i"], "nothing of a turn is done after a failure"
    assert api.requests[0]["tools"] == tools
    assert all(f"computer-use-{version[9:13]}-{version[13:15]}-{version[15:]}" in beta for beta in api.betas)
    (first,), (second, third, fourth) = api.results
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert [answer["tool_use_id"] for answer in (first, second, third, fourth)] == ["t1", "t2", "t3", "t4"]
    assert [answer["is_error"] for answer in (first, second, third, fourth)] == [False, False, True, True]
    assert "outside" in third["content"][0]["text"]
    assert [message.name for message in messages if isinstance(message, ToolMessage)] == ["computer"] * 4
    assert image_of(messages[2]).size == model_session.viewport.model


def test_anthropics_toolset_through_chatanthropic(shared: deskhand.Desktop) -> None:
    api = anthropic_helpers.Api(
        [
            anthropic_helpers.member("mouse_move", "t1", coordinate=[33, 44]),
            anthropic_helpers.member("screenshot", "t2"),
        ]
    )
    model_session = ModelSession(shared, size="anthropic")
    tools = langchain.declare(model_session, provider="anthropic", version="computer_toolset_20260801")
    converse(chat_anthropic(api).bind_tools(tools), model_session, [HumanMessage("Go")])
    assert shared.pointer == (33, 44)
    ((moved, seen),) = api.results
    assert (moved["toolset_name"], seen["toolset_name"]) == ("computer", "computer")
    assert [block["type"] for block in seen["content"]] == ["image"]


def test_other_tools_are_left_alone(shared: deskhand.Desktop) -> None:
    calls = [asks("weather", "t1"), asks("computer", "t2", action="cursor_position"), asks("type", "t3", text="x")]
    answers = langchain.respond(shared, AIMessage("", tool_calls=calls))
    assert [answer.tool_call_id for answer in answers] == ["t2"]  # type: ignore[attr-defined]
    assert langchain.respond(shared, AIMessage("Done")) == []


def test_run_with_coroutines(shared: deskhand.Desktop) -> None:
    api = anthropic_helpers.Api([anthropic_helpers.flat("mouse_move", coordinate=[21, 22])])
    service = Service(openai_helpers.response(openai_helpers.call(openai_helpers.of.Move(type="move", x=31, y=32))))

    async def main() -> None:
        said: Any = await chat_anthropic(api).ainvoke("Go")
        (moved,) = await langchain.respond_async(shared, said)
        assert (moved.status, shared.pointer) == ("success", (21, 22))  # type: ignore[attr-defined]
        said = service.chat(use_responses_api=True).invoke("Go")
        (moved,) = await langchain.respond_async(shared, said)
        assert (moved.status, shared.pointer) == ("success", (31, 32))  # type: ignore[attr-defined]

    asyncio.run(main())


# --- streamed ---


def streamed(model: Any) -> Any:
    """A model whose answers are put together from what it streams."""

    class Streaming:
        def invoke(self, messages: list[Any]) -> Any:
            chunks = list(model.stream(messages))
            assert len(chunks) > 1
            return functools.reduce(operator.add, chunks)

    return Streaming()


@pytest.mark.parametrize("version", ["responses/v1", "v1"])
def test_a_streamed_run_of_chatopenai_does_the_same(version: str) -> None:
    batch = openai_helpers.call(*openai_helpers.EVERY)
    service = Service(
        openai_helpers.response(batch), openai_helpers.response(openai_helpers.said("Done it is"), id="resp_2")
    )
    with openai_helpers.watched() as watched:
        model_session = ModelSession(watched.desktop, size="openai")
        tools = langchain.declare(model_session, provider="openai")
        model = service.chat(output_version=version, use_responses_api=True).bind_tools(tools)
        messages = converse(streamed(model), model_session, [HumanMessage("Do all")])
        assert watched.events() == openai_helpers.SEEN
    assert [request["stream"] for request in service.requests] == [True, True]
    *_, call, output = service.requests[1]["input"]
    assert (call["type"], call["call_id"], len(call["actions"])) == (
        "computer_call",
        "call_1",
        len(openai_helpers.EVERY),
    )
    OUTPUT.validate_python(output)
    assert messages[-1].text == "Done it is"


@pytest.mark.parametrize("version", ["computer_20251124", "computer_toolset_20260801"])
@pytest.mark.parametrize("output", ["v0", "v1"])
def test_a_streamed_run_of_chatanthropic_does_the_same(
    shared: deskhand.Desktop, observer: Observer, version: str, output: str
) -> None:
    make = anthropic_helpers.member if "toolset" in version else anthropic_helpers.flat
    api = anthropic_helpers.Api(
        [make("left_click", "t1", coordinate=[40, 50], text="ctrl")],
        [
            make("type", "t2", text="hi"),
            make("left_click", "t3", coordinate=[9000, 5]),
            make("type", "t4", text="never"),
        ],
    )
    model_session = ModelSession(shared, size="anthropic")
    tools = langchain.declare(model_session, provider="anthropic", version=version)
    observer.events()
    model = chat_anthropic(api, output_version=output).bind_tools(tools)
    messages = converse(streamed(model), model_session, [HumanMessage("Go")], version=version)
    assert downs(observer) == ["Control_L", (1, [40, 50]), "h", "i"]
    assert [request["stream"] for request in api.requests] == [True] * 3
    (first,), (second, third, fourth) = api.results
    assert [answer["tool_use_id"] for answer in (first, second, third, fourth)] == ["t1", "t2", "t3", "t4"]
    assert [answer["is_error"] for answer in (second, third, fourth)] == [False, True, True]
    assert messages[-1].text == "That is all."


def test_our_own_tools_in_a_streamed_run(shared: deskhand.Desktop) -> None:
    api = anthropic_helpers.Api([{"type": "tool_use", "id": "t1", "name": "move", "input": {"xy": [13, 14]}}])
    tools = named(shared)
    model = streamed(chat_anthropic(api).bind_tools(langchain.declare(shared)))
    messages = converse(
        model,
        shared,
        [HumanMessage("Go")],
        lambda _, said: [tools[call["name"]].invoke(call) for call in said.tool_calls],
    )
    assert shared.pointer == (13, 14)
    assert messages[-2].status == "success"


def test_a_provider_that_there_is_not(shared: deskhand.Desktop) -> None:
    with pytest.raises(ActionError, match="google"):
        langchain.declare(shared, provider="google")


def test_a_version_has_no_more_than_its_actions(shared: deskhand.Desktop) -> None:
    message = AIMessage("", tool_calls=[asks("computer", "t1", action="zoom", region=[0, 0, 100, 50])])
    (seen,) = langchain.respond(shared, message)
    assert image_of(seen).size == (100, 50)
    (refused,) = langchain.respond(shared, message, version="computer_20250124")
    assert (refused.status, "zoom" in refused.text) == ("error", True)  # type: ignore[attr-defined]


def test_nothing_of_langchain_is_imported_before_it_is_needed() -> None:
    program = """
import sys
import deskhand.providers.langchain as ours
assert not any(name.partition(".")[0] in ("langchain_core", "pydantic") for name in sys.modules)
sys.modules["langchain_core"] = None
try:
    ours.respond(None, {"content": ""})
except ImportError as error:
    assert "deskhand[langchain]" in str(error), error
else:
    raise SystemExit("nothing was missing")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
