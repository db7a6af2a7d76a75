"""Each SDK's loop plays an episode with a scripted service at the other end of the SDK's own client."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from agent_framework import ChatResponse, Message
from google import genai
from google.genai import types
from langchain_core.messages import AIMessage

from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.agents import LOOPS, find_agent
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.failures import blame
from deskhand.episodes.tasks.task import TaskLimits
from deskhand.errors import DesktopLost, EpisodeError
from episodes.plays import KEY, Kept, Places, Press
from providers import anthropic_helpers, bedrock_helpers, openai_helpers
from providers.test_agent_framework import DONE, asked
from providers.test_agent_framework import Scripted as Framework
from providers.test_google_desktop import Gemini, call
from providers.test_langchain import Scripted, asks

if TYPE_CHECKING:
    from collections.abc import Callable


class Wide(Press):
    """At a place that every SDK can name: Google's grid is 1000 wide."""

    screen = (1000, 1000)
    limits = TaskLimits(steps=4, seconds=60.0)

    def parameters(self, random: Any) -> Any:
        del random
        return {"x": 10, "y": 20}


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def places() -> Places:
    from deskhand._core.geometry import Size  # noqa: PLC0415 # only here

    def widen(backend: Any) -> None:
        backend.resize(Size(1000, 1000))

    return Places(widen)


def loop(name: str, client: Any) -> Any:
    return importlib.import_module(f"deskhand.episodes.play.loops.{name}").agent("a-model", client)


CLICK = openai_helpers.of.Click(type="click", button="left", x=10, y=20)


def of_openai(turns: int) -> Any:
    answers = [
        openai_helpers.response(openai_helpers.call(CLICK, id=f"call_{n}"), id=f"resp_{n}") for n in range(turns)
    ]
    answers.append(openai_helpers.response(openai_helpers.said("Done."), id="resp_end"))
    for answer in answers:
        answer["usage"] = {
            "input_tokens": 10,
            "output_tokens": 1,
            "total_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
    service = openai_helpers.Service(*answers)
    return openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=service._transport), max_retries=0)


def of_anthropic(turns: int) -> Any:
    api = anthropic_helpers.Api(
        *[[anthropic_helpers.member("left_click", f"toolu_{n}", coordinate=[10, 20])] for n in range(turns)]
    )
    return api.client()


def of_bedrock(turns: int) -> Any:
    click = {"action": "left_click", "coordinate": [10, 20]}
    answers = [bedrock_helpers.converse_answer(bedrock_helpers.tool_use(f"t{n}", **click)) for n in range(turns)]
    service = bedrock_helpers.Service(
        "bedrock-runtime", *answers, bedrock_helpers.converse_answer({"text": "That is all."})
    )
    return service.client


def of_google(turns: int) -> Any:
    gemini = Gemini()
    gemini.plan(*[[call("click_at", {"x": 10, "y": 20}, f"c{n}")] for n in range(turns)])
    answer = gemini._answer

    def counted(request: Any) -> Any:
        body = json.loads(answer(request).content)
        # The total is the sum of all four.
        body["usageMetadata"] = {
            "promptTokenCount": 8,
            "toolUsePromptTokenCount": 16,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 32,
            "totalTokenCount": 58,
        }
        return httpx.Response(200, json=body)

    options = types.HttpOptions(httpx_client=httpx.Client(transport=httpx.MockTransport(counted)))
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def of_langchain(turns: int) -> Any:
    used = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    said = [
        AIMessage("", tool_calls=[asks("left_mouse_click", f"c{n}", xy=[10, 20])], usage_metadata=used)
        for n in range(turns)
    ]
    return Scripted(messages=iter([*said, AIMessage("Done.", usage_metadata=used)]), bound=[], asked=[])


def of_agent_framework(turns: int) -> Any:
    click = {"type": "click", "button": "left", "x": 10, "y": 20}

    class Counted(Framework):
        def _inner_get_response(self, *, messages: Any, stream: bool, **options: Any) -> Any:
            async def said() -> Any:
                answer = await super(Counted, self)._inner_get_response(messages=messages, stream=stream, **options)
                return ChatResponse(
                    messages=[Message("assistant", answer.messages[0].contents)],
                    usage_details={"input_token_count": 5, "output_token_count": 3},
                )

            return said()

    return Counted(*[[asked(click, number=n)] for n in range(turns)], DONE)


SERVICES: dict[str, Callable[[int], Any]] = {
    "agent_framework": of_agent_framework,
    "anthropic": of_anthropic,
    "bedrock": of_bedrock,
    "google": of_google,
    "langchain": of_langchain,
    "openai": of_openai,
}


def test_every_loop_is_here() -> None:
    assert sorted(SERVICES) == sorted(name.replace("-", "_") for name in LOOPS)


@pytest.mark.parametrize("name", SERVICES)
def test_a_model_does_a_task_and_answers(name: str, places: Places) -> None:
    record = Kept()
    result = attempt(Wide(), KEY, places, loop(name, SERVICES[name](2)), record)
    assert (result["cause"], result["detail"]) == (None, "")
    assert (result["success"], result["steps"]) == (True, 2)
    assert result["answer"]
    assert result["tokens"]["input"] > 0
    assert result["tokens"]["output"] > 0
    notes = [fields["text"] for kind, fields in record.events if kind == "note"]
    assert notes[-1] == result["answer"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_model_that_goes_on_is_ended_at_its_limit(name: str, places: Places) -> None:
    """Whatever an SDK does with exceptions of tools: its loop ends, and asks the model no more."""
    result = attempt(Wide(), KEY, places, loop(name, SERVICES[name](50)))
    assert (result["cause"], result["detail"], result["steps"]) == ("agent_budget", "all 4 steps were used up", 4)
    assert result["valid"] is True
    assert result["times"]["agent"] < Wide.limits.seconds / 2


def test_what_gemini_thinks_is_written_too(places: Places) -> None:
    result = attempt(Wide(), KEY, places, loop("google", of_google(2)))
    assert result["tokens"] == {"input": 3 * (8 + 16), "output": 3 * (2 + 32)}


def _refusing(status: int) -> httpx2.MockTransport:
    kind = {"error": {"type": "overloaded_error", "message": "no", "code": status}}
    return httpx2.MockTransport(lambda _: httpx2.Response(status, json=kind))


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (429, Cause.MODEL_PROVIDER),
        (500, Cause.MODEL_PROVIDER),
        (529, Cause.MODEL_PROVIDER),
        (401, Cause.MODEL_PROVIDER),
        (400, Cause.AGENT_ERROR),
        (413, Cause.AGENT_ERROR),
    ],
)
def test_the_failures_of_a_provider_are_its_own(status: int, cause: Cause, places: Places) -> None:
    http = httpx2.Client(transport=_refusing(status))
    for name, client in (
        ("openai", openai.OpenAI(api_key="none", http_client=http, max_retries=0)),
        ("anthropic", anthropic.Anthropic(api_key="none", http_client=http, max_retries=0)),
    ):
        result = attempt(Wide(), KEY, places, loop(name, client))
        assert result["cause"] == cause, (name, result["detail"])


def test_a_service_that_does_not_answer_is_a_failure_of_the_provider(places: Places) -> None:
    def silent(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("no answer", request=request)

    http = httpx2.Client(transport=httpx2.MockTransport(silent))
    result = attempt(
        Wide(), KEY, places, loop("openai", openai.OpenAI(api_key="none", http_client=http, max_retries=0))
    )
    assert result["cause"] == Cause.MODEL_PROVIDER


def test_botos_throttling_is_a_failure_of_the_provider() -> None:
    from botocore.exceptions import ClientError, EndpointConnectionError  # noqa: PLC0415 # only here

    def refused(status: int, code: str) -> ClientError:
        told: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return ClientError(told, "Converse")

    assert blame(refused(429, "ThrottlingException")) is Cause.MODEL_PROVIDER
    assert blame(refused(400, "ValidationException")) is Cause.AGENT_ERROR
    assert blame(EndpointConnectionError(endpoint_url="https://bedrock")) is Cause.MODEL_PROVIDER


def test_what_is_behind_an_exception_counts() -> None:
    def raised(behind: BaseException) -> BaseException:
        try:
            try:
                raise behind  # noqa: TRY301 # it is raised to be caught
            except BaseException as error:
                raise RuntimeError("the agent gives up") from error
        except RuntimeError as error:
            return error

    assert blame(raised(ConnectionResetError("peer"))) is Cause.MODEL_PROVIDER
    assert blame(raised(DesktopLost("oom", "killed"))) is Cause.DESKTOP_LOST
    assert blame(raised(KeyError("x"))) is Cause.AGENT_ERROR
    assert blame(ExceptionGroup("several", [ValueError("x"), TimeoutError("y")])) is Cause.AGENT_ERROR
    assert blame(ExceptionGroup("several", [ValueError("x"), ConnectionResetError("y")])) is Cause.MODEL_PROVIDER


@pytest.mark.parametrize("name", ["openai", "google", "bedrock"])
def test_a_missing_key_is_named_before_any_episode(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(EpisodeError, match=f"agent '{name}' has no client: .*(key|region|credentials)"):
        find_agent(name)


def test_the_model_is_that_of_the_name_or_of_the_environment(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked_for.append(json.loads(request.content)["model"])
        return httpx2.Response(200, json=openai_helpers.response(openai_helpers.said("Done.")))

    def client() -> Any:
        return openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))

    from deskhand.episodes.play.loops.openai import agent  # noqa: PLC0415 # an SDK's

    attempt(Wide(), KEY, places, agent("first", client()))
    monkeypatch.setenv("DESKHAND_MODEL", "second")
    attempt(Wide(), KEY, places, agent(None, client()))
    attempt(Wide(), KEY, places, agent("third", client()))
    assert asked_for == ["first", "second", "third"]
