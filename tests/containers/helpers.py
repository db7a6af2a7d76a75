"""What the tests of containers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.launch.leftovers import LABEL_DIRECTORY

if TYPE_CHECKING:
    from deskhand.launch.engine import Engine


def containers(engine: Engine, directory: str | None = None) -> list[str]:
    """Names of the containers of deskhand's that are there, running or not; of one directory if it is given."""
    label = LABEL_DIRECTORY if directory is None else f"{LABEL_DIRECTORY}={directory}"
    found = engine.api.containers(all=True, filters={"label": label})
    return [entry["Names"][0].lstrip("/") for entry in found]
