"""Questions of a policy that wait until a person answers them elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import (
    ActionError,
    AsyncDesktop,
    AuditLog,
    CallContext,
    ClassPolicy,
    Context,
    Desktop,
    Guard,
    KeyPress,
    Operation,
    PolicyDenied,
    Questions,
    SafetyCheck,
    Secret,
    Type,
    calling,
)
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import review
from deskhand.policy import asking
from deskhand.policy.questions import Question, QuestionEvent
from deskhand.policy.rules import ActionClass

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unit.policy.judged import Inside

LIMIT = 30
SOON = 0.02


class Asked:
    """Hears of questions, and answers each at once if it is told how."""

    def __init__(self, questions: Questions, **answer: Any) -> None:
        self.events: list[QuestionEvent] = []
        self._questions = questions
        self._answer = answer
        self._came = threading.Condition()
        self.end = questions.listen(self._hear)

    def _hear(self, event: QuestionEvent) -> None:
        if event.kind == "asked" and self._answer:
            self._questions.answer(event.question.id, **self._answer)
        with self._came:
            self.events.append(event)
            self._came.notify_all()

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def wait(self, kind: str) -> Question:
        with self._came:
            assert self._came.wait_for(lambda: kind in self.kinds, LIMIT), f"{self.kinds}, and no {kind}"
            return next(event.question for event in self.events if event.kind == kind)


class Call:
    def __init__(self, call: Callable[[], object]) -> None:
        self._result: object = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 # it is looked at
            self._result = error

    def end(self) -> Any:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        return self._result


def test_a_question_waits_with_everything_that_is_asked(desktop: Desktop, inside: Inside) -> None:
    questions = Questions(wall=lambda: 1000.0)
    heard = Asked(questions)
    judged = desktop.also(Guard(ask=questions, policy=ClassPolicy(environment=["PATH"])))

    def run() -> object:
        with calling(CallContext("openai", "c1", agent="a1")):
            return judged.machine.run("echo one\nrm -r x\x1b[2K\u202e", cwd="/tmp", env={"PATH": "/evil\r", "B": "2"})

    call = Call(run)
    question = heard.wait("asked")
    assert questions.pending == (question,)
    assert question.action_class is ActionClass.SHELL
    assert dict(question.details) == {
        "type": "shell",
        "target": "echo one\nrm -r x\\x1b[2K\\u202e",
        "cwd": "/tmp",
        "env PATH": "/evil\\r",
        "env B": "2",
    }
    assert "target: echo one\n    rm -r x\\x1b[2K\\u202e\n" in question.text
    assert (question.provider, question.call_id, question.agent) == ("openai", "c1", "a1")
    assert (question.since, question.until) == (1000.0, 1300.0)
    assert inside.done == []
    assert questions.answer(question.id, allow=True, by="Ada") == question
    assert call.end().stdout == "out"
    assert not questions.pending
    assert heard.kinds == ["asked", "allowed"]
    assert heard.events[-1].by == "Ada"


def test_no_means_no_and_says_who_and_why(desktop: Desktop, inside: Inside, tmp_path: Path) -> None:
    questions = Questions()
    Asked(questions, allow=False, by="Ada\x07", note="not\nthere")
    with AuditLog(tmp_path / "audit.jsonl") as log:
        judged = desktop.also(Guard(ask=questions, audit=log))
        with pytest.raises(PolicyDenied, match=r"it was asked about: Ada said no \(not there\)"):
            judged.machine.run("rm")
    assert inside.done == []
    assert "it was asked about: Ada said no (not there)" in (tmp_path / "audit.jsonl").read_text()


def test_no_secret_is_shown(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions, allow=True)
    desktop.also(Guard(ask=questions)).perform(Type(Secret("hunter2")), settle=False)
    assert "hunter2" not in repr(heard.events)
    assert "***" in heard.events[0].question.text


def test_what_is_written_is_shown(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions, allow=False)
    judged = desktop.also(Guard(ask=questions))
    for data, told in (("a\nb", "a\nb"), (b"\xff\x00", "\\xff\\x00"), (b"z" * 100_000, "z" * (1 << 16))):
        with pytest.raises(PolicyDenied):
            judged.machine.write_file("/tmp/x", data)
        assert dict(heard.events[-1].question.details)["content"] == told
        assert dict(heard.events[-1].question.details)["size"] == str(len(data))


def test_the_time_is_up(desktop: Desktop) -> None:
    questions = Questions(timeout=SOON)
    heard = Asked(questions)
    with pytest.raises(PolicyDenied, match="there was no answer in"):
        desktop.also(Guard(ask=questions, ask_timeout=LIMIT)).machine.run("ls")
    assert heard.kinds == ["asked", "expired"]
    with pytest.raises(ActionError, match="no question 1 waits"):
        questions.answer(1, allow=True)
    assert questions.pending == ()


def test_a_guard_waits_as_long_as_the_questions_do() -> None:
    assert Guard(ask=Questions(timeout=600))._ask_timeout == 600
    assert Guard(ask=Questions(timeout=600), ask_timeout=5)._ask_timeout == 5
    assert Guard(ask=lambda _action, _context: True)._ask_timeout == 60


@pytest.mark.parametrize("end", [lambda d: d.stop("enough"), lambda d: d.close()])
def test_nobody_waits_any_more(end: Callable[[Desktop], object]) -> None:
    questions = Questions()
    heard = Asked(questions)
    desktop = Desktop(MemoryBackend((320, 200)))
    call = Call(lambda: desktop.also(Guard(ask=questions)).host.run("true"))
    heard.wait("asked")
    desktop.stop("enough")
    end(desktop)
    assert isinstance(call.end(), PolicyDenied)
    question = heard.wait("withdrawn")
    assert questions.pending == ()
    with pytest.raises(ActionError, match=f"no question {question.id} waits"):
        questions.answer(question.id, allow=True)
    desktop.close()


def test_a_cancelled_task_takes_its_question_back(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions)

    async def main() -> None:
        judged = AsyncDesktop(desktop.also(Guard(ask=questions)))
        task = asyncio.create_task(judged.host.run("true"))
        await asyncio.to_thread(heard.wait, "asked")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(heard.wait, "withdrawn")

    asyncio.run(main())


def test_the_same_is_allowed_for_the_session_and_nothing_else(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions, allow=True, for_session=True, by="Ada")
    judged = desktop.also(Guard(ask=questions))
    for _ in range(3):
        judged.machine.run("git status")
    assert heard.kinds.count("asked") == 1
    assert heard.events[0].for_session
    with calling(CallContext(agent="other")):
        judged.machine.run("git status")
    assert heard.kinds.count("asked") == 2
    # In another view of the same desktop, it is the same.
    desktop.also(Guard(ask=questions)).machine.run("git status")
    assert heard.kinds.count("asked") == 2
    for command in ("git status ", "git push"):
        judged.machine.run(command)
    judged.machine.run("git status", env={"A": "1"})
    judged.machine.run("git status", cwd="/tmp")
    assert heard.kinds.count("asked") == 6
    with Desktop(MemoryBackend((320, 200))) as other:
        other.also(Guard(ask=questions)).host.run("true")
    desktop.also(Guard(ask=questions)).host.run("true")
    assert heard.kinds.count("asked") == 8
    questions.forget()
    judged.machine.run("git status")
    assert heard.kinds.count("asked") == 9


def test_what_was_allowed_ends_with_the_desktop() -> None:
    questions = Questions()
    heard = Asked(questions, allow=True, for_session=True)
    for count in (1, 2):
        with Desktop(MemoryBackend((320, 200)), name="same") as desktop:
            judged = desktop.also(Guard(ask=questions))
            for _ in range(2):
                judged.host.run("true")
        assert heard.kinds.count("asked") == count
        assert len(questions._allowed) <= 2


def test_a_safety_check_is_asked_about_each_time(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions)
    judged = desktop.also(Guard(ask=questions))
    check = SafetyCheck("a", "malicious", "The page\x07 says so")
    call = Call(lambda: review(judged, CallContext(safety_checks=[check])))
    question = heard.wait("asked")
    assert not question.repeatable
    assert ("safety check message", "The page says so") in question.details
    with pytest.raises(ActionError, match="only be answered once"):
        questions.answer(question.id, allow=True, for_session=True)
    questions.answer(question.id, allow=True)
    assert call.end() == (check,)


def test_there_is_no_no_for_a_session(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions)
    call = Call(lambda: desktop.also(Guard(ask=questions)).machine.run("ls"))
    question = heard.wait("asked")
    with pytest.raises(ActionError, match="leave for_session out"):
        questions.answer(question.id, allow=False, for_session=True)
    questions.answer(question.id, allow=False)
    assert isinstance(call.end(), PolicyDenied)


def test_questions_are_bounded(desktop: Desktop) -> None:
    questions = Questions(most=2)
    heard = Asked(questions)
    judged = desktop.also(Guard(ask=questions))
    calls = [Call(lambda: judged.machine.run("ls")) for _ in range(2)]
    while len(questions.pending) < 2:
        threading.Event().wait(0.002)
    with pytest.raises(PolicyDenied, match="2 questions wait for an answer already"):
        judged.machine.run("ls")
    with pytest.raises(PolicyDenied, match="too long for a person to read"):
        judged.machine.run("x" * (1 << 18))
    for question in questions.pending:
        questions.answer(question.id, allow=True)
    assert all(call.end().stdout == "out" for call in calls)
    assert heard.kinds.count("asked") == 2


def test_only_one_of_many_answers_counts(desktop: Desktop) -> None:
    questions = Questions()
    heard = Asked(questions)
    call = Call(lambda: desktop.also(Guard(ask=questions)).machine.run("ls"))
    question = heard.wait("asked")
    results: list[object] = []

    def answer(allow: bool) -> None:  # noqa: FBT001 # a thread's argument
        try:
            results.append(questions.answer(question.id, allow=allow, by=str(allow)))
        except ActionError as error:
            results.append(error)

    threads = [threading.Thread(target=answer, args=(number % 2 == 0,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sum(isinstance(result, Question) for result in results) == 1
    allowed = heard.events[-1].kind == "allowed"
    assert (getattr(call.end(), "stdout", None) == "out") == allowed


def test_a_listener_that_fails_allows_nothing(
    desktop: Desktop, inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    questions = Questions()

    def fail(_event: QuestionEvent) -> None:
        raise ValueError("broken")

    end = questions.listen(fail)
    with pytest.raises(PolicyDenied, match="it failed with ValueError"):
        desktop.also(Guard(ask=questions)).machine.run("ls")
    # Who wrote it sees where, and not the text, which may have a secret.
    (told,) = caplog.messages
    assert f"raised ValueError: this operation is denied\n  {asking.__file__}, line " in told
    assert f"\n  {__file__}, line " in told
    assert "broken" not in told
    assert questions.pending == ()
    assert inside.done == []
    end()
    end()
    Asked(questions, allow=True)
    desktop.also(Guard(ask=questions)).machine.run("ls")


def test_it_can_be_asked_without_a_guard() -> None:
    questions = Questions()
    heard = Asked(questions, allow=True)
    context = Context(action_class=ActionClass.INPUT)
    assert questions(KeyPress(["a"]), context).allow
    assert questions(Operation("shell", "ls"), context).allow
    assert not any(event.question.repeatable for event in heard.events)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": 1e9}, {"most": 0}, {"most": 10**9}, {"wall": 1}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ActionError):
        Questions(**wrong)
