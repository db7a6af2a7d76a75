"""A desktop as OpenAI's computer: `computer` and `computer_use_preview`, `shell` and `local_shell`.

With the `openai` package, or any other client of the Responses API:

    from deskhand.providers import openai as deskhand_openai

    client = openai.OpenAI()
    response = client.responses.create(model=..., input=task, tools=[deskhand_openai.declare(desktop)])
    while items := deskhand_openai.respond(session, response):
        response = client.responses.create(..., previous_response_id=response.id, input=items)

With `openai-agents` (`pip install 'deskhand[openai]'`):

    tool = deskhand_openai.tool(desktop)
    config = RunConfig(call_model_input_filter=deskhand_openai.input_filter(tool))
    result = await Runner.run(Agent(name="desk", tools=[tool]), task, run_config=config)

`elements_tool(session)` is a function for the same agent: the model reads the elements that applications report. For your own
loop, add `declare_elements()` to the tools and use `respond(..., elements=True)`. `hand_over_tool(session)`, or
`declare_hand_over()` and `run_hand_over`, lets it ask a person for help.

OpenAI's `computer_call_output` has no place for an error. The screen shows that something was not done, and a message after it
says what (`respond`, `input_filter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.extras import load
from deskhand.providers.openai.hand_over import declare_hand_over, run_hand_over, run_hand_over_async
from deskhand.providers.openai.loop import (
    declare,
    declare_elements,
    declare_shell,
    respond,
    respond_async,
    run,
    run_async,
    run_elements,
    run_elements_async,
    run_shell,
    run_shell_async,
)
from deskhand.providers.openai.wire import decode, decode_result, encode, encode_call, note
from deskhand.providers.openai.wire_shell import decode_shell, decode_shell_result, encode_shell, encode_shell_call

if TYPE_CHECKING:
    from agents import FunctionTool

    from deskhand.aio.desktop import AsyncDesktop
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.openai.sdk import (
        DesktopComputer,
        Filter,
        SafetyHook,
        ShellExecutor,
        SyncDesktopComputer,
        Tool,
    )
    from deskhand.providers.session import AnyDesktop, ModelSession, SessionOptions
    from deskhand.providers.shell_calls import AnyShell

__all__ = [
    "computer",
    "declare",
    "declare_elements",
    "declare_hand_over",
    "declare_shell",
    "decode",
    "decode_result",
    "decode_shell",
    "decode_shell_result",
    "elements_tool",
    "encode",
    "encode_call",
    "encode_shell",
    "encode_shell_call",
    "hand_over_tool",
    "input_filter",
    "note",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "run_elements",
    "run_elements_async",
    "run_hand_over",
    "run_hand_over_async",
    "run_shell",
    "run_shell_async",
    "safety_check",
    "shell_executor",
    "sync_computer",
    "tool",
]


def _sdk(part: str = "sdk") -> Any:
    return load(f"deskhand.providers.openai.{part}", "openai")


def computer(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> DesktopComputer:
    """The desktop as an `agents.AsyncComputer`; `tool` makes a whole tool of it.

    An action that fails is logged and ends its call's actions; the run continues with a picture of the screen. Only a lost
    desktop ends the run, and a call with safety checks that no handler of the tool has acknowledged.

    Args:
        desktop: The desktop, or a model session on it; for one run at a time.
        options: For a `ModelSession`, if none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: DesktopComputer = _sdk().DesktopComputer(desktop, **options)
    return made


def sync_computer(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> SyncDesktopComputer:
    """The desktop as an `agents.Computer` with blocking calls; see `computer`.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: SyncDesktopComputer = _sdk().SyncDesktopComputer(desktop, **options)
    return made


def tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> Tool:
    """The desktop as the `agents.ComputerTool` of an agent.

    The session's `ask` is called where OpenAI wants a confirmation; without `ask`, such a call ends the run. Without a handler
    openai-agents would carry it out.

    Args:
        desktop: As for `computer`.
        options: As for `computer`.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: Tool = _sdk().tool(computer(desktop, **options))
    return made


def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> FunctionTool:
    """The function `elements` as an `agents.FunctionTool`: the model reads the elements that applications report.

    Args:
        desktop: The model session of `tool` or `computer`, so that points are in pixels of its pictures, or the desktop.
        options: As for `computer`.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: FunctionTool = _sdk("sdk_functions").elements_tool(desktop, **options)
    return made


def hand_over_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> FunctionTool:
    """The function `hand_over` as an `agents.FunctionTool`: the model asks a person for help (`Desktop.hand_over`).

    Args:
        desktop: The model session of `tool` or `computer`, or the desktop. A person must be able to answer: see
            `deskhand.watch`.
        options: As for `computer`.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: FunctionTool = _sdk("sdk_functions").hand_over_tool(desktop, **options)
    return made


def input_filter(target: Tool | DesktopComputer | SyncDesktopComputer) -> Filter:
    """A `RunConfig.call_model_input_filter` that reports failed actions to the model, and asks for unscaled pictures.

    Args:
        target: The tool or computer of the run.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: Filter = _sdk().input_filter(target)
    return made


def safety_check(desktop: Desktop | AsyncDesktop | None) -> SafetyHook:
    """A `ComputerTool.on_safety_check` that acknowledges only confirmed checks; `tool` has it already.

    Args:
        desktop: The desktop whose `review` asks. A check that is not confirmed for any reason, including a missing policy, is
            refused, and openai-agents ends the run.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: SafetyHook = _sdk().safety_check(desktop)
    return made


def shell_executor(shell: AnyShell) -> ShellExecutor:
    """The executor of an `agents.ShellTool` or an `agents.LocalShellTool`.

    Args:
        shell: Runs the commands: an object with `run(command, timeout)`, or a desktop with a container.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    made: ShellExecutor = _sdk().ShellExecutor(shell)
    return made
