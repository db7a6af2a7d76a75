"""The public calls, read from their signatures, and values that are wrong for them."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import deskhand
from deskhand import CallContext, Desktop, Operation, Program, Window
from deskhand.desktop.clipboard import Clipboard
from deskhand.desktop.control import Control
from deskhand.desktop.machine_view import Host, Machine
from deskhand.desktop.window_list import Windows

PARTS = {"clipboard": Clipboard, "control": Control, "host": Host, "machine": Machine, "windows": Windows}
_MISSING = inspect.Parameter.empty
_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# Every wrong kind of argument: of another type, nothing, empty, no number, beyond every bound, below it, bytes, a path.
WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    1j,
    "",
    "wrong",
    "\0",
    "\ud800",
    "long" * 40_000,
    b"",
    b"wrong",
    Path("wrong"),
    (),
    (1,),
    [],
    [None],
    [b"wrong"],
    {},
    {1: 2},
    {"A": b"wrong"},
    object(),
    int,
)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its annotation, evaluated, and how it is given."""

    name: str
    hint: Any
    default: object
    kind: Any

    def given(self, value: object) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments of a call that gives it."""
        if self.kind is inspect.Parameter.VAR_POSITIONAL:
            return (value,), {}
        if self.kind is inspect.Parameter.VAR_KEYWORD:
            return (), {"wrong": value}
        return (), {self.name: value}


@dataclass(frozen=True)
class PublicCall:
    """A method, a property or a function.

    Attributes:
        name: With its class's, as in `Desktop.start`.
        call: Gets the object, if it is one's, and the arguments.
        parameters: Without the object.
        bound: Whether it is an object's.
    """

    name: str
    call: Callable[..., object] = field(compare=False)
    parameters: tuple[Parameter, ...]
    bound: bool = True

    @property
    def required(self) -> list[Parameter]:
        """Those that have no default."""
        return [each for each in self.parameters if each.default is _MISSING and each.kind not in _VARIOUS]


def calls_of(kind: type) -> list[PublicCall]:
    """Every public method and property of a class, also of a desktop's parts; to assign to a property is one more, `name=`."""
    found = [
        PublicCall(f"{part}.{call.name.partition('.')[2]}", partial(_through, part, call), call.parameters)
        for part, its in (PARTS.items() if kind is Desktop else ())
        for call in calls_of(its)
    ]
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_"):
            continue
        called = f"{kind.__name__}.{name}"
        if isinstance(member, property):
            found.append(PublicCall(called, lambda target, name=name: getattr(target, name), ()))
            if member.fset is not None:
                *_, value = _parameters(member.fset)
                setter = lambda target, *, name=name, **given: setattr(target, name, *given.values())  # noqa: E731
                found.append(PublicCall(f"{called}=", setter, (value,)))
        elif isinstance(member, classmethod | staticmethod) or not inspect.isfunction(member):
            continue
        else:
            found.append(PublicCall(called, member, tuple(_parameters(member)[1:])))
    return found


def _through(part: str, call: PublicCall, target: object, /, *args: object, **given: object) -> object:
    return call.call(getattr(target, part), *args, **given)


def function(called: Callable[..., object]) -> PublicCall:
    """A function, or what makes an object of a class."""
    return PublicCall(called.__name__, called, tuple(_parameters(called)), bound=False)


def _parameters(called: Callable[..., object]) -> list[Parameter]:
    called = inspect.unwrap(called)
    names = _names(called.__module__)
    return [
        Parameter(each.name, _evaluated(each.annotation, names), each.default, each.kind)
        for each in inspect.signature(called).parameters.values()
    ]


@cache
def _names(module: str) -> dict[str, Any]:
    """What the annotations of a module mean: its own names, and those that only a type checker imports."""
    found = {**vars(typing), **vars(sys.modules[module])}
    source = inspect.getsource(sys.modules[module])
    checked = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    for node in (each for block in checked if ast.unparse(block.test) == "TYPE_CHECKING" for each in block.body):
        try:
            exec(compile(ast.Module([node], []), module, "exec"), found)  # our own imports
        except ImportError:
            assert isinstance(node, ast.ImportFrom)
            # A name that the other module, too, has only for a type checker, or one of an SDK that is not here.
            there = _names(node.module) if sys.modules.get(node.module or "") else {}
            found |= {each.name: there.get(each.name, Any) for each in node.names}
    return found


def _evaluated(annotation: object, names: dict[str, Any]) -> Any:
    # The types of single options are for a checker; each of them is judged where it is used.
    if annotation is _MISSING or "Unpack[" in str(annotation):
        return Any
    return eval(annotation, names) if isinstance(annotation, str) else annotation  # our own annotation


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation asks for. True is no number, and a text no list of texts."""
    if isinstance(hint, str):
        # An alias that was written as one.
        hint = eval(hint, {**vars(typing), **vars(deskhand)})  # our own annotation
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return True
    if hint is float or hint is int:
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    if typing.get_args(hint) and typing.get_origin(hint) is not os.PathLike:
        return _fits_generic(value, typing.get_origin(hint), typing.get_args(hint))
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    return value is None if hint is None else isinstance(value, typing.get_origin(hint) or hint)


def _fits_generic(value: object, origin: Any, inner: tuple[Any, ...]) -> bool:
    if origin in {typing.Union, types.UnionType}:
        return any(fits(value, each) for each in inner)
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if origin is Callable:
        return callable(value)
    if issubclass(origin, tuple):
        return isinstance(value, tuple | list) and len(value) == len(inner) and all(map(fits, value, inner))
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return several and issubclass(origin, Iterable) and all(fits(each, inner[0]) for each in value)


class Arguments:
    """Arguments that calls take, made while the desktop lives."""

    def __init__(self, desktop: Desktop, window: Window | int = 1) -> None:
        self._values: dict[str, object] = {
            "by": "Ada",
            "call": CallContext(),
            "command": "true",
            "contents": {"image/png": b"a picture"},
            "data": b"",
            "height": 100,
            "locator": desktop.find("button"),
            "operation": Operation("test"),
            "path": "/tmp/deskhand-test",
            "paths": ["/tmp/deskhand-test"],
            "program": Program(1, None, Path()),
            "reason": "help",
            "request": 1,
            "size": tuple(desktop.size),
            "socket": "/nonexistent/guard",
            "source": "/etc/hostname",
            "target": "/tmp/deskhand-test",
            "text": "text",
            "title": re.compile(""),
            "type": "image/png",
            "value": "text",
            "url": f"x11:{desktop.display}",
            "window": window,
            "width": 100,
            "work": lambda: None,
            "xy": (1, 1),
            **dict.fromkeys(("before", "after"), desktop.screenshot()),
        }

    def of(self, call: PublicCall, **others: object) -> dict[str, object]:
        """For the parameters that must be given; of `others`, those that the call has."""
        missing = [each.name for each in call.required if each.name not in self._values]
        assert not missing, f"{call.name}: say here what a right value of {missing} is"
        known = {each.name for each in call.parameters}
        found = {each.name: self._values[each.name] for each in call.required}
        return {**found, **{name: value for name, value in others.items() if name in known}}
