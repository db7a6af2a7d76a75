"""Cua's computer-server: its protocol over HTTP and WebSocket, so that its clients drive a desktop.

This module owns the routes, the frames and who may come in. What must never appear here: what a command does (`commands.py`).

    POST /cmd       {"command": ..., "params": {...}}  ->  text/plain, `data: {"success": true, ...}`
    WS   /ws        the same objects, one answer for each, in order
    GET  /status, /commands
"""

from __future__ import annotations

import contextlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from deskhand.errors import ActionError, DeskhandError
from deskhand.providers.extras import load
from deskhand.serve.commands import ALIASES, Commands

if TYPE_CHECKING:
    from deskhand.aio import AsyncDesktop

__all__ = ["application"]

# A screenshot goes out, but what comes in is a command; a file's chunk is the largest of them.
_LARGEST_REQUEST = 16 << 20
# A page in this machine's browser could reach a server on loopback; browsers say so, and no client of this protocol is one.
_REFUSED = "this is not for web pages"
_UNKNOWN = "Authentication failed"


def application(desktop: AsyncDesktop, *, api_key: str, programs: bool = False) -> Any:
    """The ASGI application that serves a desktop.

    Args:
        desktop: The desktop; it stays open when the application ends. Its policy judges what clients ask for: without one they
            may do everything.
        api_key: What clients must show: as the header `X-API-Key`, or in a WebSocket's first message.
        programs: Whether clients may start programs; on a desktop of this machine they are this machine's.

    Raises:
        MissingExtra: The extra `cua` is not installed.
        ActionError: The key is empty.
    """
    if not api_key:
        raise ActionError("the key that clients must show is empty: every program of this machine could come in")
    routing = load("starlette.routing", "cua")
    server = _Server(desktop, api_key, programs=programs)
    routes = [
        routing.Route("/status", server.status),
        routing.Route("/commands", server.commands),
        routing.Route("/cmd", server.cmd, methods=["POST"]),
        routing.WebSocketRoute("/ws", server.ws),
    ]
    return load("starlette.applications", "cua").Starlette(routes=routes)


class _Server:
    """What the routes answer."""

    def __init__(self, desktop: AsyncDesktop, api_key: str, *, programs: bool) -> None:
        self._desktop = desktop
        self._api_key = api_key
        self._programs = programs
        self._responses = load("starlette.responses", "cua")
        self._disconnected: type[Exception] = load("starlette.websockets", "cua").WebSocketDisconnect

    async def status(self, _: Any) -> Any:
        return self._responses.JSONResponse({"status": "ok", "os_type": "linux", "features": []})

    async def commands(self, _: Any) -> Any:
        return self._responses.JSONResponse(Commands.catalogue())

    async def cmd(self, request: Any) -> Any:
        if "origin" in request.headers:
            return self._refusal(403, _REFUSED)
        if not self._admits(request.headers.get("x-api-key")):
            return self._refusal(401, _UNKNOWN)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST_REQUEST:
                return self._refusal(413, f"a request is at most {_LARGEST_REQUEST} bytes")
        message = _parsed(body)
        command = message.get("command") if isinstance(message, dict) else None
        if not isinstance(command, str):
            return self._refusal(400, "Invalid JSON body: an object with a command is needed")
        if ALIASES.get(command, command) not in Commands.listed():
            return self._refusal(400, f"Unknown command: {command[:80]}")
        return self._responses.PlainTextResponse(f"data: {json.dumps(await self._answer(message))}\n\n")

    async def ws(self, socket: Any) -> None:
        if "origin" in socket.headers:
            await socket.close(1008, _REFUSED)
            return
        await socket.accept()
        with contextlib.suppress(self._disconnected):
            admitted = self._admits(socket.headers.get("x-api-key"))
            while True:
                message = _parsed(await socket.receive_text())
                if isinstance(message, dict) and message.get("command") == "authenticate":
                    params = message.get("params")
                    admitted = self._admits(params.get("api_key") if isinstance(params, dict) else None)
                    if admitted:
                        await socket.send_json({"success": True, "message": "Authentication successful"})
                        continue
                if not admitted:
                    await socket.send_json({"success": False, "error": _UNKNOWN})
                    await socket.close(1008)
                    return
                await socket.send_json(await self._answer(message))

    def _admits(self, key: object) -> bool:
        return isinstance(key, str) and hmac.compare_digest(key.encode(), self._api_key.encode())

    def _refusal(self, code: int, why: str) -> Any:
        return self._responses.JSONResponse({"detail": why}, code)

    async def _answer(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, dict):
            return {"success": False, "error": "Invalid JSON: an object with a command is needed"}
        command, params = message.get("command"), message.get("params")
        try:
            result = await self._desktop.run(
                lambda there: Commands(there, programs=self._programs).answer(command, params)
            )
        except DeskhandError as error:
            return {"success": False, "error": str(error)}
        return {"success": True, **result}


def _parsed(text: str | bytes) -> Any:
    """What JSON says; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
