"""The image that a task of Harbor is done in: that of its Dockerfile, with a desktop on top of it.

This module owns the name of that image, and which directories can be written in it. What must never appear here: a field of
`task.toml`.
"""

from __future__ import annotations

import hashlib
import tempfile
from typing import TYPE_CHECKING, Any

from deskhand.episodes.tasks.harbor.folder import digest_tree, pack_tree
from deskhand.errors import LaunchFailed, TaskError
from deskhand.launchers.docker.dressing import dress_image, kept_by, recipe_digest

if TYPE_CHECKING:
    from pathlib import Path

_REPOSITORY = "deskhand/harbor"
_WRITABLE = ("/logs", "/tests", "/solution", "/root")
_LINE = 90


def image_name(content: bytes, directory: str) -> str:
    """The name of a task's image.

    Args:
        content: The digest of its folder `environment`, or the name of the image that it begins with.
        directory: The working directory; empty for that of the image.
    """
    whole = [recipe_digest(), content, directory.encode()]
    digest = hashlib.sha256(b"\0".join(whole)).hexdigest()
    return f"{_REPOSITORY}:{digest[:24]}"


def build_image(task: str, name: str, source: str | tuple[Path, bytes], *, directory: str, seconds: float) -> None:
    """Build a task's image, unless it is there.

    Args:
        task: The task's name, for errors.
        name: The image's name, see `image_name`.
        source: The image that it begins with, or the folder `environment` and the digest that the folder must have.
        directory: The working directory; empty for that of the image.
        seconds: How long the build of a Dockerfile may take.

    Raises:
        TaskError: It cannot be built, with the end of the output; or the folder has changed.
        LaunchFailed: The engine does not answer.
    """
    limits: Any = {"directory": directory, "writable": _WRITABLE, "seconds": seconds}
    try:
        if isinstance(source, str):
            dress_image(name, source, **limits)
            return
        folder, digest = source
        if digest_tree(folder, task) != digest:
            raise TaskError(task, f"its {folder.name} has changed since the run began", "begin another run")
        with tempfile.TemporaryFile() as packed:
            pack_tree(folder, task, packed, kept_by(folder))
            packed.seek(0)
            dress_image(name, packed, **limits)
    except LaunchFailed as error:
        cause = error.__cause__
        if cause is not None and not 400 <= (getattr(cause, "status_code", None) or 0) < 500:
            raise
        tail = " | ".join(map(_brief, error.log_tail.splitlines()[-4:]))
        raise TaskError(task, f"its image cannot be built: {tail or error.message}") from error


def _brief(line: str) -> str:
    """A line of a build: the end of a command's line says how it ended."""
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} ... {line[-_LINE // 2 :]}"
