"""Microsoft Agent Framework's design of tools and contents for computers and shells.

Of the framework's own types `DataContent`, `TextContent`, `BaseContent` and `BaseTool` only what the design uses is documented
there: the tests say what that is. What it calls `Annotations` is a dictionary here.
"""

from collections.abc import MutableMapping, Sequence
from enum import Enum
from typing import Any, Literal

from deskhand.providers.agent_framework import DataContent, TextContent

HERE = "deskhand.providers.agent_framework"
CARRIED = ("BaseTool", "BaseContent", "TextContent", "DataContent")

Annotations = MutableMapping[str, Any]


class ComputerUseAction(str, Enum):  # noqa: UP042 # as designed
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


class ShellAction(str, Enum):  # noqa: UP042 # as designed
    EXECUTE = "execute"
    RESTART = "restart"


class ShellOutcome(str, Enum):  # noqa: UP042 # as designed
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class ComputerUseTool:
    def __init__(
        self,
        *,
        display_width: int | None = None,
        display_height: int | None = None,
        environment: Literal["browser", "mac", "windows", "linux"] | str | None = None,  # noqa: PYI051 # as designed
        additional_properties: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None: ...


class ComputerUseCallContent:
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
        annotations: Sequence[Annotations | MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None: ...


class ComputerUseResultContent:
    def __init__(
        self,
        *,
        call_id: str,
        screenshot: DataContent | None = None,
        text_output: TextContent | str | None = None,
        error: str | None = None,
        annotations: Sequence[Annotations | MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None: ...


class ShellTool:
    def __init__(self, *, additional_properties: dict[str, Any] | None = None, **kwargs: Any) -> None: ...


class ShellCallContent:
    def __init__(
        self,
        *,
        call_id: str,
        action: ShellAction | str = ShellAction.EXECUTE,
        commands: list[str] | None = None,
        annotations: Sequence[Annotations | MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None: ...


class ShellResultContent:
    def __init__(
        self,
        *,
        call_id: str,
        stdout: TextContent | str | None = None,
        stderr: TextContent | str | None = None,
        exit_code: int | None = None,
        outcome: ShellOutcome | str = ShellOutcome.SUCCESS,
        annotations: Sequence[Annotations | MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None: ...
