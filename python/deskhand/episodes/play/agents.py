"""Agents: their view of an episode, the built-in ones, and finding one by its name.

This module owns `Episode`, the agent's view of an episode, and the names of agents. Limits are enforced in
`deskhand.episodes.play.budget`, and SDKs are used in `deskhand.episodes.play.loops`.
"""

from __future__ import annotations

import hashlib
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
from deskhand.episodes.tasks.catalogue import collect_files
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.episodes.play.episode import Agent, Episode

LOOPS = ("agent-framework", "anthropic", "bedrock", "google", "langchain", "openai")
"""The SDKs of which there is a ready loop; `NAME:MODEL` says which model, and `NAME+elements` also gives it the elements."""

_WITH_ELEMENTS = "+elements"

_BUILT_IN = ("oracle", "nothing", "random")
_LETTERS = "abcdefghijklmnopqrstuvwxyz 0123456789"
_KEYS = ("Return", "Tab", "Escape", "BackSpace", "Up", "Down", "Left", "Right", "space", "Home", "End")


def is_code(name: str) -> bool:
    """Whether an agent of this name runs code of a module or of a record."""
    kind, _, rest = name.partition(":")
    return bool(rest) and kind.removesuffix(_WITH_ELEMENTS) not in LOOPS


def find_agent(name: str, *, host: bool = False) -> Agent:
    """An agent by its name: `oracle`, `nothing`, `random`, `replay:PATH`, `openai`, `openai:MODEL`..., `module:function`.

    Args:
        name: Its name; an SDK's with `+elements`, as in `openai+elements:MODEL`, also gives the model the elements.
        host: Whether `replay:PATH` may make recorded calls on desktops of this machine.

    Raises:
        EpisodeError: There is no such agent, or it cannot be loaded.
    """
    kind, _, rest = expect_text("find_agent: name", name).partition(":")
    if name in _BUILT_IN:
        return {"oracle": _oracle, "nothing": _nothing, "random": _random}[name]
    if kind == "replay" and rest:
        # It reads files, and the other agents need not wait for its import.
        from deskhand.episodes.play.replay_agent import replay_agent  # noqa: PLC0415

        return replay_agent(rest, host=host)
    if (sdk := kind.removesuffix(_WITH_ELEMENTS)) in LOOPS:
        loop = importlib.import_module(f"deskhand.episodes.play.loops.{sdk.replace('-', '_')}")
        return loop.agent(rest or None, elements=sdk != kind)  # type: ignore[no-any-return] # each has the same function
    if rest:
        return _function(kind, rest, name)
    known = ", ".join((*_BUILT_IN, "replay:PATH", *LOOPS, "module:function"))
    raise EpisodeError(f"there is no agent {name!r}; there are: {known}")


def agent_code(name: str) -> str | None:
    """A digest of the code of an agent that is a function: of its module and of those beside it that it uses. Else None.

    Raises:
        EpisodeError: It cannot be loaded, or its code cannot be read.
    """
    if not is_code(name) or name.startswith("replay:"):
        return None
    find_agent(name)
    files: set[Path] = set()
    collect_files(sys.modules[name.partition(":")[0]], files)
    whole = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EpisodeError(f"agent {name!r}: {path} cannot be read: {error.strerror}") from error
        whole.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def _function(module: str, attribute: str, name: str) -> Agent:
    here = str(Path.cwd())
    # For a command, Python searches the directory of its script instead of the user's.
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
        raise EpisodeError(f"agent {name!r} is not a function, but a {type(found).__name__}")
    return found  # type: ignore[no-any-return] # its result is checked after the run


def _oracle(episode: Episode) -> str | None:
    """Do the task with its own oracle."""
    return episode._oracle()  # noqa: SLF001 # only this agent may


def _nothing(episode: Episode) -> None:
    """Do nothing."""
    del episode


def _random(episode: Episode) -> None:
    """Do random actions, the same for the same seed, until a limit ends it."""
    dice = chance.Random(episode.seed)  # noqa: S311 # for repeatability, not for secrecy
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
