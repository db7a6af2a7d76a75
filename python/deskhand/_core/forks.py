"""What a process that was forked has of its parent's: nothing that it could use.

`os.fork` copies the locks that other threads hold, but not those threads, and connections that the parent goes on to use. This
module owns how an object learns that it is such a copy, and the end of copied descriptors: servers and guards see that a parent
has ended when nobody has its sockets and pipes any more. What must never appear here: what an object does then.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Protocol

from deskhand._native import forked
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Owner", "share"]


class _Shared(Protocol):
    """What has descriptors that a forked process is not to keep."""

    def descriptors(self) -> Iterable[int]:
        """Those that are open. No lock may be taken: whoever has it may not be there."""
        ...


_shared: weakref.WeakSet[_Shared] = weakref.WeakSet()
_process = os.getpid()


def share(thing: _Shared) -> None:
    """Let go of its descriptors in processes that are forked from now on."""
    _shared.add(thing)


class Owner:
    """The process that made an object."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        """This one."""
        self._pid = _process

    @property
    def is_parent(self) -> bool:
        """Whether this process was forked from it since."""
        return self._pid != _process

    def refuse_if_parent(self, what: str) -> None:
        """Raise in a process that was forked from it.

        Raises:
            BackendError: It was; says what to do.
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
    # Each number stays taken: its object may still close it, and must not close another file then.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for thing in _shared:
        for descriptor in thing.descriptors():
            os.dup2(nothing, descriptor, inheritable=False)
    _shared.clear()
    os.close(nothing)


os.register_at_fork(after_in_child=_begin)
