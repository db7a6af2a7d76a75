"""The settings of toolkits, for every launcher: whether to report elements over AT-SPI, and not to animate.

This module owns the names of environment variables and settings. What must never appear here: a bus.
"""

from __future__ import annotations

SWITCHED_OFF = {"NO_AT_BRIDGE": "1"}
"""For programs without a bus: GTK would wait for one, and complain."""
SWITCHED_ON = {
    "ACCESSIBILITY_ENABLED": "1",  # Chromium and Electron
    "GNOME_ACCESSIBILITY": "1",  # Firefox
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
}
"""For programs with a bus. GTK needs nothing. The image's Dockerfile has the same."""
STILL = dict.fromkeys(
    ("gtk-3.0/settings.ini", "gtk-4.0/settings.ini"),
    "[Settings]\ngtk-cursor-blink = 0\ngtk-enable-animations = 0\n",
)
"""Files for a directory of `XDG_CONFIG_DIRS`, so that programs show at once what they show. Chromium, Firefox and LibreOffice
follow GTK. What a home directory says comes first. The image has the same under `/etc`."""
STILL_CURSORS = {"XCURSOR_ANIM": "0"}
"""For the same programs: libXcursor loads one picture of a cursor, with its name. X servers name none that moves."""
ANIMATED = {"XDG_CONFIG_DIRS": "/usr/local/share/deskhand/animated:/etc/xdg"}
"""For programs in a container, where its image says otherwise."""
