"""The changelog has its form, names what exists, and is made of fragments."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import deskhand
from deskhand.cli.group import commands
from deskhand.desktop.clipboard import Clipboard
from deskhand.desktop.control import Control
from deskhand.desktop.machine_view import Host, Machine
from deskhand.desktop.window_list import Windows

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")
KINDS = ("Added", "Changed", "Fixed", "Security", "Removed")
PARTS = {"clipboard": Clipboard, "control": Control, "host": Host, "machine": Machine, "windows": Windows}
_OF_PROVIDER = r"^(?:agent_framework|anthropic|bedrock|cua|google|inspect_ai|langchain|mcp|openai)\.\w+"
_MARK = "<!-- towncrier release notes start -->"


def versions(text: str = TEXT) -> dict[str, list[str]]:
    """The headings of each version, as they follow each other."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        name: re.findall(r"^### (.+)$", body, re.MULTILINE) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def names(text: str = TEXT) -> list[str]:
    """What is in code font, but for the old names of tables and for what no longer exists."""
    text = re.sub(r"^### Removed$.*?(?=^##|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\| (?:`[^`]*`|[^`|])*\|", "", text, flags=re.MULTILINE)
    return re.findall(r"`([^`]+)`", text)


@functools.cache
def homes() -> dict[str, list[str]]:
    """The modules that define a class, by its name."""
    found: dict[str, list[str]] = {}
    for source in sorted((ROOT / "python" / "deskhand").rglob("*.py")):
        module = ".".join(source.relative_to(ROOT / "python").with_suffix("").parts).removesuffix(".__init__")
        for name in re.findall(r"^class (\w+)", source.read_text("utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(module)
    return found


def classes(name: str) -> list[Any]:
    return [getattr(importlib.import_module(module), name) for module in homes().get(name, ())]


def has(value: Any, path: list[str]) -> bool:
    for number, part in enumerate(path):
        if not (hasattr(value, part) or _slot(value, part)):
            return False
        value = getattr(value, part, None)
        if value is None or isinstance(value, property):
            # What an attribute of an instance is, only its type would say.
            return number + 1 == len(path)
    return True


def _slot(value: Any, part: str) -> bool:
    """Whether objects of a class have an attribute that the class itself has not."""
    own = [base for base in getattr(value, "__mro__", ()) if base.__module__.startswith("deskhand")]
    return any(
        part in getattr(base, "__annotations__", ()) or re.search(rf"self\.{part}\b", inspect.getsource(base))
        for base in own
    )


def importable(dotted: str) -> bool:
    """Whether `deskhand.x.y` is a module, or an attribute of one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return has(module, parts[length:])
    return False


def missing(code: str) -> bool:
    """Whether a text in code font names something of the package that does not exist."""
    if command := re.match(r"deskhand ([a-z][\w-]*)(.*)", code, re.DOTALL):
        return _missing_command(*command.groups())
    if any(not importable(dotted) for dotted in re.findall(r"(?<![\w./])deskhand(?:\.[A-Za-z_]\w*)+", code)):
        return True
    if any(not importable(f"deskhand.providers.{dotted}") for dotted in re.findall(_OF_PROVIDER, code)):
        return True
    for owner, *path in (
        each.split(".") for each in re.findall(r"(?<![\w./'\"-])(?:desktop|[A-Z]\w+)(?:\.[a-z_]\w*)+", code)
    ):
        if owner == "desktop" and path[0] in PARTS and len(path) > 1:
            found = has(PARTS[path[0]], path[1:2])
        else:
            owners = [deskhand.Desktop] if owner == "desktop" else classes(owner)
            found = any(has(each, path[:1]) for each in owners)
        if not found:
            return True
    return False


def _missing_command(name: str, rest: str) -> bool:
    context = click.Context(commands)
    words = [name, *rest.split()]
    command = commands.get_command(context, name)
    if command is None:
        return True
    if isinstance(command, click.Group) and len(words) > 1 and re.fullmatch(r"[a-z][\w-]*", words[1]):
        command = command.get_command(context, words[1])
        if command is None:
            return True
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return any(
        option not in options | {"--help", "--version"} for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", rest)
    )


def test_each_kind_is_a_heading_once_in_each_version() -> None:
    for version, headings in versions().items():
        assert headings == [kind for kind in KINDS if kind in headings], version


def test_headings_that_come_twice_are_seen() -> None:
    assert versions("## 1\n### Added\n### Fixed\n### Added\n## 2\n") == {"1": ["Added", "Fixed", "Added"], "2": []}


def test_what_is_named_exists() -> None:
    assert len(names()) > 100
    assert [code for code in sorted(set(names())) if missing(code)] == []


@pytest.mark.parametrize(
    "code",
    [
        "deskhand.Governor",
        "deskhand.providers.seat",
        "anthropic.run_turn(desktop, message)",
        "Desktop.listener",
        "Desktop.probe()",
        "Governor.check",
        "desktop.shell(command)",
        "desktop.clipboard.get()",
        "deskhand paint",
        "deskhand run --fleet",
        "deskhand image make",
    ],
)
def test_what_does_not_exist_is_seen(code: str) -> None:
    assert missing(code)


@pytest.mark.parametrize(
    "code",
    [
        'deskhand.launch("docker")',
        "deskhand.providers.session.ModelSession",
        "anthropic.respond(desktop, response)",
        "Desktop.also(interceptor)",
        "Observation.may_change",
        "desktop.clipboard.read()",
        "deskhand run osworld:PATH",
        "deskhand audit verify",
        "deskhand image build --json",
    ],
)
def test_what_exists_is_seen(code: str) -> None:
    assert not missing(code)


# --- fragments ---


def rendered(folder: Path) -> str:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9", "--date", "2000-01-01"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What towncrier reads, without the fragments that are there."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changelog.d").mkdir()
    shutil.copy(ROOT / "changelog.d" / "README.md", tmp_path / "changelog.d")
    return tmp_path


def test_a_fragment_of_each_kind_becomes_an_entry_below_its_heading(folder: Path) -> None:
    for kind in KINDS:
        (folder / "changelog.d" / f"+thing.{kind.lower()}.md").write_text(f"Entry `{kind}` is\non two lines.\n")
    (folder / "changelog.d" / "+zebra.added.md").write_text("Second.\n")
    out = rendered(folder)
    assert list(versions(out).items()) == [("9.9.9 (2000-01-01)", list(KINDS))]
    for kind in KINDS:
        assert f"### {kind}\n\n- Entry `{kind}` is\n  on two lines.\n" in out
    assert "  on two lines.\n- Second.\n" in out


def test_a_version_is_put_before_the_earlier_ones(folder: Path) -> None:
    (folder / "changelog.d" / "+thing.fixed.md").write_text("It works.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--keep", "--version", "9.9.9"]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=True)
    text = (folder / "CHANGELOG.md").read_text("utf-8")
    newest, *earlier = versions(text)
    assert newest.startswith("9.9.9 (")
    assert earlier == list(versions())
    assert text.count(_MARK) == 1


def test_the_fragments_that_are_there_have_a_kind() -> None:
    kinds = "|".join(kind.lower() for kind in KINDS)
    others = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [name for name in others if not re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", name)] == []


def test_where_fragments_go_is_said_as_it_is_set() -> None:
    page = (ROOT / "changelog.d" / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [kind.lower() for kind in KINDS]
