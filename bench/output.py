"""What the benchmark's commands share: names on the command line, the report's file, tables in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.tables import MARKERS, into
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.figures import Report

__all__ = ["chosen", "write_page", "write_report"]


def chosen(option: str, given: str | None, known: Iterable[str]) -> list[str]:
    """The names that an option gives, with commas; all that are known if it is not given."""
    known = list(known)
    names = known if given is None else [name for name in given.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"no {', '.join(unknown)}; there are: {', '.join(known)}", param_hint=option)
    return names


def write_report(path: str, report: Report, *, targets: bool = False) -> None:
    """Write it as JSON; the verdicts on targets are those of `python -m bench` alone."""
    content = {name: part for name, part in report.to_dict().items() if targets or name != "targets"}
    Path(path).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_page(path: str, text: str, markers: tuple[str, str] = MARKERS) -> None:
    """Write tables between a page's markers.

    Raises:
        ActionError: The page does not have the markers.
    """
    page = Path(path)
    try:
        content = into(page.read_text(), text, markers)
    except ValueError as error:
        raise ActionError(f"{path}: {error}") from error
    page.write_text(content)
