"""Cua: the computer calls of its Agent SDK, and a computer for its agents.

    >>> from deskhand.providers import cua
    >>> agent = ComputerAgent(model="...", tools=[cua.tool(desktop)])      # of the package cua-agent
    >>> output = cua.run(desktop, {"type": "computer_call", "call_id": "1", "action": {"type": "screenshot"}})

The messages around the calls are in `deskhand.providers.cua.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from deskhand.errors import ActionError
from deskhand.providers.cua.handler import PROVIDER, ComputerHandler
from deskhand.providers.cua.wire import ScrollUnit, decode, decode_result, encode, encode_call
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import JSONObject

__all__ = [
    "ComputerHandler",
    "declare",
    "decode",
    "decode_result",
    "encode",
    "encode_call",
    "run",
    "run_async",
    "tool",
]


def tool(
    desktop: AnyDesktop, *, scroll_unit: ScrollUnit = "pixels", **options: Unpack[SessionOptions]
) -> ComputerHandler:
    """The desktop as a tool for Cua's agents; see `ComputerHandler`."""
    return ComputerHandler(desktop, scroll_unit=scroll_unit, **options)


def declare(
    desktop: AnyDesktop, *, scroll_unit: ScrollUnit = "pixels", **options: Unpack[SessionOptions]
) -> dict[str, object]:
    """The tool as Cua's agent lists it: `tool` itself, with its type."""
    return {"type": "computer", "computer": tool(desktop, scroll_unit=scroll_unit, **options)}


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    scroll_unit: ScrollUnit = "pixels",
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Carry out a `computer_call`.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        payload: The message.
        scroll_unit: See `decode`.
        options: As for `ModelSession`: size, settle, policy.

    Returns:
        A `computer_call_output`; if the call failed, a `function_call_output` with the reason.

    Raises:
        ActionError: The message has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    model_session.refuse_words("Cua")
    try:
        call = decode(payload, model_session.viewport, scroll_unit=scroll_unit)
    except ActionError as error:
        call_id = payload.get("call_id") if isinstance(payload, Mapping) else None
        if not isinstance(call_id, str):
            raise
        return encode(model_session.unreadable(error, id=call_id))
    return encode(model_session.carry_out(call))


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    scroll_unit: ScrollUnit = "pixels",
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Like `run`, cancellable."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    return await model_session.run(lambda there: run(there, payload, scroll_unit=scroll_unit))
