"""The table of how each provider says each action, in docs/providers.md. `PYTHONPATH=tests python -m providers` writes it.

Every cell is what `encode_call` makes of the action, and is decoded again: what does not come back as it was is marked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand import actions as a
from deskhand.errors import UnsupportedAction
from deskhand.providers import agent_framework, anthropic, bedrock, cua, google, inspect_ai, mcp, openai, osworld
from deskhand.providers.bedrock import agentcore
from deskhand.providers.values import ProviderCall
from providers import ended
from providers.strategies import EXAMPLES, VIEWPORT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.actions import Action

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
_BEGIN, _END = "<!-- providers -->\n", "<!-- /providers -->\n"

_BEYOND: Mapping[str, Action] = {
    "left_mouse_click, `modifiers`": a.LeftClick((400, 300), modifiers=["ctrl"]),
    "left_mouse_click where the pointer is": a.LeftClick(),
    "drag, several points": a.Drag([(10, 10), (90, 10), (90, 90)]),
    "left_mouse_double_click, another `button`": a.DoubleClick((400, 300), button="right"),
    "keypress, `repeat`": a.KeyPress(["Tab"], repeat=4),
    "mouse_down, any button": a.MouseDown("right", (5, 5)),
    "key_down": a.PressKeys(["shift"]),
    "zoom": a.Zoom((0, 0, 200, 100)),
    "cursor_position": a.CursorPosition(),
}
# What can be said where the whole action cannot, by the sign of the footnote that explains it.
_LESSER: Mapping[str, tuple[str, Action]] = {
    "left_mouse_down": ("¹", a.LeftMouseDown()),
    "left_mouse_up": ("¹", a.LeftMouseUp()),
    "drag": ("¹", a.Drag([(90, 10)])),
    "scroll": ("¹", a.Scroll(direction="down", magnitude=3)),
    "wait": ("²", a.Wait()),
}
FOOTNOTES = (
    "≈ read again as other actions that do the same · ¹ only from where the pointer is · ² without a duration\n\n"
    "Providers without a column use another provider's format. LangChain's tools are called as MCP's, and its chat models of "
    "OpenAI and Anthropic send what those providers send. Agent Framework's column is that of its design; its package sends "
    "what the providers send. `computer_use_preview` sends OpenAI's actions one at a time, and Bedrock's agents send "
    "Converse's as strings. `AIToolCall` and the `CUAction` family have the first seventeen rows, by these names.\n"
)

ROWS: Mapping[str, Action] = {**{action.type: action for action in EXAMPLES}, **_BEYOND}


def _names_of_pyautogui(source: str) -> str:
    calls = (line.partition("(")[0].removeprefix("pyautogui.") for line in source.splitlines())
    return ", ".join(dict.fromkeys(calls))


# How a provider's payload is made, read, and what of it names the action.
COLUMNS: Mapping[
    str, tuple[Callable[[ProviderCall], Any], Callable[..., ProviderCall], Callable[[Any], str], str | None]
] = {
    "OpenAI": (openai.encode_call, openai.decode, lambda payload: payload["actions"][0]["type"], None),
    "Anthropic": (anthropic.encode_call, anthropic.decode, lambda payload: payload["name"], None),
    "Google": (google.encode_call, google.decode, lambda payload: payload["name"], None),
    "Bedrock Converse": (
        bedrock.encode_call,
        bedrock.decode,
        lambda payload: payload["toolUse"]["input"]["action"],
        None,
    ),
    "AgentCore": (agentcore.encode_call, agentcore.decode, lambda payload: next(iter(payload["action"])), None),
    "Agent Framework": (
        agent_framework.encode_call,
        agent_framework.decode,
        lambda content: content.to_dict()["action"],
        None,
    ),
    "Cua": (cua.encode_call, cua.decode, lambda payload: payload["action"]["type"], None),
    "inspect": (inspect_ai.encode_call, inspect_ai.decode, lambda payload: payload["action"], None),
    "MCP": (mcp.encode_call, mcp.decode, lambda payload: payload["name"], None),
    "computer_13": (osworld.encode_call, osworld.decode, lambda payload: payload["action_type"], "computer_13"),
    "pyautogui": (osworld.encode_call, osworld.decode, _names_of_pyautogui, "pyautogui"),
}


def cell(title: str, column: str) -> str:
    """What one provider says for the action of a row."""
    said = _said(ROWS[title], column)
    if said is None and title in _LESSER:
        sign, lesser = _LESSER[title]
        said = _said(lesser, column)
        return "✗" if said is None else f"{said} {sign}"
    return said or "✗"


def _said(action: Action, column: str) -> str | None:
    encode, decode, word, name = COLUMNS[column]
    call = ProviderCall(steps=(action,), viewport=VIEWPORT, id="call_1", name=name)
    try:
        payload = encode(call)
    except UnsupportedAction:
        return None
    exact = decode(payload, VIEWPORT).steps == call.steps
    return f"`{word(payload)}`{'' if exact else ' ≈'}"


def table() -> str:
    """Markdown."""
    rows = [["", *COLUMNS], ["---"] * (len(COLUMNS) + 1)]
    rows += [[title, *(cell(title, column) for column in COLUMNS)] for title in ROWS]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + FOOTNOTES


def printed() -> str:
    """What the page has."""
    return PAGE.read_text().partition(_BEGIN)[2].partition(_END)[0]


def write() -> None:
    """Put the tables into the page."""
    for begin, made, end in ((_BEGIN, table(), _END), (ended.BEGIN, ended.table(), ended.END)):
        before, begun, rest = PAGE.read_text().partition(begin)
        _, ending, after = rest.partition(end)
        PAGE.write_text(before + begun + made + ending + after)
