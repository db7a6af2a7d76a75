"""Converts Microsoft Agent Framework's contents and tools into each provider's payloads, and back. Pure.

The design of those contents has tables of fields. The packages of the providers know the real payloads, so they decode a
payload into a `ProviderCall`, and that becomes contents. Where a table and a payload differ, the payload wins:

* OpenAI: a drag has a `path`, and no `end_x`; a button may also be `wheel`, `back` or `forward`, and a key is in `keys`, not
  `key`. The tool `computer` has no sizes; `computer_use_preview` has. A result has no text and no error: the text goes
  into a message (`deskhand.providers.openai.note`).
* Anthropic: keys are in `text`, and the button is in the action's name. A drag has a `start_coordinate`.
* Google: points are in a grid of 1000x1000, and `coordinate` is in pixels of the picture; a drag ends at `destination_x` or
  `end_x`. A function may be several actions (a `type` that clicks before and presses Enter after), and so several contents.
* Amazon: Bedrock's agents (`returnControl`) and Converse carry Anthropic's input in other envelopes.

So that a payload survives the way there and back, fields that only its provider knows travel as the additional property
`provider`. They are not given to another provider, nor are additional properties that are unknown here.

This module owns the mapping of fields. It has no payload of a computer's action (see the providers) and no SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Size, Viewport
from deskhand.errors import ActionError, shown
from deskhand.providers.agent_framework.results import decode_result, encode
from deskhand.providers.agent_framework.safety import checks_of
from deskhand.providers.agent_framework.types import ComputerUseCallContent, ComputerUseTool
from deskhand.providers.agent_framework.unreadable import FROM, unreadable
from deskhand.providers.agent_framework.wire import decode, encode_calls
from deskhand.providers.anthropic import wire as anthropic
from deskhand.providers.anthropic.versions import LATEST, TOOLSET
from deskhand.providers.bedrock import agents, converse
from deskhand.providers.google import wire as google
from deskhand.providers.google.encoding import args_of
from deskhand.providers.google.functions import on_grid
from deskhand.providers.openai import wire as openai
from deskhand.providers.payload import expect_int, expect_object, expect_string, the_rest
from deskhand.providers.values import ProviderCall

if TYPE_CHECKING:
    from deskhand.providers.agent_framework.types import ComputerUseResultContent
    from deskhand.providers.agent_framework.wire import CallContents
    from deskhand.providers.values import Payload, Result

_CODECS: Mapping[str, Any] = MappingProxyType(
    {"openai": openai, "anthropic": anthropic, "google": google, "bedrock": converse, "bedrock_agents": agents}
)
PROVIDERS = tuple(_CODECS)
"""The providers whose payloads are converted: `bedrock` is Converse, `bedrock_agents` an input of a `returnControl`."""

DEFAULT_SIZE = Size(1280, 800)
"""The default size of a tool's pictures: that of a desktop that was launched without a size, as every provider sees it."""

VERSIONED = frozenset({"anthropic", "bedrock", "bedrock_agents"})
"""The providers whose calls are for a version of Anthropic's tool."""

_SEVERAL = 2

# Further fields that the SDKs' types allow on a tool; a tool's other additional properties belong to other providers.
_SINGLE = frozenset({"allowed_callers", "cache_control", "defer_loading", "display_number", "input_examples", "strict"})
_TOOLSET = frozenset({"cache_control", "configs"})
_GOOGLE = frozenset({"disabled_safety_policies", "enable_prompt_injection_detection", "excluded_predefined_functions"})
_AGENTS = frozenset({"display_number"})


def codec_of(provider: str) -> Any:
    """The module that converts a provider's payloads.

    Raises:
        ActionError: There is no such provider.
    """
    if not isinstance(provider, str) or provider not in _CODECS:
        raise ActionError(f"the providers are {', '.join(PROVIDERS)}, not {shown(provider)}")
    return _CODECS[provider]


# --- calls and results ---


def calls_from(
    provider: str, payload: object, viewport: Viewport, *, version: str | None = None, call_id: str | None = None
) -> list[ComputerUseCallContent]:
    """Convert a provider's call into contents: one for each of its actions.

    An action that cannot be read, or points out of the picture, becomes a content too. Its additional property `unreadable` is
    the reason, and carrying it out fails with that reason.

    Args:
        provider: One of `PROVIDERS`.
        payload: Its call, as plain data: a `computer_call`, a `tool_use`, a function call, a `toolUse`, or an input of a
            `returnControl`.
        viewport: The viewport of the picture that the model points into.
        version: The declared version of Anthropic's single tool, if the payload does not contain it.
        call_id: The contents' id if the payload has none; by default the name of the called tool.

    Raises:
        ActionError: It is not a call, or has no id or name, so it could not be answered.
    """
    codec_of(provider)
    try:
        contents = _contents(provider, payload, viewport, version, call_id)
    except ActionError as error:
        parts = _parts(provider, payload)
        if len(parts) < _SEVERAL:
            return [unreadable(provider, payload, version, call_id, error)]
        options = {"version": version, "call_id": call_id}
        return [content for part in parts for content in calls_from(provider, part, viewport, **options)]
    for content in contents:
        content.raw_representation = payload
    return contents


def _contents(
    provider: str, payload: object, viewport: Viewport, version: str | None, call_id: str | None
) -> list[ComputerUseCallContent]:
    call: ProviderCall = _CODECS[provider].decode(
        payload, viewport, **({"version": version} if provider in VERSIONED else {})
    )
    kept = {"of": provider, "name": call.name, "id": call.id, "extra": dict(call.extra)}
    number = call.id or call_id or call.name
    return encode_calls(replace(call, viewport=viewport, id=number, extra={FROM: kept}))


def _parts(provider: str, payload: object) -> list[dict[str, Any]]:
    """Split a call of several actions into calls of one action each; only OpenAI has such calls."""
    if provider != "openai" or not isinstance(payload, Mapping) or not isinstance(payload.get("actions"), list):
        return []
    return [{**payload, "actions": [action]} for action in payload["actions"]]


def calls_to(provider: str, contents: CallContents, viewport: Viewport, *, version: str | None = None) -> Payload:
    """Convert the contents of one call into the provider's call, the inverse of `calls_from`.

    Args:
        provider: One of `PROVIDERS`.
        contents: One content, or all contents of a call.
        viewport: The viewport of the picture that the contents point into.
        version: The version of Anthropic's tool, by default the one of the original call, or the newest single tool. For
            OpenAI, `computer_use_preview` gives a call with one `action`.

    Raises:
        UnsupportedAction: The provider cannot express the call.
        ActionError: The contents are malformed.
    """
    codec = codec_of(provider)
    try:
        payload: dict[str, Any] = codec.encode_call(_theirs(provider, decode(contents, viewport), version))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ActionError(f"a content's additional property for {provider} is malformed") from None
    return payload


def result_to(
    provider: str,
    result: ComputerUseResultContent | Mapping[str, object],
    contents: CallContents,
    viewport: Viewport,
    *,
    version: str | None = None,
    name: str | None = None,
) -> Payload:
    """Convert a result into the provider's answer; OpenAI's is only a picture, and `note_to` has the rest.

    Args:
        provider: One of `PROVIDERS`.
        result: The result of the call.
        contents: The contents of the call. For a call that could not be carried out the ids are enough.
        viewport: As for `calls_to`.
        version: As for `calls_to`.
        name: The name of Google's function, if neither the contents nor their action tell it.

    Raises:
        ActionError: A content is malformed, or the result is of another call; Google's function has no name.
        UnsupportedAction: The provider's answer has no place for something in the result.
    """
    codec = codec_of(provider)
    theirs = _result(provider, result, _asked(contents, viewport), version, name)
    try:
        payload: dict[str, Any] = codec.encode(theirs)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ActionError(f"a content's additional property for {provider} is malformed") from None
    return payload


def note_to(
    provider: str,
    result: ComputerUseResultContent | Mapping[str, object],
    contents: CallContents,
    viewport: Viewport,
) -> Payload | None:
    """The message to send after the provider's answer, with what that cannot carry; None if there is nothing.

    Args:
        provider: One of `PROVIDERS`; only OpenAI's answers have no place for an error, a text or the pointer.
        result: As for `result_to`.
        contents: As for `result_to`.
        viewport: As for `result_to`.

    Raises:
        ActionError: A content is malformed, or the result is of another call.
    """
    codec_of(provider)
    if provider != "openai":
        return None
    made: dict[str, Any] | None = openai.note(_result(provider, result, _asked(contents, viewport)))
    return made


def _result(
    provider: str,
    result: ComputerUseResultContent | Mapping[str, Any],
    call: ProviderCall,
    version: str | None = None,
    name: str | None = None,
) -> Result:
    theirs = _theirs(provider, call, version)
    if provider == "google" and theirs.name is None:
        theirs = replace(theirs, name=name or _function_of(call))
    return replace(decode_result(result, call), call=theirs)


def _asked(contents: CallContents, viewport: Viewport) -> ProviderCall:
    """The call, as far as an answer needs it: only its id and name if it cannot be carried out."""
    try:
        return decode(contents, viewport)
    except ActionError:
        if isinstance(contents, list | tuple) and not contents:
            raise
        first = ComputerUseCallContent.of(contents[0] if isinstance(contents, list | tuple) else contents)
        more = expect_object("additional_properties", first.additional_properties)
        kept = {FROM: more[FROM]} if FROM in more else {}
        number = expect_string("call_id", first.call_id)
        return ProviderCall(steps=(), viewport=viewport, id=number, safety=tuple(checks_of(more)), extra=kept)


def _function_of(call: ProviderCall) -> str:
    """The name of the Google function for a call.

    Raises:
        ActionError: There is none.
    """
    try:
        return args_of(None, call.steps, on_grid(call.viewport))[0]
    except ActionError:
        raise ActionError(
            f"Google's answer needs the name of the function, and {call.id} does not have it: give name="
        ) from None


def result_from(
    provider: str, payload: object, contents: CallContents, viewport: Viewport, *, version: str | None = None
) -> ComputerUseResultContent:
    """Convert a provider's answer into a result, the inverse of `result_to`.

    Raises:
        ActionError: As for `result_to`.
    """
    codec = codec_of(provider)
    call = _asked(contents, viewport)
    return encode(replace(codec.decode_result(payload, _theirs(provider, call, version)), call=call))


def _theirs(provider: str, call: ProviderCall, version: str | None) -> ProviderCall:
    """The call as its provider's package made it, or converted from another provider's."""
    kept = call.extra.get(FROM)
    if isinstance(kept, Mapping) and kept.get("of") == provider:
        name, number = kept.get("name"), kept.get("id")
        return replace(
            call,
            id=None if number is None else call.id,
            name=version or (None if name is None else expect_string("a call's name", name)),
            extra=expect_object("what only the provider knows", kept.get("extra")),
        )
    name = version or (LATEST if provider == "anthropic" else None)
    if provider != "bedrock_agents":
        return replace(call, name=name, extra={})
    return replace(call, id=None, name=name, extra={})


# --- tools ---


def tool_to(
    provider: str, tool: ComputerUseTool, *, version: str | None = None, preview: bool = False
) -> Payload | list[Payload]:
    """Declare the computer for a provider.

    Args:
        provider: One of `PROVIDERS`.
        tool: The computer. Without a size, `DEFAULT_SIZE` is declared to providers that need one: show pictures of that size.
            Each provider is given those additional properties that its SDK's types know.
        version: The version of Anthropic's tool; by default the newest single tool, which has sizes.
        preview: Declare OpenAI's `computer_use_preview`, which has sizes, instead of `computer`.

    Returns:
        The tool as a request lists it; for `bedrock` arguments of Converse, for `bedrock_agents` the `actionGroups`.

    Raises:
        ActionError: The tool has a width but no height, or the reverse; or the provider has no such version.
    """
    codec_of(provider)
    more = dict(tool.additional_properties)
    if provider == "google":
        # Google's environment is a browser or a desktop; it has no field for the operating system.
        made = google.declaration("browser" if tool.environment == "browser" else "desktop")
        return {"computer_use": {**_of(more, _GOOGLE), **made["computer_use"]}}
    if provider == "openai" and not preview:
        return {"type": openai.COMPUTER}
    if provider == "anthropic" and version == TOOLSET:
        return {**_of(more, _TOOLSET), "type": TOOLSET}
    size = _size(tool)
    if provider == "openai":
        environment = {"environment": tool.environment or "linux"}
        return {
            "type": openai.PREVIEW,
            "display_width": size.width,
            "display_height": size.height,
            **environment,
        }
    if provider == "bedrock_agents":
        groups: list[Any] = agents.declaration(size, version)
        parameters = {key: str(value) for key, value in _of(more, _AGENTS).items()}
        groups[0]["parentActionGroupSignatureParams"] |= parameters
        return groups
    declared: dict[str, Any] = converse.declaration(size, version or (LATEST if provider == "anthropic" else None))
    listed = declared["additionalModelRequestFields"]["tools"]
    listed[0] |= _of(more, _SINGLE | ({"enable_zoom"} & listed[0].keys()))
    # Converse and Anthropic declare the single tools in the same form.
    return dict(listed[0]) if provider == "anthropic" else declared


def _of(more: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in more.items() if key in known}


def _size(tool: ComputerUseTool) -> Size:
    if tool.display_width is None and tool.display_height is None:
        return DEFAULT_SIZE
    if tool.display_width is None or tool.display_height is None:
        raise ActionError("this provider needs the size of the pictures: give display_width and display_height")
    return Size(expect_int("display_width", tool.display_width), expect_int("display_height", tool.display_height))


def tool_from(provider: str, declaration: object) -> ComputerUseTool:
    """Convert a provider's declaration into a tool, the inverse of `tool_to`; other fields become additional properties.

    Raises:
        ActionError: It is not a declaration of a computer.
    """
    codec_of(provider)
    given: Any = declaration
    if provider == "bedrock":
        fields = expect_object("its fields", expect_object("a request", given).get("additionalModelRequestFields"))
        given = _first(fields.get("tools"))
    elif provider == "bedrock_agents":
        given = _first(given).get("parentActionGroupSignatureParams")
    elif provider == "google":
        given = expect_object("a tool", given).get("computer_use")
    tool = expect_object("a tool", given)
    suffix = "" if provider == "openai" else "_px"
    sizes = [tool.get(f"display_{side}{suffix}") for side in ("width", "height")]
    width, height = (None if size is None else _number(size) for size in sizes)
    environment = tool.get("environment")
    if provider == "google" and environment is not None:
        environment = expect_string("environment", environment).lower().removeprefix("environment_")
    known = (
        f"display_width{suffix}",
        f"display_height{suffix}",
        "environment",
        *(("name",) if provider != "google" else ()),
    )
    return ComputerUseTool(
        display_width=width,
        display_height=height,
        environment=None if environment is None else expect_string("environment", environment),
        additional_properties=the_rest(tool, *known),
    )


def _number(size: object) -> int:
    # Bedrock's agents get strings.
    if isinstance(size, str) and size.isascii() and size.isdecimal() and len(size) < 10:
        return int(size)
    return expect_int("a size", size)


def _first(items: object) -> Mapping[str, Any]:
    if not isinstance(items, list | tuple) or not items:
        raise ActionError(f"a list with a tool is needed, not {shown(items)}")
    return expect_object("a tool", items[0])
