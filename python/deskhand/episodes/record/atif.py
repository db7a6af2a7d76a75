"""ATIF, the Agent Trajectory Interchange Format, version 1.8: an attempt as one JSON document.

It is specified by Harbor (`harbor.models.trajectories`): steps counted from 1, of a `user` (here the instruction, with the
first frame) and of an `agent`, each with its text, its tool calls, their results, and the usage.

This module owns the format. It has no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.observation import REMARKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.episodes.record.transcript_turns import Turn

VERSION = "ATIF-v1.8"

_KEPT = (
    "task",
    "variant",
    "seed",
    "repeat",
    "attempt",
    "valid",
    "success",
    "score",
    "cause",
    "detail",
    "reason",
    "level",
    "tags",
)


def trajectory(
    turns: Sequence[Turn],
    *,
    name: str,
    instruction: str,
    first: str | None,
    result: Mapping[str, Any],
    version: str,
    image: Callable[[str], str],
    stamp: Callable[[float], str],
) -> dict[str, Any]:
    """The document of an attempt.

    Args:
        turns: The agent's turns.
        name: The attempt's name, for people and references.
        instruction: The agent's instruction.
        first: The first frame's id.
        result: The result; may be empty.
        version: The version of this package.
        image: Returns the path of a frame's PNG, relative to the document, for the frame's id.
        stamp: Formats seconds since 1970 as ISO 8601.
    """
    shown: list[dict[str, Any]] = [{"type": "text", "text": instruction}]
    if first is not None:
        shown.append(_image(image(first)))
    steps = [{"step_id": 1, "source": "user", "message": shown if len(shown) > 1 else instruction}]
    steps += [_step(number, turn, image, stamp) for number, turn in enumerate(turns, 2)]
    tokens = result.get("tokens") or {}
    totals = {
        "total_prompt_tokens": tokens.get("input"),
        "total_completion_tokens": tokens.get("output"),
        "total_cost_usd": result.get("cost"),
        "total_steps": len(steps),
    }
    times = {"times": result["times"]} if "times" in result else {}
    return {
        "schema_version": VERSION,
        "session_id": name,
        "trajectory_id": name,
        "agent": {"name": str(result.get("agent") or "agent"), "version": f"deskhand {version}"},
        "steps": steps,
        "final_metrics": {key: value for key, value in totals.items() if value is not None}
        | ({"extra": times} if times else {}),
        "extra": {key: result[key] for key in _KEPT if key in result},
    }


def _step(number: int, turn: Turn, image: Callable[[str], str], stamp: Callable[[float], str]) -> dict[str, Any]:
    event = turn.event or {}
    step: dict[str, Any] = {
        "step_id": number,
        "timestamp": stamp(turn.wall),
        "source": "agent",
        "message": str(event.get("text", "")) if turn.kind == "answer" else turn.said,
    }
    if turn.kind == "answer" and turn.said:
        step["reasoning_content"] = turn.said
    calls = _calls(turn)
    if calls:
        step["tool_calls"] = calls
        step["observation"] = {"results": [_came_of(turn, calls[-1]["tool_call_id"], image)]}
    if turn.spent:
        used = {
            "prompt_tokens": sum(int(each.get("input", 0)) for each in turn.spent),
            "completion_tokens": sum(int(each.get("output", 0)) for each in turn.spent),
            "cost_usd": sum(float(each.get("cost", 0.0)) for each in turn.spent),
        }
        step |= {"metrics": used, "llm_call_count": len(turn.spent)}
    return step


def _calls(turn: Turn) -> list[dict[str, Any]]:
    event = turn.event or {}
    if turn.kind == "perform":
        name = str(event.get("id", f"turn-{turn.number}"))
        actions = event.get("actions") or [{"type": "wait_for_screen"}]
        return [
            _call(f"{name}.{number}" if len(actions) > 1 else name, **action)
            for number, action in enumerate(actions, 1)
        ]
    name = f"turn-{turn.number}"
    if turn.kind == "shell":
        return [_call(name, type="shell", command=event.get("command"))]
    if turn.kind == "start":
        return [_call(name, type="start", argv=event.get("argv"))]
    if turn.kind in {"read_file", "write_file"}:
        given = {key: event[key] for key in ("path", "text", "base64") if event.get(key) is not None}
        return [_call(name, type=turn.kind, **given)]
    return [_call(name, type="screenshot")] if turn.kind == "look" else []


def _call(name: str, /, *, type: str, **arguments: object) -> dict[str, Any]:
    return {"tool_call_id": name, "function_name": type, "arguments": arguments}


def _came_of(turn: Turn, call: str, image: Callable[[str], str]) -> dict[str, Any]:
    """The result of the last of a turn's calls: they were made together, and the screen was looked at once."""
    event = turn.event or {}
    texts = [turn.failure] if turn.failure else []
    if turn.kind == "shell":
        texts += [str(event[name]) for name in ("stdout", "stderr") if event.get(name)]
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if turn.frame is not None and turn.kind in {"perform", "look"}:
        parts.append(_image(image(turn.frame)))
    kept = ("settled", "reason", "rects", "busy", "cursor", "unknown", "exit_code", "outcome", "withheld", "seconds")
    extra = {name: event[name] for name in (*kept, *REMARKS) if event.get(name) is not None}
    came: dict[str, Any] = {"source_call_id": call, "content": parts or ""}
    return came | ({"extra": extra} if extra else {})


def _image(path: str) -> dict[str, Any]:
    return {"type": "image", "source": {"media_type": "image/png", "path": path}}
