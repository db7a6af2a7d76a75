"""`import deskhand`: what it offers, and what it does not load."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import deskhand
import deskhand.cli
from deskhand.cli.group import commands
from deskhand.launchers.docker.spec import ContainerOptions
from deskhand.launchers.launch_options import EnvironmentOptions, LaunchOptions

# Each is what few programs need and what takes as long to import as the rest.
HEAVY = {
    "asyncio",
    "dataclasses",
    "deskhand.actions",
    "deskhand.desktop.desktop",
    "click",
    "deskhand.aio.desktop",
    "deskhand.episodes",
    "deskhand.launchers.docker.launch",
    "deskhand.launchers.docker.spec",
    "deskhand.pool.pool",
    "docker",
    "numpy",
    "ssl",
}


def loaded_text(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def loaded(code: str) -> set[str]:
    """The modules that a program has loaded, but for those that Python itself loads here at its start."""
    tell = "import json, sys\nprint(json.dumps(list(sys.modules)))"
    before, after = (json.loads(loaded_text(f"{each}\n{tell}").splitlines()[-1]) for each in ("", code))
    return set(after) - set(before)


def test_what_few_need_is_imported_later() -> None:
    assert not loaded("import deskhand") & HEAVY
    assert "deskhand.launchers.docker.spec" in loaded("import deskhand; deskhand.Limits")


def test_the_command_line_imports_only_the_command() -> None:
    code = "from deskhand.cli.group import commands; commands(['click', '--help'], standalone_mode=False)"
    never = {"deskhand.launchers.docker.launch", "deskhand.episodes", "deskhand.aio.desktop", "deskhand.policy.guard"}
    assert not (never | {"deskhand.launchers.local.launch", "deskhand.machine.shell", "rich"}) & loaded(code)
    for none in ("--version", "--help"):
        code = f"from deskhand.cli.group import commands; commands(['{none}'], standalone_mode=False)"
        assert not {name for name in loaded(code) if re.match(r"deskhand\.(actions|desktop|launchers)\b", name)}


def test_all_that_is_public_is_there() -> None:
    assert set(deskhand.__all__) <= set(dir(deskhand))
    for name in deskhand.__all__:
        assert getattr(deskhand, name) is not None
    assert not hasattr(deskhand, "PoolScheduler")
    with pytest.raises(AttributeError, match="has no attribute 'LeftClik'"):
        _ = deskhand.LeftClik
    assert deskhand.errors.ActionError is deskhand.ActionError
    assert "errors ActionError" in loaded_text("import deskhand; print('errors', deskhand.errors.ActionError.__name__)")


def test_a_star_brings_all_names() -> None:
    names: dict[str, object] = {}
    exec("from deskhand import *", names)  # the statement is the subject
    assert {name for name in names if name != "__builtins__"} == set(deskhand.__all__)


def test_nothing_internal_is_listed() -> None:
    listed = [name for name in dir(deskhand) if not name.startswith("__")]
    assert set(listed) == set(deskhand.__all__) - {"__version__"}


def test_the_names_for_type_checkers_are_the_names() -> None:
    tree = ast.parse(Path(deskhand.__file__).read_text())
    (checking,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    told = {name.asname: node.module for node in checking.body for name in node.names}
    assert told == deskhand._PLACES


def test_help_is_an_overview() -> None:
    text = pydoc.render_doc(deskhand, renderer=pydoc.plaintext)
    assert text.count("\n") < 80
    for name in ("launch", "Desktop.perform", "AsyncPool", "DeskhandError", "deskhand.providers"):
        assert name in text


def test_every_command_is_listed_with_its_module() -> None:
    found = {}
    for module in pkgutil.iter_modules(deskhand.cli.__path__):
        for command in getattr(importlib.import_module(f"deskhand.cli.{module.name}"), "COMMANDS", ()):
            found[command.name] = command
    context = click.Context(commands)
    assert {name: commands.get_command(context, name) for name in commands.list_commands(context)} == found
    assert commands.get_command(context, "none") is None


def test_options_of_a_pool_are_those_of_launch() -> None:
    named = {name for name, at in inspect.signature(deskhand.launch).parameters.items() if at.kind is at.KEYWORD_ONLY}
    assert set(LaunchOptions.__annotations__) - set(ContainerOptions.__annotations__) == named - {"size", "name"}
    assert set(EnvironmentOptions.__annotations__) == set(LaunchOptions.__annotations__) - {"limits"}
