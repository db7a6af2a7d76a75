"""Translates an action into the events that carry it out: click, drag, chord, scroll and typing are made here only.

This module owns what an action means in presses and releases, and what is pressed. It is pure:
pauses are events that a backend obeys. What must never appear here: a backend, a sleep, a provider's unit, and
a silent correction; what cannot be done as asked raises before any event exists.

Invariant: every action releases what it pressed, last first, unless pressing is what it is for
(`LeftMouseDown`, `MouseDown`, `PressKeys`).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from deskhand import actions as act
from deskhand._core.chords import parse_keys
from deskhand._core.events import (
    Answer,
    Button,
    ButtonDown,
    ButtonUp,
    Event,
    KeyDown,
    KeyUp,
    Pause,
    PointerMove,
    Press,
    Step,
)
from deskhand._core.geometry import Point, Rect, Size, check_point, check_region
from deskhand._core.keys import char_keysym, is_composed, is_modifier
from deskhand._core.redaction import MASK, Secret
from deskhand.errors import ActionError, UnsupportedAction, Untypable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIXELS_PER_NOTCH = 100
"""Screen pixels of a scroll distance that make one wheel notch, as in OpenAI's guide."""

DEFAULT_NOTCHES = 3
"""Notches of a scroll without a distance or magnitude."""

MAX_NOTCHES = 200
"""The most notches of one scroll; more is a mistake in the unit."""

DEFAULT_WAIT = 1.0
"""Seconds of a wait without a duration."""

CLICK_GAP = 0.05
"""Seconds between the clicks of a double or triple click; toolkits accept up to 0.25 to 0.5."""

# A toolkit starts a drag after some pixels of motion and tracks it by its motion events: a jump from end to end
# counts as a click, or as a drop on what was under the pointer in between.
_DRAG_STEP = 20
_DRAG_STEPS = 60
_DRAG_PACE = 0.004
# How far a pointer must move before its button drags: 8 pixels in GTK and openbox, 10 in Qt, 40 for a link in Chromium.
_THRESHOLDS = (16, 48)
# A drop goes to what the motion before it reached. Chromium enters an element at one motion, asks it at the next, and has its
# answer at the third: the last two pixels are motions of their own.
_DRAG_END = (2, 1)
# Spread out like the notches of a wheel that a hand turns.
_NOTCH_PACE = 0.01

# None: the action has a button of its own.
_CLICKS: dict[type[act.Action], tuple[Button | None, int]] = {
    act.LeftClick: (Button.LEFT, 1),
    act.DoubleClick: (None, 2),
    act.TripleClick: (None, 3),
    act.MiddleClick: (Button.MIDDLE, 1),
    act.RightClick: (Button.RIGHT, 1),
    act.BackClick: (Button.BACK, 1),
    act.ForwardClick: (Button.FORWARD, 1),
}

# The button that scrolls to smaller coordinates, and the one that scrolls to larger ones.
_WHEEL_X = (Button.WHEEL_LEFT, Button.WHEEL_RIGHT)
_WHEEL_Y = (Button.WHEEL_UP, Button.WHEEL_DOWN)

_DIRECTIONS = {"up": (_WHEEL_Y, -1), "down": (_WHEEL_Y, 1), "left": (_WHEEL_X, -1), "right": (_WHEEL_X, 1)}


def translate(action: act.Action, *, size: Size, pointer: Point, dragging: bool = False) -> Sequence[Step]:
    """The events that carry out one action.

    Args:
        action: What to do.
        size: Size of the screen in pixels.
        pointer: Where the pointer is; a drag with one point starts there.
        dragging: A button is pressed already, so that a move drags.

    Returns:
        The events, in order. `TakeScreenshot`, `Zoom` and `CursorPosition` have none: the caller, which has the screen,
        answers them.

    Raises:
        OutOfBounds: A point or region of the action is not on the screen.
        Untypable: The text has characters that no key types.
        ActionError: The scroll is longer than `MAX_NOTCHES`.
        UnsupportedAction: The action is of a class that this module does not know.
    """
    modifiers = [KeyDown(key) for key in parse_keys(names)] if (names := getattr(action, "modifiers", ())) else []
    body = _body(action, size, pointer, dragging=dragging)
    return [*modifiers, *body, *release(modifiers)] if modifiers else body


def _body(action: act.Action, size: Size, pointer: Point, *, dragging: bool) -> Sequence[Step]:
    if isinstance(action, act.Drag):
        return _drag(action.path, Button[action.button.upper()], size, pointer)
    if isinstance(action, act.Zoom):
        check_region(Rect(*action.region), size)
    # A position is reached first; the rest of the action happens where the pointer then is.
    xy = getattr(action, "xy", None)
    if xy is None:
        return _in_place(action)
    check_point(xy, size)
    if dragging and isinstance(action, act.Move | act.LeftMouseUp | act.MouseUp):
        return [*_dragged([pointer, xy]), *_in_place(action)]
    # What appears under a pointer (a menu that opens) must be there before anything is clicked.
    hover = [Answer()] if isinstance(action, act.Move) else []
    return [PointerMove(*xy), *hover, *_in_place(action)]


def _in_place(action: act.Action) -> Sequence[Step]:
    if type(action) in _CLICKS:
        button, count = _CLICKS[type(action)]
        return _clicks(button or _button(action), count)
    match action:
        case act.LeftMouseDown() | act.MouseDown():
            return [ButtonDown(_button(action))]
        case act.LeftMouseUp() | act.MouseUp():
            return [ButtonUp(_button(action))]
        case act.Scroll():
            return _scroll(action)
        case act.Move() | act.TakeScreenshot() | act.Zoom() | act.CursorPosition():
            return []
        case _:
            return _keys_and_time(action)


def _button(action: act.Action) -> Button:
    return Button[getattr(action, "button", "left").upper()]


def _keys_and_time(action: act.Action) -> Sequence[Step]:
    match action:
        case act.KeyPress(keys=keys, repeat=repeat):
            return _chord(parse_keys(keys), repeat)
        case act.KeyHold(keys=keys, duration=duration):
            downs = [KeyDown(key) for key in parse_keys(keys)]
            return [*downs, Pause(duration), *release(downs)]
        case act.PressKeys(keys=keys):
            return [KeyDown(key) for key in parse_keys(keys)]
        case act.ReleaseKeys(keys=keys):
            return [KeyUp(key) for key in reversed(parse_keys(keys))]
        case act.Type(text=text, paste=paste):
            return _type_secret(text, paste=paste) if isinstance(text, Secret) else _type(text, paste=paste)
        case act.Wait(duration=duration):
            return [Pause(DEFAULT_WAIT if duration is None else duration)]
        case _:
            raise UnsupportedAction("translate", action.type or type(action).__name__)


def _clicks(button: Button, count: int) -> list[Event]:
    events: list[Event] = []
    for number in range(count):
        if number:
            events.append(Pause(CLICK_GAP))
        events += [ButtonDown(button), ButtonUp(button)]
    return events


def _drag(path: Sequence[tuple[int, int]], button: Button, size: Size, pointer: Point) -> list[Step]:
    for point in path:
        check_point(point, size)
    if len(path) == 1:
        check_point(pointer, size)
        path = [pointer, *path]
        events: list[Step] = [ButtonDown(button)]
    else:
        events = [PointerMove(*path[0]), ButtonDown(button)]
    return [*events, *_dragged(path), ButtonUp(button)]


def _dragged(path: Sequence[tuple[int, int]]) -> list[Step]:
    """Move along a path with a button pressed, so that each of its points is taken."""
    # The application must have taken the press before the pointer moves.
    events: list[Step] = [Answer()]
    last = len(path) - 2
    for index, (start, end) in enumerate(pairwise(path)):
        stops = _THRESHOLDS if index == 0 else ()
        for (x, y), stop in _steps(start, end, stops, _DRAG_END if index == last else ()):
            events += [PointerMove(x, y), Answer() if stop else Pause(_DRAG_PACE)]
    return events


def _steps(
    start: tuple[int, int], end: tuple[int, int], stops: Sequence[int], rests: Sequence[int]
) -> list[tuple[tuple[int, int], bool]]:
    """The points to visit after `start`, then `end`, and whether to stop there.

    They are at most `_DRAG_STEP` pixels apart in up to `_DRAG_STEPS`. Stops are made at the distances `stops` from `start`, at
    the distances `rests` before the end, along the longer axis, and at the end.
    """
    (x, y), (end_x, end_y) = start, end
    whole = math.dist(start, end)
    count = min(_DRAG_STEPS, math.ceil(whole / _DRAG_STEP))
    at = {whole * step / count: False for step in range(1, count)}
    at |= {float(stop): True for stop in stops if stop < whole}
    longer = max(abs(end_x - x), abs(end_y - y))
    at |= {whole * (1 - rest / longer): True for rest in rests if rest < longer}
    points: dict[tuple[int, int], bool] = {}
    for distance, stop in sorted(at.items()):
        share = distance / whole
        point = x + round((end_x - x) * share), y + round((end_y - y) * share)
        if point not in {start, end}:
            points[point] = stop or points.get(point, False)
    # The end is visited even where it is the start: a path visits every point it names.
    return [*points.items(), (end, True)]


def _scroll(action: act.Scroll) -> list[Event]:
    if action.distance_xy is not None:
        dx, dy = action.distance_xy
        wanted = [(_WHEEL_Y, dy / PIXELS_PER_NOTCH), (_WHEEL_X, dx / PIXELS_PER_NOTCH)]
    else:
        axis, sign = _DIRECTIONS[action.direction or "down"]
        magnitude = DEFAULT_NOTCHES if action.magnitude is None else action.magnitude
        wanted = [(axis, sign * magnitude)]
    turns = [(axis[amount > 0], max(1, round(abs(amount)))) for axis, amount in wanted if amount]
    total = sum(count for _, count in turns)
    if total > MAX_NOTCHES:
        raise ActionError(
            f"scroll: {total} notches are more than {MAX_NOTCHES}: magnitude is in wheel notches, distance_xy in "
            f"pixels ({PIXELS_PER_NOTCH} to a notch); use several actions if it is meant"
        )
    events: list[Event] = []
    for button, count in turns:
        for _ in range(count):
            if events:
                events.append(Pause(_NOTCH_PACE))
            events += [ButtonDown(button), ButtonUp(button)]
    return events


def _chord(keys: tuple[int, ...], repeat: int) -> list[Event]:
    leading = next((position for position, key in enumerate(keys) if not is_modifier(key)), 0)
    stay = [KeyDown(key) for key in keys[:leading]]
    tapped = [KeyDown(key) for key in keys[leading:]]
    return [*stay, *([*tapped, *release(tapped)] * repeat), *release(stay)]


def _type(text: str, *, paste: bool) -> list[Event]:
    keysyms = [(position, char, char_keysym(char)) for position, char in enumerate(text)]
    untypable = [(position, char) for position, char, keysym in keysyms if keysym is None]
    if untypable:
        raise Untypable(untypable, hint="no key types them; remove them from the text")
    # By the clipboard they arrive as they are.
    composed = [] if paste else [(position, char) for position, char in enumerate(text) if is_composed(char)]
    if composed:
        raise Untypable(composed, hint="applications take their keys for a compose sequence; use paste=True")
    events: list[Event] = []
    for position, char, keysym in keysyms:
        # Of "\r\n" the line feed alone is Return.
        if keysym is not None and not (char == "\r" and text[position + 1 : position + 2] == "\n"):
            events += [KeyDown(keysym), KeyUp(keysym)]
    return events


def _type_secret(secret: Secret, *, paste: bool) -> list[Event]:
    try:
        return SecretEvents(_type(secret.reveal(), paste=paste))
    except Untypable as error:
        count, hint = len(error.characters), "no key types them"
    # Outside of the handler: otherwise its frames, with the text in them, would stay attached to this error.
    raise Untypable.hidden(count, hint)


class SecretEvents(list[Event]):
    """The events that type a secret; printing them shows nothing of it."""

    def __repr__(self) -> str:
        return MASK


class PressedKeys:
    """The keys and buttons held pressed, in the order in which they were pressed.

    The sender of a list of events calls `expect` with it before, and `note` for each event after it has been
    sent. Then, after a failure in the middle, `release_events` frees at least what is really held; releasing
    what is not held does no harm.
    """

    __slots__ = ("_pressed",)

    def __init__(self) -> None:
        """Start with nothing pressed."""
        self._pressed: dict[Press, None] = {}

    @property
    def pressed(self) -> tuple[Press, ...]:
        """The presses not yet released, oldest first."""
        return tuple(self._pressed)

    def expect(self, events: Iterable[Step]) -> None:
        """Treat every press among these events as done, and no release."""
        for event in events:
            if isinstance(event, ButtonDown | KeyDown):
                self.note(event)

    def note(self, event: Step) -> None:
        """Take an event into account; a second press of what is pressed keeps its first place."""
        match event:
            case ButtonDown() | KeyDown():
                self._pressed.setdefault(event)
            case ButtonUp(button=button):
                self._pressed.pop(ButtonDown(button), None)
            case KeyUp(keysym=keysym):
                self._pressed.pop(KeyDown(keysym), None)
            case _:
                pass

    def release_events(self) -> list[Event]:
        """The releases of all that is pressed, newest first; it stays recorded until those are noted."""
        return release(self._pressed)

    def clear(self) -> None:
        """Forget everything, as after the other side has gone."""
        self._pressed.clear()


def held(events: Iterable[Step]) -> list[Press]:
    """What is still pressed after these events, oldest first, if nothing was before."""
    keys = PressedKeys()
    for event in events:
        keys.note(event)
    return list(keys.pressed)


def release(pressed: Iterable[Press]) -> list[Event]:
    """The releases of these presses, last first."""
    return [
        ButtonUp(press.button) if isinstance(press, ButtonDown) else KeyUp(press.keysym)
        for press in reversed(list(pressed))
    ]
