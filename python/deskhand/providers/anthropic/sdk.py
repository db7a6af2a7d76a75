"""The classes for Anthropic's own loop: the toolset, the single tools, the shell, the text editor, `elements`, `hand_over`.

This module owns the code that needs the SDK. It has no field of an input and no action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
from anthropic.tools import ToolError, ToolsetUsageError
from anthropic.tools.computer import (
    BetaAbstractComputerToolset20260801,
    BetaAsyncAbstractComputerToolset20260801,
    BetaComputerCursorPositionResult,
    BetaScreenshotResult,
)

from deskhand.errors import ActionError, DesktopLost
from deskhand.providers.anthropic import wire
from deskhand.providers.anthropic.loop import (
    carry_out,
    declare_elements,
    declare_hand_over,
    run,
    run_editor,
    run_elements,
    run_hand_over,
    run_shell,
    run_shell_async,
)
from deskhand.providers.editors import with_editor
from deskhand.providers.element_tools import ELEMENTS
from deskhand.providers.hand_over_tool import HAND_OVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic.tools.computer import (
        BetaAsyncComputerConfirmCallable,
        BetaComputerConfirmCallable,
        BetaComputerMemberResult,
        BetaToolConfigs,
        BetaToolsetCallContext,
        BetaToolsetContent,
    )
    from anthropic.types.beta import (
        BetaComputerMemberInput,
        BetaComputerMemberName,
        BetaComputerToolsetConfigsParam,
        BetaToolUnionParam,
    )

    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AsyncModelSession, ModelSession
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import JSONValue


class ToolsetLost(DesktopLost, ToolsetUsageError):
    """The desktop is gone. This ends the SDK's loop, which would report any other error to the model, again and again."""


class Toolset(BetaAbstractComputerToolset20260801):
    """The toolset for `Anthropic().beta.messages.tool_runner`; also makes a `tool_result` for a loop of your own.

    Attributes:
        session: The model session; the caller closes the desktop.
    """

    def __init__(
        self,
        model_session: ModelSession,
        *,
        confirm: BetaComputerConfirmCallable,
        configs: BetaComputerToolsetConfigsParam | None = None,
        tool_configs: BetaToolConfigs | None = None,
    ) -> None:
        """See `deskhand.providers.anthropic.toolset`."""
        super().__init__(configs=configs, confirm=confirm, tool_configs=tool_configs)
        self.session = model_session

    def execute(
        self, context: BetaToolsetCallContext, name: BetaComputerMemberName, input: BetaComputerMemberInput
    ) -> BetaComputerMemberResult:
        """Carry out one member; the SDK has called `confirm` before."""
        return _execute(self.session, context, name, input)


class AsyncToolset(BetaAsyncAbstractComputerToolset20260801):
    """Like `Toolset`, for `AsyncAnthropic`; cancelling the loop stops the desktop at its next safe point.

    Attributes:
        session: The model session; the caller closes the desktop.
    """

    def __init__(
        self,
        model_session: AsyncModelSession,
        *,
        confirm: BetaAsyncComputerConfirmCallable,
        configs: BetaComputerToolsetConfigsParam | None = None,
        tool_configs: BetaToolConfigs | None = None,
    ) -> None:
        """See `deskhand.providers.anthropic.toolset`."""
        super().__init__(configs=configs, confirm=confirm, tool_configs=tool_configs)
        self.session = model_session

    async def execute(
        self, context: BetaToolsetCallContext, name: BetaComputerMemberName, input: BetaComputerMemberInput
    ) -> BetaComputerMemberResult:
        """Carry out one member; the SDK has called `confirm` before."""
        return await self.session.run(lambda model_session: _execute(model_session, context, name, input))


def _execute(
    model_session: ModelSession, context: BetaToolsetCallContext, name: str, input: BetaComputerMemberInput
) -> BetaComputerMemberResult:
    block = {
        "type": "tool_use",
        "id": context.tool_use.id if context.tool_use is not None else name,
        "name": name,
        "toolset_name": wire.FAMILY,
        "input": input.model_dump(exclude_none=True),
    }
    try:
        result = carry_out(model_session, wire.decode(block, model_session.viewport), pictures=False)
    except ActionError as error:
        raise ToolError(str(error)) from error
    except DesktopLost as lost:
        raise ToolsetLost(lost.cause, lost.detail) from lost
    if result.error is not None:
        raise ToolError(result.error)
    if result.cursor is not None:
        return BetaComputerCursorPositionResult(x=result.cursor.x, y=result.cursor.y)
    if result.picture is not None:
        media_type: Any = wire.mime_of(result.picture.media_type)
        return BetaScreenshotResult(data=result.picture.base64, media_type=media_type)
    return result.text


class Tool(BetaBuiltinFunctionTool):
    """A single tool for `Anthropic().beta.messages.tool_runner`.

    The SDK's loop reports every error of such a tool to the model, even that the desktop is lost.
    """

    def __init__(self, model_session: ModelSession, declaration: Mapping[str, JSONValue]) -> None:
        """See `deskhand.providers.anthropic.tool`."""
        self.session = model_session
        self._declaration = declaration

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", dict(self._declaration))

    def call(self, input: object) -> BetaToolsetContent:
        """Carry out one input."""
        return _content(run(self.session, _block(wire.FAMILY, input), version=str(self._declaration["type"])))


class AsyncTool(BetaAsyncBuiltinFunctionTool):
    """Like `Tool`, for `AsyncAnthropic`."""

    def __init__(self, model_session: AsyncModelSession, declaration: Mapping[str, JSONValue]) -> None:
        """See `deskhand.providers.anthropic.tool`."""
        self.session = model_session
        self._declaration = declaration

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", dict(self._declaration))

    async def call(self, input: object) -> BetaToolsetContent:
        """Carry out one input."""
        block, version = _block(wire.FAMILY, input), str(self._declaration["type"])
        return _content(await self.session.run(lambda model_session: run(model_session, block, version=version)))


class Bash(BetaBuiltinFunctionTool):
    """The shell for `Anthropic().beta.messages.tool_runner`."""

    def __init__(self, shell: AnyShell, timeout: float) -> None:
        """See `deskhand.providers.anthropic.shell_tool`."""
        self._shell = shell
        self._timeout = timeout

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return {"type": "bash_20250124", "name": "bash"}

    def call(self, input: object) -> BetaToolsetContent:
        """Run one command, or begin a new session."""
        return _content(run_shell(self._shell, _block(wire.SHELL, input), timeout=self._timeout))


class AsyncBash(BetaAsyncBuiltinFunctionTool):
    """Like `Bash`, for `AsyncAnthropic`; cancelling the loop ends the command under way; see `shell_calls.with_shell`."""

    def __init__(self, shell: AnyShell, timeout: float) -> None:
        """See `deskhand.providers.anthropic.shell_tool`."""
        self._shell = shell
        self._timeout = timeout

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return {"type": "bash_20250124", "name": "bash"}

    async def call(self, input: object) -> BetaToolsetContent:
        """Run one command, or begin a new session."""
        block = _block(wire.SHELL, input)
        return _content(await run_shell_async(self._shell, block, timeout=self._timeout))


class Editor(BetaBuiltinFunctionTool):
    """The text editor for `Anthropic().beta.messages.tool_runner`."""

    def __init__(self, editor: TextEditor, declaration: Mapping[str, JSONValue]) -> None:
        """See `deskhand.providers.anthropic.editor_tool`."""
        self._editor = editor
        self._declaration = declaration

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", dict(self._declaration))

    def call(self, input: object) -> BetaToolsetContent:
        """View or edit a file."""
        return _content(run_editor(self._editor, _block(str(self._declaration["name"]), input)))


class AsyncEditor(BetaAsyncBuiltinFunctionTool):
    """Like `Editor`, for `AsyncAnthropic`."""

    def __init__(self, editor: TextEditor, declaration: Mapping[str, JSONValue]) -> None:
        """See `deskhand.providers.anthropic.editor_tool`."""
        self._editor = editor
        self._declaration = declaration

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", dict(self._declaration))

    async def call(self, input: object) -> BetaToolsetContent:
        """View or edit a file."""
        block = _block(str(self._declaration["name"]), input)
        return _content(await with_editor(self._editor, lambda _: run_editor(self._editor, block)))


class ElementsTool(BetaBuiltinFunctionTool):
    """The tool `elements` for `Anthropic().beta.messages.tool_runner`."""

    def __init__(self, model_session: ModelSession) -> None:
        """See `deskhand.providers.anthropic.elements_tool`."""
        self.session = model_session

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", declare_elements())

    def call(self, input: object) -> BetaToolsetContent:
        """Read them."""
        return _content(run_elements(self.session, _block(ELEMENTS, input)))


class AsyncElementsTool(BetaAsyncBuiltinFunctionTool):
    """Like `ElementsTool`, for `AsyncAnthropic`."""

    def __init__(self, model_session: AsyncModelSession) -> None:
        """See `deskhand.providers.anthropic.elements_tool`."""
        self.session = model_session

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", declare_elements())

    async def call(self, input: object) -> BetaToolsetContent:
        """Read them."""
        return _content(await self.session.run(lambda at: run_elements(at, _block(ELEMENTS, input))))


class HandOverTool(BetaBuiltinFunctionTool):
    """The tool `hand_over` for `Anthropic().beta.messages.tool_runner`."""

    def __init__(self, model_session: ModelSession) -> None:
        """See `deskhand.providers.anthropic.hand_over_tool`."""
        self.session = model_session

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", declare_hand_over())

    def call(self, input: object) -> BetaToolsetContent:
        """Ask, and wait."""
        return _content(run_hand_over(self.session, _block(HAND_OVER, input)))


class AsyncHandOverTool(BetaAsyncBuiltinFunctionTool):
    """Like `HandOverTool`, for `AsyncAnthropic`; cancelling the loop ends the wait."""

    def __init__(self, model_session: AsyncModelSession) -> None:
        """See `deskhand.providers.anthropic.hand_over_tool`."""
        self.session = model_session

    def to_dict(self) -> BetaToolUnionParam:
        """The tool, as the request lists it."""
        return cast("BetaToolUnionParam", declare_hand_over())

    async def call(self, input: object) -> BetaToolsetContent:
        """Ask, and wait."""
        return _content(await self.session.run(lambda at: run_hand_over(at, _block(HAND_OVER, input))))


def _block(name: str, input: object) -> dict[str, Any]:
    # The loop knows the call's id, and puts this content into a result of its own.
    return {"type": "tool_use", "id": name, "name": name, "input": input}


def _content(answer: dict[str, Any]) -> BetaToolsetContent:
    content = cast("BetaToolsetContent", answer["content"])
    if answer.get("is_error"):
        raise ToolError(content)
    return content
