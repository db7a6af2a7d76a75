"""google-genai's objects: the calls of a model's turn, and the content that answers them.

This module owns the code that needs the SDK's classes. It has no desktop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.genai import types
from pydantic import ValidationError

from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence


def calls_of(turn: object) -> list[types.FunctionCall]:
    """The function calls of a response, or of its content, in order; also of their JSON.

    Raises:
        ActionError: It is neither of these.
    """
    if isinstance(turn, Mapping):
        kind = types.Content if "parts" in turn else types.GenerateContentResponse
        try:
            turn = kind.model_validate(turn)
        except ValidationError as error:
            raise ActionError(f"a response or a content is needed, not {shown(turn)}: {error}") from None
    if not isinstance(turn, types.Content | types.GenerateContentResponse):
        raise ActionError(f"a response or a content is needed, not {shown(type(turn).__name__)}")
    candidates = getattr(turn, "candidates", None)
    content: object = candidates[0].content if candidates else turn
    return [part.function_call for part in getattr(content, "parts", None) or () if part.function_call]


def content_of(answers: Sequence[dict[str, Any]]) -> types.Content:
    """The content with the answers to the calls of a turn."""
    responses = [types.FunctionResponse.model_validate(answer) for answer in answers]
    return types.Content(role="user", parts=[types.Part(function_response=response) for response in responses])


def thin(contents: Sequence[object], keep: int) -> None:
    """See `deskhand.providers.google.thin`."""
    for content in reversed(contents):
        responses = [part.function_response for part in getattr(content, "parts", None) or () if part.function_response]
        shown = [response for response in responses if response.parts]
        if not shown:
            continue
        if keep > 0:
            keep -= 1
            continue
        for response in shown:
            response.parts = None
