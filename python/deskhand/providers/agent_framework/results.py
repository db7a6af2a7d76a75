"""Microsoft Agent Framework's `ComputerUseResultContent` as a result, and back. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.errors import ActionError, shown
from deskhand.providers.agent_framework.base import DataContent
from deskhand.providers.agent_framework.types import ComputerUseResultContent
from deskhand.providers.openai.safety_checks import check_payload, decode_check
from deskhand.providers.payload import expect_list, expect_object, expect_point, expect_string
from deskhand.providers.values import Picture, Result

if TYPE_CHECKING:
    from deskhand._core.geometry import Point
    from deskhand.providers.values import ProviderCall


def encode(result: Result) -> ComputerUseResultContent:
    """Encode the result of a call.

    Values without a field are in the additional properties: `acknowledged_safety_checks`, `cursor`, and `denied`.

    Raises:
        ActionError: The call has no id.
    """
    expect("encode: result", result, Result)
    if result.call.id is None:
        raise ActionError("a result needs the call's id")
    more: dict[str, Any] = {}
    texts = [] if result.text is None else [result.text]
    if result.cursor is not None:
        more["cursor"] = list(result.cursor)
        texts.insert(0, _pointer(result.cursor))
    if result.acknowledged:
        more["acknowledged_safety_checks"] = [check_payload(check) for check in result.acknowledged]
    if result.denied:
        more["denied"] = True
    picture = result.picture
    return ComputerUseResultContent(
        call_id=result.call.id,
        screenshot=None if picture is None else DataContent(data=picture.data, media_type=picture.media_type),
        text_output="\n".join(texts) if texts else None,
        error=result.error,
        additional_properties=more,
    )


def _pointer(point: Point) -> str:
    return f"The pointer is at {tuple(point)}."


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode a result's content.

    Args:
        payload: A `ComputerUseResultContent` or its plain form.
        call: The call that it answers.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    content = ComputerUseResultContent.of(payload)
    if content.call_id != call.id:
        raise ActionError(f"this is the result of {shown(content.call_id)}, not of {shown(call.id)}")
    more = expect_object("additional_properties", content.additional_properties)
    at, given = more.get("cursor"), more.get("acknowledged_safety_checks")
    cursor = None if at is None else expect_point("cursor", at)
    text = None if content.text_output is None else content.text_output.text
    if cursor is not None and text is not None:
        first, line, rest = text.partition("\n")
        if first == _pointer(cursor):
            text = rest if line else None
    shot = content.screenshot
    return Result(
        call=call,
        picture=None if shot is None else Picture(shot.data, shot.media_type),
        cursor=cursor,
        error=None if content.error is None else expect_string("error", content.error),
        denied=more.get("denied") is True,
        acknowledged=tuple(
            map(decode_check, expect_list("acknowledged_safety_checks", [] if given is None else given))
        ),
        text=text,
    )
