"""The connection to a desktop's accessibility bus: where it is found, here or on a machine of the desktop's own."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from deskhand._core.redaction import one_line
from deskhand._native import Elements as Session
from deskhand._native import accessibility_address
from deskhand.errors import BackendError, ConnectFailed, UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.machine.interface import DesktopMachine

_POLL = 0.01
# Seconds for a bus to come up, after which programs are started without it.
_COMPLETE = 5.0
_NO_BUS = (
    "its programs expose no accessibility tree. They do on a desktop that is launched here or in a container, where "
    "at-spi2-core is installed (apt-get install at-spi2-core), without elements=False. Texts can be read from pixels: "
    "desktop.elements(ocr=True), after pip install 'deskhand[ocr]'"
)


def connect(name: str, environment: Mapping[str, str], timeout: float) -> Session:
    """Connect to the bus of programs that get `environment`, on this machine.

    Args:
        name: Of the backend, for errors.
        environment: Has the address of the session's bus, which knows that of the accessibility bus.
        timeout: Seconds.

    Raises:
        UnsupportedAction: There is none.
        BackendError: It refuses.
    """
    address = _session_bus(environment)
    if address is None or environment.get("NO_AT_BRIDGE") == "1":
        raise UnsupportedAction(name, "elements", _NO_BUS)
    try:
        found = accessibility_address(_open(address, timeout), timeout)
    except BackendError as error:
        hint = f"{_NO_BUS} ({one_line(str(error), 200)})"
        raise UnsupportedAction(name, "elements", hint) from None
    return Session(_open(found, timeout), timeout)


def await_bus(environment: Mapping[str, str]) -> None:
    """Return when the bus of programs that get `environment` is complete, or cannot be had.

    For some hundredths of a second it has its name and no address. A program of Qt that looks for it then never announces
    itself.
    """
    if (address := _session_bus(environment)) is not None:
        with contextlib.suppress(BackendError):
            # The answer comes when the address is also where Qt looks for it.
            accessibility_address(_open(address, _COMPLETE), _COMPLETE)


def connect_inside(
    inside: DesktopMachine, rest: Callable[[float], object], clock: Callable[[], float], timeout: float
) -> Session:
    """Connect to the bus on a machine of the desktop's own.

    Args:
        inside: The machine.
        rest: Waits for so many seconds, between two tries.
        clock: Seconds.
        timeout: Seconds.

    Raises:
        BackendError: It cannot be reached within `timeout` seconds, or refuses.
    """
    deadline = clock() + timeout
    while True:
        try:
            entered = inside.enter_accessibility()
        except ConnectFailed as error:
            # It was not waited for when the desktop was started.
            if clock() >= deadline:
                raise BackendError(f"cannot reach the accessibility bus: {error.reason}") from error
            rest(_POLL)
        else:
            return Session(entered, max(_POLL, deadline - clock()))


def _session_bus(environment: Mapping[str, str]) -> str | None:
    address = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    return address if address.startswith("unix:") else None


def _open(address: str, timeout: float) -> int:
    """A descriptor of a socket that is connected to a bus; the caller's.

    Args:
        address: As D-Bus writes it: `unix:path=/run/bus,guid=...`.
        timeout: Seconds.
    """
    first = address.split(";", maxsplit=1)[0]
    transport, _, rest = first.partition(":")
    fields = dict(pair.split("=", 1) for pair in rest.split(",") if "=" in pair)
    path, abstract = fields.get("path"), fields.get("abstract")
    if transport != "unix" or (path is None and abstract is None):
        raise BackendError(f"the accessibility bus is at {one_line(address, 200)!r}, which is no Unix socket")
    from urllib.parse import unquote  # noqa: PLC0415 # for the first reading alone

    name = unquote(path) if path is not None else "\0" + unquote(abstract or "")
    with contextlib.ExitStack() as kept:
        connection = kept.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.settimeout(timeout)
        try:
            connection.connect(name)
        except (OSError, ValueError) as error:
            raise BackendError(f"cannot reach the accessibility bus at {one_line(address, 200)!r}: {error}") from None
        connection.settimeout(0)
        return connection.detach()
