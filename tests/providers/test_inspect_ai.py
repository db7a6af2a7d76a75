"""The computer tool of inspect's evaluations on a real desktop, in its own loop, with its model that says what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool, ContentImage, ContentText, ModelOutput, ModelUsage, get_model
from inspect_ai.model._providers._openai_computer_use import maybe_computer_use_tool
from inspect_ai.solver import Generate, TaskState, solver
from inspect_ai.tool._tool_info import parse_tool_info
from inspect_ai.tool._tools._computer._computer import computer as theirs
from inspect_ai.tool._tools._computer._computer import is_computer_tool_info
from PIL import Image

from deskhand import AsyncDesktop, Desktop
from deskhand import actions as a
from deskhand._core.geometry import Point
from deskhand.errors import ActionError, UnsupportedAction
from deskhand.providers import inspect_ai
from deskhand.providers.payload import picture_of_url
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Browse, Finish, Picture, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS
from providers.helpers import load_example
from providers.sayable import SAYABLE, TOOLSET
from providers.screen import at_rest, observed, told
from providers.strategies import VIEWPORT, damaged, ids, modifiers, pictures, points, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspect_ai.tool import ToolInfo

    from integration.observer import Observer


# What inspect asks of a newer tenacity than it was made with.
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Desktop, Observer]]:
    with observed(inspect_ai.SIZE) as there:
        yield there


# What each action does, as an independent program sees it; the pointer was at (100, 100).
SEEN: list[tuple[dict[str, Any], list[str]]] = [
    ({"action": "key", "text": "ctrl+a"}, ["+Control_L", "+a", "-a", "-Control_L"]),
    ({"action": "key", "text": "a", "repeat": 2}, ["+a", "-a"] * 2),
    ({"action": "key", "text": "Up Down"}, ["+Up", "-Up", "+Down", "-Down"]),
    ({"action": "hold_key", "text": "w", "duration": 0}, ["+w", "-w"]),
    ({"action": "type", "text": "hi"}, ["+h", "-h", "+i", "-i"]),
    ({"action": "type", "text": "a", "coordinate": [5, 6], "press_enter": True},
     ["+1@5,6", "-1@5,6", "+a", "-a", "+Return", "-Return"]),
    ({"action": "cursor_position"}, []),
    ({"action": "mouse_move", "coordinate": [7, 8]}, []),
    ({"action": "left_mouse_down"}, ["+1@100,100"]),
    ({"action": "left_mouse_up"}, []),
    ({"action": "left_click", "coordinate": [10, 20]}, ["+1@10,20", "-1@10,20"]),
    ({"action": "left_click", "text": "shift"}, ["+Shift_L", "+1@100,100", "-1@100,100", "-Shift_L"]),
    ({"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}, ["+1@1,2", "-1@3,4"]),
    ({"action": "right_click", "coordinate": [11, 20]}, ["+3@11,20", "-3@11,20"]),
    ({"action": "middle_click"}, ["+2@100,100", "-2@100,100"]),
    ({"action": "back_click", "coordinate": [12, 20]}, ["+8@12,20", "-8@12,20"]),
    ({"action": "forward_click"}, ["+9@100,100", "-9@100,100"]),
    ({"action": "double_click", "coordinate": [300, 20]}, ["+1@300,20", "-1@300,20"] * 2),
    ({"action": "triple_click", "coordinate": [500, 20]}, ["+1@500,20", "-1@500,20"] * 3),
    ({"action": "scroll", "scroll_direction": "down", "scroll_amount": 2, "coordinate": [50, 50]},
     ["+5@50,50", "-5@50,50"] * 2),
    ({"action": "wait", "duration": 0}, []),
    ({"action": "screenshot"}, []),
    ({"action": "zoom", "region": [0, 0, 200, 100]}, []),
    ({"actions": [{"action": "left_click", "coordinate": [10, 20]}, {"action": "key", "text": "CTRL+S"}]},
     ["+1@10,20", "-1@10,20", "+Control_L", "+s", "-s", "-Control_L"]),
]  # fmt: skip


def test_it_is_known_for_inspects_own_tool_and_native_ones_are_kept(
    watched: tuple[Desktop, Observer], tmp_path: Path
) -> None:
    offered: list[ToolInfo] = []

    def stop(_: Any, tools: list[ToolInfo], *__: Any) -> ModelOutput:
        offered.extend(tools)
        return scripted_output(ModelOutput.from_content("mockllm/model", "done"))

    run_eval(tmp_path, watched[0], get_model("mockllm/model", custom_outputs=stop, memoize=False))
    (ours,), own = offered, parse_tool_info(theirs())
    assert is_computer_tool_info(ours)
    assert maybe_computer_use_tool("gpt-5.4", ours) == {"type": "computer"}
    for name, parameter in own.parameters.properties.items():
        mine = ours.parameters.properties[name]
        assert (mine.type, mine.enum, mine.items, mine.anyOf and [each.type for each in mine.anyOf]) == (
            parameter.type, parameter.enum, parameter.items, parameter.anyOf and [each.type for each in parameter.anyOf],
        )  # fmt: skip


def scripted(*said: ModelOutput) -> Any:
    """The model that inspect has for tests, which says this."""
    return get_model("mockllm/model", custom_outputs=[scripted_output(output) for output in said], memoize=False)


def scripted_output(output: ModelOutput) -> ModelOutput:
    # Else the model counts its tokens itself, and fetches a table for that.
    output.usage = ModelUsage()
    return output


def calling(*calls: dict[str, Any]) -> Any:
    """A model that makes these calls of the tool, and then stops."""
    said = [ModelOutput.for_tool_call("mockllm/model", "computer", each) for each in calls]
    return scripted(*said, ModelOutput.from_content("mockllm/model", "done"))


def run_eval(folder: Path, desktop: Desktop, model: Any, **options: Any) -> list[ChatMessageTool]:
    """The tool's messages of an evaluation."""

    @solver
    def at_the_desktop() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.tools.append(inspect_ai.tool(AsyncDesktop(desktop), **options))
            return await generate(state, tool_calls="loop")

        return solve

    task = Task(dataset=[Sample(input="Go.")], solver=at_the_desktop())
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    assert log.samples
    assert log.samples[0].output.completion == "done"
    messages = [message for message in log.samples[0].messages if isinstance(message, ChatMessageTool)]
    for part in (part for message in messages for part in message.content if isinstance(part, ContentImage)):
        # The log has its pictures beside.
        part.image = log.samples[0].attachments[part.image.removeprefix("attachment://")]
    return messages


def test_every_action_of_a_real_evaluation_is_done_and_answered(
    watched: tuple[Desktop, Observer], tmp_path: Path
) -> None:
    desktop, observer = watched
    home = {"action": "mouse_move", "coordinate": [100, 100]}
    calls = [each for arguments, _ in SEEN for each in (home, arguments)]
    at_rest(desktop, observer)
    answers = run_eval(tmp_path, desktop, calling(*calls), settle=False)
    events = told(observer)
    # What was pressed by left_mouse_down is released by left_mouse_up, where the pointer is by then.
    assert [event for event in events if event != "-1@100,100"] == [
        event for _, seen in SEEN for event in seen if event != "-1@100,100"
    ]
    assert len(answers) == len(calls)
    assert all(answer.error is None for answer in answers)
    for (arguments, _), answer in zip(SEEN, answers[1::2], strict=True):
        picture = answer.content[-1]
        assert isinstance(picture, ContentImage)
        size = Image.open(io.BytesIO(picture_of_url(picture.image).data)).size
        assert size == ((200, 100) if arguments.get("action") == "zoom" else desktop.size)
        if arguments.get("action") == "cursor_position":
            assert answer.content[0] == ContentText(text="X=100,Y=100")


def test_what_cannot_be_done_is_told_to_the_model(watched: tuple[Desktop, Observer], tmp_path: Path) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    refused = [
        ({"action": "left_click", "coordinate": [1366, 0]}, "outside"),
        ({"action": "key", "text": "nokey"}, "unknown key"),
        ({"action": "key", "text": "a", "repeat": 101}, "100"),
        ({"action": "screenshot", "actions": [{"action": "screenshot"}]}, "with actions no other argument"),
        ({"actions": [{"action": "fly"}]}, "fly"),
        ({"actions": []}, "at least one"),
        ({}, "an action"),
        ({"action": "screenshot", "text": "x"}, "takes no text"),
    ]
    answers = run_eval(tmp_path, desktop, calling(*(arguments for arguments, _ in refused)))
    for (_, reason), answer in zip(refused, answers, strict=True):
        assert answer.error is not None
        assert reason in answer.error.message
    assert told(observer) == []


def test_a_policy_is_asked(watched: tuple[Desktop, Observer], tmp_path: Path) -> None:
    class Never:
        def before(self, *_: Any) -> Any:
            return "deny"

    desktop, observer = watched
    at_rest(desktop, observer)
    (answer,) = run_eval(tmp_path, desktop, calling({"action": "left_click", "coordinate": [1, 1]}), policy=Never())
    assert answer.error is not None
    assert told(observer) == []


def test_points_are_those_of_the_picture_that_inspect_promises(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    model_session = ModelSession(desktop, size=(683, 384))
    at_rest(desktop, observer)
    asyncio.run(inspect_ai.run_async(model_session, {"action": "left_click", "coordinate": [100, 50]}))
    assert told(observer) == ["+1@201,101", "-1@201,101"]
    assert inspect_ai.SIZE == (1366, 768), "as in inspect's anthropic and google providers"


# --- both ways ---

members = SAYABLE[TOOLSET].filter(lambda step: not isinstance(step, a.KeyHold | a.Wait) or step.duration <= 300)
sides = st.one_of(*(st.builds(kind, st.none() | points, modifiers=modifiers) for kind in (a.BackClick, a.ForwardClick)))
browsing = st.sampled_from([Browse("open"), Browse("search"), Browse("navigate", "https://example.org")])
calls = st.builds(
    lambda done, **fields: ProviderCall(viewport=VIEWPORT, steps=tuple(done), name="computer", **fields),
    st.lists(st.one_of(members, sides, browsing), min_size=1, max_size=3),
    id=ids,
    extra=st.dictionaries(st.sampled_from(["mine", "new"]), texts, max_size=1),
)


@given(calls, st.none() | pictures, st.none() | texts.filter(lambda text: text != "OK" and not text.startswith("X=")))
def test_calls_and_results_come_back(call: ProviderCall, picture: Picture | None, text: str | None) -> None:
    assert inspect_ai.decode(inspect_ai.encode_call(call), VIEWPORT, id=call.id) == call
    cursor = Point(3, 4) if isinstance(call.steps[-1], a.CursorPosition) else None
    result = Result(call=call, picture=picture, text=text, cursor=cursor)
    assert inspect_ai.decode_result(inspect_ai.encode(result), call) == result


def test_inspect_is_imported_when_it_is_asked_for() -> None:
    code = "import sys, deskhand.providers.inspect_ai; print('inspect_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_plus_is_a_key_too() -> None:
    assert inspect_ai.decode({"action": "key", "text": "CTRL++"}, VIEWPORT).steps == (a.KeyPress(["CTRL", "+"]),)


def test_what_the_arguments_cannot_say() -> None:
    for steps in ((Finish(),), (a.MouseDown("right"),), (Browse("back"),), ()):
        with pytest.raises(UnsupportedAction):
            inspect_ai.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT))


def test_damaged_arguments_are_refused_or_read() -> None:
    every = [arguments for arguments, _ in SEEN]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            inspect_ai.decode(damaged(every[seed % len(every)], seed), VIEWPORT)


def test_the_example_is_an_evaluation(tmp_path: Path) -> None:
    look = ModelOutput.for_tool_call("mockllm/model", "computer", {"action": "screenshot"})
    model = scripted(look, ModelOutput.from_content("mockllm/model", "no"))
    (log,) = evaluate(load_example("inspect_task").reading(), model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1
