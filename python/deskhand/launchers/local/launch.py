"""A desktop on this machine: Xvfb, a session bus and a window manager, owned by a guard process.

This module owns which programs make a desktop, their options and environment, and when they are ready. What must never appear
here: a fixed sleep, an open port, a process that is not the guard's.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand._core.health import Expected
from deskhand.backends.x11.backend import X11Backend
from deskhand.desktop.access import core_of
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.element_bus import await_bus
from deskhand.desktop.health import unstarted
from deskhand.desktop.lifecycle import leave
from deskhand.errors import ActionError, LaunchFailed, shown
from deskhand.launchers import registry
from deskhand.launchers.display import check_display
from deskhand.launchers.local.accessibility import mark_accessible, registry_command
from deskhand.launchers.local.environment import Home, program_environment, write_settings
from deskhand.launchers.local.x_server import XServer, check_socket_directory, start_server, write_cookies
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WINDOW_MANAGERS = ("openbox", "xfwm4", "metacity", "marco", "fluxbox", "icewm", "jwm", "twm")
"""In order of preference: the first one that is installed is used."""

_READY_LIMIT = 20.0
# Time enough to remove a lock or shared memory; unsaved work is lost in any case.
_RENEW_GRACE = 0.25
# Files that stay when a desktop is renewed, besides the X server's log: the guard's lock and output, and the cookie.
_KEPT = {".guard", "guard.log", "xauthority"}

# The window manager takes no key from applications, nothing moves by itself, and a new window gets the keyboard.
_OPENBOX_CONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew><followMouse>no</followMouse><focusLast>yes</focusLast></focus>
  <placement><policy>Smart</policy><center>yes</center></placement>
  <theme><name>Clearlooks</name><animateIconify>no</animateIconify></theme>
  <desktops><number>1</number><popupTime>0</popupTime></desktops>
  <resize><popupShow>Never</popupShow></resize>
  <keyboard>
    <!-- On each change of the keymap openbox would parse the whole compose table again, and answer nothing meanwhile. -->
    <rebindOnMappingNotify>no</rebindOnMappingNotify>
    <keybind key="A-F4"><action name="Close"/></keybind>
    <!-- Not interactive: a chord is over before openbox holds the keyboard to see its end, and it would switch nothing. -->
    <keybind key="A-Tab"><action name="NextWindow"><dialog>none</dialog><interactive>no</interactive><finalactions><action
      name="Focus"/><action name="Raise"/></finalactions></action></keybind>
  </keyboard>
  <mouse>
    <context name="Titlebar">
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
      <mousebind button="Left" action="DoubleClick"><action name="ToggleMaximize"/></mousebind>
    </context>
    <context name="Titlebar Top Right Bottom Left TLCorner TRCorner BRCorner BLCorner">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
    <context name="Top Right Bottom Left TLCorner TRCorner BRCorner BLCorner">
      <mousebind button="Left" action="Drag"><action name="Resize"/></mousebind>
    </context>
    <context name="Client">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Middle" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Right" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
    <context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
    <context name="Iconify"><mousebind button="Left" action="Click"><action name="Iconify"/></mousebind></context>
    <context name="Maximize"><mousebind button="Left" action="Click"><action name="ToggleMaximize"/></mousebind></context>
  </mouse>
</openbox_config>
"""


@runtime_directory.needs_room()
def launch_local(
    *,
    size: tuple[int, int] = (1280, 800),
    name: str | None = None,
    window_manager: str | None = "auto",
    env: Mapping[str, str] | None = None,
    dpi: int = 96,
    method: str | None = None,
    home: bool | str | os.PathLike[str] = True,
    elements: bool = True,
    animations: bool = False,
    timeout: float = _READY_LIMIT,
) -> Desktop:
    """Start a desktop here; see `deskhand.launch`.

    Args:
        size: Width and height in pixels. `Desktop.resize` can make it smaller, not larger.
        name: List it under this name, so that `deskhand.connect(name)` and the command line find it.
        window_manager: A program, `"auto"` for the first of `WINDOW_MANAGERS` that is installed, None for none.
        env: Added to the environment of programs on it.
        dpi: Dots per inch that the server reports.
        method: Use this capture method or fail (`shared-fd`, `shared-id`, `socket`).
        home: See `deskhand.launch`.
        elements: See `deskhand.launch`.
        animations: See `deskhand.launch`.
        timeout: Seconds to wait for each part.

    Raises:
        LaunchFailed: A part did not come up; carries its output.
        ActionError: The size, the name or `home` is impossible.
    """
    check_display(size=size, dpi=dpi, method=method, window_manager=window_manager, timeout=timeout)
    width, height = size
    if name is not None:
        registry.check_name(name)
    xvfb = _find("Xvfb", "xvfb")
    manager = _window_manager(window_manager)
    template = None if home is True or home is False else Path(home)
    if template is not None and not os.path.isdir(template):  # noqa: PTH112 # a Path's own raises for some names
        raise ActionError(f"home: there is no directory {template} to copy")
    check_socket_directory()
    # A listed desktop may be known by its directory for longer than it runs.
    guard = Guard.start(runtime_directory.private_directory(numbered=home is not False and name is None))
    try:
        here = Home(guard.directory, template) if home is not False else None
        accessibility = registry_command() if elements and shutil.which("dbus-daemon") else None
        session = _Session(guard, manager, env or {}, here, method, timeout, name, accessibility, animations=animations)
        return session.begin(lambda: start_server(guard, xvfb, f"{width}x{height}x24", dpi, timeout))
    except BaseException:
        guard.close()
        raise


@dataclass(slots=True)
class _Session:
    """The programs on one X server from one renewal to the next."""

    guard: Guard
    manager: str | None
    env: Mapping[str, str]
    home: Home | None
    method: str | None
    timeout: float
    name: str | None
    accessibility: list[str] | None
    animations: bool
    entry: registry.Entry | None = None

    def begin(self, start: Callable[[], XServer]) -> Desktop:
        """Start everything."""
        if self.home is not None:
            self.home.fill()
        return self._on(start())

    def renew(self, server: XServer) -> Desktop:
        """End everything but the server, restore the home, reset the server, and start the rest again."""
        begun = time.monotonic()
        # The old cookie is void from now on: the desktop's programs have ended before the server reads the new one.
        write_cookies(server.xauthority, server.display.removeprefix(":"))
        request = self.guard.renew(_RENEW_GRACE)
        if not self.guard.is_ready(request, server.pid, self.timeout):
            log = self.guard.tail("Xvfb", server.pid)
            raise LaunchFailed("the X server, begun anew,", time.monotonic() - begun, log)
        _empty(self.guard.directory, {*_KEPT, self.guard.log_of("Xvfb", server.pid).name})
        if self.home is not None:
            self.home.fill()
        return self._on(server)

    def _environment(self, server: XServer) -> dict[str, str]:
        accessible = self.accessibility is not None
        return program_environment(
            server.display, server.xauthority, self.guard.directory, self.env, accessible=accessible
        )

    def _on(self, server: XServer) -> Desktop:
        guard = self.guard
        if not self.animations:
            write_settings(guard.directory)
        # After the server: programs that the bus starts get the bus's environment, and so its display.
        bus = _start_bus(guard, self._environment(server))
        backend = X11Backend(server.display, xauthority=server.xauthority, own=True, method=self.method)
        try:
            if bus is not None:
                _await_bus(guard, bus, self.timeout)
            environment = self._environment(server)
            accessibility = self.accessibility
            if accessibility is not None:
                mark_accessible(guard.directory)
                if self.name is not None:
                    # Its first program may be started by another driver.
                    guard.spawn(accessibility, env=environment)
                    accessibility = None
            if self.manager is not None:
                managed = _start_manager(guard, self.manager, environment)
                _await_manager(guard, backend, self.manager, managed, self.timeout)
            if self.accessibility is not None and accessibility is None:
                await_bus(environment)
            on_close: list[Callable[[], None]] = [guard.close]
            if self.name is not None and self.entry is None:
                directories = (str(server.xauthority), str(guard.directory))
                self.entry = registry.Entry(self.name, server.display, *directories, server.pid, "", time.time())
                registry.add(self.entry)
            if (entry := self.entry) is not None:
                on_close.append(lambda: registry.remove(entry))
            return Desktop(
                backend,
                display=server.display,
                xauthority=server.xauthority,
                name=self.name,
                guard=lambda: guard,
                environment=environment,
                owns_processes=True,
                on_close=on_close,
                renew=lambda: self.renew(server),
                expected=_expected(self.manager),
                registry=accessibility,
            )
        except BaseException:
            backend.close()
            raise


def _empty(directory: Path, kept: set[str]) -> None:
    """Remove what programs left in a desktop's directory, after all of them have ended."""
    for root, directories, _files in os.walk(directory):
        for name in directories:
            path = Path(root, name)
            if not path.is_symlink():
                # As the guard does at the end: a read-only directory cannot be emptied.
                path.chmod(0o700)
    for path in directory.iterdir():
        if path.name in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def leave_running(desktop: Desktop) -> registry.Entry:
    """Let a launched, named desktop outlive this process; `deskhand down` ends it. The object is closed afterwards.

    Raises:
        ActionError: It has no name, or was not launched here.
    """
    entry = registry.find(desktop.name) if desktop.name is not None else None
    if entry is None:
        raise ActionError("only a desktop that was launched with a name can be left running")
    path = str(Path(entry.directory) / runtime_directory.GUARD_SOCKET)
    pid = leave(core_of(desktop), path)
    entry = replace(entry, socket=path, pid=pid)
    try:
        registry.update(entry)
    except BaseException:
        # Without a list entry it could not be found any more.
        os.kill(pid, signal.SIGTERM)
        raise
    return entry


def _find(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise LaunchFailed(program, 0.0, "", f"{program} is not installed: apt-get install {package}")
    return path


def _window_manager(wanted: str | None) -> str | None:
    if wanted is None:
        return None
    if wanted != "auto":
        if (path := shutil.which(wanted)) is None:
            known = ", ".join(program for program in WINDOW_MANAGERS if shutil.which(program)) or "none of those known"
            hint = f'there is no such program; installed: {known}; or "auto" for the first of them, None for none'
            raise LaunchFailed(f"the window manager {shown(wanted)}", 0.0, "", hint)
        return path
    for program in WINDOW_MANAGERS:
        if (path := shutil.which(program)) is not None:
            return path
    hint = "no window manager is installed: apt-get install openbox, or launch(window_manager=None)"
    raise LaunchFailed("a window manager", 0.0, "", hint)


def _start_bus(guard: Guard, environment: Mapping[str, str]) -> int | None:
    program = shutil.which("dbus-daemon")
    if program is None:
        return None
    address = f"unix:path={guard.directory / 'bus'}"
    argv = [program, "--session", "--nofork", "--nopidfile", "--nosyslog", f"--address={address}"]
    return guard.spawn(argv, env=environment)[0]


def _await_bus(guard: Guard, pid: int, timeout: float) -> None:
    begun = time.monotonic()
    while not (guard.directory / "bus").exists():
        waited = time.monotonic() - begun
        if guard.exit_status(pid) is not None or waited >= timeout:
            raise LaunchFailed("the session bus", waited, guard.tail("dbus-daemon", pid))
        # It was started first and needs a few milliseconds; it cannot report when it is ready.
        time.sleep(0.001)


def _start_manager(guard: Guard, manager: str, environment: Mapping[str, str]) -> int:
    argv = [manager]
    if Path(manager).name == "openbox":
        config = guard.directory / "openbox.xml"
        config.write_text(_OPENBOX_CONFIG)
        argv += ["--config-file", str(config), "--sm-disable"]
        # It types nothing: parsing the locale's compose table would be a fifth of its start.
        environment = {**environment, "XCOMPOSEFILE": os.devnull}
    return guard.spawn(argv, env=environment)[0]


def _expected(manager: str | None) -> Expected:
    # openbox sets the pointer's image, so the screen is not all black; other managers may not.
    return Expected(manager=manager is not None, picture=manager is not None and Path(manager).name == "openbox")


def _await_manager(guard: Guard, backend: X11Backend, manager: str, pid: int, timeout: float) -> None:
    expected = _expected(manager)
    begun = time.monotonic()
    while missing := unstarted(backend, expected):
        waited = time.monotonic() - begun
        if guard.exit_status(pid) is not None or waited >= timeout:
            raise LaunchFailed(missing, waited, guard.tail(manager, pid))
        backend.wait(0.05)
