"""Agent Framework's agents, workflows and shells on a real desktop; the model is scripted, the framework is its own."""

from __future__ import annotations

import asyncio
import inspect
import io
import threading
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    ChatResponse,
    Content,
    Message,
    WorkflowBuilder,
)
from agent_framework.exceptions import AgentInvalidResponseException
from PIL import Image

from deskhand import AsyncDesktop, CommandResult, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.errors import ActionError, DesktopLost
from deskhand.policy.guard import Guard
from deskhand.providers import agent_framework as af
from deskhand.providers.payload import picture_of_url
from deskhand.providers.session import AsyncModelSession, ModelSession
from providers.agent_framework_helpers import Scripted
from providers.helpers import Bash, load_example
from providers.openai_helpers import ACTIONS
from providers.screen import at_rest, observed, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.observer import Observer


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Desktop, Observer]]:
    with observed() as there:
        yield there


def call(action: str, **fields: Any) -> af.ComputerUseCallContent:
    return af.ComputerUseCallContent(call_id="c1", action=action, **fields)


CTRL = {"modifiers": ["ctrl"]}
# What each action does, as an independent program sees it; the pointer was at (100, 100).
SEEN: list[tuple[af.ComputerUseCallContent, list[str]]] = [
    (call("click", coordinate=(10, 20)), ["+1@10,20", "-1@10,20"]),
    (call("click", coordinate=(11, 20), button="right"), ["+3@11,20", "-3@11,20"]),
    (call("click", button="middle"), ["+2@100,100", "-2@100,100"]),
    (call("click", coordinate=(12, 20), button="back"), ["+8@12,20", "-8@12,20"]),  # type: ignore[arg-type] # as OpenAI
    (call("click", coordinate=(13, 20), **CTRL), ["+Control_L", "+1@13,20", "-1@13,20", "-Control_L"]),
    (call("double_click", coordinate=(300, 20)), ["+1@300,20", "-1@300,20"] * 2),
    (call("triple_click", coordinate=(500, 20)), ["+1@500,20", "-1@500,20"] * 3),
    (call("move", coordinate=(70, 80)), []),
    (call("drag", coordinate=(30, 30), end_coordinate=(60, 40)), ["+1@30,30", "-1@60,40"]),
    (call("drag", end_coordinate=(60, 41), button="right"), ["+3@100,100", "-3@60,41"]),
    (call("drag", path=[[30, 30], [60, 40], [90, 50]]), ["+1@30,30", "-1@90,50"]),
    (call("type", text="hi"), ["+h", "-h", "+i", "-i"]),
    (call("key", key="ctrl+a"), ["+Control_L", "+a", "-a", "-Control_L"]),
    (call("key", key="Enter"), ["+Return", "-Return"]),
    (call("screenshot"), []),
    (call("scroll", coordinate=(50, 50), scroll_amount=200), ["+5@50,50", "-5@50,50"] * 2),
    (call("scroll", scroll_amount=-100, scroll_direction="horizontal"), ["+6@100,100", "-6@100,100"]),
    (call("scroll", scroll_amount=-2, scroll_unit="notches"), ["+4@100,100", "-4@100,100"] * 2),
    (call("wait", duration=1), []),
    (call("zoom", region=[0, 0, 200, 100]), []),
    (call("left_mouse_down", coordinate=(5, 6)), ["+1@5,6"]),
    (call("mouse_up", button="left", coordinate=(7, 6)), []),
    (call("keypress_hold", key="w", duration=10), ["+w", "-w"]),
    (call("key_down", key="shift"), ["+Shift_L"]),
    (call("cursor_position"), []),
]


@pytest.mark.parametrize(("content", "expected"), SEEN, ids=lambda value: getattr(value, "action", ""))
def test_every_action_is_done_and_answered_with_the_screen(
    watched: tuple[Desktop, Observer], content: af.ComputerUseCallContent, expected: list[str]
) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    result = af.run(desktop, af.ComputerUseCallContent.from_dict(content.to_dict()))
    assert told(observer) == expected
    assert (result.call_id, result.error) == ("c1", None)
    assert result.screenshot is not None
    image = Image.open(io.BytesIO(result.screenshot.data))
    assert image.size == ((200, 100) if content.action == "zoom" else desktop.size)
    if content.action == "cursor_position":
        assert result.text_output == af.TextContent("The pointer is at (100, 100).")
    if content.coordinate is not None and content.action != "drag":
        assert desktop.pointer == content.coordinate


def test_the_contents_of_a_batch_are_one_call_with_one_result(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    result = af.run(desktop, [call("click", coordinate=(10, 20)), call("type", text="a")])
    assert (told(observer), result.error) == (["+1@10,20", "-1@10,20", "+a", "-a"], None)


def test_what_cannot_be_done_is_told_beside_the_screen(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    for payload, reason in (
        (call("click", coordinate=(5000, 1)), "outside"),
        ({"type": "computer_call", "call_id": "c1", "action": "fly"}, "fly"),
        ({"type": "computer_call", "call_id": "c1"}, "action"),
        (call("click", pending_safety_checks=[{"id": "s1", "message": "sure?"}]), "no policy"),
    ):
        result = af.run(desktop, payload)
        assert result.error is not None
        assert reason in result.error
        assert result.screenshot is not None
        assert "acknowledged_safety_checks" not in result.additional_properties
    assert told(observer) == []
    with pytest.raises(ActionError):
        af.run(desktop, {"type": "computer_call", "action": "wait"})


def test_a_smaller_picture_is_pointed_into(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    model_session = ModelSession(desktop, size=(640, 400))
    tool = af.declare(model_session)
    assert (tool.display_width, tool.display_height, tool.environment) == (640, 400, "linux")
    at_rest(desktop, observer)
    result = asyncio.run(af.run_async(AsyncModelSession(model_session), call("click", coordinate=(100, 50))))
    assert told(observer) == ["+1@201,101", "-1@201,101"], "the middle of the model's pixel"
    assert result.screenshot is not None
    assert Image.open(io.BytesIO(result.screenshot.data)).size == (640, 400)


@pytest.mark.parametrize("kind", [AsyncDesktop, ModelSession, AsyncModelSession])
def test_whatever_sits_at_a_desktop_is_taken(watched: tuple[Desktop, Observer], kind: Any) -> None:
    result = asyncio.run(af.run_async(kind(watched[0]), call("screenshot")))
    assert result.error is None


# --- the package's agents and workflows ---


def asked(*actions: dict[str, Any], number: int = 1, checks: tuple[str, ...] = ()) -> Content:
    pending = [{"id": check, "code": "malicious_instructions", "message": "sure?"} for check in checks]
    return Content.from_dict(
        {
            "type": "computer_tool_call", "id": f"cu_{number}", "call_id": f"call_{number}", "status": "completed",
            "actions": list(actions), "pending_safety_checks": pending, "user_input_request": True,
        }
    )  # fmt: skip


DONE = [Content.from_text("All done.")]
CLICK = {"type": "click", "button": "left", "x": 10, "y": 20}


def result_of(client: Scripted) -> Content:
    (found,) = [content for content in client.seen[-1][-1].contents if content.type == "computer_tool_result"]
    return found


def test_an_agent_works_through_the_frameworks_own_loop(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    every = [action.model_dump(exclude_none=True) for action, _ in ACTIONS]
    client = Scripted([asked(*every)], [asked({"type": "type", "text": "x"}, number=2)], DONE)

    async def work() -> str:
        agent = Agent(client=client)
        session = agent.create_session()
        response = await agent.run("Do it.", session=session)
        assert response.user_input_requests
        while messages := await af.respond_async(AsyncDesktop(desktop), response):
            response = await agent.run(messages, session=session)
        return response.text

    assert asyncio.run(work()) == "All done."
    seen = told(observer)
    assert [*[event for _, events in ACTIONS for event in events], "+x", "-x"] == seen
    assert not client.says
    answered = result_of(client)
    assert (answered.call_id, answered.acknowledged_safety_checks) == ("call_2", None)
    assert Image.open(io.BytesIO(picture_of_url(answered.screenshot.uri).data)).size == desktop.size  # type: ignore[union-attr]
    # The conversation holds each call beside its result, and is what the framework can write down.
    kinds = [content.type for message in client.seen[-1] for content in message.contents]
    assert kinds == ["text", "computer_tool_call", "computer_tool_result", "computer_tool_call", "computer_tool_result"]
    assert Content.from_dict(answered.to_dict()) == answered


def test_what_could_not_be_done_is_told_by_a_message_of_its_own(watched: tuple[Desktop, Observer]) -> None:
    response = ChatResponse(messages=[Message("assistant", [asked({**CLICK, "x": 5000}), *DONE])])
    results, note = af.respond(watched[0], response)
    assert (results.role, note.role) == ("tool", "user")
    assert results.contents[0].screenshot is not None
    assert "outside" in results.contents[0].additional_properties["error"]
    assert "call_1 was not carried out as asked" in note.text
    assert af.respond(watched[0], ChatResponse(messages=[Message("assistant", DONE)])) == []
    over = asked(CLICK)
    over.user_input_request = False
    assert af.respond(watched[0], ChatResponse(messages=[Message("assistant", [over])])) == [], "it is history"


async def _in_workflow(answer: Any, *checks: str) -> tuple[Any, Scripted]:
    client = Scripted([asked(CLICK, checks=checks)], DONE)
    workflow = WorkflowBuilder(start_executor=AgentExecutor(Agent(client=client, name="desk"), id="desk")).build()
    (request,) = (await workflow.run("Do it.")).get_request_info_events()
    assert request.data.type == "computer_tool_call"
    return await workflow.run(responses={request.request_id: await answer(request.data)}), client


def test_a_workflow_takes_the_checks_that_somebody_has_confirmed(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    questions: list[Any] = []

    def ask(action: Any, _: Any) -> bool:
        questions.append(action)
        return True

    model_session = AsyncModelSession(desktop, ask=ask)
    events, client = asyncio.run(_in_workflow(lambda data: af.run_content_async(model_session, data), "s1", "s2"))
    assert "All done." in str(events.get_outputs()[-1].text)
    assert [check["id"] for check in result_of(client).acknowledged_safety_checks or []] == ["s1", "s2"]
    assert told(observer) == ["+1@10,20", "-1@10,20"]
    assert len(questions) == 2


@pytest.mark.parametrize("says", [None, False, "partly"])
def test_nothing_is_acknowledged_that_nobody_confirmed(watched: tuple[Desktop, Observer], says: Any) -> None:
    desktop, observer = watched
    at_rest(desktop, observer)
    answers = iter([True, False])
    ask = {None: None, False: lambda *_: False, "partly": lambda *_: next(answers)}[says]
    given: list[Content] = []

    async def answer(data: Content) -> Content:
        given.append(await af.run_content_async(AsyncModelSession(desktop, ask=ask), data))
        return given[0]

    with pytest.raises(AgentInvalidResponseException, match="exactly the pending"):
        asyncio.run(_in_workflow(answer, "s1", "s2"))
    assert given[0].acknowledged_safety_checks is None
    assert given[0].additional_properties["denied"] is True
    assert told(observer) == []


def test_a_lost_desktop_ends_the_run() -> None:
    class Lost(MemoryBackend):
        def send(self, *_: Any, **__: Any) -> None:
            raise DesktopLost("the server has gone", "for this test")

    with Desktop(Lost()) as desktop:
        with pytest.raises(DesktopLost):
            af.run_content(desktop, asked(CLICK))
        with pytest.raises(DesktopLost):
            af.run(desktop, call("click"))


# --- shells ---


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)


def commands(*lines: str, **fields: Any) -> af.ShellCallContent:
    return af.ShellCallContent(call_id="s1", commands=list(lines), **fields)


def test_commands_are_run_and_answered(bash: Bash) -> None:
    result = af.run_shell(bash, commands("echo out; echo err >&2; exit 3").to_dict())
    assert (result.call_id, result.exit_code, result.outcome) == ("s1", 3, af.ShellOutcome.ERROR)
    assert (result.stdout, result.stderr) == (af.TextContent("out\n"), af.TextContent("err\n"))
    result = asyncio.run(af.run_shell_async(bash, commands("echo 1", "echo 2")))
    assert (result.stdout, result.exit_code) == (af.TextContent("1\n2\n"), 0)
    slow = commands("sleep 5", "echo never", timeout_ms=100)
    assert af.run_shell(bash, slow).outcome is af.ShellOutcome.TIMEOUT
    assert "echo never" not in bash.ran
    somewhere = commands("pwd; echo $A # all", working_directory="/", env={"A": "a b"})
    assert af.run_shell(bash, somewhere).stdout == af.TextContent("/\na b\n")


def test_what_cannot_be_run_is_told_on_stderr(bash: Bash) -> None:
    for shell, payload, reason in (
        (None, commands("ls"), "no shell"),
        (bash, commands("a\0b"), "NUL"),
        (bash, commands(), "needs commands"),
        (bash, commands(action="restart"), "cannot begin anew"),
        (bash, {"type": "shell_call", "call_id": "s1", "commands": 5}, "list"),
    ):
        result = af.run_shell(shell, payload)
        assert result.outcome is af.ShellOutcome.ERROR
        assert result.stderr is not None
        assert reason in result.stderr.text
    assert bash.ran == []
    with pytest.raises(ActionError):
        af.run_shell(bash, {"type": "shell_call", "commands": ["ls"]})


def test_a_session_is_started_anew(bash: Bash) -> None:
    restarts: list[int] = []
    bash.restart = lambda: restarts.append(1)  # type: ignore[attr-defined]
    result = af.run_shell(bash, af.ShellCallContent(call_id="s1", action="restart"))
    assert (restarts, result.outcome, result.exit_code) == ([1], af.ShellOutcome.SUCCESS, None)


@pytest.mark.parametrize("kind", [Desktop, AsyncDesktop, ModelSession, AsyncModelSession, Guard])
def test_a_desktops_machine_runs_commands_and_its_policy_is_asked(bash: Bash, kind: Any) -> None:
    with Desktop(MemoryBackend(), inside=bash) as desktop:  # type: ignore[arg-type] # no files are asked for
        there = desktop if kind is Desktop else desktop.also(Guard()) if kind is Guard else kind(desktop)
        result = asyncio.run(af.run_shell_async(there, commands("echo hi", working_directory="/")))
        if kind is Guard:
            assert (bash.ran, result.outcome, result.additional_properties["denied"]) == ([], "error", True)
            asks: list[Any] = []
            there = ModelSession(desktop, ask=lambda _, context: not asks.append((context.provider, context.call_id)))
            result = af.run_shell(there, commands("echo hi"))
            assert asks == [("agent_framework", "s1")]
        assert result.stdout == af.TextContent("hi\n")


def test_the_packages_shell_call_is_answered_by_its_result(bash: Bash) -> None:
    asks = Content.from_shell_tool_call(
        call_id="s1", commands=["echo a", "exit 3"], timeout_ms=5000, status="completed"
    )
    result = af.run_shell_content(bash, asks)
    assert (result.type, result.call_id) == ("shell_tool_result", "s1")
    assert [(each.stdout, each.exit_code) for each in result.outputs] == [("a\n", 0), ("", 3)]
    assert Content.from_dict(result.to_dict()) == result


def test_an_agent_runs_commands_by_the_executor(bash: Bash) -> None:
    async def work() -> tuple[str, Scripted]:
        async with af.shell_executor(bash) as executor:
            ask = Content.from_function_call(
                call_id="f1", name="run_shell", arguments={"command": "echo $((6*7)); exit 4"}
            )
            client = Scripted([ask], DONE)
            agent = Agent(client=client, tools=[executor.as_function(approval_mode="never_require")])
            return (await agent.run("How much is it?")).text, client

    said, client = asyncio.run(work())
    assert said == "All done."
    (result,) = [content for content in client.seen[-1][-1].contents if content.type == "function_result"]
    assert "42\nexit code: 4" in str(result.items[0].text)  # type: ignore[index]
    properties = result.items[0].additional_properties  # type: ignore[index]
    assert {key: properties[key] for key in ("stdout", "exit_code", "timed_out")} == {
        "stdout": "42\n",
        "exit_code": 4,
        "timed_out": False,
    }
    tool = af.shell_executor(bash).as_function()
    assert (tool.kind, tool.approval_mode) == ("shell", "always_require")


class Session(Bash):
    """A session that can be interrupted and closed."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.begun, self.stop, self.closed = threading.Event(), threading.Event(), 0

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        if command != "hang":
            return super().run(command, timeout=timeout)
        self.begun.set()
        assert self.stop.wait(60)
        return CommandResult("", "", None, "cancelled")

    def interrupt(self) -> None:
        self.stop.set()

    def close(self) -> None:
        self.closed += 1


def test_the_executor_opens_and_closes_what_it_was_told_to_open(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work() -> None:
        executor = af.shell_executor(lambda: session)
        assert (await executor.run("exit 5")).exit_code == 5
        late = await executor.run("sleep 9", timeout=0.1)
        assert (late.timed_out, late.exit_code) == (True, 124)
        hanging = asyncio.ensure_future(executor.run("hang"))
        await asyncio.to_thread(session.begun.wait, 60)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        await executor.close()
        await executor.close()
        async with af.shell_executor(session):
            pass

    asyncio.run(work())
    assert session.closed == 1, "what others have opened is theirs"
    assert inspect.iscoroutinefunction(af.shell_executor(session).run)


def test_the_example_has_a_task_done() -> None:
    client = Scripted([asked(CLICK, {"type": "screenshot"})], DONE)
    assert asyncio.run(load_example("agent_framework_agent").main("Click.", client)) == "All done."
    assert not client.says
    assert result_of(client).screenshot is not None
