"""What Cua's agents take for a computer: an object with the fourteen methods of its `AsyncComputerHandler`.

This module owns that object. It needs no package of Cua's: the protocol is a matter of names. What must never appear here: the
meaning of an action (`wire.py`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Unpack

from deskhand.errors import ActionError, DeskhandError
from deskhand.providers.cua.wire import ScrollUnit, decode_action
from deskhand.providers.session import AsyncModelSession, SessionOptions, with_usual
from deskhand.providers.values import Finish, ProviderCall

if TYPE_CHECKING:
    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.values import Result

__all__ = ["PROVIDER", "ComputerHandler"]

PROVIDER = "cua"
"""What policies and their logs are told of whose calls these are."""


class ComputerHandler:
    """A desktop as Cua's agents drive it: `ComputerAgent(model=..., tools=[cua.tool(desktop)])`.

    What a method cannot do it raises, as the agent's own `ToolError` where that is loaded: the agent then tells it to a model.
    So it does of arguments that it does not take and that say how something is done; of others it takes no notice.
    Cua's agent acknowledges every safety check before anybody could ask; a policy still judges each action here.

    Attributes:
        model_session: The session at the desktop.
        scroll_unit: What the numbers of a scroll count.
    """

    def __init__(
        self, desktop: AnyDesktop, *, scroll_unit: ScrollUnit = "pixels", **options: Unpack[SessionOptions]
    ) -> None:
        """Begin a session.

        Args:
            desktop: The desktop; who made it closes it.
            scroll_unit: `pixels`, as loops for OpenAI's models scroll, or `notches`, as the loop for Anthropic's does.
            options: As of `ModelSession`: size, settle, policy.
        """
        self.session: AsyncModelSession = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
        self.scroll_unit = scroll_unit

    async def get_environment(self) -> Literal["windows", "mac", "linux", "browser"]:
        """Always `linux`."""
        return "linux"

    async def get_dimensions(self) -> tuple[int, int]:
        """Width and height in pixels of the pictures that `screenshot` gives."""
        width, height = self.session.viewport.model
        return width, height

    async def screenshot(self, text: str | None = None, **_: Any) -> str:  # noqa: ARG002 # a label that no picture shows
        """The screen as a PNG in base64."""
        return (await self.session.look()).base64

    async def click(self, x: int, y: int, button: str = "left", **more: Any) -> None:
        """Click a button: left, right, wheel or middle, back, forward."""
        await self._act({**more, "type": "click", "x": x, "y": y, "button": button})

    async def double_click(self, x: int | None = None, y: int | None = None, button: str = "left", **more: Any) -> None:
        """Click a button twice, at a point or where the pointer is."""
        await self._act({**more, "type": "double_click", "x": x, "y": y, "button": button})

    async def right_click(self, x: int, y: int, **more: Any) -> None:
        """Click the right button."""
        await self._act({**more, "type": "right_click", "x": x, "y": y})

    async def scroll(self, x: int, y: int, scroll_x: int = 0, scroll_y: int = 0, **more: Any) -> None:
        """Scroll, positive right and down, in the unit that was chosen."""
        await self._act({**more, "type": "scroll", "x": x, "y": y, "scroll_x": scroll_x, "scroll_y": scroll_y})

    async def type(self, text: str, **more: Any) -> None:
        """Type a text."""
        await self._act({**more, "type": "type", "text": text})

    async def wait(self, ms: int = 1000, **more: Any) -> None:
        """Let so many milliseconds pass."""
        await self._act({**more, "type": "wait", "ms": ms})

    async def move(self, x: int, y: int, **more: Any) -> None:
        """Move the pointer."""
        await self._act({**more, "type": "move", "x": x, "y": y})

    async def keypress(self, keys: list[str] | str, **more: Any) -> None:
        """Press a chord."""
        await self._act({**more, "type": "keypress", "keys": keys})

    async def drag(self, path: list[Any] | None = None, button: str = "left", **more: Any) -> None:
        """Drag along a path of points, or from `start_x`, `start_y` to `end_x`, `end_y`."""
        await self._act({**more, "type": "drag", "path": path, "button": button})

    async def get_current_url(self) -> str:
        """Empty: a desktop has no URL."""
        return ""

    async def left_mouse_down(self, x: int | None = None, y: int | None = None, **more: Any) -> None:
        """Press the left button, at a point or where the pointer is."""
        await self._act({**more, "type": "left_mouse_down", "x": x, "y": y})

    async def left_mouse_up(self, x: int | None = None, y: int | None = None, **more: Any) -> None:
        """Release the left button, at a point or where the pointer is."""
        await self._act({**more, "type": "left_mouse_up", "x": x, "y": y})

    async def terminate(self, status: str = "success", **_: Any) -> dict[str, Any]:
        """What a model calls at its end; nothing is done."""
        await self._act({"type": "terminate", "status": status})
        return {"terminated": True, "status": status}

    async def _act(self, action: dict[str, Any]) -> None:
        def act(model_session: ModelSession) -> Result | None:
            steps, _ = decode_action(action, model_session.viewport, scroll_unit=self.scroll_unit)
            if isinstance(steps[0], Finish):
                return None
            return model_session.carry_out(
                ProviderCall(steps=steps, viewport=model_session.viewport, name=action["type"])
            )

        try:
            result = await self.session.run(act)
        except ActionError as error:
            raise _error(str(error)) from error
        if result is not None and result.error is not None:
            raise _error(result.error)


def _error(message: str) -> Exception:
    """What the agent tells its model instead of ending; who has no agent gets an error of ours."""
    types = sys.modules.get("cua_agent.types")
    made: type[Exception] = getattr(types, "ToolError", DeskhandError)
    return made(message)
