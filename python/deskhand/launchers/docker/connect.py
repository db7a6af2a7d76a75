"""From a running container to a desktop: when it is ready, and over which connection it is reached.

This module owns both. What must never appear here: how a container is made (see `deskhand.launchers.docker.launch`).
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand._core.health import Expected
from deskhand.backends.x11.backend import X11Backend
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.health import unstarted
from deskhand.errors import AuthFailed, ConnectFailed, DesktopLost, LaunchFailed
from deskhand.launchers.docker.container import Container
from deskhand.launchers.docker.display_slot import OWN, DisplaySlot
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.leftovers import SOCKETS
from deskhand.launchers.docker.over_vnc import VNC_WANTED, open_remote, serves_vnc
from deskhand.launchers.docker.programs import ContainerPrograms
from deskhand.machine import runtime_directory
from deskhand.machine.guard.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from deskhand.backends.vnc.backend import VncBackend
    from deskhand.launchers.docker.engine import Engine

LABEL_PANEL = "org.deskhand.panel"
NO_MANAGER = "DESKHAND_WINDOW_MANAGER"
_POLL = 0.005
_EXIT_POLL = 0.1
_LEASED = "one driver at a time"


def connect_docker(
    name: str,
    *,
    timeout: float = 10.0,
    view_only: bool = False,
    method: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Desktop:
    """Drive a desktop of a running container; see `deskhand.connect`.

    Where the engine is on another machine, or no directory of this one holds its X socket, it is reached over VNC, which it
    must serve.

    Args:
        name: The container's name or id.
        timeout: Seconds to wait for one that is just starting.
        view_only: Only look.
        method: See `deskhand.launch`.
        environment: Added to this process's own; it names the engine.

    Raises:
        ConnectFailed: There is none, it does not run, or neither its X socket nor VNC can be reached from here.
        LaunchFailed: No engine answers.
    """
    engine = connect_engine(environment=environment)
    try:
        return _connect(engine, name, timeout, view_only=view_only, method=method)
    except BaseException:
        engine.close()
        raise


def _connect(engine: Engine, name: str, timeout: float, *, view_only: bool, method: str | None) -> Desktop:
    target = f"docker://{name}"
    try:
        with engine.translated(f"the container {name}"):
            found = engine.api.inspect_container(name)
    except LaunchFailed as error:
        if not isinstance(error.__cause__, engine.errors.NotFound):
            raise
        where = "" if engine.is_local else f" at {engine.address.url}"
        raise ConnectFailed(target, f"there is no such container{where}", "see `docker ps`, or launch one") from error
    managed = f"{NO_MANAGER}=none" not in (found["Config"]["Env"] or [])
    with contextlib.ExitStack() as private:
        slot = _slot(found, private) if engine.is_local else DisplaySlot(None)
        shared_memory = found["HostConfig"].get("ShmSize")
        container = Container(engine, found["Id"], found["Name"].lstrip("/"), slot, shared_memory=shared_memory)
        try:
            backend = _reach(container, target, timeout, managed=managed, method=method, view_only=view_only)
        except LaunchFailed as error:
            raise ConnectFailed(target, error.message) from error
        kept = private.pop_all()
    return Desktop(
        backend,
        display=slot.address,
        xauthority=slot.xauthority,
        name=container.name,
        guard=lambda: ContainerPrograms(container, None),
        view_only=view_only,
        inside=container,
        on_close=[engine.close, kept.close],
        expected=expected_of(container, managed=managed),
    )


def _reach(
    container: Container, target: str, timeout: float, *, managed: bool, method: str | None, view_only: bool
) -> X11Backend | VncBackend:
    """Connect over X11 where its socket is on this machine, else over VNC."""
    if container.slot.sockets is not None:
        return open_over_x(container, timeout, managed=managed, method=method, view_only=view_only)
    if serves_vnc(container):
        return open_over_vnc(container, timeout, managed=managed)
    if container.engine.is_local:
        hint = f"start it with -v DIRECTORY:{SOCKETS}, or with -e {VNC_WANTED}"
        raise ConnectFailed(target, f"its {SOCKETS} is not a directory of this machine", hint)
    hint = f"launch it with vnc=True, or start it with -e {VNC_WANTED}"
    raise ConnectFailed(target, "it is on another machine and serves no VNC", hint)


def _slot(found: dict[str, Any], private: contextlib.ExitStack) -> DisplaySlot:
    """The place of the desktop in a running container; `private` gets the end of a directory made for it."""
    mounts = {mount["Destination"]: mount for mount in found["Mounts"]}
    if SOCKETS not in mounts:
        return DisplaySlot(None)
    sockets, own = Path(mounts[SOCKETS]["Source"]), mounts.get(OWN)
    numbers = str(found["Config"]["User"] or "0").split(":")
    user = (int(numbers[0]), int(numbers[-1])) if all(number.isdecimal() for number in numbers) else None
    if own is not None and not own["RW"]:
        return DisplaySlot(sockets, own=Path(own["Source"]), user=user)
    # Another program has started the container.
    directory = runtime_directory.private_directory()
    private.callback(remove_tree, str(directory))
    private.enter_context(runtime_directory.hold(directory))
    return DisplaySlot(sockets, own=directory, user=user, adopted=True)


def expected_of(container: Container, *, managed: bool) -> Expected:
    """What a desktop of that container has when it has started, as far as the connection can show it."""
    if container.slot.sockets is None:
        # Over VNC, windows are unknown.
        return Expected(picture=managed)
    return Expected(manager=managed, picture=managed, panel=_panel_of(container, managed=managed))


def _panel_of(container: Container, *, managed: bool) -> str:
    if not managed:
        return ""
    with container.engine.translated(f"the desktop in {container.name}"):
        return container.labels.get(LABEL_PANEL, "")


def open_over_vnc(container: Container, timeout: float, *, managed: bool) -> VncBackend:
    """Connect when its VNC server answers and, if it has one, its window manager runs.

    Raises:
        LaunchFailed: It ended, or is not ready in time.
    """
    begun = time.monotonic()
    backend = open_remote(
        container,
        timeout,
        managed=managed,
        panel=_panel_of(container, managed=managed),
        check=container.check_running,
        log=container.last_words,
    )
    expected = expected_of(container, managed=managed)
    try:
        while (reason := unstarted(backend, expected)) and time.monotonic() - begun < timeout:
            backend.wait(_POLL)
    except DesktopLost as lost:
        backend.close()
        waited = time.monotonic() - begun
        container.check_running(waited)
        raise LaunchFailed("the desktop", waited, container.last_words(), str(lost)) from lost
    except BaseException:
        backend.close()
        raise
    if reason:
        backend.close()
        raise LaunchFailed(reason, time.monotonic() - begun, container.last_words())
    return backend


def open_over_x(
    container: Container, timeout: float, *, managed: bool, method: str | None, view_only: bool = False
) -> X11Backend:
    """Connect as soon as it has started.

    Raises:
        LaunchFailed: It ended, or did not start in `timeout` seconds.
        ConnectFailed: Another driver has it.
    """
    expected = expected_of(container, managed=managed)
    begun = time.monotonic()
    checked = begun
    backend: X11Backend | None = None
    reason, hint = "the X server", ""
    try:
        while True:
            now = time.monotonic()
            if now - checked >= _EXIT_POLL:
                checked = now
                container.check_running(now - begun)
            if now - begun >= timeout:
                break
            if backend is None:
                entered = _enter(container, view_only=view_only, method=method)
                if isinstance(entered, str):
                    hint = entered
                else:
                    backend, hint = entered, ""
                continue
            try:
                reason = unstarted(backend, expected)
                if not reason:
                    # A container that has used up its part of the processors stands still, and looks as if its work were done.
                    if (throttle := container.watch_group()) is not None:
                        backend.watch_throttle(throttle)
                    return backend
                backend.wait(_POLL)
            except DesktopLost:
                # A container that has ended is reported as such in a moment.
                backend.close()
                backend = None
        failed = LaunchFailed(reason, time.monotonic() - begun, container.last_words(), hint)
    except BaseException:
        if backend is not None:
            backend.close()
        raise
    if backend is not None:
        backend.close()
    raise failed


def _enter(container: Container, *, view_only: bool, method: str | None) -> X11Backend | str:
    """Connect, or wait a moment and return why not: there is no event for a new socket."""
    slot = container.slot
    try:
        with slot.enter(container.id) as socket:
            backend = X11Backend(
                slot.socket, xauthority=slot.xauthority, view_only=view_only, own=True, method=method, socket=socket
            )
            container.doubt = socket.doubt
            slot.keep(socket, container.id)
    except (ConnectFailed, DesktopLost, AuthFailed) as error:
        # A server with another driver is not one that is just starting or ending.
        if isinstance(error, ConnectFailed) and error.reason == _LEASED:
            raise
        time.sleep(_POLL)
        return str(error)
    return backend
