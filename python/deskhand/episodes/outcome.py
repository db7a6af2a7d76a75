"""What came of an episode, and what follows from it: graded, tried again, or counted as invalid.

This module owns the causes and their rules. What must never appear here: a desktop, a file, a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RULES", "Cause", "Rule"]


class Cause(StrEnum):
    """Why an episode is no plain success or failure."""

    DESKTOP_START = "desktop_start"
    """No desktop came up."""
    DESKTOP_LOST = "desktop_lost"
    """The desktop, its machine or the worker that drove it died."""
    DRIVER_BUG = "driver_bug"
    """This package failed."""
    SETUP_FAILED = "setup_failed"
    """The task could not be set up."""
    EVALUATOR_FAILED = "evaluator_failed"
    """The task could not be evaluated, or two evaluations of one state differ."""
    MODEL_PROVIDER = "model_provider"
    """The model's provider failed or was overloaded."""
    RECORD_FAILED = "record_failed"
    """What happened could not be written down: the disk is full."""
    CANCELLED = "cancelled"
    """The operator ended it."""
    AGENT_BUDGET = "agent_budget"
    """Steps, time, tokens or money were used up; what is there is graded."""
    AGENT_ERROR = "agent_error"
    """The agent raised, gave up or asked for what cannot be done; what is there is graded."""
    POLICY_DENIED = "policy_denied"
    """A policy refused something; what is there is graded."""
    APP_CRASH = "app_crash"
    """The application under test crashed; what is there is graded."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from a cause.

    Attributes:
        graded: The episode is valid: what is on the desktop is evaluated and counts.
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
