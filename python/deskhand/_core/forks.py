"""Keeps a forked process from using what belongs to its parent.

`os.fork` copies the locks that other threads hold, but not those threads, and connections that the parent goes on to use. This
module owns how an object learns that it is such a copy, and closes copied descriptors: servers and guards see that a parent
has ended when no process has its sockets and pipes open any more. What must never appear here: what an object does then.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Protocol

from deskhand._native import forked
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Shared(Protocol):
    """An object with descriptors that a forked process must not keep."""

    def descriptors(self) -> Iterable[int]:
        """Return the open ones. It must not take a lock: the thread that holds it may not exist in the forked process."""
        ...


_shared: weakref.WeakSet[_Shared] = weakref.WeakSet()
_process = os.getpid()


def share(thing: _Shared) -> None:
    """Close its descriptors in processes that are forked from now on."""
    _shared.add(thing)


class Owner:
    """Remembers which process made an object."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        """Remember this process."""
        self._pid = _process

    @property
    def is_parent(self) -> bool:
        """Whether this process was forked from that one since."""
        return self._pid != _process

    def refuse_if_parent(self, what: str) -> None:
        """Raise in a process that was forked from that one.

        Raises:
            BackendError: This process was forked; the message says what to do.
        """
        if self._pid != _process:
            raise BackendError(
                f"{what} belongs to process {self._pid}, from which this one was forked: launch or connect here, "
                'or start processes by another method, such as multiprocessing.get_context("spawn")'
            )


def _begin() -> None:
    global _process  # noqa: PLW0603 # there is one process
    _process = os.getpid()
    forked()
    # Each number stays taken: its object may still close it, and must not close another file that got the number.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for thing in _shared:
        for descriptor in thing.descriptors():
            os.dup2(nothing, descriptor, inheritable=False)
    _shared.clear()
    os.close(nothing)


os.register_at_fork(after_in_child=_begin)
