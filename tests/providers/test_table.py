"""The documents print what each provider can say, and the table is made of payloads that were decoded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand.errors import UnsupportedAction
from deskhand.execution.tool_calls import computer_use_action
from deskhand.providers import agent_framework, bedrock, langchain, mcp, openai
from deskhand.providers.bedrock import agents
from deskhand.providers.openai.wire import PREVIEW
from deskhand.providers.values import ProviderCall
from providers.strategies import EXAMPLES, VIEWPORT
from providers.table import COLUMNS, ROWS, printed, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.actions import Action


def test_the_page_has_the_table() -> None:
    assert printed() == table(), "write it anew: PYTHONPATH=tests python -m providers"


def _said(encode: Callable[[ProviderCall], Any], action: Action, name: str | None = None) -> Any:
    try:
        return encode(ProviderCall(steps=(action,), viewport=VIEWPORT, id="call_1", name=name))
    except UnsupportedAction:
        return None


@pytest.mark.parametrize("title", ROWS)
def test_who_has_no_column_says_what_another_says(title: str) -> None:
    action = ROWS[title]
    ours, mcps = _said(langchain.encode_call, action), _said(mcp.encode_call, action)
    assert (ours["name"], ours["args"]) == (mcps["name"], mcps["arguments"])
    batch, package = _said(openai.encode_call, action), _said(agent_framework.encode_call_content, action)
    assert (batch and batch["actions"]) == (package and package["actions"])
    preview = _said(openai.encode_call, action, PREVIEW)
    assert (batch and batch["actions"]) == (preview and [preview["action"]])
    agent, converse = _said(agents.encode_call, action), _said(bedrock.encode_call, action)
    assert (agent is None) == (converse is None)
    if agent is not None:
        values = {given["name"]: given["value"] for given in agent["functionInvocationInput"]["parameters"]}
        assert values["action"] == converse["toolUse"]["input"]["action"]
    if title in {each.type for each in EXAMPLES}:
        assert computer_use_action(action).type == title


def test_every_normalized_action_and_every_provider_is_in_it() -> None:
    assert len(EXAMPLES) == 17
    assert {action.type for action in EXAMPLES} <= set(ROWS)
    lines = table().split("\n")
    assert all(line.count("|") == len(COLUMNS) + 2 for line in lines[: len(ROWS) + 2])
