"""Our own actions as tools that a model calls: names, JSON schemas, and arguments in pixels of its picture. Pure.

For providers that have no computer tool of their own. This module owns the schemas. The actions check their values
themselves.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from deskhand._core.fields import MAX_REPEAT, MAX_SECONDS
from deskhand._core.geometry import Rect
from deskhand.actions import ACTIONS, BUTTONS, DIRECTIONS, LOOKING, Action, Wait, did_you_mean
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.payload import expect_float, expect_int, expect_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand._core.geometry import Viewport

_POINT = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
_KEYS = {"type": "array", "items": {"type": "string"}}
_ELEMENT = {"type": "string", "pattern": "^e[0-9]+$"}
_SECONDS = {"type": "number", "minimum": 0, "maximum": MAX_SECONDS}

_FIELDS: Mapping[str, dict[str, Any]] = {
    "xy": {**_POINT, "description": "Where, as [x, y] in pixels of the screenshot. Left out: where the pointer is."},
    "start_xy": {
        **_POINT,
        "description": "Where, as [x, y] in pixels of the screenshot. Left out: where the pointer is.",
    },
    "element": {
        **_ELEMENT,
        "description": 'The element to do it at, or to drag from, such as "e12", in place of a point.',
    },
    "to": {**_ELEMENT, "description": 'The element to drag to, such as "e14", in place of the last point.'},
    "distance_xy": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "How far, as [right, down] in pixels of the screenshot. Wins over magnitude.",
    },
    "magnitude": {"type": "number", "description": "How far, in notches of the wheel; 3 if nothing is given."},
    "direction": {"type": "string", "enum": list(DIRECTIONS), "description": "Which way the magnitude goes."},
    "keys": {**_KEYS, "minItems": 1, "description": 'The keys of a chord, such as ["ctrl", "s"] or ["Page_Up"].'},
    "modifiers": {**_KEYS, "description": 'Keys that are held meanwhile, such as ["shift"].'},
    "button": {"type": "string", "enum": list(BUTTONS)},
    "duration": {**_SECONDS, "description": "Seconds."},
    "repeat": {"type": "integer", "minimum": 1, "maximum": MAX_REPEAT, "description": "How often the key is pressed."},
    "text": {"type": "string", "description": "Any text; a line break is Return, a tabulator is Tab."},
    "paste": {"type": "boolean", "description": "Use the clipboard where a character has no key."},
    "region": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0},
        "minItems": 4,
        "maxItems": 4,
        "description": "[x, y, width, height] in pixels of the screenshot.",
    },
}
_PATH = {
    "type": "array",
    "items": _POINT,
    "minItems": 1,
    "description": "The points to visit, each [x, y] in pixels of the screenshot; one alone is dragged to from the pointer.",
}


def describe(action: type[Action]) -> str:
    """A description of an action, in a sentence or two."""
    return " ".join((action.__doc__ or "").split("\n\n")[0].split()).replace("`", "")


def is_read_only(action: type[Action]) -> bool:
    """Whether an action only looks or waits."""
    return action in (*LOOKING, Wait)


def schema(action: type[Action]) -> dict[str, Any]:
    """The JSON schema of an action's arguments."""
    properties, required = {}, []
    for spec in fields(action):
        name = spec.metadata["key"] or spec.name
        # A text that a model writes cannot be secret from it.
        if name == "secret":
            continue
        properties[name] = _PATH if spec.name == "path" else _FIELDS[name]
        if spec.default is MISSING:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def whole_schema() -> dict[str, Any]:
    """The JSON schema of one tool for all actions: `action` names the action, and the rest are its arguments."""
    path_or_point = {"type": "array", "description": f"{_FIELDS['xy']['description']} For drag: a list of such points."}
    properties = {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        **_FIELDS,
        "xy": path_or_point,
    }
    return {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}


def decode_plain(name: object, arguments: Mapping[str, Any], viewport: Viewport) -> Action:
    """Decode an action of a model.

    Args:
        name: The action's `type`.
        arguments: Its fields as in its dictionary form, but in pixels of the model's picture.
        viewport: The viewport of that picture.

    Raises:
        ActionError: There is no such action, or an argument is missing or wrong.
        OutOfBounds: A point is outside of the picture.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    for key in ("xy", "start_xy"):
        if key in given:
            given[key] = _to_screen(given[key], viewport, path=name == "drag")
    if "distance_xy" in given:
        across, down = _numbers(given["distance_xy"], 2, "distance_xy")
        given["distance_xy"] = viewport.distance_to_screen((across, down))
    if "region" in given:
        x, y, width, height = (expect_int("region", value) for value in _numbers(given["region"], 4, "region"))
        given["region"] = viewport.rect_to_screen(Rect(x, y, width, height))
    return Action.from_dict({**given, "type": name})


def decode_tool(where: str, name: object, arguments: Mapping[str, Any], viewport: Viewport) -> Action:
    """Like `decode_plain`, for a tool that a model calls: unknown arguments are refused, not left out.

    Args:
        where: The name of the tool's owner, for the error.
        name: The action's `type`.
        arguments: As for `decode_plain`.
        viewport: As for `decode_plain`.

    Raises:
        ActionError: The action or an argument does not exist, or an argument is missing or wrong.
        OutOfBounds: A point is outside of the picture.
    """
    action = ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        meant = did_you_mean(name) if isinstance(name, str) else ""
        raise UnsupportedAction(where, name, f"{meant}use one of {', '.join(ACTIONS)}")
    unknown = sorted(arguments.keys() - schema(action)["properties"].keys())
    if unknown:
        raise ActionError(f"{action.type} has no {', '.join(map(shown, unknown))}")
    return decode_plain(name, arguments, viewport)


def encode_plain(action: Action, viewport: Viewport) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of an action: the inverse of `decode_plain`, accurate to the model's pixel.

    Raises:
        UnsupportedAction: The action's text is a secret.
        OutOfBounds: A point is not in the picture.
    """
    if "text" in action.to_dict() and not isinstance(getattr(action, "text", ""), str):
        raise UnsupportedAction("a payload", "a secret text")
    said: dict[str, Any] = {key: value for key, value in action.to_dict().items() if value is not None}
    for key in ("xy", "start_xy"):
        if key in said:
            points = said[key] if isinstance(said[key][0], list) else [said[key]]
            mapped = [list(viewport.to_model(tuple(point))) for point in points]
            said[key] = mapped if isinstance(said[key][0], list) else mapped[0]
    if "distance_xy" in said:
        said["distance_xy"] = [
            round(far * seen / shown)
            for far, seen, shown in zip(said["distance_xy"], viewport.model, viewport.shown.size, strict=True)
        ]
    if "region" in said:
        said["region"] = list(viewport.rect_to_model(Rect(*said["region"])))
    return said.pop("type"), said


def _to_screen(value: object, viewport: Viewport, *, path: bool) -> Any:
    if path:
        return [_to_screen(point, viewport, path=False) for point in expect_list("xy", value)]
    x, y = _numbers(value, 2, "xy")
    return viewport.to_screen((x, y))


def _numbers(value: object, count: int, what: str) -> list[float]:
    numbers = [expect_float(what, item) for item in expect_list(what, value)]
    if len(numbers) != count:
        raise UnsupportedAction("deskhand", f"{what} of {len(numbers)} numbers", f"give {count}")
    return numbers
