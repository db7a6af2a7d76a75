"""A line between a browser and a server that counts what it carries, and may be slow: a SOCKS proxy on this machine.

What must never appear here: a measurement.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SlowLine"]

_PIECE, _MOST = 1460, 1 << 16
_VERSION, _CONNECT, _IPV4, _NAME = 5, 1, 1, 3


class SlowLine:
    """The proxy; within a `with` block it runs.

    Attributes:
        url: For a browser's settings.
        carried: Bytes that went to the browser.
    """

    def __init__(self, rate: int | None = None) -> None:
        """Carry `rate` bytes a second to each client's connection (None: whatever goes), and whatever comes the other way."""
        self.url = ""
        self.carried = 0
        self._rate = rate
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._over = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        clients: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            client = self._loop.create_task(self._carry(reader, writer))
            clients.add(client)
            client.add_done_callback(clients.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.url = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._over.wait()
        server.close()
        for client in list(clients):
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; see RFC 1928."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            _, count = await reader.readexactly(2)
            await reader.readexactly(count)
            writer.write(bytes([_VERSION, 0]))
            _, command, _, kind = await reader.readexactly(4)
            if command != _CONNECT or kind not in {_IPV4, _NAME}:
                return
            length = 4 if kind == _IPV4 else (await reader.readexactly(1))[0]
            address = await reader.readexactly(length)
            host = ".".join(map(str, address)) if kind == _IPV4 else address.decode("ascii")
            (port,) = struct.unpack(">H", await reader.readexactly(2))
            above, below = await asyncio.open_connection(host, port)
            with contextlib.closing(below):
                writer.write(bytes([_VERSION, 0, 0, _IPV4]) + bytes(6))
                await asyncio.gather(self._up(reader, below), self._down(above, writer))

    async def _up(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(_MOST):
            target.write(data)
            await target.drain()
        target.close()

    async def _down(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        free = 0.0
        while data := await source.read(_MOST if self._rate is None else _PIECE):
            if self._rate is not None:
                free = max(free, self._loop.time()) + len(data) / self._rate
                await asyncio.sleep(free - self._loop.time())
            self.carried += len(data)
            target.write(data)
            await target.drain()
        target.close()
