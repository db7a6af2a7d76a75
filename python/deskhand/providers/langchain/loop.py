"""Carries out LangChain's tool calls of our own actions on a desktop. It does not import the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deskhand.errors import ActionError, UnsupportedAction
from deskhand.providers.hand_over_tool import HAND_OVER
from deskhand.providers.langchain.wire import decode

if TYPE_CHECKING:
    from deskhand.providers.session import ModelSession
    from deskhand.providers.values import Result


def answered(model_session: ModelSession, payload: object, *, hand_over: bool = False) -> Result:
    """The result of a tool call; if it cannot be read, the reason.

    Args:
        model_session: The session.
        payload: The call.
        hand_over: Whether it may ask a person for help.

    Raises:
        DesktopLost: The desktop is gone.
    """
    try:
        call = decode(payload, model_session.viewport)
        if call.name == HAND_OVER and not hand_over:
            raise UnsupportedAction("this program", HAND_OVER, "it has not offered that (hand_over=True)")
    except ActionError as error:
        given = payload if isinstance(payload, Mapping) else {}
        number, name = given.get("id"), given.get("name")
        return model_session.unreadable(
            error, id=number if isinstance(number, str) else None, name=name if isinstance(name, str) else None
        )
    return model_session.carry_out(call)
