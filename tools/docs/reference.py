"""The pages of the reference: the API by rooms, the errors, and the command line.

The API is taken from the docstrings by mkdocstrings, which replaces each line `::: name`. This module decides which name stands
on which page, and has no word about a name itself.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, NamedTuple

from tools.docs.commands import commands, sections

import deskhand
from deskhand import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.docs.commands import Command

_PROVIDERS = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "google": "Google",
    "bedrock": "Amazon Bedrock",
    "agent_framework": "Microsoft Agent Framework",
    "langchain": "LangChain",
    "cua": "Cua",
    "inspect_ai": "Inspect",
    "mcp": "Model Context Protocol",
    "osworld": "OSWorld",
}


class Room(NamedTuple):
    """A page of the API.

    Attributes:
        title: Its heading, and its place in the navigation.
        about: What is on it.
        names: What is described there, in this order; a name without a dot is one of `deskhand` itself.
        whole: Whether the names are modules, all of whose public members are described.
    """

    title: str
    about: str
    names: str
    whole: bool = False


API = {
    "desktops": Room(
        "Desktops",
        "Get a desktop, act on it, look at it. Its parts are `clipboard`, `windows`, `machine`, `host` and `control`.",
        "launch connect Desktop desktop.clipboard.Clipboard desktop.window_list.Windows Window desktop.control.Control "
        "desktop.control.Hold Monitor Health Settle Reason Interrupted",
    ),
    "observations": Room(
        "Observations",
        "What the screen answered, in pictures and numbers.",
        "Observation Screenshot Elapsed difference Point Rect Size Viewport Fit",
    ),
    "actions": Room("Actions", "Everything that can be done to a screen.", "actions", whole=True),
    "elements": Room(
        "Elements",
        "What applications say that they show, and how to find, use and expect it.",
        "Elements Element Locator expect",
    ),
    "machine": Room(
        "Programs, shells and files",
        "The machine that a desktop stands on, and what confines a container.",
        "desktop.machine_view.Commands desktop.machine_view.Machine desktop.machine_view.Host "
        "Program Shell CommandResult Listing Usage LeftOutWarning "
        "Limits Mount",
    ),
    "policies": Room(
        "Policies",
        "What is allowed, asked, limited and logged.",
        "Guard ClassPolicy ActionClass Policy Context Decision Answer Questions RateLimits AuditLog Secret NoPolicyWarning",
    ),
    "operations": Room(
        "Operations",
        "What stands in the way of every call: interceptors, and the context of a model's call.",
        "Operation Interceptor desktop.operations.Looks CallContext calling SafetyCheck",
    ),
    "pools": Room("Pools", "Desktops that are kept ready.", "Pool PoolStatus pool.lease.Lease"),
    "coroutines": Room(
        "Coroutines",
        "The same for asyncio.",
        "AsyncDesktop AsyncShell AsyncPool aio.parts.AsyncClipboard aio.parts.AsyncWindows aio.parts.AsyncMachine "
        "aio.parts.AsyncHost aio.parts.AsyncLocator aio.parts.AsyncExpectations",
    ),
    "watching": Room("Watching", "A live page for people.", "watch", whole=True),
    **{
        f"providers-{name.replace('_', '-')}": Room(title, "", f"providers.{name}", whole=True)
        for name, title in _PROVIDERS.items()
    },
    "providers": Room(
        "What all providers share",
        "The names that each provider's package has, and a conversation's view of a desktop.",
        "providers.protocol providers.session providers.editors",
        whole=True,
    ),
    "execution": Room(
        "Function calls", "Calls of a model, in order, at once or by conditions.", "execution", whole=True
    ),
    "episodes": Room(
        "Episodes",
        "Tasks, their context, what an agent gets, and environments for agents that have a loop of their own.",
        "episodes.tasks.task episodes.tasks.context episodes.play.episode episodes.outcome episodes.environments.gym "
        "episodes.environments.inspect_ai episodes.environments.osworld",
        whole=True,
    ),
    "backends": Room(
        "Backends", "What a backend of your own has to have.", "backends.protocols backends.events", whole=True
    ),
}

ERRORS = sorted(
    name
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, errors.DeskhandError) and name[0] != "_"
)
"""The names of the public errors."""


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    api = {f"{name}.md": "\n".join(_room(room)) for name, room in API.items()}
    return {**api, "errors.md": "\n".join(_errors()), "commands.md": "\n".join(_commands())}


def public_names() -> set[str]:
    """What `from deskhand import *` would import, without the errors, which have a page of their own."""
    return {name for name in deskhand._PLACES if name != "__version__"} - set(ERRORS)


def _room(room: Room) -> Iterator[str]:
    yield from (f"# {room.title}", "", room.about, "")
    for name in room.names.split():
        yield f"::: deskhand.{name}"
        if room.whole and " " not in room.names:
            # The page's own heading stands for a page's only module.
            yield from ("    options:", "      show_root_heading: false", "      show_root_toc_entry: false")
        yield ""


def _errors() -> Iterator[str]:
    """The tree, what to do about each error, and the classes."""
    about = inspect.getdoc(errors) or ""
    tree = re.search(r"^    DeskhandError\n.*?\n\n", about, re.MULTILINE | re.DOTALL)
    assert tree is not None
    yield from (
        "# Errors",
        "",
        "Every error of this package is a `DeskhandError`. Its message says what happened, where, and what to do next.",
    )
    yield from ("", "```text", inspect.cleandoc(tree.group()), "```", "")
    yield from ("| error | what happened | what to do |", "| --- | --- | --- |")
    for name in ERRORS:
        what, advice = advice_of(name)
        yield f"| [`{name}`][deskhand.errors.{name}] | {_inline(what)} | {_inline(advice)} |"
    yield from ("", "## Classes", "")
    for name in ERRORS:
        yield from (f"::: deskhand.errors.{name}", "    options:", "      heading_level: 3", "")


def advice_of(name: str) -> tuple[str, str]:
    """What happened when an error is raised, and what to do about it: both are in its docstring."""
    paragraphs = (inspect.getdoc(getattr(errors, name)) or "").split("\n\n")
    advice = [text for text in paragraphs if text.startswith("What to do: ")]
    first = " ".join(paragraphs[0].split())
    return first, " ".join(advice[0].removeprefix("What to do: ").split()) if advice else ""


def _commands() -> Iterator[str]:
    found = {command.name: command for command in commands()}
    whole = found.pop("deskhand")
    yield from (
        "# Commands",
        "",
        f"{whole.summary} `-h` or `--help` prints what is here; `man deskhand` has it too.",
        "",
    )
    yield from _options(whole)
    for title, names in sections().items():
        yield from (f"## {title}", "")
        for name in names:
            for command in (each for each in found.values() if f"{each.name} ".startswith(f"deskhand {name} ")):
                yield from _command(command)


def _command(command: Command) -> Iterator[str]:
    yield from (f"### {command.name}", "", _inline(command.summary), "")
    yield from ("```text", f"{command.name} {command.usage}", "```", "")
    for paragraph in command.about:
        yield from ("```text", paragraph.text, "```", "") if paragraph.verbatim else (_inline(paragraph.text), "")
    yield from _options(command)
    if command.examples:
        yield from ("```sh", *command.examples, "```", "")


def _options(command: Command) -> Iterator[str]:
    for option in command.options:
        yield from (f"`{option.names}`", f":   {_inline(option.about) or '&nbsp;'}", "")


def _inline(text: str) -> str:
    """A sentence whose code is between backticks, with no other markup."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part if place % 2 else re.sub(r"([*_<\[\]|])", r"\\\1", part) for place, part in enumerate(parts))
