"""The end state of an attempt as its evaluation read it, so that the attempt can be evaluated again without its desktop.

This module owns the form of `end_state.json`: every question of an evaluation to the desktop's machine, with its answer. It
writes no files, and a file that it reads is untrusted.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, cast

from deskhand.episodes.tasks.context import TaskContext
from deskhand.errors import EpisodeError
from deskhand.machine.interface import CommandResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop

END_STATE = "end_state.json"
LARGEST = 32 << 20
"""The largest such file, in bytes."""

_VERSION = 1
# Of answers as JSON: the questions need room, too.
_MOST_BYTES = LARGEST // 2
_MOST_ANSWERS = 10_000
_TEXTS = ("stdout", "stderr", "outcome")


class Answer(TypedDict):
    """A question of an evaluation and its answer, which is JSON data: the call (`ask`) and its argument (`of`)."""

    ask: str
    of: str
    answer: object


@dataclass(slots=True)
class EndState:
    """Questions and answers, in their order.

    Attributes:
        home: The home directory of the desktop's user.
        answers: The questions with their answers.
        lacking: Why they are not kept; empty if all are here.
    """

    home: str
    answers: list[Answer] = field(default_factory=list)
    lacking: str = ""
    _size: int = 0
    _last: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, ask: str, of: str, answer: object) -> None:
        """Keep an answer, which is JSON data, if there is room for all of them.

        An evaluation may ask until something is there: an answer is kept where it differs from the one before.
        """
        written = json.dumps(answer)
        if self.lacking or self._last.get((ask, of)) == written:
            return
        self._last[ask, of] = written
        self._size += len(written)
        if self._size > _MOST_BYTES or len(self.answers) >= _MOST_ANSWERS:
            self.lacking = "it is too large to be kept"
            self.answers.clear()
            self._last.clear()
            return
        self.answers.append({"ask": ask, "of": of, "answer": answer})

    def to_json(self) -> bytes:
        """The content of the file."""
        data = {"version": _VERSION, "home": self.home, "lacking": self.lacking, "answers": self.answers}
        return json.dumps(data, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> EndState:
        """Read the content of a file.

        Raises:
            EpisodeError: It has another form.
        """
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise EpisodeError(f"{END_STATE} is not JSON: {error}") from error
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise EpisodeError(f"{END_STATE} has another version than {_VERSION}")
        home, lacking, answers = (found.get(name) for name in ("home", "lacking", "answers"))
        if not isinstance(home, str) or not isinstance(lacking, str) or not isinstance(answers, list):
            raise EpisodeError(f"{END_STATE} lacks a part")
        if len(answers) > _MOST_ANSWERS or not all(map(_is_answer, answers)):
            raise EpisodeError(f"{END_STATE} has an answer of another form")
        return cls(home, answers, lacking)


@dataclass(frozen=True, slots=True)
class KeepingContext(TaskContext):
    """A context that keeps what it answers.

    Attributes:
        kept: The answers so far.
    """

    kept: EndState = field(default_factory=lambda: EndState(""))

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        """See `TaskContext`."""
        found = self._plain().run(command, timeout=timeout)
        parts = {name: getattr(found, name) for name in (*_TEXTS, "exit_code", "truncated")}
        self.kept.note("run", command, parts)
        return found

    def read(self, name: str) -> bytes | None:
        """See `TaskContext`."""
        data = self._plain().read(name)
        self.kept.note("read", self.path(name), _written(data))
        return data

    def files(self, name: str = ".") -> dict[str, str]:
        """See `TaskContext`."""
        found = self._plain().files(name)
        self.kept.note("files", self.path(name), found)
        return found

    def processes(self) -> list[str]:
        """See `TaskContext`."""
        found = self._plain().processes()
        self.kept.note("processes", "", found)
        return found

    def _plain(self) -> TaskContext:
        # It asks further questions of its own, which are not the evaluation's.
        return TaskContext(self.desktop, self.parameters, self.home, self.answer)


@dataclass(frozen=True, slots=True)
class KeptContext(TaskContext):
    """A context without a desktop, which answers as another one did. Nothing is read, written or run on any machine.

    Attributes:
        answers: The answers that are left, by question.
        missed: The questions without an answer, even if the evaluation handles that error.
    """

    answers: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        """See `TaskContext`."""
        del timeout
        found = self._answer("run", command, dict)
        code = found.get("exit_code")
        if not all(isinstance(found.get(name), str) for name in _TEXTS) or not isinstance(code, int | None):
            self._miss(f"the command {command!r}")
        outcome = found["outcome"]
        return CommandResult(found["stdout"], found["stderr"], code, outcome, truncated=found.get("truncated") is True)

    def read(self, name: str) -> bytes | None:
        """See `TaskContext`."""
        found = self._answer("read", self.path(name), dict | None)
        return None if found is None else self._bytes(found, name)

    def files(self, name: str = ".") -> dict[str, str]:
        """See `TaskContext`."""
        found = self._answer("files", self.path(name), dict)
        return {path: str(kind) for path, kind in found.items()}

    def processes(self) -> list[str]:
        """See `TaskContext`."""
        return [str(line) for line in self._answer("processes", "", list)]

    def _answer(self, ask: str, of: str, kind: Any) -> Any:
        left = self.answers.get((ask, of), [])
        if not left or not isinstance(left[0], kind):
            self._miss(f"{ask} {of}".rstrip())
        # The same question may have had several answers, of which the last one stays.
        return left.pop(0) if len(left) > 1 else left[0]

    def _bytes(self, found: Mapping[str, Any], name: str) -> bytes:
        try:
            if isinstance(text := found.get("text"), str):
                return text.encode()
            return base64.b64decode(found["base64"], validate=True)
        except (KeyError, TypeError, ValueError):
            self._miss(f"the content of {name}")

    def _miss(self, what: str) -> NoReturn:
        self.missed.append(what)
        raise EpisodeError(f"the record does not have {what}")


class _NoDesktop:
    """Stands for the desktop, which is gone."""

    def __init__(self, missed: list[str]) -> None:
        self._missed = missed

    def __getattr__(self, name: str) -> NoReturn:
        self._missed.append("what the desktop itself showed")
        raise EpisodeError(f"the desktop is gone, and its {name} was not kept")


def kept_context(state: EndState, parameters: Mapping[str, Any], answer: str | None) -> KeptContext:
    """The context in which an attempt is evaluated again.

    Args:
        state: Its end state.
        parameters: The parameters of its instance.
        answer: The agent's answer.
    """
    answers: dict[tuple[str, str], list[Any]] = {}
    for each in state.answers:
        answers.setdefault((each["ask"], each["of"]), []).append(each["answer"])
    missed: list[str] = []
    return KeptContext(cast("Desktop", _NoDesktop(missed)), parameters, state.home, answer, answers, missed)


def _is_answer(value: object) -> bool:
    return isinstance(value, dict) and "answer" in value and all(isinstance(value.get(n), str) for n in ("ask", "of"))


def _written(data: bytes | None) -> dict[str, str] | None:
    if data is None:
        return None
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
