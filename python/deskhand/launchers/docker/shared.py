"""Containers with several desktops each, for dense use: `Rooms` launches one desktop after the other, so many to a container.

This module owns who is in which container, and its end after that of its last desktop. What must never appear here: how a
container is made (see `deskhand.launchers.docker.launch`), a choice of who gets a desktop (see `deskhand.pool.scheduler`).

Each desktop has an X server, window manager, session bus, cookie, home and runtime directory of its own, and its processes
carry its number in their environment. All desktops of a container run as one user, see each other's processes and files, and
share its limits and network: they are kept from disturbing one another, not from wanting to.
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
from deskhand.launchers.docker.container import LIBRARY, Container
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.host import House, build_house
from deskhand.launchers.docker.programs import ContainerPrograms
from deskhand.launchers.docker.spec import Order
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from deskhand.backends.x11.backend import X11Backend

__all__ = ["MOST", "Rooms"]

MOST = 32
"""Desktops of one container."""

LABEL_DISPLAYS = "org.deskhand.displays"
_SESSION_ENDED = 20.0


class Rooms:
    """Launches desktops, so many to a container."""

    def __init__(self, displays: int, **options: Any) -> None:
        """Nothing is started yet.

        Args:
            displays: Desktops of one container, 1...32.
            options: As for `launch_docker`. `limits` are the share of one desktop: a container has so many times as much.

        Raises:
            ActionError: A number or an option is impossible.
        """
        if not 1 <= displays <= MOST:
            raise ActionError(f"a container has room for 1 to {MOST} desktops, not displays={displays}")
        if "name" in options:
            raise ActionError("several desktops cannot all have one name: leave `name` out")
        self._displays = displays
        self._order = Order(**options)
        self._lock = threading.Lock()
        self._rooms: list[_Room] = []

    @runtime_directory.needs_room()
    def launch(self) -> Desktop:
        """One more desktop, in a container that has room, else in another one. From any thread.

        Raises:
            LaunchFailed: See `launch_docker`.
        """
        with self._lock:
            room = next((room for room in self._rooms if room.free and not room.spoilt), None)
            if room is None:
                room = _Room(self._order, self._displays)
                self._rooms.append(room)
            number = room.free.pop()
        stay = _Stay(number)
        try:
            return room.start(number, lambda: self._leave(room, stay))
        except BaseException:
            self._leave(room, stay)
            raise

    def _leave(self, room: _Room, stay: _Stay) -> None:
        """A desktop has ended, or did not come up. Again, after it was interrupted, goes on with it."""
        with self._lock:
            if not stay.over:
                # Only once: another may have the number by the next time.
                stay.over = True
                room.free.add(stay.number)
            last = len(room.free) == self._displays
            if last or room.spoilt:
                # Nobody moves in any more.
                self._rooms = [other for other in self._rooms if other is not room]
        if last:
            room.end()


@dataclass(slots=True)
class _Stay:
    """Of one desktop in a room."""

    number: int
    over: bool = False


class _Room:
    """One container, made when the first desktop is to move in."""

    def __init__(self, order: Order, displays: int) -> None:
        self.free = set(range(displays))
        # Something in it could not be ended, or it has died.
        self.spoilt = False
        self._order = order
        self._displays = displays
        self._making = threading.Lock()
        self._house: House | None = None

    def start(self, number: int, leave: Callable[[], None]) -> Desktop:
        """A desktop with this number; `leave` is called after its end."""
        begun = time.monotonic()
        with self._making:
            if self._house is None:
                self._house = self._make(begun)
        house = self._house
        berth = house.berth(number, shared=True)
        with contextlib.ExitStack() as undo:
            # Each has a connection of its own to the engine.
            engine = connect_engine(environment=house.engine.address.variables)
            undo.callback(engine.close)
            # It is the same one, and slow to tell.
            engine.info = house.engine.info
            container = house.container(berth, engine)
            undo.callback(self._end_session, container)
            backend = self._begin_session(container, self._order.timeout - (time.monotonic() - begun))
            undo.callback(backend.close)
            berth.publish()
            desktop = self._desktop(container, backend, leave)
            undo.pop_all()
            return desktop

    def _desktop(self, container: Container, backend: X11Backend, leave: Callable[[], None]) -> Desktop:
        berth = container.berth
        assert self._house is not None  # noqa: S101 # it has a desktop
        guard = self._house.guard

        def end() -> None:
            try:
                self._end_session(container)
            finally:
                container.engine.close()

        def renew() -> Desktop:
            """End it, and start another in its place."""
            self._end_session(container)
            again = self._begin_session(container, self._order.timeout)
            berth.publish()
            return self._desktop(container, again, leave)

        return Desktop(
            backend,
            display=berth.address,
            xauthority=berth.xauthority,
            name=container.name,
            guard=lambda: ContainerPrograms(container, guard),
            owns_processes=True,
            inside=container,
            on_close=[end, leave],
            renew=renew,
            expected=expected_of(container, managed=self._order.window_manager is not None),
        )

    def _make(self, begun: float) -> House:
        with contextlib.ExitStack() as undo:
            house = build_house(self._order, undo, displays=self._displays)
            with house.engine.translated(f"the container {house.name}"):
                labels = house.engine.api.inspect_container(house.id)["Config"]["Labels"] or {}
                if not labels.get(LABEL_DISPLAYS):
                    hint = "it was built for one desktop only: build it again, `deskhand image build`"
                    raise LaunchFailed(f"the image {self._order.image}", 0.0, "", hint)
                house.engine.api.start(house.id)
            if house.enclosure is not None:
                house.enclosure.await_ready(house.engine, begun + self._order.timeout)
            undo.pop_all()
            return house

    def _begin_session(self, container: Container, timeout: float) -> X11Backend:
        """Start a supervisor of its own, and wait for what that starts."""
        container.berth.write_cookie()
        api = container.engine.api
        try:
            with container.engine.translated(f"a desktop in {container.name}"):
                environment = container.berth.environment
                container.keeper = api.exec_create(container.id, [f"{LIBRARY}/supervisor"], environment=environment)[
                    "Id"
                ]
                api.exec_start(container.keeper, detach=True)
            managed = self._order.window_manager is not None
            return open_over_x(container, timeout, managed=managed, method=self._order.method)
        except LaunchFailed:
            self.spoilt = True
            raise

    def _end_session(self, container: Container) -> None:
        """End everything of one desktop; what refuses to goes with the container, which gets no new desktop then."""
        ended = False
        try:
            ended = container.run([f"{LIBRARY}/end-desktop"], timeout=_SESSION_ENDED)[0] == 0
        except (DeskhandError, OSError):
            pass
        finally:
            self.spoilt |= not ended
            container.berth.clear()

    def end(self) -> None:
        """Remove it."""
        if self._house is not None:
            self._house.end()
