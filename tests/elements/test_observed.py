"""An observation has the elements of the screen that it shows, where they are asked for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import (
    ActionError,
    AsyncDesktop,
    Elements,
    LeftClick,
    Move,
    Operation,
    PolicyDenied,
    PressKeys,
    Secret,
    Type,
    UnsupportedAction,
)
from deskhand._core.settle import Reason
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.report.timeline import moments
from deskhand.policy.rules import ClassPolicy, Context
from elements.puppet import Puppet, shown
from faults.helpers import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand import Desktop


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Path) -> Iterator[Puppet]:
    with shown(desktop, tmp_path / "socket") as puppet:
        yield puppet


def names(elements: Elements | None, role: str = "button") -> list[str]:
    assert elements is not None
    return [element.name for element in elements if element.role == role]


def test_it_has_what_the_actions_made(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run(
        "entry('Name', 20, 140); button('Go'); widgets['Go'].connect('clicked', lambda _: button('New', 20, 250))"
    )
    name = desktop.find("textbox", "Name").element()
    seen = desktop.perform(LeftClick(element=name.ref), Type("Ada"), elements=True)
    assert seen.elements is not None
    assert seen.elements[name.ref].text == "Ada"
    assert names(desktop.perform(elements=True).elements) == ["Go"]
    go = desktop.find("button", "Go").element()
    seen = desktop.perform(LeftClick(element=go.ref), elements=True)
    assert names(seen.elements) == ["Go", "New"]
    assert seen.elements is desktop.elements()
    assert desktop.perform().elements is None


def read_with(desktop: Desktop, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> list[int]:
    """Do something after each reading, and wait until the screen has changed; the list has a number for each."""
    core, read = desktop._core, desktop._core.elements.read
    readings: list[int] = []

    def reading(timeout: float) -> Elements:
        found = read(timeout)
        readings.append(core.backend.screen.generation)
        if then() is None:
            assert core.watch.until(lambda: bool(core.backend.screen.changes(readings[-1])), 10)
        return found

    monkeypatch.setattr(type(core.elements), "read", lambda _, timeout: reading(timeout))
    return readings


def test_a_screen_that_changes_meanwhile_is_read_again(
    desktop: Desktop, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    puppet.run("button('First')")
    desktop.find("button", "First").element()
    later = iter(("button('Late', 20, 250)",))
    readings = read_with(desktop, monkeypatch, lambda: puppet.run(line) if (line := next(later, None)) else "nothing")
    seen = desktop.perform(Move((5, 5)), elements=True)
    assert names(seen.elements) == ["First", "Late"]
    assert len(readings) == 2
    assert seen.settled


def test_one_that_never_rests_is_told(desktop: Desktop, puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where tests before have changed pixels again and again, changes are no answer for some time.
    puppet.run("button('0', 330, 280)")
    desktop.find("button", "0").element()
    desktop.perform()
    numbers = iter(range(1, 100))
    readings = read_with(desktop, monkeypatch, lambda: puppet.run(f"widgets['0'].set_label('{next(numbers)}')"))
    seen = desktop.perform(Move((5, 5)), elements=True)
    told = (seen.busy, readings, seen.elements)
    assert (seen.settled, seen.reason) == (False, Reason.STILL_CHANGING), told
    assert len(readings) == 3


def test_a_silent_application_is_named(desktop: Desktop, puppet: Puppet, tmp_path: Path) -> None:
    puppet.run("button('Silent')")
    other = Puppet(desktop, tmp_path / "other")
    try:
        other.run("window.set_title('Alive'); button('Heard', 300, 300)")
        desktop.find("button", "Heard").element()
        os.kill(puppet.program.pid, signal.SIGSTOP)
        with within(2.5, "a reading beside a silent application"):
            told = desktop.perform(settle=False, elements=True).elements
        assert told is not None
        assert any("does not answer" in sentence for sentence in told.left_out)
        other.run("widgets['Heard'].set_label('Heard again')")
        with within(0.5, "another"):
            told = desktop.perform(settle=False, elements=True).elements
        assert "Heard again" in names(told)
    finally:
        os.kill(puppet.program.pid, signal.SIGCONT)
        os.kill(other.program.pid, signal.SIGKILL)
        other.close()
    desktop.find("window", "Alive").wait_for("hidden")


def test_a_bus_that_goes_meanwhile_is_told_beside_what_was_done(
    launch: Callable[..., Desktop], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = launch(size=(640, 480))
    alone.start("mousepad")
    assert alone.elements()
    read = alone._core.elements.read

    def gone(_: object, timeout: float) -> Elements:
        bus = alone._core.environment["DBUS_SESSION_BUS_ADDRESS"].removesuffix("/bus")
        subprocess.run(["pkill", "-KILL", "-f", f"accessibility.conf .*{bus}/at-spi"], check=True)
        return read(timeout)

    monkeypatch.setattr(type(alone._core.elements), "read", gone)
    seen = alone.perform(Move((7, 9)), elements=True)
    assert tuple(alone.pointer) == (7, 9)
    assert seen.elements is not None
    assert not seen.elements.all
    assert "the accessibility bus has gone" in seen.elements.left_out[0]


def test_where_nobody_tells_nothing_is_sent(launch: Callable[..., Desktop]) -> None:
    plain = launch(size=(640, 480), elements=False)
    before = plain.pointer
    with pytest.raises(UnsupportedAction, match="at-spi2-core"):
        plain.perform(Move((7, 9)), elements=True)
    assert plain.pointer == before
    with pytest.raises(ActionError, match="perform: elements is True or False"):
        plain.perform(elements=1)  # type: ignore[arg-type]


def test_coroutines_have_it(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('Go')")

    async def look() -> Any:
        return (await AsyncDesktop(desktop).perform(elements=True)).elements

    assert names(asyncio.run(look())) == ["Go"]


class Heard:
    """Hears of all that is done, and refuses one kind of it."""

    def __init__(self, refused: str = "") -> None:
        self.types: list[str] = []
        self._refused = refused

    def before(self, operation: Operation) -> None:
        self.types.append(operation.type)
        if operation.type == self._refused:
            raise PolicyDenied(operation.type, "not to be read")

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        pass


def test_interceptors_see_it_before_anything_is_done(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('Go')")
    heard = Heard()
    assert names(desktop.also(heard).perform(elements=True).elements) == ["Go"]
    assert heard.types == ["elements", "perform"]
    before = desktop.pointer
    heard = Heard("elements")
    with pytest.raises(PolicyDenied, match="not to be read"):
        desktop.also(heard).perform(Move((7, 9)), elements=True)
    assert heard.types == ["elements"]
    assert desktop.pointer == before


def test_a_policy_that_lets_nobody_look_keeps_all_of_it(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('Go')")
    go = desktop.find("button", "Go").element()
    judged = desktop.also(deskhand.Guard(policy=ClassPolicy(allow=["input"], deny=["observe"])))
    for reading in (
        judged.elements,
        lambda: judged.find("button", "Go").element(),
        lambda: judged.find("button", "Go").all(),
        lambda: judged.find("button", "Go").click(),
        lambda: judged.find("button", "Go").wait_for("visible"),
        lambda: judged.perform(LeftClick(element=go.ref), elements=True),
        lambda: judged.screenshot().with_marks(judged.elements()),
    ):
        with pytest.raises(PolicyDenied, match="class observe"):
            reading()
    assert puppet.told == []


def test_a_policy_is_told_the_window_of_an_element(desktop: Desktop, puppet: Puppet, tmp_path: Path) -> None:
    """Not that of the window with the keyboard, nor of what covers it now."""
    puppet.run("button('Go')")
    go = desktop.find("button", "Go").element()
    other = Puppet(desktop, tmp_path / "other")
    asked: list[str | None] = []

    class Policy:
        def before(self, action: object, context: Context) -> str:
            if isinstance(action, LeftClick):
                asked.append(context.window)
            return "deny"

    try:
        other.run("window.set_title('Above')")
        desktop.find("window", "Above").element()
        with pytest.raises(PolicyDenied):
            desktop.also(deskhand.Guard(policy=Policy())).perform(LeftClick(element=go.ref))
        assert asked == ["Puppet"]
    finally:
        os.kill(other.program.pid, signal.SIGKILL)
        other.close()
    desktop.find("window", "Above").wait_for("hidden")


@pytest.mark.parametrize("how", ["a cancelled task", "the kill switch"])
def test_a_reading_is_ended_at_once(launch: Callable[..., Desktop], tmp_path: Path, how: str) -> None:
    alone = launch(size=(640, 480))
    puppet = Puppet(alone, tmp_path / "socket")
    alone.elements()
    reading = threading.Event()
    read = alone._core.elements.read

    def slowly() -> Elements:
        os.kill(puppet.program.pid, signal.SIGSTOP)
        reading.set()
        return read(timeout=30.0)

    async def ended() -> None:
        task = asyncio.create_task(AsyncDesktop(alone).perform(PressKeys(["shift"]), settle=False, elements=True))
        await asyncio.to_thread(reading.wait, 20)
        if how == "the kill switch":
            assert await asyncio.to_thread(alone.stop, "enough")
        else:
            task.cancel()
        with pytest.raises((asyncio.CancelledError, PolicyDenied)):
            await task

    with pytest.MonkeyPatch.context() as patched, within(3.0, "the end of a reading of 30 s"):
        patched.setattr(type(alone._core.elements), "read", lambda *_: slowly())
        asyncio.run(ended())
    assert alone.pressed == ()
    if how != "the kill switch":
        os.kill(puppet.program.pid, signal.SIGCONT)
        assert alone.elements()
    puppet.close()


def test_a_record_has_it(desktop: Desktop, puppet: Puppet, tmp_path: Path) -> None:
    puppet.run("button('Go'); entry('Name', 20, 140)")
    name = desktop.find("textbox", "Name").element()
    with FrameStore(tmp_path / "frames") as store:
        recorder = Recorder(tmp_path / "attempt", store)
        recorded = recorder.attach(desktop)
        recorded.elements()
        recorded.perform(LeftClick(element=name.ref), Type("Ada"), elements=True)
        recorded.find("button", "Go").element()
        recorded.perform(Type(Secret("hunter2")), elements=True)
        recorder.close()
    lines = (tmp_path / "attempt" / "events.jsonl").read_text()
    first, _, second, waited, _, third = map(json.loads, lines.splitlines())
    assert '- button "Go"' in first["elements"]
    assert second["elements"].startswith("~ textbox") or "\n~ textbox" in second["elements"]
    assert ': "Ada"' in second["elements"]
    assert waited["query"] == "find(role='button', name='Go')"
    assert (third["withheld"], "elements" in third) == (True, False)
    assert "hunter2" not in lines
    assert ': "Ada"' in moments([second])[0].text
