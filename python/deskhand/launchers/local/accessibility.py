"""The accessibility bus of a local desktop: what is to be installed for it, and what starts it.

The session bus starts the bus itself (`org.a11y.Bus`) when somebody asks for its address. The registry, which applications
announce themselves to, is started here: Qt announces itself once, and to nobody where the registry is not there yet.
"""

from __future__ import annotations

import shlex
from pathlib import Path

__all__ = ["has_accessibility", "registry_command"]

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
            # Its other words are for a session of GNOME's.
            return words[:1] if Path(words[0]).is_file() else None
    return None


def has_accessibility(directory: Path) -> bool:
    """Whether the desktop of that private directory was launched with an accessibility bus."""
    return (directory / "at-spi").is_dir()
