"""The message format of Cua's Agent SDK."""

from typing import Literal, NotRequired, TypedDict

HERE = "deskhand.providers.cua.messages"
UNIONS = ("AgentMessage", "ComputerAction")

Button = Literal["left", "right", "wheel", "back", "forward"]
Status = Literal["completed", "failed", "pending"]


class Usage(TypedDict, total=False):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    response_cost: float


# Of the two optional contents, a message has the one of its type: either may be absent, too.
class InputContent(TypedDict):
    type: Literal["input_image", "input_text"]
    text: NotRequired[str | None]
    image_url: NotRequired[str | None]


class OutputContent(TypedDict):
    type: Literal["output_text"]
    text: str


class SummaryContent(TypedDict):
    type: Literal["summary_text"]
    text: str


class ComputerResultContent(TypedDict):
    type: Literal["computer_screenshot", "input_image"]
    image_url: str


class ClickAction(TypedDict):
    type: Literal["click"]
    button: Button
    x: int
    y: int


class DoubleClickAction(TypedDict, total=False):
    type: Literal["double_click"]
    button: Button
    x: int
    y: int


class DragAction(TypedDict, total=False):
    type: Literal["drag"]
    button: Button
    path: list[tuple[int, int]]


class KeyPressAction(TypedDict):
    type: Literal["keypress"]
    keys: list[str]


class MoveAction(TypedDict):
    type: Literal["move"]
    x: int
    y: int


class ScreenshotAction(TypedDict):
    type: Literal["screenshot"]


class ScrollAction(TypedDict):
    type: Literal["scroll"]
    scroll_x: int
    scroll_y: int
    x: int
    y: int


class TypeAction(TypedDict):
    type: Literal["type"]
    text: str


class WaitAction(TypedDict):
    type: Literal["wait"]


class LeftMouseDownAction(TypedDict):
    type: Literal["left_mouse_down"]
    x: int
    y: int


class LeftMouseUpAction(TypedDict):
    type: Literal["left_mouse_up"]
    x: int
    y: int


ComputerAction = (
    ClickAction
    | DoubleClickAction
    | DragAction
    | KeyPressAction
    | MoveAction
    | ScreenshotAction
    | ScrollAction
    | TypeAction
    | WaitAction
    | LeftMouseDownAction
    | LeftMouseUpAction
)


class UserMessage(TypedDict, total=False):
    type: Literal["message"]
    role: Literal["user", "system", "developer"]
    content: str | list[InputContent]


class AssistantMessage(TypedDict):
    type: Literal["message"]
    role: Literal["assistant"]
    content: list[OutputContent]


class ReasoningMessage(TypedDict):
    type: Literal["reasoning"]
    summary: list[SummaryContent]


class ComputerCallMessage(TypedDict):
    type: Literal["computer_call"]
    call_id: str
    status: Status
    action: ComputerAction


class ComputerCallOutputMessage(TypedDict):
    type: Literal["computer_call_output"]
    call_id: str
    output: ComputerResultContent


class FunctionCallMessage(TypedDict):
    type: Literal["function_call"]
    call_id: str
    status: Status
    name: str
    arguments: str


class FunctionCallOutputMessage(TypedDict):
    type: Literal["function_call_output"]
    call_id: str
    output: str


AgentMessage = (
    UserMessage
    | AssistantMessage
    | ReasoningMessage
    | ComputerCallMessage
    | ComputerCallOutputMessage
    | FunctionCallMessage
    | FunctionCallOutputMessage
)


class AgentResponse(TypedDict):
    output: list[AgentMessage]
    usage: Usage
