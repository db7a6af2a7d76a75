"""Google's functions on a real desktop, called by ADK's own runner; only the model is scripted.

What arrives is told by an observer that knows nothing of the driver; a screen of 1000x1000 makes its points those of the grid.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.computer_use.computer_use_toolset import ComputerUseToolset
from google.genai import types
from pydantic import Field

from deskhand.providers import google
from deskhand.providers.google.functions import FUNCTIONS

from .google_helpers import PERFORMED, SAFETY, clicks
from .screen import observed, told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from google.adk.models import LlmRequest

    from deskhand import Desktop
    from integration.observer import Observer

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def there() -> Iterator[tuple[Desktop, Observer]]:
    with observed((1000, 1000)) as made:
        yield made


@pytest.fixture
def watched(there: tuple[Desktop, Observer]) -> tuple[Desktop, Observer]:
    """The desktop, and the observer, who has seen everything that came before."""
    desktop, observer = there
    desktop.release()
    observer.events()
    return there


class Scripted(BaseLlm):
    """A model that says what it was told to say."""

    turns: list[list[types.Part]]
    seen: list[Any] = Field(default_factory=list)

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 # ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request)
        parts = self.turns.pop(0) if self.turns else [types.Part(text="done")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def adk_call(name: str, args: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=dict(args)))


class Agent:
    """An agent with a desktop, as ADK runs it."""

    def __init__(
        self, computer: Any, *turns: list[types.Part], model: str = "gemini-3.5-flash", **options: Any
    ) -> None:
        self.model = Scripted(model=model, turns=list(turns))
        self.toolset = ComputerUseToolset(computer=computer, **options)
        self._runner = InMemoryRunner(
            agent=LlmAgent(name="agent", model=self.model, tools=[self.toolset]), app_name="test"
        )
        self._session: str | None = None

    async def say(self, message: types.Part) -> list[types.Part]:
        """Send a message, and get all parts of what came of it."""
        if self._session is None:
            session = await self._runner.session_service.create_session(app_name="test", user_id="u")
            self._session = session.id
        content = types.Content(role="user", parts=[message])
        events = self._runner.run_async(user_id="u", session_id=self._session, new_message=content)
        return [part async for event in events if event.content for part in event.content.parts or []]

    async def close(self) -> None:
        await self._runner.close()


def responses_of(parts: list[types.Part]) -> list[types.FunctionResponse]:
    return [part.function_response for part in parts if part.function_response]


def test_every_function_arrives_through_adk(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched

    async def run() -> None:
        for name, args, expected in PERFORMED:
            if "magnitude_in_wheel_clicks" in args:
                continue  # ADK drops what it has no parameter for, and it knows only browsers, for which pixels are sent.
            agent = Agent(google.computer(desktop, settle=False), [adk_call(name, args)])
            (response,) = responses_of(await agent.say(types.Part(text="go")))
            await agent.close()
            assert told(observer) == expected, name
            assert (response.name, response.response) == (name, {"url": ""})
            assert response.parts
            blob = response.parts[0].inline_data
            assert blob
            assert blob.mime_type == "image/png"
            assert (blob.data or b"").startswith(PNG)

    asyncio.run(run())


def test_adk_finds_all_there_is(watched: tuple[Desktop, Observer]) -> None:
    desktop, _ = watched

    async def run() -> None:
        agent = Agent(google.computer(desktop))
        assert agent.toolset._unimplemented_modern_actions() == []
        names = {tool.name for tool in await agent.toolset.get_tools()}
        # `wait_5_seconds` is made of `wait` by ADK's own Gemini model, and `long_press` is a phone's.
        assert FUNCTIONS - names == {"wait_5_seconds", "long_press"}
        await agent.close()

    asyncio.run(run())


def test_adk_is_told_what_cannot_be_done_and_goes_on(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched

    async def run() -> None:
        turn = [
            adk_call("press_key", {"key": "nokey"}),
            adk_call("go_back", {}),
            adk_call("click", {"x": 1000, "y": 5}),
        ]
        agent = Agent(google.computer(desktop, url=lambda: "about:this"), turn)
        parts = await agent.say(types.Part(text="go"))
        await agent.close()
        assert parts[-1].text == "done"
        unknown, browserless, moved = responses_of(parts)
        assert unknown.response
        assert "nokey" in unknown.response["error"]
        assert unknown.response["url"] == "about:this"
        assert browserless.response
        assert "no browser is open" in browserless.response["error"]
        assert all(response.parts for response in (unknown, browserless, moved))
        # That a point outside is moved to the edge is ADK's rule.
        assert told(observer) == clicks(1, "999,5")

    asyncio.run(run())


def test_adk_asks_before_what_google_wants_confirmed(watched: tuple[Desktop, Observer]) -> None:
    desktop, observer = watched

    async def run() -> None:
        for confirmed in (False, True):
            args = {"x": 8, "y": 9, "safety_decision": SAFETY}
            agent = Agent(google.computer(desktop), [adk_call("click", args)])
            parts = await agent.say(types.Part(text="go"))
            asked = next(
                p.function_call for p in parts if p.function_call and "confirmation" in (p.function_call.name or "")
            )
            assert "CAPTCHA" in str(asked.args)
            assert told(observer) == []
            reply = types.FunctionResponse(name=asked.name, id=asked.id, response={"confirmed": confirmed})
            (response,) = responses_of(await agent.say(types.Part(function_response=reply)))
            await agent.close()
            assert response.response
            assert response.response.get("safety_acknowledgement") == ("true" if confirmed else None)
            assert told(observer) == (clicks(1, "8,9") if confirmed else [])

    asyncio.run(run())


def test_adks_pixels_are_those_that_it_was_told(watched: tuple[Desktop, Observer]) -> None:
    """A point is where it was meant to be, also when the screen has become another one since."""
    desktop, observer = watched

    async def run() -> None:
        computer = google.computer(desktop)
        agent = Agent(computer, [adk_call("click", {"x": 500, "y": 250})])
        await agent.toolset.get_tools()
        assert await computer.screen_size() == (1000, 1000)
        desktop.resize((800, 600))
        try:
            await agent.say(types.Part(text="go"))
            assert told(observer) == clicks(1, "400,150")
        finally:
            desktop.resize((1000, 1000))
        await agent.close()

    asyncio.run(run())
