"""WebSocket connections of uvicorn, of which a server can be ended at any moment.

uvicorn imports this module by its name, so that nothing else needs the library.
"""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

__all__ = ["Protocol"]


class Protocol(WebSocketsSansIOProtocol):
    """A connection whose end by the client is not an error when the server ends at that moment, too."""

    def shutdown(self) -> None:
        """End the connection: uvicorn 0.54 fails, and leaves the other connections open, if its client has just closed it."""
        try:
            super().shutdown()
        except InvalidState:
            self.transport.close()
