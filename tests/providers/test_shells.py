"""Commands of every provider, by everything that runs commands: what is run, what is told, and what a cancellation ends."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from deskhand import AuditLog, Desktop, Guard
from deskhand.providers import agent_framework, anthropic, bedrock, openai
from deskhand.providers.session import ModelSession
from faults.helpers import MARK, marked, until, within
from providers.machines import KINDS, Machine, a_desktop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

GONE = 2.0
# Which there are is one thing, and tried whole with OpenAI's calls; that every provider takes them is another.
SOME = ("session", "async governed session", "async desktop", "governed model session")


class Provider(NamedTuple):
    """How it asks for a command, has it run in a loop of one's own, and what it is told."""

    ask: Callable[[str], Any]
    run: Callable[[Desktop, Any, Any], Any]
    run_async: Callable[[Desktop, Any, Any], Awaitable[Any]]
    told: Callable[[Any], str]


def _bash(command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"command": command}}


def _of_converse(command: str) -> dict[str, Any]:
    return {"content": [{"toolUse": {"toolUseId": "call_1", "name": "bash", "input": {"command": command}}}]}


def _of_an_agent(command: str) -> dict[str, Any]:
    given = [{"name": "command", "type": "string", "value": command}]
    return {"functionInvocationInput": {"actionGroup": "desk", "function": "bash", "parameters": given}}


PROVIDERS = {
    "openai": Provider(
        lambda command: {"type": "shell_call", "call_id": "call_1", "action": {"commands": [command]}},
        lambda _, shell, call: openai.run_shell(shell, call),
        lambda _, shell, call: openai.run_shell_async(shell, call),
        lambda answer: answer["output"][0]["stdout"] + answer["output"][-1]["stderr"],
    ),
    "anthropic": Provider(
        _bash,
        lambda desktop, shell, call: anthropic.respond(desktop, [call], shell=shell),
        lambda desktop, shell, call: anthropic.respond_async(desktop, [call], shell=shell),
        lambda answer: answer[0]["content"][0]["text"],
    ),
    "anthropic's loop": Provider(
        _bash,
        lambda _, shell, call: anthropic.shell_tool(shell).call(call["input"]),
        lambda _, shell, call: anthropic.shell_tool(shell, is_async=True).call(call["input"]),
        lambda content: content[0]["text"],
    ),
    "bedrock": Provider(
        _of_converse,
        lambda desktop, shell, call: bedrock.respond(desktop, call, shell=shell),
        lambda desktop, shell, call: bedrock.respond_async(desktop, call, shell=shell),
        lambda answer: answer["content"][0]["toolResult"]["content"][0]["text"],
    ),
    "bedrock's agents": Provider(
        _of_an_agent,
        lambda desktop, shell, call: bedrock.run(desktop, call, shell=shell),
        lambda desktop, shell, call: bedrock.run_async(desktop, call, shell=shell),
        lambda answer: answer["functionResult"]["responseBody"]["TEXT"]["body"],
    ),
    "agent_framework": Provider(
        lambda command: {"type": "shell_call", "call_id": "call_1", "commands": [command]},
        lambda _, shell, call: agent_framework.run_shell(shell, call),
        lambda _, shell, call: agent_framework.run_shell_async(shell, call),
        lambda result: "".join(text.text for text in (result.stdout, result.stderr) if text),
    ),
    "agent_framework's executor": Provider(
        lambda command: command,
        lambda _, shell, command: asyncio.run(agent_framework.shell_executor(shell).run(command)),
        lambda _, shell, command: agent_framework.shell_executor(shell).run(command),
        lambda result: result.stdout,
    ),
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def desktop(machine: Machine) -> Iterator[Desktop]:
    with a_desktop(machine) as desktop:
        yield desktop


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> Provider:
    return PROVIDERS[request.param]


@pytest.mark.parametrize("kind", SOME)
def test_whatever_runs_commands_will_do(provider: Provider, kind: str, desktop: Desktop, machine: Machine) -> None:
    shell = KINDS[kind](desktop)
    assert provider.told(provider.run(desktop, shell, provider.ask("pwd; echo é"))).rstrip() == f"{machine.home}\né"
    told = provider.told(asyncio.run(provider.run_async(desktop, shell, provider.ask("echo $((6 * 7))"))))
    assert told.rstrip() == "42"


@pytest.mark.parametrize("kind", SOME)
def test_a_cancellation_ends_the_command(provider: Provider, kind: str, desktop: Desktop, machine: Machine) -> None:
    machine.env[MARK] = mark = uuid.uuid4().hex

    async def work() -> None:
        shell = KINDS[kind](desktop)
        call = provider.ask("trap '' TERM INT HUP; setsid sleep 600 & touch begun; sleep 600")
        task = asyncio.ensure_future(provider.run_async(desktop, shell, call))
        await asyncio.to_thread(until, lambda: machine.files, 60, "the command")
        task.cancel()
        with within(GONE, "a cancellation"), pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    # A session that stays is itself of this mark.
    assert "sleep" not in marked(mark).values()


def test_the_policy_and_its_log_are_told_whose_command_it_is(tmp_path: Path, desktop: Desktop) -> None:
    log = tmp_path / "audit.jsonl"
    judged = desktop.also(Guard(audit=AuditLog(log)))
    for name in ("openai", "anthropic", "bedrock", "agent_framework"):
        provider = PROVIDERS[name]
        for shell in (judged, judged.machine.open_shell()):
            told = provider.told(provider.run(ModelSession(judged), shell, provider.ask("touch done")))  # type: ignore[arg-type]
            assert "denies shell" in told
    noted = [
        line for line in map(json.loads, log.read_text().splitlines()) if line.get("action", {}).get("type") == "shell"
    ]
    assert [line["provider"] for line in noted] == [
        name for name in ("openai", "anthropic", "bedrock", "agent_framework") for _ in range(2)
    ]
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("payload", "run"),
    [
        ({"type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}]}, openai.run),
        ({"type": "tool_use", "id": "c", "name": "wait", "toolset_name": "computer", "input": {"duration": 1}}, anthropic.run),
        ({"toolUse": {"toolUseId": "c", "name": "computer", "input": {"action": "wait", "duration": 1}}}, bedrock.run),
        ({"type": "computer_call", "call_id": "c", "action": "wait"}, agent_framework.run),
    ],
)  # fmt: skip
def test_every_provider_names_itself(payload: Any, run: Any, desktop: Desktop) -> None:
    asked: list[str] = []

    class Watching:
        def before(self, _action: object, context: Any) -> str:
            asked.append(context.provider)
            return "deny"

    run(desktop, payload, policy=Watching())
    assert asked
    assert {name.split("_")[0] for name in asked} == {run.__module__.split(".")[2].split("_")[0]}
