"""Releases every key and button of a display. The guard runs this when a driver vanished while it held something.

`python -m deskhand.backends.x11.release_held`, with `DISPLAY` and `XAUTHORITY` as for any X client, and `DESKHAND_DRIVER` for
the process id of the driver that vanished.
"""

from __future__ import annotations

import os
import time

from deskhand.backends.x11.backend import X11Backend, driver_name
from deskhand.errors import ConnectFailed

# The guard waits for a stopped server elsewhere; a running one cleans up after a client within milliseconds.
_LEASE_LIMIT = 3.0
_RETRY_PERIOD = 0.01


def main() -> None:
    """Open the display, release everything, and leave."""
    backend = _open(os.environ["DISPLAY"], driver_name(int(os.environ.get("DESKHAND_DRIVER", "0"))))
    try:
        backend.release(())
    finally:
        backend.close()


def _open(display: str, vanished: str) -> X11Backend:
    """Wait for the driver's lease to go: the server may not yet have carried out all that the vanished driver sent."""
    deadline = time.monotonic() + _LEASE_LIMIT
    while time.monotonic() < deadline:
        try:
            return X11Backend(display)
        except ConnectFailed as error:
            if vanished not in error.target:
                break
        time.sleep(_RETRY_PERIOD)
    # Another driver has the display already, or the server is slow: what is held must be released in either case.
    return X11Backend(display, view_only=True)


if __name__ == "__main__":
    main()
