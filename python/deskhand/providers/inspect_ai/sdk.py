"""inspect's `Tool` for a desktop. The arguments are decoded in `wire`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from inspect_ai.model import ContentImage, ContentText
from inspect_ai.tool import Tool, ToolError, ToolResult, tool

from deskhand.errors import ActionError
from deskhand.providers.inspect_ai.loop import run_async

# inspect recognizes its own tool only by name and parameters. Its code for removing old pictures is not public.
from inspect_ai.tool._tool import TOOL_INIT_MODEL_INPUT  # isort: skip
from inspect_ai.tool._tools._computer._computer import _computer_model_input  # isort: skip

if TYPE_CHECKING:
    from deskhand.providers.session import AsyncModelSession

Action = Literal[
    "key", "hold_key", "type", "cursor_position", "mouse_move", "left_mouse_down", "left_mouse_up", "left_click",
    "left_click_drag", "right_click", "middle_click", "back_click", "forward_click", "double_click", "triple_click", "scroll",
    "wait", "screenshot", "zoom", "open_web_browser", "navigate",
]  # fmt: skip


@tool(name="computer")
def computer(model_session: AsyncModelSession, max_screenshots: int | None = 1) -> Tool:
    """See `deskhand.providers.inspect_ai.tool`."""

    async def execute(  # noqa: PLR0917 # inspect calls it by name
        action: Action | None = None,
        coordinate: list[int] | None = None,
        duration: int | None = None,
        region: list[int] | None = None,
        scroll_amount: int | None = None,
        scroll_direction: Literal["up", "down", "left", "right"] | None = None,
        start_coordinate: list[int] | None = None,
        text: str | None = None,
        repeat: int | None = None,
        press_enter: bool | None = None,  # noqa: FBT001 # the tool's parameters
        actions: list[dict[str, object]] | None = None,
    ) -> ToolResult:
        """Use the mouse and keyboard of a desktop, and see its screen.

        Every action but `cursor_position` is answered with a screenshot. Points are its pixels.

        Args:
            action: What to do. `key` presses a chord such as "ctrl+s" or "Return"; `hold_key` holds one.
            coordinate: Where, as [x, y]; where the pointer is if left out. Needed by `mouse_move` and `left_click_drag`.
            duration: Seconds, of `hold_key` and `wait`.
            region: What to zoom into, as [x0, y0, x1, y1].
            scroll_amount: How far to scroll, in notches of the wheel.
            scroll_direction: Where to.
            start_coordinate: Where `left_click_drag` begins, as [x, y].
            text: What to `type`, the keys of `key` and `hold_key`, the URL of `navigate`; of a click the keys held meanwhile.
            repeat: How often `key` presses, 1 to 100.
            press_enter: Whether `type` ends with Return.
            actions: Several of these, each an object with an `action`, instead of one.
        """
        given: dict[str, Any] = {
            "action": action, "coordinate": coordinate, "duration": duration, "region": region,
            "scroll_amount": scroll_amount, "scroll_direction": scroll_direction, "start_coordinate": start_coordinate,
            "text": text, "repeat": repeat, "press_enter": press_enter, "actions": actions,
        }  # fmt: skip
        try:
            parts: list[dict[str, Any]] = await run_async(model_session, given)
        except ActionError as error:
            # Reported to the model; every other error ends the sample.
            raise ToolError(str(error)) from None
        return [
            ContentImage(image=part["image"]) if part["type"] == "image" else ContentText(text=part["text"])
            for part in parts
        ]

    if max_screenshots is not None:
        setattr(execute, TOOL_INIT_MODEL_INPUT, _computer_model_input(max_screenshots))
    return execute
