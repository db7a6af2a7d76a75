"""Finds the claims of a result that no attempt can have had: scores, causes, times, usage. Pure.

This module owns what fits together in a result and its record. It evaluates nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from deskhand.episodes.outcome import RULES, Cause
from deskhand.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.episodes.record.reader import Recording

# Clocks of several machines, times that were rounded, and a machine that is busy between two of them.
_CLOCKS = 3600.0
_ROUNDED = 0.01
_BUSY = 60.0
_PHASES = ("reset", "setup", "agent", "evaluate")
_COUNTS = ("steps", "actions", "looks")
# From this number on, usage is in the result alone.
_SPENDS = 10_000


def implausible(result: Mapping[str, Any], recording: Recording, *, begun: float, now: float) -> list[str]:
    """What does not fit together in a result.

    Args:
        result: The result.
        recording: The record of its attempt.
        begun: When the run began, in seconds since 1970.
        now: Seconds since 1970.

    Raises:
        EpisodeError: The record cannot be read.
        KeyError, TypeError, ValueError: The result has another form than any attempt's.
    """
    return [*_graded(result), *_timed(result, recording, begun, now), *_used(result, recording)]


def _graded(result: Mapping[str, Any]) -> Iterator[str]:
    cause, score = result["cause"], result["score"]
    if cause is not None and cause not in list(Cause):
        yield f"there is no cause {shown(cause)}"
        return
    valid = cause is None or RULES[Cause(cause)].graded
    if result["valid"] is not valid:
        yield f"it is said to be {'valid' if result['valid'] else 'invalid'}, and its cause is {cause}"
    elif valid != (_is_number(score) and 0 <= score <= 1):
        yield f"its score is {shown(score)}"
    elif result["success"] is not (valid and score >= 1):
        yield f"success is {shown(result['success'])}, with a score of {shown(score)}"


def _timed(result: Mapping[str, Any], recording: Recording, begun: float, now: float) -> Iterator[str]:
    started, ended, times = result["started"], result["ended"], result["times"]
    parts = [times[phase] for phase in _PHASES]
    total = times["total"]
    if not all(map(_is_number, (started, ended, total, *parts))) or min(total, *parts) < 0:
        yield "its times are not numbers of 0 or more"
        return
    if sum(parts) > total + _ROUNDED:
        yield f"its parts took {sum(parts):.1f} s, and all of it {total:.1f} s"
    if abs(ended - started - total) > _BUSY:
        yield f"it took {total:.1f} s, and from its beginning to its end are {ended - started:.1f} s"
    if started < begun - _CLOCKS:
        yield "it began before its run"
    if ended > now + _CLOCKS:
        yield "it ends in the future"
    at = [event["t"] for event in recording.events]
    if not all(map(_is_number, at)) or at != sorted(at) or (at and at[-1] - at[0] > total + _BUSY):
        yield "the times of its events do not fit"
    if recording.torn or not recording.events or recording.events[-1]["kind"] != "end":
        yield "its record has no end"


def _used(result: Mapping[str, Any], recording: Recording) -> Iterator[str]:
    wrong = [name for name in _COUNTS if not isinstance(result[name], int) or result[name] < 0]
    if wrong:
        yield f"its {wrong[0]} is {shown(result[wrong[0]])}"
    spends = [event for event in recording.events if event["kind"] == "spend"]
    if len(spends) >= _SPENDS:
        return
    said = {"input": result["tokens"]["input"], "output": result["tokens"]["output"], "cost": result["cost"]}
    for name, value in said.items():
        used = math.fsum(event[name] for event in spends)
        if not _is_number(value) or not math.isclose(value, used, abs_tol=1e-9):
            yield f"its {name} is {shown(value)}, and {used:g} in its record"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
