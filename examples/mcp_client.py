"""A client of `deskhand mcp`, like an agent's runtime: `python examples/mcp_client.py`."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(command=sys.executable, args=["-m", "deskhand", "mcp", "--size", "1024x640"])


async def main() -> list[Any]:
    """Start the server with a desktop of its own, and do a few things."""
    results = []
    async with stdio_client(SERVER) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
        await client.initialize()
        for name, arguments in (
            ("right_click", {"xy": [512, 320]}),
            ("keypress", {"keys": ["Escape"]}),
            ("screenshot", {}),
        ):
            results.append(await client.call_tool(name, arguments))
    return results


if __name__ == "__main__":
    *_, last = asyncio.run(main())
    Path("seen.png").write_bytes(base64.b64decode(last.content[0].data))
    print("The desktop at the end: seen.png")
