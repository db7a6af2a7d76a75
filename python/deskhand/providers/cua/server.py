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
import logging
from typing import TYPE_CHECKING, Any, cast

from deskhand._core.extras import load
from deskhand.errors import ActionError, DeskhandError, shown
from deskhand.providers.cua.commands import ALIASES, Commands

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from deskhand.aio.desktop import AsyncDesktop

__all__ = ["application"]

# A screenshot goes out, but what comes in is a command; a file's chunk is the largest of them.
_LARGEST_REQUEST = 16 << 20
# A page in this machine's browser could reach a server on loopback; browsers say so, and no client of this protocol is one.
_REFUSED = "this is not for web pages"
_UNKNOWN = "Authentication failed"
_LOG = logging.getLogger(__name__)


def application(desktop: AsyncDesktop, *, api_key: str, programs: bool = False) -> Starlette:
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
    handlers = {load("starlette.exceptions", "cua").HTTPException: server.unknown, Exception: server.failed}
    made = load("starlette.applications", "cua").Starlette(routes=routes, exception_handlers=handlers)
    return cast("Starlette", made)


class _Server:
    """What the routes answer."""

    def __init__(self, desktop: AsyncDesktop, api_key: str, *, programs: bool) -> None:
        self._desktop = desktop
        self._api_key = api_key
        self._programs = programs
        self._responses = load("starlette.responses", "cua")
        self._disconnected: type[Exception] = load("starlette.websockets", "cua").WebSocketDisconnect
        self._refused: type[Exception] = load("starlette.exceptions", "cua").HTTPException
        self._left: type[Exception] = load("starlette.requests", "cua").ClientDisconnect

    async def status(self, _: Any) -> Any:
        return self._responses.JSONResponse({"status": "ok", "os_type": "linux", "features": []})

    async def commands(self, _: Any) -> Any:
        return self._responses.JSONResponse(Commands.catalogue())

    async def cmd(self, request: Any) -> Any:
        if "origin" in request.headers:
            return self._refusal(403, _REFUSED)
        if not self._admits(request.headers.get("x-api-key")):
            return self._refusal(401, _UNKNOWN)
        message = _parsed(await self._body(request))
        command = message.get("command") if isinstance(message, dict) else None
        if not isinstance(command, str):
            return self._refusal(400, "Invalid JSON body: an object with a command is needed")
        if ALIASES.get(command, command) not in Commands.listed():
            return self._refusal(400, f"Unknown command: {command[:80]}")
        return self._responses.PlainTextResponse(f"data: {await self._answer(message)}\n\n")

    async def _body(self, request: Any) -> bytes:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LARGEST_REQUEST:
                    raise self._refused(413, f"a request is at most {_LARGEST_REQUEST} bytes")
        except self._left:
            raise self._refused(400, "the request is shorter than it says") from None
        return bytes(body)

    async def unknown(self, _: Any, error: Any) -> Any:
        """Answer a request that is refused: for what is not there, too large, of another method."""
        return self._refusal(error.status_code, str(error.detail))

    async def failed(self, _: Any, error: Exception) -> Any:
        """Answer a request that failed where nobody expected it; the server logs it."""
        return self._refusal(500, _told(error))

    async def ws(self, socket: Any) -> None:
        if "origin" in socket.headers:
            await socket.close(1008, _REFUSED)
            return
        await socket.accept()
        with contextlib.suppress(self._disconnected):
            admitted = self._admits(socket.headers.get("x-api-key"))
            while True:
                message = _parsed(await self._received(socket))
                if isinstance(message, dict) and message.get("command") == "authenticate":
                    params = message.get("params")
                    admitted = self._admits(params.get("api_key") if isinstance(params, dict) else None)
                    if admitted:
                        await socket.send_text(json.dumps({"success": True, "message": "Authentication successful"}))
                        continue
                if not admitted:
                    await socket.send_text(_failure(_UNKNOWN))
                    await socket.close(1008)
                    return
                await socket.send_text(await self._answer(message))

    async def _received(self, socket: Any) -> str | bytes:
        """The next message; one of bytes is JSON as well."""
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise self._disconnected
        text: str | bytes | None = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    def _admits(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        # JSON may say half a character, which UTF-8 has none for.
        given, wanted = (text.encode("utf-8", "surrogatepass") for text in (key, self._api_key))
        return hmac.compare_digest(given, wanted)

    def _refusal(self, code: int, why: str) -> Any:
        # Not JSONResponse: it writes UTF-8, in which what a client sent may have no form.
        return self._responses.Response(json.dumps({"detail": why}), code, media_type="application/json")

    async def _answer(self, message: Any) -> str:
        """What comes of a command, as the protocol says it, whatever came of it."""
        if not isinstance(message, dict):
            return _failure("Invalid JSON: an object with a command is needed")
        command, params = message.get("command"), message.get("params")
        try:
            result = await self._desktop.run(
                lambda there: Commands(there, programs=self._programs).answer(command, params)
            )
            return json.dumps({"success": True, **result})
        except Exception as error:  # noqa: BLE001 # whatever it is, its client gets an answer, and the next one too
            if not isinstance(error, DeskhandError):
                _LOG.exception("the command %s failed", shown(command))
            return _failure(_told(error))


def _failure(why: str) -> str:
    return json.dumps({"success": False, "error": why})


def _told(error: Exception) -> str:
    """What a client is told: what deskhand says of it, and of everything else only its kind."""
    if isinstance(error, DeskhandError):
        return str(error)
    return f"the server failed ({type(error).__name__}); its log says more"


def _parsed(text: str | bytes) -> Any:
    """What JSON says; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
