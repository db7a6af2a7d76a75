"""inspect's computer calls carried out at a desktop. What must never appear here: inspect, an argument's meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand.providers.inspect_ai.wire import decode, encode
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop

__all__ = ["PROVIDER", "SIZE", "async_model_session", "run", "run_async"]

PROVIDER = "inspect"
"""What policies and their logs are told of whose calls these are."""

SIZE = (1366, 768)
"""How large pictures are unless said otherwise. It is what inspect (0.3.285) tells Claude's single tools, and what it turns
Gemini's grid into, whatever the pictures are: in others, their points would be off."""


def run(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> list[dict[str, Any]]:
    """Carry out the tool's arguments.

    Args:
        desktop: The desktop, or a model session on it.
        payload: The arguments.
        options: Of a `ModelSession`, where none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Returns:
        The parts of the result; see `wire.encode`.

    Raises:
        ActionError: It could not be read, was not allowed or failed; inspect's tools have no other way to say so.
        DesktopLost: There is no desktop any more.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
    return encode(model_session.carry_out(decode(payload, model_session.viewport)))


async def run_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> list[dict[str, Any]]:
    """As `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    return await async_model_session(desktop, **options).run(lambda model_session: run(model_session, payload))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """The session itself, or one on a desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
