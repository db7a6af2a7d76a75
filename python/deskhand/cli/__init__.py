"""The command line: `deskhand up | ls | down | start | image | screenshot | do | type | key | click | ...`.

This package owns the commands' words: arguments in, one line or one JSON document out, and the exit code (0 done, 1 it
failed, 2 the command is wrong, 128 and the signal's number when it was ended). What must never appear here: a wait, a
coordinate computed, a key pressed without `Desktop.perform`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_EXTRA = {"click", "rich"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit.

    Args:
        arguments: What follows `deskhand`; by default those of this process.
    """
    try:
        from deskhand.cli.group import run  # noqa: PLC0415 # its libraries come with an extra, and may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.exit("deskhand: the command line needs click and rich: pip install 'deskhand[cli]'")
    sys.exit(run(arguments))
