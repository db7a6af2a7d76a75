"""Which packages, and which parts of the environment, each evaluator of upstream uses: read from its source. Pure.

Upstream's modules import everything at their tops, so that one metric seems to need all of it. This module follows the names
that a function really uses, through the functions that it calls. It never imports or runs anything of upstream.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = "desktop_env.evaluators"


@dataclass(slots=True)
class Uses:
    """What a function uses.

    Attributes:
        packages: The top-level names of what it imports from outside of the standard library and of upstream.
        environment: The attributes of `env` and of `env.controller` that it reads, such as `get_file` and `chromium_port`.
    """

    packages: set[str] = field(default_factory=set)
    environment: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Module:
    definitions: dict[str, ast.AST]
    imports: dict[str, tuple[str, str]]


def exported(source: str) -> dict[str, tuple[str, str]]:
    """The names that a package's `__init__.py` takes from its own modules: name → (module, name there)."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return found


def uses_of(sources: Mapping[str, str], module: str, name: str) -> Uses:
    """What a function of a module uses, directly and through the functions that it calls.

    Args:
        sources: The source of each module of upstream's evaluators by its whole name.
        module: The whole name of the function's module.
        name: The function's name.
    """
    uses = Uses()
    modules: dict[str, _Module] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(module, name)]
    while waiting:
        where = waiting.pop()
        if where in seen or where[0] not in sources:
            continue
        seen.add(where)
        here = modules.setdefault(where[0], _parsed(sources[where[0]], where[0]))
        if where[1] in here.definitions:
            waiting += [(where[0], used) for used in _names(here.definitions[where[1]], uses)]
            for origin in _local_imports(here.definitions[where[1]], where[0]):
                _follow(origin, uses, waiting)
        elif where[1] in here.imports:
            _follow(here.imports[where[1]], uses, waiting)
    return uses


def _follow(origin: tuple[str, str], uses: Uses, waiting: list[tuple[str, str]]) -> None:
    top = origin[0].partition(".")[0]
    if top == PACKAGE.partition(".")[0]:
        waiting.append(origin)
    elif top not in sys.stdlib_module_names:
        uses.packages.add(top)


def _parsed(source: str, module: str) -> _Module:
    definitions: dict[str, ast.AST] = {}
    imports: dict[str, tuple[str, str]] = {}
    for node in _statements(ast.parse(source).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            definitions[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
            definitions |= dict.fromkeys(names, node)
        else:
            imports |= _imported(node, module)
    return _Module(definitions, imports)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, with those in `try` and `if`."""
    for node in body:
        if isinstance(node, (ast.Try, ast.If)):
            yield from _statements([*node.body, *node.orelse])
        else:
            yield node


def _imported(node: ast.AST, module: str) -> dict[str, tuple[str, str]]:
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.partition(".")[0]: (alias.name, "") for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parent = ".".join(module.split(".")[: -node.level])
            base = f"{parent}.{base}" if base else parent
        return {alias.asname or alias.name: (base, alias.name) for alias in node.names}
    return {}


def _local_imports(definition: ast.AST, module: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(definition):
        yield from _imported(node, module).values()


def _names(definition: ast.AST, uses: Uses) -> set[str]:
    """The names in a definition. Annotations are left out: they are evaluated, and nothing is done with them."""
    names: set[str] = set()
    waiting: list[ast.AST] = [definition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            _read_environment(node, uses)
        for part, value in ast.iter_fields(node):
            if part not in {"annotation", "returns"}:
                waiting += [
                    each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)
                ]
    return names


def _read_environment(node: ast.Attribute, uses: Uses) -> None:
    owner = node.value
    of_env = isinstance(owner, ast.Name) and owner.id == "env" and node.attr != "controller"
    if of_env or (isinstance(owner, ast.Attribute) and owner.attr == "controller"):
        uses.environment.add(node.attr)
