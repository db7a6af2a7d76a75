"""The safety checks in the additional properties of Microsoft Agent Framework's contents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskhand.desktop.operations import SafetyCheck
from deskhand.providers.openai.safety_checks import decode_check
from deskhand.providers.payload import expect_list

CHECKS = "pending_safety_checks"
REVIEW = "pending_safety_review"


def checks_of(properties: Mapping[str, Any]) -> list[SafetyCheck]:
    """The checks that a person must confirm first, from a call's additional properties.

    The design has two names for them: OpenAI's `pending_safety_checks`, and `pending_safety_review`, whose value may be any
    form of a question and counts as one check.

    Raises:
        ActionError: `pending_safety_checks` is malformed.
    """
    given = properties.get(CHECKS)
    checks = [decode_check(check) for check in expect_list(CHECKS, [] if given is None else given)]
    review = properties.get(REVIEW)
    if review is not None and review is not False:
        text = review.get("explanation") if isinstance(review, Mapping) else review
        checks.append(SafetyCheck(REVIEW, REVIEW, text if isinstance(text, str) else None))
    return checks
