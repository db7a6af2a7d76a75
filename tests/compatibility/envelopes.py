"""Calls of providers in their envelopes."""

from __future__ import annotations

import json
from typing import Any

ANTHROPIC = ("anthropic", "bedrock", "bedrock_agents")


def said(provider: str, **given: Any) -> dict[str, Any]:
    """A call of a provider's in its envelope: an action of OpenAI's, an input of Anthropic's, a function of Google's."""
    match provider:
        case "openai":
            call = {"type": "computer_call", "call_id": "c1", "status": "completed", "pending_safety_checks": []}
            return {**call, "actions": [given]}
        case "anthropic":
            return {"type": "tool_use", "id": "c1", "name": "computer", "input": given}
        case "bedrock":
            return {"toolUse": {"toolUseId": "c1", "name": "computer", "input": given}}
        case "google":
            return {"id": "c1", "name": given.pop("name"), "args": given}
    listed = [
        {"name": name, "type": kind, "value": value if isinstance(value, str) else json.dumps(value)}
        for name, value in given.items()
        for kind in ["string" if isinstance(value, str) else "array" if isinstance(value, list) else "number"]
    ]
    inside = {"actionGroup": "computer", "function": "computer", "parameters": listed}
    return {"functionInvocationInput": inside}
