"""Contents and tools for computer use and shells, independent of a provider: calls, results, and declarations. Pure.

Names and fields follow Microsoft Agent Framework's design of December 2025. Its package (1.23) chose other forms: it has one
`Content`, without a text or an error for a computer (see `sdk`). So the few framework classes that the design uses are in
`base`.

This module owns the classes. Their meaning for a desktop is in `wire` and `results`, and for a provider in `fields`.

Where the design allows an `Enum` or a string, a string becomes the enum's member if there is one. Other strings stay: there are
more actions than the enum has.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, Literal, TypeVar

from deskhand.errors import ActionError, shown
from deskhand.providers.agent_framework.base import BaseContent, BaseTool, DataContent, TextContent, text_content
from deskhand.providers.payload import expect_list

_E = TypeVar("_E", bound=Enum)

# --- the computer ---


class ComputerUseTool(BaseTool):
    """A computer that a model may use.

    Attributes:
        display_width: Width of the model's pictures in pixels; None for the default, see `fields.DEFAULT_SIZE`.
        display_height: Their height.
        environment: The kind of computer: "browser", "mac", "windows", "linux", or another that a provider knows.
    """

    type: str = "computer_use_tool"
    _fields = ("display_width", "display_height", "environment")

    def __init__(
        self,
        *,
        display_width: int | None = None,
        display_height: int | None = None,
        environment: Literal["browser", "mac", "windows", "linux"] | str | None = None,  # noqa: PYI051 # as designed
        additional_properties: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(
            **{"name": "computer_use", **kwargs},
            additional_properties=additional_properties,
        )
        self.display_width = display_width
        self.display_height = display_height
        self.environment = environment


class ComputerUseAction(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """The actions that the design names."""

    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    TRIPLE_CLICK = "triple_click"
    MOVE = "move"
    DRAG = "drag"
    TYPE = "type"
    KEY = "key"
    SCREENSHOT = "screenshot"
    SCROLL = "scroll"
    WAIT = "wait"
    ZOOM = "zoom"


class ComputerUseCallContent(BaseContent):
    """One action of a model.

    Attributes:
        type: `computer_call`.
        call_id: The id for the result.
        action: The action; a string if the enum does not have it.
        coordinate: The point, as (x, y) in pixels of the model's picture.
        end_coordinate: The end of a drag.
        text: The text to type.
        key: A key or a chord, such as "Enter" or "ctrl+c".
        button: "left", "right" or "middle", for a click or a drag.
        scroll_amount: How far to scroll, positive down and right, negative up and left; see `wire` for its unit.
        scroll_direction: The axis, "vertical" or "horizontal".
        duration: Milliseconds.
    """

    type: str = "computer_call"
    _fields = (
        "call_id", "action", "coordinate", "end_coordinate", "text", "key", "button", "scroll_amount",
        "scroll_direction", "duration",
    )  # fmt: skip

    def __init__(
        self,
        *,
        call_id: str,
        action: ComputerUseAction | str,
        coordinate: tuple[int, int] | None = None,
        end_coordinate: tuple[int, int] | None = None,
        text: str | None = None,
        key: str | None = None,
        button: Literal["left", "right", "middle"] | None = None,
        scroll_amount: int | None = None,
        scroll_direction: Literal["vertical", "horizontal"] | None = None,
        duration: int | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class. `wire.decode` checks the fields."""
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.action: ComputerUseAction | str = _member(ComputerUseAction, action)
        self.coordinate: tuple[int, int] | None = _pair(coordinate)
        self.end_coordinate: tuple[int, int] | None = _pair(end_coordinate)
        self.text = text
        self.key = key
        self.button = button
        self.scroll_amount = scroll_amount
        self.scroll_direction = scroll_direction
        self.duration = duration


class ComputerUseResultContent(BaseContent):
    """The result of a call.

    Attributes:
        type: `computer_result`.
        call_id: The id of the call.
        screenshot: The screen after the call.
        text_output: A text for the model; a string becomes a `TextContent`.
        error: The error, for the model to read.
    """

    type: str = "computer_result"
    _fields = ("call_id", "screenshot", "text_output", "error")

    def __init__(
        self,
        *,
        call_id: str,
        screenshot: DataContent | None = None,
        text_output: TextContent | str | None = None,
        error: str | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class.

        Raises:
            ActionError: The screenshot or the text has a wrong type.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        if isinstance(screenshot, Mapping):
            screenshot = DataContent.from_dict(screenshot)
        if not isinstance(screenshot, DataContent | None):
            raise ActionError(f"a screenshot must be a DataContent, not {shown(type(screenshot).__name__)}")
        self.call_id = call_id
        self.screenshot = screenshot
        self.text_output: TextContent | None = text_content(text_output)
        self.error = error


# --- the shell ---


class ShellTool(BaseTool):
    """A shell that a model may use; provider-specific settings are in its additional properties."""

    type: str = "shell_tool"

    def __init__(self, *, additional_properties: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(**{"name": "shell", **kwargs}, additional_properties=additional_properties)


class ShellAction(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """The actions of a shell call."""

    EXECUTE = "execute"
    RESTART = "restart"


class ShellCallContent(BaseContent):
    """Commands of a model for a shell.

    Attributes:
        type: `shell_call`.
        call_id: The id for the result.
        action: Run the commands, or begin a new session (and then run the commands, if any).
        commands: The command lines.
    """

    type: str = "shell_call"
    _fields = ("call_id", "action", "commands")

    def __init__(
        self,
        *,
        call_id: str,
        action: ShellAction | str = ShellAction.EXECUTE,
        commands: list[str] | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class. `shells.decode_shell` checks the fields."""
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.action: ShellAction | str = _member(ShellAction, action)
        self.commands = commands


class ShellOutcome(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """How commands ended."""

    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class ShellResultContent(BaseContent):
    """The result of commands.

    Attributes:
        type: `shell_result`.
        call_id: The id of the call.
        stdout: Their standard output; a string becomes a `TextContent`.
        stderr: Their standard error, likewise.
        exit_code: The exit code of the last command; None if none ran to its end.
        outcome: How the call ended.
    """

    type: str = "shell_result"
    _fields = ("call_id", "stdout", "stderr", "exit_code", "outcome")

    def __init__(
        self,
        *,
        call_id: str,
        stdout: TextContent | str | None = None,
        stderr: TextContent | str | None = None,
        exit_code: int | None = None,
        outcome: ShellOutcome | str = ShellOutcome.SUCCESS,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class.

        Raises:
            ActionError: An output is not a text.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.stdout: TextContent | None = text_content(stdout)
        self.stderr: TextContent | None = text_content(stderr)
        self.exit_code = exit_code
        self.outcome: ShellOutcome | str = _member(ShellOutcome, outcome)


# --- fields ---


def _member(kind: type[_E], value: _E | str) -> _E | str:
    try:
        return kind(value)
    except ValueError:
        return value


def _pair(value: Any) -> Any:
    # JSON has no tuples. Anything else that is not a pair is reported where it is read.
    return tuple(expect_list("a coordinate", value)) if isinstance(value, list) else value
