"""The server for clients of mcp 1.x, whose own client speaks to it: run by `tools/extras` in an environment with that version.

It gives this file to pytest by name. The tests of `test_mcp.py` are those of mcp 2.x.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.metadata
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session

import deskhand
from deskhand import actions as a
from deskhand.providers import mcp
from deskhand.providers.action_tools import encode_plain
from providers.screen import observed
from providers.seen import SEEN
from providers.strategies import VIEWPORT

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


def size_of(result: Any) -> tuple[int, int]:
    """Of the picture in a result, by its header."""
    (image,) = [block for block in result.content if block.type == "image"]
    data = base64.b64decode(image.data)
    assert (image.mimeType, data[:8]) == ("image/png", PNG)
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def downs(events: list[dict[str, Any]]) -> list[Any]:
    return [
        (event["button"], event["at"]) if event["kind"] == "button" else event["name"]
        for event in events
        if event.get("down")
    ]


def test_this_is_version_1() -> None:
    assert importlib.metadata.version("mcp").startswith("1.")


@pytest.mark.parametrize("single", [False, True], ids=["a tool each", "one tool"])
def test_every_action_through_the_client(*, single: bool) -> None:
    with observed() as (desktop, observer):

        async def main() -> None:
            server = mcp.server(desktop, single=single)
            async with create_connected_server_and_client_session(server) as client:
                listed = (await client.list_tools()).tools
                assert [tool.name for tool in listed] == [*(["computer"] if single else a.ACTIONS), "elements"]
                for action, expected in SEEN:
                    name, arguments = encode_plain(action, VIEWPORT)
                    observer.events()
                    given = ("computer", {"action": name, **arguments}) if single else (name, arguments)
                    result = await client.call_tool(*given)
                    assert not result.isError, result
                    assert downs(observer.events()) == expected, action
                    assert size_of(result) == ((200, 100) if isinstance(action, a.Zoom) else desktop.size)
                    assert result.structuredContent is not None
                    assert result.structuredContent["settled"] is True
                wrong = ("computer", {"action": "move", "xy": [5000, 1]}) if single else ("move", {"xy": [5000, 1]})
                refused = await client.call_tool(*wrong)
                assert refused.isError
                assert "outside" in refused.content[0].text  # type: ignore[union-attr]

        asyncio.run(main())


def test_over_standard_input_and_output(tmp_path: Path, short: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(short)}
    environment.pop("DESKHAND_DESKTOP", None)
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "deskhand", "mcp", "--size", "320x200"], env=environment
    )

    async def main() -> None:
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            told = await client.initialize()
            assert told.serverInfo.version == deskhand.__version__
            assert size_of(await client.call_tool("screenshot", {})) == (320, 200)

    asyncio.run(main())
