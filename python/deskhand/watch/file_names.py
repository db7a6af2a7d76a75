"""The names that a page's files get on a desktop.

A name comes from another computer and is untrusted: it may be made to lead out of a directory, to hide a file, or to be read
as an
option of a command. This module is pure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from deskhand._core.redaction import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

# File systems take 255 bytes; this leaves room for a number.
_MOST_BYTES = 200
_MOST_OF_SUFFIX = 20
_MOST_NUMBERS = 1000
# A dot at the beginning hides a file; at the end, Windows leaves dots and blanks out.
_AROUND = re.compile(r"^[\s.]+|[\s.]+$")
# What Windows reads as a drive, a stream or a pattern.
_MEANT = re.compile(r'[:*?"<>|]')
# Devices of Windows by these names, with any suffix: a desktop may have the directory from there.
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def file_name(given: str) -> str:
    """A name for a file in a directory: one part of a path that hides nothing and begins no option.

    Args:
        given: The name that the page sent.
    """
    last = unicodedata.normalize("NFC", clean(given)).replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = _AROUND.sub("", _MEANT.sub("_", last))
    if not name:
        return "file"
    if name.startswith(("-", "~")) or _RESERVED.fullmatch(name):
        name = f"_{name}"
    stem, suffix = _parts(name)
    return _cut(stem, _MOST_BYTES - len(suffix.encode())) + suffix


def numbered(name: str) -> Iterator[str]:
    """A name, and those that are taken if it is in use: `a.png`, `a (1).png`, `a (2).png`..."""
    yield name
    stem, suffix = _parts(name)
    for number in range(1, _MOST_NUMBERS):
        yield f"{stem} ({number}){suffix}"


def _parts(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > _MOST_OF_SUFFIX:
        return name, ""
    return stem, dot + suffix


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore").rstrip()
