"""The server of the MCP SDK, in both of its major versions, and its two transports.

Version 2 takes the handlers as arguments and has its types in a package of their own; version 1 registers them. Both have the
low-level server, which accepts our schemas unchanged. What a tool does is elsewhere.
"""

from __future__ import annotations

import contextlib
import hmac
from typing import TYPE_CHECKING, Any, cast

from deskhand._core.extras import load
from deskhand._native import __version__
from deskhand.errors import ActionError
from deskhand.providers.mcp.loop import run_async
from deskhand.providers.mcp.wire import tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.server.lowlevel import Server
    from starlette.applications import Starlette

    from deskhand.providers.session import AsyncModelSession

_NAME = "deskhand"


def make_server(model_session: AsyncModelSession, *, single: bool, programs: bool, hand_over: bool) -> Server[object]:
    """Make a server with a session's actions as its tools, and those beside them; see `mcp.server`.

    Raises:
        MissingExtra: The extra `mcp` is not installed.
    """
    lowlevel = load("mcp.server.lowlevel", "mcp")
    types = load("mcp.types", "mcp")

    def listed() -> Any:
        declared = tools(model_session.viewport.model, single=single, programs=programs, hand_over=hand_over)
        return [types.Tool.model_validate(tool) for tool in declared]

    async def called(name: str, arguments: dict[str, Any] | None) -> Any:
        call = {"name": name, "arguments": arguments}
        result = await run_async(model_session, call, programs=programs, hand_over=hand_over)
        return types.CallToolResult.model_validate(result)

    if hasattr(lowlevel.Server, "call_tool"):
        server = lowlevel.Server(_NAME, version=__version__)

        async def list_tools() -> Any:
            return listed()

        server.list_tools()(list_tools)
        # The actions report wrong arguments in words that help a model.
        server.call_tool(validate_input=False)(called)
        return cast("Server[object]", server)

    async def on_list_tools(_: Any, __: Any) -> Any:
        return types.ListToolsResult(tools=listed())

    async def on_call_tool(_: Any, params: Any) -> Any:
        return await called(params.name, params.arguments)

    server = lowlevel.Server(_NAME, version=__version__, on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    return cast("Server[object]", server)


async def serve_stdio(server: Server[object]) -> None:
    """Serve over standard input and output until the input ends.

    Raises:
        MissingExtra: The extra `mcp` is not installed.
    """
    stdio = load("mcp.server.stdio", "mcp")
    async with stdio.stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def http_application(server: Server[object], *, hosts: list[str], key: str) -> Starlette:
    """The ASGI application for streamable HTTP, at `/mcp`.

    Args:
        server: The result of `make_server`.
        hosts: The names under which clients may reach it, with ports (`127.0.0.1:8000`). Requests under another name are
            refused, such as those of a web page whose domain resolves to this machine.
        key: The key that clients must send, as `Authorization: Bearer KEY`.

    Raises:
        MissingExtra: The extra `mcp` is not installed.
        ActionError: The key is empty.
    """
    if not key:
        raise ActionError("the key for clients is empty: every program on this machine could connect")
    responses = load("starlette.responses", "mcp")
    managers = load("mcp.server.streamable_http_manager", "mcp")
    security = load("mcp.server.transport_security", "mcp")
    applications = load("starlette.applications", "mcp")
    routing = load("starlette.routing", "mcp")
    settings = security.TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
    manager = managers.StreamableHTTPSessionManager(app=server, security_settings=settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    expected = f"Bearer {key}".encode()

    # Starlette takes an object as an ASGI application, for all methods, and a function as one of its own kind.
    class Endpoint:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(shown, expected):
                words = "send the key that the server printed: Authorization: Bearer KEY"
                refusal = responses.PlainTextResponse(words, 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
            await manager.handle_request(scope, receive, send)

    # Clients that follow no redirection find either.
    routes = [routing.Route(path, Endpoint()) for path in ("/mcp", "/mcp/")]
    application = applications.Starlette(routes=routes, lifespan=lifespan)
    return cast("Starlette", application)
