"""The messages of chat completions that a turn of a conversation adds to its history. Pure.

No SDK is imported here, and what is removed from a history is decided elsewhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deskhand.providers.values import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.execution.types import RequestFunctionCall


def messages_of(said: str, calls: Sequence[RequestFunctionCall]) -> list[dict[str, Any]]:
    """The turn's text, its calls, and their results, as messages.

    A desktop's pictures follow the outputs in a message of the user, because an output can only be text.

    Args:
        said: The text of the response, without thinking.
        calls: Its calls, after they were carried out.
    """
    made: dict[str, Any] = {"role": "assistant", "content": said or None}
    if calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ]
    outputs = [{"role": "tool", "tool_call_id": call.id, "content": _output_text(call)} for call in calls]
    return [made, *outputs, *_shown(calls)]


def _output_text(call: RequestFunctionCall) -> str:
    if call.error is not None:
        return call.error
    result = call.result
    if isinstance(result, Result):
        said = [] if result.text is None else [result.text]
        return "\n".join([*([f"X={result.cursor.x},Y={result.cursor.y}"] if result.cursor else []), *said]) or "done"
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(result)


def _shown(calls: Sequence[RequestFunctionCall]) -> list[dict[str, Any]]:
    results = [
        (call, call.result) for call in calls if isinstance(call.result, Result) and call.result.picture is not None
    ]
    content: list[dict[str, Any]] = []
    for call, result in results:
        assert result.picture is not None  # noqa: S101 # for mypy
        content.append({"type": "text", "text": f"What {call.name} ({call.id}) shows:"})
        content.append({"type": "image_url", "image_url": {"url": result.picture.url}})
    return [{"role": "user", "content": content}] if content else []
