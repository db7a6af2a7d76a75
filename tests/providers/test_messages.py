"""Cua's messages: every type, both directions, unknown fields kept; and what a whole history tells."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import ActionError
from deskhand.providers.cua import messages as m
from deskhand.providers.payload import picture_of_url
from deskhand.providers.values import Picture
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import damaged, ids

PICTURE = Picture(b"\x89PNG and so on")
CALL = m.computer_call("c1", {"type": "click", "button": "left", "x": 1, "y": 2})

# One of each, written as the schema has it.
EACH: dict[str, dict[str, Any]] = {
    "user": {"type": "message", "role": "user", "content": "Open it"},
    "user without a type": {"role": "system", "content": "You are careful."},
    "user with contents": {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": PICTURE.url}],
    },
    "assistant": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
    "reasoning": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It is there"}]},
    "computer_call": {
        "type": "computer_call",
        "call_id": "c1",
        "status": "completed",
        "action": {"type": "screenshot"},
    },
    "computer_call_output": {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": PICTURE.url},
    },
    "function_call": {
        "type": "function_call",
        "call_id": "f1",
        "status": "pending",
        "name": "save",
        "arguments": '{"path": "a"}',
    },
    "function_call_output": {"type": "function_call_output", "call_id": "f1", "output": "saved"},
}


@pytest.mark.parametrize("message", EACH.values(), ids=EACH)
def test_every_message_passes_and_keeps_what_nobody_knows(message: dict[str, Any]) -> None:
    grown = {**message, "cost": 3, "nested": {"a": [1]}}
    before = copy.deepcopy(grown)
    assert m.check_message(grown) is grown
    assert grown == before


def test_what_is_made_here_is_what_the_schema_has() -> None:
    assert m.user("Open it") == EACH["user"]
    assert m.user("Look", PICTURE, role="developer") == EACH["user with contents"]
    assert m.assistant("Done") == EACH["assistant"]
    assert m.reasoning("It is there") == EACH["reasoning"]
    assert m.computer_call("c1", {"type": "screenshot"}) == EACH["computer_call"]
    assert m.computer_call_output("c1", PICTURE) == EACH["computer_call_output"]
    assert m.function_call("f1", "save", {"path": "a"}, "pending") == EACH["function_call"]
    assert m.function_call_output("f1", "saved") == EACH["function_call_output"]


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        (5, "a message"),
        ({"type": 5}, "type"),
        ({"role": "nobody", "content": "x"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "text"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": 5}]}, "image_url"),
        ({"type": "message", "role": "assistant", "content": "x"}, "content"),
        ({"type": "reasoning"}, "summary"),
        ({"type": "computer_call", "status": "completed", "action": {"type": "wait"}}, "call_id"),
        ({"type": "computer_call", "call_id": "c", "status": "done", "action": {"type": "wait"}}, "status"),
        ({"type": "computer_call", "call_id": "c", "status": "completed", "action": {}}, "type"),
        ({"type": "computer_call_output", "call_id": "c", "output": {"type": "input_image"}}, "image_url"),
        (
            {"type": "function_call", "call_id": "c", "status": "completed", "name": "f", "arguments": "[1]"},
            "arguments",
        ),
        ({"type": "function_call", "call_id": "c", "status": "completed", "name": "f", "arguments": "{"}, "arguments"),
        ({"type": "function_call_output", "call_id": "c", "output": {}}, "output"),
    ],
)
def test_a_wrong_message_is_refused_and_its_field_named(message: Any, wrong: str) -> None:
    with pytest.raises(ActionError, match=wrong):
        m.check_message(message)


def test_messages_and_contents_of_types_that_come_later_pass() -> None:
    for message in (
        {"type": "web_search_call", "anything": 1},
        {"role": "user", "content": [{"type": "input_audio", "data": "..."}]},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "terminated"}},
    ):
        assert m.check_message(message) is message


@given(st.integers(0, 2**32), st.sampled_from(sorted(EACH)))
def test_a_damaged_message_passes_or_is_refused(seed: int, name: str) -> None:
    _survives(damaged(EACH[name], seed))


def test_many_damaged_messages() -> None:
    for seed in range(MUTATED_PAYLOADS):
        _survives(damaged(list(EACH.values())[seed % len(EACH)], seed))


def _survives(message: Any) -> None:
    try:
        m.check_message(message)
    except ActionError:
        return
    m.unanswered([message])
    m.order_problems([message])
    m.without_images([message])


def test_responses_and_their_usage() -> None:
    first: m.AgentResponse = {"output": [m.assistant("a")], "usage": {"total_tokens": 5, "response_cost": 0.25}}
    second: m.AgentResponse = {"output": [], "usage": {"prompt_tokens": 2, "total_tokens": 3, "response_cost": 0.5}}
    assert m.check_response(first) is first
    assert m.total_usage([first, second]) == {"prompt_tokens": 2, "total_tokens": 8, "response_cost": 0.75}
    assert m.total_usage([]) == {}
    for wrong in (
        {"output": [{"role": "?"}], "usage": {}},
        {"output": [], "usage": {"total_tokens": "5"}},
        {"output": []},
        None,
    ):
        with pytest.raises(ActionError):
            m.check_response(wrong)


def test_calls_without_an_output() -> None:
    other = m.function_call("c1", "save", {})
    failed = m.computer_call("c2", {"type": "wait"}, "failed")
    history: list[m.AgentMessage] = [m.user("x"), CALL, other, failed]
    assert m.unanswered(history) == [CALL, other], "the same id of another kind is another call"
    assert m.unanswered([*history, m.computer_call_output("c1", PICTURE)]) == [other]
    assert m.unanswered([*history, m.function_call_output("c1", "saved")]) == [CALL]
    assert m.unanswered([CALL, m.function_call_output("c1", "it failed")]) == [], "as Cua's agent answers what failed"


OUTPUT = m.computer_call_output("c1", PICTURE)
SECOND, SECOND_OUTPUT = m.computer_call("c2", {"type": "wait"}), m.computer_call_output("c2", PICTURE)


@pytest.mark.parametrize(
    ("history", "problems"),
    [
        ([m.user("x"), m.reasoning("r"), CALL, OUTPUT, SECOND, SECOND_OUTPUT, m.assistant("y")], []),
        ([m.user("x"), CALL, m.assistant("meanwhile"), SECOND, OUTPUT, SECOND_OUTPUT], []),
        ([m.user("x"), CALL], []),
        ([OUTPUT], ["answers no call"]),
        ([CALL, OUTPUT, OUTPUT], ["answers no call"]),
        ([CALL, m.user("y"), OUTPUT], ["before the output of c1", "answers no call"]),
        ([CALL, SECOND, OUTPUT, m.assistant("y")], ["before the output of c2"]),
        ([CALL, OUTPUT, CALL, OUTPUT], ["used before"]),
        ([CALL, m.function_call_output("c1", "it failed"), m.assistant("y")], []),
        ([m.function_call("c1", "f", {}), OUTPUT], ["answers a function_call"]),
    ],
)
def test_the_order_of_a_history(history: list[m.AgentMessage], problems: list[str]) -> None:
    found = m.order_problems(history)
    assert len(found) == len(problems)
    assert all(want in got for want, got in zip(problems, found, strict=True)), found


def test_images_are_left_out_and_the_rest_stays() -> None:
    seen = m.user("Look", PICTURE)
    history: list[m.AgentMessage] = [seen, CALL, OUTPUT, SECOND, SECOND_OUTPUT, m.assistant("y")]
    before = copy.deepcopy(history)
    assert m.pictures(history) == [PICTURE] * 3
    bare = m.without_images(history)
    assert m.pictures(bare) == [Picture(b"")] * 3
    assert history == before, "the history itself stays"
    for message in bare:
        m.check_message(message)
    assert m.pictures(m.without_images(history, keep=2)) == [Picture(b""), PICTURE, PICTURE]
    assert m.without_images(bare) == bare, "the note of a picture's size stays when there is no picture any more"
    assert (m.count_images(history), m.count_images(m.without_images(history, keep=2)), m.count_images(bare)) == (
        3,
        2,
        0,
    )
    only: Any = m.without_images([OUTPUT], placeholder="[image]")[0]
    assert only["output"] == {
        "type": "computer_screenshot",
        "image_url": "[image]",
        "omitted_bytes": len(PICTURE.url),
    }
    link: Any = {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "input_image", "image_url": "https://a/b"},
    }
    assert m.without_images([link]) == [link], "what is no picture but a link is none of ours"


@given(st.binary(max_size=50), ids)
def test_a_picture_comes_back_from_its_url(data: bytes, call_id: str) -> None:
    assert picture_of_url(m.computer_call_output(call_id, Picture(data))["output"]["image_url"]) == Picture(data)


@pytest.mark.parametrize(
    "url", ["", "data:", "https://x/y", "data:image/png,abc", "data:image/png;base64,%%%", "data:;base64,", 5]
)
def test_a_url_without_a_picture_is_refused(url: Any) -> None:
    with pytest.raises(ActionError):
        picture_of_url(url)
