"""A lock that was switched for a key is switched back, whatever comes between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand import _native
from deskhand._core.events import Event, KeyDown, KeyUp, Pause
from deskhand.backends.events import encode
from deskhand.backends.vnc.backend import VncBackend
from deskhand.backends.vnc.keyboard import CAPS_LOCK, Keyboard
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Sequence

HOLD: list[Event] = [KeyDown(ord("w")), Pause(0.1), KeyUp(ord("w"))]
SWITCH: list[Event] = [KeyDown(CAPS_LOCK), KeyUp(CAPS_LOCK)]


class Server:
    """A connection to a server with CapsLock on, on which the first sending fails."""

    features = ("fence",)

    def __init__(self, error: BaseException | None) -> None:
        self.sent: list[Sequence[Any]] = []
        self.error = error

    def locks(self) -> tuple[bool, bool]:
        return True, False

    def send(self, events: Sequence[Any]) -> None:
        self.sent.append(events)
        error, self.error = self.error, None
        if error is not None:
            raise error


def backend_of(server: Server) -> VncBackend:
    backend = VncBackend.__new__(VncBackend)
    vars(backend).update(_vnc=server, _keyboard=Keyboard(), _closed=True)
    return backend


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (None, []),
        (_native.Interrupted("stopped"), [SWITCH]),
        (KeyboardInterrupt(), [SWITCH]),
        (BackendError("the server does not want it"), []),
    ],
    ids=["no error", "stopped", "Ctrl-C", "refused"],
)
def test_who_is_stopped_in_a_pause_leaves_the_lock_as_it_was(
    error: BaseException | None, more: list[list[Event]]
) -> None:
    server = Server(error)
    if error is None:
        backend_of(server).send(HOLD)
    else:
        with pytest.raises(type(error)):
            backend_of(server).send(HOLD)
    assert server.sent == [encode([*SWITCH, *HOLD, *SWITCH]), *map(encode, more)]


def test_a_key_that_no_lock_is_in_the_way_of_is_sent_as_it_is() -> None:
    server = Server(None)
    backend_of(server).send([KeyDown(ord("1")), KeyUp(ord("1"))])
    assert server.sent == [encode([KeyDown(ord("1")), KeyUp(ord("1"))])]
