"""The objects for openai-agents (0.24): a computer, its tool, its safety hook, its input filter, and shell executors.

That SDK carries out a call's actions one by one with the methods of a computer, takes one screenshot at the end, and ends the
run on any exception, because its output has no place for an error. So a failed action raises nothing here. It is logged, the
rest of its call is left out, because its clicks would miss what the failed action should have shown, and the model sees the
screen as it is. `input_filter` reports the error.

This module owns these objects; its functions are in `sdk_functions`. The meaning of payloads is in `wire`, and the model is not
called here.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from agents import (
    AsyncComputer,
    Computer,
    ComputerTool,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    UserError,
)

from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop import operations
from deskhand.desktop.access import review
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, DeskhandError, PolicyDenied, shown
from deskhand.providers.openai.loop import (
    PROVIDER,
    async_model_session,
    model_session,
    plain,
    run_shell_async,
)
from deskhand.providers.openai.safety_checks import decode_check
from deskhand.providers.openai.wire import COMPUTER, decode_action, message
from deskhand.providers.openai.wire_shell import LOCAL
from deskhand.providers.values import BLANK, ProviderCall

if TYPE_CHECKING:
    from agents import ComputerToolSafetyCheckData, LocalShellCommandRequest, ShellCommandRequest
    from agents.computer import Button, Environment
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool import ComputerToolCustomDataContext

    from deskhand._core.geometry import Viewport
    from deskhand.providers.session import AnyDesktop, ModelSession, SessionOptions
    from deskhand.providers.shell_calls import AnyShell

SafetyHook: TypeAlias = "Callable[[ComputerToolSafetyCheckData], Awaitable[bool]]"
Filter: TypeAlias = "Callable[[CallModelData[object]], ModelInputData]"

ENVIRONMENT: Environment = "ubuntu"
"""The environment that the preview's tool declares: of the four that openai-agents knows, the nearest to any Linux."""

_log = logging.getLogger(__name__)


class _ActionRunner:
    """How both kinds of computer carry out a call's actions, one after the other.

    Attributes:
        notes: The errors, by the ids of the calls.
        signals_end: Whether `ended` is called after each call. Otherwise a screenshot counts as its end, which it usually is.
    """

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.signals_end = False
        self._failed: str | None = None
        self._done = self._left_out = 0
        self._unplaced: list[str] = []
        # The model points into the picture at the end of its last call, whatever was shown since.
        self._seen: Viewport | None = None
        self._shown: Viewport | None = None

    def act(self, at: ModelSession, action: Mapping[str, object]) -> None:
        """Carry out one action, unless one before it in the same call failed."""
        if self._failed is not None:
            self._left_out += 1
            return
        viewport = self._seen or at.viewport
        try:
            call = ProviderCall(steps=decode_action(action, viewport), viewport=viewport, name=COMPUTER)
        except ActionError as error:
            self._fail(str(error))
            return
        result = at.carry_out(call, before=self._done)
        if result.error is not None:
            self._fail(result.error)
        self._done += 1

    def look(self, at: ModelSession) -> str:
        """The screen as base64 of a PNG file."""
        picture = BLANK
        try:
            picture = at.look()
        except PolicyDenied as denied:
            self._fail(str(denied))
        self._shown = at.viewport
        if not self.signals_end:
            self.ended()
        return picture.base64

    def ended(self, call_id: str | None = None) -> str | None:
        """Record the end of a call, and return its error, if any."""
        self._seen, self._done = self._shown, 0
        if self._failed is None:
            return None
        after = f"; the actions after it ({self._left_out}) were left out" if self._left_out else ""
        text = f"{self._failed}{after}"
        self._failed, self._left_out = None, 0
        if call_id is None:
            self._unplaced.append(text)
        else:
            self.notes[call_id] = text
        return text

    def place(self, call_id: str) -> None:
        """Assign the errors without a call to this call."""
        if self._unplaced:
            self.notes[call_id] = "; ".join(self._unplaced)
            self._unplaced.clear()

    def _fail(self, text: str) -> None:
        _log.warning("a computer action was not carried out: %s", text)
        self._failed = text


_WITHIN = "agents.run_internal.tool_actions"


def _check_acknowledged() -> None:
    """Refuse a call with unacknowledged safety checks: without a handler openai-agents warns, and carries it out.

    The SDK does not pass the call to a computer, so the call is looked up in the calling frames.

    Raises:
        UserError: Like that SDK when a handler says no.
    """
    frame = sys._getframe(1)  # noqa: SLF001 # there is no other way
    while frame is not None:
        if frame.f_globals.get("__name__") == _WITHIN and "acknowledged_safety_checks" in frame.f_code.co_freevars:
            known = frame.f_locals
            pending = {check.id for check in known["action"].tool_call.pending_safety_checks or ()}
            if pending - {check["id"] for check in known["acknowledged_safety_checks"] or ()}:
                raise UserError(
                    "Computer tool safety check was not acknowledged: use deskhand's openai.tool or safety_check"
                )
            return
        frame = frame.f_back  # type: ignore[assignment] # None at the end


class _PreviewDeclaration:
    """The declaration of the preview's tool, for a computer in a session."""

    session: ModelSession

    @property
    def environment(self) -> Environment:
        """The kind of desktop that the preview's tool declares."""
        return ENVIRONMENT

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the model's pictures in pixels."""
        width, height = self.session.viewport.model
        return width, height


class DesktopComputer(_PreviewDeclaration, AsyncComputer):
    """A desktop as openai-agents' computer; see `deskhand.providers.openai.computer`."""

    def __init__(self, desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> None:
        """Make a computer for a desktop; the options are `ModelSession`'s."""
        self._there = async_model_session(desktop, **options)
        self.session: ModelSession = self._there.session
        self.session.refuse_words("openai-agents' computer")
        self.runner: _ActionRunner = _ActionRunner()

    async def _act(self, **action: object) -> None:
        _check_acknowledged()
        await self._there.run(lambda at: self.runner.act(at, action))

    async def screenshot(self) -> str:
        """The screen now, as base64 of a PNG file."""
        _check_acknowledged()
        return await self._there.run(self.runner.look)

    async def click(self, x: int, y: int, button: Button, *, keys: list[str] | None = None) -> None:
        """Click a button, `keys` held."""
        await self._act(type="click", x=x, y=y, button=button, keys=keys)

    async def double_click(self, x: int, y: int, *, button: Button = "left", keys: list[str] | None = None) -> None:
        """Click a button twice, `keys` held; openai-agents passes no button."""
        await self._act(type="double_click", x=x, y=y, button=button, keys=keys)

    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int, *, keys: list[str] | None = None) -> None:
        """Turn the wheel by pixels of the picture, positive right and down, `keys` held."""
        await self._act(type="scroll", x=x, y=y, scroll_x=scroll_x, scroll_y=scroll_y, keys=keys)

    async def type(self, text: str) -> None:
        """Type a text where the focus is."""
        await self._act(type="type", text=text)

    async def wait(self) -> None:
        """Wait for a second."""
        await self._act(type="wait")

    async def move(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        """Move the pointer, `keys` held."""
        await self._act(type="move", x=x, y=y, keys=keys)

    async def keypress(self, keys: list[str]) -> None:
        """Press a chord and release it."""
        await self._act(type="keypress", keys=keys)

    async def drag(self, path: list[tuple[int, int]], *, keys: list[str] | None = None) -> None:
        """Drag with the left button through all points, `keys` held."""
        await self._act(type="drag", path=_points(path), keys=keys)


class SyncDesktopComputer(_PreviewDeclaration, Computer):
    """The same with blocking calls; see `deskhand.providers.openai.sync_computer`."""

    def __init__(self, desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> None:
        """Make a computer for a desktop; the options are `ModelSession`'s."""
        self.session: ModelSession = model_session(desktop, **options)
        self.session.refuse_words("openai-agents' computer")
        self.runner: _ActionRunner = _ActionRunner()

    def _act(self, **action: object) -> None:
        _check_acknowledged()
        self.runner.act(self.session, action)

    def screenshot(self) -> str:
        """The screen now, as base64 of a PNG file."""
        _check_acknowledged()
        return self.runner.look(self.session)

    def click(self, x: int, y: int, button: Button, *, keys: list[str] | None = None) -> None:
        """Click a button, `keys` held."""
        self._act(type="click", x=x, y=y, button=button, keys=keys)

    def double_click(self, x: int, y: int, *, button: Button = "left", keys: list[str] | None = None) -> None:
        """Click a button twice, `keys` held; openai-agents passes no button."""
        self._act(type="double_click", x=x, y=y, button=button, keys=keys)

    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int, *, keys: list[str] | None = None) -> None:
        """Turn the wheel by pixels of the picture, positive right and down, `keys` held."""
        self._act(type="scroll", x=x, y=y, scroll_x=scroll_x, scroll_y=scroll_y, keys=keys)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self._act(type="type", text=text)

    def wait(self) -> None:
        """Wait for a second."""
        self._act(type="wait")

    def move(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        """Move the pointer, `keys` held."""
        self._act(type="move", x=x, y=y, keys=keys)

    def keypress(self, keys: list[str]) -> None:
        """Press a chord and release it."""
        self._act(type="keypress", keys=keys)

    def drag(self, path: list[tuple[int, int]], *, keys: list[str] | None = None) -> None:
        """Drag with the left button through all points, `keys` held."""
        self._act(type="drag", path=_points(path), keys=keys)


def _points(path: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in path]


Tool: TypeAlias = ComputerTool[DesktopComputer | SyncDesktopComputer]


def tool(computer: DesktopComputer | SyncDesktopComputer) -> Tool:
    """See `deskhand.providers.openai.tool`."""
    runner = computer.runner
    runner.signals_end = True

    def ended(context: ComputerToolCustomDataContext) -> dict[str, Any] | None:
        text = runner.ended(context.tool_call.call_id)
        return None if text is None else {"error": text}

    hook = safety_check(computer.session.desktop)
    return ComputerTool(computer=computer, on_safety_check=hook, custom_data_extractor=ended)


def safety_check(desktop: Desktop | AsyncDesktop | None) -> SafetyHook:
    """See `deskhand.providers.openai.safety_check`."""
    reviewer = AsyncDesktop(desktop) if isinstance(desktop, Desktop) else desktop

    async def on_safety_check(data: ComputerToolSafetyCheckData) -> bool:
        if reviewer is None:
            _log.warning("a safety check of OpenAI's is not acknowledged: there is no policy, and no one to ask (ask=)")
            return False
        try:
            check = decode_check(plain(data.safety_check))
            asked = operations.SafetyCheck(check.id, check.code or "", check.message or "")
            call = operations.CallContext(
                PROVIDER, data.tool_call.call_id, agent=data.agent.name, safety_checks=[asked]
            )
            return await reviewer.run(lambda each: review(each, call)) == (asked,)
        except DeskhandError as error:
            _log.warning("a safety check of OpenAI's is not acknowledged: %s", error)
            return False

    return on_safety_check


def input_filter(target: Tool | DesktopComputer | SyncDesktopComputer) -> Filter:
    """See `deskhand.providers.openai.input_filter`."""
    computer = target.computer if isinstance(target, ComputerTool) else target
    if not isinstance(computer, DesktopComputer | SyncDesktopComputer):
        raise ActionError(f"input_filter takes a computer or a tool of deskhand's, not {shown(computer)}")
    runner = computer.runner

    def edit(data: CallModelData[object]) -> ModelInputData:
        runner.ended()
        given: list[Any] = list(data.model_data.input)
        outputs = [item["call_id"] for item in given if _is_output(item)]
        if outputs:
            runner.place(outputs[-1])
        items: list[Any] = []
        for item in given:
            if not _is_output(item):
                items.append(item)
                continue
            items.append({**item, "output": {**item["output"], "detail": "original"}})
            if item["call_id"] in runner.notes:
                items.append(
                    message(f"The computer call was not carried out as asked: {runner.notes[item['call_id']]}")
                )
        return replace(data.model_data, input=items)

    return edit


def _is_output(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "computer_call_output"


class ShellExecutor:
    """Runs the commands of a `ShellTool` or a `LocalShellTool`; see `deskhand.providers.openai.shell_executor`."""

    def __init__(self, session: AnyShell) -> None:
        """Use a shell."""
        self._session = session

    async def __call__(self, request: ShellCommandRequest | LocalShellCommandRequest) -> ShellResult | str:
        """Run the commands of a request.

        Returns:
            A `ShellResult`, or a string for a `LocalShellTool`. If a command could not be run, the reason is in it.
        """
        payload = plain(getattr(request.data, "raw", None) or request.data)
        answer: dict[str, Any] = await run_shell_async(self._session, payload)
        if answer["type"] == f"{LOCAL}_output":
            return str(answer["output"])
        outputs = [
            ShellCommandOutput(entry["stdout"], entry["stderr"], ShellCallOutcome(**entry["outcome"]))
            for entry in answer["output"]
        ]
        return ShellResult(output=outputs, max_output_length=answer.get("max_output_length"))
