"""Google: Gemini's computer use, through google-genai (`models` and `interactions`) and ADK.

    from deskhand.providers import google as deskhand_google

    tools=[deskhand_google.declare(desktop)]                what a request lists
    deskhand_google.run(desktop, part.function_call)        one call, answered
    deskhand_google.respond(desktop, response)              all calls of a turn, as the Content to send back
    LlmAgent(model=..., tools=[deskhand_google.tool(desktop)])      with ADK

This module owns the way from payloads, or the SDK's objects, to a desktop and back. The fields of payloads are in `wire`, and
the SDK is imported on first use.

The session's `ask` is called where Google wants a confirmation. A call without one is refused, and its answer says `denied`.
Google's API may then reject the whole conversation (it wants `safety_acknowledgement`), and Google's own agent ends it there;
your loop should do the same.

`url` in an answer is empty by default: only a browser's own protocol knows the page. Pass a function as `url` to fill it in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from deskhand._core.arguments import expect_callable, expect_integer, expect_several, expect_texts
from deskhand._core.extras import load
from deskhand.errors import ActionError
from deskhand.providers.element_tools import ELEMENTS, describe_elements, elements_schema
from deskhand.providers.google.functions import FUNCTIONS, on_grid
from deskhand.providers.google.wire import (
    UNKNOWN_URL,
    arguments_of,
    declaration,
    decode,
    decode_result,
    encode,
    encode_call,
    unread,
)
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from google.adk.tools.computer_use.computer_use_toolset import ComputerUseToolset
    from google.genai.types import Content

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.google.adk import DeskComputer
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import JSONObject, Payload, Result

PROVIDER = "google"
"""The name of these calls' provider in policies and audit logs."""

__all__ = [
    "FUNCTIONS",
    "PROVIDER",
    "computer",
    "declare",
    "declare_elements",
    "decode",
    "decode_result",
    "encode",
    "encode_call",
    "on_grid",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "run_calls",
    "run_calls_async",
    "run_elements",
    "run_elements_async",
    "thin",
    "tool",
]


def declare(
    desktop: AnyDesktop,
    *,
    environment: str = "desktop",
    excluded: Collection[str] = (),
    detect_injection: bool = False,
    disabled_policies: Collection[str] = (),
    interactions: bool = False,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """The tool, as a request lists it, for `GenerateContentConfig(tools=[...])` or `interactions.create` (`interactions=True`).

    Args:
        desktop: The desktop, or the model session that will carry out the calls. The model's grid is the same for every screen.
        environment: `desktop`, or `browser`, which also has functions to navigate; models before Gemini 3.5 only know
            `browser`.
        excluded: Functions that the model must not call. Exclude the same functions in `run`, which then refuses them.
        detect_injection: Whether Google looks for injected prompts in the pictures.
        disabled_policies: Google's safety policies that must not ask, such as `financial_transactions`.
        interactions: Whether the request is for the Interactions API.
        options: As for `run`.

    Raises:
        ActionError: There is no such environment.
    """
    _async_model_session(desktop, **options)  # checks the options like `run`
    return declaration(
        environment,
        excluded=expect_texts("declare: excluded", excluded),
        detect_injection=detect_injection,
        disabled_policies=expect_texts("declare: disabled_policies", disabled_policies),
        interactions=interactions,
    )


def declare_elements(*, interactions: bool = False) -> JSONObject:
    """The function `elements` as a request lists it: the model reads the elements that applications report.

    Args:
        interactions: As for `declare`.
    """
    description = describe_elements(by_reference=False, units="on the grid that your points are on")
    named = {"name": ELEMENTS, "description": description}
    if interactions:
        return {"type": "function", **named, "parameters": elements_schema()}
    return {"function_declarations": [{**named, "parameters_json_schema": elements_schema()}]}


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Carry out one function call, and answer it.

    Args:
        desktop: The desktop, or the model session on it that remembers what the model has seen.
        payload: A function call, a part with one in it or a `function_call` step; a dictionary or the SDK's object.
        excluded: Functions that are refused, whatever the model says.
        url: Returns the URL of the page that the browser shows; called after the call was carried out.
        options: For a `ModelSession`, if none is given: `size`, `settle`, `policy`, `ask`.

    Returns:
        The answer, in the form of the call. If the call cannot be read, is not allowed or fails, the reason is in it, with the
            screen as it is.

    Raises:
        DesktopLost: The desktop is gone.
    """
    (answered,) = run_calls(desktop, [payload], excluded=excluded, url=url, **options)
    return answered


def run_calls(
    desktop: Desktop | ModelSession,
    payloads: Iterable[object],
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[Payload]:
    """Carry out the function calls of one turn in order, and answer each of them.

    Like the actions of one `perform`, they stop at the first that fails: a text must not be typed if the click before it
    failed. The others are answered as not carried out.

    Args:
        desktop: As for `run`.
        payloads: The calls, each as for `run`.
        excluded: As for `run`.
        url: As for `run`.
        elements: Whether calls of the function `elements` are answered too (`declare_elements`).
        options: As for `run`.

    Returns:
        The answers, in order.

    Raises:
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    model_session.point_on(on_grid)
    if url is not None:
        expect_callable("run_calls: url", url)
    excluded = expect_texts("run_calls: excluded", excluded)
    answers: list[dict[str, Any]] = []
    failed = False
    for payload in map(_plain, expect_several("run_calls: payloads", payloads)):
        result = _result(model_session, payload, excluded, stopped=failed, elements=elements)
        failed = failed or result.error is not None
        answers.append(encode(result, url=UNKNOWN_URL if url is None else url()))
    return answers


def run_elements(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Carry out one call of the function `elements`.

    Args:
        desktop: The model session that the computer's calls have, or the desktop.
        payload: As for `run`.
        options: As for `run`.

    Returns:
        The answer, in the form of the call. If the call cannot be read, is not allowed or fails, the reason is in it.

    Raises:
        DesktopLost: The desktop is gone.
    """
    (answered,) = run_calls(desktop, [payload], elements=True, **options)
    return cast("JSONObject", answered)  # it has no picture


async def run_elements_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> JSONObject:
    """Like `run_elements`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    (answered,) = await run_calls_async(desktop, [payload], elements=True, **options)
    return cast("JSONObject", answered)  # it has no picture


async def run_async(
    desktop: AnyDesktop,
    payload: object,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Unpack[SessionOptions],
) -> Payload:
    """Like `run`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    (answered,) = await run_calls_async(desktop, [payload], excluded=excluded, url=url, **options)
    return answered


async def run_calls_async(
    desktop: AnyDesktop,
    payloads: Iterable[object],
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> list[Payload]:
    """Like `run_calls`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    model_session = _async_model_session(desktop, **options)
    given = expect_several("run_calls: payloads", payloads)
    return await model_session.run(lambda inner: run_calls(inner, given, excluded=excluded, url=url, elements=elements))


def _result(
    model_session: ModelSession, payload: Any, excluded: Collection[str], *, stopped: bool, elements: bool
) -> Result:
    call = unread(payload, model_session.viewport)
    if elements and call.name == ELEMENTS:
        return replace(model_session.read_elements(arguments_of(payload), id=call.id), call=call)
    if stopped:
        return model_session.refused(call, ActionError("not carried out: an earlier call of this turn failed"))
    if call.name in excluded:
        return model_session.refused(
            call, ActionError(f"{call.name} is excluded from this conversation: use another function")
        )
    try:
        read = decode(payload, model_session.viewport)
    except ActionError as error:
        return model_session.refused(call, error)
    return model_session.carry_out(read)


def _plain(payload: Any) -> Any:
    """The dictionary of one of the SDK's objects; anything else is returned unchanged."""
    dump = getattr(payload, "model_dump", None)
    return payload if dump is None else dump(mode="json", exclude_none=True)


def _async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    return AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))


def _sdk() -> Any:
    return load("deskhand.providers.google.sdk", "google")


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> Content | None:
    """Carry out all function calls of a model's turn.

    For loops without functions of their own. Other loops find ours in `FUNCTIONS`, and pass them to `run`.

    Args:
        desktop: The desktop, or the model session on it.
        response: The result of `generate_content`, or its `Content`; the SDK's object, or its JSON.
        excluded: As for `run`.
        url: As for `run`.
        elements: Whether calls of the function `elements` are answered too (`declare_elements`).
        options: As for `run`.

    Returns:
        The `google.genai.types.Content` to send back, or None if there are no calls.

    Raises:
        ActionError: The response is neither of these.
        MissingExtra: google-genai is not installed.
        DesktopLost: The desktop is gone.
    """
    sdk = _sdk()
    calls = sdk.calls_of(response)
    if not calls:
        return None
    made: Content = sdk.content_of(run_calls(desktop, calls, excluded=excluded, url=url, elements=elements, **options))
    return made


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> Content | None:
    """Like `respond`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    sdk = _sdk()
    calls = sdk.calls_of(response)
    if not calls:
        return None
    answers = await run_calls_async(desktop, calls, excluded=excluded, url=url, elements=elements, **options)
    made: Content = sdk.content_of(answers)
    return made


def thin(contents: Iterable[object], keep: int = 3) -> None:
    """Drop the pictures of all but the last answers from a conversation, in place; texts and thought signatures stay.

    Args:
        contents: The argument of `generate_content`.
        keep: The number of our last turns that keep their pictures; three, as in Google's own agent.

    Raises:
        ActionError: `contents` is not a list, or `keep` not a number of turns.
        MissingExtra: The SDK is not installed.
    """
    _sdk().thin(expect_several("contents", contents), expect_integer("keep", keep, 0))


def tool(
    desktop: AnyDesktop,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Unpack[SessionOptions],
) -> ComputerUseToolset:
    """The desktop as the `ComputerUseToolset` of an ADK agent.

    Args:
        desktop: As for `computer`.
        excluded: Functions that the model must not call.
        url: As for `computer`.
        options: As for `computer`.

    Raises:
        ActionError: `excluded` is not a list of names.
        MissingExtra: google-adk is not installed.
    """
    names = expect_texts("excluded", excluded)
    made: ComputerUseToolset = _adk().toolset(computer(desktop, url=url, **options), list(names))
    return made


def computer(
    desktop: AnyDesktop, *, url: Callable[[], str] | None = None, **options: Unpack[SessionOptions]
) -> DeskComputer:
    """The desktop as an ADK `BaseComputer` with every function, including those of Gemini 3.5; `tool` makes a toolset of it.

    The caller closes the desktop. Where Google wants a confirmation, ADK asks in its own way before it calls anything. ADK
    moves a point that is not on the screen to its edge, and uses the upper left corners of the grid's cells: these are ADK's
    own rules.

    Args:
        desktop: The desktop, or the model session on it.
        url: Returns the URL of the page that the browser shows.
        options: For a `ModelSession`, if none is given: `size`, `settle`, `policy`, `ask`.

    Raises:
        MissingExtra: google-adk is not installed.
    """
    made: DeskComputer = _adk().DeskComputer(_async_model_session(desktop, **options), url)
    return made


def _adk() -> Any:
    return load("deskhand.providers.google.adk", "google-adk")
