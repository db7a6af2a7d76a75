"""Carries out Claude's calls, one block or a whole answer at a time, for a loop of your own.

This module owns the order: decode, carry out, encode; and the rule that nothing of a turn is done after a failure. It does
not import the SDK and has no field of the wire format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError
from deskhand.providers.anthropic import wire
from deskhand.providers.anthropic.editing import decode_editor, encode_editor, is_edit
from deskhand.providers.anthropic.versions import LATEST, TOOLSET
from deskhand.providers.editors import carry_out_edit
from deskhand.providers.element_tools import ELEMENTS, describe_elements, elements_schema
from deskhand.providers.hand_over_tool import DESCRIPTION, HAND_OVER, hand_over_schema
from deskhand.providers.payload import expect_list, expect_object
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual
from deskhand.providers.shell_calls import carry_out_shell, with_model_session, with_shell
from deskhand.providers.values import EditAnswer, ProviderCall, Result, ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import JSONObject

PROVIDER = "anthropic"
"""The name of these calls' provider in policies and audit logs."""

SIZE = "anthropic"
"""The default size of pictures: the one that all of Anthropic's models accept."""

SHELL_TIMEOUT = 120.0
"""Seconds for a command of the shell, as in Anthropic's reference implementation."""

_RESIZED = "The screen's size has changed since the last screenshot: take a new one before pointing at anything."


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Carry out one `tool_use` of the computer.

    Args:
        desktop: The desktop, or a model session on it.
        payload: The block, as the SDK's object or as a dictionary.
        version: The single tool that was declared; see `decode`.
        pictures: Whether every result has a picture of the screen after the call. By default as in Anthropic's own code: always
            with the single tools, and with the toolset only for `screenshot` and `zoom`.
        options: For a `ModelSession`, if none is given: `size` (by default `SIZE`; `tier(model)` is the largest for a model),
            `settle`, `policy`, `ask`.

    Returns:
        The `tool_result`. If the call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        ActionError: It is not a `tool_use` that can be answered.
        DesktopLost: The desktop is gone.
    """
    return _run(model_session(desktop, **options), plain(payload), version, pictures)


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Like `run`; cancelling stops it at its next safe point."""
    return await async_model_session(desktop, **options).run(lambda at: _run(at, plain(payload), version, pictures))


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    version: str | None = None,
    pictures: bool | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """Carry out the computer calls of a model's answer, in order, and none after a failure.

    Args:
        desktop: As for `run`.
        response: The answer, or its content.
        version: As for `run`.
        pictures: As for `run`.
        shell: Runs the commands of the `bash` tool, if given: a session, or a desktop with a machine of its own.
        editor: Carries out the text editor's calls, if given; use the same one for a whole conversation.
        elements: Whether to answer calls of the tool `elements` too (`declare_elements`).
        options: As for `run`.

    Returns:
        One `tool_result` for each call of the computer, and of the shell, the text editor and `elements` if these are given.
        Answer the calls of other tools yourself.

    Raises:
        ActionError: It is not a model's answer.
        DesktopLost: The desktop is gone.
    """
    at = model_session(desktop, **options)
    blocks = [
        block
        for block in _blocks(response)
        if wire.is_computer(block)
        or (shell is not None and wire.is_shell(block))
        or (editor is not None and is_edit(block))
        or (elements and _is_elements(block))
    ]
    for block in blocks:
        wire.block_id(block)  # nothing is done unless all can be answered
    answers = []
    failed = False
    for block in blocks:
        if wire.is_computer(block):
            answer = _not_executed(block) if failed else _run(at, block, version, pictures)
            failed = failed or answer.get("is_error", False)
            answers.append(answer)
        elif elements and _is_elements(block):
            answers.append(run_elements(at, block))
        elif editor is not None and is_edit(block):
            answers.append(run_editor(editor, block))
        else:
            answers.append(run_shell(shell, block))
    return answers


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    version: str | None = None,
    pictures: bool | None = None,
    shell: AnyShell | None = None,
    editor: TextEditor | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """Like `respond`; cancelling stops it at its next safe point."""
    there = async_model_session(desktop, **options)
    return await with_model_session(
        there,
        shell,
        lambda at: respond(
            at, response, version=version, pictures=pictures, shell=shell, editor=editor, elements=elements
        ),
    )


def run_shell(shell: AnyShell | None, payload: object, *, timeout: float = SHELL_TIMEOUT) -> JSONObject:
    """Carry out one `tool_use` of the shell.

    Args:
        shell: Runs the commands, the same for a whole conversation: a session, or a desktop with a machine of its own, in which
            each command runs alone. With None the call is refused.
        payload: The block, as the SDK's object or as a dictionary.
        timeout: Seconds for the command.

    Returns:
        The `tool_result`. It is an error if the command did not run, or was ended by its timeout or a cancellation. Another
        exit status than 0 is reported with the output.

    Raises:
        ActionError: It is not a `tool_use` that can be answered.
        DesktopLost: The desktop is gone.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    try:
        call = wire.decode_shell(block)
    except ActionError as error:
        return wire.encode_shell(ShellAnswer(call=ShellCall(commands=(), id=number), error=str(error)))
    return wire.encode_shell(carry_out_shell(shell, call, provider=PROVIDER, timeout=timeout))


async def run_shell_async(shell: AnyShell | None, payload: object, *, timeout: float = SHELL_TIMEOUT) -> JSONObject:
    """Like `run_shell`, in a thread; cancelling it ends the command under way; see `shell_calls.with_shell`."""
    return await with_shell(shell, lambda inner: run_shell(inner, payload, timeout=timeout))


def run_editor(editor: TextEditor | None, payload: object) -> JSONObject:
    """Carry out one `tool_use` of the text editor, of any version.

    Args:
        editor: Carries out the call; use the same one for a whole conversation. With None the call is refused.
        payload: The block, as the SDK's object or as a dictionary.

    Returns:
        The `tool_result`. If the call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        ActionError: It is not a `tool_use` that can be answered.
        DesktopLost: The desktop is gone.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    try:
        call = decode_editor(block)
    except ActionError as error:
        return encode_editor(EditAnswer(text=str(error), id=number, failed=True))
    return encode_editor(carry_out_edit(editor, call, provider=PROVIDER))


def declare_elements() -> JSONObject:
    """The tool `elements` as a request lists it: the model reads the elements that applications report."""
    description = describe_elements(by_reference=False)
    return {"name": ELEMENTS, "description": description, "input_schema": elements_schema()}


def run_elements(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Carry out one `tool_use` of `elements`.

    Args:
        desktop: The model session of the computer's calls, whose pictures the points are in, or the desktop.
        payload: The block, as the SDK's object or as a dictionary.
        options: As for `run`.

    Returns:
        The `tool_result`. If the call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        ActionError: It is not a `tool_use` that can be answered.
        DesktopLost: The desktop is gone.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    result = model_session(desktop, **options).read_elements(block.get("input"), id=number)
    return wire.encode_function(result)


async def run_elements_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Like `run_elements`; cancelling it stops at its next safe point."""
    return await async_model_session(desktop, **options).run(lambda at: run_elements(at, payload))


def declare_hand_over() -> JSONObject:
    """The tool `hand_over` as a request lists it: the model asks a person for help (`Desktop.hand_over`)."""
    return {"name": HAND_OVER, "description": DESCRIPTION, "input_schema": hand_over_schema()}


def run_hand_over(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Carry out one `tool_use` of `hand_over`: ask, and wait as long as it says, until a person has helped or declined.

    Args:
        desktop: The model session of the computer's calls, or the desktop. A person must be able to answer: see
            `deskhand.watch`.
        payload: The block, as the SDK's object or as a dictionary.
        options: As for `run`.

    Returns:
        The `tool_result`, with what the person did and a picture of the screen. If the call cannot be read, is not allowed or
        fails, the reason is in it.

    Raises:
        ActionError: It is not a `tool_use` that can be answered.
        DesktopLost: The desktop is gone.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    return wire.encode_function(model_session(desktop, **options).hand_over(block.get("input"), id=number))


async def run_hand_over_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Like `run_hand_over`; cancelling it ends the wait, and the request stays open."""
    return await async_model_session(desktop, **options).run(lambda at: run_hand_over(at, payload))


def _is_elements(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("toolset_name") is None and block.get("name") == ELEMENTS


def carry_out(model_session: ModelSession, call: ProviderCall, *, pictures: bool) -> Result:
    """Carry out a call, and keep the picture only if the model gets it."""
    before = model_session.viewport
    result = model_session.carry_out(call)
    if result.error is None and (pictures or wire.asks_to_see(call)):
        return result
    # The model keeps pointing into its last picture.
    changed = model_session.viewport != before
    if result.error is not None:
        return replace(result, error=f"{result.error}\n{_RESIZED}") if changed else result
    texts = [text for text in (_RESIZED if changed else None, result.text) if text is not None]
    return replace(result, picture=None, text="\n".join(texts) if texts else None)


def model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    """Return the session itself, or make one on a desktop, with Anthropic's sizes unless the options say otherwise."""
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """Like `model_session`, at any kind of desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def _run(at: ModelSession, payload: object, version: str | None, pictures: bool | None) -> dict[str, Any]:  # noqa: FBT001 # as of `run`
    block = expect_object("a tool_use", payload)
    number = wire.block_id(block)
    try:
        call = wire.decode(block, at.viewport, version=version)
    except ActionError as error:
        name = TOOLSET if block.get("toolset_name") is not None else version or LATEST
        return wire.encode(
            Result(call=ProviderCall(steps=(), viewport=at.viewport, id=number, name=name), error=str(error))
        )
    return wire.encode(carry_out(at, call, pictures=call.name != TOOLSET if pictures is None else pictures))


def _not_executed(block: Mapping[str, Any]) -> dict[str, Any]:
    answer = {"type": "tool_result", "tool_use_id": wire.block_id(block)}
    family = {"toolset_name": block["toolset_name"]} if block.get("toolset_name") is not None else {}
    return {**answer, **family, "content": [{"type": "text", "text": wire.NOT_EXECUTED}], "is_error": True}


def _blocks(message: object) -> list[Mapping[str, Any]]:
    content = plain(message)
    if not isinstance(content, list | tuple):
        content = expect_object("a message", content).get("content")
    if isinstance(content, str):
        return []
    return [
        expect_object("a block of a message", plain(block)) for block in expect_list("a message's content", content)
    ]


def plain(payload: object) -> object:
    """The SDK's object as it is sent; anything else is returned unchanged."""
    dump = getattr(payload, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else payload
