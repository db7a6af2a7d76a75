"""The data structures of conatus's tool calls.

What it calls `ComputerUseEnvironment` and `RuntimeVariable` is its runtime's own, and carried.
"""

from dataclasses import dataclass
from typing import Any, Literal

HERE = "deskhand.execution.tool_calls"
CARRIED = ("JSONType", "ComputerUseEnvironment", "RuntimeVariable")
UNIONS = ("ComputerUseAction",)

JSONType = ComputerUseEnvironment = RuntimeVariable = Any


@dataclass
class AIToolCall:
    name: str
    returned_arguments: dict[str, JSONType] | str
    call_id: str | None = None
    type: Literal["function"] = "function"
    requires_local_execution: bool = True
    could_be_structured_output: bool = False


@dataclass
class CUAction:
    environment: ComputerUseEnvironment
    environment_variable: RuntimeVariable
    call_id: str | None


@dataclass
class CULeftMouseDown(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["left_mouse_down"] = "left_mouse_down"


@dataclass
class CULeftMouseUp(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["left_mouse_up"] = "left_mouse_up"


@dataclass
class CULeftMouseClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["left_mouse_click"] = "left_mouse_click"


@dataclass
class CULeftMouseDoubleClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["left_mouse_double_click"] = "left_mouse_double_click"


@dataclass
class CULeftMouseTripleClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["left_mouse_triple_click"] = "left_mouse_triple_click"


@dataclass
class CUMiddleClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["middle_click"] = "middle_click"


@dataclass
class CURightClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["right_click"] = "right_click"


@dataclass
class CUBackClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["back_click"] = "back_click"


@dataclass
class CUForwardClick(CUAction):
    xy: tuple[int, int] | None = None
    type: Literal["forward_click"] = "forward_click"


@dataclass
class CUDrag(CUAction):
    xy: list[tuple[int, int]]
    type: Literal["drag"] = "drag"


@dataclass
class CUKeypress(CUAction):
    keys: list[str]
    type: Literal["keypress"] = "keypress"


@dataclass
class CUKeypressHold(CUAction):
    keys: list[str]
    duration: float
    type: Literal["keypress_hold"] = "keypress_hold"


@dataclass
class CUMove(CUAction):
    xy: tuple[int, int]
    type: Literal["move"] = "move"


@dataclass
class CUScreenshot(CUAction):
    type: Literal["screenshot"] = "screenshot"


@dataclass
class CUScroll(CUAction):
    start_xy: tuple[int, int] | None = None
    distance_xy: tuple[int, int] | None = None
    magnitude: float | None = None
    direction: Literal["up", "down", "left", "right"] | None = None
    type: Literal["scroll"] = "scroll"


@dataclass
class CUType(CUAction):
    text: str
    type: Literal["type"] = "type"


@dataclass
class CUWait(CUAction):
    duration: float | None = None
    type: Literal["wait"] = "wait"


ComputerUseAction = (
    CULeftMouseDown
    | CULeftMouseUp
    | CULeftMouseClick
    | CULeftMouseDoubleClick
    | CULeftMouseTripleClick
    | CUMiddleClick
    | CURightClick
    | CUBackClick
    | CUForwardClick
    | CUDrag
    | CUKeypress
    | CUKeypressHold
    | CUMove
    | CUScreenshot
    | CUScroll
    | CUType
    | CUWait
)
