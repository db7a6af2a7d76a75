"""Carrying out what Claude asks for, one block or a whole answer at a time, in a loop of one's own.

This module owns the order of things: decode, carry out, encode; and that nothing of a turn is done after a failure. What must
never appear here: the SDK, a field of the wire.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError
from deskhand.providers.anthropic import wire
from deskhand.providers.anthropic.editing import decode_editor, encode_editor, is_edit
from deskhand.providers.anthropic.inputs import LATEST, TOOLSET
from deskhand.providers.editors import carry_out_edit
from deskhand.providers.element_tools import ELEMENTS, describe_elements, elements_schema
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

__all__ = [
    "PROVIDER",
    "SHELL_TIMEOUT",
    "SIZE",
    "async_model_session",
    "carry_out",
    "declare_elements",
    "model_session",
    "plain",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "run_editor",
    "run_elements",
    "run_elements_async",
    "run_shell",
    "run_shell_async",
]

PROVIDER = "anthropic"
"""What policies and their logs are told of whose calls these are."""

SIZE = "anthropic"
"""How large pictures are when nobody says: as all of Anthropic's models take them."""

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
) -> dict[str, Any]:
    """Carry out one `tool_use` of the computer.

    Args:
        desktop: The desktop, or a model session on it.
        payload: The block, as the SDK's object or as a dictionary.
        version: Which single tool was declared; see `decode`.
        pictures: Whether every result has a picture of what it led to. By default as Anthropic does it itself: with the single
            tools it has, with the toolset those of `screenshot` and `zoom` have.
        options: Of a `ModelSession`, where none is given: `size` (by default `SIZE`; `tier(model)` is the most for a model),
            `settle`, `policy`, `ask`.

    Returns:
        The `tool_result`. What cannot be read, is not allowed or failed is told there.

    Raises:
        ActionError: It is no `tool_use` that could be answered.
        DesktopLost: There is no desktop any more.
    """
    return _run(model_session(desktop, **options), plain(payload), version, pictures)


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> dict[str, Any]:
    """As `run`; cancelling stops it at its next safe point."""
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
) -> list[dict[str, Any]]:
    """Carry out what a whole answer of the model asks of the computer: in order, and after a failure nothing more.

    Args:
        desktop: As of `run`.
        response: The answer, or its content.
        version: As of `run`.
        pictures: As of `run`.
        shell: What runs the commands of the `bash` tool, if anything does: a session, or a desktop with a machine of its own.
        editor: What the text editor's calls are carried out by, if they are; the same for a whole conversation.
        elements: Whether calls of the tool `elements` are answered too (`declare_elements`).
        options: As of `run`.

    Returns:
        One `tool_result` for each call of the computer, and of the shell, the text editor and `elements` where there is one.
        Other tools are yours to answer.

    Raises:
        ActionError: It is no answer of a model.
        DesktopLost: There is no desktop any more.
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
        wire.block_id(block)  # all can be answered, or nothing is done
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
) -> list[dict[str, Any]]:
    """As `respond`; cancelling stops it at its next safe point."""
    there = async_model_session(desktop, **options)
    return await with_model_session(
        there,
        shell,
        lambda at: respond(
            at, response, version=version, pictures=pictures, shell=shell, editor=editor, elements=elements
        ),
    )


def run_shell(shell: AnyShell | None, payload: object, *, timeout: float = SHELL_TIMEOUT) -> dict[str, Any]:
    """Carry out one `tool_use` of the shell.

    Args:
        shell: What runs its commands, the same for a whole conversation: a session, or a desktop with a machine of its own,
            in which each command runs alone. None refuses them.
        payload: The block, as the SDK's object or as a dictionary.
        timeout: Seconds for the command.

    Returns:
        The `tool_result`. It is an error where the command was ended, at its timeout or by a cancellation, or not run at all;
        one that ends with another status than 0 is told with what it wrote.

    Raises:
        ActionError: It is no `tool_use` that could be answered.
        DesktopLost: There is no desktop any more.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    try:
        call = wire.decode_shell(block)
    except ActionError as error:
        return wire.encode_shell(ShellAnswer(call=ShellCall(commands=(), id=number), error=str(error)))
    return wire.encode_shell(carry_out_shell(shell, call, provider=PROVIDER, timeout=timeout))


async def run_shell_async(shell: AnyShell | None, payload: object, *, timeout: float = SHELL_TIMEOUT) -> dict[str, Any]:
    """As `run_shell`, in a thread; cancelling it ends the command under way; see `shell_calls.with_shell`."""
    return await with_shell(shell, lambda inner: run_shell(inner, payload, timeout=timeout))


def run_editor(editor: TextEditor | None, payload: object) -> dict[str, Any]:
    """Carry out one `tool_use` of the text editor, of any version.

    Args:
        editor: What carries it out, the same for a whole conversation. None refuses.
        payload: The block, as the SDK's object or as a dictionary.

    Returns:
        The `tool_result`. What cannot be read, is not allowed or failed is told there.

    Raises:
        ActionError: It is no `tool_use` that could be answered.
        DesktopLost: There is no desktop any more.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    try:
        call = decode_editor(block)
    except ActionError as error:
        return encode_editor(EditAnswer(text=str(error), id=number, failed=True))
    return encode_editor(carry_out_edit(editor, call, provider=PROVIDER))


def declare_elements() -> dict[str, Any]:
    """The tool `elements` as a request lists it: the model reads what applications say that they show."""
    description = describe_elements(by_reference=False)
    return {"name": ELEMENTS, "description": description, "input_schema": elements_schema()}


def run_elements(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> dict[str, Any]:
    """Carry out one `tool_use` of `elements`.

    Args:
        desktop: The model session that the computer's calls have, whose pictures the points are in; or the desktop.
        payload: The block, as the SDK's object or as a dictionary.
        options: As of `run`.

    Returns:
        The `tool_result`. What cannot be read, is not allowed or failed is told there.

    Raises:
        ActionError: It is no `tool_use` that could be answered.
        DesktopLost: There is no desktop any more.
    """
    block = expect_object("a tool_use", plain(payload))
    number = wire.block_id(block)
    result = model_session(desktop, **options).read_elements(block.get("input"), id=number)
    content = [{"type": "text", "text": result.error or result.text or ""}]
    answer = {"type": "tool_result", "tool_use_id": number, "content": content}
    return answer if result.error is None else {**answer, "is_error": True}


async def run_elements_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> dict[str, Any]:
    """As `run_elements`; cancelling it stops at its next safe point."""
    return await async_model_session(desktop, **options).run(lambda at: run_elements(at, payload))


def _is_elements(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("toolset_name") is None and block.get("name") == ELEMENTS


def carry_out(model_session: ModelSession, call: ProviderCall, *, pictures: bool) -> Result:
    """Do what a call asks for, and keep the picture only where the model is to have it."""
    before = model_session.viewport
    result = model_session.carry_out(call)
    if result.error is None and (pictures or wire.asks_to_see(call)):
        return result
    # The model goes on pointing into the picture that it has.
    changed = model_session.viewport != before
    if result.error is not None:
        return replace(result, error=f"{result.error}\n{_RESIZED}") if changed else result
    return replace(result, picture=None, text=_RESIZED if changed else result.text)


def model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    """The session itself, or one on a desktop, with Anthropic's sizes unless the options say otherwise."""
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """As `model_session`, at any kind of desktop."""
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
    """The SDK's object as it goes over the wire; anything else as it is."""
    dump = getattr(payload, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else payload
