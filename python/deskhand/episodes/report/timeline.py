"""The moments of an episode in order, each with its picture, what changed in it, and where the agent acted.

This module owns how recorded events are described. It has no files, no pixels and no HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand._core.observation import REMARKS
from deskhand._core.redaction import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LONGEST_TEXT = 2000
_SILENT = {"begin", "frame", "end"}
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_ELAPSED = ("input", "reaction", "settle", "capture", "encode")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the screen where something was done, in pixels.

    Attributes:
        points: One point for a click, a move or a scroll; all points of a drag.
        label: The action.
        arrow: For a scroll: the distance, as (right, down); else None.
    """

    points: tuple[tuple[float, float], ...]
    label: str
    arrow: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One event.

    Attributes:
        number: The number of the moment in its episode, from 1.
        kind: The kind of the recorded event.
        t: Seconds since the episode began.
        lines: Its description, a line each.
        text: The text that was said or written, unchanged; usually empty.
        error: The error; empty if there is none.
        frame: The picture afterwards; None if there is none.
        before: The picture before; None if there is none, or it is the same.
        rects: The areas that changed, as x, y, width, height.
        busy: The areas that were changing by themselves.
        marks: Where the agent acted.
        facts: How the screen settled, and the like.
        times: Seconds, by part.
    """

    number: int
    kind: str
    t: float
    lines: tuple[str, ...] = ()
    text: str = ""
    error: str = ""
    frame: str | None = None
    before: str | None = None
    rects: tuple[tuple[int, int, int, int], ...] = ()
    busy: tuple[tuple[int, int, int, int], ...] = ()
    marks: tuple[Mark, ...] = ()
    facts: tuple[str, ...] = ()
    times: tuple[tuple[str, float], ...] = ()


def moments(events: Iterable[Mapping[str, Any]]) -> list[Moment]:
    """The moments of an episode, from its recorded events; events of unknown kinds are shown unchanged."""
    found: list[Moment] = []
    pointer: tuple[float, float] | None = None
    for event in events:
        kind = str(event["kind"])
        if kind in _SILENT and not event.get("id"):
            continue
        number = len(found) + 1
        try:
            moment = _moment(number, kind, event, pointer)
            pointer = _at(event.get("cursor")) or pointer
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
            # A recording is untrusted, and may have anything in an event.
            t = found[-1].t if found else 0.0
            moment = Moment(number, _cut(kind), t, ("an event that cannot be read",))
        found.append(moment)
    return found


def _moment(number: int, kind: str, event: Mapping[str, Any], pointer: tuple[float, float] | None) -> Moment:
    t = float(event.get("t", 0.0))
    if kind == "perform":
        return _performed(number, t, event, pointer)
    if kind == "frame":
        return Moment(number, kind, t, (f"The {event.get('cause', '')} frame",), frame=str(event["id"]))
    return _other(number, kind, t, event)


def _performed(number: int, t: float, event: Mapping[str, Any], pointer: tuple[float, float] | None) -> Moment:
    actions: Sequence[Mapping[str, Any]] = event.get("actions", ())
    marks = []
    for action in actions:
        if action.get("element") is not None:
            # The pointer still is where the last action was done. Where it was for those before is not known.
            pointer = _at(event.get("cursor")) if action is actions[-1] else None
        mark = _mark(action, pointer)
        if mark is not None:
            marks.append(mark)
            pointer = mark.points[-1]
    elapsed = event.get("elapsed") or {}
    after, before = _name(event.get("after")), _name(event.get("before"))
    facts = []
    if event.get("reason"):
        facts.append(("settled: " if event.get("settled") else "not settled: ") + str(event["reason"]))
    facts += [name.replace("_", " ") for name in REMARKS if event.get(name) and name != "notes"]
    facts += [_cut(str(note)) for note in event.get("notes", ())]
    if event.get("by"):
        facts.insert(0, f"by {_cut(str(event['by']))}")
    if event.get("unknown"):
        facts.append("it may have been done or not")
    return Moment(
        number=number,
        kind="perform",
        t=t,
        lines=tuple(describe_action(action) for action in actions) or ("look again",),
        text=_outlined(event),
        error=_failed(event),
        frame=after or before,
        before=before if before != after else None,
        rects=_rects(event.get("rects")),
        busy=_rects(event.get("busy")),
        marks=tuple(marks),
        facts=tuple(facts),
        times=tuple((part, float(elapsed[part])) for part in _ELAPSED if part in elapsed),
    )


def _other(number: int, kind: str, t: float, event: Mapping[str, Any]) -> Moment:
    seconds = event.get("seconds")
    times = ((kind, float(seconds)),) if seconds is not None else ()
    frame = _name(event.get("frame"))
    match kind:
        case "note" | "answer":
            return Moment(number, kind, t, text=_cut(str(event.get("text", ""))))
        case "shell":
            return _command(number, t, event)
        case "control":
            return Moment(number, kind, t, (_controlled(event),), text=_cut(str(event.get("text", ""))))
        case "refused":
            return Moment(number, kind, t, error=_cut(str(event.get("reason", ""))))
        case "start":
            line = " ".join(str(word) for word in event.get("argv", ()))
        case "spend":
            line = _spent(event)
        case "look":
            line = "look"
        case "elements":
            line = f"elements {event.get('query', '')}".rstrip()
        case _:
            known = {"seq", "t", "wall", "kind", "seconds", "frame", "error"}
            line = ", ".join(
                f"{name}: {value}" for name, value in event.items() if name not in known and value is not None
            )
    lines = (_cut(line),) if line else ()
    return Moment(number, kind, t, lines, _outlined(event), error=_failed(event), frame=frame, times=times)


_CONTROL = {
    "take": "takes control",
    "release": "hands back",
    "ask": "The agent asks for help",
    "decline": "declines a request for help",
    "pause": "pauses",
    "step": "lets one operation through",
    "resume": "lets the agent go on",
}


def _controlled(event: Mapping[str, Any]) -> str:
    """A change of control in words."""
    change = str(event.get("change", "?"))
    words = [str(event["by"])] if event.get("by") else []
    words += [_CONTROL.get(change, change), *(["privately"] if event.get("private") else [])]
    return _cut(" ".join(words))


def _outlined(event: Mapping[str, Any]) -> str:
    """The elements that were read."""
    return _cut(str(event.get("elements", "")))


def _failed(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    return _cut(f"{error.get('type', '')}: {error.get('message', '')}") if error else ""


def _command(number: int, t: float, event: Mapping[str, Any]) -> Moment:
    written = "\n".join(str(part) for part in (event.get("stdout"), event.get("stderr")) if part)
    code = event.get("exit_code")
    outcome = str(event.get("outcome", ""))
    return Moment(
        number,
        "shell",
        t,
        (_cut(str(event.get("command") or "a shell is opened")),),
        _cut(written),
        error=_failed(event),
        facts=(outcome if code is None else f"{outcome}, exit code {code}",),
        times=(("shell", float(event["seconds"])),) if event.get("seconds") is not None else (),
    )


def describe_action(action: Mapping[str, Any]) -> str:
    """A recorded action as a text for people."""
    kind = str(action.get("type", "?"))
    words = [kind.replace("_", " ")]
    rest = {name: value for name, value in action.items() if name != "type" and value not in (None, (), [])}
    for name in ("xy", "start_xy"):
        if name in rest:
            points = _points(rest.pop(name))
            shown = points if len(points) <= 3 else [*points[:2], points[-1]]
            words.append(" → ".join(f"({x:g}, {y:g})" for x, y in shown))
    if "keys" in rest:
        words.append(" + ".join(str(key) for key in rest.pop("keys")))
    if "text" in rest:
        words.append(f"“{rest.pop('text')}”")
    words.extend(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in rest.items())
    return _cut(" ".join(words))


def _mark(action: Mapping[str, Any], pointer: tuple[float, float] | None) -> Mark | None:
    kind = str(action.get("type", ""))
    points = _points(action.get("xy"))
    start = _points(action.get("start_xy"))
    everything = (*start, *points)
    if not everything and pointer is not None and ("click" in kind or "scroll" in kind or "mouse" in kind):
        everything = (pointer,)
    if not everything:
        return None
    arrow = None
    if "scroll" in kind:
        x, y = action.get("distance_xy") or _DIRECTIONS.get(str(action.get("direction")), (0, 1))
        arrow = ((x > 0) - (x < 0), (y > 0) - (y < 0))
    return Mark(everything, kind.replace("_", " "), arrow)


def _name(frame: Any) -> str | None:
    return frame if isinstance(frame, str) else None


def _at(cursor: Any) -> tuple[float, float] | None:
    return (float(cursor[0]), float(cursor[1])) if cursor else None


def _points(value: Any) -> tuple[tuple[float, float], ...]:
    if not value:
        return ()
    if isinstance(value[0], int | float):
        return ((float(value[0]), float(value[1])),)
    return tuple((float(x), float(y)) for x, y in value)


def _rects(value: Any) -> tuple[tuple[int, int, int, int], ...]:
    return tuple((int(x), int(y), int(width), int(height)) for x, y, width, height in value or ())


def _spent(event: Mapping[str, Any]) -> str:
    cost = f", cost {event['cost']:g}" if event.get("cost") else ""
    return f"{event.get('input', 0)} tokens in, {event.get('output', 0)} out{cost}"


def _cut(text: str) -> str:
    text = clean(text[: 2 * _LONGEST_TEXT], keep="\n\t")
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
