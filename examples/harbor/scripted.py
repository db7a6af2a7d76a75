"""An agent for Harbor that calls tools of the task's MCP server as a model would, without a model.

`PYTHONPATH=examples/harbor harbor run -p examples/harbor/notes --agent scripted:Scripted`
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, ClassVar

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment
    from harbor.models.agent.context import AgentContext

STEPS = [
    ("keypress", {"keys": ["ctrl", "End"]}),
    ("type", {"text": "milk\n"}),
    ("keypress", {"keys": ["ctrl", "s"]}),
]
# It runs in the task's container, where the server is.
CLIENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(server, steps):
    parameters = StdioServerParameters(command=server["command"], args=server["args"])
    async with stdio_client(parameters) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
        await client.initialize()
        for name, arguments in steps:
            result = await client.call_tool(name, arguments)
            print(name, [part.text for part in result.content if part.type == "text"])

asyncio.run(main(*map(json.loads, sys.argv[1:])))
"""


class Scripted(BaseAgent):
    """Carries out `STEPS`, whatever the instruction says."""

    capabilities: ClassVar[AgentCapabilities] = AgentCapabilities(mcp_servers=True)

    @staticmethod
    def name() -> str:
        """Its name in Harbor's results."""
        return "scripted"

    def version(self) -> str:
        """Its version in Harbor's results."""
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing is installed: the image has a client."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Call the tools; what they answered goes to `scripted.txt` of the agent's logs."""
        del instruction, context
        (server,) = self.mcp_servers
        arguments = (CLIENT, server.model_dump_json(), json.dumps(STEPS))
        result = await environment.exec("/opt/deskhand/bin/python -c " + " ".join(map(shlex.quote, arguments)))
        (self.logs_dir / "scripted.txt").write_text(f"{result.stdout or ''}{result.stderr or ''}", "utf-8")
