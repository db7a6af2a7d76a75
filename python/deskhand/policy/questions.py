"""`Questions`: what a policy asks, kept until a person answers it elsewhere, as on a page.

This module owns the pending questions, their limits, and what was allowed for a session. It decides nothing by itself but no:
when the time is up, when no call waits for the answer any more, and when there are too many. It has no desktop.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from deskhand._core.arguments import expect_amount, expect_callable, expect_flag, expect_integer, expect_text
from deskhand._core.fields import MAX_SECONDS
from deskhand._core.redaction import one_line, visible
from deskhand.actions import Action
from deskhand.errors import ActionError, shown
from deskhand.policy.asking import ASKED
from deskhand.policy.rules import ActionClass, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.policy.rules import Context, JudgedAction

QUESTION_TIMEOUT = 300.0
"""Default time limit for a person's answer, in seconds."""

_MOST = 64
_MOST_ALLOWED = 1000
_LARGEST_ID = 2**53
_LONGEST_NAME = 100
_LONGEST_NOTE = 300
# A question that is longer cannot be read, and is answered with no.
_LONGEST_TEXT = 1 << 18
_CONTENT_SHOWN = 1 << 16
PERSON = "person"
"""The detail of a question that names who has control and asks; an agent's has none."""


def question_of(action: JudgedAction, context: Context) -> dict[str, Any]:
    """The whole question as plain data, including the names and values of a command's environment. Texts are untrusted."""
    if isinstance(action, Action):
        what = action.to_dict()
    else:
        what = {
            "type": action.type,
            "target": action.target,
            "size": action.size,
            "cwd": action.cwd,
            "env": dict(action.env),
        }
    about = {name: getattr(context, name) for name in ("desktop", "provider", "call_id", "agent", "window")}
    check = context.safety_check
    return {
        "action": what,
        "class": str(context.action_class),
        **about,
        "safety_check": None if check is None else {"id": check.id, "code": check.code, "message": check.message},
    }


@dataclass(frozen=True, slots=True)
class Question:
    """A question that waits for an answer.

    Attributes:
        id: Its number, for `Questions.answer`.
        action_class: The class of what is asked about.
        details: What is asked about, completely: names, such as `type`, `target`, `cwd`, `env PATH`, `content` (its first
            64 KiB) or `person` (who has control and does it), with their values. What cannot be seen, such as a control
            character, is written as an escape; line ends stay. Untrusted texts.
        desktop: The desktop's name, display or address.
        provider: The provider that made the call.
        agent: The agent's name.
        call_id: The provider's id of the call.
        window: The title of the window that it goes to, None if unknown.
        since: When it was asked, in seconds since 1970.
        until: When the answer is no, in seconds since 1970.
        repeatable: Whether it can be allowed for the session: a provider's safety check cannot.
    """

    id: int
    action_class: ActionClass
    details: tuple[tuple[str, str], ...]
    desktop: str
    provider: str
    agent: str
    call_id: str
    window: str | None
    since: float
    until: float
    repeatable: bool

    @property
    def text(self) -> str:
        """All of the details, a line each; further lines of a value are indented."""
        return "\n".join(f"{name}: {value}".replace("\n", "\n    ") for name, value in self.details)


QuestionKind = Literal["asked", "allowed", "denied", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True)
class QuestionEvent:
    """What became of a question.

    Attributes:
        kind: It was `asked`, `allowed` or `denied`; its time is up (`expired`), or no call waits any more (`withdrawn`).
        question: The question.
        by: Who answered it.
        for_session: Whether the same is allowed from now on.
    """

    kind: QuestionKind
    question: Question
    by: str = ""
    for_session: bool = False


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What is allowed for the session: the same action, by the same agent, on the same desktop, in the same window."""

    about: weakref.ref[object]
    who: tuple[str, str, str | None]
    action: JudgedAction
    by: str


@dataclass(eq=False, slots=True)
class _Pending:
    question: Question
    action: JudgedAction
    who: tuple[str, str, str | None]
    about: weakref.ref[object] | None
    answers: queue.SimpleQueue[Answer | None] = field(default_factory=queue.SimpleQueue)


class Questions:
    """Keeps what a policy asks until a person answers: give it as `ask=`. Several desktops, and threads, may share it.

    A question ends with no when its time is up, and when the call that waits for it ends: by `Desktop.stop`, because the
    desktop is closed, or by a cancellation.

    Example:
        >>> questions = Questions()
        >>> desktop = deskhand.launch("docker", ask=questions)
        >>> # in another thread:
        >>> for question in questions.pending:
        ...     print(question.text)
        ...     questions.answer(question.id, allow=True, by="Ada")

    Attributes:
        timeout: Seconds that a person has for an answer.
    """

    def __init__(
        self,
        *,
        timeout: float = QUESTION_TIMEOUT,
        most: int = _MOST,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin without questions.

        Args:
            timeout: Seconds for each answer; above 0 and at most an hour.
            most: How many questions may wait at once, 1...1000; the answer to more is no.
            wall: Seconds since 1970.

        Raises:
            ActionError: An argument is wrong.
        """
        if expect_amount("Questions: timeout", timeout) > MAX_SECONDS:
            raise ActionError(
                f"Questions: timeout is above 0 and at most {MAX_SECONDS:g} seconds, not {shown(timeout)}"
            )
        expect_callable("Questions: wall", wall)
        self.timeout: float = timeout
        self._most = expect_integer("Questions: most", most, 1, _MOST_ALLOWED)
        self._wall = wall
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._allowed: list[_Allowed] = []
        self._listeners: dict[object, Callable[[QuestionEvent], object]] = {}

    def __repr__(self) -> str:
        return f"<Questions {len(self._pending)} pending>"

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions that wait, the oldest first."""
        with self._lock:
            return tuple(each.question for each in self._pending.values())

    # --- for a policy ---

    def __call__(self, action: JudgedAction, context: Context) -> Answer:
        """Ask, and wait for the answer."""
        asked = ASKED.get()
        about = None if asked is None or asked.about is None else weakref.ref(asked.about)
        who = context.provider, context.agent, context.window
        found = _found(action, context)
        if sum(len(name) + len(value) for name, value in found) > _LONGEST_TEXT:
            return Answer(allow=False, note="it is too long for a person to read")
        details = tuple((visible(name), visible(value)) for name, value in found)
        with self._lock:
            if (by := self._allowed_by(action, context, who, about)) is not None:
                return Answer(allow=True, by=by, note="for this session")
            if len(self._pending) >= self._most:
                return Answer(allow=False, note=f"{self._most} questions wait for an answer already")
            question = self._question(context, details, repeatable=about is not None and context.safety_check is None)
            pending = _Pending(question, action, who, about)
            self._pending[pending.question.id] = pending
        if asked is not None:
            asked.when_over(lambda: pending.answers.put(None))
        kind: QuestionKind = "withdrawn"
        try:
            self._report(QuestionEvent("asked", pending.question))
            answer = pending.answers.get(timeout=self.timeout)
        except queue.Empty:
            answer, kind = None, "expired"
        finally:
            with self._lock:
                unanswered = self._pending.pop(pending.question.id, None) is not None
            if unanswered:
                self._report(QuestionEvent(kind, pending.question))
        if answer is None and not unanswered:
            # It was answered between the two.
            answer = pending.answers.get()
        return answer or Answer(allow=False, note=f"there was no answer in {self.timeout:g} s")

    # --- for a person ---

    def answer(self, id: int, *, allow: bool, for_session: bool = False, by: str = "", note: str = "") -> Question:
        """Answer a question.

        Args:
            id: Its number.
            allow: Whether it may be done.
            for_session: Whether the same may be done again without a question: the same action, by the same agent, in the same
                window of the same desktop, until the desktop is closed, reset or given back, or `forget` is called.
            by: Who answers, for the audit log, and for the agent's error.
            note: A reason, for both as well.

        Returns:
            The question.

        Raises:
            ActionError: No question of this number waits any more, or it cannot be allowed for a session.
        """
        number = expect_integer("answer: id", id, 0, _LARGEST_ID)
        expect_flag("answer: allow", allow)
        expect_flag("answer: for_session", for_session)
        who = one_line(expect_text("answer: by", by), _LONGEST_NAME)
        text = one_line(" ".join(expect_text("answer: note", note).split()), _LONGEST_NOTE)
        with self._lock:
            pending = self._pending.get(number)
            if pending is None:
                raise ActionError(
                    f"answer: no question {number} waits: it was answered, its time is up, or its call has ended"
                )
            if for_session and (not allow or not pending.question.repeatable or pending.about is None):
                raise ActionError(f"answer: question {number} can only be answered once: leave for_session out")
            del self._pending[number]
            if for_session and pending.about is not None:
                self._allowed.append(_Allowed(pending.about, pending.who, pending.action, who))
                del self._allowed[:-_MOST_ALLOWED]
            pending.answers.put(Answer(allow, who, text))
        self._report(QuestionEvent("allowed" if allow else "denied", pending.question, who, for_session))
        return pending.question

    def forget(self) -> None:
        """Allow nothing for a session any more: the same is asked about again."""
        with self._lock:
            self._allowed.clear()

    def listen(self, listener: Callable[[QuestionEvent], object]) -> Callable[[], None]:
        """Have a function called with every `QuestionEvent`, in the thread that makes it. It must return soon.

        Returns:
            A function that ends this.
        """
        expect_callable("listen: listener", listener)
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def end() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return end

    # --- internal ---

    def _question(self, context: Context, details: tuple[tuple[str, str], ...], *, repeatable: bool) -> Question:
        now = self._wall()
        return Question(
            id=next(self._numbers),
            action_class=context.action_class,
            details=details,
            desktop=context.desktop,
            provider=context.provider,
            agent=context.agent,
            call_id=context.call_id,
            window=context.window,
            since=now,
            until=now + self.timeout,
            repeatable=repeatable,
        )

    def _allowed_by(
        self,
        action: JudgedAction,
        context: Context,
        who: tuple[str, str, str | None],
        about: weakref.ref[object] | None,
    ) -> str | None:
        """Who has allowed the same for the session; None if no one has."""
        self._allowed = [each for each in self._allowed if each.about() is not None]
        if about is None or context.safety_check is not None:
            return None
        same = (each for each in self._allowed if each.about() is about() and each.who == who)
        return next((each.by for each in same if each.action == action), None)

    def _report(self, event: QuestionEvent) -> None:
        with self._lock:
            listeners = tuple(self._listeners.values())
        with contextlib.ExitStack() as each:
            for listener in listeners:
                each.callback(listener, event)


def _found(action: JudgedAction, context: Context) -> list[tuple[str, str]]:
    """The details of a question, as they came."""
    asked = question_of(action, context)
    plain: Mapping[str, Any] = asked["action"]
    found = [(name, value) for name, value in plain.items() if name != "env" and value not in (None, "", {})]
    found += [(f"env {name}", value) for name, value in plain.get("env", {}).items()]
    if not isinstance(action, Action) and action.holder is not None:
        found.append((PERSON, action.holder.by))
    if not isinstance(action, Action) and action.data is not None:
        found.append(("content", action.data[:_CONTENT_SHOWN].decode("utf-8", "backslashreplace")))
    if (check := asked["safety_check"]) is not None:
        found += [(f"safety check {name}", value) for name, value in check.items() if value]
    return [(name, value if isinstance(value, str) else repr(value)) for name, value in found]
