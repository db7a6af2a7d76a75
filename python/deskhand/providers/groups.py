"""A call's steps in the groups in which they are carried out, and what an error says of those before it. Pure."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeAlias

from deskhand.actions import Action, CursorPosition
from deskhand.errors import DeskhandError
from deskhand.providers.values import Browse, HandOver, ReadElements, StartProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.providers.values import ProviderCall

_Group: TypeAlias = tuple[Action, ...] | Browse | HandOver | ReadElements | StartProgram


def groups_of(call: ProviderCall, done: int) -> Iterator[tuple[int, _Group]]:
    """The steps in groups of consecutive actions, which a question for the pointer's position ends; each with what is done."""
    run: list[Action] = []
    for step in (*call.steps, None):
        if isinstance(step, Action):
            run.append(step)
        if run and (not isinstance(step, Action) or isinstance(step, CursorPosition)):
            yield done, tuple(run)
            done, run = done + len(run), []
        if isinstance(step, Browse | HandOver | ReadElements | StartProgram):
            yield done, step
            done += 1


@contextlib.contextmanager
def counted_from(done: int) -> Iterator[None]:
    """In this block, an error says which action of the model's call failed, of whose actions so many were done before."""
    try:
        yield
    except DeskhandError as error:
        if error.index is not None:
            error.index, error.done = error.index + done, (error.done or 0) + done
        raise
