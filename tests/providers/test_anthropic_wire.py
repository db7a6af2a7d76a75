"""Anthropic's blocks without a desktop: both ways, damaged, and each version's rules."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import actions as a
from deskhand._core.geometry import Point, Size, Viewport
from deskhand._core.sizes import MODELS
from deskhand.errors import ActionError, OutOfBounds, UnsupportedAction
from deskhand.machine.interface import CommandResult
from deskhand.providers import anthropic
from deskhand.providers.anthropic import LATEST, TOOLSET, VERSIONS
from deskhand.providers.values import Browse, Finish, ProviderCall, Result, ShellAnswer, Step
from faults.scale import MUTATED_PAYLOADS
from providers.anthropic_helpers import accepted, flat, member, tool_use
from providers.sayable import FIRST, SAYABLE, SECOND, THIRD
from providers.strategies import EXAMPLES, HALVED, VIEWPORT, damaged, ids, pictures, points, texts

_unknown = st.dictionaries(
    st.sampled_from(["reason", "zz", "caller_", "x-1"]), st.none() | st.integers() | texts, max_size=2
)


@st.composite
def _extras(draw: st.DrawFn) -> dict[str, Any]:
    inner = draw(_unknown)
    return {**draw(_unknown), **({"input": inner} if inner else {})}


@st.composite
def calls(draw: st.DrawFn) -> ProviderCall:
    version = draw(st.sampled_from(list(VERSIONS)))
    action = draw(SAYABLE[version])
    return ProviderCall(steps=(action,), viewport=VIEWPORT, id=draw(ids), name=version, extra=draw(_extras()))


@given(calls())
def test_calls_come_back(call: ProviderCall) -> None:
    payload = json.loads(json.dumps(anthropic.encode_call(call)))
    assert anthropic.decode(payload, VIEWPORT, version=None if call.name == TOOLSET else call.name) == call


@st.composite
def results(draw: st.DrawFn) -> Result:
    call = draw(calls())
    if draw(st.booleans()):
        return Result(call=call, error=draw(texts))
    text = draw(st.none() | texts.filter(bool))
    if isinstance(call.steps[-1], a.CursorPosition):
        return Result(call=call, cursor=Point(*draw(points)), text=text, picture=draw(st.none() | pictures))
    must = anthropic.loop.wire.asks_to_see(call)
    return Result(call=call, text=text, picture=draw(pictures if must else st.none() | pictures))


@given(results())
def test_results_come_back(result: Result) -> None:
    payload = accepted(json.loads(json.dumps(anthropic.encode(result)))) if result.error != "" else None
    if payload is not None:
        assert anthropic.decode_result(payload, result.call) == result
        assert payload.get("toolset_name") == ("computer" if result.call.name == TOOLSET else None)


@pytest.mark.parametrize("action", EXAMPLES, ids=lambda action: action.type)
def test_the_normalized_actions(action: a.Action) -> None:
    call = ProviderCall(steps=(action,), viewport=VIEWPORT, id="toolu_1", name=TOOLSET)
    if action.type in {"left_mouse_down", "left_mouse_up", "back_click", "forward_click"}:
        with pytest.raises(UnsupportedAction, match=rf"{TOOLSET} does not support the action '{action.type}'"):
            anthropic.encode_call(call)
    else:
        assert anthropic.decode(anthropic.encode_call(call), VIEWPORT) == call


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (a.LeftClick(), a.LeftClick()),
        (Browse("back"),),
        (Finish(),),
        (a.Drag([(0, 0), (1, 1), (2, 2)]),),
        (a.Drag([(0, 0), (1, 1)], button="right"),),
        (a.Drag([(5, 5)]),),
        (a.Move((1, 1), modifiers=["ctrl"]),),
        (a.Scroll(distance_xy=(100, 100)),),
        (a.Scroll(magnitude=1.5),),
        (a.KeyHold(["a"], 0.5),),
        (a.Wait(301),),
        (a.Type("x", paste=True),),
        (a.PressKeys(["a"]),),
        (a.MouseDown("right"),),
        (a.LeftMouseUp((3, 3)),),
        (a.BackClick(),),
    ],
)
def test_what_the_toolset_cannot_say(steps: tuple[Step, ...]) -> None:
    with pytest.raises(UnsupportedAction):
        anthropic.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT, id="1", name=TOOLSET))


@pytest.mark.parametrize(
    ("scroll", "direction", "amount"),
    [
        (a.Scroll(distance_xy=(0, 250)), "down", 2),
        (a.Scroll(distance_xy=(-30, 0)), "left", 1),
        (a.Scroll(distance_xy=(0, 0)), "down", 0),
        (a.Scroll(), "down", 3),
        (a.Scroll(magnitude=-2), "up", 2),
        (a.Scroll(direction="right", magnitude=-4), "left", 4),
    ],
)
def test_scrolls_are_said_in_wheel_clicks(scroll: a.Scroll, direction: str, amount: int) -> None:
    payload = anthropic.encode_call(ProviderCall(steps=(scroll,), viewport=VIEWPORT, id="1"))
    assert payload["input"] == {"scroll_direction": direction, "scroll_amount": amount}


# --- what cannot be read ---

_SAMPLES = [
    member("left_click", coordinate=[10, 20], text="ctrl+shift"),
    member("left_click_drag", start_coordinate=[1, 2], coordinate=[3, 4]),
    member("scroll", coordinate=[5, 5], scroll_direction="down", scroll_amount=3, text="ctrl"),
    member("key", text="ctrl+s", repeat=3),
    member("zoom", region=[0, 0, 100, 50]),
    member("wait", duration=2),
    flat("type", text="hé"),
    flat("hold_key", text="shift", duration=1.5),
    {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls", "restart": False}},
]


def test_damaged_blocks_are_calls_or_errors() -> None:
    read = refused = 0
    for seed in range(MUTATED_PAYLOADS):
        payload = damaged(_SAMPLES[seed % len(_SAMPLES)], seed)
        for attempt in (
            lambda payload=payload: anthropic.decode(payload, VIEWPORT),
            lambda payload=payload: anthropic.decode(payload, VIEWPORT, version=FIRST),
            lambda payload=payload: anthropic.decode_shell(payload),
        ):
            try:
                attempt()
                read += 1
            except ActionError as error:
                assert len(str(error)) < 600  # noqa: PT017 # which of the two it is, is not the point
                refused += 1
    assert min(read, refused) > 100


def test_damaged_results_are_results_or_errors() -> None:
    call = ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="toolu_1", name=TOOLSET)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    whole = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "toolset_name": "computer",
        "content": [{"type": "text", "text": "X=1,Y=2"}, image],
        "is_error": False,
    }
    read = 0
    for seed in range(MUTATED_PAYLOADS):
        try:
            anthropic.decode_result(damaged(whole, seed), call)
            read += 1
        except ActionError:
            pass
    assert 0 < read < MUTATED_PAYLOADS


# --- the rules of the versions ---


@pytest.mark.parametrize(
    ("block", "version", "message"),
    [
        # The first version clicks where the pointer is and drags from there; it has no modifiers, scroll or wait.
        (flat("left_click", coordinate=[1, 1]), FIRST, "left_click takes no coordinate .* go there first"),
        (flat("left_click", text="ctrl"), FIRST, "takes no text"),
        (flat("left_click_drag", start_coordinate=[1, 1], coordinate=[2, 2]), FIRST, "takes no start_coordinate"),
        (flat("scroll", scroll_direction="up", scroll_amount=1), FIRST, "has no action 'scroll'"),
        (flat("triple_click"), FIRST, "has no action"),
        # Later ones drag from a start.
        (flat("left_click_drag", coordinate=[2, 2]), SECOND, "start_coordinate missing"),
        (flat("left_click_drag", coordinate=[2, 2]), THIRD, "start_coordinate missing"),
        (flat("zoom", region=[0, 0, 1, 1]), SECOND, "has no action 'zoom'"),
        (flat("key", text="a", repeat=2), THIRD, "takes no repeat"),
        (flat("key", text="Down Down"), THIRD, "unknown key"),
        (flat("wait", duration=101), THIRD, "0...100 seconds"),
        (flat("left_click", text="ctrl", key="shift"), THIRD, "given twice"),
        # What would be done is less than what was said.
        (flat("type", text="x", coordinate=[1, 1]), THIRD, "type takes no coordinate"),
        (member("left_mouse_down", coordinate=[1, 1]), None, "left_mouse_down takes no coordinate"),
        (member("mouse_move", coordinate=[1, 1], text="ctrl"), None, "mouse_move takes no text"),
        # The toolset's limits.
        (member("wait", duration=301), None, "0...300 seconds"),
        (member("wait", duration=1.5), None, "duration is an integer"),
        (member("wait", duration=-1), None, "0...300 seconds"),
        (member("hold_key", text="a", duration=301), None, "0...300 seconds"),
        (member("key", text="a", repeat=0), None, "repeated 1...100 times"),
        (member("key", text="a", repeat=101), None, "repeated 1...100 times"),
        (member("key", text="Retrun"), None, "did you mean Return"),
        (member("key"), None, "text missing"),
        (member("left_click", text="a"), None, "'a' is not a modifier"),
        (member("scroll", scroll_direction="down", scroll_amount=-1), None, "from 0"),
        (member("scroll", scroll_direction="north", scroll_amount=1), None, "one of up, down"),
        (member("zoom", region=[5, 5, 5, 9]), None, "x1 above x0"),
        (member("zoom", region=[0, 0, 1281, 800]), None, "outside of 1280x800"),
        (member("left_click", coordinate=[1280, 0]), None, r"point \(1280, 0\) is outside of 1280x800"),
        (member("left_click", coordinate=[0.5, 0]), None, "coordinate is an integer"),
        (member("left_click", coordinate="[1, 2]"), None, "coordinate is a list"),
        (member("__init__"), None, "has no action"),
        (member("computer", action="screenshot"), None, "has no action"),
        # The wrong tool.
        (flat("screenshot"), TOOLSET, "not a call of computer_toolset"),
        ({**member("click"), "toolset_name": "browser"}, None, "not 'browser'"),
        ({**flat("screenshot"), "name": "navigate"}, None, "'navigate' is not a call"),
        (flat("screenshot"), "computer_2030", "there is no version"),
    ],
)
def test_refused(block: dict[str, Any], version: str | None, message: str) -> None:
    with pytest.raises(ActionError, match=message):
        anthropic.decode(block, VIEWPORT, version=version)


def test_the_first_version_drags_from_where_the_pointer_is() -> None:
    call = anthropic.decode(flat("left_click_drag", coordinate=[7, 8]), VIEWPORT, version=FIRST)
    assert call.steps == (a.Drag([(7, 8)]),)


def test_modifiers_of_clicks_are_in_text_or_in_key() -> None:
    for name in ("text", "key"):
        call = anthropic.decode(flat("left_click", coordinate=[1, 2], **{name: "ctrl+shift"}), VIEWPORT, version=SECOND)
        assert call.steps == (a.LeftClick((1, 2), modifiers=["ctrl", "shift"]),)


def test_xdotool_took_several_chords_at_once() -> None:
    call = anthropic.decode(flat("key", text="ctrl+a Delete Down Down"), VIEWPORT, version=SECOND)
    chords = (["ctrl", "a"], ["Delete"], ["Down"], ["Down"])
    assert call.steps == tuple(a.KeyPress(chord) for chord in chords)
    assert anthropic.encode_call(call)["input"] == {"action": "key", "text": "ctrl+a Delete Down Down"}
    assert anthropic.decode(flat("key", text="Page Up"), VIEWPORT, version=SECOND).steps == (a.KeyPress(["Page Up"]),)


@pytest.mark.parametrize(
    "text", ["Return", "return", "ctrl++", "+", "Page_Up", "page_up", "ctrl+shift+Escape", "super"]
)
def test_key_names_are_xdotools_in_any_case(text: str) -> None:
    (step,) = anthropic.decode(member("key", text=text), VIEWPORT).steps
    assert isinstance(step, a.KeyPress)
    assert a.KeyPress([text]).keys
    assert anthropic.encode_call(ProviderCall(steps=(step,), viewport=VIEWPORT, id="1"))["input"]["text"] == text


def test_seconds_of_the_single_tools_may_be_fractions() -> None:
    assert anthropic.decode(flat("wait", duration=0.5), VIEWPORT, version=SECOND).steps == (a.Wait(0.5),)


def test_null_is_absent() -> None:
    block = member("left_click", coordinate=None, text=None)
    assert anthropic.decode(block, VIEWPORT).steps == (a.LeftClick(),)
    (step,) = anthropic.decode(member("key", text="a", repeat=None), VIEWPORT).steps
    assert step == a.KeyPress(["a"])


# --- coordinates ---


@given(
    st.tuples(st.integers(200, 4000), st.integers(200, 3000)),
    st.floats(0.2, 1),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
)
def test_points_land_within_half_a_model_pixel(
    size: tuple[int, int], factor: float, across: float, down: float
) -> None:
    screen = Size(*size)
    viewport = Viewport(screen, Size(round(screen.width * factor), round(screen.height * factor)))
    model = (int(across * viewport.model.width), int(down * viewport.model.height))
    (step,) = anthropic.decode(member("left_click", coordinate=list(model)), viewport).steps
    assert isinstance(step, a.LeftClick)
    assert step.xy is not None
    for at, where, here, there in zip(step.xy, model, viewport.screen, viewport.model, strict=True):
        assert abs((at + 0.5) * there / here - (where + 0.5)) <= 0.5
        assert 0 <= at < here
    back = anthropic.encode_call(ProviderCall(steps=(step,), viewport=viewport, id="1"))
    assert back["input"]["coordinate"] == list(model)


def test_a_region_is_of_the_screenshot_and_cut_out_of_the_screen() -> None:
    call = anthropic.decode(member("zoom", region=[10, 20, 110, 70]), HALVED)
    assert call.steps == (a.Zoom((20, 40, 200, 100)),)
    whole = anthropic.decode(member("zoom", region=[0, 0, *HALVED.model]), HALVED)
    assert whole.steps == (a.Zoom((0, 0, *HALVED.screen)),)
    with pytest.raises(OutOfBounds):
        anthropic.decode(member("zoom", region=[0, 0, *HALVED.screen]), HALVED)


@pytest.mark.parametrize(
    ("model", "high"),
    [
        ("claude-opus-5-5", True),
        ("claude-opus-4-7", True),
        ("claude-sonnet-5-20260901", True),
        ("us.anthropic.claude-haiku-5-5-v1:0", True),
        ("claude-opus-4-5-20251101", False),
        ("claude-opus-4-20250514", False),
        ("claude-3-5-sonnet-20241022", False),
        ("another", False),
    ],
)
def test_tier(model: str, high: bool) -> None:  # noqa: FBT001 # of the table
    fit = anthropic.tier(model)
    assert (fit != MODELS["anthropic"]) is high
    # A request with more than 20 pictures may have none with a longer side.
    assert max(fit.of(Size(5000, 3000))) <= 2000


def test_a_pointer_of_thousands_of_digits_is_a_text() -> None:
    asked = anthropic.decode(
        {"type": "tool_use", "id": "t", "name": "cursor_position", "toolset_name": "computer", "input": {}}, VIEWPORT
    )
    payload = anthropic.encode(Result(call=asked, cursor=Point(1, 2)))
    assert anthropic.decode_result(payload, asked).cursor == (1, 2)
    payload["content"][0]["text"] += "0" * 5000
    assert anthropic.decode_result(payload, asked).cursor is None


# --- the shell ---


def _bash(**given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_9", "name": "bash", "input": given}


def test_commands_are_read() -> None:
    call = anthropic.decode_shell(_bash(command="ls -l", note=1))
    assert (call.commands, call.restart, call.id, call.extra) == (("ls -l",), False, "toolu_9", {"input": {"note": 1}})
    assert anthropic.decode_shell(_bash(restart=True)).restart


@pytest.mark.parametrize("given", [{}, {"command": 5}, {"restart": "yes"}, {"restart": False}, {"command": None}])
def test_commands_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ActionError):
        anthropic.decode_shell(_bash(**given))


@pytest.mark.parametrize(
    ("output", "text", "failed"),
    [
        (CommandResult("a\n", "", 0), "a", False),
        (CommandResult("a\n", "b\n", 0), "a\nb", False),
        (CommandResult("", "", 0), "(no output)", False),
        (CommandResult("", "no\n", 2), "no\n(exit code 2)", False),
        (CommandResult("a", "", 0, background="b\n"), "a\n(what earlier jobs wrote before this command:)\nb", False),
        (CommandResult("a", "", 0, truncated=True), "a\n(more was written than is kept)", False),
    ],
)
def test_what_a_command_wrote(output: CommandResult, text: str, failed: bool) -> None:  # noqa: FBT001 # of the table
    payload = accepted(
        anthropic.encode_shell(ShellAnswer(call=anthropic.decode_shell(_bash(command="x")), outputs=(output,)))
    )
    assert payload["content"] == [{"type": "text", "text": text}]
    assert payload.get("is_error", False) is failed


def test_the_latest_single_tool_is_the_last_before_the_toolset() -> None:
    assert list(VERSIONS)[-2:] == [LATEST, TOOLSET]


# --- without the SDK ---


def test_the_sdk_is_imported_when_it_is_asked_for() -> None:
    program = """
import sys
from deskhand.providers import anthropic, bedrock
assert not {"anthropic", "boto3", "botocore", "pydantic"} & sys.modules.keys()
sys.modules["anthropic"] = None
try:
    anthropic.toolset(None, confirm=None)
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtra anthropic")
    assert done.stdout.endswith("is not installed: pip install 'deskhand[anthropic]'\n")


def test_a_block_of_the_sdk_is_refused_with_what_to_give() -> None:
    with pytest.raises(ActionError, match=r"a tool_use is an object, not BetaToolUseBlock.*: give its model_dump\(\)"):
        anthropic.decode(tool_use(member("screenshot")), VIEWPORT)
