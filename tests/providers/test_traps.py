"""Where providers differ in what looks alike: a test for each trap, over all providers that it is one for."""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ParamValidationError
from google.genai import types

from deskhand import CommandResult, Desktop, Point, Size, UnsupportedAction, Viewport
from deskhand import actions as a
from deskhand._core.chords import parse_keys
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.operations import SafetyCheck
from deskhand.desktop.translate import PIXELS_PER_NOTCH, translate
from deskhand.errors import ActionError, OutOfBounds
from deskhand.execution.tool_calls import computer_use_action
from deskhand.providers import (
    agent_framework,
    anthropic,
    bedrock,
    cua,
    google,
    inspect_ai,
    langchain,
    mcp,
    openai,
    osworld,
)
from deskhand.providers.bedrock import agentcore, agents
from deskhand.providers.cua.commands import Commands
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Picture, ProviderCall, Result, ShellAnswer
from providers.bedrock_helpers import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCREEN = Size(1280, 800)
FULL = Viewport(SCREEN, SCREEN)
HALF = Viewport(SCREEN, Size(640, 400))
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend(tuple(SCREEN))


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


def of_openai(*actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "call_1", "actions": list(actions), **more}


def of_anthropic(name: str, id: str = "toolu_1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "toolset_name": "computer", "input": given}


def of_google(name: str, **args: Any) -> dict[str, Any]:
    return {"id": "fc_1", "name": name, "args": args}


def of_cua(**action: Any) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "call_1", "action": action}


def of_agents(confirm: str | None = None, **values: str) -> dict[str, Any]:
    given = [{"name": name, "type": "string", "value": value} for name, value in values.items()]
    asked = {} if confirm is None else {"actionInvocationType": confirm}
    return {"functionInvocationInput": {"actionGroup": "g", "function": "computer", "parameters": given, **asked}}


def of_converse(id: str = "t1", **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": "computer", "input": given}}


def of_agentcore(**action: Any) -> dict[str, Any]:
    return {"sessionId": "s", "action": action}


def one(decode: Callable[..., ProviderCall], payload: object, viewport: Viewport = FULL) -> Any:
    """The one action that a payload asks for."""
    (step,) = decode(payload, viewport).steps
    return step


def asking(*steps: a.Action, name: str | None = None, safety: tuple[SafetyCheck, ...] = ()) -> ProviderCall:
    return ProviderCall(steps=steps, viewport=FULL, id="call_1", name=name, safety=safety)


# --- 1 ---


def test_trap_modifiers_have_a_place_of_their_own_or_none() -> None:
    held = a.LeftClick((10, 20), modifiers=["ctrl", "shift"])
    click = {"type": "click", "button": "left", "x": 10, "y": 20, "keys": ["ctrl", "shift"]}
    assert openai.encode_call(asking(held))["actions"] == [click]
    for kind, more in (("double_click", {}), ("move", {}), ("scroll", {"scroll_x": 0, "scroll_y": 100})):
        step = one(openai.decode, of_openai({"type": kind, "x": 1, "y": 2, "keys": ["CTRL"], **more}))
        assert step.modifiers == ("CTRL",)
    path = [{"x": 1, "y": 1}, {"x": 9, "y": 9}]
    assert one(openai.decode, of_openai({"type": "drag", "path": path, "keys": ["ALT"]})).modifiers == ("ALT",)

    block = anthropic.encode_call(asking(held))
    assert block["input"] == {"coordinate": [10, 20], "text": "ctrl+shift"}
    drag = of_anthropic("left_click_drag", start_coordinate=[1, 1], coordinate=[9, 9], text="alt")
    assert one(anthropic.decode, drag).modifiers == ("alt",)
    turn = of_anthropic("scroll", scroll_direction="up", scroll_amount=1, text="ctrl")
    assert one(anthropic.decode, turn).modifiers == ("ctrl",)

    for encode in (google.encode_call, agentcore.encode_call):
        with pytest.raises(UnsupportedAction):
            encode(asking(held))
    with pytest.raises(ActionError, match="modifiers"):
        computer_use_action(held)


def test_trap_openai_agents_gives_keys_only_to_methods_that_take_them(desktop: Desktop, backend: MemoryBackend) -> None:
    computers: tuple[Any, ...] = (openai.computer(desktop), openai.sync_computer(desktop))
    for computer in computers:
        for name in ("click", "double_click", "drag", "move", "scroll"):
            keys = inspect.signature(getattr(computer, name)).parameters["keys"]
            assert keys.kind is keys.KEYWORD_ONLY
    computers[1].click(5, 6, "left", keys=["SHIFT"])
    assert [type(event).__name__ for event in backend.events if "Pointer" not in type(event).__name__] == [
        "KeyDown", "ButtonDown", "ButtonUp", "KeyUp",
    ]  # fmt: skip


# --- 2 ---


def test_trap_the_middle_button_has_three_names() -> None:
    middle = a.MiddleClick((10, 20))
    assert one(openai.decode, of_openai({"type": "click", "button": "wheel", "x": 10, "y": 20})) == middle
    with pytest.raises(ActionError, match="wheel"):
        openai.decode(of_openai({"type": "click", "button": "middle", "x": 10, "y": 20}), FULL)
    assert one(anthropic.decode, of_anthropic("middle_click", coordinate=[10, 20])) == middle
    assert one(google.decode, of_google("middle_click", x=8, y=25)).type == "middle_click"
    for button in ("wheel", "middle"):
        assert one(cua.decode, of_cua(type="click", button=button, x=10, y=20)) == middle
    assert one(osworld.decode, {"action_type": "CLICK", "parameters": {"button": "middle", "x": 10, "y": 20}}) == middle
    assert one(agentcore.decode, of_agentcore(mouseClick={"x": 10, "y": 20, "button": "MIDDLE"})) == middle
    with pytest.raises(ActionError, match="MIDDLE"):
        agentcore.decode(of_agentcore(mouseClick={"x": 10, "y": 20, "button": "middle"}), FULL)


# --- 3 ---


def test_trap_every_provider_names_keys_its_own_way() -> None:
    enter, page_up, super_key = (parse_keys([name]) for name in ("Return", "Page_Up", "Super_L"))
    for names, keys in (
        (("ENTER", "RETURN", "Return", "return", "enter"), enter),
        (("PAGEUP", "Page_Up", "page_up", "pageup", "PgUp"), page_up),
        (("META", "CMD", "COMMAND", "super", "win", "meta"), super_key),
        (("ARROWUP", "UP", "Up", "up"), parse_keys(["Up"])),
        (("OPTION", "ALT", "alt"), parse_keys(["Alt_L"])),
        (("CONTROL", "CTRL", "ctrl", "control", "Control"), parse_keys(["Control_L"])),
        (("ESC", "ESCAPE", "Escape"), parse_keys(["Escape"])),
        (("DEL", "DELETE", "Delete"), parse_keys(["Delete"])),
        (("BACKSPACE", "BackSpace", "backspace"), parse_keys(["BackSpace"])),
    ):
        for name in names:
            assert parse_keys([name]) == keys, name
    save = parse_keys(["ctrl", "s"])
    for step in (
        one(openai.decode, of_openai({"type": "keypress", "keys": ["CTRL", "S"]})),
        one(anthropic.decode, of_anthropic("key", text="Ctrl+S")),
        one(google.decode, of_google("key_combination", keys="Control+S")),
        one(google.decode, of_google("hotkey", keys=["control", "s"])),
        one(osworld.decode, {"action_type": "HOTKEY", "parameters": {"keys": ["ctrl", "s"]}}),
        one(cua.decode, of_cua(type="keypress", keys="ctrl+s")),
        one(agentcore.decode, of_agentcore(keyShortcut={"keys": ["ctrl", "s"]})),
    ):
        assert parse_keys(step.keys) == save


def test_trap_plus_is_a_key_as_well() -> None:
    zoom_in = parse_keys(["ctrl", "+"])
    for step in (
        one(openai.decode, of_openai({"type": "keypress", "keys": ["CTRL", "+"]})),
        one(anthropic.decode, of_anthropic("key", text="ctrl++")),
        one(google.decode, of_google("key_combination", keys="Control++")),
        one(cua.decode, of_cua(type="keypress", keys="ctrl++")),
    ):
        assert parse_keys(step.keys) == zoom_in
    for alone in (of_anthropic("key", text="+"), of_anthropic("hold_key", text="+", duration=1)):
        assert parse_keys(one(anthropic.decode, alone).keys) == parse_keys(["+"])


# --- 4 ---


def _wheel(step: a.Action) -> list[Any]:
    return [
        event.button for event in translate(step, size=SCREEN, pointer=Point(0, 0)) if isinstance(event, ButtonDown)
    ]


def test_trap_a_scroll_has_six_units_and_two_signs(desktop: Desktop, backend: MemoryBackend) -> None:
    assert PIXELS_PER_NOTCH == 100
    down, right = _wheel(a.Scroll(direction="down", magnitude=3)), _wheel(a.Scroll(direction="right", magnitude=3))
    for step, meant in (
        (one(openai.decode, of_openai({"type": "scroll", "x": 1, "y": 1, "scroll_x": 0, "scroll_y": 300})), down),
        (one(openai.decode, of_openai({"type": "scroll", "x": 1, "y": 1, "scroll_x": 300, "scroll_y": 0})), right),
        (one(anthropic.decode, of_anthropic("scroll", scroll_direction="down", scroll_amount=3)), down),
        (one(google.decode, of_google("scroll", x=1, y=1, direction="down", magnitude_in_wheel_clicks=3)), down),
        # 0...999 of a height of 800 pixels.
        (one(google.decode, of_google("scroll", x=1, y=1, direction="down", magnitude_in_pixels=375)), down),
        (one(agentcore.decode, of_agentcore(mouseScroll={"x": 1, "y": 1, "deltaY": -300})), down),
        (one(osworld.decode, "pyautogui.scroll(-3)"), down),
        (one(osworld.decode, {"action_type": "SCROLL", "parameters": {"dx": 0, "dy": -3}}), down),
        (one(osworld.decode, "pyautogui.hscroll(3)"), right),
        (one(cua.decode, of_cua(type="scroll", x=1, y=1, scroll_x=0, scroll_y=300)), down),
        (one(inspect_ai.decode, {"action": "scroll", "scroll_direction": "down", "scroll_amount": 3}), down),
    ):
        assert _wheel(step) == meant
    notches = cua.decode(of_cua(type="scroll", x=1, y=1, scroll_x=0, scroll_y=3), FULL, scroll_unit="notches")
    assert _wheel(notches.steps[0]) == down  # type: ignore[arg-type]
    # What pynput, and so Cua's server, calls a scroll: up and right.
    Commands(desktop).scroll(x=0, y=-3)
    assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == down
    del backend.events[:]
    Commands(desktop).scroll(x=3, y=0)
    assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == right


# --- 5 ---


def test_trap_points_are_of_the_picture_or_of_a_grid() -> None:
    there = a.Move((800, 600))
    assert one(openai.decode, of_openai({"type": "move", "x": 400, "y": 300}), HALF).xy == (801, 601)
    assert one(anthropic.decode, of_anthropic("mouse_move", coordinate=[400, 300]), HALF).xy == (801, 601)
    # The same whatever the picture was.
    for viewport in (FULL, HALF):
        x, y = one(google.decode, of_google("move", x=625, y=750), viewport).xy
        assert abs(x - there.xy[0]) <= 1
        assert abs(y - there.xy[1]) <= 1
    for decode, payload in (
        (openai.decode, of_openai({"type": "move", "x": 640, "y": 0})),
        (anthropic.decode, of_anthropic("mouse_move", coordinate=[0, 400])),
        (google.decode, of_google("move", x=1000, y=0)),
    ):
        with pytest.raises(OutOfBounds):
            decode(payload, HALF)


def test_trap_a_picture_is_scaled_once_and_its_factor_remembered(desktop: Desktop, backend: MemoryBackend) -> None:
    model_session = ModelSession(desktop, size=(640, 400))
    picture = model_session.look()
    assert picture.data[16:24] == (640).to_bytes(4, "big") + (400).to_bytes(4, "big")
    zoomed = anthropic.run(model_session, of_anthropic("zoom", region=[0, 0, 20, 10]))
    assert zoomed["content"][0]["type"] == "image"
    # What was zoomed into is not pointed into.
    anthropic.run(model_session, of_anthropic("left_click", coordinate=[639, 399]))
    assert (backend.screen.pointer[0], backend.screen.pointer[1]) == (1279, 799)


# --- 6 ---


def test_trap_a_batch_is_answered_once_or_for_each(desktop: Desktop) -> None:
    model_session = ModelSession(desktop)
    shot = {"type": "screenshot"}
    (answer,) = openai.respond(model_session, {"output": [of_openai(shot, shot, shot)]})
    assert answer["call_id"] == "call_1"
    turn = [of_anthropic("cursor_position", id=f"t{n}") for n in range(3)]
    assert [result["tool_use_id"] for result in anthropic.respond(model_session, turn)] == ["t0", "t1", "t2"]
    calls = [{"function_call": {**of_google("take_screenshot"), "id": f"f{n}"}} for n in range(3)]
    answers = google.respond(model_session, types.Content.model_validate({"role": "model", "parts": calls}))
    assert [part.function_response.id for part in answers.parts] == ["f0", "f1", "f2"]
    message = {"content": [of_converse(f"t{n}", action="cursor_position") for n in range(3)]}
    assert len(bedrock.respond(model_session, message)["content"]) == 3
    inputs = [of_agents(action="cursor_position") for _ in range(6)]
    control = {"returnControl": {"invocationId": "i", "invocationInputs": inputs[:5]}}
    assert len(bedrock.respond(model_session, control)["returnControlInvocationResults"]) == 5
    with pytest.raises(ActionError, match="5"):
        bedrock.respond(model_session, {"returnControl": {"invocationId": "i", "invocationInputs": inputs}})
    with pytest.raises(UnsupportedAction):
        cua.encode_call(asking(a.Wait(1), a.Wait(1)))
    contents = [{"type": "computer_call", "call_id": "c", "action": "screenshot"}] * 2
    assert agent_framework.run(model_session, contents).call_id == "c"


def test_trap_after_a_failure_in_a_batch_the_rest_is_not_done(desktop: Desktop, backend: MemoryBackend) -> None:
    model_session = ModelSession(desktop)
    turn = [of_anthropic("left_click", id="a", coordinate=[9999, 0]), of_anthropic("left_click", id="b")]
    first, second = anthropic.respond(model_session, turn)
    assert first["is_error"]
    assert second == {
        "type": "tool_result", "tool_use_id": "b", "toolset_name": "computer", "is_error": True,
        "content": [{"type": "text", "text": "Not executed: an earlier computer action in this turn failed."}],
    }  # fmt: skip
    assert not [event for event in backend.events if isinstance(event, ButtonDown)]


# --- 7 ---


def test_trap_errors_go_where_each_provider_has_a_place(desktop: Desktop) -> None:
    model_session = ModelSession(desktop)
    output, said = openai.respond(model_session, {"output": [of_openai({"type": "move", "x": 9999, "y": 0})]})
    assert "9999" not in json.dumps(output)
    assert "9999" in said["content"][0]["text"]
    result = anthropic.run(model_session, of_anthropic("mouse_move", coordinate=[9999, 0]))
    assert result["is_error"] is True
    assert [block["type"] for block in result["content"]] == ["text"]
    assert "error" in google.run(model_session, of_google("move", x=9999, y=0))["response"]
    assert (
        bedrock.run(model_session, of_converse(action="mouse_move", coordinate=[9999, 0]))["toolResult"]["status"]
        == "error"
    )
    agent = bedrock.run(model_session, of_agents(action="mouse_move", coordinate="[9999, 0]"))["functionResult"]
    assert agent["responseState"] == "REPROMPT"
    core = bedrock.run(model_session, of_agentcore(mouseMove={"x": 9999, "y": 0}))["result"]["mouseMove"]
    assert core["status"] == "FAILED"
    assert mcp.run(model_session, {"name": "move", "arguments": {"xy": [9999, 0]}})["isError"] is True
    told = cua.run(model_session, of_cua(type="move", x=9999, y=0))
    assert told["type"] == "function_call_output"
    assert "9999" in told["output"]
    content = agent_framework.run(
        model_session, {"type": "computer_call", "call_id": "c", "action": "move", "coordinate": [9999, 0]}
    )
    assert "9999" in (content.error or "")
    with pytest.raises(ActionError, match="9999"):
        inspect_ai.run(model_session, {"action": "mouse_move", "coordinate": [9999, 0]})
    (message,) = [langchain.encode(model_session.unreadable(ActionError("9999"), id="c"))]
    assert message["status"] == "error"


# --- 8 ---


def test_trap_nobody_acknowledges_but_who_was_asked(desktop: Desktop, backend: MemoryBackend) -> None:
    check = {"id": "sc_1", "code": "malicious_instructions", "message": "Look at this"}
    decision = {"decision": "require_confirmation", "explanation": "Sure?"}
    click = {"type": "click", "button": "left", "x": 1, "y": 1}
    calls: list[tuple[Any, Any, Callable[[Any], Any]]] = [
        (
            openai.run,
            of_openai(click, pending_safety_checks=[check]),
            lambda answer: answer.get("acknowledged_safety_checks"),
        ),
        (
            google.run,
            of_google("click", x=1, y=1, safety_decision=decision),
            lambda answer: answer["response"].get("safety_acknowledgement"),
        ),
        (
            bedrock.run,
            of_agents("USER_CONFIRMATION_AND_RESULT", action="left_click", coordinate="[1, 1]"),
            lambda answer: {"CONFIRM": "yes", "DENY": None}[answer["functionResult"]["confirmationState"]],
        ),
        (
            cua.run,
            of_cua(**click) | {"pending_safety_checks": [check]},
            lambda answer: answer.get("acknowledged_safety_checks"),
        ),
    ]
    for run, payload, acknowledged in calls:
        del backend.events[:]
        assert not acknowledged(run(desktop, payload))
        assert not acknowledged(run(desktop, payload, ask=lambda *_: False))
        assert not backend.events
        assert acknowledged(run(desktop, payload, ask=lambda *_: True))
        assert [event for event in backend.events if isinstance(event, ButtonDown)]


def test_trap_the_framework_takes_all_checks_or_none() -> None:
    first, second = SafetyCheck("a", "x", None), SafetyCheck("b", None, "y")
    call = asking(a.Wait(), safety=(first, second))
    picture = Picture(PNG)
    whole = agent_framework.encode_content(Result(call=call, picture=picture, acknowledged=(first, second)))
    assert {check["id"] for check in whole["acknowledged_safety_checks"]} == {"a", "b"}
    part = agent_framework.encode_content(Result(call=call, picture=picture, acknowledged=(first,)))
    assert not part.get("acknowledged_safety_checks")


def test_trap_anthropics_loop_asks_before_each_call(desktop: Desktop, backend: MemoryBackend) -> None:
    from anthropic.types.beta import BetaToolUseBlock  # noqa: PLC0415 # the SDK's own

    asked: list[str] = []

    def confirm(context: Any) -> bool:
        asked.append(context.member)
        return False

    block = BetaToolUseBlock.model_validate(of_anthropic("left_click", coordinate=[1, 1]))
    result = anthropic.toolset(desktop, confirm=confirm).tool_result(block)
    assert asked == ["left_click"]
    assert result.get("is_error")
    assert not backend.events


# --- 9 ---


def test_trap_png_where_a_sdk_says_png_and_jpeg_where_the_type_is_told(desktop: Desktop) -> None:
    assert base64.b64decode(asyncio.run(openai.computer(desktop).screenshot())).startswith(PNG)
    assert base64.b64decode(asyncio.run(cua.tool(desktop).screenshot())).startswith(PNG)
    picture = Picture(b"\xff\xd8\xff", "image/jpeg")
    looked = Result(call=anthropic.decode(of_anthropic("screenshot"), FULL), picture=picture)
    assert anthropic.encode(looked)["content"][0]["source"]["media_type"] == "image/jpeg"
    blob = google.encode(Result(call=google.decode(of_google("take_screenshot"), FULL), picture=picture))["parts"][0]
    assert blob["inline_data"] == {"mime_type": "image/jpeg", "data": b"\xff\xd8\xff"}
    shot = Result(call=bedrock.decode(of_converse(action="screenshot"), FULL), picture=picture)
    (image,) = [part["image"] for part in bedrock.encode(shot)["toolResult"]["content"] if "image" in part]
    assert image == {"format": "jpeg", "source": {"bytes": b"\xff\xd8\xff"}}


# --- 10 ---


def test_trap_an_agents_values_are_strings_and_its_pictures_bytes() -> None:
    call = agents.decode(
        of_agents(action="scroll", coordinate="[512, 384]", scroll_direction="up", scroll_amount="3"), FULL
    )
    assert call.steps == (a.Scroll((512, 384), direction="up", magnitude=3),)
    for parameter in agents.encode_call(call)["functionInvocationInput"]["parameters"]:
        assert all(isinstance(value, str) for value in parameter.values())
    (group,) = agents.declaration(SCREEN)
    service = Service("bedrock-agent-runtime")
    service.check("InvokeInlineAgent", "actionGroups", [group])
    group["parentActionGroupSignatureParams"]["display_width_px"] = 1280
    with pytest.raises(ParamValidationError):
        service.check("InvokeInlineAgent", "actionGroups", [group])
    body = agents.encode(Result(call=call, picture=Picture(PNG)))["functionResult"]["responseBody"]
    assert body["IMAGES"]["images"][0]["source"]["bytes"] == PNG, "base64 would be encoded once more by botocore"


# --- 11 ---


def test_trap_what_is_deprecated_is_still_understood() -> None:
    preview = {"type": "computer_call", "call_id": "c", "action": {"type": "move", "x": 1, "y": 2}}
    assert one(openai.decode, preview) == a.Move((1, 2))
    assert openai.encode_call(openai.decode(preview, FULL))["action"] == preview["action"]
    flat = {"type": "tool_use", "id": "c", "name": "computer", "input": {"action": "mouse_move", "coordinate": [1, 2]}}
    for version in ("computer_20241022", "computer_20250124", "computer_20251124"):
        assert anthropic.decode(flat, FULL, version=version).steps == (a.Move((1, 2)),)
    local = {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls", "-l"], "env": {}}}
    call = openai.decode_shell(local)
    assert call.commands == ("ls -l",)
    answer = openai.encode_shell(ShellAnswer(call=call, outputs=(CommandResult("x", "", 0),)))
    assert answer["type"] == "local_shell_call_output"
    for old, new in (("click_at", "click"), ("hover_at", "move")):
        assert one(google.decode, of_google(old, x=5, y=6)) == one(google.decode, of_google(new, x=5, y=6))
    design = {"type": "computer_call", "call_id": "c", "action": "move", "coordinate": [1, 2]}
    assert one(agent_framework.decode, design) == a.Move((1, 2))


def test_trap_nothing_that_mcp_has_dropped_is_imported() -> None:
    for path in Path(mcp.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [n.name for n in getattr(node, "names", ())]
            assert not any("fastmcp" in str(name).lower() for name in names), path
