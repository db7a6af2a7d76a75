"""Agent Framework's OpenAI connector, and the shell protocol of agent-framework-tools, a pre-release: run by `tools/extras`.

It installs both in an environment of their own, and gives this file to pytest by name. What the connector sends to OpenAI is
answered by a script; agents, connector and executor are the framework's own.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import Agent
from agent_framework_openai import OpenAIChatClient
from agent_framework_tools.shell import ShellExecutor, ShellResult

from deskhand.providers import agent_framework as af
from deskhand.providers.agent_framework import sdk
from deskhand.providers.session import ModelSession
from providers.machines import Machine, a_desktop
from providers.openai_helpers import ACTIONS, EVERY, SEEN, Service, call, response, said, watched

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand import Desktop

# What it has for computers it calls experimental.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def test_our_executor_is_one_of_theirs(tmp_path: Path) -> None:
    with a_desktop(Machine(tmp_path)) as desktop:
        executor = af.shell_executor(desktop.machine.open_shell)
        assert isinstance(executor, ShellExecutor)
        for name in ("start", "close", "run", "__aenter__", "__aexit__"):
            theirs = inspect.signature(getattr(ShellExecutor, name)).parameters
            ours = inspect.signature(getattr(sdk.ShellExecutor, name)).parameters
            assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()], name
        run = inspect.signature(sdk.ShellExecutor.run).parameters
        assert run.keys() == inspect.signature(ShellExecutor.run).parameters.keys()

        async def use() -> Any:
            async with executor as there:
                await there.run("cd /; echo kept > /dev/null; state=kept")
                return await there.run("echo $state; echo bad >&2; exit 3", timeout=20)

        result = asyncio.run(use())
    fields = {name for name in inspect.signature(ShellResult).parameters if name != "self"}
    assert {name: getattr(result, name) for name in fields if name != "duration_ms"} == {
        "stdout": "kept\n", "stderr": "bad\n", "exit_code": 3, "truncated": False, "timed_out": False,
    }  # fmt: skip
    assert result.duration_ms >= 0
    assert result.format_for_model()


def test_the_connectors_shell_tool_runs_in_ours(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    asks = {
        "type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
        "action": {"commands": ["ls; echo é"], "timeout_ms": None, "max_output_length": None},
    }  # fmt: skip
    first = response(said("I look"))
    first["output"] = [asks]
    service = Service(first, response(said("Done"), id="resp_2"))

    async def use(desktop: Desktop) -> str:
        async with af.shell_executor(desktop) as executor:
            function = executor.as_function(approval_mode="never_require")
            client = OpenAIChatClient(model="m", async_client=service.async_client())
            agent = Agent(client=client, tools=[OpenAIChatClient.get_shell_tool(func=function)])
            return (await agent.run("What is here?")).text

    with a_desktop(Machine(tmp_path)) as desktop:
        assert asyncio.run(use(desktop)) == "Done"
    assert [tool["type"] for tool in service.requests[0]["tools"]] == ["shell"]
    answer = service.requests[1]["input"][-1]
    assert (answer["type"], answer["call_id"]) == ("shell_call_output", "call_1")
    (entry,) = answer["output"]
    assert (entry["stdout"], entry["outcome"]) == ("here\né\n", {"type": "exit", "exit_code": 0})


@pytest.mark.parametrize("batch", [True, False], ids=["at once", "one by one"])
def test_the_connectors_computer_is_a_desktop(*, batch: bool) -> None:
    calls = [call(*EVERY)] if batch else [call(action, id=f"c{n}") for n, (action, _) in enumerate(ACTIONS)]
    answers = [response(one, id=f"resp_{n}") for n, one in enumerate(calls)]
    service = Service(*answers, response(said("Done"), id="last"))

    async def use(desktop: Desktop) -> str:
        model_session = ModelSession(desktop, size="openai")
        client = OpenAIChatClient(model="m", async_client=service.async_client())
        agent = Agent(client=client, tools=[OpenAIChatClient.get_computer_tool()])
        session = agent.create_session()
        there = await agent.run("Do all", session=session)
        while messages := await af.respond_async(model_session, there):
            there = await agent.run(messages, session=session)
        return str(there.text)

    with watched() as stage:
        assert asyncio.run(use(stage.desktop)) == "Done"
        assert stage.events() == SEEN
    assert service.requests[0]["tools"] == [{"type": "computer"}]
    for number, request in enumerate(service.requests[1:]):
        outputs = [item for item in request["input"] if item["type"] == "computer_call_output"]
        assert outputs[-1]["call_id"] == ("call_1" if batch else f"c{number}")
        assert outputs[-1]["output"]["type"] == "computer_screenshot"
