"""The latest operations of a desktop, as viewers see them: an interceptor that keeps a bounded list.

This module owns what is shown of an operation: cleaned, cut, and without secrets. It keeps no picture and asks nothing.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from deskhand._core.observation import Observation
from deskhand._core.redaction import one_line
from deskhand.actions import Move
from deskhand.errors import DesktopHeld, PolicyDenied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.operations import Operation
    from deskhand.machine.interface import CommandResult

_MOST = 500
_LONGEST_TITLE = 300
_LONGEST_TEXT = 1000
_MOST_MARKS = 64
_MOST_RECTS = 16
# An action's fields that are places.
_POINTS = ("xy", "start_xy")
_FILES = ("copy_in", "write_file")


class Operations:
    """The latest 500 operations of one desktop. Any thread may use it.

    Attributes:
        revision: Grows with each change.
    """

    def __init__(
        self,
        changed: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin with none.

        Args:
            changed: Called after each change, in the thread that made it.
            clock: Monotonic seconds.
            wall: Seconds since 1970.
        """
        self.revision: int = 0
        self._changed = changed
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        # The operations that reached this list, by identity: each lasts as long as its call.
        self._came: set[int] = set()
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MOST)

    def before(self, operation: Operation) -> object:
        """See `deskhand.Interceptor`."""
        self._came.add(id(operation))
        row = self._row(operation)
        if row is None:
            return None
        self._put(row)
        return row, self._clock()

    def came(self, operation: Operation) -> bool:
        """Whether an operation that has ended came as far as this list; asked once."""
        try:
            self._came.remove(id(operation))
        except KeyError:
            return False
        return True

    def deny(self, operation: Operation, denied: PolicyDenied) -> None:
        """List an operation that did not come as far as this list, because an interceptor before it denied it."""
        row = self._row(operation)
        if row is not None:
            self._put({**row, **_outcome(denied)})

    def _row(self, operation: Operation) -> dict[str, Any] | None:
        """How an operation that begins is listed; None for one that is not."""
        holder, actions = operation.holder, operation.actions
        # A person's pointer is on the picture already, and its moves would leave room for nothing else.
        moves = bool(actions) and all(isinstance(action, Move) for action in actions)
        if holder is not None and (holder.private or moves):
            return None
        if operation.type == "hand_over":
            # It is listed as a change of control.
            return None
        person = None if holder is None else one_line(holder.by, 100)
        call = operation.call
        return {
            "id": next(self._numbers),
            "at": self._wall(),
            "by": person or one_line(call.agent or call.provider, 100),
            "person": person is not None,
            "kind": one_line(operation.type, 60),
            "state": "running",
            **_described(operation),
        }

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """See `deskhand.Interceptor`."""
        del operation
        if not isinstance(token, tuple):
            return
        row, began = token
        self._put({**row, "milliseconds": _milliseconds(self._clock() - began), **_outcome(outcome)}, row["id"])

    def control(self, event: ControlEvent) -> None:
        """See `deskhand.Interceptor`."""
        who = one_line(event.by, 100)
        words = {
            "take": "took control" + (" privately" if event.private else ""),
            "release": "handed the desktop back",
            "ask": "asks for help",
            "decline": "declined the request for help",
            "pause": "paused the agent",
            "step": "let one operation through",
            "resume": "let the agent go on",
        }
        text = one_line(event.text, _LONGEST_TEXT)
        self._put(
            {
                "id": next(self._numbers),
                "at": self._wall(),
                "by": who,
                "person": event.kind != "ask",
                "kind": event.kind,
                "title": words[event.kind] + (f": {text}" if text else ""),
                "state": "note",
                "marks": [],
                "lines": [],
            }
        )

    def newer(self, revision: int) -> tuple[int, list[dict[str, Any]]]:
        """The revision now, and the operations that changed after `revision`, oldest first."""
        with self._lock:
            return self.revision, [
                {name: value for name, value in row.items() if name != "revision"}
                for row in self._rows
                if row["revision"] > revision
            ]

    @property
    def latest(self) -> dict[str, Any] | None:
        """The latest operation; None if there was none."""
        with self._lock:
            return dict(self._rows[-1]) if self._rows else None

    def _put(self, row: dict[str, Any], replaced: int | None = None) -> None:
        with self._lock:
            self.revision += 1
            row = {**row, "revision": self.revision}
            if replaced is None:
                self._rows.append(row)
            else:
                # The row that was added last nearly always ends first. A row that is missing was pushed out.
                for index in range(len(self._rows) - 1, -1, -1):
                    if self._rows[index]["id"] == replaced:
                        self._rows[index] = row
                        break
        self._changed()


class Denials:
    """An interceptor before those of a policy: puts into the list what they deny, which comes no further."""

    def __init__(self, operations: Operations) -> None:
        """Of the list that stands behind them."""
        self._operations = operations

    def before(self, operation: Operation) -> None:
        """See `deskhand.Interceptor`."""
        # An earlier operation may have had the same identity, and have ended without a report.
        self._operations.came(operation)

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """See `deskhand.Interceptor`."""
        del token
        if not self._operations.came(operation) and isinstance(outcome, PolicyDenied):
            self._operations.deny(operation, outcome)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _described(operation: Operation) -> dict[str, Any]:
    if operation.type != "perform":
        size = "" if operation.size is None else f" ({operation.size:,} bytes)"
        named = operation.type.replace("_", " ")
        if operation.type == "safety_check":
            checks = operation.call.safety_checks
            named = f"{named}: {', '.join(each.message or each.code or each.id for each in checks)}"
        # What a person pastes may be a password. The path of a file can be seen on the desktop anyway.
        hidden = operation.target and operation.holder is not None and operation.type not in _FILES
        target = "***" if hidden else operation.target
        title = f"{named}: {target}{size}" if target else f"{named}{size}"
        return {"title": one_line(title, _LONGEST_TITLE), "marks": [], "lines": []}
    titles, marks, lines = [], [], []
    for action in itertools.islice(operation.actions, _MOST_MARKS):
        plain: dict[str, Any] = action.to_dict()
        for place in filter(None, map(plain.get, _POINTS)):
            if isinstance(place[0], list):
                lines.append(place[:_MOST_MARKS])
                marks += [place[0], place[-1]]
            else:
                marks.append(place)
        titles.append(_title(plain, hidden=operation.holder is not None))
    title = " · ".join(titles) or "look"
    return {"title": one_line(title, _LONGEST_TITLE), "marks": marks[:_MOST_MARKS], "lines": lines[:_MOST_MARKS]}


def _title(plain: dict[str, Any], *, hidden: bool) -> str:
    return " ".join([str(plain.pop("type")).replace("_", " "), *_details(plain, hidden=hidden)])


def _details(plain: dict[str, Any], *, hidden: bool) -> Iterator[str]:
    secret = plain.pop("secret", False)
    for name, value in plain.items():
        match name, value:
            case "text", str():
                # What a person types is never shown, even where the log does not mark it as secret.
                yield "***" if hidden or secret else f"“{_line_ends(value)}”"
            case ("keys", [*names]):
                yield "+".join(map(str, names))
            case ("modifiers", [*names]) if names:
                yield f"with {'+'.join(map(str, names))}"
            case (_, [[*first], *_]):
                yield f"{_point(first)} → {_point(value[-1])}"
            case (_, [_, *_]):
                yield _point(value)
            case (_, [] | None | False | ""):
                continue
            case ("magnitude", (int() | float())):
                yield f"by {value:g}"
            case (_, True):
                yield name
            case (("element" | "to" | "button" | "direction"), _):
                yield str(value)
            case _:
                yield f"{name} {value}"


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", "⇥")


def _point(point: list[Any]) -> str:
    return ", ".join(map(str, point))


def _outcome(outcome: object) -> dict[str, Any]:
    if isinstance(outcome, BaseException):
        state = (
            "denied"
            if isinstance(outcome, PolicyDenied)
            else "refused"
            if isinstance(outcome, DesktopHeld)
            else "failed"
        )
        text = str(outcome) or type(outcome).__name__
        return {"state": state, "text": one_line(text, _LONGEST_TEXT)}
    if isinstance(outcome, Observation):
        elapsed = outcome.elapsed
        largest = sorted(outcome.rects, key=lambda rect: rect.width * rect.height, reverse=True)
        return {
            "state": "done",
            "changed": outcome.changed,
            "settled": outcome.settled,
            "parts": {name: _milliseconds(getattr(elapsed, name)) for name in elapsed.__slots__},
            "rects": [list(rect) for rect in largest[:_MOST_RECTS]],
        }
    code = getattr(outcome, "exit_code", None)
    if isinstance(code, int):
        done: CommandResult = outcome  # type: ignore[assignment] # by its exit code it is one
        text = one_line(getattr(done, "stdout", "") or getattr(done, "stderr", ""), _LONGEST_TEXT)
        return {"state": "done" if code == 0 else "failed", "text": f"exit code {code}" + (f": {text}" if text else "")}
    return {"state": "done"}
