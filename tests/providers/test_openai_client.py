"""OpenAI's calls carried out on a real desktop, through the `openai` client and a service that answers in its place."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openai.types.responses.response_computer_tool_call import PendingSafetyCheck
from openai.types.responses.response_input_param import ComputerCallOutput, Message
from PIL import Image
from pydantic import TypeAdapter

import deskhand
from deskhand.errors import ActionError, BackendError
from deskhand.policy.guard import Guard
from deskhand.policy.rules import ClassPolicy
from deskhand.providers import openai
from deskhand.providers.session import ModelSession
from providers.openai_helpers import CLICK, EVERY, OUTSIDE, SEEN, SIZE, Service, Watched, call, response, said, watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.providers.values import ProviderCall, Result

EXAMPLE = Path(__file__).parents[2] / "examples/openai_agent.py"
WARNED = PendingSafetyCheck(id="sc_1", code="malicious_instructions", message="Look at this")


@pytest.fixture(scope="module")
def stage() -> Iterator[Watched]:
    with watched() as stage:
        yield stage


@pytest.fixture
def model_session(stage: Watched) -> ModelSession:
    """A session where nothing is waited for: what arrives is told by the observer."""
    stage.events()
    return ModelSession(stage.desktop, settle=False)


def image_of(payload: dict[str, Any]) -> Image.Image:
    """The picture of an answer, which is one that the SDK's types and PNG readers take."""
    TypeAdapter(ComputerCallOutput).validate_python(payload)
    assert payload["output"]["detail"] == "original"
    head, _, data = payload["output"]["image_url"].partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data, validate=True)))


def text_of(message: dict[str, Any]) -> str:
    TypeAdapter(Message).validate_python(message)
    text: str = message["content"][0]["text"]
    return text


def test_every_action_arrives_and_is_answered_once(stage: Watched, model_session: ModelSession) -> None:
    service = Service(response(call(*EVERY)), response(said("done")))
    tools: Any = [openai.declare(model_session)]
    with service.client() as client:
        first = client.responses.create(model="m", input="go", tools=tools)
        items: Any = openai.respond(model_session, first)
        last = client.responses.create(model="m", input=items, tools=tools, previous_response_id=first.id)
        assert openai.respond(model_session, last) == []
        assert last.output_text == "done"
    assert stage.events() == SEEN
    assert service.requests[0]["tools"] == [{"type": "computer"}]
    (sent,) = service.requests[1]["input"]
    assert sent["call_id"] == "call_1"
    assert "acknowledged_safety_checks" not in sent
    assert image_of(sent).size == SIZE


def test_the_preview_asks_for_one_action_after_the_other(stage: Watched, model_session: ModelSession) -> None:
    turns = EVERY[:-1]
    service = Service(
        *(
            response(call(action, id=f"call_{turn}", preview=True), id=f"resp_{turn}")
            for turn, action in enumerate(turns)
        ),
        response(said("done")),
    )
    tools: Any = [openai.declare(model_session, preview=True)]
    assert tools == [
        {"type": "computer_use_preview", "display_width": 1000, "display_height": 700, "environment": "linux"}
    ]
    with service.client() as client:
        answer = client.responses.create(model="m", input="go", tools=tools)
        while items := openai.respond(model_session, answer):
            sent: Any = items
            answer = client.responses.create(model="m", input=sent, tools=tools, previous_response_id=answer.id)
    assert stage.events() == SEEN
    assert [request["input"][0]["call_id"] for request in service.requests[1:]] == [
        f"call_{turn}" for turn in range(len(turns))
    ]


def test_coroutines_do_the_same(stage: Watched, model_session: ModelSession) -> None:
    service = Service(response(call(*EVERY[:-1], id="call_a"), call(CLICK, id="call_b")), response(said("done")))

    async def converse() -> None:
        async with service.async_client() as client:
            first = await client.responses.create(model="m", input="go", tools=[{"type": "computer"}])
            items: Any = await openai.respond_async(model_session, first)
            last = await client.responses.create(model="m", input=items, previous_response_id=first.id)
            assert await openai.respond_async(model_session, last) == []
        assert (await openai.run_async(model_session, call(CLICK)))["call_id"] == "call_1"

    asyncio.run(converse())
    assert stage.events() == [*SEEN, *["+1@100,120", "-1@100,120"] * 2]
    assert [item["call_id"] for item in service.requests[1]["input"]] == ["call_a", "call_b"]


def test_points_are_those_of_the_picture_that_was_sent(stage: Watched) -> None:
    stage.events()
    half = ModelSession(stage.desktop, size=0.5, settle=False)
    assert openai.declare(half, preview=True)["display_width"] == 500
    payload = openai.run(half, call(CLICK))
    assert image_of(payload).size == (500, 350)
    assert stage.events() == ["+1@201,241", "-1@201,241"]


def test_all_calls_of_a_response_point_into_the_picture_before_it(stage: Watched) -> None:
    class Shrinking(ModelSession):
        def carry_out(self, call: ProviderCall) -> Result:
            self.size = 0.5
            return super().carry_out(call)

    whole = response(call(CLICK), call(CLICK, id="call_2"))
    for respond in (
        openai.respond,
        lambda model_session, items: asyncio.run(openai.respond_async(model_session, items)),
    ):
        stage.events()
        last = respond(Shrinking(stage.desktop, settle=False), whole)[-1]
        assert image_of(last).size == (500, 350)
        assert stage.events() == ["+1@100,120", "-1@100,120"] * 2


def test_what_cannot_be_done_is_shown_and_said(stage: Watched, model_session: ModelSession) -> None:
    # The whole call is looked at before anything of it is done.
    output, message = openai.respond(model_session, response(call(CLICK, OUTSIDE, CLICK)))
    assert image_of(output).size == SIZE
    assert "outside of 1000x700" in text_of(message)
    assert stage.events() == []
    # Not only what is decoded may be wrong: this is found when it is to be typed.
    untypable = call().model_copy(update={"actions": [{"type": "type", "text": "x\ufe50"}]})
    output, message = openai.respond(model_session, [untypable.model_dump(warnings=False)])
    assert "U+FE50" in text_of(message)
    assert stage.events() == []
    assert openai.run(model_session, call(OUTSIDE))["call_id"] == "call_1"


def test_an_incomplete_call_or_response_is_not_carried_out(stage: Watched, model_session: ModelSession) -> None:
    for whole in (
        response(call(CLICK, status="incomplete")),
        response(call(CLICK, status="in_progress")),
        response(call(CLICK), status="incomplete"),
    ):
        output, message = openai.respond(model_session, whole)
        assert image_of(output).size == SIZE
        assert "so nothing" in text_of(message) or "nothing of it was done" in text_of(message)
    assert stage.events() == []


def test_a_safety_check_that_nobody_confirmed_is_not_acknowledged(stage: Watched, model_session: ModelSession) -> None:
    for at in (
        model_session,
        ModelSession(stage.desktop, ask=lambda *_: False),
        ModelSession(stage.desktop, policy=ClassPolicy()),
    ):
        output, message = openai.respond(at, response(call(CLICK, checks=(WARNED,))))
        assert "acknowledged_safety_checks" not in output
        assert image_of(output).size == SIZE
        assert "denies" in text_of(message)
    assert stage.events() == []


def test_a_safety_check_that_somebody_confirmed_is_acknowledged(stage: Watched) -> None:
    stage.events()
    asked: list[Any] = []

    def ask(_: Any, context: Any) -> bool:
        asked.append((context.provider, context.call_id, context.safety_check.message))
        return True

    whole = response(call(CLICK, checks=(WARNED,)))
    for answers in (
        openai.respond(stage.desktop, whole, ask=ask),
        asyncio.run(openai.respond_async(stage.desktop, whole, ask=ask)),
        [openai.run(stage.desktop.also(Guard(ask=ask)), call(CLICK, checks=(WARNED,)))],
    ):
        (output,) = answers
        assert output["acknowledged_safety_checks"] == [WARNED.model_dump()]
        assert image_of(output).size == SIZE
    assert asked == [("openai", "call_1", "Look at this")] * 3
    assert stage.events() == ["+1@100,120", "-1@100,120"] * 3


def test_where_nobody_may_look_the_picture_is_black(stage: Watched) -> None:
    stage.events()
    policy = ClassPolicy(allow=(), deny=("observe", "input"))
    output, message = openai.respond(stage.desktop, response(call(CLICK)), policy=policy)
    assert image_of(output).size == (1, 1)
    assert "denies" in text_of(message)
    assert stage.events() == []


def test_what_has_no_id_cannot_be_answered(model_session: ModelSession) -> None:
    with pytest.raises(ActionError, match="call_id"):
        openai.run(model_session, {"type": "computer_call", "actions": []})
    with pytest.raises(ActionError, match="computer_call is an object"):
        openai.run(model_session, None)


def test_a_desktop_that_is_gone_ends_the_conversation() -> None:
    with deskhand.launch(size=(320, 200)) as desktop:
        model_session = ModelSession(desktop)
        openai.run(model_session, call(EVERY[-2]))
    with pytest.raises(BackendError):
        openai.run(model_session, call(CLICK))


def test_the_example_is_a_whole_agent() -> None:
    service = Service(response(call(EVERY[-2])), response(call(CLICK, id="call_2")), response(said("It is done.")))
    spec = importlib.util.spec_from_file_location("openai_agent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with service.client() as client:
        assert example.main("Do it", client=client) == "It is done."
    assert service.requests[0]["input"] == "Do it"
    assert [request["input"][0]["call_id"] for request in service.requests[1:]] == ["call_1", "call_2"]
    assert len(EXAMPLE.read_text().splitlines()) <= 40
