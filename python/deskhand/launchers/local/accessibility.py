"""The accessibility bus of a local desktop: what it needs installed, and what starts it.

The session bus starts the bus itself (`org.a11y.Bus`) when a program asks for its address. The registry, which applications
announce themselves to, is started before the first of them, which waits until the bus is complete: Qt announces itself only
once, even if there is no registry.
"""

from __future__ import annotations

import shlex
from pathlib import Path

_BUS_DIRECTORY = "at-spi"
_BUS_SERVICE = Path("/usr/share/dbus-1/services/org.a11y.Bus.service")
_REGISTRY_SERVICE = Path("/usr/share/dbus-1/accessibility-services/org.a11y.atspi.Registry.service")


def registry_command() -> list[str] | None:
    """The command that runs the registry; None where AT-SPI is not installed."""
    if not _BUS_SERVICE.is_file():
        return None
    try:
        lines = _REGISTRY_SERVICE.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("Exec=") and (words := shlex.split(line.removeprefix("Exec="))):
            # Its other arguments are for a session of GNOME.
            return words[:1] if Path(words[0]).is_file() else None
    return None


def mark_accessible(directory: Path) -> None:
    """Mark that private directory, so that other drivers know that the desktop's programs show their elements."""
    # The bus will be here; it creates the directory if it is missing.
    (directory / _BUS_DIRECTORY).mkdir(mode=0o700)


def has_accessibility(directory: Path) -> bool:
    """Whether that directory is marked."""
    return (directory / _BUS_DIRECTORY).is_dir()
