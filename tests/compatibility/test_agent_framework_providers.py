"""Microsoft Agent Framework: what each provider calls the fields of its contents and tools, as its design maps them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from compatibility.envelopes import ANTHROPIC, said
from compatibility.table import Raises, Row, each
from deskhand import ActionError, Desktop, Size, Viewport
from deskhand.backends.memory import MemoryBackend
from deskhand.providers import agent_framework as af
from deskhand.providers.bedrock import agents

VIEW = Viewport(Size(1280, 800), Size(1280, 800))
GRID = Viewport(Size(1000, 1000), Size(1000, 1000))
"""A picture whose pixels are the cells in which Google's models count."""

A = af.ComputerUseAction
SEVEN = {"coordinate": (7, 8)}

# What is in the content, and how each provider asks for it. Where Anthropic's is the same, so are Amazon's, in their envelopes.
CALLS: list[tuple[dict[str, Any], dict[str, dict[str, Any]]]] = [
    ({"action": A.CLICK, "button": "left", **SEVEN}, {
        "openai": {"type": "click", "button": "left", "x": 7, "y": 8},
        "anthropic": {"action": "left_click", "coordinate": [7, 8]},
        "google": {"name": "click_at", "x": 7, "y": 8},
    }),
    ({"action": A.CLICK, "button": "right", **SEVEN}, {
        "openai": {"type": "click", "button": "right", "x": 7, "y": 8},
        "anthropic": {"action": "right_click", "coordinate": [7, 8]},
        "google": {"name": "right_click", "x": 7, "y": 8},
    }),
    ({"action": A.CLICK, "button": "middle", **SEVEN}, {
        "openai": {"type": "click", "button": "wheel", "x": 7, "y": 8},
        "anthropic": {"action": "middle_click", "coordinate": [7, 8]},
        "google": {"name": "middle_click", "x": 7, "y": 8},
    }),
    ({"action": A.DOUBLE_CLICK, **SEVEN}, {
        "openai": {"type": "double_click", "x": 7, "y": 8},
        "anthropic": {"action": "double_click", "coordinate": [7, 8]},
        "google": {"name": "double_click", "x": 7, "y": 8},
    }),
    ({"action": A.TRIPLE_CLICK, **SEVEN}, {
        "anthropic": {"action": "triple_click", "coordinate": [7, 8]},
        "google": {"name": "triple_click", "x": 7, "y": 8},
    }),
    ({"action": A.MOVE, **SEVEN}, {
        "openai": {"type": "move", "x": 7, "y": 8},
        "anthropic": {"action": "mouse_move", "coordinate": [7, 8]},
        "google": {"name": "hover_at", "x": 7, "y": 8},
    }),
    ({"action": A.DRAG, "end_coordinate": (9, 10), **SEVEN}, {
        "openai": {"type": "drag", "path": [{"x": 7, "y": 8}, {"x": 9, "y": 10}]},
        "anthropic": {"action": "left_click_drag", "start_coordinate": [7, 8], "coordinate": [9, 10]},
        "google": {"name": "drag_and_drop", "start_x": 7, "start_y": 8, "end_x": 9, "end_y": 10},
    }),
    ({"action": A.TYPE, "text": "hi"}, {
        "openai": {"type": "type", "text": "hi"},
        "anthropic": {"action": "type", "text": "hi"},
        "google": {"name": "type", "text": "hi"},
    }),
    ({"action": A.KEY, "key": "ctrl+c"}, {
        "openai": {"type": "keypress", "keys": ["ctrl", "c"]},
        "anthropic": {"action": "key", "text": "ctrl+c"},
        "google": {"name": "key_combination", "keys": "ctrl+c"},
    }),
    ({"action": A.SCREENSHOT}, {
        "openai": {"type": "screenshot"},
        "anthropic": {"action": "screenshot"},
        "google": {"name": "take_screenshot"},
    }),
    ({"action": A.SCROLL, "scroll_amount": -2, "scroll_direction": "vertical", **SEVEN}, {
        "anthropic": {"action": "scroll", "scroll_direction": "up", "scroll_amount": 2, "coordinate": [7, 8]},
    }),
    ({"action": A.SCROLL, "scroll_amount": 2, "scroll_direction": "horizontal", **SEVEN}, {
        "anthropic": {"action": "scroll", "scroll_direction": "right", "scroll_amount": 2, "coordinate": [7, 8]},
    }),
    ({"action": A.SCROLL, "scroll_amount": -200, "scroll_direction": "vertical", **SEVEN}, {
        "openai": {"type": "scroll", "x": 7, "y": 8, "scroll_x": 0, "scroll_y": -200},
        "google": {"name": "scroll_at", "x": 7, "y": 8, "direction": "up", "magnitude": 200},
    }),
    ({"action": A.SCROLL, "scroll_amount": 200, "scroll_direction": "horizontal", **SEVEN}, {
        "openai": {"type": "scroll", "x": 7, "y": 8, "scroll_x": 200, "scroll_y": 0},
        "google": {"name": "scroll_at", "x": 7, "y": 8, "direction": "right", "magnitude": 200},
    }),
    ({"action": A.WAIT, "duration": 2000}, {
        "anthropic": {"action": "wait", "duration": 2},
        "google": {"name": "wait", "seconds": 2},
    }),
    ({"action": A.WAIT, "duration": None}, {"openai": {"type": "wait"}}),
    ({"action": A.ZOOM, "additional_properties": {"region": [0, 0, 200, 100]}}, {
        "anthropic": {"action": "zoom", "region": [0, 0, 200, 100]},
    }),
]  # fmt: skip
# Only Anthropic's newest single tool looks closer.
_NOT_ON_BEDROCK = {A.ZOOM}

ASKED = [
    (action["action"].value, provider, action, given)
    for action, providers in CALLS
    for like, given in providers.items()
    for provider in (ANTHROPIC if like == "anthropic" and action["action"] not in _NOT_ON_BEDROCK else (like,))
]


def view_of(provider: str) -> Viewport:
    return GRID if provider == "google" else VIEW


@pytest.mark.parametrize(("name", "provider", "fields", "given"), ASKED)
def test_a_call_has_the_designs_fields_and_goes_back(
    name: str, provider: str, fields: dict[str, Any], given: dict[str, Any]
) -> None:
    del name
    payload = said(provider, **given)
    view = view_of(provider)
    version = "computer_20251124" if provider == "anthropic" else None
    # Bedrock's agents give a call no id.
    (content,) = af.calls_from(provider, payload, view, version=version, call_id="c1")
    found = {field: getattr(content, field) for field in fields}
    if "additional_properties" in fields:
        found["additional_properties"] = {key: found["additional_properties"][key] for key in ("region",)}
    assert found == fields
    assert content.call_id == "c1"
    assert content.raw_representation is payload
    assert af.calls_to(provider, content, view) == payload
    again = af.ComputerUseCallContent.from_dict(json.loads(json.dumps(content.to_dict())))
    assert af.calls_to(provider, again, view) == payload


def test_every_action_is_in_the_table() -> None:
    assert {action["action"] for action, _ in CALLS} == set(A)


def test_an_approval_that_openai_or_google_ask_for_goes_along() -> None:
    checks = [{"id": "s1", "code": "malicious_instructions", "message": "sure?"}]
    (content,) = af.calls_from("openai", {**said("openai", type="wait"), "pending_safety_checks": checks}, VIEW)
    assert content.additional_properties["pending_safety_checks"] == checks
    asks = {"decision": "require_confirmation", "explanation": "sure?"}
    (content,) = af.calls_from("google", said("google", name="click_at", x=7, y=8, safety_decision=asks), GRID)
    (check,) = content.additional_properties["pending_safety_checks"]
    assert check["message"] == "sure?"


# --- results ---

PNG = b"\x89PNG\r\n\x1a\n"
BASE64 = base64.b64encode(PNG).decode()
CLICK = {
    "openai": said("openai", type="click", button="left", x=7, y=8),
    "google": said("google", name="click_at", x=7, y=8),
    **{provider: said(provider, action="left_click", coordinate=[7, 8]) for provider in ANTHROPIC},
}


def answered(provider: str, **given: Any) -> Any:
    """What a provider is sent for a result of its own click."""
    (content,) = af.calls_from(provider, dict(CLICK[provider]), view_of(provider))
    result = af.ComputerUseResultContent(call_id=content.call_id, **given)
    return af.result_to(provider, result, content, view_of(provider))


def shown(provider: str) -> Any:
    return answered(provider, screenshot=af.DataContent(data=PNG, media_type="image/png"))


def texts(payload: Any) -> list[str]:
    """The texts of an answer in Anthropic's format or Converse's."""
    return [part["text"] for part in payload["content"] if "text" in part]


RESULTS = [
    Row("ComputerUseResultContent.call_id", "OpenAI's call_id", lambda: shown("openai")["call_id"], "c1"),
    Row("ComputerUseResultContent.call_id", "Anthropic's tool_use_id", lambda: shown("anthropic")["tool_use_id"], "c1"),
    Row("ComputerUseResultContent.call_id", "Google's function's name", lambda: shown("google")["name"], "click_at"),
    Row(
        "ComputerUseResultContent.call_id",
        "Converse's toolUseId",
        lambda: shown("bedrock")["toolResult"]["toolUseId"],
        "c1",
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "a computer_call_output of OpenAI's",
        lambda: shown("openai")["type"],
        "computer_call_output",
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "OpenAI's image in base64",
        lambda: shown("openai")["output"]["image_url"],
        f"data:image/png;base64,{BASE64}",
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "a tool_result of Anthropic's",
        lambda: shown("anthropic")["type"],
        "tool_result",
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "Anthropic's image bytes",
        lambda: shown("anthropic")["content"][-1]["source"],
        {"type": "base64", "media_type": "image/png", "data": BASE64},
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "Google's inline_data",
        lambda: shown("google")["parts"][0]["inline_data"],
        {"mime_type": "image/png", "data": PNG},
    ),
    Row("ComputerUseResultContent", "the page's URL for Google", lambda: shown("google")["response"], {"url": ""}),
    Row(
        "ComputerUseResultContent.screenshot",
        "Converse's image",
        lambda: shown("bedrock")["toolResult"]["content"][-1],
        {"image": {"format": "png", "source": {"bytes": PNG}}},
    ),
    Row(
        "ComputerUseResultContent.screenshot",
        "IMAGES of Bedrock's agents",
        lambda: shown("bedrock_agents")["functionResult"]["responseBody"],
        {"IMAGES": {"images": [{"format": "png", "source": {"bytes": PNG}}]}},
    ),
    Row(
        "ComputerUseResultContent.text_output",
        "Anthropic's content",
        lambda: "hi" in texts(answered("anthropic", text_output="hi")),
    ),
    Row(
        "ComputerUseResultContent.text_output",
        "Converse's content",
        lambda: "hi" in texts(answered("bedrock", text_output="hi")["toolResult"]),
    ),
    Row(
        "ComputerUseResultContent.error",
        "Anthropic's is_error and content",
        lambda: (answered("anthropic", error="no")["is_error"], texts(answered("anthropic", error="no"))),
        (True, ["no"]),
    ),
    Row(
        "ComputerUseResultContent.error",
        "Google's response",
        lambda: answered("google", error="no")["response"]["error"],
        "no",
    ),
    Row(
        "ComputerUseResultContent.error",
        "Converse's status and content",
        lambda: (
            answered("bedrock", error="no")["toolResult"]["status"],
            texts(answered("bedrock", error="no")["toolResult"]),
        ),
        ("error", ["no"]),
    ),
    Row(
        "ComputerUseResultContent.error",
        "the text of Bedrock's agents",
        lambda: answered("bedrock_agents", error="no")["functionResult"]["responseBody"],
        {"TEXT": {"body": "no"}},
    ),
    *(
        Row(
            "ComputerUseResultContent.call_id",
            f"of another call, {provider}",
            lambda provider=provider: af.result_to(
                provider,
                af.ComputerUseResultContent(call_id="other"),
                af.calls_from(provider, dict(CLICK[provider]), view_of(provider)),
                view_of(provider),
            ),
            Raises(ActionError, "other"),
        )
        for provider in af.PROVIDERS
    ),
]


def refused(provider: str, payload: dict[str, Any] | None = None) -> str:
    """The answer to a call that points out of the picture, as `run` made it: of another's call, or of the provider's own."""
    content: Any = af.ComputerUseCallContent(call_id="c1", action="click", coordinate=(5000, 1))
    if payload is not None:
        content = af.calls_from(provider, payload, VIEW, call_id="c1")
    with Desktop(MemoryBackend((1280, 800))) as desktop:
        result = af.run(desktop, content)
    assert "outside" in (result.error or "")
    return str(af.result_to(provider, result, content, VIEW))


OUTSIDE = {
    "openai": said("openai", type="click", button="left", x=5000, y=1),
    "google": said("google", name="click_at", x=5000, y=1),
    **{provider: said(provider, action="left_click", coordinate=[5000, 1]) for provider in ANTHROPIC},
}
# OpenAI's answer is a picture; why there is nothing else to see in it is said by a message.
SAYS = {provider: "c1" if provider == "openai" else "outside" for provider in af.PROVIDERS}

REFUSED = [
    *(
        Row(
            "ComputerUseResultContent",
            f"of a refused call, {provider}",
            lambda provider=provider: SAYS[provider] in refused(provider, OUTSIDE[provider]),
        )
        for provider in af.PROVIDERS
    ),
    *(
        Row(
            "ComputerUseResultContent",
            f"of another's refused call, {provider}",
            lambda provider=provider: SAYS[provider] in refused(provider),
        )
        # Google's answer names the function that was called.
        for provider in ("openai", *ANTHROPIC)
    ),
]


# --- tools ---

SIZED = af.ComputerUseTool(display_width=1024, display_height=768, environment="browser")
NUMBERED = af.ComputerUseTool(display_width=1024, display_height=768, additional_properties={"display_number": 1})


def told(provider: str, tool: af.ComputerUseTool) -> Any:
    return af.tool_to(provider, tool, preview=provider == "openai")


TOOLS = [
    Row(
        "ComputerUseTool",
        "OpenAI's setup",
        lambda: told("openai", SIZED),
        {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"},
    ),
    *(
        Row(
            "ComputerUseTool.environment",
            f"OpenAI's {name}",
            lambda name=name: told("openai", af.ComputerUseTool(display_width=1, display_height=1, environment=name))[
                "environment"
            ],
            name,
        )
        for name in ("browser", "mac", "windows", "linux", "ubuntu")
    ),
    Row(
        "ComputerUseTool",
        "Claude's setup",
        lambda: af.tool_to("anthropic", NUMBERED, version="computer_20250124"),
        {
            "type": "computer_20250124",
            "name": "computer",
            "display_width_px": 1024,
            "display_height_px": 768,
            "display_number": 1,
        },
    ),
    Row(
        "ComputerUseTool.environment",
        "Anthropic has none",
        lambda: "environment" in af.tool_to("anthropic", SIZED),
        expected=False,
    ),
    Row(
        "ComputerUseTool.environment",
        "Google's Environment",
        lambda: told("google", SIZED),
        {"computer_use": {"environment": "ENVIRONMENT_BROWSER"}},
    ),
    Row(
        "ComputerUseTool.additional_properties",
        "Google's excluded functions",
        lambda: told(
            "google", af.ComputerUseTool(environment="browser", excluded_predefined_functions=["drag_and_drop"])
        ),
        {"computer_use": {"environment": "ENVIRONMENT_BROWSER", "excluded_predefined_functions": ["drag_and_drop"]}},
    ),
    Row(
        "ComputerUseTool",
        "Bedrock's ANTHROPIC.Computer",
        lambda: told("bedrock_agents", SIZED)[0]["parentActionGroupSignature"],
        "ANTHROPIC.Computer",
    ),
    Row(
        "ComputerUseTool",
        "of a version",
        lambda: af.tool_to("bedrock_agents", SIZED, version="computer_20241022")[0]["parentActionGroupSignatureParams"][
            "type"
        ],
        "computer_20241022",
    ),
    Row(
        "ComputerUseTool",
        "Converse's",
        lambda: told("bedrock", SIZED)["additionalModelRequestFields"]["tools"][0]["display_width_px"],
        1024,
    ),
    *(
        Row(
            "ComputerUseTool.additional_properties",
            f"display_number is Anthropic's, and not {provider}'s",
            lambda provider=provider: "display_number" in str(told(provider, NUMBERED)),
            expected=False,
        )
        for provider in ("openai", "google")
    ),
    *(
        Row(
            "ComputerUseTool.additional_properties",
            f"display_number goes to {provider}",
            lambda provider=provider: "display_number" in str(told(provider, NUMBERED)),
        )
        for provider in ANTHROPIC
    ),
    *(
        Row(
            "ComputerUseTool",
            f"with defaults, {provider}",
            lambda provider=provider: bool(told(provider, af.ComputerUseTool(environment="linux"))),
        )
        for provider in af.PROVIDERS
    ),
    *(
        Row(
            "ComputerUseTool.display_width",
            f"comes back from {provider}",
            lambda provider=provider: af.tool_from(provider, told(provider, SIZED)).display_width,
            None if provider == "google" else 1024,
        )
        for provider in af.PROVIDERS
    ),
    Row(
        "ComputerUseTool",
        "beside Amazon's other two",
        lambda: [
            group["parentActionGroupSignature"]
            for group in agents.declaration(Size(1024, 768), shell=True, editor="text_editor_20250728")
        ],
        ["ANTHROPIC.Computer", "ANTHROPIC.Bash", "ANTHROPIC.TextEditor"],
    ),
    Row("ShellTool", "OpenAI's setup", lambda: af.shell_tool_to("openai", af.ShellTool())["type"], "shell"),
    Row(
        "ShellTool",
        "Claude's setup",
        lambda: af.shell_tool_to("anthropic", af.ShellTool()),
        {"type": "bash_20250124", "name": "bash"},
    ),
    Row(
        "ShellTool",
        "Bedrock's ANTHROPIC.Bash",
        lambda: af.shell_tool_to("bedrock_agents", af.ShellTool())["parentActionGroupSignature"],
        "ANTHROPIC.Bash",
    ),
    Row(
        "ShellTool",
        "a function of Google's with a command",
        lambda: af.shell_tool_to("google", af.ShellTool())["parameters_json_schema"]["required"],
        ["command"],
    ),
    Row(
        "ShellTool.additional_properties",
        "OpenAI's environment",
        lambda: af.shell_tool_to("openai", af.ShellTool(environment={"type": "container_auto"}))["environment"],
        {"type": "container_auto"},
    ),
    Row(
        "ShellTool.additional_properties",
        "Anthropic's cache_control",
        lambda: af.shell_tool_to("anthropic", af.ShellTool(cache_control={"type": "ephemeral"}))["cache_control"],
        {"type": "ephemeral"},
    ),
]


@each([*RESULTS, *REFUSED, *TOOLS])
def test_fields_are_mapped_as_designed(row: Row) -> None:
    row.check()
