"""No public signature mentions `Any`: what the reference describes, and the classes of the package that it names."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tools.docs.reference import API, ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = Path(__file__).parents[2] / "python"
RUNTIMES = "agent runtimes expect these names, fields and types: tests/compatibility holds them"
FRAMEWORK = "declared so by Microsoft Agent Framework: tests/compatibility holds it"
# Where `Any` stays, and why.
KEPT = {
    "desktop.view.View.__init__": "it makes a desktop, whose file is above this one",
    "desktop.view.View.see": "it makes a desktop, whose file is above this one",
    "episodes.tasks.context.TaskContext.parameters": "a task's own values, whose types only its author knows",
    "execution.stream_events.Completion.execution_history": RUNTIMES,
    "execution.stream_events.FunctionExecutionComplete.result": RUNTIMES,
    "execution.stream_events.ResponseResult.execution_history": RUNTIMES,
    "execution.stream_events.ResponseResult.response": RUNTIMES,
    "execution.stream_events.StreamChunk.chunk": RUNTIMES,
    "execution.tool_calls.AIToolCall.arguments_as_dict": RUNTIMES,
    "execution.tool_calls.AIToolCall.returned_arguments": RUNTIMES,
    "execution.tool_calls.CUAction.arguments_as_dict": RUNTIMES,
    "execution.tool_calls.CUAction.environment": RUNTIMES,
    "execution.tool_calls.CUAction.environment_variable": RUNTIMES,
    "execution.tool_calls.CUAction.safe_asdict": RUNTIMES,
    "execution.types.AgentCapability.context_requirements": RUNTIMES,
    "execution.types.ExecutionResult.result": RUNTIMES,
    "execution.types.RequestFunctionCall.arguments": RUNTIMES,
    "execution.types.RequestFunctionCall.result": RUNTIMES,
    "providers.agent_framework.types.ComputerUseCallContent.__init__": FRAMEWORK,
    "providers.agent_framework.types.ComputerUseResultContent.__init__": FRAMEWORK,
    "providers.agent_framework.types.ComputerUseTool.__init__": FRAMEWORK,
    "providers.agent_framework.types.ShellCallContent.__init__": FRAMEWORK,
    "providers.agent_framework.types.ShellResultContent.__init__": FRAMEWORK,
    "providers.agent_framework.types.ShellTool.__init__": FRAMEWORK,
}


class Definition(NamedTuple):
    """What a name of a module stands for: the statements that define it, or nothing if it is a module itself."""

    module: str
    name: str
    statements: tuple[ast.stmt, ...]


class Sources:
    """The packages in a folder, read and not imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names = cache(self._names)

    def _file(self, module: str) -> Path | None:
        path = self._folder.joinpath(*module.split("."))
        return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.exists()), None)

    def _names(self, module: str) -> dict[str, list[ast.stmt | Definition]]:
        """The names at the top of a module; an imported one with the place that it comes from."""
        found: dict[str, list[ast.stmt | Definition]] = {}

        def read(body: list[ast.stmt]) -> None:
            for node in body:
                match node:
                    case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                        found.setdefault(node.name, []).append(node)
                    case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                        found.setdefault(name, []).append(node)
                    case ast.ImportFrom(module=str(origin)):
                        for alias in node.names:
                            found.setdefault(alias.asname or alias.name, []).append(Definition(origin, alias.name, ()))
                    case ast.If() | ast.Try():
                        read([*node.body, *node.orelse])

        path = self._file(module)
        if path is not None:
            read(ast.parse(path.read_text("utf-8")).body)
        return found

    def find(self, module: str, name: str) -> Definition | None:
        """The definition of a name, wherever it comes from; None if that is another package."""
        first, *more = self.names(module).get(name, [None])
        if isinstance(first, Definition) and first[:2] != (module, name):
            return self.find(*first[:2])
        if isinstance(first, ast.stmt):
            return Definition(module, name, (first, *(each for each in more if isinstance(each, ast.stmt))))
        return Definition(f"{module}.{name}", "", ()) if self._file(f"{module}.{name}") else None

    def public(self, module: str) -> list[str]:
        """The public names of a module: those of its `__all__`, or all that it defines without an underscore."""
        names = self.names(module)
        if "__all__" in names:
            (listed,) = names["__all__"]
            assert isinstance(listed, ast.Assign)
            assert isinstance(listed.value, ast.List | ast.Tuple)
            return [ast.literal_eval(item) for item in listed.value.elts]
        return [name for name, (first, *_) in names.items() if isinstance(first, ast.stmt) and name[0] != "_"]

    def named(self, module: str, annotation: ast.expr) -> Iterator[Definition | str]:
        """The names in an annotation, also where it is quoted: definitions of the packages, or names of others."""
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                yield self.find(module, node.id) or node.id
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
                try:
                    quoted = ast.parse(node.value, mode="eval").body
                except SyntaxError:
                    continue
                yield from self.named(module, quoted)

    def mentions_any(self, module: str, annotation: ast.expr, known: frozenset[Definition] = frozenset()) -> bool:
        """Whether an annotation mentions `Any`, also by an alias."""
        for found in self.named(module, annotation):
            if found == "Any":
                return True
            if isinstance(found, Definition) and found not in known:
                aliased = (each for each in map(_alias, found.statements) if each is not None)
                if any(self.mentions_any(found.module, each, known | {found}) for each in aliased):
                    return True
        return False


def _alias(statement: ast.stmt) -> ast.expr | None:
    """The type that a statement gives a name."""
    match statement:
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
            return value
        case ast.Assign(value=(ast.Subscript() | ast.BinOp()) as value):
            return value
    return None


def _of_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    rest = [each for each in (given.vararg, given.kwarg) if each is not None and each.annotation is not None]
    # The two together say "any further parameters": with other types they would say something else.
    if [ast.unparse(each.annotation) for each in rest if each.annotation] != ["Any", "Any"]:
        every += rest
    yield from (each.annotation for each in every if each.annotation is not None)
    if function.returns is not None:
        yield function.returns


def _of_class(kind: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    yield from (("", base) for base in kind.bases)
    for member in kind.body:
        match member:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name[0] != "_" or name.endswith("__"):
                    yield from ((f".{name}", each) for each in _of_function(member))
                if name == "__init__":
                    for node in ast.walk(member):
                        match node:
                            case ast.AnnAssign(target=ast.Attribute(attr=attribute)) if attribute[0] != "_":
                                yield f".{attribute}", node.annotation
            case ast.AnnAssign(target=ast.Name(id=name)) if name[0] != "_":
                yield f".{name}", member.annotation


def annotated(definition: Definition) -> Iterator[tuple[str, ast.expr]]:
    """Every annotation of what is public in a definition, with the name of what has it."""
    for statement in definition.statements:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (("", each) for each in _of_function(statement))
            case ast.ClassDef():
                yield from _of_class(statement)
            case ast.AnnAssign():
                yield "", statement.annotation
        if (alias := _alias(statement)) is not None:
            yield "", alias


def with_any(sources: Sources, names: list[tuple[str, str]]) -> set[str]:
    """What mentions `Any` of these names, and of the classes that their annotations name."""
    found, known = set(), set()
    left = [sources.find(*name) for name in names]
    while left:
        definition = left.pop()
        if definition is None or definition[:2] in known:
            continue
        known.add(definition[:2])
        if not definition.statements:
            left += [sources.find(definition.module, name) for name in sources.public(definition.module)]
        for part, annotation in annotated(definition):
            if sources.mentions_any(definition.module, annotation):
                found.add(f"{definition.module}.{definition.name}{part}")
            left += [
                each
                for each in sources.named(definition.module, annotation)
                if isinstance(each, Definition) and any(isinstance(one, ast.ClassDef) for one in each.statements)
            ]
    return found


def test_no_public_signature_mentions_any() -> None:
    names = [f"deskhand.{name}" for room in API.values() for name in room.names.split()]
    names += [f"deskhand.errors.{name}" for name in ERRORS]
    found = with_any(Sources(PYTHON), [(where, name) for where, _, name in (each.rpartition(".") for each in names)])
    assert {name.removeprefix("deskhand.") for name in found} == set(KEPT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(a: Any) -> None: ...", {"p.f"}),
        ("def f(a: 'list[Any]') -> None: ...", {"p.f"}),
        ("def f(*args: int, **kwargs: Any) -> None: ...", {"p.f"}),
        ("def f(*args: Any, **kwargs: Any) -> None: ...", set()),
        ("def f(a: object) -> dict[str, Any]: ...", {"p.f"}),
        ("def f(a: object) -> dict[str, object]: ...", set()),
        ("Pair = tuple[Any, int]\ndef f() -> Pair: ...", {"p.Pair", "p.f"}),
        ("Tree: TypeAlias = 'list[Tree]'\ndef f() -> Tree: ...", set()),
        ("class C:\n    a: Any\n    _b: Any", {"p.C.a"}),
        ("class C(Base[Any]): ...", {"p.C"}),
        ("class C:\n    def __init__(self) -> None:\n        self.a: Any = 1\n        self._b: Any = 1", {"p.C.a"}),
        ("class C:\n    def m(self) -> Any: ...\n    def _n(self) -> Any: ...", {"p.C.m"}),
        ("class _C:\n    a: Any\ndef f(c: _C) -> None: ...", {"p._C.a"}),
        ("from q import D as D\n__all__ = ['D']", {"q.D.a"}),
        ("from q import D\ndef f(d: D) -> None: ...", {"q.D.a"}),
        ("from q import D\ndef f(d: int) -> None: ...", set()),
    ],
)
def test_every_mention_is_found(tmp_path: Path, text: str, expected: set[str]) -> None:
    (tmp_path / "p.py").write_text(text)
    (tmp_path / "q.py").write_text("class D:\n    a: Any\n")
    sources = Sources(tmp_path)
    assert with_any(sources, [("p", name) for name in sources.public("p")]) == expected
