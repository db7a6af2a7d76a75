"""OpenAI's shell calls, carried out by a real bash: through the `openai` client and through openai-agents' tools."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, LocalShellTool, RunConfig, Runner, ShellTool
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel
from openai.types.responses import ResponseFunctionShellToolCall
from openai.types.responses.response_input_param import ShellCallOutput
from openai.types.responses.response_output_item import LocalShellCall
from pydantic import TypeAdapter

from deskhand import AsyncShell, CommandResult, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.errors import DeskhandError, DesktopLost, ShellError
from deskhand.machine.shell import Shell
from deskhand.providers import openai
from deskhand.providers.session import ModelSession
from providers.machines import KINDS, Machine, a_desktop
from providers.openai_helpers import Service, response, said

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def desktop(machine: Machine) -> Iterator[Desktop]:
    with a_desktop(machine) as desktop:
        yield desktop


@pytest.fixture
def model_session(desktop: Desktop) -> ModelSession:
    return ModelSession(desktop)


@pytest.fixture(params=list(KINDS))
def shell(request: pytest.FixtureRequest, desktop: Desktop) -> Any:
    """Everything that runs commands."""
    return KINDS[request.param](desktop)


def shell_call(*commands: str, id: str = "call_1", **action: Any) -> ResponseFunctionShellToolCall:
    return ResponseFunctionShellToolCall.model_validate(
        {
            "type": "shell_call",
            "id": f"sh_{id}",
            "call_id": id,
            "status": "in_progress",
            "action": {"commands": list(commands), **action},
        }
    )


def local_call(*command: str, **action: Any) -> LocalShellCall:
    return LocalShellCall.model_validate(
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_1",
            "status": "completed",
            "action": {"type": "exec", "command": list(command), "env": {}, **action},
        }
    )


def use(tool: Any, *calls: Any) -> list[ToolCallOutputItem]:
    """A run in which the model asks for these calls, and what they were answered."""
    agent = Agent(name="desk", model=ScriptedModel([list(calls), [said("done")]]), tools=[tool])
    result = asyncio.run(Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True)))
    return [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]


def test_commands_run_in_order_and_are_answered(shell: Any, machine: Machine, model_session: ModelSession) -> None:
    service = Service(response(shell_call("echo héllo; echo bad >&2; (exit 3)", "pwd")), response(said("done")))
    tools: Any = [openai.declare_shell()]
    with service.client() as client:
        first = client.responses.create(model="m", input="go", tools=tools)
        items: Any = openai.respond(model_session, first, shell=shell)
        client.responses.create(model="m", input=items, previous_response_id=first.id)
    assert service.requests[0]["tools"] == [{"type": "shell", "environment": {"type": "local"}}]
    (sent,) = service.requests[1]["input"]
    TypeAdapter(ShellCallOutput).validate_python(sent)
    assert sent == {
        "type": "shell_call_output",
        "call_id": "call_1",
        "output": [
            {"stdout": "héllo\n", "stderr": "bad\n", "outcome": {"type": "exit", "exit_code": 3}},
            {"stdout": f"{machine.home}\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        ],
    }


def test_coroutines_do_the_same(shell: Any, model_session: ModelSession) -> None:
    (sent,) = asyncio.run(openai.respond_async(model_session, [shell_call("echo x")], shell=shell))
    assert sent["output"][0]["stdout"] == "x\n"


def test_after_a_timeout_no_more_is_run(shell: Any, machine: Machine) -> None:
    (entry,) = openai.run_shell(shell, shell_call("touch begun; sleep 600", "touch never", timeout_ms=100))["output"]
    assert entry["outcome"] == {"type": "timeout"}
    # Of what keeps its state it is told that it is lost.
    assert ("variables" in entry["stderr"]) == isinstance(shell, Shell | AsyncShell)
    assert "never" not in machine.files


def test_what_earlier_jobs_wrote_is_told(desktop: Desktop, machine: Machine) -> None:
    with desktop.machine.open_shell() as shell:
        openai.run_shell(shell, shell_call("mkfifo go; (read < go; echo late; touch done) &"))
        (machine.home / "go").write_text("now\n")
        deadline = time.monotonic() + 60
        while "done" not in machine.files and time.monotonic() < deadline:
            time.sleep(0.005)
        (entry,) = openai.run_shell(shell, shell_call("echo now"))["output"]
    assert entry["stdout"] == "now\n"
    assert entry["stderr"] == "[what earlier jobs wrote before this command:]\nlate\n"


def test_a_local_command_has_arguments_a_place_and_variables(shell: Any, tmp_path: Path) -> None:
    inner = tmp_path / "a b"
    inner.mkdir()
    call = local_call("printf", "%s|", "a b", "$HOME", "'", env={"A": "1 '2"}, working_directory=str(inner))
    sent = openai.run_shell(shell, call)
    assert json.loads(sent["output"])["stdout"] == "a b|$HOME|'|"
    call = local_call("sh", "-c", 'pwd; echo "$A"', env={"A": "1 '2"}, working_directory=str(inner))
    assert json.loads(openai.run_shell(shell, call)["output"])["stdout"] == f"{inner}\n1 '2\n"


def test_openai_agents_shell_tool(shell: Any) -> None:
    (output,) = use(
        ShellTool(executor=openai.shell_executor(shell)),
        shell_call("echo one; (exit 2)", "echo two", max_output_length=6),
    )
    raw: Any = output.raw_item
    assert raw["output"] == [
        {"stdout": "one\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}},
        {"stdout": "tw", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
    ]
    assert raw["max_output_length"] == 6


def test_openai_agents_local_shell_tool(shell: Any) -> None:
    (output,) = use(LocalShellTool(executor=openai.shell_executor(shell)), local_call("echo", "a b"))
    assert json.loads(output.output) == {"stdout": "a b\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (shell_call("touch x").model_copy(update={"status": "incomplete"}), "not complete"),
        (shell_call("a\0b"), "NUL"),
        (shell_call("touch x", timeout_ms=-5), "timeout_ms"),
    ],
)
def test_what_cannot_be_read_is_answered_and_not_run(
    desktop: Desktop, machine: Machine, call: ResponseFunctionShellToolCall, words: str
) -> None:
    (entry,) = openai.run_shell(desktop, call)["output"]
    assert words in entry["stderr"]
    assert entry["outcome"] == {"type": "exit", "exit_code": 126}
    assert machine.files == []


def test_a_call_of_an_incomplete_response_is_answered_and_not_run(
    machine: Machine, model_session: ModelSession
) -> None:
    for run in (
        lambda whole: openai.respond(model_session, whole, shell=model_session),
        lambda whole: asyncio.run(openai.respond_async(model_session, whole, shell=model_session)),
    ):
        shell, local = run(response(shell_call("touch x"), local_call("touch", "y"), status="incomplete"))
        assert "nothing of it was done" in shell["output"][0]["stderr"]
        assert "nothing of it was done" in json.loads(local["output"])["stderr"]
    assert machine.files == []


def test_without_a_shell_commands_are_refused(model_session: ModelSession) -> None:
    (sent,) = openai.respond(model_session, response(shell_call("echo x")))
    assert "does not support the action 'shell'" in sent["output"][0]["stderr"]
    # A desktop without a machine of its own has none either.
    with Desktop(MemoryBackend()) as bare:
        sent = openai.run_shell(bare, local_call("ls"))
    assert json.loads(sent["output"])["outcome"]["exit_code"] == 126


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_cancelled_call_ends_its_command_and_runs_no_other(kind: str, desktop: Desktop, machine: Machine) -> None:
    async def use() -> None:
        shell = KINDS[kind](desktop)
        call = shell_call("touch begun; sleep 600", "touch never")
        task = asyncio.ensure_future(openai.run_shell_async(shell, call))
        deadline = asyncio.get_running_loop().time() + 60
        while not machine.files and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 # another process makes it
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())
    assert machine.files == ["begun"]


def test_what_the_policy_denies_is_told_and_not_run(desktop: Desktop, machine: Machine) -> None:
    asked: list[Any] = []

    def ask(action: Any, context: Any) -> bool:
        asked.append((action.target, context.provider, context.call_id))
        return False

    (entry,) = openai.run_shell(ModelSession(desktop, ask=ask), shell_call("rm -r /"))["output"]
    assert "denies shell" in entry["stderr"]
    assert asked == [("rm -r /", "openai", "call_1")]
    assert machine.files == []


def test_what_fails_in_between_is_told_after_what_was_done(desktop: Desktop) -> None:
    class Failing:
        """A session whose second command fails."""

        def __init__(self, error: DeskhandError) -> None:
            self.errors = [None, error]

        def run(self, command: str, **options: Any) -> CommandResult:
            if error := self.errors.pop(0):
                raise error
            return desktop.machine.run(command, **options)

    first, second = openai.run_shell(
        Failing(ShellError("bash", "no more processes")), shell_call("echo a", "echo b", "echo c")
    )["output"]
    assert first["stdout"] == "a\n"
    assert "no more processes" in second["stderr"]
    with pytest.raises(DesktopLost):
        openai.run_shell(Failing(DesktopLost("container", "it was removed")), shell_call("echo a", "echo b"))
