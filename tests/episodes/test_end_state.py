"""What an evaluation was told is told again, in its order, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import CommandResult, EpisodeError
from deskhand.desktop.access import bare
from deskhand.episodes.record.end_state import EndState, KeepingContext, KeptContext, kept_context
from episodes.plays import memory_desktop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.episodes.tasks.context import TaskContext


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[KeepingContext]:
    with memory_desktop() as desktop:
        yield KeepingContext(desktop, {}, str(tmp_path), "yes", EndState(str(tmp_path)))


def again(context: KeepingContext) -> KeptContext:
    return kept_context(EndState.from_json(context.kept.to_json()), {"a": 1}, context.answer)


def asked(context: TaskContext) -> list[object]:
    return [
        context.read("one.bin"),
        context.text("two.txt"),
        context.text("one.bin"),
        context.read("none"),
        context.files(),
        context.files("none"),
        context.path("two.txt"),
        context.home,
        context.answer,
    ]


def test_questions_have_the_same_answers_without_a_desktop(keeping: KeepingContext) -> None:
    home = Path(keeping.home)
    (home / "one.bin").write_bytes(b"\xff\x00\xfe")
    (home / "two.txt").write_text("naïve ☕\r\n")
    before = asked(keeping)
    ran = keeping.run("echo out; echo err >&2; exit 3")
    kept = again(keeping)
    for path in home.iterdir():
        path.unlink()
    assert asked(kept) == before
    assert before[:4] == [b"\xff\x00\xfe", "naïve ☕\r\n", None, None]
    told = kept.run("echo out; echo err >&2; exit 3")
    assert isinstance(told, CommandResult)
    assert (told.stdout, told.stderr, told.exit_code, told.outcome) == (ran.stdout, ran.stderr, 3, ran.outcome)
    assert kept.missed == []


def test_an_answer_that_changes_is_told_in_its_order_and_the_last_one_stays(keeping: KeepingContext) -> None:
    path = Path(keeping.path("note.txt"))
    for text in (None, None, "a", "a", "a", "b"):
        if text is not None:
            path.write_text(text)
        assert keeping.text("note.txt") == text
    assert len(keeping.kept.answers) == 3
    kept = again(keeping)
    assert [kept.text("note.txt") for _ in range(5)] == [None, "a", "b", "b", "b"]


def test_what_was_not_asked_is_not_answered_nor_done_here(keeping: KeepingContext, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("x")
    kept = again(keeping)
    marker = tmp_path / "marker"
    for ask in (
        lambda: kept.text("there.txt"),
        lambda: kept.run(f"touch {marker}"),
        kept.files,
        kept.processes,
        lambda: kept.write("marker", "x"),
        lambda: kept.write_all({"marker": "x"}),
        lambda: bare(kept.desktop),
    ):
        missed = len(kept.missed)
        with pytest.raises(EpisodeError):
            ask()
        assert len(kept.missed) > missed
    assert not marker.exists()


def test_too_much_is_not_kept(keeping: KeepingContext) -> None:
    Path(keeping.path("large.txt")).write_bytes(b"a" * (13 << 20))
    assert keeping.read("large.txt") == b"a" * (13 << 20)
    assert keeping.kept.lacking == ""
    Path(keeping.path("more.bin")).write_bytes(b"\xff" * (13 << 20))
    keeping.read("more.bin")
    assert keeping.kept.lacking == "it is too large to be kept"
    assert keeping.kept.answers == []


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda each: st.dictionaries(st.text(), each)))
def test_answers_of_another_form_are_missed(answer: object) -> None:
    state = EndState(
        "/home", [{"ask": ask, "of": of, "answer": answer} for ask, of in (("read", "/home/x"), ("run", "ls"))]
    )
    kept = kept_context(state, {}, None)
    for ask in (lambda: kept.read("x"), lambda: kept.run("ls")):
        try:
            assert isinstance(ask(), bytes | CommandResult | None)
        except EpisodeError:
            assert kept.missed
