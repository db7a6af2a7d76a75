"""The shape of the source files: how long they are, and that those of a Rust crate import in no circle.

import-linter finds the circles of Python.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUST = ROOT / "rust"
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


def test_no_file_is_too_long() -> None:
    files = [
        *(ROOT / "python" / "deskhand").rglob("*.py"),
        *(path for crate in CRATES for path in (RUST / crate / "src").rglob("*.rs")),
    ]
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {
        path.relative_to(ROOT).as_posix().removeprefix("python/deskhand/") for path in files if lengths[path] > USUAL
    } == set(LONG)
    assert max(lengths.values()) <= LONGEST
    assert len(LONG) <= 5
