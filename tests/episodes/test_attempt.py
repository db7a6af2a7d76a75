"""Whatever fails in an episode is called by its cause, and goes no further."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import (
    ActionError,
    AsyncDesktop,
    DesktopLost,
    LaunchFailed,
    LeftClick,
    LeftMouseDown,
    PolicyDenied,
    Pool,
    Wait,
)
from deskhand._core.settle import Settle
from deskhand.desktop.access import pass_on
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.tasks.task import Grade, TaskLimits
from episodes.plays import ANY_KEY, KEY, QUICK, Kept, Places, Press, clicks_on, memory_desktop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop
    from deskhand.backends.memory import MemoryBackend
    from deskhand.episodes.play.episode import Episode
    from deskhand.episodes.tasks.context import TaskContext


pytestmark = pytest.mark.usefixtures("quick")


SOON = TaskLimits(steps=5, seconds=0.3)
LONG = 60.0


def tried(agent: Any, task: Press | None = None, record: Kept | None = None, **options: Any) -> dict[str, Any]:
    return attempt(task or Press(), KEY, options.pop("places", None) or Places(), agent, record, **options)


def test_the_oracle_succeeds_and_all_of_it_is_told() -> None:
    record = Kept()
    result = tried("oracle", record=record, number=3, worker="w", failures={"desktop_lost": 2})
    assert (result["valid"], result["success"], result["score"], result["cause"]) == (True, True, 1.0, None)
    assert (result["steps"], result["actions"], result["looks"], result["answer"]) == (1, 1, 0, "done")
    assert (result["attempt"], result["worker"], result["retries"]) == (3, "w", 2)
    assert result["instruction"] == f"click at {result['parameters']['x']}, {result['parameters']['y']}"
    assert result["first_frame"]
    assert result["first_frame"] == result["final_frame"]
    assert record.kinds == ["begin", "reset", "frame", "setup", "perform", "answer", "frame", "evaluate", "end"]
    assert record.result == result
    assert record.closed
    assert record.attached is None
    times = result["times"]
    phases = times["reset"] + times["setup"] + times["agent"] + times["evaluate"] + times["overhead"]
    assert phases == pytest.approx(times["total"], abs=1e-4)
    assert times["agent"] >= times["input"] + times["settle"] + times["observe"] > 0


def test_an_attempt_ends_after_it_began_when_the_clock_is_set_back() -> None:
    walls = iter((1.8e9, 1.8e9 - 3600))
    result = tried("nothing", wall=lambda: next(walls))
    assert result["started"] == 1.8e9
    assert result["ended"] - result["started"] >= result["times"]["total"] - 1e-3


def test_the_same_seed_is_the_same_instance() -> None:
    first, second, other = (tried("nothing"), tried("nothing"), tried("nothing", run_seed=1))
    assert first["parameters"] == second["parameters"] != other["parameters"]
    assert (first["valid"], first["success"], first["score"], first["cause"]) == (True, False, 0.0, None)


def test_the_random_agent_does_the_same_again_and_uses_its_steps() -> None:
    class Wild(Press):
        limits = TaskLimits(steps=3, seconds=LONG)

    records = Kept(), Kept()
    results = [tried("random", Wild(), record) for record in records]
    first, second = ([fields["request"] for kind, fields in r.events if kind == "perform"] for r in records)
    assert first == second
    assert len(first) == 3
    assert results[0]["cause"] is None


# --- the task ---


class Broken(Press):
    def __init__(self, part: str, what: Callable[[], Any]) -> None:
        self._part, self._what = part, what

    def parameters(self, random: Any) -> Any:
        return self._what() if self._part == "parameters" else super().parameters(random)

    def instruction(self, parameters: Any) -> Any:
        return self._what() if self._part == "instruction" else super().instruction(parameters)

    def setup(self, context: TaskContext) -> None:
        super().setup(context)
        if self._part == "setup":
            self._what()

    def evaluate(self, context: TaskContext) -> Any:
        return self._what() if self._part == "evaluate" else super().evaluate(context)


def raising(error: BaseException) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("part", "what", "cause", "said"),
    [
        ("parameters", raising(KeyError("x")), Cause.SETUP_FAILED, "KeyError: 'x'"),
        ("parameters", lambda: {"x": object()}, Cause.SETUP_FAILED, "not JSON serializable"),
        ("parameters", lambda: 5, Cause.SETUP_FAILED, "TypeError"),
        ("instruction", lambda: "  ", Cause.SETUP_FAILED, "not a text"),
        ("instruction", lambda: None, Cause.SETUP_FAILED, "not a text"),
        ("setup", raising(RuntimeError("no such file")), Cause.SETUP_FAILED, "no such file"),
        ("setup", raising(SystemExit(3)), Cause.SETUP_FAILED, "SystemExit"),
        ("setup", raising(DesktopLost("x_server", "it died")), Cause.DESKTOP_LOST, "it died"),
        ("evaluate", raising(ZeroDivisionError("0/0")), Cause.EVALUATOR_FAILED, "ZeroDivisionError"),
        ("evaluate", lambda: None, Cause.EVALUATOR_FAILED, "returned None"),
        ("evaluate", lambda: "yes", Cause.EVALUATOR_FAILED, "returned 'yes'"),
        ("evaluate", lambda: 1.5, Cause.EVALUATOR_FAILED, "it must be 0 to 1"),
        ("evaluate", lambda: float("nan"), Cause.EVALUATOR_FAILED, "it must be 0 to 1"),
        ("evaluate", lambda: Grade(1.0, "", {"x": object()}), Cause.EVALUATOR_FAILED, "not JSON serializable"),
        ("evaluate", lambda: Grade(1.0, "", {"x": "y" * (2 << 20)}), Cause.EVALUATOR_FAILED, "larger than 1 MiB"),
        ("evaluate", raising(DesktopLost("x_server", "it died")), Cause.DESKTOP_LOST, "it died"),
    ],
)
def test_a_task_that_fails_is_contained_and_named(part: str, what: Any, cause: Cause, said: str) -> None:
    record, places = Kept(), Places()
    result = tried("oracle", Broken(part, what), record, places=places)
    assert (result["cause"], result["valid"], result["score"], result["success"]) == (cause, False, None, False)
    assert said in result["detail"]
    assert record.result == result
    assert record.closed
    assert all(desktop.closed for desktop in places.given)


def test_two_evaluations_that_differ_are_none() -> None:
    looks = iter(range(10))
    result = tried("oracle", Broken("evaluate", lambda: Grade(1.0, "it ticks", {"look": next(looks)})))
    assert (result["cause"], result["score"]) == (Cause.EVALUATOR_FAILED, None)
    assert "two evaluations of one state differ: 1 (it ticks)" in result["detail"]


@pytest.mark.parametrize(("value", "score"), [(True, 1.0), (False, 0.0), (0.25, 0.25), (1, 1.0)])
def test_plain_answers_of_an_evaluation_are_grades(value: Any, score: float) -> None:
    result = tried("nothing", Broken("evaluate", lambda: value))
    assert (result["valid"], result["score"], result["success"]) == (True, score, score == 1.0)


def test_phases_that_take_too_long_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.episodes.play.attempt._SETUP_LIMIT", 0.2)
    monkeypatch.setattr(Broken, "evaluation_limit", 0.2)

    def for_ever() -> None:
        while True:
            time.sleep(0.01)

    for part, cause in (("setup", Cause.SETUP_FAILED), ("evaluate", Cause.EVALUATOR_FAILED)):
        result = tried("oracle", Broken(part, for_ever))
        assert result["cause"] == cause
        assert "took more than 0.2 s" in result["detail"]


def test_a_screen_that_does_not_come_to_rest_is_no_first_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.episodes.play.attempt._STILL", Settle(timeout=0.2))

    def restless(backend: MemoryBackend) -> None:
        tick = iter(range(10**9))

        def wait(seconds: float) -> None:
            time.sleep(min(seconds, 0.005))
            backend.paint((20, 20, 4, 4), (next(tick) % 250, 0, 0))

        backend.on_wait = wait

    result = tried("oracle", places=Places(restless))
    assert result["cause"] == Cause.SETUP_FAILED
    assert "does not come to rest" in result["detail"]


# --- the agent ---


def test_an_agent_that_raises_is_graded() -> None:
    def agent(episode: Episode) -> None:
        episode.desktop.perform(LeftClick(target(episode)), settle=QUICK)
        raise RuntimeError("I give up")

    record = Kept()
    result = tried(agent, record=record)
    assert (result["cause"], result["valid"], result["success"]) == (Cause.AGENT_ERROR, True, True)
    assert re.fullmatch(rf"RuntimeError: I give up \({re.escape(__file__)}, line \d+\)", result["detail"])
    assert "in agent" in dict(record.events)["end"]["trace"]


def target(episode: Episode) -> tuple[int, int]:
    x, y = episode.instruction.removeprefix("click at ").split(", ")
    return int(x), int(y)


@pytest.mark.parametrize("nonsense", [5, {"answer": 1}, b"bytes", ["x"] * 10**6])
def test_an_agent_that_returns_nonsense_is_graded(nonsense: object) -> None:
    result = tried(lambda _: nonsense)
    assert (result["cause"], result["valid"], result["score"]) == (Cause.AGENT_ERROR, True, 0.0)
    assert "not a text" in result["detail"]
    assert len(result["detail"]) < 300


def test_the_steps_of_an_agent_are_counted_and_end() -> None:
    def agent(episode: Episode) -> str:
        left = []
        while True:
            left.append(episode.steps_left)
            try:
                episode.desktop.perform(ANY_KEY, settle=QUICK)
            except Exception:  # noqa: BLE001 # a loop that goes on after any error
                episode.note("went on")

    record = Kept()
    result = tried(agent, record=record)
    assert (result["cause"], result["valid"], result["score"]) == (Cause.AGENT_BUDGET, True, 0.0)
    assert result["steps"] == 5
    assert result["detail"] == "all 5 steps were used up"
    assert record.kinds.count("perform") == 5


def test_using_all_steps_and_no_more_is_no_failure() -> None:
    def agent(episode: Episode) -> None:
        for _ in range(episode.limits.steps):
            episode.desktop.perform(ANY_KEY, settle=QUICK)
            episode.desktop.screenshot()
        assert episode.steps_left == 0

    result = tried(agent)
    assert (result["cause"], result["steps"], result["looks"]) == (None, 5, 5)


async def _sleeps(_: Episode) -> None:
    await asyncio.sleep(LONG)


async def _insists(episode: Episode) -> None:
    while True:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            episode.seconds_left  # noqa: B018 # it stays all the same


async def _at_a_desktop(episode: Episode) -> None:
    desktop = AsyncDesktop(episode.desktop)
    try:
        while True:
            await desktop.screenshot()
            await asyncio.sleep(0.01)
    finally:
        desktop.detach()


def _computes(_: Episode) -> None:
    while True:
        pass


def _acts(episode: Episode) -> None:
    episode.desktop.perform(Wait(LONG))


@pytest.mark.parametrize("agent", [_sleeps, _insists, _at_a_desktop, _computes, _acts])
def test_an_agent_that_never_stops_is_stopped(agent: Any) -> None:
    begun = time.monotonic()
    result = tried(agent, limits=SOON)
    assert (result["cause"], result["valid"]) == (Cause.AGENT_BUDGET, True)
    assert result["detail"] == "all 0.3 s were used up"
    assert time.monotonic() - begun < LONG / 2


def test_an_agent_that_cannot_be_stopped_is_left_without_its_desktop() -> None:
    free, seen = threading.Event(), []

    def agent(episode: Episode) -> None:
        # A wait in C, which hears nothing.
        while not free.is_set():
            try:
                free.wait(LONG)
                episode.desktop.perform(ANY_KEY, settle=QUICK)
            except BaseException as error:  # noqa: BLE001 # it takes whatever comes
                seen.append(error)
                return

    record = Kept()
    result = tried(agent, record=record, limits=SOON)
    assert result["cause"] == Cause.AGENT_BUDGET
    assert "its thread was abandoned, without its desktop" in result["detail"]
    written = len(record.events)
    free.set()
    deadline = time.monotonic() + LONG
    while not seen:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert len(record.events) == written
    assert result["steps"] == 0


def test_a_thread_of_an_agents_own_that_takes_every_error_for_one_of_the_desktop_ends(tmp_path: Path) -> None:
    """Recorded as runs are: when its part is over, what it hears is no Exception, after which such loops go on."""
    heard: list[BaseException] = []
    go_on, over = threading.Event(), threading.Event()

    def loop(desktop: Desktop) -> None:
        go_on.wait(LONG)
        for _ in range(3):
            try:
                desktop.screenshot()
            except Exception as error:  # noqa: BLE001 # what this is about
                heard.append(error)
            except BaseException as error:  # noqa: BLE001 # likewise
                heard.append(error)
                break
        over.set()

    def agent(episode: Episode) -> None:
        threading.Thread(target=loop, args=(episode.desktop,), daemon=True).start()

    class Waits(Press):
        def evaluate(self, context: TaskContext) -> Grade | bool | float:
            go_on.set()
            assert over.wait(LONG)
            return super().evaluate(context)

    with FrameStore(tmp_path / "frames") as frames:
        result = attempt(Waits(), KEY, Places(), agent, Recorder(tmp_path / "attempt-1", frames))
    assert [str(error) for error in heard] == ["the agent's part is over"]
    # What it tried afterwards does not count.
    assert (result["cause"], result["looks"], result["steps"]) == (None, 0, 0)


def test_what_an_agent_does_while_its_part_is_ended_is_refused(tmp_path: Path) -> None:
    said: list[BaseException] = []
    acting: list[Desktop] = []

    async def agent(episode: Episode) -> None:
        acting.append(episode.desktop)
        await _sleeps(episode)

    class Late(Recorder):
        """As a thread that was left alone may act at any moment."""

        def detach(self) -> None:
            attached = self._desktop is not None
            super().detach()
            for desktop in acting if attached else ():
                try:
                    desktop.perform(LeftClick((1, 1)), settle=QUICK)
                except BaseException as error:  # noqa: BLE001 # whatever it is
                    said.append(error)

    places = Places()
    with FrameStore(tmp_path / "frames") as frames:
        result = attempt(Press(), KEY, places, agent, Late(tmp_path / "attempt-1", frames), limits=SOON)
    assert (result["cause"], result["steps"]) == (Cause.AGENT_BUDGET, 0)
    assert [str(error) for error in said] == ["all 0.3 s were used up"]
    assert clicks_on(places.given[0]) == []


def test_a_flood_of_looks_and_notes_is_bounded() -> None:
    def agent(episode: Episode) -> None:
        for _ in range(100):
            episode.note("x" * (1 << 20))
        while True:
            episode.desktop.screenshot()

    record = Kept()
    result = tried(agent, record=record, limits=TaskLimits(steps=1, seconds=LONG))
    assert (result["cause"], result["looks"]) == (Cause.AGENT_BUDGET, 1050)
    notes = [fields["text"] for kind, fields in record.events if kind == "note"]
    assert sum(map(len, notes)) <= (1 << 20) + 100
    assert notes[-1].endswith("[no further notes are kept]")


def test_a_flood_of_actions_in_one_call_is_refused() -> None:
    result = tried(lambda episode: episode.desktop.perform(*[ANY_KEY] * 1001, settle=False) and None)
    assert (result["cause"], result["steps"]) == (Cause.AGENT_ERROR, 0)
    assert "1000 actions" in result["detail"]


def test_what_an_agent_spends_is_added_up() -> None:
    def agent(episode: Episode) -> None:
        episode.spend(input=1000, output=20, cost=0.5)
        episode.spend(input=1, cost=0.25)
        for wrong in ({"input": -1}, {"cost": float("nan")}, {"output": 1.5}, {"input": True}):
            with pytest.raises(ActionError, match="spend: "):
                episode.spend(**wrong)  # type: ignore[arg-type]

        episode.spend(cost=0.0)
        for too_much in ({"input": 10**15}, {"output": 1 << 64}, {"cost": 1e308}):
            with pytest.raises(ActionError, match=r"spend: the total is above"):
                episode.spend(**too_much)  # type: ignore[arg-type]

    result = tried(agent)
    assert (result["cause"], result["tokens"], result["cost"]) == (None, {"input": 1001, "output": 20}, 0.75)


def test_a_policy_that_says_no_is_graded() -> None:
    result = tried(lambda _: raising(PolicyDenied("shell", "no"))())
    assert (result["cause"], result["valid"], result["score"]) == (Cause.POLICY_DENIED, True, 0.0)


def test_an_error_that_cannot_be_looked_at_is_the_agents() -> None:
    class Shy(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("there is no response yet")

        @property
        def code(self) -> object:
            raise RuntimeError("nor a code")

    result = tried(lambda _: raising(Shy("out of ideas"))())
    assert (result["cause"], result["valid"]) == (Cause.AGENT_ERROR, True)
    assert re.fullmatch(rf"Shy: out of ideas \({re.escape(__file__)}, line \d+\)", result["detail"])


def test_what_would_be_an_error_of_ours_is_one() -> None:
    def broken(backend: MemoryBackend) -> None:
        backend.events = None  # type: ignore[assignment]

    record = Kept()
    result = tried("oracle", record=record, places=Places(broken))
    assert (result["cause"], result["valid"]) == (Cause.DRIVER_BUG, False)
    assert "'NoneType' object has no attribute" in dict(record.events)["end"]["trace"]


def test_an_agent_that_closes_its_desktop_has_failed() -> None:
    result = tried(lambda episode: episode.desktop.close())
    assert (result["cause"], result["valid"], result["score"]) == (Cause.AGENT_ERROR, True, 0.0)
    assert "closed its desktop" in result["detail"]


def test_an_object_that_the_agent_made_of_its_desktop_is_taken_from_it_too() -> None:
    kept: list[Desktop] = []
    result = tried(lambda episode: kept.append(pass_on(episode.desktop)))
    assert (result["cause"], result["valid"]) == (None, True)
    assert kept[0].closed


# --- the desktop ---


def test_no_desktop_is_named() -> None:
    places = Places()
    places.failures.append(LaunchFailed("the X server", 3.0, "", "install xvfb"))
    result = tried("oracle", places=places)
    assert (result["cause"], result["valid"], result["score"]) == (Cause.DESKTOP_START, False, None)
    assert "the X server did not come up" in result["detail"]


def test_a_desktop_that_dies_between_setup_and_agent_is_lost() -> None:
    def dying(backend: MemoryBackend) -> None:
        def release(_: object) -> None:
            raise DesktopLost("x_server", "the connection was closed")

        backend.release = release  # type: ignore[method-assign]

    class Holds(Press):
        def setup(self, context: TaskContext) -> None:
            context.desktop.perform(LeftMouseDown(), settle=QUICK)

    result = tried("oracle", Holds(), places=Places(dying))
    assert (result["cause"], result["valid"], result["score"]) == (Cause.DESKTOP_LOST, False, None)


def test_a_desktop_that_dies_midway_is_lost_even_when_the_agent_did_not_mind() -> None:
    lost = threading.Event()

    def dying(backend: MemoryBackend) -> None:
        look = backend.look

        def looks(limit: float | None = None) -> None:
            if lost.is_set():
                raise DesktopLost("x_server", "the connection was closed")
            look(limit)

        backend.look = looks  # type: ignore[method-assign]

    def agent(episode: Episode) -> str:
        lost.set()
        with pytest.raises(DesktopLost):
            episode.desktop.screenshot()
        return "done"

    result = tried(agent, places=Places(dying))
    assert (result["cause"], result["valid"], result["score"]) == (Cause.DESKTOP_LOST, False, None)


# --- the operator ---


@pytest.mark.parametrize("agent", [_sleeps, _computes, _acts])
def test_the_operator_ends_it_and_there_is_no_result(agent: Any) -> None:
    stop, record = Stop(), Kept()
    timer = threading.Timer(0.2, stop, args=("the operator stopped the run",))
    timer.start()
    result = tried(agent, record=record, stop=stop)
    timer.join()
    assert (result["cause"], result["valid"]) == (Cause.CANCELLED, False)
    assert record.result is None
    assert record.closed


def test_a_stop_that_came_before_is_heard() -> None:
    stop = Stop()
    stop("at once")
    assert tried("oracle", stop=stop)["cause"] == Cause.CANCELLED


def test_a_stop_is_heard_while_a_desktop_comes_up() -> None:
    stop, over = Stop(), threading.Event()
    in_time: list[bool] = []

    def launch() -> Desktop:
        stop("the operator stopped the run")
        in_time.append(over.wait(10.0))
        return memory_desktop()

    with Pool(launch, size=1, warm=0) as pool:
        result = tried("oracle", places=pool, stop=stop)
        over.set()
        assert (result["cause"], result["detail"]) == (Cause.CANCELLED, "the operator stopped the run")
        # Nobody has the desktop that came too late.
        with pool.acquire(LONG):
            pass
    assert in_time[0]


def test_every_cause_has_a_rule() -> None:
    assert set(RULES) == set(Cause)


def test_a_memory_desktop_keeps_its_clicks() -> None:
    with memory_desktop() as desktop:
        desktop.perform(LeftClick((3, 4)), settle=QUICK)
        assert desktop._core.backend.places == [(3, 4)]  # type: ignore[attr-defined]
