"""The page for users of other projects: every name of theirs is on it, and its examples run."""

from __future__ import annotations

import ast
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


@pytest.fixture(scope="module")
def spaces() -> Iterator[dict[str, dict[str, Any]]]:
    """What each section's example has made, by the names that it gave it."""
    made: dict[str, dict[str, Any]] = {}
    yield made
    for space in made.values():
        if isinstance(desktop := space.get("desktop"), deskhand.Desktop):
            desktop.close()


def space_of(section: str, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if section not in made:
        made[section] = {name: importlib.import_module(name) for name in ("typing", "deskhand", "deskhand.execution")}
        for block in re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL):
            exec(compile(block, f"{PAGE.name}: {section}", "exec"), made[section])
        for owner, _, here, _ in ROWS:
            if owner == section:
                module, _, name = here.rpartition(".")
                made[section][name] = getattr(importlib.import_module(module), name)
    return made[section]


@pytest.mark.parametrize("section", DECLARED)
def test_every_name_is_on_the_page_where_it_is_here(section: str) -> None:
    declared = DECLARED[section]
    listed = {name: here for owner, name, here, _ in ROWS if owner == section}
    assert listed == {name: f"{declared.HERE}.{name}" for name in declared_names(declared)}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_example_of_a_section_runs(
    section: str, spaces: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    space_of(section, spaces)
    assert capsys.readouterr().out == PRINTED[section]


@pytest.mark.parametrize(("section", "name", "here", "example"), ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
def test_the_example_of_a_name_runs(
    section: str, name: str, here: str, example: str, spaces: dict[str, dict[str, Any]]
) -> None:
    assert here.endswith(f".{name}")
    space = space_of(section, spaces)
    *statements, last = ast.parse(example).body
    exec(compile(ast.Module(statements, []), example, "exec"), space)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), example, "exec"), space)
        return
    value = eval(compile(ast.Expression(last.value), example, "eval"), space)
    assert value is not False
    # Where a call could not be carried out, a provider's answer says so, and nothing is raised.
    assert getattr(value, "error", None) is None
    if isinstance(value, dict):
        assert value.get("type") != "function_call_output", value


def test_the_page_is_linked() -> None:
    assert "docs/coming-from.md" in (PAGE.parents[1] / "README.md").read_text()
