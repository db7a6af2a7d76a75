"""A model is told after each of its calls what has changed of what applications say that they show, and acts by references."""

from __future__ import annotations

import asyncio
import importlib
import re
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from openai.types.responses.computer_action import Click

import deskhand
from calls import call as asked
from deskhand import ActionError, LeftClick, UnsupportedAction
from deskhand.episodes.play.agents import LOOPS, find_agent, is_code
from deskhand.execution import ExecutionResult, ExecutionStatus, Executor, RequestFunctionCall
from deskhand.policy.rules import ClassPolicy
from deskhand.providers import anthropic, bedrock, cua, google, langchain, mcp, openai
from deskhand.providers.element_tools import ELEMENTS, NOTE
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Browse, ProviderCall, ReadElements
from elements.puppet import Puppet, shown
from episodes.test_loops import SERVICES
from providers.anthropic_helpers import accepted, member
from providers.openai_helpers import call
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand import Desktop, Element

SIZE = (500, 350)


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Path) -> Iterator[Puppet]:
    code = "button('Go'); widgets['Go'].set_size_request(120, 40)"
    with shown(desktop, tmp_path / "socket", code=code) as puppet:
        puppet.run("widgets['Go'].connect('clicked', lambda _: widgets['Go'].set_label('Gone'))")
        desktop.find("button", "Go").element()
        yield puppet


@pytest.fixture
def session(desktop: Desktop) -> ModelSession:
    return ModelSession(desktop, size=SIZE, elements_budget=500)


def go(desktop: Desktop) -> Element:
    return desktop.find("button", re.compile("^Go(ne)?$")).element()


def pixel(session: ModelSession) -> list[int]:
    """Where the button is in the model's picture."""
    point = go(session.desktop).point
    assert point is not None
    return list(session.viewport.to_model(point))


def by_mcp(session: ModelSession) -> str:
    result = mcp.run(session, {"name": "left_mouse_click", "arguments": {"xy": pixel(session)}})
    text, image = result["content"]
    assert image["type"] == "image"
    return str(text["text"])


def by_langchain(session: ModelSession) -> str:
    tool = {tool.name: tool for tool in langchain.tools(session)}["left_mouse_click"]
    message = tool.invoke({"type": "tool_call", "name": tool.name, "args": {"xy": pixel(session)}, "id": "c"})
    text, image = message.content
    assert image["type"] == "image"
    return str(text["text"])


def by_openai(session: ModelSession) -> str:
    x, y = pixel(session)
    output, message = openai.respond(session, [call(Click(type="click", button="left", x=x, y=y))])
    assert output["type"] == "computer_call_output"
    return str(message["content"][0]["text"])


def by_anthropic(session: ModelSession) -> str:
    block = member("left_click", "a", coordinate=pixel(session))
    _, text = accepted(anthropic.run(session, block))["content"]
    return str(text["text"])


def by_bedrock(session: ModelSession) -> str:
    uses = {"toolUseId": "t", "name": "computer", "input": {"action": "left_click", "coordinate": pixel(session)}}
    _, text, image = bedrock.run(session, {"toolUse": uses})["toolResult"]["content"]
    assert "image" in image
    return str(text["text"])


WAYS = [by_mcp, by_langchain, by_openai, by_anthropic, by_bedrock]
Way = "Callable[[ModelSession], str]"


@pytest.mark.parametrize("act", WAYS)
def test_first_all_of_it_and_then_what_has_changed(session: ModelSession, puppet: Puppet, act: Way) -> None:
    x, y = pixel(session)
    ref = go(session.desktop).ref
    first, *lines = act(session).splitlines()
    assert first == NOTE
    assert f'- button "Gone" [{ref}] ({x},{y})' in [line.strip().removesuffix(" focused") for line in lines]
    puppet.run("widgets['Gone'] = widgets['Go']; widgets['Go'].set_label('Go')")
    told = act(session).splitlines()
    assert told[0] == NOTE
    assert all(line.startswith(("~", "(unchanged)")) for line in told[1:])
    assert puppet.tells(["clicked", "Go"])


@pytest.mark.usefixtures("puppet")
def test_on_googles_grid(session: ModelSession) -> None:
    point = go(session.desktop).point
    assert point is not None
    x, y = google.on_grid(session.viewport).to_model(point)
    answer = google.run(session, {"name": "click_at", "args": {"x": x, "y": y}, "id": "c"})
    assert f"({x},{y})" in answer["response"]["text"]
    assert answer["parts"]
    declared = google.declare_elements()
    types.GenerateContentConfig(tools=[google.declare(session), types.Tool.model_validate(declared)])
    assert "grid" in declared["function_declarations"][0]["description"]
    turn = types.Content(
        role="model", parts=[types.Part(function_call=types.FunctionCall(id="e", name=ELEMENTS, args={"budget": 300}))]
    )
    content = google.respond(session, turn, elements=True)
    assert content is not None
    assert content.parts is not None
    said = content.parts[0].function_response
    assert said is not None
    assert said.response is not None
    assert f"({x},{y})" in said.response["text"]
    wrong = google.run_calls(
        session, [{"name": ELEMENTS, "args": {"depth": 1}}, {"name": ELEMENTS, "args": 5}], elements=True
    )
    assert "no 'depth'" in wrong[0]["response"]["error"]
    one = {"name": ELEMENTS, "args": {}}
    assert f"({x},{y})" in google.run_elements(session, one)["response"]["text"]
    assert f"({x},{y})" in asyncio.run(google.run_elements_async(session.desktop, one))["response"]["text"]
    assert "error" in wrong[1]["response"]
    # Without being asked for it is no function of ours.
    assert "error" in google.run(session, {"name": ELEMENTS, "args": {}})["response"]


@pytest.mark.usefixtures("puppet")
def test_in_a_message_of_bedrocks(session: ModelSession) -> None:
    uses = {"toolUse": {"toolUseId": "t", "name": ELEMENTS, "input": {"budget": 300}}}
    answer = bedrock.respond(session, {"content": [uses]}, elements=True)
    (result,) = (block["toolResult"] for block in answer["content"])
    assert (result["status"], result["content"][0]["text"].splitlines()[0]) == ("success", NOTE)
    assert bedrock.respond(session, {"content": [uses]})["content"] == []
    uses["toolUse"]["input"] = {"depth": 1}
    answer = bedrock.respond(session, {"content": [uses]}, elements=True)
    assert answer["content"][0]["toolResult"]["status"] == "error"
    (spec,) = bedrock.declare(session, elements=True)["toolConfig"]["tools"]
    assert spec["toolSpec"]["name"] == ELEMENTS


def test_a_look_tells_nothing_and_loses_nothing(session: ModelSession, puppet: Puppet) -> None:
    by_mcp(session)
    puppet.run("widgets['Go'].set_label('Go on')")
    session.desktop.find("button", "Go on").element()
    look = mcp.run(session, {"name": "screenshot", "arguments": {}})
    assert [block["type"] for block in look["content"]] == ["image"]
    moved = mcp.run(session, {"name": "move", "arguments": {"xy": [1, 1]}})
    assert '~ button "Go on"' in moved["content"][0]["text"]


def test_after_browsing_and_beside_a_reading(
    session: ModelSession, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def browse(desktop: Desktop, request: Browse) -> None:
        del desktop, request
        puppet.run("widgets['Go'].set_label('Browsed')")

    by_mcp(session)
    monkeypatch.setattr("deskhand.providers.session.browse", browse)
    result = session.carry_out(ProviderCall(steps=(Browse("back"),), viewport=session.viewport))
    assert '~ button "Browsed"' in (result.text or "")
    both = (LeftClick((1, 1)), ReadElements(budget=300))
    result = session.carry_out(ProviderCall(steps=both, viewport=session.viewport))
    assert (result.text or "").count(NOTE) == 1


@pytest.mark.usefixtures("puppet")
def test_langchain_tells_a_failure_from_what_is_told(session: ModelSession) -> None:
    def status(x: int) -> Any:
        item = call(Click(type="click", button="left", x=x, y=5)).model_dump(exclude_none=True)
        message = {"content": [item], "response_metadata": {"model_provider": "openai", "status": "completed"}}
        first, note = langchain.respond(session, message)
        return first.status, NOTE in note.content

    assert status(5) == ("success", True)
    assert status(5000) == ("error", False)


def test_answers_without_a_place_for_words_refuse_it(session: ModelSession) -> None:
    shot = {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}}
    agents = {"functionInvocationInput": {"actionGroup": "computer", "function": "computer", "parameters": []}}
    for refused in (
        lambda: openai.computer(session),
        lambda: openai.sync_computer(session),
        lambda: cua.run(session, shot),
        lambda: cua.tool(session),
        lambda: google.computer(session),
        lambda: bedrock.run(session, {"action": {"screenshot": {}}}),
        lambda: bedrock.run(session, agents),
    ):
        with pytest.raises(UnsupportedAction, match="no place for a text"):
            refused()
    with pytest.raises(ActionError, match="budget is a number of tokens"):
        ModelSession(session.desktop, elements_budget=0)


def test_where_they_cannot_be_read_the_call_is_refused(launch: Callable[..., Desktop], desktop: Desktop) -> None:
    plain = launch(size=(640, 480), elements=False)
    before = plain.pointer
    refused = mcp.run(ModelSession(plain, elements_budget=500), {"name": "move", "arguments": {"xy": [3, 3]}})
    assert refused["isError"]
    assert "at-spi2-core" in refused["content"][0]["text"]
    assert plain.pointer == before
    judged = ModelSession(desktop, policy=ClassPolicy(allow=["input"], deny=["observe"]), elements_budget=500)
    result = judged.carry_out(ProviderCall(steps=(LeftClick((3, 3)),), viewport=judged.viewport))
    assert (result.denied, result.text, result.picture) == (True, None, None)


# --- functions ---


def done(executor: Executor, made: RequestFunctionCall) -> ExecutionResult:
    return asyncio.run(executor.execute([made]))[0]


@pytest.mark.usefixtures("puppet")
def test_functions_read_and_act_by_reference(desktop: Desktop) -> None:
    session = ModelSession(desktop, size=SIZE, elements_budget=500)
    executor = Executor(desktops=session)
    assert ELEMENTS in executor.names
    read = done(executor, asked(ELEMENTS, arguments={"budget": 300}))
    assert read.status is ExecutionStatus.SUCCESS
    (ref,) = re.findall(r'button "Go" \[(e\d+)\]', read.result.text)
    clicked = done(executor, asked("computer", arguments={"action": "left_mouse_click", "element": ref}))
    assert f'~ button "Gone" [{ref}]' in clicked.result.text
    by_action = done(executor, asked("computer", id="again", arguments={"action": ELEMENTS, "changes": True}))
    assert by_action.result.text.startswith(NOTE)
    wrong = done(executor, asked(ELEMENTS, id="wrong", arguments={"depth": 3}))
    assert (wrong.status, "depth" in str(wrong.error)) == (ExecutionStatus.FAILURE, True)
    refused = Executor(desktops=desktop.also(deskhand.Guard(policy=ClassPolicy(allow=["input"], deny=["observe"]))))
    denied = done(refused, asked(ELEMENTS))
    assert (denied.status, denied.result.denied, denied.result.text) == (ExecutionStatus.FAILURE, True, None)


# --- loops ---


class Seen:
    """As much of an episode as a loop takes."""

    instruction = "Click."

    def __init__(self, desktop: Desktop) -> None:
        self.desktop = desktop

    def note(self, text: object) -> None:
        pass

    def spend(self, input: int, output: int) -> None:
        pass


@pytest.mark.parametrize("name", [name.replace("-", "_") for name in LOOPS])
@pytest.mark.parametrize("elements", soaked([True, False], but=[True]))
@pytest.mark.usefixtures("puppet")
def test_loops_tell_them_when_asked(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch, name: str, *, elements: bool
) -> None:
    texts: list[str | None] = []
    carry_out = ModelSession.carry_out

    def carried_out(self: ModelSession, call: ProviderCall) -> Any:
        result = carry_out(self, call)
        texts.append(result.text)
        return result

    monkeypatch.setattr(ModelSession, "carry_out", carried_out)
    act = importlib.import_module(f"deskhand.episodes.play.loops.{name}").agent(
        "m", SERVICES[name](2), elements=elements
    )
    done = act(Seen(desktop))
    if asyncio.iscoroutine(done):
        asyncio.run(done)
    assert len(texts) == 2
    assert [text is not None and text.startswith(NOTE) for text in texts] == [elements, elements]


def test_the_agents_name_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    made: list[Any] = []
    monkeypatch.setattr(
        "deskhand.episodes.play.loops.openai.agent", lambda model, *, elements: made.append((model, elements))
    )
    for name in ("openai", "openai:m", "openai+elements", "openai+elements:m"):
        find_agent(name)
        assert not is_code(name)
    assert made == [(None, False), ("m", False), (None, True), ("m", True)]
    assert is_code("module+elements:function")
