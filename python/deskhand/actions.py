"""What a caller or a model may ask for: the vocabulary of actions.

The seventeen normalized actions with their type literals and field names, and what providers send beyond them: modifiers
held during a pointer action, the button of a double or triple click, key repeat, keys and buttons pressed or released on
their own, zoom and the cursor's position. This module owns their fields, validation and dictionary form. What must never
appear here: an event or how an action is carried out (`deskhand.desktop.translate`), a provider's spelling
(`deskhand.providers`), and a screen's size: whether a point is on the screen is for `translate` to say.

Every action is frozen, hashable and validated on construction; what is wrong raises `ActionError`. Coordinates
are screen pixels: integers, or floats with an integral value; ``xy=None`` means where the pointer is, unless ``element`` names
an element that `Desktop.elements` found, whose middle it is when the action's turn comes.
``modifiers`` are key names held around the whole action. Lists are accepted where tuples are stored.

    LeftMouseDown((10, 20))            LeftMouseUp((90, 20))             LeftClick((400, 300))
    DoubleClick((400, 300))            TripleClick()                     MiddleClick((5, 5))
    RightClick((5, 5))                 BackClick()                       ForwardClick()
    Drag([(10, 10), (90, 10)])         KeyPress(["ctrl", "s"])           KeyHold(["w"], duration=1.5)
    Move((640, 400))                   TakeScreenshot()                  Wait(2)
    Scroll((640, 400), direction="down", magnitude=3)                    Type("naïve ☕ text")

    LeftClick((5, 5), modifiers=["ctrl"])                                KeyPress(["Tab"], repeat=4)
    PressKeys(["shift"])               ReleaseKeys(["shift"])            MouseDown("right", (5, 5))
    LeftClick(element="e12")           Scroll(element="e7", direction="down")        Drag(element="e12", to="e14")
    MouseUp("right")                   Zoom((0, 0, 200, 100))            CursorPosition()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol

from deskhand._core.fields import (
    Check,
    check_element,
    check_flag,
    check_keys,
    check_modifiers,
    check_number,
    check_one_of,
    check_path,
    check_rect,
    check_repeat,
    check_seconds,
    check_text,
    check_xy,
    explained,
)
from deskhand._core.redaction import MASK, Secret
from deskhand.errors import ActionError, Untypable, nearest, shown

__all__ = [
    "ACTIONS",
    "Action",
    "BackClick",
    "CarriesAction",
    "CursorPosition",
    "DoubleClick",
    "Drag",
    "ForwardClick",
    "KeyHold",
    "KeyPress",
    "LeftClick",
    "LeftMouseDown",
    "LeftMouseUp",
    "MiddleClick",
    "MouseDown",
    "MouseUp",
    "Move",
    "PressKeys",
    "ReleaseKeys",
    "RightClick",
    "Scroll",
    "TakeScreenshot",
    "TripleClick",
    "Type",
    "Wait",
    "Zoom",
    "action_of",
    "at_points",
    "elements_of",
]


BUTTONS = ("left", "middle", "right", "back", "forward")
DIRECTIONS = ("up", "down", "left", "right")

_MASKED = Secret(MASK)
_LONGEST_TYPE = 60


# Every call of a model makes actions, nearly always of plain integers, tuples and key names. These are checked by type:
# asking an abstract class or a protocol takes ten times as long.


def _as(check: Check, *, key: str | None = None, extra: bool = False) -> dict[str, Any]:
    """The metadata of a field: its check, its dictionary key, and whether the normalized actions lack it."""
    return {"check": check, "key": key, "extra": extra}


def _key_of(spec: Field[Any]) -> str:
    return spec.metadata["key"] or spec.name


_SPECIFICATIONS: dict[type, tuple[tuple[str, str, Any, Check], ...]] = {}


def _specifications(action: type[Action]) -> tuple[tuple[str, str, Any, Check], ...]:
    """Name, dictionary key, default and check of each field: cached, since every call of a model makes actions."""
    found = _SPECIFICATIONS.get(action)
    if found is None:
        found = tuple((spec.name, _key_of(spec), spec.default, spec.metadata["check"]) for spec in fields(action))
        _SPECIFICATIONS[action] = found
    return found


def _plain(value: object) -> Any:
    if isinstance(value, Secret):
        return MASK
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Action:
    """The base of all actions.

    Attributes:
        type: The literal that names the action in its dictionary form.
    """

    type: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Validate every field and store it in its one form."""
        for name, key, default, check in _specifications(type(self)):
            value = getattr(self, name)
            # A default needs no check; None is a default only where it is allowed: xy, duration and the like.
            if value is default:
                continue
            try:
                object.__setattr__(self, name, check(value))
            except Untypable:
                raise
            except ActionError as error:
                raise ActionError(f"{self.type}: {key}: {error.message}") from None
        if getattr(self, "element", None) is not None:
            if getattr(self, "xy", None) is not None:
                raise ActionError(f"{self.type}: its place is a point or an element, not both")
        elif type(self) is Move and self.xy is None:
            raise ActionError("move: xy missing")
        if type(self) is Drag and not self.path and self.to is None:
            raise ActionError("drag: xy missing: give the points to visit, or the element to drag to")

    def to_dict(self) -> dict[str, object]:
        """The action as plain JSON data: dict, list, str, int, float, bool and None.

        Fields that the seventeen normalized actions do not have appear only when they are not at their default.
        """
        plain: dict[str, Any] = {"type": self.type}
        for spec in fields(self):
            value = getattr(self, spec.name)
            if not (spec.metadata["extra"] and value == spec.default):
                plain[_key_of(spec)] = _plain(value)
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, object]) -> Action:
        """The action that a dictionary describes, the inverse of `to_dict`.

        Args:
            plain: ``type`` and the action's fields; None is absent. Fields of other actions, or other names of a place, raise.

        Raises:
            ActionError: The type is missing or unknown, a required field is missing, or a value is wrong.
        """
        if not isinstance(plain, Mapping):
            raise ActionError(f"an action is a dictionary with a type, not {shown(plain)}")
        name = plain.get("type")
        action = ACTIONS.get(name) if isinstance(name, str) else None
        if action is None:
            meant = did_you_mean(name) if isinstance(name, str) else ""
            raise ActionError(f"unknown action type {shown(name)}: {meant}use one of {', '.join(sorted(ACTIONS))}")
        given = {spec.name: plain.get(_key_of(spec)) for spec in fields(action)}
        missing = [_key_of(spec) for spec in fields(action) if spec.default is MISSING and given[spec.name] is None]
        if missing:
            raise ActionError(f"{name}: {', '.join(missing)} missing")
        own = [_key_of(spec) for spec in fields(action)]
        if more := sorted(key for key in _KEYS & plain.keys() if plain[key] and key not in own):
            raise ActionError(f"{name} takes no {', '.join(more)}")
        strays = sorted(key for key in _OTHER_PLACES & plain.keys() if plain[key] is not None)
        if strays and given.get("xy", ...) is None:
            raise ActionError(f"{name}: its place is xy, as in 'xy': [400, 300], and not {', '.join(strays)}")
        return action(**{field_name: value for field_name, value in given.items() if value is not None})


class CarriesAction(Protocol):
    """An object that is not an action itself, but has one, such as the tool calls of `deskhand.execution.tool_calls`."""

    @property
    def action(self) -> Action:
        """The action. Raises `ActionError` if it is wrong, or is not to be carried out here."""
        ...


def action_of(value: Action | CarriesAction) -> Action:
    """Return the action itself, or the one that an object carries.

    Raises:
        ActionError: The value is not an action and carries none, or one that is wrong.
    """
    found = value if isinstance(value, Action) else getattr(value, "action", None)
    if not isinstance(found, Action):
        raise ActionError(f"perform takes actions, not {shown(value)}{_made_from(value)}")
    return found


def _made_from(value: object) -> str:
    """How to make actions of what was given instead, where that is plain."""
    if isinstance(value, Iterator) or (
        isinstance(value, list | tuple | set) and all(isinstance(item, Action) for item in value)
    ):
        return ": unpack them with *, as in perform(*actions)"
    if isinstance(value, type) and issubclass(value, Action):
        return f": make one, as in {value.__name__}(...)"
    if isinstance(value, Mapping):
        return ": make one of a dictionary with Action.from_dict"
    if isinstance(value, str):
        return f": write {ACTIONS[value].__name__}(...)" if value in ACTIONS else ": a text is typed with Type(...)"
    return ""


def did_you_mean(name: str) -> str:
    """A question with the types that a misspelt type may mean, with a blank after it; empty if none is near."""
    squeezed = name[:_LONGEST_TYPE].replace("_", "").replace("-", "").lower()
    meant = [_CALLED[called] for called in nearest(squeezed, _CALLED)]
    if squeezed in _CALLED:
        meant = [_CALLED[squeezed]]
    return f"did you mean {' or '.join(map(repr, dict.fromkeys(meant)))}? " if meant else ""


# Other vocabularies' names of a place.
_OTHER_PLACES = {"x", "y", "coordinate", "coordinates", "point", "pos", "position"}


def _element() -> Any:
    """The field for an element to act on instead of a point: its reference, as `Desktop.elements` gives it."""
    return field(default=None, kw_only=True, metadata=_as(check_element, extra=True))


def elements_of(action: Action) -> tuple[str, ...]:
    """The references of the elements that an action is done at: one, or where a drag begins and ends."""
    refs = getattr(action, "element", None), getattr(action, "to", None)
    return tuple(ref for ref in refs if ref is not None)


def at_points(action: Action, points: Sequence[tuple[int, int]]) -> Action:
    """An action at these points, one for each of `elements_of` it."""
    if not points:
        return action
    if not isinstance(action, Drag):
        return replace(action, element=None, xy=points[0])  # type: ignore[call-arg] # one that has an element has a place
    begin = points[:1] if action.element is not None else ()
    end = points[-1:] if action.to is not None else ()
    return replace(action, path=(*begin, *action.path, *end), element=None, to=None)


# An action that has no field of its own is no dataclass of its own either: each takes half a millisecond to be made.


@dataclass(frozen=True, slots=True)
class _AtPointer(Action):
    xy: tuple[int, int] | None = field(default=None, metadata=_as(check_xy))
    element: str | None = _element()
    modifiers: Sequence[str] = field(default=(), kw_only=True, metadata=_as(check_modifiers, extra=True))


@dataclass(frozen=True, slots=True)
class _ButtonAtPointer(Action):
    button: str = field(metadata=_as(check_one_of(BUTTONS)))
    xy: tuple[int, int] | None = field(default=None, metadata=_as(check_xy))
    element: str | None = _element()
    modifiers: Sequence[str] = field(default=(), kw_only=True, metadata=_as(check_modifiers, extra=True))


@dataclass(frozen=True, slots=True)
class _Clicks(_AtPointer):
    button: str = field(default="left", kw_only=True, metadata=_as(check_one_of(BUTTONS), extra=True))


class LeftMouseDown(_AtPointer):
    """Press the left button and leave it pressed.

    The press begins a new click: this waits as `LeftClick` does. It does not wait after another press by `LeftMouseDown` or
    `MouseDown` that the pointer has not left since, so that a caller can make double clicks of its own timing.
    """

    __slots__ = ()
    type: ClassVar[str] = "left_mouse_down"


class LeftMouseUp(_AtPointer):
    """Release the left button."""

    __slots__ = ()
    type: ClassVar[str] = "left_mouse_up"


class LeftClick(_AtPointer):
    """Click the left button, so that it counts as one click.

    If that button was pressed at that place just before, this waits up to 0.55 s first, 0.85 s after a double click.
    """

    __slots__ = ()
    type: ClassVar[str] = "left_mouse_click"


class DoubleClick(_Clicks):
    """Click a button twice, fast enough to count as a double click; earlier clicks there do not count.

    The left button, unless ``button`` is another. Soon after a press of it at that place, this waits up to 0.85 s first.
    """

    __slots__ = ()
    type: ClassVar[str] = "left_mouse_double_click"


class TripleClick(_Clicks):
    """Click a button three times, fast enough to count as a triple click.

    ``button`` and waits are those of `DoubleClick`.
    """

    __slots__ = ()
    type: ClassVar[str] = "left_mouse_triple_click"


class MiddleClick(_AtPointer):
    """Click the middle button."""

    __slots__ = ()
    type: ClassVar[str] = "middle_click"


class RightClick(_AtPointer):
    """Click the right button."""

    __slots__ = ()
    type: ClassVar[str] = "right_click"


class BackClick(_AtPointer):
    """Click the back button at the side of the mouse (button 8)."""

    __slots__ = ()
    type: ClassVar[str] = "back_click"


class ForwardClick(_AtPointer):
    """Click the forward button at the side of the mouse (button 9)."""

    __slots__ = ()
    type: ClassVar[str] = "forward_click"


class MouseDown(_ButtonAtPointer):
    """Press a button and leave it pressed: "left", "middle", "right", "back" or "forward".

    It waits as `LeftMouseDown` does.
    """

    __slots__ = ()
    type: ClassVar[str] = "mouse_down"


class MouseUp(_ButtonAtPointer):
    """Release a button: "left", "middle", "right", "back" or "forward"."""

    __slots__ = ()
    type: ClassVar[str] = "mouse_up"


@dataclass(frozen=True, slots=True)
class Drag(Action):
    """Press a button at the first point, visit every point, release at the last.

    A path of one point is dragged to from where the pointer is. In the dictionary form the path is ``xy``. The middle of
    ``element`` comes before the path, that of ``to`` after it; both are elements that show at once.

    The call waits for the application under the pointer after the press, at each point and before the release: 0.03 to 0.25 s
    each, longer while it is at work (`Observation.unanswered`).
    """

    type: ClassVar[str] = "drag"
    path: Sequence[tuple[int, int]] = field(default=(), metadata=_as(check_path, key="xy", extra=True))
    button: str = field(default="left", metadata=_as(check_one_of(BUTTONS), extra=True))
    element: str | None = _element()
    to: str | None = _element()
    modifiers: Sequence[str] = field(default=(), kw_only=True, metadata=_as(check_modifiers, extra=True))


@dataclass(frozen=True, slots=True)
class Move(Action):
    """Put the pointer on a point; while a button is pressed, drag there.

    The rest of the call waits until the screen has answered, for about 0.05 s if it does not.
    """

    type: ClassVar[str] = "move"
    xy: tuple[int, int] | None = field(default=None, metadata=_as(check_xy))
    element: str | None = _element()
    modifiers: Sequence[str] = field(default=(), kw_only=True, metadata=_as(check_modifiers, extra=True))


@dataclass(frozen=True, slots=True)
class Scroll(Action):
    """Turn the wheel, at ``xy`` or where the pointer is.

    * ``distance_xy`` is in screen pixels, positive right and down; it becomes wheel notches of
      `deskhand.desktop.translate.PIXELS_PER_NOTCH` pixels, at least one where it is not zero.
    * ``magnitude`` is in wheel notches along ``direction``; negative is against it. Without a direction it is
      down, or up when negative. It is rounded to whole notches, at least one where it is not zero.
    * Neither: three notches. Both: ``distance_xy`` wins.

    In the dictionary form ``xy`` is ``start_xy``.
    """

    type: ClassVar[str] = "scroll"
    xy: tuple[int, int] | None = field(default=None, metadata=_as(check_xy, key="start_xy"))
    element: str | None = _element()
    distance_xy: tuple[int, int] | None = field(default=None, metadata=_as(check_xy))
    magnitude: float | None = field(default=None, metadata=_as(check_number))
    direction: str | None = field(default=None, metadata=_as(check_one_of(DIRECTIONS)))
    modifiers: Sequence[str] = field(default=(), kw_only=True, metadata=_as(check_modifiers, extra=True))


@dataclass(frozen=True, slots=True)
class KeyPress(Action):
    """Press keys together and release them.

    All names are at `deskhand._core.chords.parse_keys`. With ``repeat`` (1...100) the modifiers it begins with stay down
    and the rest is pressed that many times.
    """

    type: ClassVar[str] = "keypress"
    keys: Sequence[str] = field(metadata=_as(check_keys))
    repeat: int = field(default=1, kw_only=True, metadata=_as(check_repeat, extra=True))


@dataclass(frozen=True, slots=True)
class KeyHold(Action):
    """Press a chord, hold it for ``duration`` seconds (0...3600), release it."""

    type: ClassVar[str] = "keypress_hold"
    keys: Sequence[str] = field(metadata=_as(check_keys))
    duration: float = field(metadata=_as(check_seconds))


@dataclass(frozen=True, slots=True)
class PressKeys(Action):
    """Press keys and leave them pressed."""

    type: ClassVar[str] = "key_down"
    keys: Sequence[str] = field(metadata=_as(check_keys))


@dataclass(frozen=True, slots=True)
class ReleaseKeys(Action):
    """Release keys, the last one first."""

    type: ClassVar[str] = "key_up"
    keys: Sequence[str] = field(metadata=_as(check_keys))


@dataclass(frozen=True, slots=True)
class Type(Action):
    r"""Type a text where the focus is: any Unicode text; ``\n`` and ``\r\n`` are Return, ``\t`` is Tab.

    With ``paste`` the clipboard may be used instead of keys. The driver serves its former content afterwards, for as long as
    the desktop is open; `Observation.clipboard_lost` names the formats that are lost.

    A text that must stay secret is given as a `Secret`, or with ``secret=True``, which makes one of it (the caller still has to
    forget the string that it gave). It is in no ``repr``, error, log or dictionary form: there it is ``***``, of
    which `from_dict` makes no action again.
    """

    type: ClassVar[str] = "type"
    text: str | Secret = field(metadata=_as(check_text))
    paste: bool = field(default=False, kw_only=True, metadata=_as(check_flag, extra=True))
    secret: bool = field(default=False, kw_only=True, metadata=_as(check_flag, extra=True))

    def __init__(self, text: str | Secret, *, paste: bool = False, secret: bool = False) -> None:
        """See the class; written out so that no frame of this package holds a secret's text when a value is wrong."""
        if secret is not False and not isinstance(text, Secret):
            text = Secret(text)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "paste", paste)
        object.__setattr__(self, "secret", secret if secret is not False else isinstance(text, Secret))
        if secret is True and text == _MASKED:
            raise ActionError("type: text: the dictionary form of a secret does not have it: give the secret itself")
        self.__post_init__()


@dataclass(frozen=True, slots=True)
class Wait(Action):
    """Let ``duration`` seconds pass (0...3600); 1 second if it is not given."""

    type: ClassVar[str] = "wait"
    duration: float | None = field(default=None, metadata=_as(check_seconds))


class TakeScreenshot(Action):
    """Look at the whole screen."""

    __slots__ = ()
    type: ClassVar[str] = "screenshot"


@dataclass(frozen=True, slots=True)
class Zoom(Action):
    """Look at a region of the screen, given as (x, y, width, height), at full resolution."""

    type: ClassVar[str] = "zoom"
    region: tuple[int, int, int, int] = field(metadata=_as(check_rect))


class CursorPosition(Action):
    """Ask where the pointer is."""

    __slots__ = ()
    type: ClassVar[str] = "cursor_position"


_ALL: tuple[type[Action], ...] = (
    LeftMouseDown,
    LeftMouseUp,
    LeftClick,
    DoubleClick,
    TripleClick,
    MiddleClick,
    RightClick,
    BackClick,
    ForwardClick,
    Drag,
    KeyPress,
    KeyHold,
    Move,
    TakeScreenshot,
    Scroll,
    Type,
    Wait,
    MouseDown,
    MouseUp,
    PressKeys,
    ReleaseKeys,
    Zoom,
    CursorPosition,
)

LOOKING = (TakeScreenshot, Zoom, CursorPosition)
"""The actions that only look: nothing is sent for them."""


for _kind in (_AtPointer, _Clicks, Move):
    _kind.__init__ = explained(_kind.__init__)  # type: ignore[method-assign] # it takes the same

_KEYS = frozenset(_key_of(spec) for action in _ALL for spec in fields(action))
ACTIONS: Mapping[str, type[Action]] = {action.type: action for action in _ALL}
"""Every action by its type literal, the seventeen normalized ones first."""
# A type may also be written as its class is called; "click" and "key" are other vocabularies' names.
_CALLED: Mapping[str, str] = {
    **{name.replace("_", ""): name for name in ACTIONS},
    **{action.__name__.lower(): name for name, action in ACTIONS.items()},
    "click": LeftClick.type,
    "key": KeyPress.type,
    "hotkey": KeyPress.type,
}
