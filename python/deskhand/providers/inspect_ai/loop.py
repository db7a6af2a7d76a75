"""Carries out inspect's computer calls on a desktop. It does not import inspect; arguments are decoded in `wire`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from deskhand.providers.inspect_ai.wire import decode, encode
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import JSONObject

PROVIDER = "inspect"
"""The name of these calls' provider in policies and audit logs."""

SIZE = (1366, 768)
"""The default size of pictures. inspect (0.3.285) declares it to Claude's single tools and maps Gemini's grid to it, whatever
the real size of the pictures is; with another size their points would be off."""


def run(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> list[JSONObject]:
    """Carry out the tool's arguments.

    Args:
        desktop: The desktop, or a model session on it.
        payload: The arguments.
        options: For a `ModelSession`, if none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Returns:
        The parts of the result; see `wire.encode`.

    Raises:
        ActionError: The call cannot be read, is not allowed or fails; tools of inspect report that only by raising.
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
    return encode(model_session.carry_out(decode(payload, model_session.viewport)))


async def run_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> list[JSONObject]:
    """Like `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    return await async_model_session(desktop, **options).run(lambda model_session: run(model_session, payload))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """Return the session itself, or make one on a desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
