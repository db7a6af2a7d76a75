"""Microsoft Agent Framework: its contents for computers and shells, and what they do, as its design has them."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from compatibility.declared import agent_framework as design
from compatibility.table import Raises, Row, World, declared_rows, each
from deskhand import ActionError
from deskhand.providers import agent_framework as af
from deskhand.providers.session import ModelSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Shell


def call(action: Any, **fields: Any) -> af.ComputerUseCallContent:
    return af.ComputerUseCallContent(call_id="call_1", action=action, **fields)


def commands(*lines: str, **fields: Any) -> af.ShellCallContent:
    return af.ShellCallContent(call_id="call_1", commands=list(lines) or None, **fields)


SHOT = af.DataContent(data=b"png", media_type="image/png")
TOOL = af.ComputerUseTool(display_width=1024, display_height=768, additional_properties={"display_number": 1})
EXAMPLE = af.ComputerUseResultContent(
    call_id="call_1", screenshot=SHOT, text_output=af.TextContent(text="Clipboard content: Hello World")
)
FAILED = af.ComputerUseResultContent(call_id="call_1", error="Failed to click: coordinates out of bounds")
KINDS = (af.ComputerUseCallContent, af.ComputerUseResultContent, af.ShellCallContent, af.ShellResultContent)
LEAST: dict[Any, dict[str, Any]] = {
    af.ComputerUseCallContent: {"call_id": "c", "action": "click"},
    af.ComputerUseResultContent: {"call_id": "c"},
    af.ShellCallContent: {"call_id": "c"},
    af.ShellResultContent: {"call_id": "c"},
}
TYPES = ("computer_call", "computer_result", "shell_call", "shell_result")

CONTENTS = [
    *(
        Row(f"{kind.__name__}.type", "always the same", lambda kind=kind: kind(**LEAST[kind]).type, type_)
        for kind, type_ in zip(KINDS, TYPES, strict=True)
    ),
    *(
        Row(kind.__name__, "is a BaseContent", lambda kind=kind: issubclass(kind, af.BaseContent))
        for kind in (*KINDS, af.TextContent, af.DataContent)
    ),
    *(
        Row(kind.__name__, "is a BaseTool", lambda kind=kind: issubclass(kind, af.BaseTool))
        for kind in (af.ComputerUseTool, af.ShellTool)
    ),
    *(
        Row(
            f"{kind.__name__}.{name}",
            "is kept",
            lambda kind=kind, name=name, given=given: getattr(kind(**LEAST[kind], **{name: given}), name),
            given,
        )
        for kind in KINDS
        for name, given in (
            ("annotations", [{"a": 1}]),
            ("additional_properties", {"cost": 5}),
            ("raw_representation", "as it was"),
        )
    ),
    *(
        Row(
            f"{kind.__name__}.kwargs",
            "are additional properties",
            lambda kind=kind: kind(**LEAST[kind], cost=5).additional_properties,
            {"cost": 5},
        )
        for kind in KINDS
    ),
    *(
        Row(
            kind.__name__,
            "comes back from its plain form",
            lambda kind=kind: kind.from_dict(kind(**LEAST[kind], cost=5).to_dict()) == kind(**LEAST[kind], cost=5),
        )
        for kind in KINDS
    ),
    *(
        Row(
            f"{kind.__name__}.call_id",
            "is required",
            lambda kind=kind: kind(**{k: v for k, v in LEAST[kind].items() if k != "call_id"}),
            Raises(TypeError, "call_id"),
        )
        for kind in KINDS
    ),
    Row(
        "ComputerUseCallContent.action",
        "is required",
        lambda: af.ComputerUseCallContent(call_id="c"),
        Raises(TypeError),
    ),  # type: ignore[call-arg] # that is the row
    Row(
        "ComputerUseCallContent.action",
        "a string of the enum is it",
        lambda: call("drag").action is af.ComputerUseAction.DRAG,
    ),
    Row("ComputerUseCallContent.action", "another string stays one", lambda: call("fly").action, "fly"),
    Row("ComputerUseAction", "is a string", lambda: af.ComputerUseAction.CLICK == "click"),
    Row("ShellAction", "is a string", lambda: af.ShellAction.RESTART == "restart"),
    Row("ShellOutcome", "is a string", lambda: af.ShellOutcome.TIMEOUT == "timeout"),
    Row("ComputerUseTool", "the design's example", lambda: (TOOL.display_width, TOOL.display_height), (1024, 768)),
    Row(
        "ComputerUseTool",
        "may have an environment alone",
        lambda: af.ComputerUseTool(environment="linux").environment,
        "linux",
    ),
    Row(
        "ComputerUseTool.additional_properties",
        "what only a provider knows",
        lambda: TOOL.additional_properties,
        {"display_number": 1},
    ),
    Row(
        "ComputerUseTool.kwargs",
        "are additional properties",
        lambda: af.ComputerUseTool(x=1).additional_properties,
        {"x": 1},
    ),
    Row("ShellTool", "needs nothing", lambda: af.ShellTool().additional_properties, {}),
    Row(
        "ShellTool.additional_properties",
        "what only a provider knows",
        lambda: af.ShellTool(additional_properties={"x": 1}).additional_properties,
        {"x": 1},
    ),
    Row("ShellTool.kwargs", "are additional properties", lambda: af.ShellTool(x=1).additional_properties, {"x": 1}),
    Row(
        "ComputerUseResultContent",
        "with a text",
        lambda: EXAMPLE.text_output and EXAMPLE.text_output.text,
        "Clipboard content: Hello World",
    ),
    Row(
        "ComputerUseResultContent",
        "with an error",
        lambda: (FAILED.error, FAILED.screenshot),
        ("Failed to click: coordinates out of bounds", None),
    ),
    Row(
        "ComputerUseResultContent.text_output",
        "a string becomes a text",
        lambda: af.ComputerUseResultContent(call_id="c", text_output="hi").text_output,
        af.TextContent(text="hi"),
    ),
    Row(
        "ShellResultContent.stdout",
        "a string becomes a text",
        lambda: af.ShellResultContent(call_id="c", stdout="hi").stdout,
        af.TextContent(text="hi"),
    ),
    Row(
        "ShellResultContent.stderr",
        "a string becomes a text",
        lambda: af.ShellResultContent(call_id="c", stderr="hi").stderr,
        af.TextContent(text="hi"),
    ),
    Row(
        "ShellResultContent.outcome",
        "a string of the enum is it",
        lambda: af.ShellResultContent(call_id="c", outcome="timeout").outcome is af.ShellOutcome.TIMEOUT,
    ),
    Row(
        "ShellResultContent.exit_code",
        "None where no command was executed",
        lambda: af.ShellResultContent(call_id="c").exit_code,
        None,
    ),
    Row("ShellCallContent.action", "executes", lambda: commands("ls").action, af.ShellAction.EXECUTE),
    Row("ShellCallContent.commands", "a list", lambda: commands("ls", "pwd").commands, ["ls", "pwd"]),
    Row("DataContent", "its bytes", lambda: (SHOT.data, SHOT.media_type), (b"png", "image/png")),
    Row("DataContent", "is a data URI", lambda: SHOT.uri, "data:image/png;base64,cG5n"),
    Row("TextContent", "its text", lambda: af.TextContent(text="hi").text, "hi"),
]


@each([*declared_rows(design), *CONTENTS])
def test_contents_are_as_designed(row: Row) -> None:
    row.check()


# --- what a computer's calls do ---


def _click(button: int, x: int, y: int, times: int = 1) -> list[str]:
    return [f"+{button}@{x},{y}", f"-{button}@{x},{y}"] * times


A = af.ComputerUseAction
HERE = ["+1@here", "-1@here"]
# `@here` is where the pointer was.
DONE: list[tuple[af.ComputerUseCallContent, list[str]]] = [
    (call(A.CLICK, coordinate=(10, 20)), _click(1, 10, 20)),
    (call(A.CLICK, coordinate=(11, 20), button="left"), _click(1, 11, 20)),
    (call(A.CLICK, coordinate=(12, 20), button="right"), _click(3, 12, 20)),
    (call(A.CLICK, coordinate=(13, 20), button="middle"), _click(2, 13, 20)),
    (call(A.CLICK), HERE),
    (call(A.DOUBLE_CLICK, coordinate=(300, 20)), _click(1, 300, 20, 2)),
    (call(A.DOUBLE_CLICK, coordinate=(340, 20), button="right"), _click(3, 340, 20, 2)),
    (call(A.DOUBLE_CLICK, coordinate=(380, 20), button="middle"), _click(2, 380, 20, 2)),
    (call(A.DOUBLE_CLICK), HERE * 2),
    (call(A.TRIPLE_CLICK, coordinate=(300, 60)), _click(1, 300, 60, 3)),
    (call(A.TRIPLE_CLICK, coordinate=(340, 60), button="right"), _click(3, 340, 60, 3)),
    (call(A.TRIPLE_CLICK, coordinate=(380, 60), button="middle"), _click(2, 380, 60, 3)),
    (call(A.MOVE, coordinate=(70, 80)), []),
    (call(A.DRAG, coordinate=(30, 30), end_coordinate=(60, 40)), ["+1@30,30", "-1@60,40"]),
    (call(A.DRAG, end_coordinate=(60, 40)), ["+1@here", "-1@60,40"]),
    (call(A.DRAG, coordinate=(30, 30), end_coordinate=(60, 40), button="right"), ["+3@30,30", "-3@60,40"]),
    (call(A.TYPE, text="hi"), ["+h", "-h", "+i", "-i"]),
    (call(A.KEY, key="Enter"), ["+Return", "-Return"]),
    (call(A.KEY, key="ctrl+c"), ["+Control_L", "+c", "-c", "-Control_L"]),
    (call(A.SCREENSHOT), []),
    (call(A.SCROLL, coordinate=(50, 50), scroll_amount=100), _click(5, 50, 50)),
    (call(A.SCROLL, coordinate=(50, 50), scroll_amount=-200, scroll_direction="vertical"), _click(4, 50, 50, 2)),
    (call(A.SCROLL, coordinate=(50, 50), scroll_amount=100, scroll_direction="horizontal"), _click(7, 50, 50)),
    (call(A.SCROLL, coordinate=(50, 50), scroll_amount=-100, scroll_direction="horizontal"), _click(6, 50, 50)),
    (call(A.WAIT, duration=1), []),
    (call(A.WAIT), []),
    (call(A.ZOOM, region=[0, 0, 200, 100]), []),
]  # fmt: skip


@pytest.mark.parametrize(("content", "seen"), DONE, ids=lambda value: repr(value)[:120])
def test_every_action_is_done_and_answered_with_a_screenshot(
    world: World, content: af.ComputerUseCallContent, seen: list[str]
) -> None:
    world.rest()
    result = af.run(world.desktop, content, size=None)
    assert world.told() == seen
    assert (result.call_id, result.error) == ("call_1", None)
    assert result.screenshot is not None
    with Image.open(io.BytesIO(result.screenshot.data)) as image:
        assert image.size == ((200, 100) if content.action is A.ZOOM else world.desktop.size)
    assert result.screenshot.media_type == "image/png"
    if content.coordinate and content.action is not A.DRAG:
        assert world.desktop.pointer == content.coordinate


def test_every_action_is_in_the_table() -> None:
    assert {content.action for content, _ in DONE} == set(A)


def test_a_duration_is_in_milliseconds() -> None:
    step = af.decode(call(A.WAIT, duration=1500), _viewport()).steps[0]
    assert getattr(step, "duration", None) == 1.5


def _viewport() -> Any:
    from deskhand import Size, Viewport  # noqa: PLC0415 # for this alone

    return Viewport(Size(1280, 800), Size(1280, 800))


WRONG: list[tuple[af.ComputerUseCallContent, str]] = [
    (call(A.CLICK, coordinate=(5000, 1)), "outside"),
    (call(A.MOVE), "coordinate"),
    (call(A.DRAG, coordinate=(1, 2)), "end_coordinate"),
    (call(A.TYPE), "text"),
    (call(A.KEY), "key"),
    (call(A.KEY, key="nokey"), "nokey"),
    (call(A.ZOOM), "region"),
    (call("fly"), "fly"),
    (call(A.CLICK, coordinate=(1, 2), button="thumb"), "button"),
    (call(A.SCROLL, scroll_direction="up", scroll_amount=1), "scroll_direction"),
    (call(A.CLICK, coordinate=(1, 2), pending_safety_checks=[{"id": "s1", "message": "sure?"}]), "no policy"),
    (call(A.CLICK, coordinate=(1, 2), pending_safety_review=True), "no policy"),
]


@pytest.mark.parametrize(("content", "why"), WRONG, ids=lambda value: repr(value)[:120])
def test_what_cannot_be_done_is_the_results_error(world: World, content: af.ComputerUseCallContent, why: str) -> None:
    world.rest()
    result = af.run(world.desktop, content)
    assert result.call_id == "call_1"
    assert why in (result.error or "")
    assert world.told() == []


@pytest.mark.parametrize("checked", [{"pending_safety_checks": [{"id": "s1"}]}, {"pending_safety_review": True}])
def test_what_must_be_approved_is_done_when_somebody_has(world: World, checked: dict[str, Any]) -> None:
    world.rest()
    asked: list[Any] = []
    model_session = ModelSession(world.desktop, ask=lambda action, _: not asked.append(action))
    assert af.run(model_session, call(A.CLICK, coordinate=(10, 60), **checked)).error is None
    assert (world.told(), len(asked)) == (_click(1, 10, 60), 1)


def test_the_loop_of_the_design(world: World) -> None:
    world.rest()
    response = [af.TextContent(text="I look."), call(A.SCREENSHOT), call(A.CLICK, coordinate=(10, 100))]
    results = [af.run(world.desktop, each) for each in response if isinstance(each, af.ComputerUseCallContent)]
    assert [result.error for result in results] == [None, None]
    assert world.told() == _click(1, 10, 100)


# --- what a shell's do ---


@pytest.fixture(scope="module")
def shell(world: World) -> Iterator[Shell]:
    with world.desktop.host.open_shell(cwd="/") as opened:
        yield opened


O = af.ShellOutcome  # noqa: E741 # no other name is as short
RAN: list[tuple[str, af.ShellCallContent, dict[str, Any]]] = [
    ("stdout", commands("echo out"), {"stdout": "out\n", "stderr": None, "exit_code": 0, "outcome": O.SUCCESS}),
    ("stderr", commands("echo err >&2"), {"stdout": None, "stderr": "err\n", "exit_code": 0, "outcome": O.SUCCESS}),
    ("exit_code", commands("exit_code() { return 3; }; exit_code"), {"exit_code": 3, "outcome": O.ERROR}),
    ("several", commands("A=5", "echo $A"), {"stdout": "5\n", "exit_code": 0, "outcome": O.SUCCESS}),
    ("state is kept", commands("cd /usr; B=6"), {"exit_code": 0, "outcome": O.SUCCESS}),
    ("state was kept", commands("pwd; echo $B"), {"stdout": "/usr\n6\n", "outcome": O.SUCCESS}),
    ("restart", commands(action=af.ShellAction.RESTART), {
        "stdout": "The shell was started anew.", "stderr": None, "exit_code": None, "outcome": O.SUCCESS,
    }),
    ("state is gone", commands("echo ${B-none}"), {"stdout": "none\n", "outcome": O.SUCCESS}),
    ("timeout", commands("sleep 60", timeout_ms=100), {"exit_code": None, "outcome": O.TIMEOUT}),
    ("length", commands("printf 123456", max_output_length=3), {"stdout": "123", "exit_code": 0, "outcome": O.SUCCESS}),
    ("nothing", commands(), {"exit_code": None, "outcome": O.ERROR}),
    ("NUL", commands("a\0b"), {"exit_code": None, "outcome": O.ERROR}),
]  # fmt: skip


def test_commands_are_run_and_answered(shell: Shell) -> None:
    # In this order: a shell keeps its state.
    for name, content, expected in RAN:
        result = af.run_shell(shell, content)
        found = {field: getattr(result, field) for field in expected}
        plain = {field: getattr(value, "text", value) for field, value in found.items()}
        assert (result.call_id, plain) == ("call_1", expected), name


def test_a_command_that_was_stopped_is_cancelled(shell: Shell) -> None:
    async def stopped() -> Any:
        waiting = asyncio.ensure_future(af.run_shell_async(shell, commands("echo begun; sleep 60")))
        while not waiting.done():
            shell.interrupt()
            await asyncio.sleep(0)
        return await waiting

    result = asyncio.run(stopped())
    assert (result.outcome, result.exit_code) == (O.CANCELLED, None)


def test_what_failed_to_execute_is_told_on_stderr() -> None:
    result = af.run_shell(None, commands("ls"))
    assert (result.outcome, result.exit_code) == (O.ERROR, None)
    assert "no shell" in (result.stderr.text if result.stderr else "")
    with pytest.raises(ActionError, match="call_id"):
        af.run_shell(None, {"type": "shell_call", "commands": ["ls"]})
