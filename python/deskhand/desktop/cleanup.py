"""Steps to be done at the end of something, each until it has been done.

This module owns what happens to a step that is interrupted. What must never appear here: what a step does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class CleanupStack:
    """Steps, of which the last one added is run first. A step that was interrupted is run again, and must allow that.

    A `contextlib.ExitStack` forgets a step when it begins: after a Ctrl-C in it, the rest of that step would never be done.
    """

    def __init__(self) -> None:
        """Begin without steps."""
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
        """Add a step, to be run before those that are there."""
        self._steps.append(step)

    def forget(self) -> None:
        """Forget all steps: another object runs them."""
        self._steps.clear()

    def close(self) -> None:
        """Run every step. One that fails is done with; one that is interrupted remains for the next time.

        Raises:
            BaseException: What a step raised, after all have run: of several the last, or the last interruption.
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
