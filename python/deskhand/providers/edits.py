"""Texts as a model views and edits them: numbered lines, a replacement, an insertion, and cuts of long texts. Pure.

This module owns how a text is changed and shown. It has no files and no provider's payload.

* Lines end with a line feed and are counted from 1. The model sees each line with its number before it (`1: text`).
* If all lines of a file end with CR LF, the model sees LF, and the file is written back with CR LF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from deskhand.machine.interface import Listing

_AROUND = 4
_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text.

    Attributes:
        text: The text, with LF at the ends of lines.
        crlf: Whether all lines of the file end with CR LF.
    """

    text: str
    crlf: bool = False

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        lines = self.text.split("\n")
        return lines if lines[-1] else lines[:-1]

    @property
    def data(self) -> bytes:
        """The bytes for the file."""
        return (self.text.replace("\n", "\r\n") if self.crlf else self.text).encode()

    def of(self, given: str) -> str:
        """A text of the model, with this file's line ends."""
        return given.replace("\r\n", "\n") if self.crlf else given


def text_of(data: bytes, path: str) -> Text:
    """Decode the text of a file.

    Raises:
        ActionError: The file is not UTF-8, or has a zero byte.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ActionError(f"{path} is not UTF-8 text (byte {error.start}): use the shell for it") from None
    if "\0" in text:
        raise ActionError(f"{path} is binary: it has a zero byte. Use the shell for it")
    breaks = text.count("\n")
    if breaks and breaks == text.count("\r\n"):
        return Text(text.replace("\r\n", "\n"), crlf=True)
    return Text(text)


def numbered(text: Text, lines: tuple[int, int] | None, *, most: int) -> str:
    """The lines of a text with their numbers, and notes about what is left out.

    Args:
        text: The text.
        lines: The first and the last line, -1 for the end; None for all. A last line beyond the end means the end.
        most: The largest number of characters of the text; a single longer line is cut.

    Raises:
        ActionError: The text does not have these lines.
    """
    there = text.lines
    first, last = (1, -1) if lines is None else lines
    end = len(there) if last == -1 else min(last, len(there))
    if lines is not None and (first < 1 or first > max(1, len(there)) or (last != -1 and last < first)):
        raise ActionError(
            f"view_range {list(lines)} does not fit the file: it has {_counted(len(there))}, and the range is [first, last], "
            "counted from 1, with -1 for the end"
        )
    if not there:
        return "(the file is empty)"
    kept: list[str] = []
    size = 0
    for number in range(first, end + 1):
        line = there[number - 1]
        size += len(line) + 1
        if size > most:
            if not kept:
                kept.append(f"{number}: {line[:most]} (this line is cut: it has {len(line)} characters)")
            break
        kept.append(f"{number}: {line}")
    shown_to = first + len(kept) - 1
    notes = []
    if shown_to < end:
        notes.append(f"(lines {first} to {shown_to} of {len(there)} are shown: ask for others with view_range)")
    elif last > len(there):
        notes.append(f"(the file ends at line {len(there)})")
    return "\n".join([*kept, *notes])


def replaced(text: Text, old: str, new: str, path: str) -> tuple[Text, str]:
    """Replace one part of a text; returns the text and an excerpt.

    Raises:
        ActionError: The old part occurs never or more than once, or equals the new one.
    """
    old, new = text.of(old), text.of(new)
    if not old:
        raise ActionError("old_str is empty: give the text to replace, or use insert")
    if old == new:
        raise ActionError("old_str and new_str are the same: nothing was changed")
    places = _places(text.text, old)
    if not places:
        raise ActionError(
            f"no match for old_str was found in {path}: nothing was changed. View the file, and copy it exactly"
        )
    if len(places) > 1:
        lines = sorted({text.text.count("\n", 0, place) + 1 for place in places})
        many = ", ".join(map(str, lines)) + (" and more" if len(places) == _MOST_PLACES else "")
        raise ActionError(
            f"{len(places)} matches for old_str were found in {path}, at line {many}: nothing was changed. Give more of the "
            "text around it, so that it is unique"
        )
    at = places[0]
    made = Text(text.text[:at] + new + text.text[at + len(old) :], text.crlf)
    line = made.text.count("\n", 0, at) + 1
    return (
        made,
        f"Successfully replaced text at exactly one location in {path}.{_snippet(made, line, new.count(chr(10)))}",
    )


def _places(text: str, part: str) -> list[int]:
    """The positions of a part in a text, also overlapping ones; at most a few of many."""
    places: list[int] = []
    place = text.find(part)
    while place >= 0 and len(places) < _MOST_PLACES:
        places.append(place)
        place = text.find(part, place + 1)
    return places


def inserted(text: Text, line: int, new: str, path: str) -> tuple[Text, str]:
    """Insert lines after a line of a text; returns the text and an excerpt.

    Whole lines are inserted: a line end is added to the new text, or to the text before it, if it is missing.

    Raises:
        ActionError: There is no such line, or the new text is empty.
    """
    new = text.of(new)
    if not new:
        raise ActionError("there is no text to insert: give insert_text")
    parts = text.text.split("\n")
    there = len(text.lines)
    if not 0 <= line <= there:
        raise ActionError(f"insert_line {line} is not a line of {path}: use 0 to {there}")
    before, after = parts[:line], parts[line:]
    # After a last line without an end, the new text needs no end either.
    if after and not new.endswith("\n"):
        new += "\n"
    head = "".join(f"{each}\n" for each in before)
    made = Text(head + new + "\n".join(after), text.crlf)
    count = len(Text(new).lines)
    return (
        made,
        f"Successfully inserted {_counted(count)} after line {line} of {path}.{_snippet(made, line + 1, count - 1)}",
    )


def listed(listing: Listing, path: str) -> str:
    """The names in a directory, as a text for the model."""
    names = [name if name.isprintable() else shown(name) for name in listing.names]
    lines = [f"The files and directories up to 2 levels deep in {path}, without hidden ones:", *names]
    if not names:
        lines = [f"There are no files and directories in {path}, besides hidden ones."]
    return "\n".join([*lines, "(there are more)"] if listing.more else lines)


def _snippet(text: Text, line: int, more: int) -> str:
    """The lines around an edit, or the beginning of them."""
    there = text.lines
    if not there:
        return " The file is empty now."
    first = max(1, min(line, len(there)) - _AROUND)
    last = min(len(there), line + more + _AROUND, first + 10 * _AROUND)
    return " This is around it now:\n" + numbered(text, (first, last), most=_AROUND * 1000)


def _counted(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"
