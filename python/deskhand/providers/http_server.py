"""What the HTTP servers of providers share: the check of the key, bounded requests, and the answers to what failed.

This module owns who is answered. It has no route and no command.
"""

from __future__ import annotations

import hmac
import json
import logging
from typing import TYPE_CHECKING, Any, cast

from deskhand._core.extras import load
from deskhand.errors import ActionError, DeskhandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette

    from deskhand.aio.desktop import AsyncDesktop

# A page in this machine's browser could reach a server on loopback. Browsers send Origin, and the clients served here do not.
FOR_WEB_PAGES = "this is not for web pages"
UNKNOWN_KEY = "Authentication failed"
log: logging.Logger = logging.getLogger(__name__)


class HttpServer:
    """A server of one desktop, for clients that show a key.

    Attributes:
        desktop: The desktop.
        responses: Starlette's module of that name.
        refused: Starlette's exception for a request that is refused, with its status code.
    """

    def __init__(self, desktop: AsyncDesktop, api_key: str, *, extra: str) -> None:
        """For clients that show `api_key`; `extra` is the extra of deskhand that installs Starlette.

        Raises:
            MissingExtra: It is not installed.
            ActionError: The key is empty.
        """
        if not api_key:
            raise ActionError("the key for clients is empty: every program on this machine could connect")
        self.desktop: AsyncDesktop = desktop
        self.responses: Any = load("starlette.responses", extra)
        self.refused: type[Exception] = load("starlette.exceptions", extra).HTTPException
        self._left: type[Exception] = load("starlette.requests", extra).ClientDisconnect
        self._applications = load("starlette.applications", extra)
        self._api_key = api_key

    def application(self, routes: list[Any], *, lifespan: Callable[[Any], object] | None = None) -> Starlette:
        """The ASGI application of these routes."""
        handlers = {self.refused: self._unknown, Exception: self._failed}
        return cast(
            "Starlette", self._applications.Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
        )

    def admits(self, key: object) -> bool:
        """Whether it is the key."""
        if not isinstance(key, str):
            return False
        # JSON may contain half a surrogate pair, which UTF-8 cannot encode.
        given, wanted = (text.encode("utf-8", "surrogatepass") for text in (key, self._api_key))
        return hmac.compare_digest(given, wanted)

    async def body(self, request: Any, largest: int) -> bytes:
        """The body of a request of at most `largest` bytes; a larger one is refused."""
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > largest:
                    raise self.refused(413, f"a request is at most {largest} bytes")
        except self._left:
            raise self.refused(400, "the request is shorter than it says") from None
        return bytes(body)

    def refusal(self, code: int, why: str, **headers: str) -> Any:
        """The answer to a request that is refused."""
        return self.json({"detail": why}, code, **headers)

    def json(self, content: object, code: int = 200, **headers: str) -> Any:
        """An answer of JSON; an underscore in the name of a header is a hyphen."""
        # Not JSONResponse: it writes UTF-8, which cannot encode every string that a client may send.
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.responses.Response(json.dumps(content), code, named, media_type="application/json")

    async def _unknown(self, _: Any, error: Any) -> Any:
        """Answer a request that is refused: an unknown path, a wrong method, or a body that is too large."""
        return self.refusal(error.status_code, str(error.detail))

    async def _failed(self, _: Any, error: Exception) -> Any:
        """Answer a request that failed unexpectedly; the server logs the exception."""
        return self.refusal(500, error_text(error))


def error_text(error: Exception) -> str:
    """The error text for a client: deskhand's own errors in full, and of any other only the type."""
    if isinstance(error, DeskhandError):
        return str(error)
    return f"the server failed ({type(error).__name__}); its log says more"


def parsed(text: str | bytes) -> Any:
    """Parse JSON; None if it is malformed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
