"""Cua's computer-server: its protocol over HTTP and WebSocket, so that its clients can drive a desktop.

This module owns the routes, the frames and the check of the key. What a command does is in `commands.py`.

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

# Requests are commands; a chunk of a file is the largest of them.
_LARGEST_REQUEST = 16 << 20
# A page in this machine's browser could reach a server on loopback. Browsers send Origin, and clients of this protocol do not.
_REFUSED = "this is not for web pages"
_UNKNOWN = "Authentication failed"
_LOG = logging.getLogger(__name__)


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
    if not api_key:
        raise ActionError("the key for clients is empty: every program on this machine could connect")
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
    """The handlers of the routes."""

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
        """Answer a request that is refused: an unknown path, a wrong method, or a body that is too large."""
        return self._refusal(error.status_code, str(error.detail))

    async def failed(self, _: Any, error: Exception) -> Any:
        """Answer a request that failed unexpectedly; the server logs the exception."""
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
        """The next message; a binary one is JSON as well."""
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise self._disconnected
        text: str | bytes | None = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    def _admits(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        # JSON may contain half a surrogate pair, which UTF-8 cannot encode.
        given, wanted = (text.encode("utf-8", "surrogatepass") for text in (key, self._api_key))
        return hmac.compare_digest(given, wanted)

    def _refusal(self, code: int, why: str) -> Any:
        # Not JSONResponse: it writes UTF-8, which cannot encode every string that a client may send.
        return self._responses.Response(json.dumps({"detail": why}), code, media_type="application/json")

    async def _answer(self, message: Any) -> str:
        """The protocol's answer to a command, also to one that failed."""
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
    """The error text for a client: deskhand's own errors in full, and of any other only the type."""
    if isinstance(error, DeskhandError):
        return str(error)
    return f"the server failed ({type(error).__name__}); its log says more"


def _parsed(text: str | bytes) -> Any:
    """Parse JSON; None if it is malformed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
