"""A person takes control of a real desktop: what another X client receives, and which keys and buttons are down."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import Desktop, DesktopHeld, KeyPress, LeftClick, LeftMouseDown, Move, PressKeys, Secret, Type, Wait
from faults.helpers import pressed, until, x_environment
from integration.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIMIT = 60
ALLOWING = deskhand.ClassPolicy(allow=["observe", "input", "clipboard_read"])


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Desktop, Observer]]:
    """A desktop, and an X client that covers it and writes down what it receives."""
    with deskhand.launch(size=(640, 480)) as desktop, Observer(x_environment(desktop)) as observer:
        desktop.perform()
        yield desktop, observer


@pytest.fixture
def desktop(place: tuple[Desktop, Observer]) -> Iterator[Desktop]:
    desktop, observer = place
    desktop.perform(Move((320, 240)))
    observer.events()
    yield desktop
    desktop.control.release()
    desktop.control.resume()
    desktop.release()
    desktop.perform()


@pytest.fixture
def observer(place: tuple[Desktop, Observer]) -> Observer:
    return place[1]


def typed(events: list[dict[str, Any]]) -> list[str]:
    return [event["name"] for event in events if event["kind"] == "key" and event["down"]]


class Call:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._result: object = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 # it is looked at
            self._result = error

    def end(self) -> Any:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the call goes on"
        return self._result


def test_what_is_refused_never_arrives(desktop: Desktop, observer: Observer) -> None:
    with desktop.control.take("Ada") as hold:
        for call in (
            lambda: desktop.perform(Type("refused")),
            lambda: desktop.perform(LeftClick((10, 10))),
            lambda: desktop.perform(Type("refused", paste=True)),
            lambda: desktop.start("xterm"),
            lambda: desktop.windows.activate(1),
            lambda: desktop.windows.close(1),
            desktop.release,
            lambda: desktop.resize((600, 400)),
        ):
            with pytest.raises(DesktopHeld, match="Ada"):
                call()
        assert desktop.perform().settled
        assert desktop.screenshot().size == (640, 480)
        assert observer.events() == []
        assert desktop.health().ok
        # It sends the pointer to where it is.
        assert {tuple(event["at"]) for event in observer.events()} <= {(320, 240)}
        hold.desktop.perform(Type("Ada"))
        assert [name for name in typed(observer.events()) if name != "Shift_L"] == ["A", "d", "a"]
    desktop.perform(KeyPress(["x"]))
    assert typed(observer.events()) == ["x"]


def test_there_are_never_two_hands(desktop: Desktop, observer: Observer) -> None:
    desktop.perform(PressKeys(["ctrl"]), LeftMouseDown((50, 50)))
    keys, buttons = pressed(desktop)
    assert keys
    assert buttons
    hold = desktop.control.take("Ada")
    assert pressed(desktop) == ([], [])
    assert [(event["kind"], event["down"]) for event in observer.events()[-2:]] == [("button", False), ("key", False)]
    hold.desktop.perform(PressKeys(["shift"]))
    assert pressed(desktop)[0]
    # A look of the agent's releases nothing of the person's.
    desktop.perform()
    assert pressed(desktop)[0]
    hold.release()
    assert pressed(desktop) == ([], [])


def test_a_drag_that_is_under_way_ends_at_once(desktop: Desktop) -> None:
    call = Call(lambda: desktop.perform(LeftMouseDown((50, 50)), Wait(LIMIT)))
    until(lambda: desktop._core.pressed_keys.pressed, LIMIT, "the press")
    begun = time.monotonic()
    with desktop.control.take("Ada") as hold:
        assert time.monotonic() - begun < LIMIT / 2
        error = call.end()
        assert isinstance(error, DesktopHeld)
        assert (error.under_way, error.done) == (True, 1)
        assert pressed(desktop) == ([], [])
        hold.desktop.perform(Move((5, 5)))
    seen = desktop.perform()
    assert seen.pointer_moved
    assert seen.notes[0].startswith("Ada had control")


def test_two_people_do_not_hold_at_once(desktop: Desktop) -> None:
    taken: list[object] = []
    barrier = threading.Barrier(6)

    def take(name: str) -> None:
        barrier.wait(LIMIT)
        try:
            taken.append(desktop.control.take(name))
        except DesktopHeld as held:
            taken.append(held.by)

    threads = [threading.Thread(target=take, args=(f"person {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    (hold,) = [each for each in taken if not isinstance(each, str)]
    assert [each for each in taken if isinstance(each, str)] == [hold.holder.by] * 5  # type: ignore[attr-defined] # a hold


def test_an_agent_in_a_loop_is_stopped_between_two_clicks(desktop: Desktop, observer: Observer) -> None:
    """However a take falls among the agent's calls, nothing of them arrives once it has returned."""
    over = threading.Event()

    def act() -> int:
        refused = 0
        while not over.is_set():
            try:
                desktop.perform(PressKeys(["a"]), settle=False)
            except DesktopHeld:
                refused += 1
        return refused

    agent = Call(act)
    for _ in range(10):
        with desktop.control.take("Ada"):
            observer.events()
            assert pressed(desktop) == ([], [])
            desktop.perform()
            assert observer.events() == []
    over.set()
    agent.end()


def test_a_person_types_a_password_in_private(tmp_path: Path) -> None:
    with (
        deskhand.AuditLog(tmp_path / "audit.jsonl") as log,
        deskhand.launch(size=(320, 200), audit=log, policy=ALLOWING) as desktop,
        Observer(x_environment(desktop)) as observer,
    ):
        with desktop.control.take("Ada", private=True) as hold:
            for look in (
                desktop.screenshot,
                desktop.perform,
                desktop.elements,
                desktop.windows.list,
                desktop.clipboard.read,
                lambda: desktop.find("button").all(),
                lambda: desktop.pointer,
            ):
                with pytest.raises(DesktopHeld, match="neither act nor look"):
                    look()
            hold.desktop.perform(Type("pass1"), Type(Secret("word2")))
            hold.desktop.screenshot()
        assert "".join(typed(observer.events())).endswith("word2")
        assert desktop.perform().notes
        assert log.head
    written = (tmp_path / "audit.jsonl").read_text()
    assert '"private":true' in written
    assert "pass1" not in written
    assert "word2" not in written


def test_what_waits_for_a_step_is_not_sent(desktop: Desktop, observer: Observer) -> None:
    desktop.control.pause("Ada")
    calls = [Call(lambda: desktop.perform(KeyPress(["a"]), elements=True)), Call(lambda: desktop.host.run("echo on"))]
    until(lambda: len(desktop.control.waiting) == 2, LIMIT, "two operations that wait")
    assert observer.events() == []
    assert {operation.type for operation in desktop.control.waiting} == {"perform", "host_shell"}
    desktop.control.step()
    desktop.control.step()
    assert calls[0].end().elements is not None
    assert calls[1].end().stdout == "on\n"
    assert typed(observer.events()) == ["a"]
    desktop.control.resume()
