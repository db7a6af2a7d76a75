"""Manual pages: `deskhand.1`, and one for each command, in the man(7) macros."""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import TYPE_CHECKING

from tools.docs.commands import commands

import deskhand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tools.docs.commands import Command

# Characters that roff takes for something else (groff_char(7)): a hyphen that can be copied, and so on.
_SPECIAL = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_EXITS = {
    "0": "done",
    "1": "it failed, and a line on the standard error output says why; or a check found something",
    "2": "the command is wrong: an option or an argument",
    "124": "`deskhand shell`: the time was up",
    "128+n": "signal n ended it: 130 after Ctrl-C",
}


def write(folder: Path) -> list[Path]:
    """Write all pages into a folder.

    Args:
        folder: It is made if it is not there.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = commands()
    names = {command.name for command in found}
    pages = []
    for command in found:
        path = folder / f"{_file_name(command.name)}.1"
        path.write_text("\n".join(_page(command, names)) + "\n")
        pages.append(path)
    return pages


def _file_name(name: str) -> str:
    return name.replace(" ", "-")


def _page(command: Command, names: set[str]) -> Iterator[str]:
    title = _file_name(command.name)
    yield f'.TH {title.upper()} 1 {_date()} "deskhand {deskhand.__version__}" "deskhand manual"'
    yield ".SH NAME"
    yield f"{_escape(title)} \\- {_text(command.summary.rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_escape(command.name)}"
    yield _escape(command.usage)
    if command.about:
        yield ".SH DESCRIPTION"
        for number, paragraph in enumerate(command.about):
            yield from [".PP"] if number else []
            yield from _literal(paragraph.text.splitlines()) if paragraph.verbatim else [_line(paragraph.text)]
    if command.options:
        yield ".SH OPTIONS"
        for option in command.options:
            yield from (".TP", f".B {_escape(option.names)}", _line(option.about or "See the description."))
    if command.below:
        yield ".SH COMMANDS"
        for name, about in command.below:
            yield from (".TP", f".B {_escape(name)}", _line(about))
    if command.name == "deskhand":
        yield ".SH EXIT STATUS"
        for code, meaning in _EXITS.items():
            yield from (".TP", f".B {code}", _line(meaning))
    if command.examples:
        yield ".SH EXAMPLES"
        yield from _literal(list(command.examples))
    if related := _related(command, names):
        yield ".SH SEE ALSO"
        pages = [f".BR {_escape(_file_name(name))} (1)" for name in related]
        yield from (f"{page} ," for page in pages[:-1])
        yield pages[-1]


def _related(command: Command, names: set[str]) -> list[str]:
    """The command above it, and those below."""
    above = command.name.rpartition(" ")[0]
    return sorted(name for name in names if name == above or name.rpartition(" ")[0] == command.name)


def _literal(lines: list[str]) -> Iterator[str]:
    yield from (".RS 4", ".nf")
    yield from (_line(line, plain=True) for line in lines)
    yield from (".fi", ".RE")


def _line(text: str, *, plain: bool = False) -> str:
    """A line of text, which roff must not take for a request."""
    line = _escape(text) if plain else _text(text)
    return rf"\&{line}" if line.startswith((".", r"\(aq")) else line


def _text(text: str) -> str:
    """Code in bold letters."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(rf"\fB{_escape(part)}\fR" if place % 2 else _escape(part) for place, part in enumerate(parts))


def _escape(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


def _date() -> str:
    """The day of the build, or of `SOURCE_DATE_EPOCH`, so that a package is the same each time it is built."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    day = dt.datetime.fromtimestamp(int(epoch), dt.UTC) if epoch else dt.datetime.now(dt.UTC)
    return f"{day:%Y-%m-%d}"
