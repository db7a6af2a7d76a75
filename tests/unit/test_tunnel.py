"""The way from this machine to a page on the loopback of a worker's node."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.run.engines.tunnel import PageHost, Tunnel
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

LIMIT = 20.0
MUCH = os.urandom(3 << 20)


class Actor:
    """A host whose methods are called as those of an actor of Ray's."""

    def __init__(self, host: PageHost) -> None:
        self.host = host
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        return _Method(self, getattr(self.host, name))


class _Method:
    def __init__(self, actor: Actor, call: Any) -> None:
        self._actor = actor
        self._call = call

    def options(self, **options: Any) -> _Method:
        assert options == {"num_returns": "streaming"}
        return self

    def remote(self, *arguments: Any) -> Any:
        if self._actor.lost:
            raise ConnectionError("the actor died")
        made = self._call(*arguments)
        return made if asyncio.iscoroutine(made) else self._references(made)

    async def _references(self, made: AsyncIterator[bytes]) -> AsyncIterator[Awaitable[bytes]]:
        async for data in made:
            reference: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            reference.set_result(data)
            yield reference


class Page:
    """What listens on the node: it answers by `serve`, and counts who is connected."""

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._serve = serve
        self.here = 0
        self.changed = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(+1)
        with contextlib.suppress(OSError):
            await self._serve(reader, writer)
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._count(-1)

    def _count(self, more: int) -> None:
        self.here += more
        self.changed.set()

    async def until(self, here: int) -> None:
        while self.here != here:
            self.changed.clear()
            await self.changed.wait()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def tunnelled(page: Page) -> AsyncIterator[tuple[Actor, Callable[[], Any]]]:
    server = await asyncio.start_server(page, "127.0.0.1", 0)
    actor = Actor(PageHost())
    actor.host.page_link = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/#a-token"
    made: list[asyncio.StreamWriter] = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        made.append(writer)
        return reader, writer

    async with server, asyncio.timeout(LIMIT), Tunnel(actor) as tunnel:
        link = await tunnel.link(actor.host.page_link)
        port, _, token = link.removeprefix("http://127.0.0.1:").partition("/#")
        assert token == "a-token"
        assert await tunnel.link(actor.host.page_link) == link, "one port for good"
        yield actor, connect
    for writer in made:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def test_bytes_go_both_ways() -> None:
    async def main() -> None:
        page = Page(echo)
        async with tunnelled(page) as (_, connect):
            first, second = await connect(), await connect()
            for number, (reader, writer) in enumerate((first, second)):
                writer.write(bytes([number]) + MUCH)
                writer.write_eof()
                assert await reader.read(-1) == bytes([number]) + MUCH
            await page.until(0)

    asyncio.run(main())


def test_who_leaves_is_gone_there_too() -> None:
    async def main() -> None:
        page = Page(echo)
        async with tunnelled(page) as (actor, connect):
            _, writer = await connect()
            await page.until(1)
            writer.transport.abort()
            await page.until(0)
        assert not actor.host._connections

    asyncio.run(main())


def test_an_actor_that_dies_ends_its_connections_and_not_the_tunnel() -> None:
    async def main() -> None:
        page = Page(echo)
        async with tunnelled(page) as (actor, connect):
            reader, writer = await connect()
            writer.write(b"before")
            assert await reader.readexactly(6) == b"before"
            actor.lost = True
            writer.write(b"after")
            assert await reader.read(-1) == b""
            reader, _ = await connect()
            assert await reader.read(-1) == b""
            actor.lost = False
            reader, writer = await connect()
            writer.write(b"again")
            assert await reader.readexactly(5) == b"again"

    asyncio.run(main())


def test_the_end_of_the_tunnel_ends_all() -> None:
    async def main() -> None:
        page = Page(echo)
        async with tunnelled(page) as (_, connect):
            for _ in range(3):
                await connect()
            await page.until(3)
        await asyncio.wait_for(page.until(0), LIMIT)

    asyncio.run(main())


def test_there_may_be_no_page() -> None:
    async def main() -> None:
        with pytest.raises(ActionError, match="serves no page"):
            await PageHost().page_connect()

    asyncio.run(main())
