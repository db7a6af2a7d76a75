"""OpenAI's calls carried out at a desktop: one of them, or all of a response, without an SDK.

This module owns the way from an item of a response to the items of the next request. What must never appear here: a payload's
fields (see `wire`, `wire_shell`), a class of an SDK.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError, shown
from deskhand.providers.openai.wire import COMPUTER, PREVIEW, decode, encode, note
from deskhand.providers.openai.wire_shell import LOCAL, SHELL, decode_shell, encode_shell
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual
from deskhand.providers.shell_calls import carry_out_shell, with_shell
from deskhand.providers.values import ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand._core.geometry import Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.errors import DeskhandError
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import Result

__all__ = [
    "PROVIDER",
    "SIZE",
    "async_model_session",
    "declare",
    "declare_shell",
    "model_session",
    "plain",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "run_shell",
    "run_shell_async",
]

SIZE = "openai"
"""How large pictures are unless said otherwise: as large as the screen, where the model gets to see all of that."""

PROVIDER = "openai"
"""What policies and their logs are told of whose calls these are."""


def declare(
    desktop: AnyDesktop, *, preview: bool = False, environment: str = "linux", **options: Unpack[SessionOptions]
) -> dict[str, Any]:
    """The computer tool as a request lists it among its `tools`.

    Args:
        desktop: The desktop, or the model session that will carry out the calls.
        preview: Declare `computer_use_preview`, which is told the size of the pictures; `computer` takes it from them.
        environment: What kind of desktop the preview is told of: `linux`, `ubuntu` or `browser`.
        options: As of `run`.
    """
    if not preview:
        return {"type": COMPUTER}
    width, height = async_model_session(desktop, **options).viewport.model
    return {"type": PREVIEW, "display_width": width, "display_height": height, "environment": environment}


def declare_shell() -> dict[str, Any]:
    """The shell tool as a request lists it, with commands that run here and not at OpenAI's."""
    return {"type": "shell", "environment": {"type": "local"}}


# --- one call ---


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> dict[str, Any]:
    """Carry out a `computer_call`.

    Args:
        desktop: The desktop, or a model session on it. A session remembers which picture the model has seen: use one for a
            conversation
            whose screen may change its size.
        payload: The item of the response: plain data or the SDK's object.
        detail: See `wire.encode`.
        options: Of a `ModelSession`, where none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Returns:
        The `computer_call_output`. It can show what became of the screen and say nothing: use `respond` where the model should
        be told of what could not be done.

    Raises:
        ActionError: The payload has no `call_id`, so that nothing can answer it.
        DesktopLost: There is no desktop any more.
    """
    return encode(_result(model_session(desktop, **options), plain(payload)), detail=detail)


async def run_async(
    desktop: AnyDesktop, payload: object, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> dict[str, Any]:
    """As `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    return await async_model_session(desktop, **options).run(lambda inner: run(inner, payload, detail=detail))


def _result(
    at: ModelSession, item: object, viewport: Viewport | None = None, doubt: DeskhandError | None = None
) -> Result:
    try:
        if doubt is not None:
            raise doubt
        call = decode(item, viewport or at.viewport)
    except ActionError as error:
        call_id = item.get("call_id") if isinstance(item, Mapping) else None
        if not isinstance(call_id, str):
            raise
        return at.unreadable(error, id=call_id)
    return at.carry_out(call)


# --- all of a response ---


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    shell: AnyShell | None = None,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> list[dict[str, Any]]:
    """Answer all calls of a response that are for the computer or the shell.

    Args:
        desktop: As of `run`.
        response: The response, or its `output`: plain data or the SDK's objects. Of a response that is incomplete, nothing is
            carried out: its last call may have been cut off, and what it was leading to is not known.
        shell: What runs commands. Without one they are refused.
        detail: As of `run`.
        options: As of `run`.

    Returns:
        The items of the next request's `input`, in order; none when there was nothing to do. After the output of a call that
        was not carried out as asked comes a message that says so.

    Raises:
        ActionError: As `run`; or it is no response.
        DesktopLost: There is no desktop any more.
    """
    at = model_session(desktop, **options)
    # All calls of a response point into the picture that the model had seen before it.
    viewport = at.viewport
    answers: list[dict[str, Any]] = []
    for item, doubt in _calls(response):
        if item.get("type") == "computer_call":
            answers += _answer(_result(at, item, viewport, doubt), detail)
        else:
            answers.append(run_shell(shell, item) if doubt is None else _shell_refused(item, doubt))
    return answers


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    shell: AnyShell | None = None,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> list[dict[str, Any]]:
    """As `respond`; cancelling it stops at the desktop's next safe point, with nothing held."""
    there = async_model_session(desktop, **options)
    viewport = there.viewport
    answers: list[dict[str, Any]] = []
    for item, doubt in _calls(response):
        if item.get("type") == "computer_call":
            result = await there.run(functools.partial(_result, item=item, viewport=viewport, doubt=doubt))
            answers += _answer(result, detail)
        else:
            answers.append(await run_shell_async(shell, item) if doubt is None else _shell_refused(item, doubt))
    return answers


def _answer(result: Result, detail: str | None) -> list[dict[str, Any]]:
    said = note(result)
    return [encode(result, detail=detail), *([] if said is None else [said])]


def _calls(response: object) -> Iterator[tuple[Mapping[str, Any], ActionError | None]]:
    """The items that ask for something, each with what stands against it."""
    whole = plain(response)
    doubt = None
    if isinstance(whole, Mapping):
        status = whole.get("status")
        if status is not None and status != "completed":
            doubt = ActionError(f"the response is {status}, so nothing of it was done: ask again")
        whole = whole.get("output")
    if not isinstance(whole, list | tuple):
        raise ActionError(
            f"a response or its output, a list of items, is needed, not {shown(whole)}: one call is for run"
        )
    for item in whole:
        data = plain(item)
        if isinstance(data, Mapping) and data.get("type") in ("computer_call", SHELL, LOCAL):
            yield data, doubt


def plain(value: object) -> object:
    """An SDK's object as plain data; everything else as it is."""
    dump = getattr(value, "model_dump", None)
    # The SDK makes objects of whatever the server sends, unchecked: what is wrong with that is said where it is read.
    return dump(exclude_none=True, warnings=False) if callable(dump) else value


# --- the shell ---


def run_shell(shell: AnyShell | None, payload: object) -> dict[str, Any]:
    """Carry out a `shell_call` or a `local_shell_call`.

    Args:
        shell: What runs commands; None refuses them.
        payload: The item of the response: plain data or the SDK's object.

    Returns:
        Its output. What could not be run, or not be read, is told on the standard error of one more output.

    Raises:
        ActionError: The payload has no `call_id`, so that nothing can answer it.
        DesktopLost: There is no desktop any more.
    """
    item = plain(payload)
    try:
        call = decode_shell(item)
    except ActionError as error:
        return _shell_refused(item, error)
    return encode_shell(carry_out_shell(shell, call, provider=PROVIDER))


async def run_shell_async(shell: AnyShell | None, payload: object) -> dict[str, Any]:
    """As `run_shell`, in a thread; cancelling it ends the command under way; see `shell_calls.with_shell`."""
    return await with_shell(shell, lambda inner: run_shell(inner, payload))


def _shell_refused(item: object, error: DeskhandError) -> dict[str, Any]:
    data = item if isinstance(item, Mapping) else {}
    call_id = data.get("call_id")
    if not isinstance(call_id, str):
        raise error
    extra = {"type": LOCAL} if data.get("type") == LOCAL else {}
    return encode_shell(ShellAnswer(call=ShellCall(commands=(), id=call_id, extra=extra), error=str(error)))


def model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    """The session itself, or one on a desktop, with OpenAI's sizes unless the options say otherwise."""
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """As `model_session`, at any kind of desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
