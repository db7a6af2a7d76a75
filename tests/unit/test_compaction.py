"""Histories that have become too long."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from deskhand import ActionError
from deskhand.execution import Compacted, CompactionStrategy, compact, compact_async, estimate_tokens
from deskhand.execution.compaction_options import LEFT_OUT, Compaction, CompactionOptions, default_priority
from deskhand.providers.cua import messages as m
from deskhand.providers.payload import picture_of_url
from deskhand.providers.values import Picture

SUMMARIZE, SLIDING_WINDOW = CompactionStrategy.SUMMARIZE, CompactionStrategy.SLIDING_WINDOW
PRIORITY_BASED, TRUNCATE = CompactionStrategy.PRIORITY_BASED, CompactionStrategy.TRUNCATE
PICTURE = Picture(b"\x89PNG" + bytes(3000))


def test_the_options_are_those_of_a_compaction() -> None:
    fields = {field.name for field in dataclasses.fields(Compaction)}
    assert set(CompactionOptions.__annotations__) == fields - {"strategy", "limit"}


def a_click(number: int) -> list[m.AgentMessage]:
    return [
        m.reasoning(f"I want {number}"),
        m.computer_call(f"c{number}", {"type": "click", "button": "left", "x": number, "y": 2}),
        m.computer_call_output(f"c{number}", PICTURE),
    ]


def a_call(number: int, output: str = "found") -> list[m.AgentMessage]:
    return [m.function_call(f"f{number}", "find", {"n": number}), m.function_call_output(f"f{number}", output)]


SYSTEM, TASK = m.user("Be careful", role="system"), m.user("Buy milk")


def length(message: m.AgentMessage) -> int:
    """One for each message, so that limits are easy to count."""
    del message
    return 1


def kept(result: Compacted, history: list[m.AgentMessage]) -> list[int]:
    """Which messages of the history are still there as they were."""
    return [index for index, message in enumerate(history) if any(message is other for other in result.messages)]


@pytest.mark.parametrize("strategy", CompactionStrategy)
def test_what_fits_stays_as_it_is(strategy: CompactionStrategy) -> None:
    history = [SYSTEM, TASK, *a_click(1), *a_click(2), m.assistant("Done")]
    tokens = sum(map(estimate_tokens, history))
    result = compact(history, strategy, limit=tokens, summarize=lambda _: "never asked")
    assert result == Compacted(history, tokens, fits=True)


@pytest.mark.parametrize("strategy", CompactionStrategy)
def test_old_screenshots_go_first(strategy: CompactionStrategy) -> None:
    history = [SYSTEM, TASK, *a_click(1), *a_click(2), *a_click(3), m.assistant("Done")]
    before = copy.deepcopy(history)
    tokens = sum(map(estimate_tokens, history))
    result = compact(history, strategy, limit=tokens - 1, summarize=lambda _: "never asked")
    assert (result.pictures_removed, result.messages_removed, result.fits) == (1, 0, True)
    assert result.tokens == sum(map(estimate_tokens, result.messages))
    assert [index for index, message in enumerate(history) if message not in result.messages] == [4], "the oldest one"
    assert m.pictures(result.messages)[1:] == [PICTURE, PICTURE]
    shown: Any = result.messages[4]
    assert shown["output"]["omitted_bytes"] == len(PICTURE.url)
    result = compact(history, strategy, limit=tokens - 2000, summarize=lambda _: "never asked")
    assert (result.pictures_removed, result.messages_removed) == (2, 0)
    assert history == before, "the history itself stays"


def test_so_many_pictures_stay() -> None:
    history = [SYSTEM, TASK, *a_click(1), *a_click(2), *a_click(3)]
    tokens = sum(map(estimate_tokens, history))
    kept_pictures = [compact(history, limit=tokens - 1, keep_pictures=keep).pictures_removed for keep in (0, 2, 3, 4)]
    assert kept_pictures == [1, 1, 0, 0]
    assert compact(history, limit=300, keep_pictures=0).pictures_removed == 3


def test_what_stands_in_a_pictures_place_is_a_picture() -> None:
    assert Image.open(io.BytesIO(picture_of_url(LEFT_OUT).data)).size == (1, 1)


def test_truncate_drops_the_oldest_and_keeps_pairs() -> None:
    history = [SYSTEM, TASK, *a_click(1), *a_call(2), m.assistant("So far"), *a_call(3), m.assistant("Done")]
    assert [kept(compact(history, limit=limit, count=length), history) for limit in (10, 9, 7, 5, 3)] == [
        [0, 1, 5, 6, 7, 8, 9, 10],  # the first thought, call and output go together
        [0, 1, 5, 6, 7, 8, 9, 10],
        [0, 1, 7, 8, 9, 10],
        [0, 1, 8, 9, 10],
        [0, 1, 10],
    ]
    result = compact(history, limit=7, count=length)
    assert (result.tokens, result.fits, result.messages_removed) == (6, True, 5)


def test_what_must_stay_stays_and_says_that_it_does_not_fit() -> None:
    waiting = m.function_call("f9", "find", {})
    history = [TASK, waiting, m.assistant("Meanwhile"), m.user("Hurry"), SYSTEM, *a_call(1)]
    result = compact(history, limit=2, count=length)
    assert kept(result, history) == [0, 1, 4, 5, 6]
    assert (result.tokens, result.fits) == (5, False)


def test_truncate_cuts_long_texts_where_nothing_else_can_go() -> None:
    history = [SYSTEM, TASK, *a_call(1, "x" * 5000), *a_call(2, "start" + "y" * 50_000 + "end")]
    result = compact(history, limit=1000)
    assert (result.fits, result.messages_removed) == (True, 2)
    assert result.messages[:3] == [SYSTEM, TASK, history[4]]
    output = str(result.messages[3]["output"])  # type: ignore[typeddict-item]
    assert output.startswith("starty")
    assert output.endswith("yend")
    assert "characters are left out here]" in output
    assert 3000 < len(output) < 4000, "no more than needed"
    assert m.order_problems(result.messages) == []
    hopeless = compact(history, limit=20)
    assert not hopeless.fits
    assert len(str(hopeless.messages[3]["output"])) < 400  # type: ignore[typeddict-item]
    long_rules = m.user("rule " * 5000, role="system")
    assert compact([long_rules, TASK], limit=20).messages[0] == long_rules, "instructions are not cut"


def test_a_sliding_window_keeps_the_newest() -> None:
    history = [SYSTEM, TASK, *a_call(1), *a_call(2), m.assistant("So far"), *a_call(3), m.assistant("Done")]
    assert kept(compact(history, SLIDING_WINDOW, limit=10**6, window=5), history) == [0, 1, 4, 5, 6, 7, 8, 9]
    assert kept(compact(history, SLIDING_WINDOW, limit=10**6, window=4), history) == [0, 1, 6, 7, 8, 9]
    assert kept(compact(history, SLIDING_WINDOW, limit=10**6, window=100), history) == list(range(10))
    assert kept(compact(history, SLIDING_WINDOW, limit=5, count=length, window=5), history) == [0, 1, 7, 8, 9]


def test_what_matters_least_goes_first() -> None:
    history = [
        SYSTEM,
        TASK,
        m.reasoning("Hm"),
        m.user("And bread"),
        *a_call(1),
        m.assistant("So far"),
        *a_call(2),
        m.assistant("Done"),
    ]
    assert [kept(compact(history, PRIORITY_BASED, limit=limit, count=length), history) for limit in (9, 7, 5, 4)] == [
        [0, 1, 3, 4, 5, 6, 7, 8, 9],
        [0, 1, 3, 6, 7, 8, 9],
        [0, 1, 3, 6, 9],
        [0, 1, 3, 9],
    ]
    result = compact(
        history, PRIORITY_BASED, limit=5, count=length, priority=lambda message: -default_priority(message)
    )
    assert 3 not in kept(result, history), "by a rule of one's own"
    assert [default_priority(message) for message in history[1:6]] == [3, 0, 3, 1, 1]


def test_a_summary_takes_the_place_of_what_is_old() -> None:
    history = [SYSTEM, TASK, *a_click(1), *a_call(2), m.user("Hurry"), *a_call(3), m.assistant("Done")]
    asked: list[list[m.AgentMessage]] = []

    def summarize(messages: list[m.AgentMessage]) -> str:
        asked.append(messages)
        return "clicked, and found it"

    result = compact(history, SUMMARIZE, limit=10, count=length, keep_pictures=0, summarize=summarize)
    assert len(asked) == 1
    assert len(asked[0]) == 6, "all but half of what there may be"
    assert m.pictures(asked[0]) == [picture_of_url(LEFT_OUT)], "a summary is of words"
    assert kept(result, history) == [0, 1, 8, 9, 10]
    summary: Any = result.messages[2]
    assert summary == {
        "type": "message",
        "role": "user",
        "content": "What happened before, in short:\nclicked, and found it",
        "summarized": 6,
    }
    assert (result.summarized, result.messages_removed, result.tokens, result.fits) == (6, 6, 6, True)
    assert m.check_message(summary)
    # The summary is summarized with the rest.
    grown = [*result.messages, *a_call(4), *a_call(5), m.assistant("More")]
    again = compact(grown, SUMMARIZE, limit=10, count=length, summarize=summarize)
    assert asked[1][0] == summary
    (new,) = [message for message in again.messages if "summarized" in message]
    assert new["summarized"] == again.summarized
    assert again.summarized == 6 + len(asked[1]) - 1


def test_a_summary_that_is_too_long_is_cut() -> None:
    history = [SYSTEM, TASK, *a_call(1, "x" * 8000), m.assistant("Done")]
    result = compact(history, SUMMARIZE, limit=500, summarize=lambda _: "word " * 10_000)
    assert result.fits
    assert result.tokens <= 500


def test_a_summary_does_not_part_a_call_from_its_output() -> None:
    # What goes stands between a call that stays, because it belongs to the newest message, and its output.
    call, output = m.function_call("f1", "find", {}), m.function_call_output("f1", "x")
    history = [TASK, call, m.assistant("meanwhile"), output]
    result = compact(history, SUMMARIZE, limit=3, count=length, summarize=lambda _: "short")
    assert (result.summarized, m.order_problems(result.messages)) == (1, [])
    assert kept(result, history) == [0, 1, 3]
    assert "summarized" in result.messages[1]
    # The same of a call that has no output yet.
    history = [TASK, call, m.assistant("meanwhile"), m.assistant("and so on")]
    result = compact(history, SUMMARIZE, limit=3, count=length, summarize=lambda _: "short")
    assert (result.summarized, m.order_problems([*result.messages, output])) == (1, [])


def test_a_summary_alone_is_not_summarized_again() -> None:
    history = [SYSTEM, TASK, *a_call(1), m.assistant("Done")]
    asked: list[int] = []

    def summarize(messages: list[m.AgentMessage]) -> str:
        asked.append(len(messages))
        return "short"

    first = compact(history, SUMMARIZE, limit=3, count=length, summarize=summarize)
    again = compact(first.messages, SUMMARIZE, limit=3, count=length, summarize=summarize)
    assert (asked, again.messages, again.tokens, again.fits) == ([2], first.messages, 4, False)


def test_who_summarizes_may_take_time() -> None:
    async def summarize(messages: list[m.AgentMessage]) -> str:
        await asyncio.sleep(0)
        return f"{len(messages)} messages"

    history = [SYSTEM, TASK, *a_call(1), *a_call(2), m.assistant("Done")]
    result = asyncio.run(compact_async(history, SUMMARIZE, limit=5, count=length, summarize=summarize))
    assert "4 messages" in str(result.messages[2])
    plain = asyncio.run(compact_async(history, SUMMARIZE, limit=5, count=length, summarize=lambda _: "plain"))
    assert "plain" in str(plain.messages[2])
    assert asyncio.run(compact_async(history, limit=10**6)).messages == history
    with pytest.raises(ActionError, match="use compact_async"):
        compact(history, SUMMARIZE, limit=5, count=length, summarize=summarize)


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": 5, "window": 0}, {"limit": 5, "keep_pictures": -1}, {"limit": 5, "strategy": SUMMARIZE}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ActionError):
        compact([TASK], **options)


def test_tokens_are_estimated() -> None:
    assert estimate_tokens(m.user("x" * 400)) == pytest.approx(100, abs=30)
    assert estimate_tokens(m.user("é" * 400)) == estimate_tokens(m.user("x" * 400))
    small, large = m.computer_call_output("c", Picture(b"x")), m.computer_call_output("c", PICTURE)
    assert estimate_tokens(small) == estimate_tokens(large) == pytest.approx(1530, abs=30)
    assert estimate_tokens(m.without_images([large])[0]) < 100


def test_an_empty_history_stays_empty() -> None:
    for strategy in CompactionStrategy:
        assert compact([], strategy, limit=1, summarize=str).messages == []


# --- any history ---


@st.composite
def histories(draw: st.DrawFn) -> list[m.AgentMessage]:
    """Histories whose order is right, of turns with several calls, whose outputs come in any order."""
    history: list[m.AgentMessage] = []
    number = 0
    for kind in draw(st.lists(st.sampled_from(["user", "system", "says", "thinks", "calls", "fails"]), max_size=8)):
        text = draw(st.sampled_from(["short", "long " * 30]))
        if kind == "user":
            history.append(m.user(text, *([PICTURE] if draw(st.booleans()) else [])))
        elif kind == "system":
            history.append(m.user(text, role="system"))
        elif kind == "says":
            history.append(m.assistant(text))
        elif kind == "thinks":
            history.append(m.reasoning(text))
        elif kind == "fails":
            number += 1
            history.append(m.function_call(f"c{number}", "find", {}, "failed"))
        else:
            outputs = []
            for call in draw(st.lists(st.sampled_from(["computer", "function"]), min_size=1, max_size=3)):
                number += 1
                if draw(st.booleans()):
                    history.append(m.reasoning("hm"))
                if call == "computer":
                    history.append(m.computer_call(f"c{number}", {"type": "screenshot"}))
                    outputs.append(m.computer_call_output(f"c{number}", PICTURE))
                else:
                    history.append(m.function_call(f"c{number}", "find", {"text": text}))
                    outputs.append(m.function_call_output(f"c{number}", text))
            history += draw(st.permutations(outputs))
    if draw(st.booleans()):
        history.append(m.function_call("open", "find", {}, "pending"))
    return history


def skeleton(message: m.AgentMessage) -> str:
    """A message without what compaction may change in it."""
    plain = {key: value for key, value in message.items() if key not in ("output", "content")}
    return json.dumps([plain, str(message.get("content"))[:20]], sort_keys=True)


@given(
    histories(),
    st.sampled_from(CompactionStrategy),
    st.integers(1, 4000),
    st.integers(0, 3),
    st.integers(1, 12),
)
def test_of_any_history_what_is_left_is_one(
    history: list[m.AgentMessage], strategy: CompactionStrategy, limit: int, keep_pictures: int, window: int
) -> None:
    assert m.order_problems(history) == []
    before = copy.deepcopy(history)
    options = {"limit": limit, "keep_pictures": keep_pictures, "window": window, "summarize": lambda _: "short " * 5}
    result = compact(history, strategy, **options)  # type: ignore[arg-type]
    assert history == before
    assert m.order_problems(result.messages) == [], "no output without its call, no call without its output"
    for message in result.messages:
        m.check_message(message)
    assert result.tokens == sum(map(estimate_tokens, result.messages))
    assert result.fits == (result.tokens <= limit)
    # What is there stands in its order, and only a summary is new.
    rest = iter([skeleton(message) for message in history])
    assert all(skeleton(message) in rest for message in result.messages if "summarized" not in message)
    summaries = sum("summarized" in message for message in result.messages)
    assert len(result.messages) == len(history) - result.messages_removed + summaries
    # What must stay did.
    waiting = m.unanswered(history)
    assert m.unanswered(result.messages) == waiting
    systems = [message for message in history if message.get("role") == "system"]
    assert [message for message in result.messages if message.get("role") == "system"] == systems
    tasks = [message for message in history if message.get("role") == "user"][:1]
    assert [skeleton(message) for message in tasks] == [
        skeleton(message)
        for message in result.messages
        if message.get("role") == "user" and "summarized" not in message
    ][: len(tasks)]
    if history:
        assert skeleton(result.messages[-1]) == skeleton(history[-1]) or summaries
    # Pictures go before messages do, and the newest are not among them.
    if result.messages_removed and strategy is not SLIDING_WINDOW:
        assert result.pictures_removed >= m.count_images(history) - keep_pictures
    assert result.pictures_removed <= max(0, m.count_images(history) - keep_pictures)
    if result.fits:
        assert compact(result.messages, strategy, **options).messages == result.messages  # type: ignore[arg-type]
