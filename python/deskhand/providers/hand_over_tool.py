"""The tool `hand_over`, by which a model asks a person for help, for all providers.

This module owns what it is called, takes and answers. What must never appear here: a provider's payload, a desktop.

No provider's package offers it by default: the program that declares it lets the model ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand.errors import ActionError, shown
from deskhand.providers.payload import expect_float, expect_string
from deskhand.providers.values import MOST_PATIENCE, PATIENCE, HandOver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.operations import Holder

HAND_OVER = "hand_over"
"""The name of the tool."""

DESCRIPTION = (
    "Ask a person for help with what you cannot do or must not decide: a sign-in, a CAPTCHA, a payment, a choice. The person "
    "takes control of the desktop and hands it back, or declines; the answer has their note and a fresh screenshot. If no one "
    "answers in time, the answer says so, and the request stays open: call this with the same reason to wait longer."
)
"""What the tool does, for a model."""

RequestState: TypeAlias = Literal["ended", "open", "unread"]
"""The state of a request: it has ended, no one has answered it yet, or it was not made: there was a note to read first."""

_ENDED = "The request for help has ended."
_UNREAD = "That was before this request, which was not made: call hand_over again if help is still needed."
_UNANSWERED = (
    "No one has answered the request for help in {wait:g} s. It stays open. Go on without help where you "
    "can, or call hand_over with the same reason to wait longer."
)
_HELD = (
    "{by} has control of this desktop, and has not handed it back in {wait:g} s. Your input is refused until then. Call "
    "hand_over with the same reason to wait longer."
)


def hand_over_schema() -> dict[str, Any]:
    """The JSON schema of its arguments."""
    return {
        "type": "object",
        "properties": {
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "What help is needed for, in a sentence that says to a person what to do.",
            },
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": MOST_PATIENCE,
                "default": PATIENCE,
                "description": "How many seconds to wait for the person; 0 asks and goes on.",
            },
        },
        "required": ["reason"],
        "additionalProperties": False,
    }


def decode_hand_over(arguments: Mapping[str, Any]) -> HandOver:
    """What a call of the tool asks for.

    Raises:
        ActionError: There is no such argument, or one is wrong or missing.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    unknown = sorted(given.keys() - {"reason", "wait"})
    if unknown:
        raise ActionError(f"{HAND_OVER} has no {', '.join(map(shown, unknown))}: it takes reason and wait")
    reason = expect_string(f"{HAND_OVER}: reason", given.get("reason"))
    return HandOver(reason, expect_float(f"{HAND_OVER}: wait", given.get("wait", PATIENCE)))


def encode_hand_over(step: HandOver) -> dict[str, Any]:
    """The arguments that ask for it, the inverse of `decode_hand_over`."""
    return {"reason": step.reason, "wait": step.wait}


def answer(request: HandOver, state: RequestState, holder: Holder | None, notes: tuple[str, ...]) -> tuple[str, ...]:
    """What the model reads, line by line.

    Args:
        request: What it asked.
        state: The state of that request.
        holder: Who has control now; None if no one has.
        notes: What there is to say of persons who had control or declined.
    """
    if state == "unread":
        return (*notes, _UNREAD)
    if state == "ended":
        # The notes say how.
        return notes or (_ENDED,)
    if holder is None:
        return (*notes, _UNANSWERED.format(wait=request.wait))
    return (*notes, _HELD.format(by=holder.by, wait=request.wait))
