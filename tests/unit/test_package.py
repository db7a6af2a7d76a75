"""`import deskhand`: what it offers, and what it does not load."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import click

import deskhand
import deskhand.cli
from deskhand.cli.group import commands
from deskhand.launchers.docker.spec import ContainerOptions
from deskhand.launchers.launch_options import EnvironmentOptions, LaunchOptions

# Each is what few programs need and what takes as long to import as the rest.
HEAVY = {
    "asyncio",
    "click",
    "deskhand.aio.desktop",
    "deskhand.launchers.docker.launch",
    "deskhand.launchers.docker.spec",
    "deskhand.pool.pool",
    "docker",
    "numpy",
    "ssl",
}


def loaded(code: str) -> set[str]:
    program = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_what_few_need_is_imported_later() -> None:
    assert not loaded("import deskhand") & HEAVY
    assert "deskhand.launchers.docker.spec" in loaded("import deskhand; deskhand.Limits")


def test_the_command_line_imports_only_the_command() -> None:
    code = "from deskhand.cli.group import commands; commands(['click', '--help'], standalone_mode=False)"
    assert not {"deskhand.launchers.docker.launch", "deskhand.episodes", "deskhand.aio.desktop"} & loaded(code)


def test_all_that_is_public_is_there() -> None:
    assert set(deskhand.__all__) <= set(dir(deskhand))
    for name in deskhand.__all__:
        assert getattr(deskhand, name) is not None
    assert not hasattr(deskhand, "PoolScheduler")


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
