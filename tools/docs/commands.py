"""The command line as data: what the reference page and the manual pages are both made from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple

import click

from deskhand.cli import group

if TYPE_CHECKING:
    from collections.abc import Iterator

# Before a paragraph that click prints as it is.
_AS_IT_IS = "\b\n"


class Paragraph(NamedTuple):
    text: str
    verbatim: bool


class Option(NamedTuple):
    """`--out DIR`, and what it does."""

    names: str
    about: str


class Command(NamedTuple):
    """A command or a group of commands.

    Attributes:
        name: As it is called: `deskhand image build`.
        usage: What follows the name.
        summary: One sentence.
        about: The rest of its help.
        options: All but `--help`.
        examples: Lines for a shell.
        below: The names of its own commands with their summaries.
    """

    name: str
    usage: str
    summary: str
    about: tuple[Paragraph, ...]
    options: tuple[Option, ...]
    examples: tuple[str, ...]
    below: tuple[tuple[str, str], ...]


def sections() -> dict[str, list[str]]:
    """The commands by what one wants to do, as `deskhand --help` has them."""
    return {title: list(section) for title, section in group._SECTIONS.items()}


def commands() -> list[Command]:
    """The group, and then each command that is not hidden, with those below it."""
    return list(_walk(group.commands, None, "deskhand"))


def _walk(command: click.Command, parent: click.Context | None, name: str) -> Iterator[Command]:
    context = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    below = {each: command.get_command(context, each) for each in _names(command, context)}
    shown = {each: found for each, found in below.items() if found and not found.hidden}
    yield _read(command, context, shown)
    for each, found in shown.items():
        yield from _walk(found, context, each)


def _names(command: click.Command, context: click.Context) -> list[str]:
    return command.list_commands(context) if isinstance(command, click.Group) else []


def _read(command: click.Command, context: click.Context, below: dict[str, click.Command]) -> Command:
    first, *rest = _paragraphs(command.help or "")
    return Command(
        name=context.command_path,
        usage=" ".join(command.collect_usage_pieces(context)),
        summary=first.text,
        about=tuple(rest),
        options=tuple(_options(command, context)),
        examples=_examples(command.epilog or ""),
        below=tuple((name, each.get_short_help_str(300)) for name, each in below.items()),
    )


def _paragraphs(text: str) -> list[Paragraph]:
    found = []
    for part in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        if part.startswith(_AS_IT_IS):
            found.append(Paragraph(part.removeprefix(_AS_IT_IS), verbatim=True))
        else:
            found.append(Paragraph(" ".join(part.split()), verbatim=False))
    return found


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        # click tells of arguments nothing but their names, which the usage has.
        if record and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield Option(record[0], " ".join(record[1].split()))


def _examples(epilog: str) -> tuple[str, ...]:
    lines = inspect.cleandoc(epilog.removeprefix(_AS_IT_IS)).splitlines()
    return tuple(line.strip() for line in lines if line.strip() and line.strip() != "Examples:")
