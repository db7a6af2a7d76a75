"""Removes the container of a driver that vanished. Run by its guard: `python -m deskhand.launch.removal DIRECTORY`."""

from __future__ import annotations

import sys

from deskhand.launch.docker import remove_of
from deskhand.launch.engine import connect_engine

__all__ = ["main"]


def main() -> None:
    """Remove the container that names that directory."""
    remove_of(connect_engine(), sys.argv[1])


if __name__ == "__main__":
    main()
