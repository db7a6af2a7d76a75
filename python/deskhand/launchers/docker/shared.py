"""Containers with several desktops each, for dense use; `SharedContainers` launches those desktops.

This module owns which desktop is in which container, and ends a container after its last. What must never appear here: how a
container is made (see `deskhand.launchers.docker.launch`), which caller gets which (see `deskhand.pool.scheduler`).

Each desktop has an X server, window manager, session bus, cookie, home and runtime directory of its own, and its processes
carry its number in their environment. All desktops of a container run as one user, see each other's processes and files, and
share its limits and network: they do not disturb each other by accident, but nothing stops an attack.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, DeskhandError, LaunchFailed
from deskhand.launchers.docker.connect import expected_of, open_over_x
from deskhand.launchers.docker.container_commands import LIBRARY
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.host import ContainerHost, build_host
from deskhand.launchers.docker.programs import ContainerPrograms
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.backends.x11.backend import X11Backend
    from deskhand.launchers.docker.container import Container
    from deskhand.launchers.docker.spec import ContainerSpec

MOST = 32
"""The desktops of one container."""

LABEL_DISPLAYS = "org.deskhand.displays"
_SESSION_ENDED = 20.0


class SharedContainers:
    """Launches desktops, several to a container."""

    def __init__(self, displays: int, spec: ContainerSpec) -> None:
        """Take the specification; nothing is started yet.

        Args:
            displays: The number of desktops in one container, 1...32.
            spec: Each container. Its limits are the share of one desktop: a container has `displays` times as much.

        Raises:
            ActionError: The number is impossible, or the specification has a name.
        """
        if not 1 <= displays <= MOST:
            raise ActionError(f"a container has room for 1 to {MOST} desktops, not displays={displays}")
        if spec.name is not None:
            raise ActionError("several desktops cannot all have one name: leave `name` out")
        self._displays = displays
        self._spec = spec
        self._lock = threading.Lock()
        self._containers: list[_SharedContainer] = []

    @runtime_directory.needs_room()
    def launch(self) -> Desktop:
        """One more desktop, in a container that has room, else in a new one. Any thread may call this.

        Raises:
            LaunchFailed: See `launch_docker`.
        """
        with self._lock:
            room = next((room for room in self._containers if room.free and not room.spoilt), None)
            if room is None:
                room = _SharedContainer(self._spec, self._displays)
                self._containers.append(room)
            number = room.free.pop()
        stay = _Place(number)
        try:
            return room.start(number, lambda: self._leave(room, stay))
        except BaseException:
            self._leave(room, stay)
            raise

    def _leave(self, room: _SharedContainer, stay: _Place) -> None:
        """Free the place of a desktop that has ended or did not come up. Called again after an interruption, it goes on."""
        with self._lock:
            if not stay.over:
                # Only once: another desktop may have the number by the next call.
                stay.over = True
                room.free.add(stay.number)
            last = len(room.free) == self._displays
            if last or room.spoilt:
                # It gets no new desktop any more.
                self._containers = [other for other in self._containers if other is not room]
        if last:
            room.end()


@dataclass(slots=True)
class _Place:
    """One desktop in a shared container."""

    number: int
    over: bool = False


class _SharedContainer:
    """A container of several desktops, made with the first of them."""

    def __init__(self, spec: ContainerSpec, displays: int) -> None:
        self.free = set(range(displays))
        # Whether a process in it could not be ended, or it has died.
        self.spoilt = False
        self._spec = spec
        self._displays = displays
        self._making = threading.Lock()
        self._host: ContainerHost | None = None

    def start(self, number: int, leave: Callable[[], None]) -> Desktop:
        """Make a desktop with this number; `leave` is called after its end."""
        begun = time.monotonic()
        with self._making:
            if self._host is None:
                self._host = self._make(begun)
        host = self._host
        slot = host.slot(number, shared=True)
        with contextlib.ExitStack() as undo:
            # Each desktop has a connection of its own to the engine.
            engine = connect_engine(environment=host.engine.address.variables)
            undo.callback(engine.close)
            # The engine is the same one, and slow to describe itself.
            engine.info = host.engine.info
            container = host.container(slot, engine)
            undo.callback(self._end_session, container)
            backend = self._begin_session(container, self._spec.timeout - (time.monotonic() - begun))
            undo.callback(backend.close)
            slot.publish()
            desktop = self._desktop(container, backend, leave)
            undo.pop_all()
            return desktop

    def _desktop(self, container: Container, backend: X11Backend, leave: Callable[[], None]) -> Desktop:
        slot = container.slot
        assert self._host is not None  # noqa: S101 # it has a desktop
        guard = self._host.guard

        def end() -> None:
            try:
                self._end_session(container)
            finally:
                container.engine.close()

        def renew() -> Desktop:
            """End it, and start another in its place."""
            self._end_session(container)
            again = self._begin_session(container, self._spec.timeout)
            slot.publish()
            return self._desktop(container, again, leave)

        return Desktop(
            backend,
            display=slot.address,
            xauthority=slot.xauthority,
            name=container.name,
            guard=lambda: ContainerPrograms(container, guard),
            owns_processes=True,
            inside=container,
            on_close=[end, leave],
            renew=renew,
            expected=expected_of(container, managed=self._spec.window_manager is not None),
        )

    def _make(self, begun: float) -> ContainerHost:
        with contextlib.ExitStack() as undo:
            host = build_host(self._spec, undo, displays=self._displays)
            with host.engine.translated(f"the container {host.name}"):
                labels = host.engine.api.inspect_container(host.id)["Config"]["Labels"] or {}
                if not labels.get(LABEL_DISPLAYS):
                    hint = "it was built for one desktop only: build it again, `deskhand image build`"
                    raise LaunchFailed(f"the image {self._spec.image}", 0.0, "", hint)
                host.engine.api.start(host.id)
            if host.enclosure is not None:
                host.enclosure.await_ready(host.engine, begun + self._spec.timeout)
            undo.pop_all()
            return host

    def _begin_session(self, container: Container, timeout: float) -> X11Backend:
        """Start a supervisor for a desktop, and wait for what that starts."""
        container.slot.write_cookie()
        api = container.engine.api
        try:
            with container.engine.translated(f"a desktop in {container.name}"):
                environment = container.slot.environment
                container.keeper = api.exec_create(container.id, [f"{LIBRARY}/supervisor"], environment=environment)[
                    "Id"
                ]
                api.exec_start(container.keeper, detach=True)
            managed = self._spec.window_manager is not None
            return open_over_x(container, timeout, managed=managed, method=self._spec.method)
        except LaunchFailed:
            self.spoilt = True
            raise

    def _end_session(self, container: Container) -> None:
        """End all processes of one desktop; if one remains, it ends with the container, which gets no new desktop then."""
        ended = False
        try:
            ended = container.run([f"{LIBRARY}/end-desktop"], timeout=_SESSION_ENDED)[0] == 0
        except (DeskhandError, OSError):
            pass
        finally:
            self.spoilt |= not ended
            container.slot.clear()

    def end(self) -> None:
        """Remove it."""
        if self._host is not None:
            self._host.end()
