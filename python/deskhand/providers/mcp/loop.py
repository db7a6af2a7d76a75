"""The tools of a desktop for MCP: what is declared, and how a call is carried out. Nothing of the SDK is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from deskhand.errors import ActionError, UnsupportedAction
from deskhand.providers.hand_over_tool import HAND_OVER
from deskhand.providers.mcp.wire import START, decode, encode, tools
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import JSONObject


def declare(
    desktop: AnyDesktop,
    *,
    single: bool = False,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """The tools, as a server answers `tools/list`.

    Args:
        desktop: The desktop, or a model session on it.
        single: One tool for all actions instead of one for each.
        programs: Also a tool, `start`, that starts programs: on a local desktop they run on this machine.
        hand_over: Also a tool, `hand_over`, by which the model asks a person for help (`Desktop.hand_over`).
        options: As for `ModelSession`: size, settle, policy, ask.
    """
    return tools(
        AsyncModelSession.of(desktop, **options).viewport.model, single=single, programs=programs, hand_over=hand_over
    )


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Carry out a `tools/call`.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        payload: The call's parameters: `name` and `arguments`.
        programs: Whether the call may start a program.
        hand_over: Whether it may ask a person for help.
        options: As for `ModelSession`: size, settle, policy, ask.

    Returns:
        The result, with `isError` if it failed and the reason as its text.

    Raises:
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider="mcp"))
    try:
        call = decode(payload, model_session.viewport)
        if call.name == START and not programs:
            raise UnsupportedAction(
                "this server", START, "only its owner starts programs (--start), unless clients may (--programs)"
            )
        if call.name == HAND_OVER and not hand_over:
            raise UnsupportedAction("this server", HAND_OVER, "its owner has not offered that (hand_over=True)")
    except ActionError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return encode(model_session.carry_out(call))


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Like `run`, cancellable."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider="mcp"))
    return await model_session.run(lambda there: run(there, payload, programs=programs, hand_over=hand_over))
