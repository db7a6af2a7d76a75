"""Removes the container of a driver that vanished. Run by its guard: `python -m deskhand.launch.removal DIRECTORY`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import BackendError
from deskhand.launch.docker import REMOVAL_LIMIT, UNANSWERED, remove_of
from deskhand.launch.engine import connect_engine

if TYPE_CHECKING:
    from deskhand.launch.engine import Engine

__all__ = ["is_removed", "main"]

_FIRST_POLL, _LAST_POLL = 0.1, 2.0


def main() -> None:
    """Remove the container that names that directory; one that the engine is still making is waited for."""
    directory = Path(sys.argv[1])
    engine = connect_engine()
    deadline = time.monotonic() + REMOVAL_LIMIT
    pause = _FIRST_POLL
    while not is_removed(engine, directory) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, _LAST_POLL)


def is_removed(engine: Engine, directory: Path) -> bool:
    """Remove it if it is there; False when the engine may yet make it, or does not answer."""
    # In this order: an engine that made it after we looked has not been waited for otherwise.
    answered = not (directory / UNANSWERED).exists()
    try:
        return remove_of(engine, directory) or answered
    except BackendError:
        return False


if __name__ == "__main__":
    main()
