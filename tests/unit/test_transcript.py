"""What a session writes, cut anywhere: which of it is a command's, and what is kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.machine.transcript import ERRORS, OUTPUT, Kept, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable

START, END = "a" * 32, "b" * 32
LIMIT = 1 << 10


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.integers(0, 10_000), max_size=20), st.binary(max_size=200), st.binary(max_size=100))
def test_however_it_is_cut(places: list[int], said: bytes, before: bytes) -> None:
    transcript = Transcript(LIMIT)
    transcript.feed(OUTPUT, before)
    transcript.expect(START, END)
    output = b"late" + START.encode() + b"\n" + said + END.encode() + b" 7\n" + b"after"
    for piece in cut(output, places):
        assert not transcript.done
        transcript.feed(OUTPUT, piece)
    for piece in cut(START.encode() + b"\noops" + END.encode() + b"\n", places):
        transcript.feed(ERRORS, piece)
    assert transcript.done
    assert transcript.begun
    assert transcript.verdict == (7, False)
    out, errors, between, truncated = transcript.take()
    assert (out, errors, truncated) == (said.decode("utf-8", "replace"), "oops", len(before) + 9 > LIMIT // 8)
    if not truncated:
        assert between == (before + b"lateafter").decode("utf-8", "replace")


def test_a_command_that_prints_marks_of_others_changes_nothing() -> None:
    transcript = Transcript(LIMIT)
    transcript.expect(START, END)
    lies = START.encode() * 3 + b"\n" + b"c" * 32 + b" 0\n" + END.encode()[:-1] + b"\n"
    transcript.feed(OUTPUT, START.encode() + b"\n" + lies)
    transcript.feed(ERRORS, START.encode() + b"\n")
    assert not transcript.done
    transcript.feed(OUTPUT, END.encode() + b" 0\n")
    assert not transcript.done
    transcript.feed(ERRORS, END.encode() + b"\n")
    assert transcript.done
    assert transcript.take()[0] == lies.decode()


def test_a_session_that_has_ended() -> None:
    transcript = Transcript(LIMIT)
    transcript.expect(START, END)
    transcript.feed(OUTPUT, START.encode() + b"\nx" + END.encode() + b" exit 3\n")
    transcript.feed(ERRORS, START.encode() + b"\n" + END.encode() + b" exit\n")
    assert transcript.done
    assert transcript.verdict == (3, True)
    transcript.expect(START, END)
    transcript.feed(OUTPUT, START.encode() + b" exit 4\n")
    transcript.feed(ERRORS, START.encode() + b" exit\n")
    assert transcript.done
    assert not transcript.begun
    assert transcript.verdict == (4, True)


@pytest.mark.parametrize("limit", [2, 3, 10, 1000])
@given(pieces=st.lists(st.binary(max_size=600), max_size=12))
def test_the_beginning_and_the_end_are_kept(limit: int, pieces: list[bytes]) -> None:
    kept = Kept(limit)
    for piece in pieces:
        kept.add(bytes(byte & 0x7F for byte in piece))
    whole = bytes(byte & 0x7F for byte in b"".join(pieces)).decode()
    assert kept.truncated == (len(whole) > limit)
    text = kept.take()
    if len(whole) <= limit:
        assert text == whole
    else:
        head, tail = limit - limit // 2, limit // 2
        assert text == f"{whole[:head]}\n[... {len(whole) - limit} bytes left out ...]\n{whole[-tail:]}"
    assert kept.take() == ""


def test_no_character_is_cut() -> None:
    kept = Kept(10)
    kept.add("☕☕☕☕☕".encode())
    assert kept.take() == "☕\n[... 9 bytes left out ...]\n☕"
