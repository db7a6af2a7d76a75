"""Google's functions on a real desktop, called through google-genai's own client.

Only the model is scripted. What arrives is told by an observer that knows nothing of the driver; a screen of 1000x1000 makes
its points those of the grid.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from google import genai
from google.genai import types
from PIL import Image

import deskhand
from deskhand import AsyncDesktop
from deskhand.desktop.operations import Operation
from deskhand.policy.rules import ActionClass, ClassPolicy, Context, Decision, JudgedAction
from deskhand.providers import browsing, google
from deskhand.providers.google import wire
from deskhand.providers.session import AsyncModelSession, ModelSession
from deskhand.providers.values import Picture
from integration.apps import environment_of
from integration.observer import Observer

from . import web
from .google_helpers import CURRENT, GRID, LEGACY, LONG_PRESS, PERFORMED, SAFETY, clicks
from .screen import told

if TYPE_CHECKING:
    from collections.abc import Iterator

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[deskhand.Desktop]:
    """A desktop of 1000x1000 without a browser to start."""
    nothing = tmp_path_factory.mktemp("bin")
    with deskhand.launch(size=(1000, 1000), env={"PATH": str(nothing)}) as made:
        yield made


@pytest.fixture(scope="module")
def observer(desktop: deskhand.Desktop) -> Iterator[Observer]:
    with Observer(environment_of(desktop)) as made:
        yield made


@pytest.fixture
def watched(desktop: deskhand.Desktop, observer: Observer) -> Observer:
    """The observer, who has seen everything that came before."""
    desktop.release()
    observer.events()
    return observer


def test_every_function_is_carried_out_somewhere_here() -> None:
    browsers = {"go_back", "go_forward", "navigate", "open_web_browser", "search"}
    assert {name for name, _, _ in [*PERFORMED, LONG_PRESS]} | browsers | {"wait_5_seconds"} == {*CURRENT, *LEGACY}


# --- google-genai, through its client ---


class Gemini:
    """What Google would answer, turn by turn, as bytes of HTTP; what it was asked is kept."""

    def __init__(self) -> None:
        self._turns: list[list[dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.http = httpx.Client(transport=httpx.MockTransport(self._answer))
        options = types.HttpOptions(httpx_client=self.http)
        self.client = genai.Client(api_key="none", vertexai=False, http_options=options)

    def plan(self, *turns: list[dict[str, Any]]) -> None:
        """Begin anew, and say this."""
        self._turns = list(turns)
        self.requests = []

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(json.loads(request.content))
        turn = self._turns.pop(0) if self._turns else [{"text": "done"}]
        if request.url.path.endswith("/interactions"):
            dates = {"created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"}
            return httpx.Response(
                200, json={"id": "i", "object": "interaction", "status": "completed", "steps": turn, **dates}
            )
        return httpx.Response(200, json={"candidates": [{"content": {"role": "model", "parts": turn}}]})

    def answers(self) -> list[dict[str, Any]]:
        """The function responses of the last request's last content."""
        return [part["functionResponse"] for part in self.requests[-1]["contents"][-1]["parts"]]


@pytest.fixture(scope="module")
def gemini() -> Iterator[Gemini]:
    made = Gemini()
    yield made
    made.http.close()


def call(name: str, args: dict[str, Any], call_id: str = "c") -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args, "id": call_id}, "thoughtSignature": "c2lnbmVk"}


def picture_of(answer: dict[str, Any]) -> Image.Image:
    """The picture of a function response, as the wire carries it: encoded once."""
    (part,) = answer["parts"]
    assert part["inline_data"]["mime_type"] == "image/png"
    data = base64.b64decode(part["inline_data"]["data"], altchars=b"-_", validate=True)
    assert data.startswith(PNG)
    asked = wire.unread({"name": answer["name"], "id": answer["id"]}, GRID)
    read = wire.decode_result({"functionResponse": answer}, asked)
    assert read.picture == Picture(data, "image/png")
    return Image.open(io.BytesIO(data))


def converse(gemini: Gemini, model_session: ModelSession, **options: Any) -> list[types.Content]:
    """A loop as users write it, until the model calls nothing any more."""
    contents = [types.Content(role="user", parts=[types.Part(text="go")])]
    config = types.GenerateContentConfig(tools=[google.declare(model_session)])
    while True:
        turn = gemini.client.models.generate_content(model="gemini-3.5-flash", contents=contents, config=config)
        assert turn.candidates
        assert turn.candidates[0].content
        contents.append(turn.candidates[0].content)
        answer = google.respond(model_session, turn, **options)
        if answer is None:
            return contents
        contents.append(answer)


def test_every_function_arrives_through_the_client(
    desktop: deskhand.Desktop, watched: Observer, gemini: Gemini
) -> None:
    model_session = ModelSession(desktop, settle=False)
    for name, args, expected in [*PERFORMED, LONG_PRESS]:
        gemini.plan([call(name, args, "7")])
        converse(gemini, model_session)
        (answer,) = gemini.answers()
        assert told(watched) == expected, name
        assert (answer["name"], answer["id"], answer["response"]) == (name, "7", {"url": ""})
        assert picture_of(answer).size == (1000, 1000)
    assert desktop.pointer == (300, 300)


def test_what_is_sent_is_what_google_knows(desktop: deskhand.Desktop, watched: Observer, gemini: Gemini) -> None:
    gemini.plan([call("move", {"x": 5, "y": 5})], [{"text": "thinking"}, call("wait", {"seconds": 0})])
    contents = converse(gemini, ModelSession(desktop), url=lambda: "https://example.org/now")
    first, second, third = gemini.requests
    assert first["tools"] == [{"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}}]
    # What the model thought goes back to it with what it called.
    assert second["contents"][1]["parts"][0]["thoughtSignature"] == "c2lnbmVk"
    assert third["contents"][3]["parts"][1]["thoughtSignature"] == "c2lnbmVk"
    assert gemini.answers()[0]["response"] == {"url": "https://example.org/now"}
    assert [content.role for content in contents] == ["user", "model", "user", "model", "user", "model"]
    assert told(watched) == []


def test_parallel_calls_are_answered_one_by_one_and_stop_at_the_first_failure(
    desktop: deskhand.Desktop, watched: Observer, gemini: Gemini
) -> None:
    turn = [
        call("click", {"x": 1, "y": 1}, "1"),
        call("click", {"x": 1000, "y": 1}, "2"),
        call("type", {"text": "not to be typed"}, "3"),
    ]
    gemini.plan(turn)
    converse(gemini, ModelSession(desktop))
    answers = gemini.answers()
    assert [(a["id"], a["name"], "error" in a["response"]) for a in answers] == [
        ("1", "click", False),
        ("2", "click", True),
        ("3", "type", True),
    ]
    assert "1000x1000" in answers[1]["response"]["error"]
    assert "an earlier call" in answers[2]["response"]["error"]
    assert all(picture_of(answer).size == (1000, 1000) for answer in answers)
    assert told(watched) == clicks(1, "1,1")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (call("fly", {}, "9"), "there is no function 'fly'"),
        (call("open_app", {"app_name": "Mail"}, "9"), "not a phone"),
        (call("click", {"x": 1}, "9"), "y is missing"),
        (call("go_back", {}, "9"), "no browser is open"),
        (call("navigate", {"url": "file:///etc/passwd"}, "9"), "is not opened"),
        (call("navigate", {"url": "https://example.org"}, "9"), "is installed"),
        (call("search", {}, "9"), "is installed"),
        (call("open_web_browser", {}, "9"), "is installed"),
        (call("mouse_up", {"x": 1, "y": 1}, "9"), "is excluded"),
    ],
)
def test_what_cannot_be_done_is_answered_and_not_raised(
    desktop: deskhand.Desktop, watched: Observer, gemini: Gemini, asked: dict[str, Any], reason: str
) -> None:
    gemini.plan([asked])
    converse(gemini, ModelSession(desktop), excluded={"mouse_up"})
    (answer,) = gemini.answers()
    assert reason in answer["response"]["error"]
    assert (answer["name"], answer["id"]) == (asked["functionCall"]["name"], "9")
    assert picture_of(answer).size == (1000, 1000)
    assert told(watched) == []


def test_what_google_wants_confirmed_is_refused_without_anybody_who_confirms(
    desktop: deskhand.Desktop, watched: Observer, gemini: Gemini
) -> None:
    turn = [call("click", {"x": 1, "y": 1, "safety_decision": SAFETY}), call("press_key", {"key": "enter"})]
    gemini.plan(turn)
    converse(gemini, ModelSession(desktop))
    denied, unexecuted = (answer["response"] for answer in gemini.answers())
    assert denied["denied"] == "true"
    assert "confirmed" in denied["error"]
    assert "safety_acknowledgement" not in denied
    assert "denied" not in unexecuted
    assert "an earlier call" in unexecuted["error"]
    assert told(watched) == []


def test_what_somebody_confirms_is_done_and_acknowledged(
    desktop: deskhand.Desktop, watched: Observer, gemini: Gemini
) -> None:
    asked: list[str] = []

    def ask(action: JudgedAction, context: Context) -> bool:
        assert context.action_class is ActionClass.SAFETY_CHECK
        asked.append(str(action))
        return "CAPTCHA" in asked[-1]

    model_session = ModelSession(desktop, ask=ask, provider=google.PROVIDER)
    yes = call("click", {"x": 1, "y": 1, "safety_decision": SAFETY})
    no = call("click", {"x": 2, "y": 2, "safety_decision": {"decision": "require_confirmation", "explanation": "pay"}})
    gemini.plan([yes, no])
    converse(gemini, model_session)
    confirmed, denied = (answer["response"] for answer in gemini.answers())
    assert confirmed == {"url": "", "safety_acknowledgement": "true"}
    assert denied["denied"] == "true"
    assert "safety_acknowledgement" not in denied
    assert len(asked) == 2
    assert told(watched) == clicks(1, "1,1")


def test_a_policy_judges_where_a_browser_is_sent(desktop: deskhand.Desktop, watched: Observer) -> None:
    judged: list[tuple[str, str]] = []

    class Witness(ClassPolicy):
        def before(self, action: JudgedAction, context: Context) -> Decision:
            if isinstance(action, Operation):
                judged.append((action.type, action.target))
            return super().before(action, context)

    model_session = ModelSession(desktop, policy=Witness(deny=[ActionClass.NAVIGATE]), provider=google.PROVIDER)
    for url in ("example.org/a", "file:///etc/passwd"):
        assert "error" in google.run(model_session, {"name": "navigate", "args": {"url": url}})["response"]
    # What is none to open is refused before anybody is asked.
    assert [action for action in judged if action[0] == "navigate"] == [("navigate", "https://example.org/a")]
    assert told(watched) == []


def test_pictures_of_any_size_have_the_same_grid(desktop: deskhand.Desktop, watched: Observer, gemini: Gemini) -> None:
    gemini.plan([call("click", {"x": 999, "y": 500})])
    converse(gemini, ModelSession(desktop, size=(640, 400)))
    assert picture_of(gemini.answers()[0]).size == (640, 400)
    assert told(watched) == clicks(1, "999,500")


def test_only_the_last_pictures_are_sent_again(desktop: deskhand.Desktop, watched: Observer, gemini: Gemini) -> None:
    gemini.plan(*[[call("wait", {"seconds": 0})] for _ in range(5)])
    contents = converse(gemini, ModelSession(desktop, settle=False))
    google.thin(contents)
    responses = [p.function_response for c in contents for p in c.parts or [] if p.function_response]
    assert [bool(response.parts) for response in responses] == [False, False, True, True, True]
    assert all(response.response == {"url": ""} for response in responses)
    signatures = [part.thought_signature for content in contents for part in content.parts or []]
    assert signatures.count(b"signed") == 5
    google.thin(contents, keep=0)
    assert not any(response.parts for response in responses)
    assert told(watched) == []


def test_the_interactions_api(desktop: deskhand.Desktop, watched: Observer, gemini: Gemini) -> None:
    def step(name: str, args: dict[str, Any], call_id: str) -> dict[str, Any]:
        return {"type": "function_call", "id": call_id, "name": name, "arguments": args}

    thought = {"type": "thought", "signature": "c2lnbmVk"}
    model_session = ModelSession(desktop)
    turn = [thought, step("click", {"x": 30, "y": 40, "intent": "x"}, "1"), step("hotkey", {"keys": ["nokey"]}, "2")]
    gemini.plan(turn)
    tools = [google.declare(model_session, interactions=True, excluded=["navigate"])]
    first = gemini.client.interactions.create(model="gemini-3.5-flash", input="go", tools=tools)
    calls = [found for found in first.steps if found.type == "function_call"]
    answers = google.run_calls(model_session, calls)
    gemini.client.interactions.create(
        model="gemini-3.5-flash", input=answers, tools=tools, previous_interaction_id=first.id
    )
    assert gemini.requests[0]["tools"] == [
        {"type": "computer_use", "environment": "desktop", "excluded_predefined_functions": ["navigate"]}
    ]
    done, failed = gemini.requests[1]["input"]
    assert (done["type"], done["call_id"], done["name"]) == ("function_result", "1", "click")
    text, image = done["result"]
    assert json.loads(text["text"]) == {"url": ""}
    assert image["mime_type"] == "image/png"
    assert base64.b64decode(image["data"], validate=True).startswith(PNG)
    assert "is_error" not in done
    assert (failed["call_id"], failed["is_error"]) == ("2", True)
    assert "nokey" in json.loads(failed["result"][0]["text"])["error"]
    assert told(watched) == clicks(1, "30,40")


# --- the facade, of both kinds of desktop ---


def test_everything_that_is_a_desktop_will_do(desktop: deskhand.Desktop, watched: Observer) -> None:
    payload = {"name": "click", "args": {"x": 2, "y": 3}, "id": "1"}

    async def both() -> list[dict[str, Any]]:
        wrapped = AsyncDesktop(desktop)
        model_sessions: list[Any] = [desktop, wrapped, ModelSession(desktop), AsyncModelSession(desktop)]
        answers = [await google.run_async(model_session, payload) for model_session in model_sessions]
        wrapped.detach()
        return answers

    answers = [google.run(desktop, payload), google.run(ModelSession(desktop), payload), *asyncio.run(both())]
    for answer in answers:
        assert answer["response"] == {"url": ""}
        assert types.FunctionResponse.model_validate(answer).parts
    assert told(watched) == clicks(1, "2,3", 6)


def test_a_wait_can_be_cancelled(desktop: deskhand.Desktop) -> None:
    async def cancelled() -> None:
        model_session = AsyncModelSession(desktop)
        task = asyncio.create_task(google.run_async(model_session, {"name": "wait_5_seconds"}))
        # About the passing of time: it is still waiting when this is over.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await google.run_async(model_session, {"name": "wait", "args": {"seconds": 0}}))["response"] == {
            "url": ""
        }

    asyncio.run(cancelled())


@pytest.mark.parametrize(
    "payload", [None, 1, [], "click", {}, {"id": 5}, {"name": None, "id": "4"}, {"function_call": 1}]
)
def test_a_payload_that_is_none_is_answered(desktop: deskhand.Desktop, payload: Any) -> None:
    answer = google.run(desktop, payload)
    response = answer.get("function_response", answer)
    assert response["response"]["error"]
    assert response["parts"]
    assert response.get("id") == ("4" if payload == {"name": None, "id": "4"} else None)


def test_a_turn_that_calls_nothing_is_the_end(desktop: deskhand.Desktop) -> None:
    nothing = types.Content(role="model", parts=[types.Part(text="done")])
    cut = types.GenerateContentResponse(
        candidates=[types.Candidate(content=None, finish_reason=types.FinishReason.SAFETY)]
    )
    for turn in (nothing, cut, types.GenerateContentResponse(), types.GenerateContentResponse(candidates=[])):
        assert google.respond(desktop, turn) is None
        assert asyncio.run(google.respond_async(desktop, turn)) is None


def test_importing_needs_no_sdk() -> None:
    code = "import sys, deskhand.providers.google; sys.exit(any(m.startswith('google.') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- a browser ---


def test_a_browser_is_driven_by_what_a_model_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = web.install_browser(tmp_path / "bin", tmp_path / "profile")
    site = web.Web()
    monkeypatch.setattr(browsing, "SEARCH_PAGE", f"{site.root}/search")
    with web.desktop_with(folder, tmp_path / "home") as desktop:
        model_session = ModelSession(desktop)
        asked: list[tuple[str, dict[str, Any], str]] = [
            ("open_web_browser", {}, ""),
            ("navigate", {"url": f"{site.root}/page"}, "/page"),
            ("search", {}, "/search"),
            ("go_back", {}, "/page"),
            ("go_forward", {}, "/search"),
        ]
        for name, args, title in asked:
            assert google.run(model_session, {"name": name, "args": args})["response"] == {"url": ""}
            assert web.title(desktop, title).startswith(title)
    site.close()


# --- the example ---


def test_the_example_runs(gemini: Gemini) -> None:
    example = Path(__file__).parents[2] / "examples" / "google_agent.py"
    assert len(example.read_text().splitlines()) <= 40
    main = runpy.run_path(str(example))["main"]
    turns = [call("type", {"text": "echo hello", "press_enter": True})], [call("wait", {"seconds": 0})]
    gemini.plan(*turns, [{"text": "It says hello."}])
    assert main("say hello", gemini.client) == "It says hello."
    assert len(gemini.requests) == 3
    assert gemini.requests[0]["contents"][0]["parts"][1]["inlineData"]["mime_type"] == "image/png"
    assert picture_of(gemini.answers()[0]).size == (1440, 900)
    gemini.plan([call("click", {"x": 1, "y": 1, "safety_decision": SAFETY})])
    assert "confirmation" in main("click", gemini.client)
    assert len(gemini.requests) == 1
