"""Converts any value of an agent or a task into plain JSON data that may be kept: bounded, and without secrets.

This module owns the limits and the masking. It has no files.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import MASK, Secret
from deskhand.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEPTH = 16
_LARGEST_INTEGER = 1 << 64


def sanitize(value: Any, *, text: int, parts: int, secrets: Iterable[Secret] = ()) -> Any:
    """A value as plain JSON data; values that JSON cannot express become text.

    Args:
        value: Anything, even an object that contains itself.
        text: Characters of one text; a longer one is cut at its end, with a note about the cut.
        parts: Items of all its lists and dictionaries together; more are cut likewise.
        secrets: Replaced by `***` wherever they appear.
    """
    return _Plain(text, parts, tuple(secrets)).of(value, 0)


class _Plain:
    def __init__(self, text: int, parts: int, secrets: tuple[Secret, ...]) -> None:
        self._text = text
        self._left = parts
        self._secrets = secrets

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if isinstance(value, dict | list | tuple):
            if depth >= _DEPTH or self._left <= 0:
                return "..."
            return self._dictionary(value, depth + 1) if isinstance(value, dict) else self._list(value, depth + 1)
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._masked(value)
        if value is None or isinstance(value, bool | Secret):
            return MASK if isinstance(value, Secret) else value
        # Subclasses, such as numpy's numbers or an enumeration's members, become plain values.
        if isinstance(value, int) and abs(value) < _LARGEST_INTEGER:
            return int(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        return self._masked(shown(value))

    def _dictionary(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, each in value.items():
            if self._left <= 0:
                kept["..."] = f"{len(value) - len(kept)} more"
                break
            kept[self._masked(name if isinstance(name, str) else shown(name))] = self.of(each, depth)
        return kept

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        items: list[Any] = []
        for each in value:
            if self._left <= 0:
                items.append(f"... and {len(value) - len(items)} more")
                break
            items.append(self.of(each, depth))
        return items

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            if secret:
                text = text.replace(secret.reveal(), MASK)
        more = len(text) - self._text
        return text if more <= 0 else f"{text[: self._text]}... and {more} characters more"
