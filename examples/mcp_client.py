"""A client of `deskhand mcp`, like an agent's runtime: `python examples/mcp_client.py`.

Or of a server that runs, with the address and the key that it printed: `python examples/mcp_client.py URL KEY`.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# A desktop of its own with an editor on it. `--programs` instead lets the client start programs, with the tool `start`.
SERVER = StdioServerParameters(
    command=sys.executable, args=["-m", "deskhand", "mcp", "--size", "1024x640", "--start", "mousepad"]
)


async def main(url: str = "", key: str = "") -> list[Any]:
    """Click into the editor, type, and look."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
    async with http, Client(streamable_http_client(url, http_client=http) if url else SERVER) as client:
        await client.call_tool("left_mouse_click", {"xy": [512, 320]})
        await client.call_tool("type", {"text": "Typed by an MCP client.\n"})
        return [await client.call_tool(name, {}) for name in ("elements", "screenshot")]


if __name__ == "__main__":
    elements, screenshot = asyncio.run(main(*sys.argv[1:]))
    print(elements.content[0].text)
    Path("seen.png").write_bytes(base64.b64decode(screenshot.content[0].data))
    print("The desktop at the end: seen.png")
