"""The environment of a desktop's programs, and their home directory.

This module owns what they see of the driver's environment. What must never appear here: a process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ActionError, BackendError
from deskhand.launchers.toolkits import STILL, STILL_CURSORS, SWITCHED_OFF, SWITCHED_ON

if TYPE_CHECKING:
    from collections.abc import Mapping

_LC_CTYPE_MASK = 1
# The directory of settings in a desktop's private directory.
_SETTINGS = "settings"
# Variables that lead to the keys and passwords of the driver's user.
_KEYS = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "GNOME_KEYRING_PID")
# The directories of the user's fonts, themes and icons, which programs may see, by the variable of XDG's base directory.
_SHOWN = {
    "XDG_CACHE_HOME": (".cache", ("fontconfig",)),
    "XDG_CONFIG_HOME": (".config", ("fontconfig",)),
    "XDG_DATA_HOME": (".local/share", ("fonts", "icons", "themes")),
}
_SHOWN_AT_HOME = (".fonts", ".icons", ".themes")
# They would ask for a password before an application comes up, or show it the user's.
_KEYRINGS = ("org.freedesktop.secrets", "org.gnome.keyring", "org.kde.kwalletd5", "org.kde.kwalletd6")


@dataclass(frozen=True, slots=True)
class Home:
    """The home directory of one desktop, and its directory for temporary files.

    Attributes:
        directory: The desktop's private directory.
        template: The directory that it is a copy of; None: empty, with the fonts, themes and icons that the user has installed
            visible.
    """

    directory: Path
    template: Path | None = None

    @property
    def path(self) -> Path:
        """Its path."""
        return self.directory / "home"

    def environment(self) -> dict[str, str]:
        """The variables that point programs here; those of the driver may point elsewhere."""
        folders = {"CONFIG": ".config", "CACHE": ".cache", "DATA": ".local/share", "STATE": ".local/state"}
        where = {f"XDG_{kind}_HOME": str(self.path / folder) for kind, folder in folders.items()}
        return {"HOME": str(self.path), "TMPDIR": str(self.directory / "tmp"), **where}

    def fill(self) -> None:
        """Make both. Sockets, named pipes and devices of the template are left out, with a warning.

        Raises:
            ActionError: There is no template.
            BackendError: It cannot be copied.
        """
        (self.directory / "tmp").mkdir(mode=0o700)
        if self.template is None:
            self.path.mkdir(mode=0o700)
            _show_installed(self.path)
        else:
            _copy(self.template, self.path)
        # The session bus looks here first.
        services = self.directory / "dbus-1" / "services"
        services.mkdir(parents=True)
        for name in _KEYRINGS:
            (services / f"{name}.service").write_text(f"[D-BUS Service]\nName={name}\nExec=/bin/false\n")


def _copy(template: Path, home: Path) -> None:
    from deskhand.launchers.left_out import LeftOut, kind_of  # noqa: PLC0415 # few homes are copies

    left_out = LeftOut()

    def special(folder: str, names: list[str]) -> list[str]:
        found = []
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                if kind := kind_of(path.lstat().st_mode):
                    left_out.note(str(path.relative_to(template)), kind)
                    found.append(name)
        return found

    try:
        shutil.copytree(template, home, symlinks=True, ignore=special)
    except shutil.Error as error:
        # One of possibly many, with source, target and reason.
        where, _, reason = error.args[0][0]
        raise BackendError(f"home: cannot copy {where}: {reason}") from error
    except FileNotFoundError as error:
        raise ActionError(f"home: there is no directory {str(template)!r} to copy") from error
    except OSError as error:
        raise BackendError(f"home: cannot copy {str(template)!r}: {error}") from error
    left_out.tell(f"home={str(template)!r}")


def _show_installed(home: Path) -> None:
    ours = Path(os.path.expanduser("~"))  # noqa: PTH111 # `Path.home` raises an error where there is none
    pairs = [(ours / name, home / name) for name in _SHOWN_AT_HOME]
    for variable, (folder, names) in _SHOWN.items():
        base = Path(os.environ.get(variable) or ours / folder)
        pairs += [(base / name, home / folder / name) for name in names]
    for there, here in pairs:
        if os.path.isdir(there):  # noqa: PTH112 # `Path.is_dir` raises an error where it must not look
            here.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            here.symlink_to(there.absolute())


def write_settings(directory: Path) -> None:
    """Let programs of the desktop with that private directory not animate, unless their home directory says that they do."""
    for name, text in STILL.items():
        path = directory / _SETTINGS / name
        path.parent.mkdir(parents=True)
        path.write_text(text)


def program_environment(
    display: str,
    xauthority: Path | None,
    directory: Path | None,
    extra: Mapping[str, str] | None = None,
    *,
    accessible: bool = False,
) -> dict[str, str]:
    """The environment of programs on a desktop: the driver's, pointed at that display, with a UTF-8 locale.

    Args:
        display: As `DISPLAY` would name it.
        xauthority: The cookie file.
        directory: The desktop's private directory, which becomes `XDG_RUNTIME_DIR` and holds its session bus and, unless those
            programs use the user's own, their home directory.
        extra: Added last; an empty value is kept as such.
        accessible: Whether its session bus leads to an accessibility bus.
    """
    environment = {**os.environ, "DISPLAY": display}
    # A toolkit that finds Wayland, or the driver's own session manager, would use that instead.
    foreign = ("WAYLAND_DISPLAY", "SESSION_MANAGER", "DESKTOP_STARTUP_ID", "XAUTHORITY", "AT_SPI_BUS_ADDRESS")
    for name in (*foreign, *SWITCHED_ON, *SWITCHED_OFF):
        environment.pop(name, None)
    if directory is not None and (home := Home(directory)).path.is_dir():
        for name in _KEYS:
            environment.pop(name, None)
        environment.update(home.environment())
    if xauthority is not None:
        environment["XAUTHORITY"] = str(xauthority)
    if directory is not None:
        environment["XDG_RUNTIME_DIR"] = str(directory)
        # A bus of its own: otherwise a single-instance application would open its window on another desktop.
        bus = directory / "bus"
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}" if bus.exists() else "disabled:"
        if (settings := directory / _SETTINGS).is_dir():
            environment["XDG_CONFIG_DIRS"] = f"{settings}:{environment.get('XDG_CONFIG_DIRS') or '/etc/xdg'}"
            environment.update(STILL_CURSORS)
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if not _is_utf8(locale):
        environment.pop("LC_ALL", None)
        environment.pop("LC_CTYPE", None)
        environment["LANG"] = "C.UTF-8"
    environment.update({"GDK_BACKEND": "x11", "QT_QPA_PLATFORM": "xcb"})
    environment.update({**(SWITCHED_ON if accessible else SWITCHED_OFF), **(extra or {})})
    return environment


def _is_utf8(locale: str) -> bool:
    """Whether it is a UTF-8 locale that this system has; programs treat a missing one as `C`."""
    if "utf-8" not in locale.lower() and "utf8" not in locale.lower():
        return False
    newlocale = ctypes.CDLL(None).newlocale
    newlocale.restype = ctypes.c_void_p
    newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    handle = newlocale(_LC_CTYPE_MASK, os.fsencode(locale), None)
    if handle is None:
        return False
    ctypes.CDLL(None).freelocale(ctypes.c_void_p(handle))
    return True
