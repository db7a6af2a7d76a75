"""The shape of the source files: how long they are, and that they import in no circle.

import-linter finds circles between siblings. Those between a package and a module in it are found here.
"""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
RUST = ROOT / "rust"
PYTHON = ROOT / "python"
LONGEST, USUAL = 600, 400
# Why these are longer than usual: at most five files are.
LONG = {
    "actions.py": "one list of all actions, with their documentation",
    "errors.py": "one tree of all errors, with their messages",
    "aio/desktop.py": "generated",
    "episodes/play/attempt.py": "one course, from the start of a desktop to the outcome",
    "providers/cua/messages.py": "one list of all messages of the protocol",
}
CRATES = sorted(path.parent.name for path in RUST.glob("*/src"))


def imports(source: Path) -> dict[str, set[str]]:
    """For each module of a crate, a folder counting as one, the modules of that crate that its code names."""
    files = [path for path in source.rglob("*.rs") if path.name not in {"lib.rs", "tests.rs"}]
    modules = {path.relative_to(source).parts[0].removesuffix(".rs") for path in files}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for path in files:
        module = path.relative_to(source).parts[0].removesuffix(".rs")
        code = re.sub(r"//.*", "", path.read_text("utf-8").partition("#[cfg(test)]\nmod tests")[0])
        graph[module] |= set(re.findall(r"\bcrate::(\w+)", code)) & modules - {module}
    return graph


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_of_files(crate: str) -> None:
    # The error names the circle.
    TopologicalSorter(imports(RUST / crate / "src")).prepare()


def test_imports_are_read() -> None:
    assert {"state", "wire", "server"} <= imports(RUST / "capture" / "src")["display"]


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("use crate::b::B;\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.rs").write_text(
        "// crate::d\nuse crate::a::A;\n#[cfg(test)]\nmod tests { use crate::d::D; }\n"
    )
    (tmp_path / "d.rs").write_text("use crate::a::A;\n")
    assert imports(tmp_path) == {"a": {"b"}, "b": {"a"}, "d": {"a"}}
    with pytest.raises(ValueError, match="cycle"):
        TopologicalSorter(imports(tmp_path)).prepare()


def python_imports(source: Path) -> dict[str, set[str]]:
    """For each file of the packages in a folder, the files that it imports: also inside functions, and for types alone.

    A package's `__init__` is a file of its own: importing a name from the package is importing that file, unless the name is
    a module.
    """
    files = {}
    for path in source.rglob("*.py"):
        *folders, name = path.relative_to(source).with_suffix("").parts
        files[".".join(folders if name == "__init__" else [*folders, name])] = path

    def imported(module: str, path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                # `from . import x` counts from the package that the file is in, or that it is.
                steps = node.level - (path.name == "__init__.py")
                folder = module.split(".")[: -steps or None] if node.level else []
                found = ".".join([*folder, *([node.module] if node.module else [])])
                for alias in node.names:
                    yield f"{found}.{alias.name}" if f"{found}.{alias.name}" in files else found

    return {module: files.keys() & set(imported(module, path)) - {module} for module, path in files.items()}


def test_no_circle_of_python_files() -> None:
    TopologicalSorter(python_imports(PYTHON)).prepare()


def test_imports_of_python_are_read() -> None:
    graph = python_imports(PYTHON)
    # At the top, for types alone, and inside a function.
    assert "deskhand._core.geometry" in graph["deskhand._core.observation"]
    assert "deskhand.desktop.desktop" in graph["deskhand"]
    assert "deskhand.providers.mcp.sdk" in graph["deskhand.providers.mcp"]


def test_a_circle_of_a_package_and_its_module_is_found(tmp_path: Path) -> None:
    package = tmp_path / "a"
    package.mkdir()
    (package / "__init__.py").write_text("def f():\n    from a.b import g\n")
    (package / "b.py").write_text("from a import f\nfrom . import c\n")
    (package / "c.py").write_text("import a.b as own\n")
    assert python_imports(tmp_path) == {"a": {"a.b"}, "a.b": {"a", "a.c"}, "a.c": {"a.b"}}
    with pytest.raises(ValueError, match="cycle"):
        TopologicalSorter(python_imports(tmp_path)).prepare()


def test_no_file_is_too_long() -> None:
    files = [
        *(PYTHON / "deskhand").rglob("*.py"),
        *(PYTHON / "deskhand").rglob("*.js"),
        *(path for crate in CRATES for path in (RUST / crate / "src").rglob("*.rs")),
    ]
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {
        path.relative_to(ROOT).as_posix().removeprefix("python/deskhand/") for path in files if lengths[path] > USUAL
    } == set(LONG)
    assert max(lengths.values()) <= LONGEST
    assert len(LONG) <= 5
