"""A way from this machine to the page that a worker serves on the loopback of its node, by calls of its actor.

No port of the node is opened for it, and the bytes go where Ray's own calls go. Either side may end at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CHUNK = 1 << 16
_END_LIMIT = 5.0


class PageHost:
    """What an actor has of its worker's page: connections to it, by number.

    Attributes:
        page_link: The page's link; empty until it is served.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.page_link: str = ""
        # A call for a connection of an actor that has died reaches the next one, which has other numbers.
        self._numbers = itertools.count(secrets.randbelow(1 << 60))
        self._connections: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    def page_served(self, link: str) -> None:
        """Note where the page is."""
        self.page_link = link

    async def page_connect(self) -> int:
        """Connect to the page. Returns the connection's number.

        Raises:
            ActionError: No page is served.
            OSError: It does not take a connection.
        """
        place = urlsplit(self.page_link)
        if place.port is None:
            raise ActionError("this worker serves no page")
        number = next(self._numbers)
        self._connections[number] = await asyncio.open_connection(place.hostname, place.port)
        return number

    async def page_receive(self, number: int) -> AsyncIterator[bytes]:
        """What the page sends, until it ends the connection."""
        reader, _ = self._connections[number]
        while data := await reader.read(_CHUNK):
            yield data

    async def page_send(self, number: int, data: bytes) -> None:
        """Send to the page; empty: no more will come."""
        _, writer = self._connections[number]
        if data:
            writer.write(data)
            await writer.drain()
        elif writer.can_write_eof():
            writer.write_eof()

    async def page_end(self, number: int) -> None:
        """End the connection. Harmless when called again."""
        if (pair := self._connections.pop(number, None)) is not None:
            await _abort(pair[1])


class Tunnel:
    """A port on the loopback of this machine that leads to the page of a worker; use it in an `async with` block."""

    def __init__(self, host: Any) -> None:
        """Open nothing yet.

        Args:
            host: The worker's actor, a `PageHost`.
        """
        self._host = host
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        # The numbers of the connections that are open there.
        self._open: set[int] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        # Of those whose end was interrupted just now.
        await asyncio.gather(*map(self._end, tuple(self._open)), return_exceptions=True)

    async def link(self, theirs: str) -> str:
        """The link that leads through here to where `theirs` leads from there."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/#{urlsplit(theirs).fragment}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A coroutine in its place would be run in a task that Python 3.11 takes for broken when it is cancelled.
        task = asyncio.ensure_future(self._carry(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whatever the actor's calls raise, it is the end of this connection and of nothing else.
        with contextlib.suppress(Exception):
            try:
                number = await self._host.page_connect.remote()
                self._open.add(number)
                both = [asyncio.ensure_future(each) for each in (self._out(reader, number), self._back(writer, number))]
                try:
                    # The page ends a connection. A browser may have nothing more to say long before.
                    await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
                finally:
                    for each in both:
                        each.cancel()
                    await asyncio.gather(*both, return_exceptions=True)
                    await self._end(number)
            finally:
                await _abort(writer)

    async def _end(self, number: int) -> None:
        async with asyncio.timeout(_END_LIMIT):
            await self._host.page_end.remote(number)
        self._open.discard(number)

    async def _out(self, reader: asyncio.StreamReader, number: int) -> None:
        while data := await reader.read(_CHUNK):
            await self._host.page_send.remote(number, data)
        await self._host.page_send.remote(number, b"")

    async def _back(self, writer: asyncio.StreamWriter, number: int) -> None:
        async for reference in self._host.page_receive.options(num_returns="streaming").remote(number):
            writer.write(await reference)
            await writer.drain()
        writer.close()
        await writer.wait_closed()


async def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
