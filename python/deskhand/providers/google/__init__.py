"""Google: Gemini's computer use, through google-genai (`models` and `interactions`) and ADK.

    tools=[google.declare(desktop)]                  what a request lists
    google.run(desktop, part.function_call)          one call, answered
    google.answer(desktop, response)                 all calls of a turn, as the Content to send back
    ComputerUseToolset(computer=google.adk_computer(desktop))

This module owns the way from payloads, or the SDK's objects, to a desktop and back. What must never appear here: a field of a
payload (see `wire`), an SDK that is imported before it is asked for.

What Google wants confirmed is asked about as the seat's policy has it (`ask`). A call that nobody confirms is refused, and its
answer says `denied`. Google's API may then refuse the whole conversation (it wants `safety_acknowledgement`), and Google's own
agent ends it there: a loop should, too.

`url` in an answer is empty: only a browser's own protocol tells which page it shows. Who has that gives a function as `url`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_callable, expect_several, expect_texts
from deskhand._core.extras import load
from deskhand.errors import ActionError
from deskhand.providers.google.wire import (
    FUNCTIONS,
    UNKNOWN_URL,
    declaration,
    decode,
    decode_result,
    encode,
    encode_call,
    on_grid,
    unread,
)
from deskhand.providers.session import AsyncSeat, Seat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from google.genai.types import Content, GenerateContentResponse

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.google.adk import DeskComputer
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.values import Result

PROVIDER = "google"
"""What policies and their logs are told of whose calls these are."""

__all__ = [
    "FUNCTIONS",
    "PROVIDER",
    "adk_computer",
    "answer",
    "answer_async",
    "declare",
    "decode",
    "decode_result",
    "encode",
    "encode_call",
    "on_grid",
    "run",
    "run_async",
    "run_turn",
    "run_turn_async",
    "thin",
]


def declare(_desktop: AnyDesktop | None = None, environment: str = "desktop", **options: Any) -> dict[str, Any]:
    """The tool as a request lists it, for `GenerateContentConfig(tools=[...])` or, with `interactions`, `interactions.create`.

    Args:
        _desktop: Nothing is asked of it: the model's grid is the same for every screen.
        environment: `desktop`, or `browser`, which has functions to navigate with besides; models before Gemini 3.5 know only
            the latter.
        options: `excluded`, `detect_injection`, `disabled_policies`, `interactions`; see `wire.declaration`. What is excluded
            here should be excluded of `run` too, which then refuses it.

    Raises:
        ActionError: There is no such environment.
    """
    return declaration(environment, **options)


def run(
    desktop: Desktop | Seat,
    payload: Any,
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Carry out one function call, and answer it.

    Args:
        desktop: The desktop, or the seat at it that keeps what the model has seen.
        payload: A function call, a part with one in it or a `function_call` step; a dictionary or the SDK's object.
        excluded: Functions that are refused, whatever the model says.
        url: Tells which page the browser shows, called after the call was carried out.
        options: Of a `Seat`, where none is given: `size`, `settle`, `policy`, `ask`.

    Returns:
        The answer in the shape of the call. What could not be read, done or allowed is told in it, with the screen as it is.

    Raises:
        DesktopLost: There is no desktop any more.
    """
    (answered,) = run_turn(desktop, [payload], excluded=excluded, url=url, **options)
    return answered


def run_turn(
    desktop: Desktop | Seat,
    payloads: Iterable[Any],
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Carry out the function calls of one turn in order, and answer each of them.

    As the actions of one `perform`, they are stopped by the first that fails: a text must not go to where the click before it
    did not arrive. The others are answered as not carried out. For the rest see `run`.
    """
    seat = Seat.of(desktop, **{"provider": PROVIDER, **options})
    if url is not None:
        expect_callable("run_turn: url", url)
    excluded = expect_texts("run_turn: excluded", excluded)
    answers: list[dict[str, Any]] = []
    failed = False
    for payload in map(_plain, expect_several("run_turn: payloads", payloads)):
        result = _result(seat, payload, excluded, stopped=failed)
        failed = failed or result.error is not None
        answers.append(encode(result, url=UNKNOWN_URL if url is None else url()))
    return answers


async def run_async(desktop: AnyDesktop, payload: Any, **options: Any) -> dict[str, Any]:
    """As `run`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    (answered,) = await run_turn_async(desktop, [payload], **options)
    return answered


async def run_turn_async(
    desktop: AnyDesktop,
    payloads: Iterable[Any],
    *,
    excluded: Collection[str] = (),
    url: Callable[[], str] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """As `run_turn`, as a coroutine; cancelling it stops the desktop at its next safe point."""
    seat = AsyncSeat.of(desktop, **{"provider": PROVIDER, **options})
    given = expect_several("run_turn: payloads", payloads)
    return await seat.run(lambda inner: run_turn(inner, given, excluded=excluded, url=url))


def _result(seat: Seat, payload: Any, excluded: Collection[str], *, stopped: bool) -> Result:
    call = unread(payload, seat.viewport)
    if stopped:
        return seat.refused(call, ActionError("not carried out: an earlier call of this turn failed"))
    if call.name in excluded:
        return seat.refused(call, ActionError(f"{call.name} is excluded from this conversation: use another function"))
    try:
        read = decode(payload, seat.viewport)
    except ActionError as error:
        return seat.refused(call, error)
    return seat.carry_out(read)


def _plain(payload: Any) -> Any:
    """The dictionary of one of the SDK's objects, anything else as it is."""
    dump = getattr(payload, "model_dump", None)
    return payload if dump is None else dump(mode="json", exclude_none=True)


def _sdk() -> Any:
    return load("deskhand.providers.google.sdk", "google")


def answer(
    desktop: Desktop | Seat, turn: GenerateContentResponse | Content | Mapping[str, Any], **options: Any
) -> Content | None:
    """Carry out all function calls of a model's turn.

    For loops without functions of their own; those tell by `FUNCTIONS` whose a call is, and give ours to `run`.

    Args:
        desktop: The desktop, or the seat at it.
        turn: What `generate_content` returned, or the `Content` of it; the SDK's object, or the JSON of it.
        options: See `run`.

    Returns:
        The `google.genai.types.Content` to send back, or None where the model called nothing.

    Raises:
        ActionError: The turn is neither.
        MissingExtra: google-genai is not installed.
        DesktopLost: There is no desktop any more.
    """
    sdk = _sdk()
    calls = sdk.calls_of(turn)
    return sdk.content_of(run_turn(desktop, calls, **options)) if calls else None


async def answer_async(
    desktop: AnyDesktop, turn: GenerateContentResponse | Content | Mapping[str, Any], **options: Any
) -> Content | None:
    """As `answer`, as a coroutine."""
    sdk = _sdk()
    calls = sdk.calls_of(turn)
    return sdk.content_of(await run_turn_async(desktop, calls, **options)) if calls else None


def thin(contents: Iterable[object], keep: int = 3) -> None:
    """Drop the pictures of all but the last answers from a conversation, in place; texts and thought signatures stay.

    Args:
        contents: What is sent to `generate_content`.
        keep: Of how many of our turns the pictures stay; three, as in Google's own agent.
    """
    _sdk().thin(contents, keep)


def adk_computer(desktop: AnyDesktop, *, url: Callable[[], str] | None = None, **options: Any) -> DeskComputer:
    """The desktop as ADK's `ComputerUseToolset` wants it: a `BaseComputer` with every function, those of Gemini 3.5 too.

    Who made the desktop closes it. What Google wants confirmed, ADK asks about in its own way, and calls nothing until then. A
    point that is not on the screen is moved to its edge by ADK, and it takes the upper left corners of the grid's cells: these
    are ADK's own rules.

    Args:
        desktop: The desktop, or the seat at it.
        url: Tells which page the browser shows.
        options: Of a `Seat`, where none is given: `size`, `settle`, `policy`, `ask`.

    Raises:
        MissingExtra: google-adk is not installed.
    """
    seat = AsyncSeat.of(desktop, **{"provider": PROVIDER, **options})
    made: DeskComputer = load("deskhand.providers.google.adk", "google-adk").DeskComputer(seat, url)
    return made
