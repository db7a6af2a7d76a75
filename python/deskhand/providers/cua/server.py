"""Cua's computer-server: its protocol over HTTP and WebSocket, so that its clients can drive a desktop.

This module owns the routes, the frames and the check of the key. What a command does is in `commands.py`.

    POST /cmd       {"command": ..., "params": {...}}  ->  text/plain, `data: {"success": true, ...}`
    WS   /ws        the same objects, one answer for each, in order
    GET  /status, /commands
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.errors import DeskhandError, shown
from deskhand.providers.cua.commands import ALIASES, Commands
from deskhand.providers.http_server import FOR_WEB_PAGES, UNKNOWN_KEY, HttpServer, error_text, log, parsed

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from deskhand.aio.desktop import AsyncDesktop

# Requests are commands; a chunk of a file is the largest of them.
_LARGEST_REQUEST = 16 << 20


def application(desktop: AsyncDesktop, *, api_key: str, programs: bool = False) -> Starlette:
    """The ASGI application that serves a desktop.

    Args:
        desktop: The desktop; it stays open when the application ends. Its policy judges the clients' commands: without a policy
            they may do everything.
        api_key: The key that clients must send: in the header `X-API-Key`, or in a WebSocket's first message.
        programs: Whether clients may start programs; on a local desktop they run on this machine.

    Raises:
        MissingExtra: The extra `cua` is not installed.
        ActionError: The key is empty.
    """
    server = _Server(desktop, api_key, programs=programs)
    routing = load("starlette.routing", "cua")
    routes = [
        routing.Route("/status", server.status),
        routing.Route("/commands", server.commands),
        routing.Route("/cmd", server.cmd, methods=["POST"]),
        routing.WebSocketRoute("/ws", server.ws),
    ]
    return server.application(routes)


class _Server(HttpServer):
    """The handlers of the routes."""

    def __init__(self, desktop: AsyncDesktop, api_key: str, *, programs: bool) -> None:
        super().__init__(desktop, api_key, extra="cua")
        self._programs = programs
        self._disconnected: type[Exception] = load("starlette.websockets", "cua").WebSocketDisconnect

    async def status(self, _: Any) -> Any:
        return self.responses.JSONResponse({"status": "ok", "os_type": "linux", "features": []})

    async def commands(self, _: Any) -> Any:
        return self.responses.JSONResponse(Commands.catalogue())

    async def cmd(self, request: Any) -> Any:
        if "origin" in request.headers:
            return self.refusal(403, FOR_WEB_PAGES)
        if not self.admits(request.headers.get("x-api-key")):
            return self.refusal(401, UNKNOWN_KEY)
        message = parsed(await self.body(request, _LARGEST_REQUEST))
        command = message.get("command") if isinstance(message, dict) else None
        if not isinstance(command, str):
            return self.refusal(400, "Invalid JSON body: an object with a command is needed")
        if ALIASES.get(command, command) not in Commands.listed():
            return self.refusal(400, f"Unknown command: {command[:80]}")
        return self.responses.PlainTextResponse(f"data: {await self._answer(message)}\n\n")

    async def ws(self, socket: Any) -> None:
        if "origin" in socket.headers:
            await socket.close(1008, FOR_WEB_PAGES)
            return
        await socket.accept()
        with contextlib.suppress(self._disconnected):
            admitted = self.admits(socket.headers.get("x-api-key"))
            while True:
                message = parsed(await self._received(socket))
                if isinstance(message, dict) and message.get("command") == "authenticate":
                    params = message.get("params")
                    admitted = self.admits(params.get("api_key") if isinstance(params, dict) else None)
                    if admitted:
                        await socket.send_text(json.dumps({"success": True, "message": "Authentication successful"}))
                        continue
                if not admitted:
                    await socket.send_text(_failure(UNKNOWN_KEY))
                    await socket.close(1008)
                    return
                await socket.send_text(await self._answer(message))

    async def _received(self, socket: Any) -> str | bytes:
        """The next message; a binary one is JSON as well."""
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise self._disconnected
        text: str | bytes | None = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    async def _answer(self, message: Any) -> str:
        """The protocol's answer to a command, also to one that failed."""
        if not isinstance(message, dict):
            return _failure("Invalid JSON: an object with a command is needed")
        command, params = message.get("command"), message.get("params")
        try:
            result = await self.desktop.run(
                lambda there: Commands(there, programs=self._programs).answer(command, params)
            )
            return json.dumps({"success": True, **result})
        except Exception as error:  # noqa: BLE001 # whatever it is, its client gets an answer, and the next one too
            if not isinstance(error, DeskhandError):
                log.exception("the command %s failed", shown(command))
            return _failure(error_text(error))


def _failure(why: str) -> str:
    return json.dumps({"success": False, "error": why})
