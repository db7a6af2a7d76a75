"""Removes the containers of a lost driver. Its guard runs it: `python -m deskhand.launchers.docker.removal DIRECTORY`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import BackendError, LaunchFailed, MissingExtra
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.host import REMOVAL_LIMIT
from deskhand.launchers.docker.leftovers import settle_removal

if TYPE_CHECKING:
    from deskhand.launchers.docker.engine import Engine

_FIRST_POLL, _LAST_POLL = 0.1, 2.0


def main() -> None:
    """Remove everything that names that directory; wait for what the engine is still making."""
    directory = Path(sys.argv[1])
    deadline = time.monotonic() + REMOVAL_LIMIT
    pause = _FIRST_POLL
    while not _is_over(directory) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, _LAST_POLL)


def _is_over(directory: Path) -> bool:
    """As `is_removed`, with an engine that may be down, unreachable, or restarted."""
    try:
        engine = connect_engine()
    except (LaunchFailed, MissingExtra):
        return False
    try:
        return is_removed(engine, directory)
    finally:
        engine.close()


def is_removed(engine: Engine, directory: Path) -> bool:
    """Remove it if it is there; False when the engine may yet make it, or does not answer."""
    try:
        engine.revive()
        return settle_removal(engine, directory)
    except (BackendError, LaunchFailed):
        return False


if __name__ == "__main__":
    main()
