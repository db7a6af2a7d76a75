"""Carries out the calls of Bedrock, from any of its three interfaces.

This module owns the order: decode, carry out, encode; and the rule that nothing of a turn is done after a failure. It does
not import boto3 and has no field of the wire format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError, shown
from deskhand.providers.anthropic.loop import SHELL_TIMEOUT, SIZE, carry_out
from deskhand.providers.anthropic.wire import NOT_EXECUTED
from deskhand.providers.bedrock import agentcore, agents, converse
from deskhand.providers.editors import carry_out_edit
from deskhand.providers.payload import expect_list, expect_object
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual
from deskhand.providers.shell_calls import carry_out_shell, with_model_session
from deskhand.providers.values import EditAnswer, ProviderCall, Result, ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import Payload

PROVIDER = "bedrock"
"""The name of these calls' provider in policies and audit logs."""

_NO_SUCH_TOOL = "there is no such tool here: use the computer"


@dataclass(frozen=True, slots=True)
class _Tools:
    """The tools besides the computer, and the version of the computer that was declared."""

    version: str | None
    shell: AnyShell | None
    editor: TextEditor | None
    elements: bool = False


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    version: str | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Carry out one call.

    | payload | answer |
    |---|---|
    | a `toolUse` block | a `toolResult` block |
    | an input of a `returnControl` event | a result for it |
    | a request of `invoke_browser`, or its action | the response |

    Args:
        desktop: The desktop, or a model session on it.
        payload: One of the above; `respond` takes a whole response.
        version: The computer tool that was declared; see `VERSION`.
        shell: Runs the commands of the `bash` tool, if given: a session, or a desktop with a machine of its own.
        editor: Carries out the text editor's calls, if given; use the same one for a whole conversation.
        options: For a `ModelSession`, if none is given: `size` (by default Anthropic's; `tier(model)` is the largest for a
            model), `settle`, `policy`, `ask`.

    Returns:
        The answer. If the call cannot be read, is not allowed or fails, the reason is in it. An `invoke_browser` with an
        unreadable action is answered as a failed screenshot.

    Raises:
        ActionError: It is none of these, or could not be answered.
        DesktopLost: The desktop is gone.
    """
    model_session = _model_session(desktop, **options)
    given = expect_object("what comes from Bedrock", payload)
    tools = _Tools(version, shell, editor)
    if {"toolUse", "toolUseId"} & given.keys():
        return _tool(model_session, converse.tool_of(given), tools)
    if {"functionInvocationInput", "apiInvocationInput"} & given.keys():
        return _input(model_session, given, tools)
    if {"action", *agentcore.KINDS} & given.keys():
        return _browser(model_session, given)
    raise ActionError(f"this is not a call of Bedrock (pass a whole response to respond): {shown(sorted(given))}")


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    version: str | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Like `run`; cancelling stops it at its next safe point."""
    there = async_model_session(desktop, **options)
    return await with_model_session(
        there, shell, lambda model_session: run(model_session, payload, version=version, shell=shell, editor=editor)
    )


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    version: str | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Carry out the calls of a whole response, in order, and none of the computer after a failure.

    | response | answer |
    |---|---|
    | a response of `converse`, or its message | the user's next message, a `toolResult` for each call |
    | a `returnControl` event of an agent | its `sessionState`, or `inlineSessionState` |

    Calls of other tools than the computer, the shell and the text editor are left out of a message's answer: answer them
    yourself. In a `returnControl` all inputs must be answered at once, so there the answer to such a call is that there is no
    such tool; `run` carries out single inputs.

    Args:
        desktop: As for `run`.
        response: One of the above.
        version: As for `run`.
        shell: As for `run`.
        editor: As for `run`.
        elements: Whether calls of the tool `elements` in a message are answered too (`declare(..., elements=True)`).
        options: As for `run`.

    Returns:
        The answer. If a call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        ActionError: It is none of these, or could not be answered.
        DesktopLost: The desktop is gone.
    """
    model_session = _model_session(desktop, **options)
    given = expect_object("what comes from Bedrock", response)
    tools = _Tools(version, shell, editor, elements)
    if {"output", "content"} & given.keys():
        return _message(model_session, given, tools)
    if {"returnControl", "invocationInputs"} & given.keys():
        return _control(model_session, given, tools)
    raise ActionError(f"this is not a response of Bedrock (pass a single call to run): {shown(sorted(given))}")


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    version: str | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Like `respond`; cancelling stops it at its next safe point."""
    there = async_model_session(desktop, **options)
    return await with_model_session(
        there,
        shell,
        lambda model_session: respond(
            model_session, response, version=version, shell=shell, editor=editor, elements=elements
        ),
    )


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """Return the session itself, or make one on a desktop, with Anthropic's sizes unless the options say otherwise."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def _model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


# --- Converse ---


def _message(model_session: ModelSession, given: Mapping[str, Any], tools: _Tools) -> dict[str, Any]:
    if "output" in given:
        given = expect_object("a message", expect_object("an output", given["output"]).get("message"))
    asked = []
    for block in expect_list("a message's content", given.get("content")):
        if "toolUse" in expect_object("a block of a message", block):
            tool = converse.tool_of(block)
            if converse.is_computer(tool) or _is_other(tool, tools):
                converse.block_id(tool)  # nothing is done unless all can be answered
                asked.append(tool)
    answers: list[dict[str, Any]] = []
    failed = False
    for tool in asked:
        if failed and converse.is_computer(tool):
            answers.append(
                converse.encode(_refused(model_session, NOT_EXECUTED, tools, number=converse.block_id(tool)))
            )
            continue
        answers.append(_tool(model_session, tool, tools))
        failed = failed or (converse.is_computer(tool) and answers[-1]["toolResult"]["status"] == "error")
    return {"role": "user", "content": answers}


def _is_other(tool: Mapping[str, Any], tools: _Tools) -> bool:
    return (
        (tools.shell is not None and converse.is_shell(tool))
        or (tools.editor is not None and converse.is_edit(tool))
        or (tools.elements and converse.is_elements(tool))
    )


def _tool(model_session: ModelSession, tool: Mapping[str, Any], tools: _Tools) -> dict[str, Any]:
    number = converse.block_id(tool)
    if tools.shell is not None and converse.is_shell(tool):
        return _shell(tools.shell, tool, number)
    if tools.editor is not None and converse.is_edit(tool):
        return _edit(tools.editor, tool, number)
    if tools.elements and converse.is_elements(tool):
        return converse.encode_elements(model_session.read_elements(tool.get("input"), id=number))
    if not converse.is_computer(tool):
        return converse.encode(_refused(model_session, _NO_SUCH_TOOL, tools, number=number))
    try:
        asked = converse.decode(tool, model_session.viewport, version=tools.version)
    except ActionError as error:
        return converse.encode(_refused(model_session, str(error), tools, number=number))
    return converse.encode(carry_out(model_session, asked, pictures=True))


def _shell(shell: AnyShell, tool: Mapping[str, Any], number: str) -> dict[str, Any]:
    try:
        call = converse.decode_shell(tool)
    except ActionError as error:
        return converse.encode_shell(ShellAnswer(call=ShellCall(commands=(), id=number), error=str(error)))
    return converse.encode_shell(carry_out_shell(shell, call, provider=PROVIDER, timeout=SHELL_TIMEOUT))


def _edit(editor: TextEditor, tool: Mapping[str, Any], number: str) -> dict[str, Any]:
    try:
        call = converse.decode_editor(tool)
    except ActionError as error:
        return converse.encode_editor(EditAnswer(text=str(error), id=number, failed=True))
    return converse.encode_editor(carry_out_edit(editor, call, provider=PROVIDER))


def _refused(model_session: ModelSession, why: str, tools: _Tools, *, number: str | None = None) -> Result:
    name = converse.single(tools.version).type
    return Result(call=ProviderCall(steps=(), viewport=model_session.viewport, id=number, name=name), error=why)


# --- agents ---


def _control(model_session: ModelSession, given: Mapping[str, Any], tools: _Tools) -> dict[str, Any]:
    number, members = agents.inputs_of(given)
    refusals = [
        agents.not_ours(member, NOT_EXECUTED) for member in members
    ]  # nothing is done unless all can be answered
    answers: list[dict[str, Any]] = []
    failed = False
    for member, refusal in zip(members, refusals, strict=True):
        ours = "functionInvocationInput" in member and agents.is_computer(agents.function_of(member))
        if failed and ours:
            answers.append(refusal)
            continue
        answers.append(_input(model_session, member, tools))
        failed = failed or (ours and _failed(answers[-1]["functionResult"]))
    return agents.reply(number, answers)


def _failed(answer: Mapping[str, Any]) -> bool:
    return "responseState" in answer or answer.get("confirmationState") == "DENY"


def _input(model_session: ModelSession, member: Mapping[str, Any], tools: _Tools) -> dict[str, Any]:
    model_session.refuse_words("Bedrock's agents")
    if "functionInvocationInput" not in member:
        return agents.not_ours(member, _NO_SUCH_TOOL)
    function = agents.function_of(member)
    try:
        if agents.is_computer(function):
            asked = agents.decode(member, model_session.viewport, version=tools.version)
        elif tools.shell is not None and agents.is_shell(function):
            return agents.encode_shell(
                carry_out_shell(tools.shell, agents.decode_shell(member), provider=PROVIDER, timeout=SHELL_TIMEOUT)
            )
        elif tools.editor is not None and agents.is_edit(function):
            edit = agents.decode_editor(member)
            return agents.encode_editor(carry_out_edit(tools.editor, edit, provider=PROVIDER))
        else:
            return agents.not_ours(member, _NO_SUCH_TOOL)
    except ActionError as error:
        return agents.not_ours(member, str(error))
    return agents.encode(carry_out(model_session, asked, pictures=True))


# --- AgentCore ---


def _browser(model_session: ModelSession, request: Mapping[str, Any]) -> dict[str, Any]:
    model_session.refuse_words("AgentCore")
    try:
        call = agentcore.decode(request, model_session.viewport)
    except ActionError as error:
        session = request.get("sessionId")
        number = session if isinstance(session, str) else None
        asked = ProviderCall(steps=(), viewport=model_session.viewport, id=number, name=agentcore.kind_of(request))
        return agentcore.encode(Result(call=asked, error=str(error)))
    return agentcore.encode(carry_out(model_session, call, pictures=False))
