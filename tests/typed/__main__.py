"""Type every text of the corpus into every text field, and write what came of it as a table.

`PYTHONPATH=tests .venv/bin/python -m typed [--tries 20] [--out evidence/typing.md] [FIELD ...]`
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand
from deskhand import DeskhandError, Type
from typed.corpus import CORPUS, LINES
from typed.fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from typed.fields import Field

# A cell of what is right, what was told to be wrong, and what was wrong without a word.
Counts = tuple[int, int, int]


def tried(field: Field, text: str, tries: int) -> tuple[Counts, str]:
    """How it went, and the first text or error that was not the one expected."""
    right = told = wrong = 0
    example = ""
    for _ in range(tries):
        field.clear()
        try:
            field.desktop.perform(Type(text))
        except DeskhandError as error:
            told += 1
            example = example or str(error)
            continue
        got = field.text(text)
        if got == text:
            right += 1
        else:
            wrong += 1
            example = example or got
    return (right, told, wrong), example


def measured(name: str, start: Callable[[deskhand.Desktop, Path], Field], tries: int) -> dict[str, tuple[Counts, str]]:
    """Each text in one field, on a desktop of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-typed-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
        with deskhand.launch(size=(1000, 700), env={"HOME": folder, **folders}) as desktop:
            field = start(desktop, home)
            found = {}
            for kind, text in CORPUS.items():
                if kind in LINES and not field.lines:
                    continue
                found[kind] = tried(field, text, tries)
                print(f"{name}: {kind}: {found[kind]}", flush=True)
            return found


HEAD = (
    "# What arrives of a text, by application",
    "",
    "Written by `PYTHONPATH=tests .venv/bin/python -m typed --out evidence/typing.md`. Each text is typed so many times into a",
    "new field and read back. Told: the call failed before anything was sent, and said why.",
    "",
)


def table(results: dict[str, dict[str, tuple[Counts, str]]]) -> str:
    """The table, and an example of each cell that is not right throughout."""
    rows = [["", *results], ["---"] * (len(results) + 1)]
    rows += [[kind, *(_cell(found.get(kind)) for found in results.values())] for kind in CORPUS]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    notes = [
        f"* {name}, {kind}: {counts[1]} told, {counts[2]} wrong of {sum(counts)}: {example.strip()!r:.120}"
        for name, found in results.items()
        for kind, (counts, example) in found.items()
        if counts[1] or counts[2]
    ]
    return "\n".join([*HEAD, *lines, "", *notes, ""])


def _cell(found: tuple[Counts, str] | None) -> str:
    if found is None:
        return "–"
    right, told, wrong = found[0]
    parts = [
        f"{right} of {right + told + wrong}",
        *([f"{told} told"] if told else []),
        *([f"**{wrong} wrong**"] if wrong else []),
    ]
    return ", ".join(parts)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m typed", description=__doc__)
    parser.add_argument("fields", nargs="*", metavar="FIELD", help=f"of {', '.join(FIELDS)}; all by default")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--out", type=Path, help="where the table goes; results of other fields there are kept")
    arguments = parser.parse_args()
    kept = arguments.out and arguments.out.with_suffix(".json")
    results = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for name in arguments.fields or FIELDS:
        results[name] = measured(name, FIELDS[name], arguments.tries)
        if kept:
            ordered = {known: results[known] for known in FIELDS if known in results}
            kept.write_text(json.dumps(ordered, ensure_ascii=False, indent=1))
            arguments.out.write_text(table(ordered))


main()
