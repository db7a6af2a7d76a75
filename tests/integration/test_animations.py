"""`launch(animations=)`: what programs of a toolkit are told, as they read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from zoo.stages import need_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop

# A window whose title is what the program was told.
_WINDOW = """
import gi
gi.require_version("Gtk", {version!r})
from gi.repository import GLib, Gtk
Gtk.init{arguments}
told = Gtk.Settings.get_default().props
window = Gtk.Window(title=f"{{told.gtk_enable_animations}} {{told.gtk_cursor_blink}}")
window.{show}()
GLib.MainLoop().run()
"""
_PARTS = {"3.0": {"arguments": "([])", "show": "show_all"}, "4.0": {"arguments": "()", "show": "present"}}


def _told(desktop: Desktop, version: str) -> str:
    python = need_module("gi.repository.Gtk", f"python3-gi gir1.2-gtk-{version}")
    program = desktop.start([python, "-c", _WINDOW.format(version=version, **_PARTS[version])], timeout=60)
    (title,) = [window.title for window in desktop.windows.list() if window.pid == program.pid]
    return title


@pytest.mark.parametrize(
    ("options", "told"),
    [({}, "False False"), ({"animations": True}, "True True"), ({"home": False}, "False False")],
    ids=["by default", "animations=True", "home=False"],
)
def test_programs_animate_only_if_asked(launch: Callable[..., Desktop], options: dict[str, Any], told: str) -> None:
    desktop = launch(size=(320, 240), elements=False, **options)
    for version in ("3.0", "4.0"):
        assert _told(desktop, version) == told


def test_the_settings_of_a_home_come_first(tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".config" / "gtk-3.0" / "settings.ini"
    settings.parent.mkdir(parents=True)
    settings.write_text("[Settings]\ngtk-enable-animations = 1\n")
    with deskhand.launch(size=(320, 240), elements=False, home=tmp_path / "home") as desktop:
        assert _told(desktop, "3.0") == "True False"


def test_a_desktop_begun_anew_has_them_too(launch: Callable[..., Desktop]) -> None:
    desktop = launch(size=(320, 240), elements=False)
    with desktop.reset() as again:
        assert _told(again, "3.0") == "False False"
