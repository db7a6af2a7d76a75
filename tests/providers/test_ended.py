"""How commands ended: outcome by provider, as a table, and there and back."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from deskhand.machine.interface import CommandResult
from deskhand.providers import agent_framework as af
from deskhand.providers import anthropic, bedrock, openai
from deskhand.providers.bedrock import agents
from deskhand.providers.outcomes import outcome, tool_failed
from deskhand.providers.values import ShellAnswer
from providers.ended import BEGIN, CALL, COLUMNS, END, ROWS, answer_of, table
from providers.table import PAGE

ENCODERS = {
    "openai": openai.encode_shell,
    "anthropic": anthropic.encode_shell,
    "bedrock": bedrock.encode_shell,
    "agents": agents.encode_shell,
    "contents": lambda answer: af.encode_shell(answer).to_dict(),
    "package": af.encode_shell_content,
}


def test_the_page_has_the_table() -> None:
    printed = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert printed == table(), "write it anew: PYTHONPATH=tests python -m providers"


@pytest.mark.parametrize("name", ENCODERS)
def test_no_two_ends_read_alike(name: str) -> None:
    told = {title: ENCODERS[name](answer_of(title)) for title in ROWS}
    for one, other in itertools.combinations(ROWS, 2):
        assert told[one] != told[other], (one, other)


def test_one_rule_says_what_failed() -> None:
    assert {title: (outcome(answer_of(title)), tool_failed(answer_of(title))) for title in ROWS} == {
        "ended with 0": ("success", False),
        "ended with 3": ("error", False),
        "ended at its timeout": ("timeout", True),
        "was cancelled": ("cancelled", True),
        "was not run": ("error", True),
        "failed with an unknown status": ("error", True),
        "the first of two ended with 3": ("error", False),
        "the second of two timed out": ("timeout", True),
    }
    for title in ROWS:
        answer = answer_of(title)
        failed = tool_failed(answer)
        assert anthropic.encode_shell(answer).get("is_error", False) is failed
        assert bedrock.encode_shell(answer)["toolResult"]["status"] == ("error" if failed else "success")
        assert ("responseState" in agents.encode_shell(answer)["functionResult"]) is failed
        assert COLUMNS["Google"](answer) == ("`error`" if failed else "`output`")
        assert af.encode_shell(answer).outcome == outcome(answer)


# What others make, whose fields may say less than ours, or the contrary of one another.
MADE: dict[str, dict[str, Any]] = {
    "success": {"stdout": "out", "outcome": "success"},
    "success, 0": {"stdout": "out", "outcome": "success", "exit_code": 0},
    "error": {"stdout": "out", "stderr": "bad", "outcome": "error"},
    "error, silent": {"outcome": "error"},
    "error, 3": {"stdout": "out", "outcome": "error", "exit_code": 3},
    "error, 0": {"stdout": "out", "outcome": "error", "exit_code": 0},
    "success, 3": {"stdout": "out", "outcome": "success", "exit_code": 3},
    "timeout": {"stdout": "out", "outcome": "timeout"},
    "timeout, 124": {"stdout": "out", "outcome": "timeout", "exit_code": 124},
    "cancelled": {"stdout": "out", "outcome": "cancelled"},
    "cancelled, silent": {"outcome": "cancelled"},
    "cancelled, 0": {"stdout": "out", "outcome": "cancelled", "exit_code": 0},
    "cancelled, 130": {"stdout": "out", "outcome": "cancelled", "exit_code": 130},
}


@pytest.mark.parametrize("provider", af.PROVIDERS)
@pytest.mark.parametrize("title", MADE)
def test_the_outcome_of_a_content_goes_to_each_provider_and_back(provider: str, title: str) -> None:
    call = af.ShellCallContent(call_id="s1", commands=["run"])
    result = af.ShellResultContent(call_id="s1", **MADE[title])
    payload = af.shell_result_to(provider, result, call)
    meant = "error" if title == "success, 3" else title.partition(",")[0]
    back = af.shell_result_from(provider, payload, call)
    assert back.outcome == meant
    written = f"{back.stdout.text if back.stdout else ''}{back.stderr.text if back.stderr else ''}"
    for text in (MADE[title].get("stdout", ""), MADE[title].get("stderr", "")):
        assert text in written
    if meant == "error" and title.endswith("3"):
        assert back.exit_code == 3


@pytest.mark.parametrize("name", ENCODERS)
def test_what_a_session_lost_and_what_earlier_jobs_wrote_is_told(name: str) -> None:
    output = CommandResult("out", "", 0, restarted=True, background="from a job\n")
    payload = ENCODERS[name](ShellAnswer(call=CALL, outputs=(output,)))
    assert "restarted" in str(payload)
    assert "from a job" in str(payload)
    if name == "contents":
        assert af.decode_shell_result(payload, CALL).outputs == (output,)
