"""Reads what the tests of a task of Harbor write: `reward.json` or `reward.txt`. Pure.

This module owns which rewards are a score. What must never appear here: where the files are.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 1 << 16
"""The largest file with rewards that is read, in bytes."""

_SCORE = "reward"
_MOST, _LONGEST = 100, 200


def score_of(name: str, file: str, data: bytes) -> tuple[float, Mapping[str, float]]:
    """The score, and all rewards by name.

    Args:
        name: The task's name, for errors.
        file: The name of the file.
        data: Its content; it is JSON if the name ends so.

    Raises:
        TaskError: There is no score in it.
    """
    try:
        text = data.decode().strip()
        found = json.loads(text) if file.endswith(".json") else {_SCORE: float(text)}
    except (ValueError, RecursionError):
        wanted = "JSON" if file.endswith(".json") else "a number"
        raise TaskError(name, f"{file} is {shown(data[:100].decode(errors='replace'))}, not {wanted}") from None
    if not isinstance(found, dict) or not 0 < len(found) <= _MOST:
        raise TaskError(name, f"{file} is {shown(found)}", f"it must be an object of 1 to {_MOST} rewards")
    rewards = {_named(name, file, key): _number(name, f"{file}: {key}", value) for key, value in found.items()}
    if _SCORE not in rewards and len(rewards) > 1:
        names = ", ".join(list(rewards)[:5])
        raise TaskError(name, f"{file} has several rewards and none that is called {_SCORE}: {names}")
    score = rewards[_SCORE] if _SCORE in rewards else next(iter(rewards.values()))
    if not 0 <= score <= 1:
        raise TaskError(name, f"{file}: the reward is {score:g}", "a score is 0 to 1")
    return score, rewards


def _named(name: str, file: str, key: str) -> str:
    if len(key) > _LONGEST:
        raise TaskError(name, f"{file}: the name of a reward has {len(key)} letters", f"at most {_LONGEST} are read")
    return key


def _number(name: str, what: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise TaskError(name, f"{what[:300]}: it is {shown(value)}", "it must be a finite number")
    return number
