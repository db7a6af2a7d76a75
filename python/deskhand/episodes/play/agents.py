"""Who acts: what an agent gets, the agents that are built in, and finding one by its name.

This module owns `Episode`, the agent's view of an episode, and the spelling of agents. What must never appear here: a limit
that is enforced (see `deskhand.episodes.play.budget`), an SDK (see `deskhand.episodes.play.loops`).
"""

from __future__ import annotations

import importlib
import random as chance
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_text
from deskhand.actions import (
    Action,
    DoubleClick,
    Drag,
    KeyPress,
    LeftClick,
    MiddleClick,
    Move,
    RightClick,
    Scroll,
    Type,
)
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.episodes.play.episode import Agent, Episode

__all__ = ["LOOPS", "find_agent", "is_code"]


LOOPS = ("agent-framework", "anthropic", "bedrock", "google", "langchain", "openai")
"""The SDKs of which there is a ready loop; `NAME:MODEL` says which model."""

_BUILT_IN = ("oracle", "nothing", "random")
_LETTERS = "abcdefghijklmnopqrstuvwxyz 0123456789"
_KEYS = ("Return", "Tab", "Escape", "BackSpace", "Up", "Down", "Left", "Right", "space", "Home", "End")


def is_code(name: str) -> bool:
    """Whether an agent of this name does what somebody wrote into a module, or into a record."""
    kind, _, rest = name.partition(":")
    return bool(rest) and kind not in LOOPS


def find_agent(name: str, *, host: bool = False) -> Agent:
    """An agent by its name: `oracle`, `nothing`, `random`, `replay:PATH`, `openai` or `openai:MODEL`..., `module:function`.

    Args:
        name: Its name.
        host: Whether `replay:PATH` may make recorded calls on desktops of this machine.

    Raises:
        EpisodeError: There is none of that name, or it cannot be loaded.
    """
    kind, _, rest = expect_text("find_agent: name", name).partition(":")
    if name in _BUILT_IN:
        return {"oracle": _oracle, "nothing": _nothing, "random": _random}[name]
    if kind == "replay" and rest:
        # It reads files, and the others need not wait for that.
        from deskhand.episodes.play.replay_agent import replay_agent  # noqa: PLC0415

        return replay_agent(rest, host=host)
    if kind in LOOPS:
        loop = importlib.import_module(f"deskhand.episodes.play.loops.{kind.replace('-', '_')}")
        return loop.agent(rest or None)  # type: ignore[no-any-return] # each has the same function
    if rest:
        return _function(kind, rest, name)
    known = ", ".join((*_BUILT_IN, "replay:PATH", *LOOPS, "module:function"))
    raise EpisodeError(f"there is no agent {name!r}; there are: {known}")


def _function(module: str, attribute: str, name: str) -> Agent:
    here = str(Path.cwd())
    # The command's own directory is where its code is, and not the user's.
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        missing = error.name or module
        hint = f"from {here} or from an installed package" if missing == module else f"which {module} imports"
        raise EpisodeError(f"agent {name!r}: there is no module {missing!r} to import, {hint}") from error
    except AttributeError as error:
        raise EpisodeError(f"agent {name!r}: {error}") from error
    except Exception as error:
        raise EpisodeError(f"agent {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise EpisodeError(f"agent {name!r} is no function, but a {type(found).__name__}")
    return found  # type: ignore[no-any-return] # of what an agent returns it is judged then


def _oracle(episode: Episode) -> str | None:
    """Do what the task itself knows to do."""
    return episode._oracle()  # noqa: SLF001 # no other agent may


def _nothing(episode: Episode) -> None:
    """Do nothing at all."""
    del episode


def _random(episode: Episode) -> None:
    """Do anything, the same for the same seed, until a limit ends it."""
    dice = chance.Random(episode.seed)  # noqa: S311 # to be repeated, not to be secret
    while episode.steps_left:
        episode.desktop.perform(_any_action(dice, *episode.desktop.size))


def _any_action(dice: chance.Random, width: int, height: int) -> Action:
    def point() -> tuple[int, int]:
        return dice.randrange(width), dice.randrange(height)

    makers: tuple[Callable[[], Action], ...] = (
        lambda: LeftClick(point()),
        lambda: LeftClick(point()),
        lambda: DoubleClick(point()),
        lambda: RightClick(point()),
        lambda: MiddleClick(point()),
        lambda: Move(point()),
        lambda: Drag((point(), point())),
        lambda: Scroll(point(), magnitude=dice.randint(1, 5), direction=dice.choice(("up", "down"))),
        lambda: Type("".join(dice.choice(_LETTERS) for _ in range(dice.randint(1, 12)))),
        lambda: KeyPress((dice.choice(_KEYS),)),
    )
    return dice.choice(makers)()
