"""Calls that act on a real desktop: what xterm received, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from calls import short
from calls import until as until_async
from deskhand import AsyncDesktop, Desktop, Settle
from deskhand.execution import (
    Accumulator,
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    RequestFunctionCall,
    failed,
)
from deskhand.execution.call_queue import turns_of
from integration.apps import until

if TYPE_CHECKING:
    from pathlib import Path

SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED


@pytest.fixture
def received(desktop: Desktop, tmp_path: Path) -> Path:
    """What a terminal on the desktop received, as it comes."""
    out = tmp_path / "received"
    desktop.start(["xterm", "-e", f"stty raw -echo; echo ready; exec cat -u >'{out}'"])
    desktop.perform(settle=Settle(timeout=30))
    return out


def type_(id: str, text: str, **options: Any) -> RequestFunctionCall:
    return RequestFunctionCall("type", {"text": text}, call_id=id, **options)


def test_input_that_failed_is_not_repeated(desktop: Desktop, received: Path) -> None:
    # Of which no keyboard has any, so that it is typed a few at a time.
    text = "".join(chr(0x4E00 + number) for number in range(2000))

    async def sleep(seconds: float) -> None:
        assert seconds == 5
        # Long enough for some of it to have arrived, and not for all.
        await until_async(lambda: received.exists() and received.stat().st_size > 100)

    executor = Executor(desktops=desktop, sleep=sleep)
    typed, never, seen = type_("c1", text, timeout=5, max_retries=3), type_("c2", "never"), _look("c3")
    asyncio.run(executor.execute([typed, never, seen]))
    assert [call.status for call in (typed, never, seen)] == [FAILURE, CANCELLED, SUCCESS]
    assert (typed.retry_count, desktop.pressed) == (0, ())
    assert "look before going on" in (typed.error or "")
    # The same call again is answered, and not made.
    (again,) = asyncio.run(executor.execute([type_("c1", text, timeout=5, max_retries=3)]))
    assert again.error == typed.error
    asyncio.run(executor.execute([type_("c4", "END")]))
    assert until(lambda: received.read_text(errors="replace").endswith("END"))
    arrived = received.read_text().removesuffix("END")
    assert 30 < len(arrived) < len(text)
    assert text.startswith(arrived), "some of it, once"


def _look(id: str) -> RequestFunctionCall:
    return RequestFunctionCall("computer", {"action": "screenshot"}, call_id=id)


def test_two_executors_on_one_desktop_take_turns(desktop: Desktop, received: Path) -> None:
    lines = {letter: [f"{letter * 30}{number}\n" for number in range(5)] for letter in "ab"}
    executors = {"a": Executor(desktops=desktop), "b": Executor(desktops=AsyncDesktop(desktop))}
    cancelled = type_("c", "c" * 100)

    async def all_of(letter: str) -> list[str]:
        calls = [type_(f"{letter}{number}", line) for number, line in enumerate(lines[letter])]
        return short([event async for event in executors[letter].stream(calls, FunctionCallStrategy.PARALLEL)])

    async def change_ones_mind() -> None:
        async with executors["b"].run([cancelled]) as run:
            await until_async(lambda: len(turns_of(desktop)._waiting) >= 2)
            run.cancel()

    async def main() -> list[list[str]]:
        events, others, _ = await asyncio.gather(all_of("a"), all_of("b"), change_ones_mind())
        return [events, others]

    heard = asyncio.run(main())
    for letter, events in zip("ab", heard, strict=True):
        assert events == [text for n in range(5) for text in (f"{n + 1}/5 {letter}{n}", f"{letter}{n} success")], (
            "in the order given, each after the one before it"
        )
    assert cancelled.status is CANCELLED
    in_turns = "".join(a + b for a, b in zip(lines["a"], lines["b"], strict=True)).replace("\n", "\r")
    assert until(lambda: len(received.read_bytes()) >= len(in_turns))
    assert received.read_bytes() == in_turns.encode()


def test_from_a_models_stream_to_the_desktop(desktop: Desktop, received: Path) -> None:
    def shout(there: Desktop, text: str) -> str:
        del there
        return text.upper()

    response = Accumulator("agent")
    for arguments in ({"text": "naïve "}, {"text": "☕"}):
        call = {"function_call": {"name": "type", "args": arguments}}
        response.feed({"candidates": [{"content": {"parts": [call]}}]})
    response.feed(
        {"candidates": [{"content": {"parts": [{"function_call": {"name": "shout", "args": {"text": "x"}}}]}}]}
    )
    response.feed({"candidates": [{"content": {"parts": [{"function_call": {"name": "type", "args": {}}}]}}]})
    calls = response.calls()
    executor = Executor([Function(shout, desktop=desktop)], desktops=desktop)
    results = asyncio.run(executor.execute(calls, FunctionCallStrategy.PIPELINE))
    assert [result.status for result in results] == [SUCCESS] * 4
    expected = "naïve ☕X"
    assert until(lambda: len(received.read_bytes()) >= len(expected.encode()))
    assert received.read_text() == expected, "the last one was given what the one before it returned"
    assert results[0].result is not None
    assert results[0].result.picture.data.startswith(b"\x89PNG")


def test_what_is_for_a_failure_is_put_in_and_nothing_else(desktop: Desktop, received: Path) -> None:
    """A text goes to where a click should have led: when that fails, another one is typed, and the text never."""
    outside = RequestFunctionCall("left_mouse_click", {"xy": [5000, 10]}, call_id="click")
    name, instead = type_("name", "name"), type_("instead", "instead", dependencies=["click"])
    unneeded = type_("unneeded", "unneeded", dependencies=["instead"])
    executor = Executor(desktops=desktop)
    conditional = FunctionCallStrategy.CONDITIONAL
    calls = [outside, name, instead, unneeded]
    asyncio.run(executor.execute(calls, conditional, when={"instead": failed, "unneeded": failed}))
    assert [call.status for call in calls] == [FAILURE, CANCELLED, SUCCESS, CANCELLED]
    asyncio.run(executor.execute([type_("end", "END")]))
    assert until(lambda: received.read_text().endswith("END"))
    assert received.read_text() == "insteadEND"
