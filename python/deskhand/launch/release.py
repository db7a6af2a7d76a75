"""Releases every key and button of a display. Run by the guard when a driver vanished while it held something.

`python -m deskhand.launch.release`, with `DISPLAY` and `XAUTHORITY` as for any X client.
"""

from __future__ import annotations

import os

from deskhand.backends.x11 import X11Backend

__all__ = ["main"]


def main() -> None:
    """Open the display to look, release, and go."""
    # To look: the vanished driver's lease may not have been cleared yet, and this must not fail for it.
    backend = X11Backend(os.environ["DISPLAY"], view_only=True)
    try:
        backend.release(())
    finally:
        backend.close()


if __name__ == "__main__":
    main()
