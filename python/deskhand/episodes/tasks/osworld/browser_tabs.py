"""Closes tabs of the browser by its own protocol, from inside of the desktop's machine."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.tasks.context import TaskContext

_SECONDS = 30


def close_tabs(context: TaskContext, profile: str, urls: Sequence[str]) -> None:
    """Close the tabs that show these addresses.

    Args:
        context: The desktop.
        profile: The folder of the browser's profile, which names its port.
        urls: The addresses; a slash at the end, and www at the beginning, make no difference.

    Raises:
        EpisodeError: The browser does not answer.
    """
    wanted = {_plain(url) for url in urls}
    tabs = json.loads(_ask(context, profile, "/json"))
    for tab in tabs:
        if tab.get("type") == "page" and _plain(str(tab.get("url", ""))) in wanted:
            _ask(context, profile, f"/json/close/{tab['id']}")


def _plain(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    return parts.netloc.removeprefix("www."), parts.path.rstrip("/"), parts.query


def _ask(context: TaskContext, profile: str, path: str) -> str:
    program = (resources.files("deskhand.episodes.tasks") / "machine_side" / "ask.pl").read_text(encoding="utf-8")
    line = shlex.join(["perl", "-e", program, str(_SECONDS), f"{profile}/DevToolsActivePort", path])
    said = context.run(line, timeout=2.0 * _SECONDS)
    if said.exit_code != 0:
        raise EpisodeError(f"the browser does not answer {shown(path)}: {said.stderr.strip() or said.outcome}")
    return said.stdout
