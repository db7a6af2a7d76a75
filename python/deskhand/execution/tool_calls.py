"""Tool calls as an agent runtime carries them: calls of functions, and computer actions with their environment.

`AIToolCall` is a call of a function by its name. The `CUAction` family has one class for each of the seventeen normalized
actions, with an `environment`, an `environment_variable` and a `call_id` before the action's own fields. `Desktop.perform`
takes either, except where `requires_local_execution` is False: a call that the provider carries out itself is refused.
Fields are not checked here, and the meaning of actions is not known.

    >>> call = CUScroll("browser", page, "call_7", start_xy=(640, 400), direction="down", magnitude=3)
    >>> desktop.perform(call)
    >>> AIToolCall("left_mouse_click", '{"xy": [10, 20]}').action
    LeftClick(xy=(10, 20), modifiers=())

`deskhand.actions.Scroll` describes how far a scroll goes: a distance in screen pixels, or a magnitude in wheel notches along
a direction, or nothing, which means three notches down; a distance wins over a magnitude.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from typing import Any, Literal, TypeAlias, get_args

from deskhand._core.arguments import expect
from deskhand.actions import Action
from deskhand.errors import ActionError, shown

JSONType: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict."""

ComputerUseEnvironment: TypeAlias = Any
"""The environment of an action, in the runtime's own terms; passed through unread."""

RuntimeVariable: TypeAlias = Any
"""The runtime's variable that an action is meant for; passed through unread and never converted to JSON."""


@dataclasses.dataclass
class AIToolCall:
    """A call of a tool by a model.

    Attributes:
        name: The tool's name.
        returned_arguments: The arguments as the provider gave them: a dictionary, or JSON in a string.
        call_id: The id for the answer, if the provider wants one.
        type: Always `function`.
        requires_local_execution: False where the provider carries the call out itself.
        could_be_structured_output: It may be a structured answer in the form of a call.
    """

    name: str
    returned_arguments: dict[str, JSONType] | str
    call_id: str | None = None
    type: Literal["function"] = "function"
    requires_local_execution: bool = True
    could_be_structured_output: bool = False

    @property
    def arguments_as_dict(self) -> dict[str, JSONType]:
        """The arguments as a dictionary.

        Raises:
            TypeError: They are neither a dictionary nor the JSON of one.
        """
        found: Any = self.returned_arguments
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                raise TypeError(f"the arguments of {self.name} are not JSON: {shown(found)}") from None
        if not isinstance(found, dict):
            raise TypeError(f"the arguments of {self.name} are not a dictionary: {shown(found)}")
        return found

    @property
    def arguments_as_str(self) -> str:
        """The arguments as JSON; a string is returned unchanged."""
        given = self.returned_arguments
        return given if isinstance(given, str) else json.dumps(given)

    @property
    def action(self) -> Action:
        """The action that the call names, if the tool is an action (`left_mouse_click`, `type`...).

        Raises:
            ActionError: There is no such action, its arguments are wrong, or the provider carries the call out itself.
        """
        _check_local(self)
        try:
            arguments = self.arguments_as_dict
        except TypeError as error:
            raise ActionError(str(error)) from None
        return Action.from_dict({**arguments, "type": self.name})

    def __hash__(self) -> int:
        """Of the call's id, its name, and its arguments as a string."""
        return hash((self.call_id, self.name, self.arguments_as_str))


def _check_local(call: AIToolCall | CUAction) -> None:
    if not call.requires_local_execution:
        raise ActionError(f"the provider carries out {call.name} itself: it is not done here")


@dataclasses.dataclass(eq=False)
class CUAction(ABC):
    """An action on a computer, with the runtime's fields; the abstract base of the seventeen.

    Each of them has a fixed `type`, and the fields of its action in `deskhand.actions`.

    Attributes:
        environment: Where the action is meant to happen.
        environment_variable: The variable that it is meant for.
        call_id: The id for the answer.
    """

    environment: ComputerUseEnvironment
    environment_variable: RuntimeVariable
    call_id: str | None

    @abstractmethod
    def safe_asdict(self) -> dict[str, JSONType]:
        """The action's own fields and its type, without fields that may not be JSON."""

    @property
    def arguments_as_dict(self) -> dict[str, JSONType]:
        """As `safe_asdict`."""
        return self.safe_asdict()

    @property
    def arguments_as_str(self) -> str:
        """The result of `safe_asdict` as JSON."""
        return json.dumps(self.safe_asdict())

    @property
    def returned_arguments(self) -> str | None:
        """As `arguments_as_str`."""
        return self.arguments_as_str

    @property
    def name(self) -> str:
        """The action's name, which is its type."""
        return str(self.safe_asdict()["type"])

    @property
    def requires_local_execution(self) -> bool:
        """Whether the action is carried out here, and not by the provider; True unless it is set."""
        return bool(vars(self).get("_local", True))

    @requires_local_execution.setter
    def requires_local_execution(self, value: bool) -> None:
        vars(self)["_local"] = value

    @property
    def action(self) -> Action:
        """The action itself.

        Raises:
            ActionError: A field is wrong, or the provider carries the action out itself.
        """
        _check_local(self)
        return Action.from_dict(self.safe_asdict())

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same class and the same fields."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, spec.name) == getattr(other, spec.name) for spec in dataclasses.fields(self))

    def __hash__(self) -> int:
        """Hash an action with a list by the list and its duration, and another by the call's id and its fields."""
        own = [value for name, value in self.safe_asdict().items() if name != "type"]
        if not any(isinstance(value, list) for value in own):
            return hash((self.name, self.call_id, *own))
        values = [_hashable(value) for value in own]
        return hash(values[0] if len(values) == 1 else tuple(values))


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


@dataclasses.dataclass(eq=False)
class _Own(CUAction):
    """The base class of the seventeen: their own fields are those that `CUAction` does not have."""

    def __post_init__(self) -> None:
        """Reject a type that differs from the class's, because it would be another action."""
        for spec in dataclasses.fields(self):
            given = getattr(self, spec.name)
            if spec.name == "type" and given != spec.default:
                raise ActionError(f"the type of a {type(self).__name__} is {spec.default}, not {shown(given)}")

    def safe_asdict(self) -> dict[str, JSONType]:
        """The action's own fields and its type, without fields that may not be JSON."""
        return {spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)[_COMMON:]}


_COMMON = len(dataclasses.fields(CUAction))


@dataclasses.dataclass(eq=False)
class _AtPointer(_Own):
    xy: tuple[int, int] | None = None


@dataclasses.dataclass(eq=False)
class CULeftMouseDown(_AtPointer):
    """Press the left button and leave it pressed, at `xy` or where the pointer is."""

    type: Literal["left_mouse_down"] = "left_mouse_down"


@dataclasses.dataclass(eq=False)
class CULeftMouseUp(_AtPointer):
    """Release the left button, at `xy` or where the pointer is."""

    type: Literal["left_mouse_up"] = "left_mouse_up"


@dataclasses.dataclass(eq=False)
class CULeftMouseClick(_AtPointer):
    """Click the left button, at `xy` or where the pointer is."""

    type: Literal["left_mouse_click"] = "left_mouse_click"


@dataclasses.dataclass(eq=False)
class CULeftMouseDoubleClick(_AtPointer):
    """Click the left button twice, at `xy` or where the pointer is."""

    type: Literal["left_mouse_double_click"] = "left_mouse_double_click"


@dataclasses.dataclass(eq=False)
class CULeftMouseTripleClick(_AtPointer):
    """Click the left button three times, at `xy` or where the pointer is."""

    type: Literal["left_mouse_triple_click"] = "left_mouse_triple_click"


@dataclasses.dataclass(eq=False)
class CUMiddleClick(_AtPointer):
    """Click the middle button, at `xy` or where the pointer is."""

    type: Literal["middle_click"] = "middle_click"


@dataclasses.dataclass(eq=False)
class CURightClick(_AtPointer):
    """Click the right button, at `xy` or where the pointer is."""

    type: Literal["right_click"] = "right_click"


@dataclasses.dataclass(eq=False)
class CUBackClick(_AtPointer):
    """Click the back button at the side of the mouse, at `xy` or where the pointer is."""

    type: Literal["back_click"] = "back_click"


@dataclasses.dataclass(eq=False)
class CUForwardClick(_AtPointer):
    """Click the forward button at the side of the mouse, at `xy` or where the pointer is."""

    type: Literal["forward_click"] = "forward_click"


@dataclasses.dataclass(eq=False)
class CUDrag(_Own):
    """Drag with the left button along the points of `xy`; a single point is the end of a drag from the pointer."""

    xy: list[tuple[int, int]]
    type: Literal["drag"] = "drag"


@dataclasses.dataclass(eq=False)
class CUKeypress(_Own):
    """Press a chord and release it; key names as in `deskhand._core.chords.parse_keys`."""

    keys: list[str]
    type: Literal["keypress"] = "keypress"


@dataclasses.dataclass(eq=False)
class CUKeypressHold(_Own):
    """Press a chord, hold it for `duration` seconds, release it."""

    keys: list[str]
    duration: float
    type: Literal["keypress_hold"] = "keypress_hold"


@dataclasses.dataclass(eq=False)
class CUMove(_Own):
    """Put the pointer on a point."""

    xy: tuple[int, int]
    type: Literal["move"] = "move"


@dataclasses.dataclass(eq=False)
class CUScreenshot(_Own):
    """Look at the whole screen."""

    type: Literal["screenshot"] = "screenshot"


@dataclasses.dataclass(eq=False)
class CUScroll(_Own):
    """Turn the wheel at `start_xy` or where the pointer is; see `deskhand.actions.Scroll` for how far."""

    start_xy: tuple[int, int] | None = None
    distance_xy: tuple[int, int] | None = None
    magnitude: float | None = None
    direction: Literal["up", "down", "left", "right"] | None = None
    type: Literal["scroll"] = "scroll"


@dataclasses.dataclass(eq=False)
class CUType(_Own):
    """Type a text where the focus is."""

    text: str
    type: Literal["type"] = "type"


@dataclasses.dataclass(eq=False)
class CUWait(_Own):
    """Let `duration` seconds pass; None: `deskhand.desktop.translate.DEFAULT_WAIT`."""

    duration: float | None = None
    type: Literal["wait"] = "wait"


ComputerUseAction: TypeAlias = (
    CULeftMouseDown
    | CULeftMouseUp
    | CULeftMouseClick
    | CULeftMouseDoubleClick
    | CULeftMouseTripleClick
    | CUMiddleClick
    | CURightClick
    | CUBackClick
    | CUForwardClick
    | CUDrag
    | CUKeypress
    | CUKeypressHold
    | CUMove
    | CUScreenshot
    | CUScroll
    | CUType
    | CUWait
)
"""Any of the seventeen."""

_OF_TYPE: dict[str, type[Any]] = {made.type: made for made in get_args(ComputerUseAction)}


def computer_use_action(
    action: Action,
    environment: ComputerUseEnvironment = None,
    environment_variable: RuntimeVariable = None,
    call_id: str | None = None,
) -> ComputerUseAction:
    """Make the object of the family for an action, with the action's fields.

    Raises:
        ActionError: The action is not one of the seventeen, or has modifiers, repetitions or a button that they cannot express.
    """
    fields: dict[str, Any] = expect("computer_use_action: action", action, Action).to_dict()
    made = _OF_TYPE.get(fields.pop("type"))
    if made is None or not fields.keys() <= {spec.name for spec in dataclasses.fields(made)}:
        raise ActionError(f"the normalized actions cannot express {shown(action)}")
    for name in fields.keys() & {"xy", "start_xy", "distance_xy"}:
        fields[name] = _points(fields[name])
    carried: ComputerUseAction = made(environment, environment_variable, call_id, **fields)
    return carried


def _points(value: Any) -> Any:
    """A point as a tuple, and a path as a list of them."""
    if value and isinstance(value[0], list):
        return [tuple(point) for point in value]
    return None if value is None else tuple(value)
