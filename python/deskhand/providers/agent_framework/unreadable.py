"""Contents for providers' calls that cannot be read, except for what an answer needs. Pure.

This module knows where each payload has its id and its name. It has no actions and no SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from deskhand._core.geometry import Viewport
from deskhand.errors import ActionError
from deskhand.providers.agent_framework.types import ComputerUseCallContent
from deskhand.providers.agent_framework.wire import UNREADABLE
from deskhand.providers.anthropic import wire as anthropic
from deskhand.providers.anthropic.versions import LATEST, TOOLSET, rules_of
from deskhand.providers.bedrock import agents, converse
from deskhand.providers.google import wire as google
from deskhand.providers.google.functions import GRID
from deskhand.providers.openai import wire as openai
from deskhand.providers.payload import expect_object, expect_string

FROM = "provider"
"""The additional property of a content with the fields that only its provider knows."""


def unreadable(
    provider: str, payload: object, version: str | None, call_id: str | None, error: ActionError
) -> ComputerUseCallContent:
    """Make a content of a call's id and name, if nothing else can be read.

    Raises:
        ActionError: These cannot be read either.
    """
    number, name, action, extra = _READERS[provider](payload, version)
    kept = {"of": provider, "name": name, "id": number, "extra": extra}
    asked = extra.get("actionInvocationType", "RESULT")
    checks = {} if asked == "RESULT" else {"pending_safety_checks": [{"id": asked, "code": asked}]}
    return ComputerUseCallContent(
        call_id=number or call_id or name,
        action=action if isinstance(action, str) else UNREADABLE,
        additional_properties={FROM: kept, UNREADABLE: str(error), **checks},
        raw_representation=payload,
    )


_Read: TypeAlias = tuple[str | None, str, object, dict[str, Any]]


def _ours(payload: Mapping[str, Any], is_computer: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    if not is_computer(payload):
        raise ActionError("it is no call of the computer")
    return payload


def _openai_call(payload: object, _: str | None) -> _Read:
    item = _ours(expect_object("a computer_call", payload), lambda item: item.get("type") == "computer_call")
    batch, single = item.get("actions"), item.get("action")
    first = batch[0] if isinstance(batch, list) and batch else single
    kind = first.get("type") if isinstance(first, Mapping) else None
    return expect_string("call_id", item.get("call_id")), openai.PREVIEW if batch is None else openai.COMPUTER, kind, {}


def _anthropic_call(payload: object, version: str | None) -> _Read:
    block = _ours(expect_object("a tool_use", payload), anthropic.is_computer)
    number = anthropic.block_id(block)
    if block.get("toolset_name") is not None:
        return number, TOOLSET, block.get("name"), {}
    return number, rules_of(version or LATEST).type, _action_in(block.get("input")), {}


def _google_call(payload: object, _: str | None) -> _Read:
    call = google.unread(payload, Viewport(GRID, GRID))
    return call.id, expect_string("the name of a function call", call.name), call.name, dict(call.extra)


def _converse_call(payload: object, version: str | None) -> _Read:
    block = _ours(converse.tool_of(payload), converse.is_computer)
    return converse.block_id(block), converse.single(version).type, _action_in(block.get("input")), {}


def _agents_call(payload: object, version: str | None) -> _Read:
    function = _ours(agents.function_of(payload), agents.is_computer)
    given = function.get("parameters")
    named = (
        {item["name"]: item.get("value") for item in given if _is_parameter(item)} if isinstance(given, list) else {}
    )
    extra = {
        key: function[key]
        for key in ("actionGroup", "agentId", "actionInvocationType")
        if isinstance(function.get(key), str)
    }
    return None, converse.single(version).type, named.get("action"), extra


def _is_parameter(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("name"), str)


def _action_in(given: object) -> object:
    return given.get("action") if isinstance(given, Mapping) else None


_READERS: Mapping[str, Callable[[object, str | None], _Read]] = {
    "openai": _openai_call,
    "anthropic": _anthropic_call,
    "google": _google_call,
    "bedrock": _converse_call,
    "bedrock_agents": _agents_call,
}
