"""An outline of elements in lines of text: how two are compared, and how one is cut to a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

# A word is about as long for the models that count tokens; names and punctuation are shorter.
_SIGNS_OF_A_TOKEN = 3.5


class Entry(NamedTuple):
    """An element in an outline.

    Attributes:
        depth: In how many others of the outline it is.
        ref: Its reference.
        above: The reference of the one whose line it is under; None for the first level.
        line: Its line.
    """

    depth: int
    ref: str
    above: str | None
    line: str


def differences(before: Sequence[Entry], now: Sequence[Entry]) -> list[str]:
    """What is different from `before`: lines that begin with `+`, `-` or `~`."""
    old = {entry.ref: entry.line for entry in before}
    there = {entry.ref for entry in now}
    lines = [f"- [{ref}]" for ref in old if ref not in there]
    # How far to the left what is new begins, under the element of before that it is in.
    left: dict[str, int] = {}
    for depth, ref, above, line in now:
        if ref not in old:
            indent = left.get(above or "", depth)
            left[ref] = indent + 1 if above in left else 1
            inside = "" if above is None or above in left else f" in [{above}]"
            lines.append(f"{'  ' * indent if above in left else ''}+ {line}{inside}")
        elif old[ref] != line:
            lines.append(f"~ {line}")
    return lines


def cut(lines: list[str], budget: int | None) -> str:
    """The lines as one text of about so many tokens at most; its last line says what was cut."""
    if budget is not None:
        if budget < 1:
            raise ActionError(f"the budget is a number of tokens, at least 1, not {shown(budget)}")
        left = budget * _SIGNS_OF_A_TOKEN
        for number, line in enumerate(lines):
            left -= len(line) + 1
            if left < 0:
                lines = [*lines[:number], f"({len(lines) - number} more lines were cut to keep {budget} tokens)"]
                break
    return "\n".join(lines)
