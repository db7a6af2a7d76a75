"""Environment variables, for every launcher, that make programs report their elements over AT-SPI, or not.

This module owns their names. What must never appear here: a bus.
"""

from __future__ import annotations

__all__ = ["SWITCHED_OFF", "SWITCHED_ON"]

SWITCHED_OFF = {"NO_AT_BRIDGE": "1"}
"""For programs without a bus: GTK would wait for one, and complain."""
SWITCHED_ON = {
    "ACCESSIBILITY_ENABLED": "1",  # Chromium and Electron
    "GNOME_ACCESSIBILITY": "1",  # Firefox
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
}
"""For programs with a bus. GTK needs nothing. The image's Dockerfile has the same."""
