"""Histories of every format that models are asked with: what belongs together stays together, and what is left is one."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from anthropic.types import MessageParam
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
from pydantic import TypeAdapter

from deskhand import ActionError
from deskhand.execution import CompactionStrategy, compact, estimate_tokens
from deskhand.execution.histories import LEFT_OUT_TEXT, count_pictures, pairs_of
from deskhand.providers.cua import messages as m
from deskhand.providers.values import Picture
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import damaged

PICTURE = Picture(b"\x89PNG" + bytes(3000))
CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
GOOGLE: TypeAdapter[Any] = TypeAdapter(list[google.Content])


class Chat:
    """Chat completions: every output is a message of its own, and a picture is in one of the user's."""

    @staticmethod
    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}

    @staticmethod
    def shown() -> dict[str, Any]:
        image = {"type": "image_url", "image_url": {"url": PICTURE.url}}
        return {"role": "user", "content": [{"type": "text", "text": "Look"}, image]}

    @staticmethod
    def called(ids: list[str]) -> dict[str, Any]:
        calls = [{"id": each, "type": "function", "function": {"name": "find", "arguments": "{}"}} for each in ids]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    @staticmethod
    def told(ids: list[str], text: str) -> list[dict[str, Any]]:
        return [{"role": "tool", "tool_call_id": each, "content": text} for each in ids]

    @staticmethod
    def check(history: list[Any]) -> None:
        CHAT.validate_python(history)

    @staticmethod
    def calls(message: Any) -> list[str]:
        return [call["id"] for call in message.get("tool_calls") or ()]

    @staticmethod
    def outputs(message: Any) -> list[str]:
        return [message["tool_call_id"]] if message["role"] == "tool" else []


class Anthropic:
    """Anthropic's messages: the outputs of a turn are one message of the user's, with their pictures."""

    @staticmethod
    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}

    @staticmethod
    def shown() -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": "Look"}, Anthropic._image()]}

    @staticmethod
    def _image() -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE.base64}}

    @staticmethod
    def called(ids: list[str]) -> dict[str, Any]:
        uses = [{"type": "tool_use", "id": each, "name": "computer", "input": {"action": "screenshot"}} for each in ids]
        return {"role": "assistant", "content": [{"type": "text", "text": "I look"}, *uses]}

    @staticmethod
    def told(ids: list[str], text: str) -> list[dict[str, Any]]:
        content = [{"type": "text", "text": text}, Anthropic._image()]
        return [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": each, "content": content} for each in ids],
            }
        ]

    @staticmethod
    def check(history: list[Any]) -> None:
        ANTHROPIC.validate_python(history)

    @staticmethod
    def _blocks(message: Any, kind: str, key: str) -> list[str]:
        content = message["content"]
        return [] if isinstance(content, str) else [block[key] for block in content if block["type"] == kind]

    @staticmethod
    def calls(message: Any) -> list[str]:
        return Anthropic._blocks(message, "tool_use", "id")

    @staticmethod
    def outputs(message: Any) -> list[str]:
        return Anthropic._blocks(message, "tool_result", "tool_use_id")


class Converse:
    """Bedrock's Converse."""

    @staticmethod
    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"text": text}]}

    @staticmethod
    def _image() -> dict[str, Any]:
        return {"image": {"format": "png", "source": {"bytes": PICTURE.data}}}

    @staticmethod
    def shown() -> dict[str, Any]:
        return {"role": "user", "content": [{"text": "Look"}, Converse._image()]}

    @staticmethod
    def called(ids: list[str]) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": each, "name": "computer", "input": {}}} for each in ids],
        }

    @staticmethod
    def told(ids: list[str], text: str) -> list[dict[str, Any]]:
        content = [{"text": text}, Converse._image()]
        results = [{"toolResult": {"toolUseId": each, "content": content, "status": "success"}} for each in ids]
        return [{"role": "user", "content": results}]

    @staticmethod
    def check(history: list[Any]) -> None:
        for message in history:
            assert set(message) == {"role", "content"}
            assert all(len(block) == 1 for block in message["content"])

    @staticmethod
    def calls(message: Any) -> list[str]:
        return [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]

    @staticmethod
    def outputs(message: Any) -> list[str]:
        return [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]


class Google:
    """Google's contents, as its REST interface has them."""

    @staticmethod
    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}

    @staticmethod
    def _image() -> dict[str, Any]:
        return {"inlineData": {"mimeType": "image/png", "data": PICTURE.base64}}

    @staticmethod
    def shown() -> dict[str, Any]:
        return {"role": "user", "parts": [{"text": "Look"}, Google._image()]}

    @staticmethod
    def called(ids: list[str]) -> dict[str, Any]:
        return {"role": "model", "parts": [{"functionCall": {"id": each, "name": "click", "args": {}}} for each in ids]}

    @staticmethod
    def told(ids: list[str], text: str) -> list[dict[str, Any]]:
        responses = [
            {"functionResponse": {"id": each, "name": "click", "response": {"text": text}, "parts": [Google._image()]}}
            for each in ids
        ]
        return [{"role": "user", "parts": responses}]

    @staticmethod
    def check(history: list[Any]) -> None:
        GOOGLE.validate_python(history)

    @staticmethod
    def calls(message: Any) -> list[str]:
        return [part["functionCall"]["id"] for part in message["parts"] if "functionCall" in part]

    @staticmethod
    def outputs(message: Any) -> list[str]:
        return [part["functionResponse"]["id"] for part in message["parts"] if "functionResponse" in part]


FORMATS = {each.__name__: each for each in (Chat, Anthropic, Converse, Google)}
formats = pytest.mark.parametrize("name", FORMATS)


def orphans(form: Any, history: list[Any]) -> list[str]:
    """The calls without an output and the outputs without a call."""
    calls = [each for message in history for each in form.calls(message)]
    outputs = [each for message in history for each in form.outputs(message)]
    return sorted(set(calls) ^ set(outputs))


@st.composite
def histories(draw: st.DrawFn, form: Any) -> list[Any]:
    # Of the others' instructions are no message.
    history: list[Any] = [form.said("system", "Be careful")] if form is Chat else []
    history.append(form.said("user", "Buy milk"))
    number = 0
    for kind in draw(st.lists(st.sampled_from(["user", "shown", "says", "calls", "calls"]), max_size=8)):
        text = draw(st.sampled_from(["short", "long " * 60]))
        if kind == "calls":
            ids = [f"c{number + at}" for at in range(draw(st.integers(1, 3)))]
            number += len(ids)
            history += [form.called(ids), *form.told(draw(st.permutations(ids)), text)]
        else:
            history.append(
                form.shown() if kind == "shown" else form.said("user" if kind == "user" else "assistant", text)
            )
    return history


@formats
@given(
    st.data(),
    st.sampled_from(CompactionStrategy),
    st.integers(1, 4000),
    st.tuples(st.integers(0, 2), st.integers(1, 9)),
)
def test_no_call_is_parted_from_its_output(
    name: str, data: st.DataObject, strategy: CompactionStrategy, limit: int, kept: tuple[int, int]
) -> None:
    keep, window = kept
    form: Any = FORMATS[name]
    history = data.draw(histories(form))
    form.check(history)
    before = copy.deepcopy(history)
    options: dict[str, Any] = {"keep_pictures": keep, "window": window, "summarize": lambda _: "short " * 5}
    result = compact(history, strategy, limit=limit, **options)
    assert history == before
    assert orphans(form, result.messages) == []
    for index, message in enumerate(result.messages):
        # The outputs are right behind the message with the calls, as most providers want them.
        behind = result.messages[index + 1 : index + (4 if form is Chat else 2)]
        assert set(form.calls(message)) <= {each for output in behind for each in form.outputs(output)}
    form.check(result.messages)
    assert result.tokens == sum(map(estimate_tokens, result.messages))
    assert result.fits == (result.tokens <= limit)
    # What everything is about stays, and the newest message.
    assert "Buy milk" in json.dumps(result.messages, default=repr)
    assert count_pictures(result.messages) >= min(keep, count_pictures(history)) or result.messages_removed
    if result.fits:
        again = compact(result.messages, strategy, limit=limit, **options)
        assert again.messages == result.messages


@formats
def test_old_pictures_go_first_and_count_as_pictures(name: str) -> None:
    form: Any = FORMATS[name]
    history = [form.said("user", "Buy milk"), form.shown(), form.shown(), form.shown()]
    tokens = sum(map(estimate_tokens, history))
    assert 4500 < tokens < 5000, "as pictures, and not as the letters of their base64"
    result = compact(history, limit=tokens - 1)
    assert (result.pictures_removed, result.messages_removed, count_pictures(result.messages)) == (1, 0, 2)
    assert LEFT_OUT_TEXT in str(result.messages[1])
    form.check(result.messages)
    assert compact(history, limit=300, keep_pictures=0).pictures_removed == 3


@formats
def test_long_outputs_are_cut_where_nothing_else_can_go(name: str) -> None:
    form: Any = FORMATS[name]
    history = [form.said("user", "Buy milk"), form.called(["c1"]), *form.told(["c1"], "x" * 50_000)]
    result = compact(history, limit=2500, keep_pictures=0)
    assert result.fits
    assert "characters are left out here]" in str(result.messages)
    assert orphans(form, result.messages) == []
    form.check(result.messages)


@formats
def test_a_summary_is_a_message_of_the_format(name: str) -> None:
    form: Any = FORMATS[name]
    turns = [each for number in range(4) for each in (form.called([f"c{number}"]), *form.told([f"c{number}"], "found"))]
    history = [form.said("user", "Buy milk"), *turns, form.said("assistant", "Done")]
    asked: list[Any] = []

    def summarize(messages: list[Any]) -> str:
        asked.append(messages)
        return "looked, and found it"

    result = compact(
        history, CompactionStrategy.SUMMARIZE, limit=6, count=lambda _: 1, keep_pictures=0, summarize=summarize
    )
    form.check(result.messages)
    assert orphans(form, result.messages) == []
    assert "looked, and found it" in str(result.messages[1])
    assert count_pictures(asked[0]) == 0
    # It is known as one, and not summarized alone again.
    compact(result.messages, CompactionStrategy.SUMMARIZE, limit=2, count=lambda _: 1, summarize=summarize)
    assert all(len(messages) > 1 for messages in asked)


def test_objects_of_an_sdk_are_read_and_stay() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    said = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
    history: list[Any] = [
        Chat.said("user", "Buy milk"),
        said,
        *Chat.told(["c1"], "found"),
        Chat.said("assistant", "Done"),
    ]
    assert pairs_of(history).answers == [(1, 2)]
    assert compact(history, limit=10**6).messages[1] is said
    assert compact(history, limit=2, count=lambda _: 1).messages == [history[0], history[3]]


def test_calls_of_googles_without_an_id_are_answered_in_their_order() -> None:
    def content(key: str) -> dict[str, Any]:
        return {"role": "user", "parts": [{key: {"name": "click"}}]}

    history = [
        content("functionCall"),
        content("functionResponse"),
        content("functionCall"),
        content("functionResponse"),
    ]
    assert pairs_of(history).answers == [(0, 1), (2, 3)]
    assert pairs_of(history[:3]).open == {2}


@formats
def test_a_damaged_history_is_shortened_or_refused(name: str) -> None:
    form: Any = FORMATS[name]
    calls = [form.called(["c1", "c2"]), *form.told(["c1", "c2"], "found " * 50)]
    whole = [form.said("user", "Buy milk"), form.shown(), *calls, form.said("assistant", "Done")]
    for seed in range(MUTATED_PAYLOADS // 4):
        history = damaged(whole, seed)
        if not isinstance(history, list):
            continue
        for strategy in CompactionStrategy:
            with contextlib.suppress(ActionError):
                compact(history, strategy, limit=100, keep_pictures=0, summarize=lambda _: "short")


# --- Cua's calls that failed ---


@pytest.mark.parametrize("strategy", CompactionStrategy)
@pytest.mark.parametrize("window", range(1, 12))
def test_failed_calls_of_the_computer_keep_their_outputs(strategy: CompactionStrategy, window: int) -> None:
    history: list[Any] = [m.user("Buy milk")]
    for number in range(12):
        call_id = f"c{number}"
        failed = number % 4 == 3
        history.append(m.computer_call(call_id, {"type": "screenshot"}))
        history.append(
            m.function_call_output(call_id, "it failed") if failed else m.computer_call_output(call_id, PICTURE)
        )
    assert m.unanswered(history) == m.order_problems(history) == []
    options: dict[str, Any] = {"window": window, "summarize": lambda _: "short", "count": lambda _: 1}
    result = compact(history, strategy, limit=window + 1, **options)
    assert m.unanswered(result.messages) == m.order_problems(result.messages) == []
    assert result.messages_removed
