"""`Handle`: the part of `Desktop` that is no operation on the screen: how it is made, what it is, and how it ends.

`Desktop` is a handle with operations.
"""

from __future__ import annotations

import time
from types import FunctionType
from typing import TYPE_CHECKING, Self

from deskhand._core.arguments import expect_seconds, expect_text
from deskhand._core.geometry import Point
from deskhand.desktop import lifecycle, stopping
from deskhand.desktop.connection import Core
from deskhand.desktop.operations import check_interceptors
from deskhand.desktop.view import HeldView, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from deskhand._core.events import ButtonDown, KeyDown
    from deskhand._core.geometry import Size
    from deskhand._core.health import Expected
    from deskhand._core.monitor import Monitor
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.control_state import Holding
    from deskhand.desktop.operations import Interceptor
    from deskhand.machine.interface import DesktopMachine
    from deskhand.machine.processes import Programs

_STOP_LIMIT = 5.0


class Handle:
    """An object of a desktop, by which it is named, seen through more interceptors, stopped and closed."""

    def __init__(
        self,
        backend: Backend,
        *,
        display: str | None = None,
        xauthority: Path | None = None,
        name: str | None = None,
        guard: Callable[[], Programs] | None = None,
        environment: Mapping[str, str] | None = None,
        owns_processes: bool = False,
        inside: DesktopMachine | None = None,
        view_only: bool = False,
        on_close: Sequence[Callable[[], None]] = (),
        renew: Callable[[], Handle] | None = None,
        expected: Expected | None = None,
        registry: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Drive `backend`; users call `launch` or `connect` instead.

        Args:
            backend: The connection.
            display: As `DISPLAY` would name it.
            xauthority: The cookie file that lets any X client join.
            name: The name it is registered under.
            guard: Returns the process that keeps this desktop's programs; called when first needed.
            environment: The environment of programs started here.
            owns_processes: Whether the display ends with this object.
            inside: The machine that belongs to this desktop, where one does: a container.
            view_only: Refuse input.
            on_close: Called in order; after the backend was closed if the display stays, else before that.
            renew: Makes the display as new and returns its next Desktop; see the method of that name.
            expected: What a desktop that has started has, as far as that is known.
            registry: The command of the accessibility registry, which is started before the first program.
            clock: Monotonic seconds; tests give their own.
        """
        core = Core(
            backend,
            display=display,
            xauthority=xauthority,
            name=name,
            guard=guard,
            environment=environment,
            owns_processes=owns_processes,
            inside=inside,
            view_only=view_only,
            on_close=on_close,
            renew=None if renew is None else lambda: renew()._core,  # noqa: SLF001 # of its own class
            expected=expected,
            registry=registry,
            clock=clock,
        )
        self._core = core
        # The bound method of a class: a reference to the desktop would keep it from being collected at once.
        self._view: View = View(core, (), self._seen)

    def also(self, *interceptors: Interceptor) -> Self:
        """A view of the same desktop with more interceptors, after those that this one has, which stay.

        Operations through the view pass all of them; operations through this object do not pass the new ones.

        Args:
            interceptors: A `Guard`, a recorder, a counter: see `Interceptor`.
        """
        check_interceptors("also", interceptors)
        view = self._view
        return self._seen(self._core, (*view.interceptors, *interceptors), waits=view.waits, holding=view.holding)

    @classmethod
    def _seen(
        cls, core: Core, interceptors: tuple[Interceptor, ...], *, waits: bool = True, holding: Holding | None = None
    ) -> Self:
        desktop = object.__new__(cls)
        desktop._core = core
        kind = View if holding is None else HeldView
        desktop._view = kind(core, interceptors, cls._seen, waits=waits, holding=holding)
        return desktop

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def display(self) -> str | None:
        """Its name for `DISPLAY`; None if no such name of this machine leads to it."""
        return self._core.display

    @property
    def xauthority(self) -> Path | None:
        """The cookie file that lets any X client join; None where none is needed, or known."""
        return self._core.xauthority

    @property
    def name(self) -> str | None:
        """The name it is registered under."""
        return self._core.name

    @property
    def size(self) -> Size:
        """Width and height of the screen in pixels."""
        return self._core.size

    @property
    def status(self) -> tuple[str, ...]:
        """Its problems, one sentence each: slower paths, windows that its picture lacks, parts that were started again..."""
        self._core.owner.refuse_if_parent("this desktop")
        inside = self._core.inside
        return (*self._core.backend.status, *(inside.status if inside is not None else ()))

    @property
    def pointer(self) -> Point:
        """Where the pointer is, in screen pixels."""
        core = self._core

        def look() -> Point:
            with core.turn():
                core.look()
                return Point(*core.backend.screen.pointer)

        return self._view.ungated(look)

    def monitors(self) -> list[Monitor]:
        """The monitors that make up the screen; where nothing is known of them, one that is the whole screen.

        `screenshot(region=monitor.rect)` is the picture of one. All points are those of the screen: the left upper corner of a
        monitor is at `monitor.rect.x`, `monitor.rect.y`.
        """
        core = self._core

        def ask() -> list[Monitor]:
            with core.turn():
                # A screen that has become smaller cuts them.
                core.look()
                return core.backend.monitors()

        return self._view.ungated(ask)

    @property
    def pressed(self) -> tuple[ButtonDown | KeyDown, ...]:
        """The keys and buttons that this driver holds pressed, oldest first."""
        self._core.owner.refuse_if_parent("this desktop")
        return self._core.pressed_keys.pressed

    @property
    def closed(self) -> bool:
        """Whether this object can no longer be used."""
        return self._core.closed

    @property
    def has_machine(self) -> bool:
        """Whether it has a machine of its own, a container: see `machine`."""
        return self._core.inside is not None

    # --- the end ---

    def release(self) -> None:
        """Release every key and button that is held, and return when the other side has done so."""
        core = self._core

        def release() -> None:
            with core.turn(shows=False):
                core.control.refuse_if_held()
                core.release()
                core.backend.round_trip()

        self._view.ungated(release)

    def interrupt(self) -> None:
        """From another thread: end the call under way. It releases what it holds pressed and raises `deskhand.Interrupted`.

        A command under way returns instead, with the outcome `cancelled`. Later calls are not affected; see `stop`.
        """
        self._core.interrupt()

    def _interrupt(self, caller: object) -> None:
        self._core.interrupt(caller)

    def stop(self, reason: str = "it was stopped", *, timeout: float = _STOP_LIMIT) -> bool:
        """The kill switch: release everything held and take no input any more; from any thread, or from a signal handler.

        The call under way is broken off and raises `PolicyDenied`, as every later one does, through every view of the
        desktop. Open questions get no answer. The desktop can still be closed, and, if it has no interceptors,
        looked at. Within 100 ms all is released, unless the server itself hangs, or a single text of more than ten thousand
        characters is just being prepared. Commands under way end, with all that they have started, within 2 s.

        Args:
            reason: What later errors say.
            timeout: Seconds to wait until all has been released.

        Returns:
            True when all has been released. False when it has not in time, or when this thread is itself in a call of this
            desktop, as in a signal handler: then it is released as soon as the handler returns.
        """
        expect_text("stop: reason", reason)
        expect_seconds("stop: timeout", timeout)
        return stopping.stop(self._core, reason, timeout)

    def close(self) -> None:
        """Release everything, end the connection and what was launched. Harmless when called again or too late."""
        self._core.close()

    def reset(self) -> Self:
        """Make the desktop as it was when it was launched, and return a new object for it; this one is closed.

        What was started on it is ended, its home directory (where it has one of its own) is restored, the clipboard is empty,
        nothing is pressed, the pointer is in the middle, the window manager is a new one, and other clients are disconnected.
        The interceptors that the desktop was launched with stay; those of a view do not.

        Raises:
            UnsupportedAction: Its launcher cannot do this.
            Closed: It is closed.
            DesktopLost: It is gone; everything has been ended, as by `close`.
            DeskhandError: Any other: a part did not come up again; everything has been ended, as by `close`.
        """
        core = lifecycle.renew(self._core)
        return self._seen(core, core.interceptors)


# Python's own `TypeError` of a wrong call has this name, and users know the class `Desktop`.
for _name, _member in tuple(vars(Handle).items()):
    if isinstance(_member, FunctionType):
        _member.__qualname__ = f"Desktop.{_name}"
