"""What started, live and ready mean, without a desktop and on the backend in memory."""

from __future__ import annotations

import threading

import pytest

import deskhand
from deskhand import Desktop, DesktopLost, Health, LeftMouseDown, LeftMouseUp, Move, Point, Rect, Size, Window
from deskhand._core.events import PointerMove
from deskhand._core.health import Expected
from deskhand._native import Interrupted
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.health import is_blank, missing, neighbour

PANEL = Window(1, "tint2", "Tint2", None, Rect(0, 0, 9, 9), active=False)
OTHER = Window(2, "words", "Mousepad", None, Rect(0, 0, 9, 9), active=True)


@pytest.mark.parametrize(
    ("expected", "manager", "blank", "windows", "found"),
    [
        (Expected(), False, True, [], ""),
        (Expected(manager=True), False, False, [], "the window manager"),
        (Expected(manager=True), True, True, [], ""),
        (Expected(manager=True, picture=True), True, True, [], "the first picture"),
        (Expected(manager=True, picture=True), True, False, [], ""),
        (Expected(manager=True, panel="tint2"), True, False, [OTHER], "the panel"),
        (Expected(manager=True, panel="tint2"), True, False, [OTHER, PANEL], ""),
        (Expected(manager=True, picture=True, panel="tint2"), True, True, [PANEL], "the first picture"),
    ],
)
def test_started(expected: Expected, manager: bool, blank: bool, windows: list[Window], found: str) -> None:  # noqa: FBT001 # a table
    assert missing(expected, manager=manager, blank=lambda: blank, windows=lambda: windows) == found


def test_a_blank_picture() -> None:
    size = Size(64, 64)
    assert is_blank(size, bytes((1, 2, 3)) * 64 * 64)
    assert not is_blank(size, bytes((1, 2, 3)) * (64 * 64 - 1) + bytes((1, 2, 4)))
    assert not is_blank(size, bytes((1, 1, 2)) + bytes((1, 2, 1)) * (64 * 64 - 1))
    assert not is_blank(Size(1, 1), bytes(3)), "nobody can tell"


def test_the_pixel_beside() -> None:
    assert neighbour(Point(0, 5), Size(2, 9)) == (1, 5)
    assert neighbour(Point(1, 5), Size(2, 9)) == (0, 5)
    assert neighbour(Point(0, 5), Size(1, 9)) == (0, 5)


def test_health_in_words() -> None:
    assert Health().ok
    assert str(Health()) == "started, live and ready"
    assert not Health(ready="no").ok
    assert str(Health(started="the panel", ready="no")) == "started: the panel; ready: no"


def test_the_pointer_comes_back() -> None:
    backend = MemoryBackend((64, 48))
    with Desktop(backend) as desktop:
        desktop.perform(Move((9, 9)), settle=False)
        backend.events.clear()
        assert desktop.health().ok
        assert backend.events == [PointerMove(8, 9), PointerMove(9, 9)]
        assert not desktop.perform(settle=False).pointer_moved
        desktop.perform(LeftMouseDown((9, 9)), settle=False)
        backend.events.clear()
        assert desktop.health().ok
        assert backend.events == [PointerMove(9, 9)], "nothing is dragged"
        desktop.perform(LeftMouseUp((9, 9)), settle=False)


def test_input_that_does_not_arrive() -> None:
    backend = MemoryBackend((64, 48))
    with Desktop(backend) as desktop:
        backend.send = backend.events.extend  # type: ignore[method-assign] # the pointer stays
        assert desktop.health() == Health(ready="the pointer was sent to 1, 0 and is at 0, 0")


def test_who_only_looks_sends_nothing() -> None:
    backend = MemoryBackend((64, 48))
    with Desktop(backend, view_only=True) as desktop:
        assert desktop.health() == Health(ready="it was opened to look only")
        assert backend.events == []


def test_nobody_answers() -> None:
    """The wait ends at the timeout, and what comes after it is not stopped."""
    backend = MemoryBackend((64, 48))
    stopped = threading.Event()

    def hang() -> None:
        assert stopped.wait(60)
        raise Interrupted

    def interrupt() -> None:
        backend._interrupted = True
        stopped.set()

    with Desktop(backend, expected=Expected(manager=True)) as desktop:
        backend.look = hang  # type: ignore[method-assign]
        backend.interrupt = interrupt  # type: ignore[method-assign]
        health = desktop.health(timeout=0.05)
        assert health == Health("it does not answer", "no answer in 0.05 s", "no answer in 0.05 s")
        assert not backend._interrupted
        del backend.look
        assert desktop.health() == Health(started="the window manager")


def test_who_is_stopped_by_somebody_else_is_stopped() -> None:
    backend = MemoryBackend((64, 48))
    with Desktop(backend) as desktop:

        def hang() -> None:
            desktop.interrupt()
            raise Interrupted

        backend.look = hang  # type: ignore[method-assign]
        with pytest.raises(Interrupted):
            desktop.health()


def test_a_loss_is_told_and_not_raised() -> None:
    backend = MemoryBackend((64, 48))
    with Desktop(backend) as desktop:

        def look() -> None:
            raise DesktopLost("x_server", "killed by the test")

        backend.look = look  # type: ignore[method-assign]
        health = desktop.health()
        assert "killed by the test" in health.live
        assert not health.ok
    with pytest.raises(deskhand.BackendError, match="closed"):
        desktop.health()
