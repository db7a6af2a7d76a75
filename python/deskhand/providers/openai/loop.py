"""Carries out OpenAI's calls on a desktop: one of them, or all of a response, without an SDK.

This module owns the way from an item of a response to the items of the next request. The payloads' fields are in `wire` and
`wire_shell`; there is no class of an SDK.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError, shown
from deskhand.providers.element_tools import ELEMENTS, describe_elements, elements_schema
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
    from deskhand.providers.values import JSONObject, Result

SIZE = "openai"
"""The default size of pictures: that of the screen, if the model sees all of it."""

PROVIDER = "openai"
"""The name of these calls' provider in policies and audit logs."""


def declare(
    desktop: AnyDesktop, *, preview: bool = False, environment: str = "linux", **options: Unpack[SessionOptions]
) -> JSONObject:
    """The computer tool, as a request lists it among its `tools`.

    Args:
        desktop: The desktop, or the model session that will carry out the calls.
        preview: Declare `computer_use_preview`, with the size of the pictures; `computer` reads it from the pictures.
        environment: The kind of desktop that the preview declares: `linux`, `ubuntu` or `browser`.
        options: As for `run`.
    """
    if not preview:
        return {"type": COMPUTER}
    width, height = async_model_session(desktop, **options).viewport.model
    return {"type": PREVIEW, "display_width": width, "display_height": height, "environment": environment}


def declare_shell() -> JSONObject:
    """The shell tool as a request lists it, with commands that run here and not at OpenAI."""
    return {"type": "shell", "environment": {"type": "local"}}


def declare_elements() -> JSONObject:
    """The function `elements` as a request lists it: the model reads the elements that applications report."""
    description = describe_elements(by_reference=False)
    return {
        "type": "function",
        "name": ELEMENTS,
        "description": description,
        "parameters": elements_schema(),
        "strict": False,
    }


# --- one call ---


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """Carry out a `computer_call`.

    Args:
        desktop: The desktop, or a model session on it. A session remembers which picture the model has seen: use one
            session for a whole conversation if the screen may change its size.
        payload: The item of the response: plain data or the SDK's object.
        detail: See `wire.encode`.
        options: For a `ModelSession`, if none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Returns:
        The `computer_call_output`. It can only hold a picture: use `respond` if the model should get errors as text.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    return encode(_result(model_session(desktop, **options), plain(payload)), detail=detail)


async def run_async(
    desktop: AnyDesktop, payload: object, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> JSONObject:
    """Like `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
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
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """Answer all calls of a response that are for the computer or the shell.

    Args:
        desktop: As for `run`.
        response: The response, or its `output`: plain data or the SDK's objects. Nothing of an incomplete response is carried
            out: its last call may have been cut off, and the purpose of the others is not known.
        shell: Runs commands. Without one they are refused.
        detail: As for `run`.
        elements: Whether to answer calls of the function `elements` too (`declare_elements`). Answer other functions yourself.
        options: As for `run`.

    Returns:
        The items of the next request's `input`, in order; empty if there are no calls. The output of a call that was not
        carried out as asked is followed by a message with the reason.

    Raises:
        ActionError: As for `run`; or it is not a response.
        DesktopLost: The desktop is gone.
    """
    at = model_session(desktop, **options)
    # All calls of a response point into the picture that the model saw before it.
    viewport = at.viewport
    answers: list[dict[str, Any]] = []
    for item, doubt in _calls(response, elements=elements):
        if item.get("type") == "computer_call":
            answers += _answer(_result(at, item, viewport, doubt), detail)
        elif is_elements(item):
            answers.append(_elements(at, item, doubt))
        else:
            answers.append(run_shell(shell, item) if doubt is None else _shell_refused(item, doubt))
    return answers


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    shell: AnyShell | None = None,
    detail: str | None = "original",
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """Like `respond`; cancelling it stops at the desktop's next safe point, with nothing held."""
    there = async_model_session(desktop, **options)
    viewport = there.viewport
    answers: list[dict[str, Any]] = []
    for item, doubt in _calls(response, elements=elements):
        if is_elements(item):
            answers.append(await there.run(functools.partial(_elements, item=item, doubt=doubt)))
        elif item.get("type") == "computer_call":
            result = await there.run(functools.partial(_result, item=item, viewport=viewport, doubt=doubt))
            answers += _answer(result, detail)
        else:
            answers.append(await run_shell_async(shell, item) if doubt is None else _shell_refused(item, doubt))
    return answers


def _answer(result: Result, detail: str | None) -> list[dict[str, Any]]:
    said = note(result)
    return [encode(result, detail=detail), *([] if said is None else [said])]


def _calls(response: object, *, elements: bool) -> Iterator[tuple[Mapping[str, Any], ActionError | None]]:
    """The items that are calls, each with the reason why it must not be carried out, if any."""
    whole = plain(response)
    doubt = None
    if isinstance(whole, Mapping):
        status = whole.get("status")
        if status is not None and status != "completed":
            doubt = ActionError(f"the response is {status}, so nothing of it was done: ask again")
        whole = whole.get("output")
    if not isinstance(whole, list | tuple):
        raise ActionError(
            f"a response or its output, a list of items, is needed, not {shown(whole)}: pass a single call to run"
        )
    for item in whole:
        data = plain(item)
        if not isinstance(data, Mapping):
            continue
        if data.get("type") in ("computer_call", SHELL, LOCAL) or (elements and is_elements(data)):
            yield data, doubt


def plain(value: object) -> object:
    """An SDK's object as plain data; anything else is returned unchanged."""
    dump = getattr(value, "model_dump", None)
    # The SDK makes unchecked objects of whatever the server sends; mistakes are reported where the data is read.
    return dump(exclude_none=True, warnings=False) if callable(dump) else value


# --- elements ---


def is_elements(item: Mapping[str, Any]) -> bool:
    """Whether an item of a response is a call of the function `elements`."""
    return item.get("type") == "function_call" and item.get("name") == ELEMENTS


def run_elements(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Carry out a `function_call` of `elements`.

    Args:
        desktop: The model session of the computer's calls, whose pictures the points are in, or the desktop.
        payload: The item of the response: plain data or the SDK's object.
        options: As for `run`.

    Returns:
        Its `function_call_output`. If the call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    return _elements(model_session(desktop, **options), plain(payload))


async def run_elements_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Like `run_elements`; cancelling it stops at the desktop's next safe point."""
    return await async_model_session(desktop, **options).run(lambda at: run_elements(at, payload))


def _elements(at: ModelSession, item: object, doubt: DeskhandError | None = None) -> dict[str, Any]:
    data = item if isinstance(item, Mapping) else {}
    call_id = data.get("call_id")
    if not isinstance(call_id, str):
        raise ActionError(f"a function_call needs a call_id for its answer, not {shown(call_id)}")
    text = str(doubt) if doubt is not None else read_elements(at, data.get("arguments"), call_id)
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def read_elements(at: ModelSession, arguments: object, call_id: str | None) -> str:
    """The answer of the function `elements` for its arguments, which are JSON in a string; a failure is a text too."""
    try:
        # A model may write an empty string for no arguments.
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError as error:
        return f"the arguments of {ELEMENTS} are not JSON: {error}"
    result = at.read_elements(given, id=call_id)
    return result.error or result.text or ""


# --- the shell ---


def run_shell(shell: AnyShell | None, payload: object) -> JSONObject:
    """Carry out a `shell_call` or a `local_shell_call`.

    Args:
        shell: Runs the commands; with None they are refused.
        payload: The item of the response: plain data or the SDK's object.

    Returns:
        Its output. If a command cannot be read or run, the reason is on the standard error of one more output.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    item = plain(payload)
    try:
        call = decode_shell(item)
    except ActionError as error:
        return _shell_refused(item, error)
    return encode_shell(carry_out_shell(shell, call, provider=PROVIDER))


async def run_shell_async(shell: AnyShell | None, payload: object) -> JSONObject:
    """Like `run_shell`, in a thread; cancelling it ends the command under way; see `shell_calls.with_shell`."""
    return await with_shell(shell, lambda inner: run_shell(inner, payload))


def _shell_refused(item: object, error: DeskhandError) -> dict[str, Any]:
    data = item if isinstance(item, Mapping) else {}
    call_id = data.get("call_id")
    if not isinstance(call_id, str):
        raise error
    extra = {"type": LOCAL} if data.get("type") == LOCAL else {}
    return encode_shell(ShellAnswer(call=ShellCall(commands=(), id=call_id, extra=extra), error=str(error)))


def model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    """Return the session itself, or make one on a desktop, with OpenAI's sizes unless the options say otherwise."""
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """Like `model_session`, at any kind of desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))
