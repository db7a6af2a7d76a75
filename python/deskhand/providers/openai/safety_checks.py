"""Safety checks in OpenAI's form, which a person must confirm before a call is carried out. Pure."""

from __future__ import annotations

from typing import Any

from deskhand.desktop.operations import SafetyCheck
from deskhand.providers.payload import expect_object, expect_string


def decode_check(payload: object) -> SafetyCheck:
    """Decode one of `pending_safety_checks`.

    Raises:
        ActionError: It is malformed.
    """
    item = expect_object("a safety check", payload)
    code, text = item.get("code"), item.get("message")
    return SafetyCheck(
        expect_string("a safety check's id", item.get("id")),
        None if code is None else expect_string("a safety check's code", code),
        None if text is None else expect_string("a safety check's message", text),
    )


def check_payload(check: SafetyCheck) -> dict[str, Any]:
    """Encode a check as one of `pending_safety_checks`."""
    payload = {"id": check.id, "code": check.code, "message": check.message}
    return {key: value for key, value in payload.items() if value is not None}
