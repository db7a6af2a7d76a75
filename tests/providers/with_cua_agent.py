"""Cua's own agent drives a desktop, and its own client a server of ours: run by `make evidence`, for it needs Python 3.12.

`python with_cua_agent.py` in an environment with `cua-agent` and deskhand's dependencies. Says what was shown, or fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import socket
from pathlib import Path
from typing import Any

from cua_agent import register_agent
from cua_agent.computers import AsyncComputerHandler, is_agent_computer

import deskhand
from deskhand.providers import cua
from deskhand.providers.cua import messages as messages_of

STEPS: list[dict[str, Any]] = [
    {"type": "click", "button": "left", "x": 400, "y": 300},
    {"type": "type", "text": "naïve ☕"},
    {"type": "click", "button": "left", "x": 9000, "y": 300},
    {"type": "keypress", "keys": ["ctrl", "a"]},
    {"type": "scroll", "x": 400, "y": 300, "scroll_x": 0, "scroll_y": 2},
    {"type": "drag", "path": [{"x": 300, "y": 300}, {"x": 500, "y": 300}]},
    {"type": "terminate", "status": "success"},
]
seen: list[list[dict[str, Any]]] = []


@register_agent(models=r"scripted/claude", priority=100)
class Scripted:
    """A model that follows a script and remembers what it was sent."""

    async def predict_step(self, messages: list[dict[str, Any]], model: str, **_: Any) -> dict[str, Any]:  # noqa: ARG002
        seen.append(messages)
        # Each step has an action, and what became of it comes back with the next.
        index = len(seen) - 1
        if index == len(STEPS):
            return {"output": [messages_of.assistant("Done")], "usage": {"total_tokens": 1}}
        call = {"type": "computer_call", "call_id": f"c{index}", "status": "completed", "action": STEPS[index]}
        return {"output": [call], "usage": {"total_tokens": 1}}

    async def predict_click(self, *_: Any, **__: Any) -> None:
        return None

    def get_capabilities(self) -> list[str]:
        return ["step"]


async def through_the_server() -> None:
    """Its client drives a desktop that is served as `deskhand serve` does it."""
    import uvicorn  # noqa: PLC0415
    from computer.interface.linux import LinuxComputerInterface  # noqa: PLC0415

    from deskhand.providers.cua.server import application  # noqa: PLC0415

    async with await deskhand.AsyncDesktop.launch() as desktop:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(
                uvicorn.Config(application(desktop, api_key="key", programs=True), log_level="warning")
            )
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            there = LinuxComputerInterface("127.0.0.1", api_port=listener.getsockname()[1])
            await there.wait_for_ready(timeout=30)
            assert await there.get_screen_size() == {"width": 1280, "height": 800}
            await there.launch("mousepad")
            before = await there.screenshot()
            await there.left_click(400, 300)
            await there.type_text("naïve ☕")
            assert await there.get_cursor_position() == {"x": 400, "y": 300}
            after = await there.screenshot()
            assert before != after
            await there.hotkey("ctrl", "a")
            await there.hotkey("ctrl", "c")
            # Copying shows nothing, so that nobody sees when the editor has done it; the client raises while there is nothing.
            copied = ""
            while copied != "naïve ☕":
                with contextlib.suppress(RuntimeError):
                    copied = await asyncio.wait_for(there.copy_to_clipboard(), 10)
            await there.scroll_down(2)
            await there.drag([(300, 300), (500, 300)])
            there.close()
            server.should_exit = True
            await serving
    print("cua-computer: drove a desktop through the server; what was typed was copied back")


def main() -> None:
    with deskhand.launch() as desktop:
        assert isinstance(cua.tool(desktop), AsyncComputerHandler)
        assert is_agent_computer(cua.tool(desktop))
    spec = importlib.util.spec_from_file_location("example", Path(__file__).parents[2] / "examples" / "cua_agent.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    said = asyncio.run(example.main("Write", model="scripted/claude"))
    for message in said:
        if message.get("output") != {"terminated": True, "status": "success"}:
            messages_of.check_message(message)
    outputs = [message for message in said if message["type"].endswith("_output")]
    assert len(outputs) == len(STEPS), outputs
    kinds = [message["type"] for message in outputs]
    assert kinds[2] == "function_call_output", kinds
    assert "outside" in outputs[2]["output"], outputs[2]
    assert kinds.count("computer_call_output") == len(STEPS) - 1, kinds
    pictures = messages_of.pictures(said)
    assert len(pictures) == len(STEPS) - 2
    assert pictures[0] != pictures[1], "what was typed is seen at once"
    asyncio.run(through_the_server())
    print(f"cua-agent: {len(STEPS)} calls, {len(pictures)} pictures, one error told to the model")


if __name__ == "__main__":
    main()
