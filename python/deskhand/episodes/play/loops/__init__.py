"""Ready loops, one for each SDK: a model works until it makes no more calls, or a limit ends its part.

Each module has `agent(model, client)`, which makes an agent for `deskhand run`. The model is the named one, that of
`DESKHAND_MODEL` in the environment, or the module's default. With `elements`, the result of each call has the elements that it
changed, and the model can read all of them where its provider has functions beside the computer. The loops report usage to the
episode and note the model's texts. They do not catch an SDK's exceptions: `deskhand.episodes.play.failures` separates the
provider's from the agent's. They set no limits, and never repeat an action.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from deskhand.errors import EpisodeError
from deskhand.providers.session import ModelSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.sizes import PictureSize
    from deskhand.episodes.play.episode import Episode

__all__ = ["chosen", "made", "make_session", "tell"]

_MODEL = "DESKHAND_MODEL"
# Tokens: a window with a hundred elements, or what a dialog changes.
_ELEMENTS_BUDGET = 1500


def make_session(episode: Episode, provider: str, *, elements: bool, size: PictureSize | None = None) -> ModelSession:
    """The session that an agent's model has for an episode."""
    budget = _ELEMENTS_BUDGET if elements else None
    return ModelSession(episode.desktop, size=size, provider=provider, elements_budget=budget)


def chosen(model: str | None, default: str) -> str:
    """The name of the model to use."""
    return model or os.environ.get(_MODEL) or default


def made(name: str, make: Callable[[], Any]) -> Any:
    """Make a client of an SDK. A failure (no key, no region) is reported before any episode begins.

    Raises:
        EpisodeError: The client cannot be made.
    """
    try:
        return make()
    except Exception as error:
        raise EpisodeError(f"agent {name!r} has no client: {type(error).__name__}: {error}") from error


def tell(episode: Episode, text: str | None, used: tuple[int | None, int | None]) -> None:
    """Note a model's text, and report the tokens that it read and wrote, if its provider counts them."""
    if text:
        episode.note(text)
    read, written = used
    episode.spend(input=read or 0, output=written or 0)
