"""A client of `deskhand mcp`, like an agent's runtime: `python examples/mcp_client.py`."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

# A desktop of its own with an editor on it. `--programs` instead lets the client start programs, with the tool `start`.
SERVER = StdioServerParameters(
    command=sys.executable, args=["-m", "deskhand", "mcp", "--size", "1024x640", "--start", "mousepad"]
)


async def main() -> list[Any]:
    """Start the server, and type a text into the editor."""
    results = []
    async with stdio_client(SERVER) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
        await client.initialize()
        for name, arguments in (
            ("left_mouse_click", {"xy": [512, 320]}),
            ("type", {"text": "Typed by an MCP client.\n"}),
            ("elements", {}),
            ("screenshot", {}),
        ):
            results.append(await client.call_tool(name, arguments))
    return results


if __name__ == "__main__":
    *_, elements, last = asyncio.run(main())
    print(elements.content[0].text)
    Path("seen.png").write_bytes(base64.b64decode(last.content[0].data))
    print("The desktop at the end: seen.png")
