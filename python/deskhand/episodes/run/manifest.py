"""The manifest of a run: what it was begun with, in its directory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_path
from deskhand._native import __version__
from deskhand.episodes.record.reader import LONGEST_PART, read_part
from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = "manifest.json"
VERSION = 1
"""The version of the manifest's form."""

# The fields of a manifest that continuing needs, and their types.
_NEEDED: Mapping[str, tuple[type, ...]] = {
    "agent": (str,),
    "run_seed": (int,),
    "backend": (str,),
    "image": (str, type(None)),
    "limit": (int, type(None)),
    "ledger": (str,),
    "seeds": (int,),
    "repeats": (int,),
    "desktops": (int,),
    "engine": (str,),
    "select": (list,),
    "tasks": (dict,),
    "started": (int, float),
}
# The first manifests lack both: their runs had these unless the command line said otherwise.
_ADDED: Mapping[str, Any] = {"desktops": 1, "engine": "local"}


def read_manifest(directory: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Read the manifest of the run in a directory.

    Raises:
        EpisodeError: There is no run, or its manifest is damaged or has another version.
    """
    path = Path(expect_path("read_manifest: directory", directory)) / MANIFEST
    if not os.path.exists(path):  # noqa: PTH110 # False for a name that is too long, too
        raise EpisodeError(f"there is no run in {directory}: it has no {MANIFEST}")
    try:
        manifest = json.loads(read_part(path, LONGEST_PART))
    except (ValueError, RecursionError) as error:
        raise EpisodeError(f"{path} cannot be read: {error}; begin a new run in another directory") from error
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        version = manifest.get("version") if isinstance(manifest, dict) else None
        raise EpisodeError(
            f"{path} is of version {version}, and deskhand {__version__} reads version {VERSION}: go on with the deskhand that "
            "began it, or begin a new run in another directory"
        )
    if not _ADDED.keys() & manifest.keys():
        manifest = {**_ADDED, **manifest}
    lacking = [name for name in _NEEDED if name not in manifest]
    wrong = [name for name, kinds in _NEEDED.items() if not isinstance(manifest.get(name), kinds)]
    if wrong:
        reason = f"it lacks {', '.join(lacking)}" if lacking else f"{wrong[0]} is {shown(manifest[wrong[0]])}"
        raise EpisodeError(
            f"{path} is not the manifest of a run that can continue: {reason}; begin one in another directory"
        )
    return manifest


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Put the manifest of a run in its place, whole or not at all.

    Raises:
        EpisodeError: It cannot be written.
    """
    temporary = directory / f".{MANIFEST}.{os.getpid()}"
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(directory / MANIFEST)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise EpisodeError(
            f"{directory / MANIFEST} cannot be written: {error}; make room, or give another --out"
        ) from error
