"""OpenAI's function `hand_over`: how it is declared and answered, without an SDK. The model asks a person for help by it.

This module owns the fields of that function. What it says is in `deskhand.providers.hand_over_tool`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from deskhand.errors import ActionError, shown
from deskhand.providers.hand_over_tool import DESCRIPTION, HAND_OVER, hand_over_schema
from deskhand.providers.openai.loop import async_model_session, model_session, plain
from deskhand.providers.values import ProviderCall, Result

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop, ModelSession, SessionOptions
    from deskhand.providers.values import JSONObject, JSONValue


def declare_hand_over() -> JSONObject:
    """The function `hand_over` as a request lists it: the model asks a person for help (`Desktop.hand_over`)."""
    return {
        "type": "function",
        "name": HAND_OVER,
        "description": DESCRIPTION,
        "parameters": hand_over_schema(),
        "strict": False,
    }


def run_hand_over(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Carry out a `function_call` of `hand_over`: ask, and wait as long as it says, until a person has helped or declined.

    Args:
        desktop: The model session of the computer's calls, or the desktop. A person must be able to answer: see
            `deskhand.watch`.
        payload: The item of the response: plain data or the SDK's object.
        options: As for `run`.

    Returns:
        Its `function_call_output`, with what the person did and a picture of the screen. If the call cannot be read, is not
        allowed or fails, the reason is in it.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    item = plain(payload)
    data = item if isinstance(item, Mapping) else {}
    call_id = data.get("call_id")
    if not isinstance(call_id, str):
        raise ActionError(f"a function_call needs a call_id for its answer, not {shown(call_id)}")
    result = hand_over(model_session(desktop, **options), data.get("arguments"), call_id)
    output: list[JSONValue] = [{"type": "input_text", "text": result.error or result.text or ""}]
    if result.error is None and result.picture is not None:
        output.append({"type": "input_image", "image_url": result.picture.url, "detail": "original"})
    return {"type": "function_call_output", "call_id": call_id, "output": output}


async def run_hand_over_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Like `run_hand_over`; cancelling it ends the wait, and the request stays open."""
    return await async_model_session(desktop, **options).run(lambda at: run_hand_over(at, payload))


def hand_over(at: ModelSession, arguments: object, call_id: str | None) -> Result:
    """The result of the function for its arguments, which are JSON in a string."""
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError as error:
        call = ProviderCall(steps=(), viewport=at.viewport, id=call_id, name=HAND_OVER)
        return Result(call=call, error=f"the arguments of {HAND_OVER} are not JSON: {error}")
    return at.hand_over(given, id=call_id)
