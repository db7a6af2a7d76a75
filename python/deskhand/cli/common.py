"""The common parts of all commands: the chosen desktop, the form of arguments, and the output.

What must never appear here: a command.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from deskhand._core.redaction import clean
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deskhand._core.geometry import Rect
    from deskhand._core.observation import Observation

_SHOWN_RECTS = 8
_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class _Option(Protocol):
    """A decorator that adds an option to a command."""

    def __call__(self, command: _Command, /) -> _Command: ...


def examples(*lines: str) -> str:
    """The end of a command's help; the first line of it keeps click from filling the others."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def numbers(form: str, separator: str, count: int, least: int = 0) -> Callable[[object], tuple[int, ...]]:
    """The type of an option whose value is numbers joined by a separator: `1280x800`, `0,0,200,100`.

    Args:
        form: The form, for messages.
        separator: The text between two numbers.
        count: How many numbers there are.
        least: The least value of each.
    """

    def convert(value: object) -> tuple[int, ...]:
        try:
            found = tuple(int(part) for part in str(value).split(separator))
        except ValueError:
            found = ()
        if len(found) != count or min(found) < least:
            raise click.BadParameter(f"{value!r} is not of the form {form}")
        return found

    return convert


def names_that_begin(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a desktop that runs."""
    from deskhand.launchers import registry  # noqa: PLC0415 # as in `chosen`

    return [entry.name for entry in registry.entries() if entry.name.startswith(incomplete)]


desktop_option: _Option = click.option(
    "-d",
    "--desktop",
    envvar="DESKHAND_DESKTOP",
    metavar="NAME",
    shell_complete=names_that_begin,
    help="The desktop: a name of `deskhand ls`, a display such as x11::99, or a VNC server such as vnc://host:1. By default"
    " DESKHAND_DESKTOP, or the only one that runs.",
)

_QUIET = "deskhand.quiet"

quiet_option: _Option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _param, value: ctx.meta.update({_QUIET: True}) if value else None,
    help="Print no progress, but only the result.",
)


def is_quiet() -> bool:
    """Whether `--quiet` was given, to this command or to `deskhand` itself. In the command's own thread."""
    return bool(click.get_current_context().meta.get(_QUIET))


json_option: _Option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def chosen(desktop: str | None) -> str:
    """The chosen desktop.

    Raises:
        ActionError: None was named, and not exactly one runs.
    """
    if desktop is not None:
        return desktop
    from deskhand.launchers import registry  # noqa: PLC0415 # `--help` and `--version` need none of it, as below

    names = [entry.name for entry in registry.entries()]
    if not names:
        raise ActionError("no desktop runs: start one with `deskhand up`, or name a display, as in -d x11::99")
    if len(names) > 1:
        raise ActionError(f"several desktops run: {', '.join(names)}; choose one with -d NAME, or set DESKHAND_DESKTOP")
    return names[0]


def file_to_write(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse, before anything is done, a file that cannot be written. Commands check `-` themselves."""
    if value is None or value == "-":
        return value
    path = Path(value)
    if path.is_dir():
        raise click.BadParameter(f"{value!r} is a directory", param=param)
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no directory {str(path.parent)!r}", param=param)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{value!r} is not writable", param=param)
    return value


def standard_input(what: str) -> str:
    """Read all of standard input.

    Raises:
        ActionError: It is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ActionError(f"{what} on standard input is not UTF-8: {error.reason} at byte {error.start}") from error


def write_file(path: str | None, data: bytes) -> None:
    """Write a picture, if the command has an output."""
    if path is not None:
        Path(path).write_bytes(data)


def show_json(data: object) -> None:
    """One JSON document; everything beyond ASCII is escaped, so that no terminal acts on any of it."""
    click.echo(json.dumps(data, indent=2 if sys.stdout.isatty() else None))


def millis(seconds: float) -> float:
    """Seconds as milliseconds, to the microsecond."""
    return round(seconds * 1000, 3)


def place(rect: Rect) -> str:
    """A rectangle for people."""
    return f"{rect.width}x{rect.height} at {rect.x},{rect.y}"


def _places(rects: Sequence[Rect]) -> str:
    largest = sorted(rects, key=lambda rect: rect.width * rect.height, reverse=True)
    more = f" and {len(rects) - _SHOWN_RECTS} more" if len(rects) > _SHOWN_RECTS else ""
    return "; ".join(map(place, largest[:_SHOWN_RECTS])) + more


def _notes(seen: Observation) -> list[str]:
    from deskhand._core.observation import remarks  # noqa: PLC0415

    return [name.replace("_", " ") for name, value in remarks(seen).items() if value is True]


def describe(seen: Observation) -> str:
    """An observation in one line."""
    count = len(seen.rects)
    if not count:
        what = "nothing changed"
    elif count == 1:
        what = f"changed {place(seen.rects[0])}"
    else:
        what = f"changed {count} places, the largest {_places([max(seen.rects, key=lambda r: r.width * r.height)])}"
    rest = "" if seen.settled else f", not settled ({seen.reason})"
    notes = "".join(f", {note}" for note in _notes(seen))
    if seen.clipboard_lost:
        notes += f", and the clipboard has lost {clean(', '.join(seen.clipboard_lost))}"
    notes += "".join(f"; {clean(note)}" for note in seen.notes)
    return f"{what}{rest}{notes}, {seen.elapsed.total * 1000:.0f} ms"


def explain(seen: Observation) -> str:
    """An observation in full."""
    elapsed = seen.elapsed
    parts = ", ".join(f"{name} {getattr(elapsed, name) * 1000:.1f}" for name in elapsed.__slots__)
    lines = [
        ("settled", f"{'yes' if seen.settled else 'no'} ({seen.reason})"),
        ("changed", _places(seen.rects) if seen.rects else "nothing"),
        ("busy", _places(seen.busy) if seen.busy else "nothing"),
        ("elapsed", f"{elapsed.total * 1000:.1f} ms: {parts}"),
        ("cursor", f"{seen.cursor.x},{seen.cursor.y}"),
    ]
    lines += [(note, "yes") for note in _notes(seen)]
    if seen.clipboard_lost:
        lines.append(("lost", f"of the clipboard: {clean(', '.join(seen.clipboard_lost))}"))
    lines += [("note", clean(note)) for note in seen.notes]
    return "\n".join(f"{name:<8} {value}" for name, value in lines)


def observation_data(seen: Observation, file: str | None) -> dict[str, Any]:
    """An observation for programs."""
    elapsed = seen.elapsed
    return {
        "settled": seen.settled,
        "reason": str(seen.reason),
        "changed": seen.changed,
        "rects": [list(rect) for rect in seen.rects],
        "busy": [list(rect) for rect in seen.busy],
        "elapsed_ms": {
            **{name: millis(getattr(elapsed, name)) for name in elapsed.__slots__},
            "total": millis(elapsed.total),
        },
        "cursor": list(seen.cursor),
        "pointer_shape": seen.pointer_shape,
        "size": list(seen.size),
        "generation": seen.generation,
        "pasted": seen.pasted,
        "clipboard_lost": list(seen.clipboard_lost),
        "pointer_moved": seen.pointer_moved,
        "unanswered": seen.unanswered,
        "may_change": seen.may_change,
        "notes": list(seen.notes),
        "file": file,
    }


def report(
    seen: Observation, *, file: str | None, as_json: bool, text: Callable[[Observation], str] = describe
) -> None:
    """Save the frame and print the observation."""
    if file is not None:
        write_file(file, seen.png)
    if as_json:
        show_json(observation_data(seen, file))
    else:
        click.echo(text(seen))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. Every cell is cleaned, and none is cut off when a program may read it."""
    from rich import box  # noqa: PLC0415 # 40 ms that the commands without a table need not wait
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    content = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False)
    for name in header:
        content.add_column(name, no_wrap=True)
    for row in rows:
        # Text and not a string, in which a title could look like markup.
        content.add_row(*(Text(clean(cell)) for cell in row))
    Console(highlight=False, width=None if sys.stdout.isatty() else 10_000).print(content)
