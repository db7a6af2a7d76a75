"""The data of a playback: what an episode's page shows, as plain JSON, whatever the recording has.

This module owns what of a moment goes to the page and in which order pictures are kept when there is no room for all. It is
pure: pictures come from a function.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deskhand.episodes.report.timeline import Mark, Moment

MOST_MOMENTS = 5000
"""The moments of an episode that a page shows at most; it says how many are left out."""

_LONGEST = 2000
_MOST_TEXT = 16 << 20
_MOST_SHAPES = 200
_FARTHEST = 100_000
_SCREEN = (1280, 800)


class Pictures:
    """The pictures of a page, as long as there is room.

    Attributes:
        urls: The `data:` URLs, in the order of their numbers.
        left_out: How many there was no room for.
        trouble: Why others cannot be shown; empty if all can.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self.urls: list[str] = []
        self.left_out: int = 0
        self.trouble: str = ""
        self._size = 0

    def add(
        self,
        frames: Sequence[str],
        read: Callable[[str], str],
        failures: tuple[type[Exception], ...],
        *,
        room: int,
    ) -> dict[str, int]:
        """Add pictures, those that are spread evenly over the episode first, and return the numbers of those that are there.

        Args:
            frames: The frames of an episode, in order.
            read: The URL of a frame.
            failures: What `read` raises for a frame that cannot be read.
            room: The most characters that all URLs may have, those of earlier calls too.
        """
        unique = list(dict.fromkeys(frames))
        numbers: dict[str, int] = {}
        full = False
        for index in spread(len(unique)):
            if full:
                self.left_out += 1
                continue
            try:
                url = read(unique[index])
            except failures as error:
                # The page shows everything that can be read.
                self.trouble = self.trouble or _text(str(error))
                continue
            if self._size + len(url) > room:
                full = True
                self.left_out += 1
                continue
            self._size += len(url)
            numbers[unique[index]] = len(self.urls)
            self.urls.append(url)
        return numbers


def spread(count: int) -> Iterator[int]:
    """The numbers 0...count-1: the last and the first, then each time those in the middle of the widest gaps."""
    ends = [count - 1, 0] if count > 1 else [0] if count else []
    yield from ends
    gaps = [(0, count - 1)]
    while gaps:
        narrower = []
        for low, high in gaps:
            if high - low < 2:
                continue
            middle = (low + high) // 2
            yield middle
            narrower += [(low, middle), (middle, high)]
        gaps = narrower


def frames_of(moments: Iterable[Moment]) -> list[str]:
    """The frames that moments show, in order."""
    return [frame for moment in moments for frame in (moment.before, moment.frame) if frame is not None]


def side(
    *,
    run: str,
    episode: str,
    begin: Mapping[str, Any],
    result: Mapping[str, Any],
    moments: Sequence[Moment],
    trouble: str,
    numbers: Mapping[str, int],
) -> dict[str, Any]:
    """One episode of the page, as JSON data.

    Args:
        run: The name of the run.
        episode: The name of the episode.
        begin: The event that describes it; untrusted, as is everything else of a recording.
        result: Its result; empty if it has not ended.
        moments: What happened.
        trouble: Why not all of it is there.
        numbers: The number of each picture that the page has, by its frame.
    """
    shown, size = [], 0
    for moment in moments[:MOST_MOMENTS]:
        plain = _moment(moment, numbers)
        size += len(json.dumps(plain))
        if size > _MOST_TEXT:
            break
        shown.append(plain)
    tokens = result.get("tokens")
    counts = tokens if isinstance(tokens, dict) else {}
    return {
        "run": _text(run),
        "episode": _text(episode),
        "agent": _text(result.get("agent", begin.get("program", ""))),
        "instruction": _text(begin.get("instruction", "")),
        "screen": _screen(begin.get("screen")),
        # A trace of a program has no result.
        "outcome": {"good": True, "text": "trace"} if not result and "program" in begin else _outcome(result),
        "why": [
            {"name": name, "text": text}
            for name in ("detail", "reason", "answer")
            if (text := _text(result.get(name) or ""))
        ],
        "steps": _number(result.get("steps")),
        "tokens": [_number(counts.get("input")), _number(counts.get("output"))],
        "cost": _number(result.get("cost")),
        "trouble": _text(trouble),
        "leftOut": len(moments) - len(shown),
        "moments": shown,
    }


def _outcome(result: Mapping[str, Any]) -> dict[str, Any]:
    cause = _text(result.get("cause") or "").replace("_", " ")
    if not result:
        return {"good": False, "text": "not ended"}
    if not result.get("valid"):
        return {"good": False, "text": f"invalid ({cause})" if cause else "invalid"}
    score = _number(result.get("score"))
    good = result.get("success") is True
    text = "success" if good else "failure" if score is None else f"score {100 * score:.0f} %"
    return {"good": good, "text": f"{text} ({cause})" if cause else text}


def _moment(moment: Moment, numbers: Mapping[str, int]) -> dict[str, Any]:
    # A look whose picture did not fit still has one, and the page says so.
    return {
        "number": moment.number,
        "kind": _text(moment.kind),
        "t": _number(moment.t) or 0.0,
        "lines": [_text(line) for line in moment.lines[:_MOST_SHAPES]],
        "text": _text(moment.text),
        "error": _text(moment.error),
        "looked": moment.frame is not None,
        "frame": numbers.get(moment.frame) if moment.frame is not None else None,
        "before": numbers.get(moment.before) if moment.before is not None else None,
        "changed": bool(moment.rects),
        "rects": [_place(rect) for rect in moment.rects[:_MOST_SHAPES]],
        "busy": [_place(rect) for rect in moment.busy[:_MOST_SHAPES]],
        "marks": [_mark(mark) for mark in moment.marks[:_MOST_SHAPES]],
        "facts": [_text(fact) for fact in moment.facts[:_MOST_SHAPES]],
        "times": [[_text(part), max(0.0, _number(value) or 0.0)] for part, value in moment.times],
    }


def _mark(mark: Mark) -> dict[str, Any]:
    points = [_place(point) for point in mark.points[:_MOST_SHAPES]]
    return {"label": _text(mark.label), "points": points, "arrow": None if mark.arrow is None else _place(mark.arrow)}


def _place(values: Iterable[float]) -> list[float]:
    return [max(-_FARTHEST, min(_FARTHEST, _number(value) or 0.0)) for value in values]


def _screen(given: Any) -> list[int]:
    if isinstance(given, list | tuple) and len(given) == 2:
        sides = [_number(each) for each in given]
        if all(each is not None and 1 <= each <= _FARTHEST for each in sides):
            return [int(each or 1) for each in sides]
    return list(_SCREEN)


def _number(value: Any) -> float | None:
    """A finite number, as JSON can have it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15 or math.isnan(value):
        return None
    return value


def _text(value: Any) -> str:
    text = clean(value[: 2 * _LONGEST], keep="\n\t") if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
