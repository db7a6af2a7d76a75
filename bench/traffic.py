"""Counts the requests that reach an X server, with the server's own extension RECORD. Recording slows the server down.

`python -m bench.traffic` records on the display of its environment; `Traffic` is the controlling side. It never uses a
connection of the driver.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from bench.child import Child, Replies
from bench.stage import environment_of

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.desktop.desktop import Desktop

__all__ = ["Traffic", "requests_in"]

_LIMIT = 10.0
_FROM_CLIENT = 1
_UNIT = 4


class Traffic:
    """A count of the requests of all clients of a desktop."""

    def __init__(self, desktop: Desktop, scratch: Path) -> None:
        """Start recording; the program's output goes to a file in `scratch`."""
        log = scratch / f"traffic-{str(desktop.display).strip(':')}.log"
        self._child = Child("bench.traffic", env=environment_of(desktop), log=log)
        self._child.ask(op="count")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()

    def count(self) -> int:
        """The requests since the last call, except those of this count."""
        return int(self._child.ask(op="count")["requests"])


def requests_in(data: bytes) -> int:
    """The number of requests in these bytes of one client."""
    count = at = 0
    while at + _UNIT <= len(data):
        units = int.from_bytes(data[at + 2 : at + 4], "little")
        # A large request has a length of zero, and its real length in the next four bytes.
        units = units or int.from_bytes(data[at + 4 : at + 8], "little")
        if units == 0:
            break
        at += units * _UNIT
        count += 1
    return count


class _Recorder:
    """Two connections, as RECORD requires: one controls the recording, and the other only receives it."""

    def __init__(self) -> None:
        from Xlib.display import Display  # noqa: PLC0415 # only the recording process needs them
        from Xlib.ext import record  # noqa: PLC0415

        self._control, self._data = Display(), Display()
        self._ours = self._control.display.info.resource_id_base
        self._counted = threading.Condition()
        self._requests = self._marks = self._expected = 0
        nothing = (0, 0)
        wanted = {
            "core_requests": (0, 127),
            "core_replies": nothing,
            "ext_requests": (128, 255, 0, 65535),
            "ext_replies": (0, 0, 0, 0),
            "delivered_events": nothing,
            "device_events": nothing,
            "errors": nothing,
            "client_started": False,
            "client_died": False,
        }
        context = self._control.record_create_context(0, [record.AllClients], [wanted])
        self._control.sync()
        threading.Thread(target=self._data.record_enable_context, args=(context, self._note), daemon=True).start()

    def _note(self, reply: Any) -> None:
        if reply.category != _FROM_CLIENT:
            return
        with self._counted:
            if reply.id_base == self._ours:
                self._marks += 1
                self._counted.notify_all()
            else:
                self._requests += requests_in(reply.data)

    def handle(self, _message: dict[str, Any]) -> dict[str, object]:
        """Wait until a request of our own is recorded: everything before it has been counted then."""
        with self._counted:
            marks = self._marks
        for _ in range(round(_LIMIT / 0.05)):
            # The first requests may be made before the recording begins.
            self._control.sync()
            with self._counted:
                if self._counted.wait_for(lambda: self._marks > marks, 0.05):
                    requests, self._requests = self._requests, 0
                    return {"requests": requests}
        raise TimeoutError("the server records nothing")


def main() -> None:
    """Record."""
    Replies(_Recorder().handle).forever()


if __name__ == "__main__":
    main()
