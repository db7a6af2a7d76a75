"""The page for users of other projects: every name of theirs is on it, and its examples run."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from compatibility.declared import agent_framework, calute, conatus, cua
from compatibility.table import declared_names

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
DECLARED = {"conatus": conatus, "Cua": cua, "calute": calute, "Agent Framework": agent_framework}
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE))
ROWS = [
    (section, *row)
    for section, text in SECTIONS.items()
    for row in re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+)` \|$", text, re.MULTILINE)
]
PRINTED = {
    "conatus": "Size(width=1280, height=800)\n",
    "Cua": "[]\n",
    "calute": "ExecutionStatus.SUCCESS Done.\n",
    "Agent Framework": "image/png hello\n 0\n",
}


def prepared(section: str) -> Iterator[dict[str, Any]]:
    """What a section's example has made, by the names that it gave it, and what its table names, from where it says."""
    space: dict[str, Any] = {name: importlib.import_module(name) for name in ("typing", "deskhand")}
    try:
        for block in re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL):
            exec(compile(block, f"{PAGE.name}: {section}", "exec"), space)
        for owner, name, here, _ in ROWS:
            if owner == section:
                space[name] = getattr(importlib.import_module(here.removesuffix(f".{name}")), name)
        yield space
    finally:
        if isinstance(desktop := space.get("desktop"), deskhand.Desktop):
            desktop.close()


def done(example: str, space: dict[str, Any]) -> Any:
    """What an example comes to: the value of its last expression."""
    *statements, last = ast.parse(example).body
    if not isinstance(last, ast.Expr):
        exec(compile(example, example, "exec"), space)
        return None
    exec(compile(ast.Module(statements, []), example, "exec"), space)
    return eval(compile(ast.Expression(last.value), example, "eval"), space)


@pytest.mark.parametrize("section", DECLARED)
def test_every_name_is_on_the_page_where_it_is_here(section: str) -> None:
    declared = DECLARED[section]
    listed = {name: here for owner, name, here, _ in ROWS if owner == section}
    assert listed == {name: f"{declared.HERE}.{name}" for name in declared_names(declared)}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_of_a_section_run_in_their_order(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.contextmanager(prepared)(section) as space:
        assert capsys.readouterr().out == PRINTED[section]
        for owner, name, _, example in ROWS:
            if owner != section:
                continue
            value = done(example, space)
            # Where a call could not be carried out, a provider's answer says so, and nothing is raised.
            failed = getattr(value, "error", None) or (
                isinstance(value, dict) and "function_call_output" in value.values()
            )
            assert not failed, (name, value)
            assert value is not False, (name, example)


def test_the_page_is_linked() -> None:
    assert "docs/coming-from.md" in (PAGE.parents[1] / "README.md").read_text()
