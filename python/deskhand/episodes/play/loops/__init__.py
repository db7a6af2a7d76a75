"""Ready loops, one for each SDK: a model works until it asks for nothing more, or a limit ends its part.

Each module has `agent(model, client)`, which makes an agent for `deskhand run`; the model is the one named, that of
`DESKHAND_MODEL` in the environment, or the module's own. What a request used is told to the episode, and what the model says is
noted. An SDK's exceptions are let through: `deskhand.episodes.play.failures` knows the provider's from the agent's. What must
never appear here: a limit, a retry of an action.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.episodes.play.episode import Episode

__all__ = ["chosen", "made", "tell"]

_MODEL = "DESKHAND_MODEL"


def chosen(model: str | None, default: str) -> str:
    """Which model is asked."""
    return model or os.environ.get(_MODEL) or default


def made(name: str, make: Callable[[], Any]) -> Any:
    """A client of an SDK: where it cannot be made (there is no key, or no region) that is said before any episode begins.

    Raises:
        EpisodeError: It cannot.
    """
    try:
        return make()
    except Exception as error:
        raise EpisodeError(f"agent {name!r} has no client: {type(error).__name__}: {error}") from error


def tell(episode: Episode, text: str | None, used: tuple[int | None, int | None]) -> None:
    """Note what a model said, and the tokens that it read and wrote, where its provider counts them."""
    if text:
        episode.note(text)
    read, written = used
    episode.spend(input=read or 0, output=written or 0)
