"""The Model Context Protocol: a desktop as a server's tools, for any MCP client.

    $ deskhand mcp                                      # over standard input and output; clients start it so

With the SDK (`pip install 'deskhand[mcp]'`), `server` makes its own low-level server, of mcp 1.x or 2.x, for any transport:

    from mcp.server.stdio import stdio_server
    from deskhand.providers import mcp as deskhand_mcp

    server = deskhand_mcp.server(desktop)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

Each action is a tool, or with ``single=True`` one tool, `computer`, does them all. A result has the settled screenshot, and
structured content that says whether the screen changed and settled.

This module owns the public names. It does not import the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from deskhand.providers.mcp.loop import declare, run, run_async
from deskhand.providers.mcp.wire import TOOL, decode, decode_result, encode, encode_call
from deskhand.providers.session import AsyncModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from deskhand.providers.session import AnyDesktop

__all__ = ["TOOL", "declare", "decode", "decode_result", "encode", "encode_call", "run", "run_async", "server"]


def server(
    desktop: AnyDesktop,
    *,
    single: bool = False,
    programs: bool = False,
    hand_over: bool = False,
    **options: Unpack[SessionOptions],
) -> Server[object]:
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
