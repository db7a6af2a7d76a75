"""How an episode ended, and what follows: it is graded, tried again, or counted as invalid.

This module owns the causes and their rules. There is no desktop, no file and no clock here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Cause(StrEnum):
    """Why an episode is not a plain success or failure."""

    DESKTOP_START = "desktop_start"
    """No desktop could be launched."""
    DESKTOP_LOST = "desktop_lost"
    """The desktop, its machine or the worker that drove it died."""
    DRIVER_BUG = "driver_bug"
    """This package failed."""
    SETUP_FAILED = "setup_failed"
    """The task could not be set up."""
    CANNOT_RUN = "cannot_run"
    """The task needs something that is not here: a file, a program, a network, an account."""
    EVALUATOR_FAILED = "evaluator_failed"
    """The task could not be evaluated, or two evaluations of one state differ."""
    MODEL_PROVIDER = "model_provider"
    """The model's provider failed or was overloaded."""
    RECORD_FAILED = "record_failed"
    """The record could not be written: the disk is full."""
    CANCELLED = "cancelled"
    """The operator ended it."""
    AGENT_BUDGET = "agent_budget"
    """Steps, time, tokens or money were used up; the present state is graded."""
    AGENT_ERROR = "agent_error"
    """The agent raised, gave up or requested something impossible; the present state is graded."""
    POLICY_DENIED = "policy_denied"
    """A policy denied something; the present state is graded."""
    APP_CRASH = "app_crash"
    """The application under test crashed; the present state is graded."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from a cause.

    Attributes:
        graded: The episode is valid: the state of the desktop is evaluated and counts.
        retries: How many more attempts are made, each on a fresh desktop.
        backoff: Whether each retry waits longer than the one before.
    """

    graded: bool
    retries: int = 0
    backoff: bool = False


RULES: Mapping[Cause, Rule] = MappingProxyType(
    {
        Cause.DESKTOP_START: Rule(graded=False, retries=3, backoff=True),
        Cause.DESKTOP_LOST: Rule(graded=False, retries=3),
        Cause.DRIVER_BUG: Rule(graded=False),
        Cause.SETUP_FAILED: Rule(graded=False, retries=2),
        Cause.CANNOT_RUN: Rule(graded=False),
        Cause.EVALUATOR_FAILED: Rule(graded=False),
        Cause.MODEL_PROVIDER: Rule(graded=False, retries=5, backoff=True),
        Cause.RECORD_FAILED: Rule(graded=False, retries=2, backoff=True),
        Cause.CANCELLED: Rule(graded=False),
        Cause.AGENT_BUDGET: Rule(graded=True),
        Cause.AGENT_ERROR: Rule(graded=True),
        Cause.POLICY_DENIED: Rule(graded=True),
        Cause.APP_CRASH: Rule(graded=True),
    }
)
"""What follows from each cause."""


def outcome_of(result: Mapping[str, object]) -> str:
    """How an episode ended, in a word: `success`, `failure`, or the cause that makes it invalid. `result`: of `result.json`."""
    if not result["valid"]:
        return str(result["cause"])
    return "success" if result["success"] else "failure"
