"""A person takes control of a desktop, and hands it back: who acts meanwhile, and what the others are told."""

from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import (
    ActionError,
    AuditLog,
    ClassPolicy,
    Closed,
    Desktop,
    DesktopHeld,
    Guard,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    Move,
    Operation,
    PolicyDenied,
    PressKeys,
    RateLimits,
    Type,
    UnsupportedAction,
    Wait,
)
from deskhand._core.events import ButtonDown, ButtonUp, KeyUp, Pause
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import bare, keep
from deskhand.desktop.control_state import ControlEvent, ControlState
from deskhand.desktop.help_requests import HelpRequest
from deskhand.policy.audit import verify
from unit.held import LIMIT, Call, Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend((320, 200))


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


class Holds:
    """A backend's waits, which last until the test goes on or the call is interrupted."""

    def __init__(self, backend: MemoryBackend) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        backend.on_wait = self._wait

    def _wait(self, seconds: float) -> None:
        self.begun.set()
        self.go_on.wait(min(seconds, 0.01))


INPUT: dict[str, Callable[[Desktop], object]] = {
    "perform": lambda d: d.perform(LeftClick((5, 5)), settle=False),
    "clipboard.write": lambda d: d.clipboard.write("text"),
    "resize": lambda d: d.resize((100, 100)),
    "release": lambda d: d.release(),
    "start": lambda d: d.start("true"),
}
LOOKS: dict[str, Callable[[Desktop], object]] = {
    "perform": lambda d: d.perform(Wait(0.0), settle=False),
    "screenshot": lambda d: d.screenshot(),
    "clipboard.read": lambda d: d.clipboard.read(),
    "pointer": lambda d: d.pointer,
    "monitors": lambda d: d.monitors(),
    "host.run": lambda d: d.host.run("true"),
}


# --- holding ---


def test_only_the_holder_acts(desktop: Desktop, backend: MemoryBackend) -> None:
    views = [desktop, desktop.also(Heard()), bare(desktop)]
    with desktop.control.take("Ada") as hold:
        assert hold.active
        assert desktop.control.holder == hold.holder
        assert (hold.holder.by, hold.holder.private) == ("Ada", False)
        backend.events.clear()
        for view in views:
            for name, call in INPUT.items():
                with pytest.raises(DesktopHeld, match=r"Ada has had control of this desktop since 20\d\d-") as held:
                    call(view)
                assert (held.value.by, held.value.private, held.value.under_way) == ("Ada", False, False), name
            for call in LOOKS.values():
                call(view)
        assert [event for event in backend.events if not isinstance(event, Pause)] == []
        hold.desktop.perform(LeftClick((7, 7)), settle=False)
        hold.desktop.clipboard.write("Ada's")
        assert hold.desktop.clipboard.read() == "Ada's"
        assert [event for event in backend.events if isinstance(event, ButtonDown)] == [ButtonDown(1)]
    assert desktop.control.holder is None
    desktop.perform(LeftClick((5, 5)), settle=False)


def test_nobody_else_looks_at_a_private_hold(desktop: Desktop) -> None:
    views = [desktop, desktop.also(Heard()), bare(desktop)]
    shell = desktop.host.open_shell()
    with desktop.control.take("Ada", private=True) as hold:
        for view in views:
            for call in (*INPUT.values(), *LOOKS.values()):
                with pytest.raises(DesktopHeld, match="neither act nor look"):
                    call(view)
        with pytest.raises(DesktopHeld, match="neither act nor look"):
            shell.run("true")
        assert hold.desktop.screenshot().size == (320, 200)
        assert desktop.health().live == ""
    assert shell.run("echo on").stdout == "on\n"
    assert desktop.screenshot().size == (320, 200)


def test_an_ended_hold_does_nothing_any_more(desktop: Desktop, backend: MemoryBackend) -> None:
    first = desktop.control.take("Ada")
    view = first.desktop.also(Heard())
    first.release()
    backend.events.clear()
    for each in (first.desktop, view):
        with pytest.raises(Closed, match="this hold of the desktop has ended"):
            each.perform(LeftClick((5, 5)), settle=False)
        with pytest.raises(Closed, match="has ended"):
            each.screenshot()
        with pytest.raises(Closed, match="has ended"):
            each.host.run("true")
    with desktop.control.take("Bob"), pytest.raises(DesktopHeld, match="Bob"):
        first.desktop.perform(LeftClick((5, 5)), settle=False)
    assert backend.events == []
    first.release()
    assert not first.active


def test_what_the_other_pressed_is_released(desktop: Desktop, backend: MemoryBackend) -> None:
    desktop.perform(PressKeys(["ctrl"]), LeftMouseDown((9, 9)), settle=False)
    hold = desktop.control.take("Ada")
    released = [event for event in backend.events if isinstance(event, ButtonUp | KeyUp)]
    assert len(released) == 2
    assert desktop.pressed == ()
    hold.desktop.perform(PressKeys(["shift"]), settle=False)
    backend.events.clear()
    # A look of the agent's leaves the person's key alone.
    desktop.screenshot()
    desktop.perform(settle=False)
    assert backend.events == []
    hold.release()
    assert [type(event) for event in backend.events] == [KeyUp]
    assert desktop.pressed == ()


def test_somebody_who_holds_is_not_pushed_aside_but_by_force(desktop: Desktop, backend: MemoryBackend) -> None:
    ada = desktop.control.take("Ada")
    ada.desktop.perform(PressKeys(["shift"]), settle=False)
    for name in ("Bob", "Ada"):
        with pytest.raises(DesktopHeld, match="Ada has had"):
            desktop.control.take(name)
    bob = desktop.control.take("Bob", force=True)
    assert isinstance(backend.events[-1], KeyUp)
    assert not ada.active
    with pytest.raises(DesktopHeld, match="Bob has had"):
        ada.desktop.perform(KeyPress(["a"]), settle=False)
    ada.release("mine")
    assert bob.active
    bob.desktop.perform(KeyPress(["a"]), settle=False)
    bob.release("done")
    ended = desktop.perform(settle=False).notes
    assert [note.partition(" had control")[0] for note in ended] == ["Ada", "Bob"]
    assert "Bob took control" in ended[0]
    assert ended[1].endswith("and says: done")


def test_a_call_under_way_is_broken_off(desktop: Desktop, backend: MemoryBackend) -> None:
    waits = Holds(backend)
    call = Call(lambda: desktop.perform(PressKeys(["ctrl"]), Wait(LIMIT)))
    assert waits.begun.wait(LIMIT)
    with desktop.control.take("Ada"):
        error = call.end()
        assert isinstance(error, DesktopHeld)
        assert (error.under_way, error.index, error.done) == (True, 1, 1)
        assert "this call was broken off" in str(error)
        assert desktop.pressed == ()
        assert isinstance(pickle.loads(pickle.dumps(error)), DesktopHeld)


def test_the_holders_call_is_broken_off_at_the_end(desktop: Desktop, backend: MemoryBackend) -> None:
    hold = desktop.control.take("Ada")
    waits = Holds(backend)
    call = Call(lambda: hold.desktop.perform(PressKeys(["ctrl"]), Wait(LIMIT)))
    assert waits.begun.wait(LIMIT)
    desktop.control.release("enough")
    assert isinstance(call.end(), Closed)
    assert desktop.pressed == ()
    assert desktop.control.holder is None


def test_a_call_that_does_not_end_keeps_the_desktop(desktop: Desktop, backend: MemoryBackend) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stuck(_event: object) -> None:
        begun.set()
        go_on.wait(LIMIT)

    backend.on_event = stuck
    call = Call(lambda: desktop.perform(LeftClick((5, 5)), settle=False))
    assert begun.wait(LIMIT)
    try:
        with pytest.raises(TimeoutError, match=r"control.take: the call under way did not end in 0.1 s"):
            desktop.control.take("Ada", timeout=0.1)
        assert desktop.control.holder is None
    finally:
        go_on.set()
    call.end()
    backend.on_event = lambda _event: None
    desktop.perform(LeftClick((5, 5)), settle=False)


def test_a_command_goes_on(desktop: Desktop, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    call = Call(lambda: desktop.host.run(f"mkfifo {fifo}; read line < {fifo}; echo $line"))
    while not fifo.exists():
        threading.Event().wait(0.005)
    with desktop.control.take("Ada"):
        fifo.write_text("on\n")
        assert call.end().stdout == "on\n"


def test_the_next_observation_has_the_note_once(desktop: Desktop) -> None:
    assert desktop.perform(settle=False).notes == ()
    with desktop.control.take("Ada") as hold:
        assert hold.desktop.perform(settle=False).notes == ()
        hold.release("I logged\nyou in\x07")
    (note,) = desktop.also(Heard()).perform(settle=False).notes
    assert note.startswith("Ada had control of this desktop for ")
    assert note.endswith("and says: I logged you in")
    assert desktop.perform(settle=False).notes == ()
    desktop.control.take("Ada").release()
    assert desktop.perform(settle=False).notes[0].endswith("left no note")


def test_the_agent_learns_that_the_pointer_was_moved(desktop: Desktop) -> None:
    desktop.perform(Move((50, 50)), settle=False)
    with desktop.control.take("Ada") as hold:
        assert not hold.desktop.perform(Move((60, 60)), settle=False).pointer_moved
    assert desktop.perform(settle=False).pointer_moved
    assert not desktop.perform(settle=False).pointer_moved


def test_names_and_texts_are_cleaned_and_bounded(desktop: Desktop) -> None:
    with desktop.control.take("A\x1b[31m\nda" + "x" * 500) as hold:
        assert hold.holder.by.startswith("A[31m da")
        assert len(hold.holder.by) == 100
    for wrong in ("", "\n", "\x07"):
        with pytest.raises(ActionError, match="the name is empty"):
            desktop.control.take(wrong)
        with pytest.raises(ActionError, match="the name is empty"):
            desktop.control.pause(wrong)
        with pytest.raises(ActionError, match="the reason is empty"):
            desktop.hand_over(wrong)


def test_from_within_a_call_nobody_takes_control(desktop: Desktop, backend: MemoryBackend) -> None:
    said: list[object] = []

    def take(_event: object) -> None:
        with pytest.raises(ActionError, match="this thread is in a call of this desktop"):
            desktop.control.take("Ada")
        said.append(None)

    backend.on_event = take
    desktop.perform(Move((5, 5)), settle=False)
    assert said


def test_a_stopped_a_closed_and_a_look_only_desktop(backend: MemoryBackend) -> None:
    desktop = Desktop(backend)
    hold = desktop.control.take("Ada")
    desktop.stop("enough")
    with pytest.raises(PolicyDenied, match="enough"):
        hold.desktop.perform(LeftClick((5, 5)), settle=False)
    hold.release()
    with pytest.raises(PolicyDenied, match="enough"):
        desktop.control.take("Ada")
    with pytest.raises(PolicyDenied, match="enough"):
        desktop.control.pause("Ada")
    desktop.close()
    hold.release()
    for call in (
        lambda: desktop.control.take("Ada"),
        desktop.control.release,
        lambda: desktop.control.pause("Ada"),
        desktop.control.step,
        desktop.control.resume,
        lambda: desktop.control.decline(1, "Ada"),
        lambda: desktop.hand_over("help"),
        hold.desktop.screenshot,
    ):
        with pytest.raises(Closed):
            call()
    assert (desktop.control.holder, desktop.control.paused, desktop.control.requests) == (None, None, ())
    with Desktop(MemoryBackend((320, 200)), view_only=True) as looked_at:
        looked_at.perform(Wait(0.0), settle=False)
        for call in (lambda: looked_at.control.take("Ada"), lambda: looked_at.perform(Move((1, 1)))):
            with pytest.raises(UnsupportedAction):
                call()


# --- who hears of it ---


def test_it_is_heard_in_every_view(desktop: Desktop) -> None:
    owners, agents, viewers = Heard(), Heard(), Heard()
    keep(desktop, owners)
    agent = desktop.also(agents)
    viewer = bare(desktop).also(viewers)
    with viewer.control.take("Ada") as hold:
        hold.desktop.perform(LeftClick((5, 5)), settle=False)
        hold.release("done")
    for heard in (owners, agents, viewers):
        assert heard.events == [ControlEvent("take", "Ada"), ControlEvent("release", "Ada", "done")]
        (operation,) = heard.operations
        assert operation.holder == hold.holder
    agent.perform(settle=False)
    assert agents.operations[-1].holder is None


def test_an_interceptor_that_raises_keeps_a_person_out(desktop: Desktop) -> None:
    class Raising(Heard):
        def control(self, event: ControlEvent) -> None:
            super().control(event)
            raise PolicyDenied("control", "not now")

    heard, raising = Heard(), Raising()
    views = desktop.also(heard), desktop.also(raising)
    with pytest.raises(PolicyDenied, match="not now"):
        views[0].control.take("Ada")
    assert desktop.control.holder is None
    assert heard.events


def test_a_policy_lets_a_person_act_by_hand_and_nothing_else(desktop: Desktop, tmp_path: Path) -> None:
    limits = RateLimits(actions=1)
    with AuditLog(tmp_path / "audit.jsonl") as log:
        view = desktop.also(Guard(policy=ClassPolicy(allow=()), audit=log, limits=limits))
        with pytest.raises(PolicyDenied):
            view.perform(KeyPress(["a"]), settle=False)
        with view.control.take("Ada") as hold:
            for _ in range(5):
                hold.desktop.perform(Type("by hand"), settle=False)
            hold.desktop.clipboard.read()
            with pytest.raises(PolicyDenied):
                hold.desktop.host.run("true")
            with pytest.raises(PolicyDenied):
                hold.desktop.operate(Operation("navigate", "https://example.org"), lambda: None)
        with view.control.take("Ada", private=True) as hold:
            hold.desktop.perform(Type("hunter2"), settle=False)
        with pytest.raises(PolicyDenied):
            view.perform(KeyPress(["a"]), settle=False)
        assert verify(log.path).broken is None
        written = (tmp_path / "audit.jsonl").read_text()
    assert "hunter2" not in written
    assert written.count('"by":"person"') == 6
    assert written.count('"reason":"Ada has control"') == 6
    assert written.count('"event":"control","kind":"take","by":"Ada"') == 2
    assert '"kind":"take","by":"Ada","private":true' in written


def test_without_the_audit_log_nobody_takes_control(desktop: Desktop, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    view = desktop.also(Guard(audit=log))
    hold = view.control.take("Ada")
    log.close()
    with pytest.raises(PolicyDenied, match="audit log cannot be written"):
        hold.desktop.perform(KeyPress(["a"]), settle=False)
    hold.release()
    assert desktop.control.holder is None
    with pytest.raises(PolicyDenied, match="audit log cannot be written"):
        desktop.control.take("Ada")
    assert desktop.control.holder is None


# --- requests for help ---


def test_a_request_for_help_waits_until_a_person_was_there(desktop: Desktop) -> None:
    heard = Heard()
    agent = desktop.also(heard)
    request = agent.hand_over("a CAPTCHA\nis in the way\x1b")
    assert isinstance(request, HelpRequest)
    assert request.reason == "a CAPTCHA is in the way"
    assert agent.hand_over("a CAPTCHA is in the way") == request
    other = agent.hand_over("and a password")
    assert desktop.control.requests == (request, other)
    # It goes on meanwhile.
    agent.perform(LeftClick((5, 5)), settle=False)
    with desktop.control.take("Ada"):
        assert desktop.control.requests == (request, other)
    assert not desktop.control.requests
    assert [event.kind for event in heard.events] == ["ask", "ask", "take", "release"]
    assert "hand_over" in [operation.type for operation in heard.operations]


def test_a_request_for_help_is_declined(desktop: Desktop) -> None:
    first, second = desktop.hand_over("a CAPTCHA"), desktop.hand_over("a password")
    desktop.control.decline(first, "Ada", "do without")
    desktop.control.decline(second.id, "Ada")
    for gone in (first, 17):
        with pytest.raises(ActionError, match=r"no request \d+ is pending"):
            desktop.control.decline(gone, "Ada")
    assert desktop.perform(settle=False).notes == (
        "Ada declined the request for help (a CAPTCHA) and says: do without",
        "Ada declined the request for help (a password)",
    )


def test_requests_and_notes_are_bounded(desktop: Desktop) -> None:
    for number in range(16):
        desktop.hand_over(f"{number} " + "x" * 5000)
    assert all(len(request.reason) == 2000 for request in desktop.control.requests)
    with pytest.raises(ActionError, match="16 requests are pending"):
        desktop.hand_over("one more")
    for _ in range(40):
        desktop.control.take("Ada").release("y" * 5000)
    notes = desktop.perform(settle=False).notes
    assert len(notes) == 16
    assert all(len(note) < 2100 for note in notes)


def test_help_is_asked_for_under_a_policy_and_while_somebody_holds(desktop: Desktop) -> None:
    agent = desktop.also(Guard(policy=ClassPolicy(allow=["observe"])))
    desktop.control.pause("Ada")
    with desktop.control.take("Ada", private=True):
        agent.hand_over("help")
    desktop.control.resume()
    with pytest.raises(PolicyDenied):
        desktop.also(Guard(policy=ClassPolicy(allow=(), deny=["observe"]))).hand_over("help")


# --- the state by itself ---


def test_times_come_from_the_clock_that_is_given() -> None:
    now = [1_700_000_000.0]
    state = ControlState(wall=lambda: now[0])
    state.holding = holding = state.new_holding("Ada", private=False)
    now[0] += 41
    with pytest.raises(DesktopHeld, match="since 2023-11-14 22:13:20 UTC"):
        state.refuse_if_held()
    assert state.end_of(holding, "") == "Ada had control of this desktop for 41 s, and left no note"
    assert state.help.ask("help")[0].since == now[0]
