"""A real desktop behind Bedrock's three interfaces, with botocore's own clients on the other side."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from deskhand.aio.desktop import AsyncDesktop
from deskhand.errors import ActionError
from deskhand.providers import bedrock
from deskhand.providers.anthropic import NOT_EXECUTED
from deskhand.providers.bedrock import agents
from deskhand.providers.session import ModelSession
from providers.bedrock_helpers import Service, control, converse_answer, events, function, tool_use
from providers.helpers import LocalSession
from providers.screen import SIZE, at_rest, observed, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    import deskhand
    from integration.observer import Observer

LATEST = "computer_20251124"


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[deskhand.Desktop, Observer]]:
    with observed() as both:
        yield both


@pytest.fixture
def desktop(stage: tuple[deskhand.Desktop, Observer]) -> deskhand.Desktop:
    return stage[0]


@pytest.fixture
def observer(stage: tuple[deskhand.Desktop, Observer]) -> Observer:
    at_rest(*stage)
    return stage[1]


def _click(button: int, at: str, count: int = 1) -> list[str]:
    return [f"{sign}{button}@{at}" for _ in range(count) for sign in "+-"]


def _size(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


# Each action of the flat input, and what arrives at the desktop.
ACTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"action": "key", "text": "ctrl+s"}, ["+Control_L", "+s", "-s", "-Control_L"]),
    ({"action": "hold_key", "text": "w", "duration": 0}, ["+w", "-w"]),
    ({"action": "type", "text": "3"}, ["+3", "-3"]),
    ({"action": "cursor_position"}, []),
    ({"action": "mouse_move", "coordinate": [40, 50]}, []),
    ({"action": "left_mouse_down"}, ["+1@100,100"]),
    ({"action": "left_click", "coordinate": [40, 50], "text": "shift"}, ["+Shift_L", *_click(1, "40,50"), "-Shift_L"]),
    ({"action": "left_click_drag", "start_coordinate": [40, 50], "coordinate": [90, 60]}, ["+1@40,50", "-1@90,60"]),
    ({"action": "right_click", "coordinate": [41, 50]}, _click(3, "41,50")),
    ({"action": "middle_click"}, _click(2, "100,100")),
    ({"action": "double_click", "coordinate": [640, 50]}, _click(1, "640,50", 2)),
    (
        {"action": "scroll", "coordinate": [40, 50], "scroll_direction": "right", "scroll_amount": 2},
        _click(7, "40,50", 2),
    ),
    ({"action": "wait", "duration": 0.01}, []),
    ({"action": "screenshot"}, []),
    ({"action": "zoom", "region": [0, 0, 60, 30]}, []),
]


@pytest.mark.parametrize(
    ("given", "events"), ACTIONS, ids=lambda value: value["action"] if isinstance(value, dict) else ""
)
def test_actions_by_converse_and_by_agents(
    desktop: deskhand.Desktop, observer: Observer, given: dict[str, Any], events: list[str]
) -> None:
    answer = bedrock.run(desktop, tool_use("t", **given), version=LATEST)["toolResult"]
    assert told(observer) == events
    at_rest(desktop, observer)
    assert (answer["toolUseId"], answer["status"]) == ("t", "success")
    expected = (60, 30) if given["action"] == "zoom" else SIZE
    *_, shown = answer["content"]
    assert _size(shown["image"]["source"]["bytes"]) == expected

    text = {name: value if isinstance(value, str) else str(value) for name, value in given.items()}
    result = bedrock.run(desktop, function(**text), version=LATEST)["functionResult"]
    assert told(observer) == events
    desktop.release()
    if given["action"] == "cursor_position":
        assert result["responseBody"] == {"TEXT": {"body": "X=100,Y=100"}}
    else:
        ((kind, body),) = result["responseBody"].items()
        assert kind == "IMAGES"
        assert _size(body["images"][0]["source"]["bytes"]) == expected


def test_the_example_through_a_real_client() -> None:
    folder = Path(__file__).parents[2] / "examples"
    example = runpy.run_path(str(folder / "bedrock_agent.py"))
    service = Service(
        "bedrock-runtime",
        converse_answer(
            {"text": "First,"}, tool_use("a", action="left_click", coordinate=[5, 5]), tool_use("b", action="fly")
        ),
        converse_answer(tool_use("c", action="screenshot"), tool_use("d", "not_for_use")),
        converse_answer({"text": "That is all."}),
    )
    assert example["main"]("Look.", service.client) == "That is all."
    first = service.bodies[1]["messages"][-1]["content"]
    assert [(block["toolResult"]["toolUseId"], block["toolResult"]["status"]) for block in first] == [
        ("a", "success"),
        ("b", "error"),
    ]
    assert "has no action 'fly'" in first[1]["toolResult"]["content"][0]["text"]
    (second,) = service.bodies[2]["messages"][-1]["content"]
    # On the wire it is base64, once.
    image = second["toolResult"]["content"][-1]["image"]
    assert _size(base64.b64decode(image["source"]["bytes"], validate=True)) == SIZE
    assert service.bodies[0]["additionalModelRequestFields"]["tools"][0]["display_width_px"] == SIZE[0]
    assert len((folder / "bedrock_agent.py").read_text().splitlines()) <= 40


def test_a_turn_of_converse_ends_at_its_first_failure(desktop: deskhand.Desktop, observer: Observer) -> None:
    message = {
        "role": "assistant",
        "content": [
            tool_use("a", action="type", text="x"),
            tool_use("b", action="left_click", coordinate=[1280, 5]),
            tool_use("c", action="type", text="y"),
            tool_use("d", "bash", command="echo here"),
            tool_use("e", "yours"),
        ],
    }
    with LocalSession() as session:
        answers = bedrock.respond(desktop, message, shell=session)["content"]
    results = [answer["toolResult"] for answer in answers]
    assert [result["toolUseId"] for result in results] == ["a", "b", "c", "d"]
    assert [result["status"] for result in results] == ["success", "error", "error", "success"]
    assert results[2]["content"] == [{"text": NOT_EXECUTED}]
    assert results[3]["content"] == [{"text": "here"}]
    assert told(observer) == ["+x", "-x"]


@pytest.mark.parametrize("inline", [False, True])
def test_an_agent_through_a_real_client(desktop: deskhand.Desktop, observer: Observer, inline: bool) -> None:  # noqa: FBT001
    asked = control(
        function(action="left_click", coordinate="[200, 210]"),
        function(action="key", text="Retrun"),
        function(action="type", text="x"),
        function("bash", command="echo here"),
        {"apiInvocationInput": {"actionGroup": "weather", "apiPath": "/today", "httpMethod": "GET"}},
    )
    stream, end = events(("returnControl", asked)), events(("chunk", {"bytes": base64.b64encode(b"done").decode()}))
    service = Service("bedrock-agent-runtime", stream, end)
    if inline:
        options: dict[str, Any] = {
            "foundationModel": "m",
            "instruction": "x" * 40,
            "sessionId": "session-1",
            "actionGroups": bedrock.declare_agent(desktop, shell=True),
        }
        invoke, state = service.client.invoke_inline_agent, "inlineSessionState"
    else:
        options = {"agentId": "AGENT12345", "agentAliasId": "ALIAS12345", "sessionId": "session-1"}
        invoke, state = service.client.invoke_agent, "sessionState"
    with LocalSession() as session:
        (event,) = invoke(inputText="Do it.", **options)["completion"]
        answer = bedrock.respond(desktop, event, shell=session)
    (last,) = invoke(**options, **{state: answer})["completion"]
    assert last["chunk"]["bytes"] == b"done"
    sent = service.bodies[1][state]
    assert sent["invocationId"] == "inv-1"
    results = sent["returnControlInvocationResults"]
    click, wrong, skipped, shell = (result["functionResult"] for result in results[:4])
    image = click["responseBody"]["IMAGES"]["images"][0]
    assert _size(base64.b64decode(image["source"]["bytes"], validate=True)) == SIZE
    assert (wrong["actionGroup"], wrong["function"], wrong["responseState"]) == ("desk", "computer", "REPROMPT")
    assert "did you mean Return" in wrong["responseBody"]["TEXT"]["body"]
    assert skipped["responseBody"]["TEXT"]["body"] == NOT_EXECUTED
    assert shell["responseBody"]["TEXT"]["body"] == "here"
    assert results[4]["apiResult"]["responseState"] == "REPROMPT"
    assert (results[4]["apiResult"]["apiPath"], results[4]["apiResult"]["httpMethod"]) == ("/today", "GET")
    assert told(observer) == _click(1, "200,210")


def test_what_an_agent_wants_confirmed_is_not_done(desktop: deskhand.Desktop, observer: Observer) -> None:
    for kind in ("USER_CONFIRMATION", "USER_CONFIRMATION_AND_RESULT"):
        asked = control(function(action="type", text="x", confirm=kind), function(action="type", text="y"))
        first, second = bedrock.respond(desktop, asked)["returnControlInvocationResults"]
        assert first["functionResult"]["confirmationState"] == "DENY"
        assert "confirm" in first["functionResult"]["responseBody"]["TEXT"]["body"]
        assert second["functionResult"]["responseBody"]["TEXT"]["body"] == NOT_EXECUTED
    assert told(observer) == []


@pytest.mark.parametrize("inline", [False, True], ids=["agent", "inline agent"])
@pytest.mark.parametrize("agreed", [True, False], ids=["agreed", "denied"])
def test_what_an_agent_wants_confirmed_is_asked_about_in_its_loop(
    desktop: deskhand.Desktop, observer: Observer, *, inline: bool, agreed: bool
) -> None:
    """An agent that wants a click confirmed, then only a text, and does what it does without for the rest."""
    asks = [
        control(function(action="left_click", coordinate="[200, 210]", confirm="USER_CONFIRMATION_AND_RESULT")),
        control(function(action="type", text="x", confirm="USER_CONFIRMATION")),
        control(function(action="type", text="y")),
    ]
    streams = [events(("returnControl", ask)) for ask in asks]
    service = Service(
        "bedrock-agent-runtime", *streams, events(("chunk", {"bytes": base64.b64encode(b"done").decode()}))
    )
    if inline:
        options: dict[str, Any] = {"foundationModel": "m", "instruction": "x" * 40, "sessionId": "session-1"}
        invoke, state = service.client.invoke_inline_agent, "inlineSessionState"
    else:
        options = {"agentId": "AGENT12345", "agentAliasId": "ALIAS12345", "sessionId": "session-1"}
        invoke, state = service.client.invoke_agent, "sessionState"
    asked: list[str] = []

    def ask(_action: Any, context: Any) -> bool:
        asked.append(f"{context.provider} {context.safety_check.id}")
        return agreed

    model_session = bedrock_session(desktop, ask)
    (event,) = invoke(inputText="Do it.", **options)["completion"]
    while "returnControl" in event:
        (event,) = invoke(**options, **{state: bedrock.respond(model_session, event)})["completion"]
    first, second, third = (
        body[state]["returnControlInvocationResults"][0]["functionResult"] for body in service.bodies[1:]
    )
    assert asked == ["bedrock USER_CONFIRMATION_AND_RESULT", "bedrock USER_CONFIRMATION"]
    said = "CONFIRM" if agreed else "DENY"
    assert (first["confirmationState"], second["confirmationState"]) == (said, said)
    assert ("IMAGES" in first["responseBody"]) == agreed
    assert "confirmationState" not in third
    # Of what only wants to be confirmed, nothing is done here: the agent asks again for that.
    assert told(observer) == [*(_click(1, "200,210") if agreed else []), "+y", "-y"]


def bedrock_session(desktop: deskhand.Desktop, ask: Any) -> ModelSession:
    class Free:
        """Whatever is asked for but what Amazon wants confirmed."""

        def before(self, _action: object, context: Any) -> str:
            return "ask" if context.safety_check is not None else "allow"

    return ModelSession(desktop, size="anthropic", provider="bedrock", policy=Free(), ask=ask)


# Each action of AgentCore's browser, and what arrives at the desktop.
BROWSER: list[tuple[dict[str, Any], list[str]]] = [
    ({"mouseClick": {"x": 40, "y": 50}}, _click(1, "40,50")),
    ({"mouseClick": {"x": 41, "y": 50, "button": "RIGHT"}}, _click(3, "41,50")),
    ({"mouseClick": {"x": 42, "y": 50, "button": "MIDDLE", "clickCount": 2}}, _click(2, "42,50", 2)),
    ({"mouseClick": {"x": 540, "y": 50, "clickCount": 2}}, _click(1, "540,50", 2)),
    ({"mouseMove": {"x": 7, "y": 8}}, []),
    ({"mouseDrag": {"startX": 40, "startY": 50, "endX": 90, "endY": 60, "button": "MIDDLE"}}, ["+2@40,50", "-2@90,60"]),
    ({"mouseScroll": {"x": 40, "y": 50, "deltaY": -200}}, _click(5, "40,50", 2)),
    ({"mouseScroll": {"x": 40, "y": 50, "deltaX": 100, "deltaY": 100}}, [*_click(4, "40,50"), *_click(7, "40,50")]),
    ({"keyType": {"text": "hi"}}, ["+h", "-h", "+i", "-i"]),
    ({"keyPress": {"key": "enter", "presses": 2}}, ["+Return", "-Return"] * 2),
    ({"keyShortcut": {"keys": ["ctrl", "s"]}}, ["+Control_L", "+s", "-s", "-Control_L"]),
    ({"screenshot": {"format": "PNG"}}, []),
]


@pytest.fixture(scope="module")
def core() -> Service:
    return Service("bedrock-agentcore")


@pytest.mark.parametrize(
    ("action", "events"), BROWSER, ids=lambda value: next(iter(value)) if isinstance(value, dict) else ""
)
def test_a_browser_through_a_real_client(
    desktop: deskhand.Desktop, observer: Observer, core: Service, action: dict[str, Any], events: list[str]
) -> None:
    def serve(request: Any) -> dict[str, Any]:
        # The session is in a header, both ways.
        session = request.headers["x-amzn-browser-session-id"].decode()
        answer = bedrock.run(desktop, {"sessionId": session, **json.loads(request.body)})
        return {"headers": {"x-amzn-browser-session-id": answer.pop("sessionId")}, **answer}

    core.answers.append(serve)
    answer = core.client.invoke_browser(browserIdentifier="aws.browser.v1", sessionId="session1", action=action)
    assert told(observer) == events
    assert answer["sessionId"] == "session1"
    ((kind, outcome),) = answer["result"].items()
    assert kind in action
    assert outcome["status"] == "SUCCESS"
    assert ("data" in outcome) is (kind == "screenshot")
    if kind == "screenshot":
        assert _size(outcome["data"]) == SIZE


def test_a_browser_that_fails(desktop: deskhand.Desktop, observer: Observer) -> None:
    wrong = bedrock.run(desktop, {"sessionId": "s", "action": {"mouseMove": {"x": 1280, "y": 0}}})
    assert wrong["sessionId"] == "s"
    assert wrong["result"]["mouseMove"]["status"] == "FAILED"
    assert "outside of 1280x800" in wrong["result"]["mouseMove"]["error"]
    unknown = bedrock.run(desktop, {"action": {"fly": {}}})
    assert unknown["result"]["screenshot"]["status"] == "FAILED"
    untypable = bedrock.run(desktop, {"keyType": {"text": "a\ufdd0"}})
    assert "U+FDD0" in untypable["result"]["keyType"]["error"]
    assert told(observer) == []


def test_what_could_not_be_answered_is_not_begun(desktop: deskhand.Desktop, observer: Observer) -> None:
    nameless: dict[str, Any] = {"functionInvocationInput": {"function": "computer", "parameters": []}}
    half = {"toolUse": {"name": "computer", "input": {"action": "type", "text": "y"}}}
    for payload in (
        {},
        [],
        {"nothing": 1},
        control(function(action="type", text="x"), nameless),
        {"content": [tool_use("a", action="type", text="x"), half]},
    ):
        for carry_out in (bedrock.run, bedrock.respond):
            with pytest.raises(ActionError):
                carry_out(desktop, payload)
    assert told(observer) == []


def test_coroutines_and_seats(desktop: deskhand.Desktop, observer: Observer) -> None:
    async def work() -> dict[str, Any]:
        beside = AsyncDesktop(desktop)
        answer = await bedrock.run_async(
            beside, tool_use("t", action="left_click", coordinate=[10, 10]), size=(640, 400)
        )
        beside.detach()
        return answer

    answer = asyncio.run(work())["toolResult"]
    assert _size(answer["content"][-1]["image"]["source"]["bytes"]) == (640, 400)
    assert told(observer) == _click(1, "21,21")
    model_session = ModelSession(desktop, size=0.5)
    assert bedrock.declare(model_session)["additionalModelRequestFields"]["tools"][0]["display_width_px"] == 640
    assert agents.declaration(model_session.viewport.model) == bedrock.declare_agent(model_session)
