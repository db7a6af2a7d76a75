"""A computer for Cua's agents: an object with the fourteen methods of Cua's `AsyncComputerHandler`.

This module owns that object. It needs no package of Cua's, because the protocol only requires the names. The meaning of an
action is in `wire.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Unpack

from deskhand.errors import ActionError, DeskhandError
from deskhand.providers.cua.wire import ScrollUnit, decode_action
from deskhand.providers.session import AsyncModelSession, SessionOptions, with_usual
from deskhand.providers.values import Finish, ProviderCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.values import JSONObject, Result

PROVIDER = "cua"
"""The name of these calls' provider in policies and audit logs."""


class ComputerHandler:
    """A desktop as Cua's agents drive it: `ComputerAgent(model=..., tools=[cua.tool(desktop)])`.

    A method that cannot be carried out raises, with the agent's own `ToolError` if that is loaded: the agent then reports the
    error to the model. The same happens for an unsupported argument that changes how something is done; others are ignored.
    Cua's agent acknowledges every safety check before it can be asked about; a policy still judges each action here.

    Attributes:
        model_session: The session on the desktop.
        scroll_unit: The unit of a scroll's numbers.
    """

    def __init__(
        self, desktop: AnyDesktop, *, scroll_unit: ScrollUnit = "pixels", **options: Unpack[SessionOptions]
    ) -> None:
        """Begin a session.

        Args:
            desktop: The desktop, which the caller closes.
            scroll_unit: `pixels`, as in the loops for OpenAI's models, or `notches`, as in the loop for Anthropic's.
            options: As for `ModelSession`: size, settle, policy.
        """
        self.session: AsyncModelSession = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
        self.session.session.refuse_words("Cua")
        self.scroll_unit = scroll_unit

    async def get_environment(self) -> Literal["windows", "mac", "linux", "browser"]:
        """Always `linux`."""
        return "linux"

    async def get_dimensions(self) -> tuple[int, int]:
        """The size in pixels of the pictures of `screenshot`."""
        width, height = self.session.viewport.model
        return width, height

    async def screenshot(self, text: str | None = None, **_: object) -> str:  # noqa: ARG002 # a label that is not drawn into the picture
        """The screen as a PNG in base64."""
        return (await self.session.look()).base64

    async def click(self, x: int, y: int, button: str = "left", **more: object) -> None:
        """Click a button: left, right, wheel or middle, back, forward."""
        await self._act({**more, "type": "click", "x": x, "y": y, "button": button})

    async def double_click(
        self, x: int | None = None, y: int | None = None, button: str = "left", **more: object
    ) -> None:
        """Click a button twice, at a point or where the pointer is."""
        await self._act({**more, "type": "double_click", "x": x, "y": y, "button": button})

    async def right_click(self, x: int, y: int, **more: object) -> None:
        """Click the right button."""
        await self._act({**more, "type": "right_click", "x": x, "y": y})

    async def scroll(self, x: int, y: int, scroll_x: int = 0, scroll_y: int = 0, **more: object) -> None:
        """Scroll, positive right and down, in the unit that was chosen."""
        await self._act({**more, "type": "scroll", "x": x, "y": y, "scroll_x": scroll_x, "scroll_y": scroll_y})

    async def type(self, text: str, **more: object) -> None:
        """Type a text."""
        await self._act({**more, "type": "type", "text": text})

    async def wait(self, ms: int = 1000, **more: object) -> None:
        """Wait for some milliseconds."""
        await self._act({**more, "type": "wait", "ms": ms})

    async def move(self, x: int, y: int, **more: object) -> None:
        """Move the pointer."""
        await self._act({**more, "type": "move", "x": x, "y": y})

    async def keypress(self, keys: list[str] | str, **more: object) -> None:
        """Press a chord."""
        await self._act({**more, "type": "keypress", "keys": keys})

    async def drag(self, path: Sequence[object] | None = None, button: str = "left", **more: object) -> None:
        """Drag along a path of points, or from `start_x`, `start_y` to `end_x`, `end_y`."""
        await self._act({**more, "type": "drag", "path": path, "button": button})

    async def get_current_url(self) -> str:
        """Empty: a desktop has no URL."""
        return ""

    async def left_mouse_down(self, x: int | None = None, y: int | None = None, **more: object) -> None:
        """Press the left button, at a point or where the pointer is."""
        await self._act({**more, "type": "left_mouse_down", "x": x, "y": y})

    async def left_mouse_up(self, x: int | None = None, y: int | None = None, **more: object) -> None:
        """Release the left button, at a point or where the pointer is."""
        await self._act({**more, "type": "left_mouse_up", "x": x, "y": y})

    async def terminate(self, status: str = "success", **_: object) -> JSONObject:
        """End the task at the model's request; nothing is done."""
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
    """An error that the agent reports to its model instead of ending; without Cua's agent, one of ours."""
    types = sys.modules.get("cua_agent.types")
    made: type[Exception] = getattr(types, "ToolError", DeskhandError)
    return made(message)
