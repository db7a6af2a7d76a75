"""What tests of holds and pauses share: an interceptor that hears of control, and calls in threads of their own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand import AsyncDesktop, Desktop, Operation
    from deskhand.desktop.control_state import ControlEvent

LIMIT = 30


class Heard:
    """Hears operations, and of control."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.events: list[ControlEvent] = []

    def before(self, operation: Operation) -> object:
        self.operations.append(operation)
        return None

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        pass

    def control(self, event: ControlEvent) -> None:
        self.events.append(event)


class Call:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.result: object = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:  # noqa: BLE001 # it is looked at
            self.result = error

    def end(self) -> Any:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the call goes on"
        return self.result


def until_waiting(desktop: Desktop | AsyncDesktop, count: int = 1) -> None:
    done = threading.Event()
    for _ in range(LIMIT * 200):
        if len(desktop.control.waiting) == count:
            return
        done.wait(0.005)
    raise AssertionError(f"{desktop.control.waiting} wait, not {count}")
