"""Carries out LangChain's tool calls of our own actions on a desktop. It does not import the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deskhand.errors import ActionError
from deskhand.providers.langchain.wire import decode

if TYPE_CHECKING:
    from deskhand.providers.session import ModelSession
    from deskhand.providers.values import Result


def answered(model_session: ModelSession, payload: object) -> Result:
    """The result of a tool call; if it cannot be read, the reason.

    Raises:
        DesktopLost: The desktop is gone.
    """
    try:
        call = decode(payload, model_session.viewport)
    except ActionError as error:
        given = payload if isinstance(payload, Mapping) else {}
        number, name = given.get("id"), given.get("name")
        return model_session.unreadable(
            error, id=number if isinstance(number, str) else None, name=name if isinstance(name, str) else None
        )
    return model_session.carry_out(call)
