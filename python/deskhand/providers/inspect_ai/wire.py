"""Decodes the arguments of inspect's `computer` tool, encodes results, and the inverses of both. Pure.

They are Anthropic's flat inputs (`deskhand.providers.anthropic.inputs`), into which inspect converts the calls of every native
tool, and some more: `back_click`, `forward_click`, `open_web_browser`, `navigate`, a `type` that clicks before and presses
Return after, and `actions`, a list of inputs. Google's `search` becomes a `navigate` without a URL.

This module owns those arguments. It has no inspect and no desktop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand import actions as act
from deskhand._core.arguments import expect
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.anthropic import inputs
from deskhand.providers.anthropic.versions import TOOLSET, rules_of
from deskhand.providers.payload import (
    expect_list,
    expect_object,
    expect_point,
    expect_string,
    picture_of_url,
    refuse_more,
)
from deskhand.providers.values import Browse, ProviderCall, Result, expect_call, one_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Viewport
    from deskhand.providers.values import JSONObject, Step

TOOL = "computer"

_RULES = replace(rules_of(TOOLSET), type="inspect's computer", whole_seconds=False, several_chords=True, longest=300)
_SIDES = {"back_click": act.BackClick, "forward_click": act.ForwardClick}
# Actions that Anthropic's tool does not have, or has with fewer arguments.
_OWN = frozenset({*_SIDES, "open_web_browser", "navigate", "type"})
_ENTER = act.KeyPress(["Return"])
# Arguments that only some actions have.
_ARGUMENTS = (
    "coordinate", "duration", "region", "scroll_amount", "scroll_direction", "start_coordinate", "text", "repeat",
    "press_enter",
)  # fmt: skip


def decode(payload: object, viewport: Viewport, *, id: str | None = None) -> ProviderCall:
    """Decode the tool's arguments.

    Args:
        payload: The arguments; a None counts as missing.
        viewport: The viewport of the picture that the model was sent last.
        id: The id of the tool's call.

    Raises:
        ActionError: They are malformed or empty, or point outside of the picture.
    """
    given = {key: value for key, value in expect_object("the arguments", payload).items() if value is not None}
    several = given.pop("actions", None)
    if several is None:
        steps, rest = _one(given, viewport)
        return ProviderCall(steps=steps, viewport=viewport, id=id, name=TOOL, extra=rest)
    if refused := [name for name in ("action", *_ARGUMENTS) if name in given]:
        raise ActionError(f"with actions no other argument is allowed, such as {', '.join(refused)}")
    read = [_one(expect_object("one of actions", each), viewport) for each in expect_list("actions", several)]
    if not read:
        raise ActionError("an action is needed, or a list of at least one")
    extra = dict(given)
    if any(rest for _, rest in read):
        extra["actions"] = [rest for _, rest in read]
    return ProviderCall(
        steps=tuple(step for steps, _ in read for step in steps), viewport=viewport, id=id, name=TOOL, extra=extra
    )


def _one(payload: Mapping[str, Any], viewport: Viewport) -> tuple[tuple[Step, ...], dict[str, Any]]:
    given = {key: value for key, value in payload.items() if value is not None}
    name = expect_string("an action", given.pop("action", None))
    if name not in _OWN:
        return inputs.read(name, given, viewport, _RULES)
    if name in _SIDES:
        at, held = given.pop("coordinate", None), given.pop("text", None)
        # Like the other clicks, which Anthropic's tool has.
        (click,), rest = inputs.read("left_click", {**given, "coordinate": at, "text": held}, viewport, _RULES)
        assert isinstance(click, act.LeftClick)  # noqa: S101 # for mypy
        return (_SIDES[name](click.xy, modifiers=click.modifiers),), rest
    if name in ("open_web_browser", "navigate"):
        url = expect_string("text", given.pop("text", None)) if name == "navigate" else None
        if refused := [key for key in _ARGUMENTS if key in given]:
            raise ActionError(f"{name} takes no {', '.join(refused)}")
        refuse_more(_RULES.type, name, given)
        return (Browse("open") if url is None else Browse("navigate", url) if url else Browse("search"),), given
    at, enter = given.pop("coordinate", None), given.pop("press_enter", False)
    if not isinstance(enter, bool):
        raise ActionError(f"press_enter is true or false, not {shown(enter)}")
    steps, rest = inputs.read("type", given, viewport, _RULES)
    click_first = () if at is None else (act.LeftClick(viewport.to_screen(expect_point("coordinate", at))),)
    return (*click_first, *steps, *((_ENTER,) if enter else ())), rest


def encode_call(call: ProviderCall) -> JSONObject:
    """Encode a call as the tool's arguments: one action, or `actions`.

    Raises:
        UnsupportedAction: They cannot express it.
    """
    call = expect_call("encode_call", call).at_points("Inspect's computer tool")
    written = [_written(step, call.viewport) for step in call.steps]
    if not written:
        raise UnsupportedAction("inspect's computer", "no action at all")
    extra: dict[str, Any] = dict(call.extra)
    rests = extra.pop("actions", None)
    if len(written) == 1 and rests is None:
        return {**extra, **written[0]}
    if isinstance(rests, list) and len(rests) == len(written):
        written = [{**rest, **each} for rest, each in zip(rests, written, strict=True)]
    return {**extra, "actions": written}


def _written(step: Step, viewport: Viewport) -> dict[str, Any]:
    match step:
        case act.BackClick() | act.ForwardClick():
            _, fields = inputs.write([act.LeftClick(step.xy, modifiers=step.modifiers)], viewport, _RULES)
            return {"action": step.type, **fields}
        case Browse(what="open"):
            return {"action": "open_web_browser"}
        case Browse(what="navigate" | "search", url=url):
            return {"action": "navigate", "text": url or ""}
    name, fields = inputs.write([step], viewport, _RULES)
    return {"action": name, **fields}


def encode(result: Result) -> list[JSONObject]:
    """The parts of the tool's result, in the form of inspect's `ContentText` and `ContentImage`; not for an error.

    Raises:
        ActionError: The call failed: tools of inspect report that by raising.
    """
    expect("encode: result", result, Result)
    if result.error is not None:
        raise ActionError(result.error)
    texts = [] if result.text is None else [result.text]
    if result.cursor is not None:
        texts.insert(0, f"X={result.cursor.x},Y={result.cursor.y}")
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if result.picture is not None:
        parts.append({"type": "image", "image": result.picture.url})
    return parts or [{"type": "text", "text": "OK"}]


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the parts of a result.

    Raises:
        ActionError: They are malformed.
    """
    texts: list[str] = []
    pictures = []
    for each in expect_list("a result", payload):
        part = expect_object("a part of a result", each)
        if part.get("type") == "image":
            pictures.append(picture_of_url(part.get("image")))
        else:
            texts.append(expect_string("a text", part.get("text")))
    return replace(_outcome_of(call, texts), picture=one_picture(pictures))


def _outcome_of(call: ProviderCall, texts: Sequence[str]) -> Result:
    rest = list(texts)
    cursor = None
    if rest and call.steps and isinstance(call.steps[-1], act.CursorPosition):
        x, comma, y = rest[0].removeprefix("X=").partition(",Y=")
        if comma and x.isdecimal() and y.isdecimal() and len(rest[0]) < 30:
            cursor = expect_point("the pointer", [int(x), int(y)])
            rest.pop(0)
    text = "\n".join(rest) if rest and rest != ["OK"] else None
    return Result(call=call, cursor=cursor, text=text)
