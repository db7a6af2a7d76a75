"""The Model Context Protocol: a desktop as a server's tools, for any MCP client.

    $ deskhand mcp                            # over standard input and output; clients start it so
    >>> from deskhand.providers import mcp
    >>> server = mcp.server(desktop)          # the SDK's own low-level server, of mcp 1.x or 2.x

Each action is a tool, or with ``single=True`` one tool, `computer`, does them all. A result has the settled screenshot, and
structured content that says whether the screen changed and settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError, UnsupportedAction
from deskhand.providers.hand_over_tool import HAND_OVER
from deskhand.providers.mcp.wire import START, TOOL, decode, decode_result, encode, encode_call, tools
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop

__all__ = ["TOOL", "declare", "decode", "decode_result", "encode", "encode_call", "run", "run_async", "server"]


def declare(
    desktop: AnyDesktop,
    *,
    single: bool = False,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> list[dict[str, Any]]:
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
) -> dict[str, Any]:
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
) -> dict[str, Any]:
    """Like `run`, cancellable."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider="mcp"))
    return await model_session.run(lambda there: run(there, payload, programs=programs, hand_over=hand_over))


def server(
    desktop: AnyDesktop,
    *,
    single: bool = False,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> Server[Any]:
    """A server of the SDK, `mcp.server.lowlevel.Server`, with tools that drive a desktop.

    Args:
        desktop: The desktop, which the caller closes.
        single: One tool for all actions instead of one for each.
        programs: Also a tool, `start`, that starts programs: on a local desktop they run on this machine. The policy judges it.
        hand_over: Also a tool, `hand_over`, by which the model asks a person for help (`Desktop.hand_over`). A person must be
            able to answer: see `deskhand.watch`.
        options: As for `ModelSession`: size, settle, policy, ask.

    Raises:
        MissingExtra: The extra `mcp` is not installed.
    """
    from deskhand.providers.mcp.sdk import make_server  # noqa: PLC0415 # it needs the SDK

    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider="mcp"))
    return make_server(model_session, single=single, programs=programs, hand_over=hand_over)
