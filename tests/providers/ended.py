"""The table of how commands ended, for each provider. `PYTHONPATH=tests python -m providers` writes it to docs/providers.md.

Every cell is read from the payload that the provider is answered with.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deskhand.machine.interface import CommandResult
from deskhand.providers import agent_framework, anthropic, bedrock, openai
from deskhand.providers.bedrock import agents
from deskhand.providers.values import ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BEGIN, END = "<!-- outcomes -->\n", "<!-- /outcomes -->\n"

CALL = ShellCall(commands=("run",), id="s1")
LOCAL = ShellCall(commands=("run",), id="s1", extra={"type": "local_shell_call"})

ROWS: Mapping[str, dict[str, Any]] = {
    "ended with 0": {"outputs": (CommandResult("out", "", 0),)},
    "ended with 3": {"outputs": (CommandResult("out", "", 3, "error"),)},
    "ended at its timeout": {"outputs": (CommandResult("out", "", None, "timeout"),)},
    "was cancelled": {"outputs": (CommandResult("out", "", None, "cancelled"),)},
    "was not run": {"error": "there is no shell"},
    "failed with an unknown status": {"outputs": (CommandResult("out", "", None, "error"),)},
    "the first of two ended with 3": {
        "outputs": (CommandResult("out", "", 3, "error"), CommandResult("next", "", 0)),
    },
    "the second of two timed out": {
        "outputs": (CommandResult("out", "", 0), CommandResult("next", "", None, "timeout")),
    },
}


def _entries(entries: list[dict[str, Any]]) -> str:
    said = [entry["outcome"] for entry in entries]
    return ", ".join("timeout" if how["type"] == "timeout" else f"exit {how['exit_code']}" for how in said)


def _google(answer: ShellAnswer) -> str:
    content = agent_framework.encode_shell_call(answer.call)
    payload = agent_framework.shell_result_to("google", agent_framework.encode_shell(answer), content)
    (key,) = payload["response"]
    return f"`{key}`"


def _design(answer: ShellAnswer) -> str:
    made = agent_framework.encode_shell(answer)
    return f"{made.outcome.value}{'' if made.exit_code is None else f', {made.exit_code}'}"  # type: ignore[union-attr] # it is one


def _package(answer: ShellAnswer) -> str:
    outputs = agent_framework.encode_shell_content(answer)["outputs"]
    return ", ".join("timed_out" if output.get("timed_out") else f"exit {output['exit_code']}" for output in outputs)


def _agent(answer: ShellAnswer) -> str:
    return agents.encode_shell(answer)["functionResult"].get("responseState", "–")


COLUMNS: Mapping[str, Callable[[ShellAnswer], str]] = {
    "OpenAI `shell`": lambda answer: _entries(openai.encode_shell(answer)["output"]),
    "`local_shell`": lambda answer: _entries(
        [json.loads(openai.encode_shell(ShellAnswer(call=LOCAL, outputs=answer.outputs, error=answer.error))["output"])]
    ),
    "Anthropic": lambda answer: "`is_error`" if anthropic.encode_shell(answer).get("is_error") else "–",
    "Bedrock Converse": lambda answer: bedrock.encode_shell(answer)["toolResult"]["status"],
    "Bedrock agents": _agent,
    "Google": _google,
    "Agent Framework": _design,
    "its package": _package,
}


def answer_of(title: str) -> ShellAnswer:
    """The answer of a row."""
    return ShellAnswer(call=CALL, **ROWS[title])


def words_of(title: str) -> str:
    """What Anthropic, Amazon and Google are told in words, besides what was written."""
    text: str = anthropic.encode_shell(answer_of(title))["content"][0]["text"]
    return " ".join(line for line in text.split("\n") if line not in ("out", "next"))


def table() -> str:
    """Markdown."""
    rows = [["a command", *COLUMNS, "in words"], ["---"] * (len(COLUMNS) + 2)]
    rows += [[title, *(cell(answer_of(title)) for cell in COLUMNS.values()), words_of(title)] for title in ROWS]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
