"""The messages of Cua's Agent SDK, between an agent and its computer, as plain dictionaries. Pure.

The types have the names of the published schema. `check_message` checks the parts of a message that the schema knows, and
keeps everything else unchanged: unknown fields and unknown types of messages. The meaning of actions is in
`deskhand.providers.cua`; there is no desktop here.

    >>> history = [user("Open the editor"), computer_call("call_1", {"type": "screenshot"})]
    >>> unanswered(history)
    [{'type': 'computer_call', 'call_id': 'call_1', 'status': 'completed', 'action': {'type': 'screenshot'}}]
    >>> history.append(computer_call_output("call_1", Picture(png)))
    >>> order_problems(history)
    []
    >>> without_images(history, keep=1)       # all but the newest picture replaced by a note of its size
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from deskhand._core.arguments import expect, expect_mapping, expect_several
from deskhand.errors import ActionError, shown
from deskhand.providers.payload import expect_list, expect_object, expect_string, picture_of_url
from deskhand.providers.values import Picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Button: TypeAlias = Literal["left", "right", "wheel", "back", "forward"]
Status: TypeAlias = Literal["completed", "failed", "pending"]


class Usage(TypedDict, total=False):
    """The cost of a response: tokens, and US dollars if known."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    response_cost: float


class InputContent(TypedDict):
    """A text or an image for an agent."""

    type: Literal["input_image", "input_text"]
    text: NotRequired[str | None]
    image_url: NotRequired[str | None]


class OutputContent(TypedDict):
    """A text of an agent."""

    type: Literal["output_text"]
    text: str


class SummaryContent(TypedDict):
    """A text that sums up an agent's thinking."""

    type: Literal["summary_text"]
    text: str


class ComputerResultContent(TypedDict):
    """A screenshot, as a data URL."""

    type: Literal["computer_screenshot", "input_image"]
    image_url: str


class ClickAction(TypedDict):
    """Click a button."""

    type: Literal["click"]
    button: Button
    x: int
    y: int


class DoubleClickAction(TypedDict, total=False):
    """Click a button twice; the left one if none is named."""

    type: Literal["double_click"]
    button: Button
    x: int
    y: int


class DragAction(TypedDict, total=False):
    """Drag along a path, with the left button if none is named."""

    type: Literal["drag"]
    button: Button
    path: list[tuple[int, int]]


class KeyPressAction(TypedDict):
    """Press a chord."""

    type: Literal["keypress"]
    keys: list[str]


class MoveAction(TypedDict):
    """Move the pointer."""

    type: Literal["move"]
    x: int
    y: int


class ScreenshotAction(TypedDict):
    """Look."""

    type: Literal["screenshot"]


class ScrollAction(TypedDict):
    """Scroll; in pixels, positive right and down, unless the reader uses another unit."""

    type: Literal["scroll"]
    scroll_x: int
    scroll_y: int
    x: int
    y: int


class TypeAction(TypedDict):
    """Type a text."""

    type: Literal["type"]
    text: str


class WaitAction(TypedDict):
    """Wait."""

    type: Literal["wait"]


class LeftMouseDownAction(TypedDict):
    """Press the left button and leave it pressed."""

    type: Literal["left_mouse_down"]
    x: int
    y: int


class LeftMouseUpAction(TypedDict):
    """Release the left button."""

    type: Literal["left_mouse_up"]
    x: int
    y: int


ComputerAction: TypeAlias = (
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
"""The action of a computer call: OpenAI's actions, and two of Anthropic's that OpenAI does not have."""


class UserMessage(TypedDict, total=False):
    """A message to an agent; `type` may be left out."""

    type: Literal["message"]
    role: Literal["user", "system", "developer"]
    content: str | list[InputContent]


class AssistantMessage(TypedDict):
    """A message of an agent."""

    type: Literal["message"]
    role: Literal["assistant"]
    content: list[OutputContent]


class ReasoningMessage(TypedDict):
    """An agent's thinking."""

    type: Literal["reasoning"]
    summary: list[SummaryContent]


class ComputerCallMessage(TypedDict):
    """An agent's call for the computer."""

    type: Literal["computer_call"]
    call_id: str
    status: Status
    action: ComputerAction


class ComputerCallOutputMessage(TypedDict):
    """The screen after a call."""

    type: Literal["computer_call_output"]
    call_id: str
    output: ComputerResultContent


class FunctionCallMessage(TypedDict):
    """A function that an agent calls; its arguments are JSON in a string."""

    type: Literal["function_call"]
    call_id: str
    status: Status
    name: str
    arguments: str


class FunctionCallOutputMessage(TypedDict):
    """A function's output."""

    type: Literal["function_call_output"]
    call_id: str
    output: str


AgentMessage: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ReasoningMessage
    | ComputerCallMessage
    | ComputerCallOutputMessage
    | FunctionCallMessage
    | FunctionCallOutputMessage
)
"""Any message of a conversation."""


class AgentResponse(TypedDict):
    """A part of the output of an agent's run."""

    output: list[AgentMessage]
    usage: Usage


_STATUSES = ("completed", "failed", "pending")
_CALLS = ("computer_call", "function_call")
_OUTPUTS = ("computer_call_output", "function_call_output")
_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")


# --- reading ---


def check_message(message: object) -> AgentMessage:
    """Check a message against the schema; a message of an unknown type is accepted.

    Args:
        message: A message, possibly with further fields.

    Returns:
        The message itself, unchanged.

    Raises:
        ActionError: A field is missing or wrong; the error names it.
    """
    plain = expect_object("a message", message)
    kind = plain.get("type", "message")
    if kind == "message":
        _check_said(plain)
    elif kind == "reasoning":
        _check_contents(plain.get("summary"), "summary", ("summary_text",))
    elif kind in _CALLS:
        _check_call(plain, kind)
    elif kind in _OUTPUTS:
        expect_string(f"{kind}: call_id", plain.get("call_id"))
        if kind == "computer_call_output":
            _check_picture(plain.get("output"))
        else:
            expect_string(f"{kind}: output", plain.get("output"))
    else:
        expect_string("a message's type", kind)
    return cast("AgentMessage", message)


def check_response(response: object) -> AgentResponse:
    """Check a response's messages and its usage.

    Raises:
        ActionError: One of them is wrong.
    """
    plain = expect_object("a response", response)
    for message in expect_list("a response's output", plain.get("output")):
        check_message(message)
    for name, value in expect_object("a response's usage", plain.get("usage")).items():
        wrong = isinstance(value, bool) or not isinstance(value, int | float)
        if wrong and name in {*_TOKENS, "response_cost"}:
            raise ActionError(f"usage: {name} is a number, not {shown(value)}")
    return cast("AgentResponse", response)


def _check_said(message: Mapping[str, Any]) -> None:
    role = message.get("role")
    if role == "assistant":
        _check_contents(message.get("content"), "content", ("output_text",))
    elif role not in ("user", "system", "developer"):
        raise ActionError(f"a message's role is user, system, developer or assistant, not {shown(role)}")
    elif not isinstance(message.get("content"), str):
        _check_contents(message.get("content"), "content", ("input_text", "input_image"))


def _check_contents(contents: object, what: str, kinds: tuple[str, ...]) -> None:
    for index, content in enumerate(expect_list(what, contents)):
        plain = expect_object(f"{what}[{index}]", content)
        kind = plain.get("type")
        if kind in kinds:
            field = "image_url" if kind == "input_image" else "text"
            expect_string(f"{what}[{index}]: {field}", plain.get(field))
        else:
            expect_string(f"{what}[{index}]: type", kind)


def _check_call(message: Mapping[str, Any], kind: str) -> None:
    expect_string(f"{kind}: call_id", message.get("call_id"))
    if message.get("status") not in _STATUSES:
        raise ActionError(f"{kind}: status is {', '.join(_STATUSES)}, not {shown(message.get('status'))}")
    if kind == "computer_call":
        expect_string(
            "computer_call: action: type", expect_object("computer_call: action", message.get("action")).get("type")
        )
        return
    expect_string("function_call: name", message.get("name"))
    text = expect_string("function_call: arguments", message.get("arguments"))
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        raise ActionError(f"function_call: arguments are JSON of an object, not {shown(text)}") from None
    expect_object("function_call: arguments", arguments)


def _check_picture(content: object) -> None:
    plain = expect_object("computer_call_output: output", content)
    kind = expect_string("computer_call_output: output: type", plain.get("type"))
    if kind in ("computer_screenshot", "input_image"):
        expect_string("computer_call_output: output: image_url", plain.get("image_url"))


# --- writing ---


def user(content: str, *images: Picture, role: Literal["user", "system", "developer"] = "user") -> UserMessage:
    """A message to an agent: a text, and pictures if given."""
    if not images:
        return {"type": "message", "role": role, "content": content}
    shown_images = [InputContent(type="input_image", image_url=image.url) for image in images]
    return {"type": "message", "role": role, "content": [InputContent(type="input_text", text=content), *shown_images]}


def assistant(*texts: str) -> AssistantMessage:
    """A message of an agent."""
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text} for text in texts],
    }


def reasoning(*texts: str) -> ReasoningMessage:
    """An agent's thinking, as summaries."""
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in texts]}


def computer_call(call_id: str, action: ComputerAction, status: Status = "completed") -> ComputerCallMessage:
    """An agent's call for the computer."""
    return {"type": "computer_call", "call_id": call_id, "status": status, "action": action}


def computer_call_output(
    call_id: str, picture: Picture, kind: Literal["computer_screenshot", "input_image"] = "computer_screenshot"
) -> ComputerCallOutputMessage:
    """The screen after a call."""
    url = expect("picture", picture, Picture).url
    return {"type": "computer_call_output", "call_id": call_id, "output": {"type": kind, "image_url": url}}


def function_call(
    call_id: str, name: str, arguments: Mapping[str, Any], status: Status = "completed"
) -> FunctionCallMessage:
    """A function that an agent calls."""
    plain = dict(expect_mapping("function_call: arguments", arguments))
    try:
        text = json.dumps(plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ActionError(f"the arguments of {shown(name)} are not JSON: {error}") from None
    return {"type": "function_call", "call_id": call_id, "status": status, "name": name, "arguments": text}


def function_call_output(call_id: str, output: str) -> FunctionCallOutputMessage:
    """A function's output."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


# --- a whole history ---


def unanswered(messages: Iterable[AgentMessage]) -> list[ComputerCallMessage | FunctionCallMessage]:
    """The calls that have no output yet, in order; failed calls need none."""
    history = _history(messages)
    answered = {(message["type"], message.get("call_id")) for message in history if message.get("type") in _OUTPUTS}
    functions = {message.get("call_id") for message in history if message.get("type") == "function_call"}
    # A function's output reports why a computer's call failed, unless a function was called with that id.
    answered |= {
        ("computer_call_output", call_id)
        for kind, call_id in answered
        if kind == "function_call_output" and call_id not in functions
    }
    return [
        cast("ComputerCallMessage | FunctionCallMessage", message)
        for message in history
        if message.get("type") in _CALLS
        and message.get("status") != "failed"
        and (f"{message['type']}_output", message.get("call_id")) not in answered
    ]


def order_problems(messages: Iterable[AgentMessage]) -> list[str]:
    """The mistakes in the order of a history, as texts; empty if calls and outputs alternate as they should.

    Every output follows a call of its kind with its id. Every call has one output, before the next message and before the next
    call of another turn, and no id is used twice. A computer's call that failed has a function's output.
    """
    problems: list[str] = []
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    answering = False
    for index, plain in enumerate(_history(messages)):
        kind, call_id = str(plain.get("type", "message")), str(plain.get("call_id"))
        if kind in _OUTPUTS:
            answering = True
            call = waiting.pop(call_id, None)
            if call is None:
                problems.append(f"messages[{index}]: {kind} {call_id} answers no call before it")
            elif f"{call}_output" != kind and (call, kind) != ("computer_call", "function_call_output"):
                problems.append(f"messages[{index}]: {kind} {call_id} answers a {call}")
            continue
        # The calls of a turn may stand together, with thoughts and texts between them; all their outputs follow.
        if waiting and (answering or plain.get("role") in ("user", "system", "developer")):
            problems += [f"messages[{index}]: {kind} comes before the output of {name}" for name in waiting]
            waiting = {}
        answering = False
        if kind in _CALLS:
            if call_id in seen:
                problems.append(f"messages[{index}]: {kind} {call_id} has an id that was used before")
            seen.add(call_id)
            if plain.get("status") != "failed":
                waiting[call_id] = kind
    return problems


def pictures(messages: Iterable[AgentMessage]) -> list[Picture]:
    """The pictures in a history that are data URLs, in order."""
    found = []
    for message in _history(messages):
        for content in _images(message):
            url = content.get("image_url")
            if isinstance(url, str) and url.startswith("data:"):
                found.append(picture_of_url(url))
    return found


def count_images(messages: Iterable[AgentMessage]) -> int:
    """How many pictures in a history are data URLs; placeholders of `without_images` do not count."""
    return sum(_is_picture(content) for message in _history(messages) for content in _images(message))


def without_images(
    messages: Sequence[AgentMessage], *, keep: int = 0, placeholder: str = "data:image/png;base64,"
) -> list[AgentMessage]:
    """A copy of a history without its pictures, to be stored or sent: each data URL is replaced by a note of its size.

    Args:
        messages: The history; it is not changed.
        keep: How many of the newest pictures stay.
        placeholder: The value in a picture's place: by default an empty data URL, so that the messages keep their types.

    Returns:
        The messages; a content without its picture has `omitted_bytes`, the length of the data URL.
    """
    left = keep
    copies: list[AgentMessage] = []
    for message in reversed(_history(messages)):
        plain: Any = message
        for content in reversed(_images(plain)):
            if not _is_picture(content):
                continue
            if left > 0:
                left -= 1
                continue
            bare = {**content, "image_url": placeholder, "omitted_bytes": len(content["image_url"])}
            plain = _with(plain, content, bare)
        copies.append(plain)
    return copies[::-1]


def total_usage(responses: Iterable[AgentResponse]) -> Usage:
    """The usage of all responses together; a value that no response has is left out."""
    total: dict[str, Any] = {}
    for response in _history(responses):
        for name, value in expect_mapping("usage", response.get("usage", {})).items():
            if name in {*_TOKENS, "response_cost"}:
                total[name] = total.get(name, 0) + value
    return cast("Usage", total)


def _history(messages: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [expect_mapping("each of messages", message) for message in expect_several("messages", messages)]


def _images(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The contents of a message that show an image."""
    output, contents = message.get("output"), message.get("content")
    listed = contents if isinstance(contents, list) else [output]
    return [content for content in listed if isinstance(content, Mapping) and "image_url" in content]


def _is_picture(content: Mapping[str, Any]) -> bool:
    url = content.get("image_url")
    return isinstance(url, str) and url.startswith("data:") and "omitted_bytes" not in content


def _with(message: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    if message.get("output") is old:
        return {**message, "output": new}
    return {**message, "content": [new if content is old else content for content in message["content"]]}
