"""A desktop as a computer of Google's Agent Development Kit.

This module owns the methods that ADK's toolset looks for: the sixteen abstract ones, and those of Gemini 3.5, which it finds by
their names and parameters. What a function does is in `functions`.

ADK has converted the model's points into pixels of `screen_size`; it passes scroll distances unchanged, on the grid. An
exception would end the whole run, so an error is returned in the form of ADK's own refusals: a dictionary with `error`,
with the picture beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from google.adk.tools.computer_use.base_computer import BaseComputer, ComputerEnvironment, ComputerState
from google.adk.tools.computer_use.computer_use_toolset import ComputerUseToolset

from deskhand._core.geometry import Viewport
from deskhand.errors import ActionError
from deskhand.providers.google.functions import on_grid, steps_of
from deskhand.providers.google.wire import UNKNOWN_URL
from deskhand.providers.values import ProviderCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.geometry import Size
    from deskhand.providers.session import AsyncModelSession, ModelSession
    from deskhand.providers.values import Result

Direction: TypeAlias = Literal["up", "down", "left", "right"]


class DeskComputer(BaseComputer):
    """A desktop; make one with `deskhand.providers.google.computer`."""

    def __init__(self, model_session: AsyncModelSession, url: Callable[[], str] | None = None) -> None:
        """Make a computer for a session; the caller closes the desktop."""
        model_session.session.refuse_words("ADK")
        self._model_session = model_session
        self._url = url
        self._announced: Size | None = None

    async def _do(self, name: str, **args: object) -> ComputerState:
        def act(model_session: ModelSession) -> tuple[Result, str]:
            screen = model_session.desktop.size
            viewport = Viewport(screen, self._announced or screen)
            try:
                steps, _ = steps_of(name, args, viewport, on_grid(viewport))
            except ActionError as error:
                result = model_session.refused(ProviderCall(steps=(), viewport=viewport, name=name), error)
            else:
                result = model_session.carry_out(ProviderCall(steps=steps, viewport=viewport, name=name))
            return result, UNKNOWN_URL if self._url is None else self._url()

        result, url = await self._model_session.run(act)
        if result.error is None and result.picture is not None:
            return ComputerState(screenshot=result.picture.data, url=url)
        refusal: dict[str, Any] = {"error": result.error, "url": url}
        if result.picture is not None:
            refusal["image"] = {"mimetype": result.picture.media_type, "data": result.picture.base64}
        return cast("ComputerState", refusal)

    # --- the environment ---

    async def screen_size(self) -> tuple[int, int]:
        """The screen's size in pixels; points are in these from then on, even if the screen changes."""
        self._announced = self._model_session.session.desktop.size
        return self._announced.width, self._announced.height

    async def environment(self) -> ComputerEnvironment:
        """A browser, the only environment that ADK knows."""
        return ComputerEnvironment.ENVIRONMENT_BROWSER

    async def current_state(self) -> ComputerState:
        """Only look."""
        return await self._do("take_screenshot")

    # --- the abstract methods: the functions of Gemini 2.5 and 3 ---

    async def open_web_browser(self) -> ComputerState:
        """Raise the desktop's browser, or start one."""
        return await self._do("open_web_browser")

    async def click_at(self, x: int, y: int) -> ComputerState:
        """Click."""
        return await self._do("click_at", x=x, y=y)

    async def hover_at(self, x: int, y: int) -> ComputerState:
        """Move the pointer."""
        return await self._do("hover_at", x=x, y=y)

    async def type_text_at(
        self,
        x: int,
        y: int,
        text: str,
        press_enter: bool = True,  # noqa: FBT001, FBT002 # ADK's signature
        clear_before_typing: bool = True,  # noqa: FBT001, FBT002
    ) -> ComputerState:
        """Click into a field and type."""
        more = {"press_enter": press_enter, "clear_before_typing": clear_before_typing}
        return await self._do("type_text_at", x=x, y=y, text=text, **more)

    async def type_text(self, text: str, press_enter: bool = False) -> ComputerState:  # noqa: FBT001, FBT002 # ADK's
        """Type where the focus is."""
        return await self._do("type", text=text, press_enter=press_enter)

    async def scroll_document(self, direction: Direction) -> ComputerState:
        """Scroll at the middle of the screen."""
        return await self._do("scroll_document", direction=direction)

    async def scroll_at(self, x: int, y: int, direction: Direction, magnitude: int) -> ComputerState:
        """Scroll by a distance on the grid."""
        return await self._do("scroll_at", x=x, y=y, direction=direction, magnitude=magnitude)

    async def wait(self, seconds: int) -> ComputerState:
        """Wait."""
        return await self._do("wait", seconds=seconds)

    async def go_back(self) -> ComputerState:
        """Have the browser go back."""
        return await self._do("go_back")

    async def go_forward(self) -> ComputerState:
        """Have the browser go forward."""
        return await self._do("go_forward")

    async def search(self) -> ComputerState:
        """Have the browser show a search page."""
        return await self._do("search")

    async def navigate(self, url: str) -> ComputerState:
        """Have the browser show a page."""
        return await self._do("navigate", url=url)

    async def key_combination(self, keys: list[str]) -> ComputerState:
        """Press a chord."""
        return await self._do("key_combination", keys=keys)

    async def drag_and_drop(self, x: int, y: int, destination_x: int, destination_y: int) -> ComputerState:
        """Drag."""
        there = {"destination_x": destination_x, "destination_y": destination_y}
        return await self._do("drag_and_drop", x=x, y=y, **there)

    # --- further methods that ADK looks for: the functions of Gemini 3.5 ---

    async def click(self, x: int, y: int) -> ComputerState:
        """Click."""
        return await self._do("click", x=x, y=y)

    async def double_click(self, x: int, y: int) -> ComputerState:
        """Click twice."""
        return await self._do("double_click", x=x, y=y)

    async def triple_click(self, x: int, y: int) -> ComputerState:
        """Click three times."""
        return await self._do("triple_click", x=x, y=y)

    async def middle_click(self, x: int, y: int) -> ComputerState:
        """Click the middle button."""
        return await self._do("middle_click", x=x, y=y)

    async def right_click(self, x: int, y: int) -> ComputerState:
        """Click the right button."""
        return await self._do("right_click", x=x, y=y)

    async def mouse_down(self, x: int, y: int) -> ComputerState:
        """Press the left button."""
        return await self._do("mouse_down", x=x, y=y)

    async def mouse_up(self, x: int, y: int) -> ComputerState:
        """Release the left button."""
        return await self._do("mouse_up", x=x, y=y)

    async def move(self, x: int, y: int) -> ComputerState:
        """Move the pointer."""
        return await self._do("move", x=x, y=y)

    async def type(self, text: str, press_enter: bool = False) -> ComputerState:  # noqa: FBT001, FBT002 # ADK's
        """Type where the focus is."""
        return await self._do("type", text=text, press_enter=press_enter)

    async def scroll(
        self, x: int, y: int, direction: Direction = "down", magnitude_in_pixels: int = 300
    ) -> ComputerState:
        """Scroll by a distance on the grid. ADK drops wheel clicks, which models send only to a desktop."""
        return await self._do("scroll", x=x, y=y, direction=direction, magnitude_in_pixels=magnitude_in_pixels)

    async def take_screenshot(self) -> ComputerState:
        """Only look."""
        return await self._do("take_screenshot")

    async def press_key(self, key: str) -> ComputerState:
        """Press a key and release it."""
        return await self._do("press_key", key=key)

    async def key_down(self, key: str) -> ComputerState:
        """Press a key."""
        return await self._do("key_down", key=key)

    async def key_up(self, key: str) -> ComputerState:
        """Release a key."""
        return await self._do("key_up", key=key)

    async def hotkey(self, keys: list[str]) -> ComputerState:
        """Press a chord."""
        return await self._do("hotkey", keys=keys)


def toolset(computer: DeskComputer, excluded: list[str]) -> ComputerUseToolset:
    """See `deskhand.providers.google.tool`."""
    return ComputerUseToolset(computer=computer, excluded_predefined_functions=excluded or None)
