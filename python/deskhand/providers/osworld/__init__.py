"""OSWorld: its action spaces `computer_13` and `pyautogui`, and its observations, for agents that were written for OSWorld.

    >>> from deskhand.providers import osworld
    >>> seen = osworld.run(desktop, {"action_type": "CLICK", "parameters": {"x": 10, "y": 20}})
    >>> seen = osworld.run(desktop, "pyautogui.hotkey('ctrl', 's')")
    >>> seen["screenshot"]                      # a PNG
    >>> osworld.accessibility_xml(desktop.elements())      # or as the table of its agents: accessibility_table

A model's Python is parsed, never run; see `pyautogui.py` beside this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.arguments import expect
from deskhand.errors import ActionError
from deskhand.providers.osworld.accessibility import accessibility_table, accessibility_xml
from deskhand.providers.osworld.computer_13 import decode_action, encode_action
from deskhand.providers.osworld.pyautogui import decode_source, encode_source
from deskhand.providers.payload import expect_object
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual
from deskhand.providers.values import Picture, ProviderCall, Result, expect_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand._core.geometry import Point, Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import Payload

__all__ = [
    "accessibility_table",
    "accessibility_xml",
    "declare",
    "decode",
    "decode_result",
    "encode",
    "encode_call",
    "run",
    "run_async",
]

SPACES = ("computer_13", "pyautogui")


def decode(payload: object, viewport: Viewport, *, pointer: Point | None = None) -> ProviderCall:
    """Decode an action of either space: a dictionary is one of `computer_13`, a string is source.

    Args:
        payload: The action.
        viewport: The viewport of the picture that the model pointed into.
        pointer: The pointer's position on the screen, for relative movements.

    Raises:
        ActionError: It cannot be read.
        OutOfBounds: A point is outside of the picture.
    """
    if isinstance(payload, str):
        return ProviderCall(steps=decode_source(payload, viewport, pointer), viewport=viewport, name="pyautogui")
    steps, extra = decode_action(payload, viewport)
    return ProviderCall(steps=steps, viewport=viewport, name="computer_13", extra=extra)


def encode_call(call: ProviderCall) -> Payload | str:
    """Encode a call as an action of the space that `call.name` names, the inverse of `decode`.

    Raises:
        UnsupportedAction: The action space cannot express it.
    """
    call = expect_call("encode_call", call).at_points("OSWorld")
    if call.name == "pyautogui":
        return encode_source(call.steps, call.viewport)
    if len(call.steps) != 1:
        raise ActionError(f"computer_13 has one action at a time, not {len(call.steps)}")
    said = encode_action(call.steps[0], call.viewport)
    extra: Mapping[str, Any] = call.extra
    return {**said, "parameters": {**said.get("parameters", {}), **extra}} if extra else said


def encode(result: Result, *, instruction: str | None = None) -> Payload:
    """The observation after an action, as OSWorld's environment returns it; `error` is the reason of a failure.

    Args:
        result: The result of the action.
        instruction: The task's instruction, which OSWorld includes in every observation.
    """
    expect("encode: result", result, Result)
    picture = None if result.picture is None else result.picture.data
    seen: dict[str, Any] = {
        "screenshot": picture,
        "accessibility_tree": None,
        "terminal": None,
        "instruction": instruction,
    }
    return seen if result.error is None else {**seen, "error": result.error}


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode an observation, the inverse of `encode`.

    Raises:
        ActionError: It cannot be read.
    """
    seen = expect_object("an observation", payload)
    picture, error = seen.get("screenshot"), seen.get("error")
    if not isinstance(picture, bytes | None) or not isinstance(error, str | None):
        raise ActionError("an observation's screenshot must be bytes, and its error a string")
    return Result(call=call, picture=None if picture is None else Picture(picture), error=error)


def declare(desktop: AnyDesktop, *, space: str = "computer_13", **options: Unpack[SessionOptions]) -> dict[str, object]:
    """The arguments for OSWorld's environment: its action space and its screen's size.

    Args:
        desktop: The desktop, or a model session on it.
        space: `computer_13` or `pyautogui`.
        options: As for `ModelSession`: size, settle, policy, ask.

    Raises:
        ActionError: There is no such space.
    """
    if space not in SPACES:
        raise ActionError(f"an action space is one of {', '.join(SPACES)}, not {space!r}")
    return {"action_space": space, "screen_size": tuple(AsyncModelSession.of(desktop, **options).viewport.model)}


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    instruction: str | None = None,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Carry out an action of either space.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        payload: The action: a dictionary, or source.
        instruction: The task's instruction, for the observation.
        options: As for `ModelSession`: size, settle, policy, ask.

    Returns:
        The observation: the screenshot as a PNG, and `error` if the action failed.

    Raises:
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider="osworld"))
    try:
        call = decode(payload, model_session.viewport, pointer=model_session.desktop.pointer)
    except ActionError as error:
        return encode(model_session.unreadable(error), instruction=instruction)
    return encode(model_session.carry_out(call), instruction=instruction)


async def run_async(
    desktop: AnyDesktop, payload: object, *, instruction: str | None = None, **options: Unpack[SessionOptions]
) -> Payload:
    """Like `run`, cancellable."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider="osworld"))
    return await model_session.run(lambda there: run(there, payload, instruction=instruction))
