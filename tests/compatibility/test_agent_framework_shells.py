"""Microsoft Agent Framework: what each provider calls the fields of its shell contents, as its design maps them."""

from __future__ import annotations

import json
from typing import Any

from compatibility.envelopes import ANTHROPIC, said
from compatibility.table import Raises, Row, each
from deskhand import ActionError
from deskhand.providers import agent_framework as af


def asked(provider: str, **given: Any) -> Any:
    """A call of a shell of Anthropic's kind, or a function of Google's."""
    payload = said(provider, **({"name": "run_shell"} if provider == "google" else {}), **given)
    return json.loads(json.dumps(payload).replace('"computer"', '"bash"'))


OPENAI_SHELL = {
    "type": "shell_call",
    "call_id": "c1",
    "status": "completed",
    "action": {"commands": ["ls", "pwd"], "timeout_ms": 500},
}
LS = af.ShellCallContent(call_id="c1", commands=["ls"])


def ran(provider: str, outcome: str, exit_code: int | None = None) -> str:
    result = af.ShellResultContent(call_id="c1", stdout="out", stderr="err", exit_code=exit_code, outcome=outcome)
    return json.dumps(af.shell_result_to(provider, result, LS))


def fails(provider: str, outcome: str, exit_code: int | None = None) -> bool:
    """Whether a result is marked as a failure, by the provider's own mark."""
    marks = {
        "anthropic": '"is_error": true',
        "bedrock": '"status": "error"',
        "bedrock_agents": '"responseState"',
        "google": '"error"',
    }
    return marks[provider] in ran(provider, outcome, exit_code)


SHELLS = [
    Row(
        "ShellCallContent.commands",
        "OpenAI's commands",
        lambda: af.shell_call_from("openai", OPENAI_SHELL).commands,
        ["ls", "pwd"],
    ),
    Row(
        "ShellCallContent.call_id", "OpenAI's call_id", lambda: af.shell_call_from("openai", OPENAI_SHELL).call_id, "c1"
    ),
    Row(
        "ShellCallContent.additional_properties",
        "OpenAI's timeout_ms",
        lambda: af.shell_call_from("openai", OPENAI_SHELL).additional_properties["timeout_ms"],
        500,
    ),
    Row(
        "ShellCallContent",
        "goes back to OpenAI",
        lambda: af.shell_call_to("openai", af.shell_call_from("openai", OPENAI_SHELL)),
        OPENAI_SHELL,
    ),
    *(
        Row(
            "ShellCallContent.commands",
            f"the command of {provider} in a list",
            lambda provider=provider: af.shell_call_from(provider, asked(provider, command="ls")).commands,
            ["ls"],
        )
        for provider in (*ANTHROPIC, "google")
    ),
    *(
        Row(
            "ShellCallContent",
            f"goes back to {provider}",
            lambda provider=provider: af.shell_call_to(
                provider, af.shell_call_from(provider, asked(provider, command="ls"))
            ),
            asked(provider, command="ls"),
        )
        for provider in (*ANTHROPIC, "google")
    ),
    *(
        Row(
            "ShellCallContent.commands",
            f"joined for {provider}",
            lambda provider=provider: (
                "cd /tmp\\nls"
                in json.dumps(af.shell_call_to(provider, af.ShellCallContent(call_id="c1", commands=["cd /tmp", "ls"])))
            ),
        )
        for provider in (*ANTHROPIC, "google")
    ),
    Row(
        "ShellCallContent.action",
        "Anthropic's restart",
        lambda: af.shell_call_from("anthropic", asked("anthropic", restart=True)).action,
        af.ShellAction.RESTART,
    ),
    Row(
        "ShellCallContent.action",
        "restarts Anthropic's",
        lambda: af.shell_call_to("anthropic", af.ShellCallContent(call_id="c1", action="restart"))["input"],
        {"restart": True},
    ),
    *(
        Row(
            "ShellCallContent.action",
            f"{provider} has no restart",
            lambda provider=provider: af.shell_call_to(provider, af.ShellCallContent(call_id="c1", action="restart")),
            Raises(ActionError, "restart"),
        )
        for provider in ("openai", "google")
    ),
    Row(
        "ShellResultContent.call_id",
        "OpenAI's call_id",
        lambda: json.loads(ran("openai", "success", 0))["call_id"],
        "c1",
    ),
    Row(
        "ShellResultContent.call_id",
        "Anthropic's tool_use_id",
        lambda: json.loads(ran("anthropic", "success", 0))["tool_use_id"],
        "c1",
    ),
    Row(
        "ShellResultContent.stdout",
        "OpenAI's stdout",
        lambda: json.loads(ran("openai", "success", 0))["output"][0]["stdout"],
        "out",
    ),
    Row(
        "ShellResultContent.stderr",
        "OpenAI's stderr",
        lambda: json.loads(ran("openai", "success", 0))["output"][0]["stderr"],
        "err",
    ),
    *(
        Row(
            "ShellResultContent.stdout",
            f"both in one text, {provider}",
            lambda provider=provider: "out\\nerr" in ran(provider, "success", 0),
        )
        for provider in (*ANTHROPIC, "google")
    ),
    Row(
        "ShellResultContent.exit_code",
        "in OpenAI's outcome",
        lambda: json.loads(ran("openai", "error", 3))["output"][0]["outcome"],
        {"type": "exit", "exit_code": 3},
    ),
    Row(
        "ShellResultContent.outcome",
        "OpenAI's timeout",
        lambda: json.loads(ran("openai", "timeout"))["output"][0]["outcome"]["type"],
        "timeout",
    ),
    *(
        Row(
            "ShellResultContent.exit_code",
            f"the model of {provider} is told",
            lambda provider=provider: "3" in ran(provider, "error", 3),
        )
        for provider in af.PROVIDERS
    ),
    *(
        Row(
            "ShellResultContent.outcome",
            f"success with exit code {code}, {provider}",
            lambda provider=provider, code=code: fails(provider, "success", code),
            expected=False,
        )
        for provider in (*ANTHROPIC, "google")
        for code in (0, None)
    ),
    *(
        Row(
            "ShellResultContent.outcome",
            f"{outcome}, {provider}",
            lambda provider=provider, outcome=outcome: fails(provider, outcome),
        )
        for provider in (*ANTHROPIC, "google")
        for outcome in ("error", "timeout", "cancelled")
    ),
]


@each(SHELLS)
def test_fields_are_mapped_as_designed(row: Row) -> None:
    row.check()
