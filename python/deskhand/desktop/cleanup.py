"""What is to be done at the end of something, each step until it has been done.

This module owns what becomes of a step that is interrupted. What must never appear here: what a step does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CleanupStack"]


class CleanupStack:
    """Steps, of which the last one added is taken first. Each may be taken again after it was interrupted, and must allow it.

    A `contextlib.ExitStack` forgets a step when it begins: after a Ctrl-C in it, nobody would wait for the rest of it.
    """

    def __init__(self) -> None:
        """There is nothing to do."""
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
        """Do this too, before those that are there."""
        self._steps.append(step)

    def forget(self) -> None:
        """Do nothing of it: it is somebody else's to do."""
        self._steps.clear()

    def close(self) -> None:
        """Take every step. One that fails is done with; one that is interrupted remains, for the next time.

        Raises:
            BaseException: What a step raised, when all have been taken: of several the last, or the last interruption.
        """
        raised: BaseException | None = None
        for step in reversed(tuple(self._steps)):
            try:
                step()
            except Exception as error:  # noqa: BLE001 # the others are taken all the same
                if raised is None or isinstance(raised, Exception):
                    raised = error
            except BaseException as error:  # noqa: BLE001 # as before
                raised = error
                continue
            self._steps.remove(step)
        if raised is not None:
            raise raised
