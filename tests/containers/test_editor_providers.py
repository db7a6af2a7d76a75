"""The text editor as each provider has it, over the files of one container: what is declared, asked, done and answered."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import Agent, Content
from anthropic.tools import ToolError

from deskhand import AsyncDesktop, AuditLog, ClassPolicy, Desktop, Guard
from deskhand.policy.rules import ActionClass
from deskhand.providers import agent_framework, anthropic, bedrock
from deskhand.providers.editors import TextEditor
from providers.agent_framework_helpers import Scripted
from providers.anthropic_helpers import Api, accepted
from providers.bedrock_helpers import Service, control, converse_answer, function, tool_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.policy.rules import Context

HERE = "/home/user/provided"
FILE = f"{HERE}/primes.py"
OLD, NEW = "str_replace_editor", "str_replace_based_edit_tool"

# What a model asks for, one after the other, and what it reads then; of those that fail a part.
ASKED: list[tuple[dict[str, Any], bool, str]] = [
    ({"command": "view", "path": FILE}, False, f"there is no '{FILE}'"),
    ({"command": "create", "path": FILE, "file_text": "a = 1\nb = 2\n"}, True, f"File created successfully at: {FILE}"),
    ({"command": "create", "path": FILE, "file_text": "x"}, False, "File exists"),
    ({"command": "view", "path": FILE, "view_range": [2, -1]}, True, "2: b = 2"),
    ({"command": "view", "path": FILE, "view_range": [3, 4]}, False, "view_range [3, 4] does not fit the file: it has 2 lines"),
    (
        {"command": "str_replace", "path": FILE, "old_str": "b = 2", "new_str": "b = 3"},
        True,
        f"Successfully replaced text at exactly one location in {FILE}. This is around it now:\n1: a = 1\n2: b = 3",
    ),
    ({"command": "str_replace", "path": FILE, "old_str": " = "}, False, "2 matches for old_str were found"),
    ({"command": "str_replace", "path": FILE, "old_str": "c"}, False, "no match for old_str was found"),
    ({"command": "str_replace", "path": FILE, "old_str": ""}, False, "old_str is empty"),
    (
        {"command": "insert", "path": FILE, "insert_line": 2, "insert_text": "c = 4"},
        True,
        f"Successfully inserted 1 line after line 2 of {FILE}. This is around it now:\n1: a = 1\n2: b = 3\n3: c = 4",
    ),
    ({"command": "insert", "path": FILE, "insert_line": 9, "new_str": "x"}, False, "insert_line 9 is not a line"),
    (
        {"command": "view", "path": HERE},
        True,
        f"The files and directories up to 2 levels deep in {HERE}, without hidden ones:\nprimes.py",
    ),
    ({"command": "view", "path": "primes.py"}, False, "in the home directory it is /home/user/primes.py"),
    ({"command": "view", "path": FILE, "old_str": "a"}, False, "view takes no old_str"),
    ({"command": "create", "path": FILE}, False, "create: file_text missing"),
    ({"command": "view"}, False, "view: path missing"),
    ({"command": "delete", "path": FILE}, False, "use one of view, create"),
]  # fmt: skip
LEFT = "a = 1\nb = 3\nc = 4\n"
UNDO: dict[str, Any] = {"command": "undo_edit", "path": FILE}


@pytest.fixture
def machine(desktop: Desktop) -> Iterator[Desktop]:
    yield desktop
    desktop.machine.run(f"rm -rf {HERE}")


def check(told: list[tuple[bool, str]], asked: list[tuple[dict[str, Any], bool, str]] = ASKED) -> None:
    for (worked, text), (given, works, words) in zip(told, asked, strict=True):
        assert worked is works, given
        assert text == words if works else words in text, given


def block(given: dict[str, Any], number: int, name: str = NEW) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


def of_result(result: dict[str, Any]) -> tuple[bool, str]:
    (text,) = accepted(result)["content"]
    return not result.get("is_error", False), text["text"]


@pytest.mark.parametrize("version", ["text_editor_20250124", anthropic.LATEST_EDITOR])
def test_in_the_sdks_loop(machine: Desktop, version: str) -> None:
    """Its own types judge what is declared and answered; the two older versions take edits back."""
    name = anthropic.EDITORS[version]
    undo = (UNDO, name == OLD, f"The last edit of {FILE} was undone." if name == OLD else "use one of view, create")
    asked = [*ASKED, undo]
    api = Api(*([block(given, number, name)] for number, (given, _, _) in enumerate(asked)))
    tool = anthropic.editor_tool(machine, version=version, max_characters=1000)
    api.client().beta.messages.tool_runner(
        model="claude-opus-5-5", max_tokens=100, tools=[tool], messages=[{"role": "user", "content": "Do it."}]
    ).until_done()
    check([of_result(result) for (result,) in api.results], asked)
    declared = {"type": version, "name": name}
    told = {"max_characters": 1000} if version == anthropic.LATEST_EDITOR else {}
    assert api.requests[0]["tools"] == [{**declared, **told}]
    left = LEFT.removesuffix("c = 4\n") if name == OLD else LEFT
    assert machine.machine.read_file(FILE).decode() == left


@pytest.mark.soak
def test_for_coroutines_and_in_a_loop_of_ones_own(machine: Desktop) -> None:
    tool = anthropic.editor_tool(AsyncDesktop(machine), is_async=True)

    async def work() -> list[tuple[bool, str]]:
        told = []
        for given, _, _ in ASKED[:5]:
            try:
                (text,) = await tool.call(given)  # type: ignore[misc]
                told.append((True, text["text"]))
            except ToolError as error:
                told.append((False, error.content[0]["text"]))  # type: ignore[index]
        return told

    check(asyncio.run(work()), ASKED[:5])
    machine.machine.run(f"rm -r {HERE}")
    message = [block(given, number) for number, (given, _, _) in enumerate(ASKED)]
    computer = {"type": "tool_use", "id": "c", "name": "computer", "input": {"action": "wait", "duration": 0}}
    results = anthropic.respond(machine, [computer, *message], editor=TextEditor(machine))
    assert [result["tool_use_id"] for result in results] == ["c", *(f"toolu_{number}" for number in range(len(ASKED)))]
    check([of_result(result) for result in results[1:]])
    machine.machine.run(f"rm -r {HERE}")
    results = asyncio.run(anthropic.respond_async(machine, message[:3], editor=TextEditor(machine)))
    check([of_result(result) for result in results], ASKED[:3])
    assert anthropic.respond(machine, message) == [], "where there is no editor, it is the caller's to answer"
    assert of_result(anthropic.run_editor(None, message[0])) == (
        False,
        "this desktop does not support the action 'view': it has no text editor",
    )


@pytest.mark.soak
def test_through_converse(machine: Desktop) -> None:
    asked = [*ASKED, (UNDO, True, f"The last edit of {FILE} was undone.")]
    blocks = [tool_use(f"t{number}", OLD, **given) for number, (given, _, _) in enumerate(asked)]
    service = Service("bedrock-runtime", converse_answer(*blocks), converse_answer({"text": "done"}))
    declared = bedrock.declare(machine, editor="text_editor_20250124")
    assert declared["additionalModelRequestFields"]["tools"][1] == {"type": "text_editor_20250124", "name": OLD}
    messages: list[Any] = [{"role": "user", "content": [{"text": "Do it."}]}]
    answer = service.client.converse(modelId="m", messages=messages, **declared)
    reply = bedrock.respond(machine, answer, editor=TextEditor(machine))
    messages += [answer["output"]["message"], reply]
    service.client.converse(modelId="m", messages=messages, **declared)
    results = [each["toolResult"] for each in reply["content"]]
    check([(each["status"] == "success", each["content"][0]["text"]) for each in results], asked)
    assert bedrock.respond(machine, answer) == {"role": "user", "content": []}
    one = bedrock.run(machine, tool_use("x", OLD, command="fly"), editor=TextEditor(machine))
    assert one["toolResult"]["status"] == "error"


def test_through_an_agents_control(machine: Desktop) -> None:
    """All values are strings, and all of an event's inputs are answered."""
    editor = TextEditor(machine)
    asked = [*ASKED, (UNDO, True, f"The last edit of {FILE} was undone.")]
    service = Service("bedrock-agent-runtime")
    told = []
    for given, _, _ in asked:
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
        state = asyncio.run(bedrock.respond_async(machine, control(function(OLD, **texts)), editor=editor))
        service.check("InvokeAgent", "sessionState", state)
        (result,) = (each["functionResult"] for each in state["returnControlInvocationResults"])
        assert (result["actionGroup"], result["function"]) == ("desk", OLD)
        told.append(("responseState" not in result, result["responseBody"]["TEXT"]["body"]))
    check(told, asked)
    groups = bedrock.declare_agent(machine, editor="text_editor_20250124")
    service.check("InvokeInlineAgent", "actionGroups", groups)
    assert groups[1]["parentActionGroupSignature"] == "ANTHROPIC.TextEditor"
    (refused,) = bedrock.respond(
        machine, control(function(OLD, confirm="USER_CONFIRMATION", command="view", path=FILE)), editor=editor
    )["returnControlInvocationResults"]
    assert refused["functionResult"]["confirmationState"] == "DENY"


def test_as_an_agents_function(machine: Desktop) -> None:
    asked = [*ASKED, (UNDO, True, f"The last edit of {FILE} was undone.")]
    # What its schema does not admit, the framework refuses itself.
    given = [each[0] for each in asked]
    admitted = [
        each["command"] != "delete" and "path" in each and ("new_str" not in each or each["command"] == "str_replace")
        for each in given
    ]
    asked = [each for each, admits in zip(asked, admitted, strict=True) if admits]
    calls = [
        [Content.from_function_call(call_id=f"f{number}", name=NEW, arguments=given)]
        for number, (given, _, _) in enumerate(asked)
    ]
    tool = agent_framework.editor_tool(TextEditor(machine), approval_mode="never_require")
    client = Scripted(*calls, [Content.from_text("All done.")])
    said = asyncio.run(Agent(client=client, tools=[tool]).run("Do it.")).text
    assert said == "All done."
    texts = [
        str(content.result)
        for message in client.seen[-1]
        for content in message.contents
        if content.type == "function_result"
    ]
    check([(not text.startswith("Error: "), text) for text in texts], asked)
    assert agent_framework.editor_tool(machine).approval_mode == "always_require"


# --- the policy ---

EDITS = [
    {"command": "view", "path": HERE},
    {"command": "create", "path": f"{HERE}/new", "file_text": "x"},
    {"command": "str_replace", "path": FILE, "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": FILE, "insert_line": 0, "insert_text": "x"},
    UNDO,
]
PROVIDERS: dict[str, Callable[[Desktop, TextEditor, dict[str, Any], int], str]] = {
    "anthropic": lambda desktop, editor, given, number: str(
        anthropic.respond(desktop, [block(given, number, OLD)], editor=editor)
    ),
    "bedrock": lambda desktop, editor, given, number: str(
        bedrock.run(desktop, tool_use(f"toolu_{number}", OLD, **given), editor=editor)
    ),
    "agent_framework": lambda _, editor, given, __: str(
        asyncio.run(agent_framework.editor_tool(editor).func(**given))  # type: ignore[misc] # it has one
    ),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_whose_edit_it_is_the_policy_and_its_log_are_told(machine: Desktop, tmp_path: Path, provider: str) -> None:
    """A policy that asks is asked once to read and once to write; one that may not be written to leaves all as it is."""
    machine.machine.write_file(FILE, "a\n")
    asked: list[tuple[str, str, str]] = []

    def ask(action: Any, context: Context) -> bool:
        asked.append((context.provider, action.type, action.target))
        return action.type != "write_file"

    log = tmp_path / "audit.jsonl"
    judged = machine.also(Guard(ask=ask, audit=AuditLog(log), limits=None))
    editor = TextEditor(judged)
    for number, given in enumerate(EDITS):
        told = PROVIDERS[provider](judged, editor, given, number)
        assert ("denies" in told or "no edit of" in told) is (number > 0), told
    wanted = [
        ("read_file", HERE),
        ("write_file", f"{HERE}/new"),
        *(("read_file", FILE), ("write_file", FILE)) * 2,
    ]
    assert asked == [(provider, *each) for each in wanted]
    assert machine.machine.run(f"cd {HERE}; ls; cat *").stdout == "primes.py\na\n"
    noted = [line for line in map(json.loads, log.read_text().splitlines()) if "action" in line]
    assert {(line["provider"], line["action"]["type"], line["action"]["target"]) for line in noted} == {
        (provider, *each) for each in wanted
    }
    if provider != "agent_framework":
        assert {line["call_id"] for line in noted} == {"toolu_0", "toolu_1", "toolu_2", "toolu_3"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_policy_that_denies_everything_keeps_it_from_any_effect(machine: Desktop, provider: str) -> None:
    machine.machine.write_file(FILE, "a\n")
    editor = TextEditor(machine.also(Guard(policy=ClassPolicy(allow=(), deny=ActionClass))))
    for number, given in enumerate(EDITS[:-1]):
        told = PROVIDERS[provider](machine, editor, given, number)
        assert "denies" in told
        assert "primes.py\\n" not in told
    assert machine.machine.run(f"cd {HERE}; ls; cat *").stdout == "primes.py\na\n"
