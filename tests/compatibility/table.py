"""Tables of what must be so, a row each, and what a class is like as far as its users see it."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Move
from providers.screen import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from deskhand import Desktop
    from integration.observer import Observer


@dataclass(frozen=True)
class Raises:
    """What a row expects that raises."""

    kind: type[BaseException]
    match: str | None = None


@dataclass(frozen=True)
class Row:
    """One thing that must be so.

    Attributes:
        name: As the other project calls it.
        says: What its document says.
        found: Looks; gets what the test has (a `World`, or nothing).
        expected: What it must find.
    """

    name: str
    says: str
    found: Callable[..., object]
    expected: object = True

    def __str__(self) -> str:
        return f"{self.name}: {self.says}"

    def check(self, *given: object) -> None:
        if isinstance(self.expected, Raises):
            with pytest.raises(self.expected.kind, match=self.expected.match):
                self.found(*given)
        else:
            found = self.found(*given)
            assert found == self.expected, f"{found!r}, not {self.expected!r}"


@dataclass
class World:
    """A real desktop, and the program that writes down all of its input."""

    desktop: Desktop
    observer: Observer
    here: tuple[int, int] = (200, 100)

    def rest(self) -> None:
        """Nothing is pressed, and the pointer is where it was not before: no click there counts as the second of two."""
        x, y = self.here
        self.here = (x + 40, y) if x < 1200 else (200, y + 40)
        self.desktop.release()
        self.desktop.perform(Move(self.here), settle=False)
        self.observer.events()

    def told(self) -> list[str]:
        """What happened since, as `providers.screen.told` says it; `@here` is where the pointer was."""
        x, y = self.here
        return [re.sub(f"@{x},{y}$", "@here", event) for event in told(self.observer)]


def each(rows: list[Row]) -> pytest.MarkDecorator:
    """Run a test for every row."""
    return pytest.mark.parametrize("row", rows, ids=str)


def declared_names(declared: ModuleType) -> list[str]:
    """The classes and unions that a document declares, in its order."""
    own = (name for name, value in vars(declared).items() if getattr(value, "__module__", "") == declared.__name__)
    return [
        *(name for name in own if not name.startswith("_")),
        *getattr(declared, "UNIONS", ()),
        *getattr(declared, "CARRIED", ()),
    ]


def ours(declared: ModuleType, name: str) -> Any:
    """What is called so here."""
    return getattr(importlib.import_module(declared.HERE), name)


def declared_rows(declared: ModuleType) -> Iterator[Row]:
    """That each class has what its document declares, in that order; and each of it as declared."""
    for name in declared_names(declared):
        theirs = getattr(declared, name, None)
        if name in getattr(declared, "UNIONS", ()):
            members = [_text(member) for member in typing.get_args(theirs)]
            yield Row(name, "what it is a union of", lambda name=name: _members(ours(declared, name)), members)
        if getattr(theirs, "__module__", "") != declared.__name__:
            continue
        fields = described(theirs)
        yield Row(name, "its kind", lambda name=name: _kind(ours(declared, name)), _kind(theirs))
        yield Row(name, "what it has", lambda name=name: list(described(ours(declared, name))), list(fields))
        for field, what in fields.items():
            found = lambda name=name, field=field: described(ours(declared, name)).get(field)  # noqa: E731
            yield Row(f"{name}.{field}", " ".join(map(str, what)), found, what)


def _members(union: Any) -> list[str]:
    return [_text(member) for member in typing.get_args(union)]


def _kind(kind: Any) -> str:
    if typing.is_typeddict(kind):
        return "a typed dictionary"
    if issubclass(kind, enum.Enum):
        return "an enumeration of strings" if issubclass(kind, str) else "an enumeration"
    return "a dataclass" if dataclasses.is_dataclass(kind) else "a class"


def described(kind: Any) -> dict[str, tuple[object, ...]]:
    """The fields of a dataclass or a typed dictionary, the members of an enumeration, or what a class is made with."""
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return {name: (member.value,) for name, member in kind.__members__.items()}
    if typing.is_typeddict(kind):
        whole = typing.get_type_hints(kind, include_extras=True)
        # Where annotations are strings, the class itself does not see that they say NotRequired.
        may = {name for name, hint in whole.items() if typing.get_origin(hint) is typing.NotRequired}
        needed = {name: "required" if name in kind.__required_keys__ - may else "optional" for name in whole}
        return {name: (_text(hint), needed[name]) for name, hint in typing.get_type_hints(kind).items()}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return {field.name: (_text(hints[field.name]), *_default(field)) for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind.__init__)
    parameters = list(inspect.signature(kind).parameters.values())
    return {each.name: (each.kind.description, _text(hints[each.name]), *_given(each.default)) for each in parameters}


def _default(field: dataclasses.Field[Any]) -> tuple[object, ...]:
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return ("made", "a string" if isinstance(made, str) else repr(made))
    return () if field.default is dataclasses.MISSING else _given(field.default)


def _given(default: object) -> tuple[object, ...]:
    if default is inspect.Parameter.empty:
        return ()
    # Of another class, but called and valued the same.
    return ("=", f"{type(default).__name__}.{default.name}" if isinstance(default, enum.Enum) else repr(default))


def _text(hint: Any) -> str:
    """A type as it is written, without where it comes from."""
    written = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    plain = re.sub(r"(\w+\.)+(?=\w)", "", written)
    return re.sub(r"Optional\[(.*)\]$", r"\1 | None", plain)
