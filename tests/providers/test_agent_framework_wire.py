"""The contents of Agent Framework's design: as classes, as actions, and as the payloads of four providers; nothing is done."""

from __future__ import annotations

import contextlib
import inspect
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from agent_framework import Content
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import deskhand
from deskhand import actions as a
from deskhand._core.geometry import Size, Viewport
from deskhand._core.redaction import Secret
from deskhand._core.sizes import picture_size
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, UnsupportedAction
from deskhand.machine.interface import CommandResult, outcome_of
from deskhand.providers import agent_framework as af
from deskhand.providers import anthropic, google
from deskhand.providers.agent_framework.fields import DEFAULT_SIZE
from deskhand.providers.values import Browse, Finish, Picture, ProviderCall, Result, ShellAnswer, ShellCall
from faults.scale import MUTATED_PAYLOADS
from providers.agent_framework_payloads import CLICKS, OPENAI, SHELLS
from providers.google_helpers import CURRENT, LEGACY
from providers.sayable import LATEST, SAYABLE, THIRD, TOOLSET
from providers.strategies import HALVED, VIEWPORT, checks, damaged, ids, keys, modifiers, pictures, points, texts

WIDTH, HEIGHT = 1280, 800


def content(action: str, **fields: Any) -> af.ComputerUseCallContent:
    return af.ComputerUseCallContent(call_id="c1", action=action, **fields)


# --- the classes ---


def test_strings_stand_for_enums_and_texts() -> None:
    assert content("click").action is af.ComputerUseAction.CLICK
    assert content("left_mouse_down").action == "left_mouse_down", "the enum has no such action"
    assert af.ShellCallContent(call_id="c", action="restart").action is af.ShellAction.RESTART
    result = af.ShellResultContent(call_id="c", stdout="out", stderr=af.TextContent(text="bad"), outcome="error")
    assert (result.stdout, result.outcome) == (af.TextContent("out"), af.ShellOutcome.ERROR)
    assert af.ComputerUseResultContent(call_id="c", text_output="said").text_output == af.TextContent(text="said")
    with pytest.raises(ActionError):
        af.ComputerUseResultContent(call_id="c", screenshot=b"png")  # type: ignore[arg-type]
    with pytest.raises(ActionError):
        af.ShellResultContent(call_id="c", stdout=5)  # type: ignore[arg-type]


def test_other_arguments_and_what_they_were_made_of_are_kept() -> None:
    made = content(
        "click", additional_properties={"a": 1}, annotations=[{"type": "citation"}], raw_representation="raw", b=2
    )
    assert made.additional_properties == {"a": 1, "b": 2}
    assert (made.raw_representation, made.annotations) == ("raw", [{"type": "citation"}])
    tool = af.ComputerUseTool(display_width=1, additional_properties={"display_number": 1}, more=2)
    assert tool.additional_properties == {"display_number": 1, "more": 2}
    assert af.ComputerUseTool.from_dict(tool.to_dict()) == tool


EVERY: list[Any] = [
    content(
        "drag", coordinate=(1, 2), end_coordinate=(3, 4), button="left", annotations=[{"type": "citation"}], mine=1
    ),
    content(
        "scroll", scroll_amount=-3, scroll_direction="horizontal", additional_properties={"scroll_unit": "notches"}
    ),
    af.ComputerUseResultContent(
        call_id="c", screenshot=af.DataContent(data=b"png", media_type="image/png"), text_output="t", error="e"
    ),
    af.ShellCallContent(call_id="c", commands=["ls", "pwd"]),
    af.ShellResultContent(call_id="c", stdout="a", stderr="b", exit_code=3, outcome="timeout"),
    af.ComputerUseTool(display_width=1, display_height=2, environment="linux"),
    af.ShellTool(additional_properties={"x": [1]}),
]


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
def test_the_plain_form_is_json_and_comes_back(made: Any) -> None:
    plain = json.loads(json.dumps(made.to_dict()))
    assert type(made).from_dict(plain) == made
    assert type(made).from_dict({**plain, "unknown": 1}).additional_properties["unknown"] == 1
    assert type(made).from_dict(made.to_dict(exclude_none=False)) == made
    assert made != type(made).from_dict({**plain, "unknown": 1})
    with pytest.raises(ActionError):
        type(made).from_dict({**plain, "type": "other"})


def test_what_must_be_there_is_named() -> None:
    with pytest.raises(ActionError, match="call_id"):
        af.ComputerUseCallContent.from_dict({"type": "computer_call", "action": "wait"})


def test_nobody_prints_a_picture() -> None:
    data = af.DataContent(data=b"PIXELS" * 9, media_type="image/png")
    assert af.DataContent(uri=data.uri) == data
    said = repr(af.ComputerUseResultContent(call_id="c", screenshot=data))
    assert "54 bytes of image/png" in said
    assert "PIXELS" not in said
    assert data.uri[-20:] not in said


def test_no_sdk_is_imported() -> None:
    code = "import sys, deskhand.providers.agent_framework; print('agent_framework' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# --- actions ---

whole = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
clicks = [a.LeftClick, a.MiddleClick, a.RightClick, a.BackClick, a.ForwardClick, a.DoubleClick, a.TripleClick]
pointed = [*clicks, a.LeftMouseDown, a.LeftMouseUp]
distances = st.integers(-20_000, 20_000)
steps = st.one_of(
    *(st.builds(kind, st.none() | points, modifiers=modifiers) for kind in pointed),
    *(
        st.builds(kind, st.sampled_from(a.BUTTONS), st.none() | points, modifiers=modifiers)
        for kind in (a.MouseDown, a.MouseUp)
    ),
    st.builds(a.Move, points, modifiers=modifiers),
    st.builds(a.Drag, st.lists(points, min_size=1, max_size=4), st.sampled_from(a.BUTTONS), modifiers=modifiers),
    st.builds(a.Scroll, st.none() | points, distance_xy=st.tuples(distances, distances), modifiers=modifiers),
    st.builds(
        a.Scroll, points, magnitude=st.integers(1, 99), direction=st.sampled_from(a.DIRECTIONS), modifiers=modifiers
    ),
    st.builds(a.Scroll, points, direction=st.sampled_from([None, "down", "right"])),
    st.builds(a.KeyPress, keys, repeat=st.integers(1, 100)),
    st.builds(a.KeyHold, keys, whole),
    st.builds(a.PressKeys, keys),
    st.builds(a.ReleaseKeys, keys),
    st.builds(a.Type, texts, paste=st.booleans()),
    st.builds(a.Wait, st.none() | whole),
    SAYABLE[THIRD].filter(lambda step: isinstance(step, a.Zoom)),
    st.sampled_from(
        [a.TakeScreenshot(), a.CursorPosition(), Browse("navigate", "https://e.org"), Browse("back"), Browse("open")]
    ),
)
mine = st.dictionaries(st.sampled_from(["mine", "ours", "x"]), texts | st.integers(), max_size=2)
calls = st.builds(
    lambda done, **fields: ProviderCall(viewport=VIEWPORT, steps=tuple(done), **fields),
    st.lists(steps, min_size=1, max_size=3),
    id=ids,
    safety=st.lists(checks, max_size=2, unique=True).map(tuple),
    extra=mine,
)


@given(calls)
def test_calls_come_back(call: ProviderCall) -> None:
    contents = af.encode_calls(call)
    assert af.decode(contents, VIEWPORT) == call
    assert af.decode(json.loads(json.dumps([each.to_dict() for each in contents])), VIEWPORT) == call
    if len(call.steps) == 1:
        assert af.decode(af.encode_call(call), VIEWPORT) == call


outcomes = st.fixed_dictionaries(
    {
        "picture": st.none() | pictures,
        "error": st.none() | texts,
        "text": st.none() | texts,
        "denied": st.booleans(),
        "cursor": st.none() | points,
    }
)


@given(calls, outcomes)
def test_results_come_back(call: ProviderCall, outcome: dict[str, Any]) -> None:
    result = Result(call=call, acknowledged=call.safety[:1], **outcome)
    assert af.decode_result(af.encode(result), call) == result
    assert af.decode_result(json.loads(json.dumps(af.encode(result).to_dict())), call) == result


def test_the_units_are_milliseconds_and_pixels_down_and_right() -> None:
    def step(*args: Any, viewport: Viewport = VIEWPORT, unit: Any = "pixels", **fields: Any) -> Any:
        (only,) = af.decode(content(*args, **fields), viewport, scroll_unit=unit).steps
        return only

    assert step("wait", duration=1500) == a.Wait(1.5)
    assert step("scroll", coordinate=(5, 6), scroll_amount=300) == a.Scroll((5, 6), distance_xy=(0, 300))
    assert step("scroll", scroll_amount=-300, scroll_direction="horizontal") == a.Scroll(distance_xy=(-300, 0))
    assert step("scroll", scroll_amount=300, viewport=HALVED) == a.Scroll(distance_xy=(0, 600))
    assert step("scroll", scroll_amount=-2, scroll_unit="notches") == a.Scroll(magnitude=2, direction="up")
    assert step("scroll", scroll_amount=2, unit="notches") == a.Scroll(magnitude=2, direction="down")
    assert step("scroll", scroll_amount=2, scroll_direction="horizontal", unit="notches") == a.Scroll(
        magnitude=2, direction="right"
    )
    assert step("scroll") == a.Scroll()
    assert step("click", coordinate=(5, 6), viewport=HALVED) == a.LeftClick((11, 13))
    assert step("key", key="ctrl++") == a.KeyPress(["ctrl", "+"]), "a plus is a key too"
    assert step("key", key="Enter") == a.KeyPress(["Enter"])
    assert step("drag", end_coordinate=(5, 6)) == a.Drag([(5, 6)])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (content("fly"), "there are click"),
        (content("click", coordinate=(1280, 0)), "outside"),
        (content("click", coordinate=(1, 2, 3)), "pair"),
        (content("click", text="ctrl"), "takes no text"),
        (content("double_click", button="wheel"), "button is one of left"),
        (content("click", repeat=2), "takes no repeat"),
        (content("type", text="x", additional_properties={"modifiers": ["ctrl"]}), "takes no modifiers"),
        (content("move"), "coordinate missing"),
        (content("drag", coordinate=(1, 2)), "end_coordinate missing"),
        (content("drag", end_coordinate=(3, 4), path=[[1, 2], [5, 6]]), "at that end"),
        (content("type"), "text missing"),
        (content("key", key="nokey"), "unknown key"),
        (content("scroll", scroll_amount=1, scroll_direction="up"), "vertical or horizontal"),
        (content("wait", duration=10**8), "3600"),
        (content("zoom", region=[5, 5, 5, 9]), "x1 above x0"),
        (content("navigate"), "url"),
        (content("keypress_hold", key="w"), "duration missing"),
        ([], "at least one"),
        ([content("wait"), af.ComputerUseCallContent(call_id="c2", action="wait")], "one call"),
        ({"type": "computer_call", "action": "wait"}, "call_id"),
        (7, "object"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(made: Any, reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        af.decode(made, VIEWPORT)


@pytest.mark.parametrize("steps", [(Finish(),), (a.Type(Secret("s")),), ()], ids=["the end", "a secret", "nothing"])
def test_what_contents_cannot_say(steps: Any) -> None:
    with pytest.raises(ActionError):
        af.encode_calls(ProviderCall(steps=steps, viewport=VIEWPORT, id="c"))
    with pytest.raises(UnsupportedAction, match="encode_calls"):
        af.encode_call(ProviderCall(steps=(a.Wait(), a.Wait()), viewport=VIEWPORT, id="c"))


def test_every_form_of_a_safety_question_is_one() -> None:
    pending = content("wait", pending_safety_checks=[{"id": "s", "message": "sure?"}])
    assert af.decode(pending, VIEWPORT).safety == (SafetyCheck("s", None, "sure?"),)
    for review in (True, "sure?", {"decision": "require_confirmation", "explanation": "sure?"}, {}, []):
        (check,) = af.decode(content("wait", pending_safety_review=review), VIEWPORT).safety
        assert check.message in (None, "sure?")
    assert af.decode(content("wait", pending_safety_review=None), VIEWPORT).safety == ()
    call = ProviderCall(steps=(a.Wait(), a.Move((1, 1))), viewport=VIEWPORT, id="c", safety=(SafetyCheck("s"),))
    assert all(af.decode(each, VIEWPORT).safety for each in af.encode_calls(call)), (
        "each content alone has to be confirmed"
    )


@given(
    st.builds(Size, st.integers(1, 4000), st.integers(1, 4000)),
    st.builds(Size, st.integers(1, 2000), st.integers(1, 2000)),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
)
def test_points_land_within_half_a_pixel_of_the_model(screen: Size, model: Size, across: float, down: float) -> None:
    viewport = Viewport(screen, model)
    x, y = int(across * model.width), int(down * model.height)
    (step,) = af.decode(content("move", coordinate=(x, y)), viewport).steps
    assert isinstance(step, a.Move)
    for value, size, seen, real in (
        (x, model.width, step.xy[0], screen.width),
        (y, model.height, step.xy[1], screen.height),
    ):
        # The screen's pixel under the middle of the model's: at most half of either's pixel away from it.
        assert abs((seen + 0.5) / real - (value + 0.5) / size) <= max(0.5 / size, 0.5 / real) + 1e-9


# --- other providers ---


@settings(max_examples=50)
@given(st.sampled_from([TOOLSET, LATEST, "computer_20250124"]).flatmap(
    lambda version: st.tuples(st.just(version), SAYABLE[version])), ids)  # fmt: skip
def test_anthropics_calls_come_back(said: tuple[str, a.Action], number: str) -> None:
    version, step = said
    duration = getattr(step, "duration", None) or 0
    assume(round(duration * 1000) / 1000 == duration)  # a content's is in whole milliseconds
    payload = anthropic.encode_call(
        ProviderCall(steps=(step,), viewport=VIEWPORT, id=number, name=version, extra={"caller": {"type": "direct"}})
    )
    contents = af.calls_from("anthropic", payload, VIEWPORT, version=version)
    plain = json.loads(json.dumps([each.to_dict() for each in contents]))
    assert anthropic.decode(af.calls_to("anthropic", plain, VIEWPORT), VIEWPORT, version=version) == anthropic.decode(
        payload, VIEWPORT, version=version
    )


@pytest.mark.parametrize(("name", "args"), [*CURRENT.items(), *LEGACY.items()])
def test_googles_calls_come_back(name: str, args: dict[str, Any]) -> None:
    payload = {"name": name, "args": args, "id": "g1"}
    # A picture as fine as the grid, so that pixels of it are cells of the grid.
    grid = Viewport(Size(1000, 1000), Size(1000, 1000))
    contents = af.calls_from("google", payload, grid)
    back = af.calls_to("google", [each.to_dict() for each in contents], grid)
    assert back["name"] == name
    assert google.decode(back, grid).steps == google.decode(payload, grid).steps
    assert google.decode(back, grid).extra == google.decode(payload, grid).extra


def test_openais_batch_is_several_contents_of_one_call() -> None:
    contents = af.calls_from("openai", OPENAI, VIEWPORT)
    assert [each.action for each in contents] == ["click", "drag", "scroll", "key"]
    assert {each.call_id for each in contents} == {"o1"}
    first, drag, scroll, key = contents
    assert (first.coordinate, first.button, first.additional_properties["modifiers"]) == ((1, 2), "middle", ["ctrl"])
    assert (drag.coordinate, drag.end_coordinate) == ((1, 2), (5, 6))
    assert (scroll.scroll_amount, scroll.additional_properties["scroll_distance"]) == (-40, [30, -40])
    assert key.key == "ctrl+s"
    assert first.raw_representation is OPENAI
    assert af.calls_to("openai", contents, VIEWPORT) == OPENAI
    preview = {
        **{key: OPENAI[key] for key in ("type", "call_id", "status", "pending_safety_checks")},
        "action": {"type": "wait"},
    }
    assert af.calls_to("openai", af.calls_from("openai", preview, VIEWPORT), VIEWPORT) == preview


@pytest.mark.parametrize("provider", af.PROVIDERS)
def test_a_click_of_each_provider_is_the_same_content_and_goes_to_every_other(provider: str) -> None:
    (made,) = af.calls_from(provider, CLICKS[provider], VIEWPORT)
    assert (made.action, made.coordinate, made.button) == (af.ComputerUseAction.CLICK, (7, 8), "left")
    assert af.calls_to(provider, made, VIEWPORT) == CLICKS[provider]
    made.additional_properties |= {"mine": "private"}
    for other in af.PROVIDERS:
        said = af.calls_to(other, made, VIEWPORT)
        (again,) = af.calls_from(other, said, VIEWPORT)
        assert (again.action, again.coordinate) == (made.action, made.coordinate)
        assert "private" not in json.dumps(said)


@pytest.mark.parametrize("provider", af.PROVIDERS)
@pytest.mark.parametrize("error", [None, "it is not there"])
def test_results_go_to_each_provider_and_back(provider: str, error: str | None) -> None:
    (made,) = af.calls_from(provider, CLICKS[provider], VIEWPORT)
    shot = af.DataContent(data=b"png", media_type="image/png")
    result = af.ComputerUseResultContent(call_id=made.call_id, screenshot=shot, error=error)
    back = af.result_from(provider, af.result_to(provider, result, made, VIEWPORT), made, VIEWPORT)
    assert back.call_id == made.call_id
    # What each has a place for: OpenAI for a picture alone, Anthropic and Amazon for that or an error, Google for both.
    assert back.error == (None if provider == "openai" else error)
    assert back.screenshot == (None if error and provider not in ("openai", "google") else shot)


def test_acknowledged_checks_go_to_the_provider_only_if_they_were() -> None:
    contents = af.calls_from("openai", OPENAI, VIEWPORT)
    call = af.decode(contents, VIEWPORT)
    for acknowledged in ((), call.safety):
        result = af.encode(Result(call=call, picture=Picture(b"png"), acknowledged=acknowledged))
        payload = af.result_to("openai", result, contents, VIEWPORT)
        assert payload.get("acknowledged_safety_checks", []) == OPENAI["pending_safety_checks"] * bool(acknowledged)


def test_tools_are_declared_as_each_provider_has_them() -> None:
    tool = af.ComputerUseTool(
        display_width=WIDTH, display_height=HEIGHT, environment="linux", additional_properties={"display_number": 1}
    )
    plain = af.ComputerUseTool(display_width=WIDTH, display_height=HEIGHT, environment="browser")
    sizes = {"display_width_px": WIDTH, "display_height_px": HEIGHT}
    assert af.tool_to("openai", plain) == {"type": "computer"}
    assert af.tool_to("openai", plain, preview=True) == {
        "type": "computer_use_preview", "display_width": WIDTH, "display_height": HEIGHT, "environment": "browser",
    }  # fmt: skip
    assert af.tool_to("anthropic", tool, version="computer_20250124") == {
        "type": "computer_20250124", "name": "computer", **sizes, "display_number": 1,
    }  # fmt: skip
    assert af.tool_to("anthropic", plain, version=TOOLSET) == {"type": TOOLSET}
    assert af.tool_to("google", plain) == {"computer_use": {"environment": "ENVIRONMENT_BROWSER"}}
    assert af.tool_to("google", af.ComputerUseTool()) == {"computer_use": {"environment": "ENVIRONMENT_DESKTOP"}}
    for provider in af.PROVIDERS:
        options = {"preview": True} if provider == "openai" else {}
        back = af.tool_from(provider, af.tool_to(provider, plain, **options))  # type: ignore[arg-type]
        sized = (None, None) if provider == "google" else (WIDTH, HEIGHT)
        assert (back.display_width, back.display_height) == sized
        assert back.environment == ("browser" if provider in ("openai", "google") else None)
    with pytest.raises(ActionError, match="display_width"):
        af.tool_to("anthropic", af.ComputerUseTool(display_width=1024))
    with pytest.raises(ActionError, match="providers are"):
        af.tool_to("mistral", tool)


def test_a_tool_without_a_size_is_declared_as_a_desktop_without_one_is_shown() -> None:
    tool = af.ComputerUseTool(environment="linux")
    sizes = {"display_width_px": 1280, "display_height_px": 800}
    for provider in ("anthropic", "bedrock", "bedrock_agents"):
        back = af.tool_from(provider, af.tool_to(provider, tool))
        assert (back.display_width, back.display_height) == tuple(sizes.values())
    assert af.tool_to("anthropic", tool) == {
        "type": "computer_20251124", "name": "computer", **sizes, "enable_zoom": True,
    }  # fmt: skip
    assert af.tool_to("openai", tool, preview=True) == {
        "type": "computer_use_preview", "display_width": 1280, "display_height": 800, "environment": "linux",
    }  # fmt: skip
    launched = inspect.signature(deskhand.launch).parameters["size"].default
    for limits in ("anthropic", "anthropic-high", "openai"):
        assert picture_size(limits, Size(*launched)) == DEFAULT_SIZE


# --- the package's contents ---


def test_the_packages_call_is_openais_in_a_content() -> None:
    made = Content.from_dict(
        {
            "type": "computer_tool_call",
            **{key: OPENAI[key] for key in OPENAI if key != "type"},
            "user_input_request": True,
        }
    )
    call = af.decode_content(made, VIEWPORT)
    assert call.steps == af.decode(af.calls_from("openai", OPENAI, VIEWPORT), VIEWPORT).steps
    assert call.safety == (SafetyCheck("s", None, "sure?"),)
    assert Content.from_dict(af.encode_call_content(call)) == made
    single = {"computer_action_format": "single"}
    preview = Content.from_dict({**made.to_dict(), "actions": [{"type": "wait"}], "additional_properties": single})
    call = af.decode_content(preview, VIEWPORT)
    assert call.name == "computer_use_preview"
    assert Content.from_dict(af.encode_call_content(call)) == preview


@given(
    calls.filter(lambda call: len({check.id for check in call.safety}) == len(call.safety)),
    pictures,
    st.sampled_from([0, 9]),
)
def test_the_packages_results_come_back_with_all_checks_or_none(
    call: ProviderCall, picture: Picture, confirmed: int
) -> None:
    call = replace(call, steps=(a.Wait(),), name="computer", extra={})
    result = Result(call=call, picture=picture, acknowledged=call.safety[:confirmed], text="t")
    made = Content.from_dict(af.encode_content(result))
    assert af.decode_content_result(made, call) == result
    partly = Result(call=call, picture=picture, acknowledged=call.safety[:1])
    if len(call.safety) > 1:
        assert Content.from_dict(af.encode_content(partly)).acknowledged_safety_checks is None


# --- the shell ---

lines = texts.map(lambda text: text.replace("\0", "") or "ls")
shell_calls = st.builds(
    ShellCall,
    commands=st.lists(lines, min_size=1, max_size=3).map(tuple),
    id=ids,
    timeout=st.none() | st.integers(1, 10**6).map(lambda ms: ms / 1000),
    restart=st.booleans(),
    cwd=st.none() | lines,
    env=st.dictionaries(st.sampled_from(["A", "B"]), lines),
    extra=mine,
)
outputs = st.builds(
    lambda out, err, code, late: CommandResult(
        out, err, None if late else code, outcome_of(code, timed_out=late), truncated=late
    ),
    texts, texts, st.integers(0, 255), st.booleans(),
)  # fmt: skip


@given(shell_calls, st.lists(outputs, max_size=3).map(tuple), st.none() | st.just("no such shell"))
def test_shell_calls_and_answers_come_back(call: ShellCall, ran: tuple[CommandResult, ...], error: str | None) -> None:
    assert af.decode_shell(af.encode_shell_call(call)) == call
    assert af.decode_shell(json.loads(json.dumps(af.encode_shell_call(call).to_dict()))) == call
    answer = ShellAnswer(call=call, outputs=ran, error=error)
    assert af.decode_shell_result(json.loads(json.dumps(af.encode_shell(answer).to_dict())), call) == answer


def test_a_shells_result_says_how_it_ended() -> None:
    call = ShellCall(commands=("a",), id="c")

    def told(*ran: CommandResult, **fields: Any) -> tuple[Any, ...]:
        made = af.encode_shell(ShellAnswer(call=call, outputs=ran, **fields))
        return made.stdout and made.stdout.text, made.stderr and made.stderr.text, made.exit_code, made.outcome.value  # type: ignore[union-attr]

    assert told(CommandResult("a\n", "", 0), CommandResult("b\n", "", 0)) == ("a\nb\n", None, 0, "success")
    assert told(CommandResult("", "bad", 3, "error")) == (None, "bad", 3, "error")
    assert told(CommandResult("", "bad", 3, "error"), CommandResult("", "", 0)) == (None, "bad", 3, "error")
    assert told(CommandResult("", "", 4), CommandResult("", "", None, "timeout")) == (None, None, 4, "error")
    assert told(CommandResult("x", "", None, "timeout")) == ("x", None, None, "timeout")
    assert told(CommandResult("x", "", None, "cancelled")) == ("x", None, None, "cancelled")
    assert told(error="no shell") == (None, "no shell", None, "error")
    cut = af.encode_shell(
        ShellAnswer(call=ShellCall(commands=("a",), id="c", limit=3), outputs=(CommandResult("12", "34", 0),))
    )
    assert (cut.stdout, cut.stderr) == (af.TextContent("12"), af.TextContent("3"))
    assert cut.additional_properties == {"truncated": True}


@pytest.mark.parametrize("provider", af.PROVIDERS)
def test_commands_of_each_provider_are_contents_and_come_back(provider: str) -> None:
    made = af.shell_call_from(provider, SHELLS[provider])
    assert made.commands == (["ls", "pwd"] if provider == "openai" else ["ls"])
    assert (
        af.shell_call_to(provider, af.ShellCallContent.from_dict(json.loads(json.dumps(made.to_dict()))))
        == SHELLS[provider]
    )
    if provider != "openai":
        for other in af.PROVIDERS:
            assert af.shell_call_from(other, af.shell_call_to(other, made)).commands == ["ls"]
    for code in (0, 3):
        result = af.ShellResultContent(
            call_id=made.call_id, stdout="out", exit_code=code, outcome="error" if code else "success"
        )
        back = af.shell_result_from(provider, af.shell_result_to(provider, result, made), made)
        assert (back.outcome, back.stdout, back.stderr) == (result.outcome, af.TextContent("out"), None)
        assert back.exit_code == (code if provider == "openai" else code or None)


def test_a_restart_goes_to_those_who_have_one() -> None:
    restart = af.ShellCallContent(call_id="s1", action="restart")
    said = af.shell_call_to("anthropic", restart)
    assert said["input"] == {"restart": True}
    assert af.shell_call_from("anthropic", said).action is af.ShellAction.RESTART
    assert af.shell_call_from("bedrock_agents", af.shell_call_to("bedrock_agents", restart)).action == "restart"
    for provider in ("openai", "google"):
        with pytest.raises(ActionError):
            af.shell_call_to(provider, restart)
    several = af.ShellCallContent(call_id="s1", commands=["cd /tmp", "ls"])
    assert af.shell_call_to("anthropic", several)["input"] == {"command": "cd /tmp\nls"}


# --- damage ---


def _refuses(function: Any, *args: Any) -> None:
    with contextlib.suppress(ActionError):  # and what is one of those
        function(*args)


@pytest.mark.parametrize("part", range(4))
def test_damaged_payloads_are_refused_or_read(part: int) -> None:
    contents = [each.to_dict() for each in af.calls_from("openai", OPENAI, VIEWPORT)]
    call = af.decode(contents, VIEWPORT)
    shown = Picture(b"png")
    result = af.encode(Result(call=call, picture=shown, acknowledged=call.safety, cursor=None, text="t")).to_dict()
    native = {"type": "computer_tool_call", **{key: OPENAI[key] for key in OPENAI if key != "type"}}
    native["additional_properties"] = {"openai": {}}
    shell = {**af.shell_call_from("openai", SHELLS["openai"]).to_dict()}
    ran = ShellAnswer(
        call=af.decode_shell(shell), outputs=(CommandResult("a", "b", 0), CommandResult("c", "", None, "timeout"))
    )
    told = af.encode_shell(ran).to_dict()
    commands = {"type": "shell_tool_call", "call_id": "c", "commands": ["ls"], "timeout_ms": 5}
    anthropic = af.calls_from("anthropic", CLICKS["anthropic"], VIEWPORT)[0].to_dict()
    for seed in range(part, MUTATED_PAYLOADS, 4):
        _refuses(af.decode, damaged(contents, seed), VIEWPORT)
        _refuses(af.decode_result, damaged(result, seed), call)
        _refuses(af.decode_content, damaged(native, seed), VIEWPORT)
        _refuses(af.decode_shell, damaged(shell, seed))
        _refuses(af.decode_shell_result, damaged(told, seed), ran.call)
        _refuses(af.decode_shell_content, damaged(commands, seed))
        _refuses(af.calls_to, "openai", damaged(contents, seed), VIEWPORT)
        _refuses(af.calls_to, "anthropic", damaged(anthropic, seed), VIEWPORT)
