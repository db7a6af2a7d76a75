"""A real desktop as openai-agents' computer, through that SDK's own loop and its scripted model."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, ComputerTool, ModelBehaviorError, RunConfig, Runner, UserError
from agents.items import ToolCallOutputItem
from agents.models.openai_responses import OpenAIResponsesModel
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import Response, ResponseCompletedEvent
from openai.types.responses import computer_action as of
from openai.types.responses.response_computer_tool_call import PendingSafetyCheck
from PIL import Image

import deskhand
from deskhand import AsyncDesktop
from deskhand.errors import ActionError, DesktopLost
from deskhand.policy.guard import Guard
from deskhand.policy.rules import ClassPolicy
from deskhand.providers import openai
from deskhand.providers.session import ModelSession
from faults.helpers import server_pid
from providers.helpers import load_example
from providers.openai_helpers import CLICK, EVERY, OUTSIDE, SEEN, SIZE, Service, Watched, call, response, said, watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents import RunResult
    from openai.types.responses import ResponseComputerToolCall

    from deskhand._core.geometry import Size

CLICKED = ["+1@100,120", "-1@100,120"]
OTHER = of.Click(type="click", button="right", x=7, y=8)
LOOK = of.Screenshot(type="screenshot")
WARNED = PendingSafetyCheck(id="sc_1", code="malicious_instructions", message="Look at this")


@pytest.fixture(scope="module")
def stage() -> Iterator[Watched]:
    with watched() as stage:
        yield stage


@pytest.fixture
def model_session(stage: Watched) -> ModelSession:
    """A session where nothing is waited for: what arrives is told by the observer."""
    stage.events()
    return ModelSession(stage.desktop, settle=False)


def converse(
    tool: ComputerTool[Any], *turns: list[ResponseComputerToolCall], filtered: Any = None
) -> tuple[RunResult, ScriptedModel]:
    """A whole run, in which the model asks for these calls and then ends."""
    model = ScriptedModel([*turns, [said("done")]])
    agent = Agent(name="desk", model=model, tools=[tool])
    config = RunConfig(tracing_disabled=True, call_model_input_filter=filtered)
    result = asyncio.run(Runner.run(agent, "go", run_config=config))
    assert result.final_output == "done"
    model.assert_complete()
    return result, model


def outputs(result: RunResult) -> list[ToolCallOutputItem]:
    return [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]


def size_of(output: ToolCallOutputItem) -> tuple[int, int]:
    head, _, data = output.output.partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data, validate=True))).size


def test_every_action_arrives_and_is_answered_once(stage: Watched, model_session: ModelSession) -> None:
    result, _ = converse(openai.tool(model_session), [call(*EVERY)])
    assert stage.events() == SEEN
    (output,) = outputs(result)
    assert size_of(output) == SIZE
    assert output.custom_data is None


def test_a_sync_computer_does_the_same(
    stage: Watched, model_session: ModelSession, caplog: pytest.LogCaptureFixture
) -> None:
    computer = openai.sync_computer(model_session)
    converse(ComputerTool(computer=computer), [call(*EVERY[:-1])], [call(CLICK, id="call_2", preview=True)])
    assert stage.events() == [*SEEN, *CLICKED]
    # No modifier was dropped by the SDK, which warns when a method does not take them.
    assert not caplog.records


def test_an_async_desktop_and_the_tools_of_the_preview(stage: Watched) -> None:
    stage.events()

    async def use() -> None:
        # Not closed: the desktop is the other tests'.
        computer = openai.computer(AsyncDesktop(stage.desktop), size=0.5, settle=False)
        assert computer.environment == "ubuntu"
        assert computer.dimensions == (500, 350)
        await computer.click(50, 60, "left")
        assert Image.open(io.BytesIO(base64.b64decode(await computer.screenshot()))).size == (500, 350)

    asyncio.run(use())
    assert stage.events() == ["+1@101,121", "-1@101,121"]


def test_what_fails_ends_its_call_and_the_run_goes_on(stage: Watched, model_session: ModelSession) -> None:
    tool = openai.tool(model_session)
    result, model = converse(
        tool,
        # A screenshot in the middle does not make the rest of the call right.
        [call(CLICK, OUTSIDE, OTHER, LOOK, OTHER, id="call_1"), call(CLICK, id="call_2")],
        [call(OTHER, id="call_3")],
        filtered=openai.input_filter(tool),
    )
    assert stage.events() == [*CLICKED, *CLICKED, "+3@7,8", "-3@7,8"]
    first, second, third = outputs(result)
    assert [size_of(output) for output in (first, second, third)] == [SIZE] * 3
    assert first.custom_data is not None
    assert "outside of 1000x700" in first.custom_data["error"]
    assert second.custom_data is None
    # The model is told where it belongs, in each later turn, and sees pictures as they are.
    for turn in model.calls[1:]:
        kinds = [
            item.get("type") for item in turn.input if item.get("role") == "user" or "output" in item.get("type", "")
        ]
        assert kinds[1:4] == ["computer_call_output", "message", "computer_call_output"]
        (told,) = [
            item["content"][0]["text"]
            for item in turn.input
            if isinstance(item.get("content"), list) and item["role"] == "user"
        ]
        assert "outside of 1000x700" in told
        assert "(2) were left out" in told
        assert {item["output"]["detail"] for item in turn.input if item.get("type") == "computer_call_output"} == {
            "original"
        }


def test_the_model_is_told_what_was_done_before_a_failure(stage: Watched, model_session: ModelSession) -> None:
    """The SDK has a call's actions done one by one."""
    tool = openai.tool(model_session)
    untypable = of.Type(type="type", text="\x01")
    result, _ = converse(tool, [call(CLICK, OTHER, untypable, CLICK, id="call_1")], filtered=openai.input_filter(tool))
    assert stage.events() == [*CLICKED, "+3@7,8", "-3@7,8"]
    (output,) = outputs(result)
    assert output.custom_data is not None
    assert (
        "[in actions[2] (type); 2 done before it]; the actions after it (1) were left out"
        in output.custom_data["error"]
    )


def test_a_computer_without_our_tool_tells_the_same(stage: Watched, model_session: ModelSession) -> None:
    computer = openai.computer(model_session)
    _, model = converse(
        ComputerTool(computer=computer),
        [call(OUTSIDE, CLICK)],
        [call(OTHER, id="call_2")],
        filtered=openai.input_filter(computer),
    )
    assert stage.events() == ["+3@7,8", "-3@7,8"]
    last = model.calls[-1].input
    at = next(index for index, item in enumerate(last) if item.get("call_id") == "call_1" and "output" in item)
    assert "outside of 1000x700" in last[at + 1]["content"][0]["text"]
    assert len([item for item in last if item.get("role") == "user"]) == 2


@pytest.mark.parametrize("make", [openai.computer, openai.sync_computer])
def test_what_the_policy_denies_is_told_as_well(stage: Watched, make: Any) -> None:
    stage.events()
    computer = make(stage.desktop, policy=ClassPolicy(deny=("input",)))
    _, model = converse(ComputerTool(computer=computer), [call(CLICK)], filtered=openai.input_filter(computer))
    assert stage.events() == []
    assert "denies left_mouse_click" in str(model.calls[-1].input[-1])
    # Where nobody may look either, the run goes on in the dark.
    computer = make(stage.desktop, policy=ClassPolicy(deny=("input", "observe")))
    result, model = converse(ComputerTool(computer=computer), [call(LOOK)], filtered=openai.input_filter(computer))
    assert size_of(outputs(result)[0]) == (1, 1)
    assert "denies screenshot" in str(model.calls[-1].input[-1])


def test_points_are_those_of_the_picture_that_the_model_had(model_session: ModelSession, stage: Watched) -> None:
    computer = openai.sync_computer(model_session)
    smaller: Size = model_session.desktop.size
    computer.screenshot()
    model_session.size = 0.5
    # Whatever is looked at meanwhile, the model has not seen it.
    model_session.look()
    computer.click(900, 600, "left")
    computer.screenshot()
    computer.click(smaller.width // 2 - 1, 0, "left")
    assert stage.events() == ["+1@900,600", "-1@900,600", "+1@999,1", "-1@999,1"]
    model_session.size = None


# --- safety checks ---


async def _yes(*_: Any) -> bool:
    return True


def _broken(*_: Any) -> bool:
    raise RuntimeError("nobody is there")


def test_what_somebody_confirmed_is_acknowledged_and_done(stage: Watched) -> None:
    stage.events()
    asked: list[Any] = []

    def ask(action: Any, context: Any) -> bool:
        asked.append((action.type, context.provider, context.call_id, context.agent, context.safety_check.message))
        return True

    for tool in (
        openai.tool(stage.desktop, ask=ask),
        openai.tool(AsyncDesktop(stage.desktop.also(Guard(ask=_yes)))),
        ComputerTool(
            computer=openai.computer(stage.desktop),
            on_safety_check=openai.safety_check(stage.desktop.also(Guard(ask=ask))),
        ),
    ):
        result, _ = converse(tool, [call(CLICK, checks=(WARNED,))])
        assert stage.events() == CLICKED
        (output,) = outputs(result)
        raw: Any = output.raw_item
        assert raw["acknowledged_safety_checks"] == [WARNED.model_dump()]
    assert asked == [("safety_check", "openai", "call_1", "desk", "Look at this")] * 2


@pytest.mark.parametrize("ask", [None, lambda *_: False, lambda *_: "yes", lambda *_: 1, lambda *_: None, _broken])
def test_what_nobody_confirmed_is_neither_acknowledged_nor_done(stage: Watched, ask: Any) -> None:
    stage.events()
    for tool in (
        openai.tool(stage.desktop, ask=ask),
        openai.tool(stage.desktop.also(Guard(ask=ask))),
        ComputerTool(computer=openai.computer(stage.desktop), on_safety_check=openai.safety_check(None)),
    ):
        with pytest.raises(UserError, match="not acknowledged"):
            converse(tool, [call(CLICK, checks=(WARNED,))])
    assert stage.events() == []


@pytest.mark.parametrize("make", [openai.computer, openai.sync_computer])
@pytest.mark.parametrize("actions", [(CLICK,), (LOOK,)], ids=["click", "screenshot"])
def test_a_tool_without_a_handler_carries_out_nothing_that_wants_one(
    stage: Watched, make: Any, actions: tuple[Any, ...]
) -> None:
    stage.events()
    with pytest.raises(UserError, match="not acknowledged"):
        converse(ComputerTool(computer=make(stage.desktop)), [call(*actions, checks=(WARNED,))])
    assert stage.events() == []
    # What a handler of the user's own has acknowledged is done, and what wants none.
    for handler, checks in ((lambda _: True, (WARNED,)), (None, ())):
        tool = ComputerTool(computer=make(stage.desktop), on_safety_check=handler)
        converse(tool, [call(*actions, checks=checks)])
        assert stage.events() == (CLICKED if actions == (CLICK,) else [])


# --- the ends ---


def test_an_incomplete_response_is_refused_by_the_sdk(stage: Watched, model_session: ModelSession) -> None:
    service = Service(response(call(CLICK), status="incomplete"))

    async def use() -> None:
        async with service.async_client() as client:
            model = OpenAIResponsesModel("computer-model", client)
            agent = Agent(name="desk", model=model, tools=[openai.tool(model_session)])
            await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))

    with pytest.raises(ModelBehaviorError, match="incomplete"):
        asyncio.run(use())
    assert stage.events() == []


def test_what_the_filter_adds_goes_over_the_wire(model_session: ModelSession) -> None:
    service = Service(response(call(OUTSIDE)), response(said("done"), id="resp_2"))
    tool = openai.tool(model_session)

    async def use() -> None:
        async with service.async_client() as client:
            agent = Agent(name="desk", model=OpenAIResponsesModel("computer-model", client), tools=[tool])
            config = RunConfig(tracing_disabled=True, call_model_input_filter=openai.input_filter(tool))
            await Runner.run(agent, "go", run_config=config)

    asyncio.run(use())
    assert service.requests[0]["tools"] == [{"type": "computer"}]
    output, message = service.requests[1]["input"][-2:]
    assert output["output"]["detail"] == "original"
    assert "outside of 1000x700" in message["content"][0]["text"]


def test_a_streamed_run_does_the_same(stage: Watched, model_session: ModelSession) -> None:
    tool = openai.tool(model_session)
    turns = (Response.model_validate(response(call(CLICK, OUTSIDE))), Response.model_validate(response(said("done"))))
    model = ScriptedModel(
        ModelStep.stream([ResponseCompletedEvent(type="response.completed", response=turn, sequence_number=0)])
        for turn in turns
    )

    async def use() -> None:
        config = RunConfig(tracing_disabled=True, call_model_input_filter=openai.input_filter(tool))
        run = Runner.run_streamed(Agent(name="desk", model=model, tools=[tool]), "go", run_config=config)
        async for _ in run.stream_events():
            pass
        assert run.final_output == "done"

    asyncio.run(use())
    assert stage.events() == CLICKED
    assert "outside of 1000x700" in str(model.calls[-1].input[-1])


def test_a_desktop_that_is_lost_ends_the_run() -> None:
    with deskhand.launch(size=(320, 200)) as desktop:
        tool = openai.tool(desktop)
        os.kill(server_pid(desktop.display), signal.SIGKILL)
        with pytest.raises(DesktopLost):
            converse(tool, [call(of.Move(type="move", x=1, y=1))])


def test_only_our_computers_can_be_filtered_for() -> None:
    with pytest.raises(ActionError, match="takes a computer"):
        openai.input_filter(ComputerTool(computer=None))  # type: ignore[type-var]


def test_the_example() -> None:
    model = ScriptedModel([[call(CLICK, id="call_1")], [call(LOOK, id="call_2")], [said("It is done.")]])
    assert asyncio.run(load_example("openai_agents_sdk").main("Do it", model)) == "It is done."
    model.assert_complete()
