"""The same click and the same command as each provider's payload, for the tests of Agent Framework's contents."""

from __future__ import annotations

from typing import Any

OPENAI: dict[str, Any] = {
    "type": "computer_call", "id": "cu", "call_id": "o1", "status": "completed",
    "pending_safety_checks": [{"id": "s", "message": "sure?"}],
    "actions": [
        {"type": "click", "button": "wheel", "x": 1, "y": 2, "keys": ["ctrl"], "new": 1},
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]},
        {"type": "scroll", "x": 1, "y": 2, "scroll_x": 30, "scroll_y": -40},
        {"type": "keypress", "keys": ["ctrl", "s"]},
    ],
}  # fmt: skip
AGENTS = {
    "functionInvocationInput": {
        "actionGroup": "computer",
        "function": "computer",
        "parameters": [
            {"name": "action", "type": "string", "value": "left_click"},
            {"name": "coordinate", "type": "array", "value": "[7, 8]"},
        ],
    }
}

# One click, as each provider says it.
CLICKS: dict[str, dict[str, Any]] = {
    "openai": {**OPENAI, "pending_safety_checks": [], "actions": [{"type": "click", "button": "left", "x": 7, "y": 8}]},
    "anthropic": {
        "type": "tool_use", "id": "a1", "name": "computer", "input": {"action": "left_click", "coordinate": [7, 8]},
    },
    "google": {"name": "click", "args": {"x": 5, "y": 10}, "id": "g1"},
    "bedrock": {
        "toolUse": {"toolUseId": "b1", "name": "computer", "input": {"action": "left_click", "coordinate": [7, 8]}}
    },
    "bedrock_agents": AGENTS,
}  # fmt: skip

# One command, as each provider says it.
SHELLS: dict[str, dict[str, Any]] = {
    "openai": {
        "type": "shell_call", "id": "sh", "call_id": "s1", "status": "completed",
        "action": {"commands": ["ls", "pwd"], "timeout_ms": 1500},
    },
    "anthropic": {"type": "tool_use", "id": "s1", "name": "bash", "input": {"command": "ls"}, "caller": {"type": "direct"}},
    "google": {"id": "s1", "name": "my_shell", "args": {"command": "ls"}},
    "bedrock": {"toolUse": {"toolUseId": "s1", "name": "bash", "input": {"command": "ls"}}},
    "bedrock_agents": {
        "functionInvocationInput": {
            "actionGroup": "bash", "function": "bash", "parameters": [{"name": "command", "type": "string", "value": "ls"}],
        }
    },
}  # fmt: skip
