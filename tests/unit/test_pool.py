"""The threads of a pool, over desktops in memory whose launches come up, fail, hang and die as a test wants."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import (
    ActionError,
    AsyncPool,
    BackendError,
    Desktop,
    LaunchFailed,
    Move,
    Pool,
    PoolExhausted,
    PressKeys,
    Wait,
)
from deskhand._native import Interrupted
from deskhand.desktop.access import core_of, pass_on
from deskhand.pool import lease, worker
from deskhand.pool import pool as pool_module
from unit.made import LIMIT, Maker, kill, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from deskhand.pool.status import ResetBy


@pytest.fixture
def make() -> Iterator[Maker]:
    """A launcher; at the end all that it made must have been closed, and no thread of a pool be left."""
    maker = Maker()
    yield maker
    maker.gate.set()
    gc.collect()
    until(lambda: not [t.name for t in threading.enumerate() if t.name.startswith("deskhand-pool")], "threads to end")
    assert maker.living == []


def test_what_no_launch_takes_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ActionError, match=r"there is no option 'imgae': did you mean 'image'\?"):
        deskhand.Pool("docker", imgae="minimal")  # type: ignore[call-arg] # it is wrong on purpose
    with pytest.raises(ActionError, match="there is no option 'colour': see"):
        deskhand.Pool(colour="red")  # type: ignore[call-arg] # likewise
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(deskhand.MissingExtra, match="the Docker SDK"):
        deskhand.Pool("docker")


def test_first_come_first_served(make: Maker) -> None:
    """Twelve callers in a known order, two desktops: they are served in that order, and never more desktops than two exist."""
    served: list[int] = []
    done = [threading.Event() for _ in range(12)]

    def use(number: int) -> None:
        with pool.acquire():
            served.append(number)
            done[number].wait(LIMIT)

    with Pool(make, size=2, warm=0) as pool, ThreadPoolExecutor(12) as callers:
        make.gate.clear()
        jobs = []
        for number in range(12):
            jobs.append(callers.submit(use, number))
            until(lambda count=number + 1: pool.status.waiting == count, "the caller to queue")  # type: ignore[misc]
        make.gate.set()
        until(lambda: len(served) == 2, "the first two")
        assert sorted(served) == [0, 1]
        for number in range(12):
            done[number].set()
            came = min(number + 3, 12)
            until(lambda count=came: len(served) == count, "the next")  # type: ignore[misc] # mypy knows no lambda's default
            assert served[2:] == list(range(2, came))
        for job in jobs:
            job.result(LIMIT)
    assert make.most <= 2


def test_threads_and_coroutines_share_one_queue(make: Maker) -> None:
    served: list[str] = []

    async def main() -> None:
        async with AsyncPool(make, size=1, warm=0) as pool:
            make.gate.clear()

            async def later(name: str) -> None:
                async with pool.acquire():
                    served.append(name)

            def sooner() -> None:
                with pool.pool.acquire():
                    served.append("thread")

            tasks = [asyncio.create_task(later("first"))]
            await asyncio.to_thread(until, lambda: pool.status.waiting == 1, "the first")
            tasks.append(asyncio.create_task(asyncio.to_thread(sooner)))
            await asyncio.to_thread(until, lambda: pool.status.waiting == 2, "the thread")
            tasks.append(asyncio.create_task(later("last")))
            await asyncio.to_thread(until, lambda: pool.status.waiting == 3, "the last")
            make.gate.set()
            await asyncio.gather(*tasks)

    asyncio.run(main())
    assert served == ["first", "thread", "last"]


def test_timeout(make: Maker) -> None:
    """The error says what the pool was busy with; who gave up is not served later."""
    with Pool(make, size=1, warm=0) as pool, pool.acquire():
        with (
            pytest.raises(PoolExhausted, match=r"1 of 1 in use.*make the pool larger") as caught,
            pool.acquire(timeout=0.01),
        ):
            pass
        assert isinstance(caught.value, TimeoutError)
        assert (caught.value.used, caught.value.waiting) == (1, 0)
        assert caught.value.waited >= 0.01
        until(lambda: pool.status.waiting == 0, "the caller to be forgotten")
    assert len(make.backends) == 1


def test_who_is_told_to_wait_no_longer_leaves_nothing(make: Maker) -> None:
    make.gate.clear()
    with Pool(make, size=1, warm=0) as pool, ThreadPoolExecutor(1) as callers:
        waiting = pool.acquire(timeout=None)

        def wait() -> None:
            with pytest.raises(deskhand.BackendError, match="the wait for a desktop was cancelled"), waiting:
                pass

        job = callers.submit(wait)
        until(lambda: pool.status.waiting == 1, "the caller to queue")
        waiting.cancel()
        job.result(LIMIT)
        until(lambda: pool.status.waiting == 0, "the caller to be forgotten")
        make.gate.set()
        before = pool.acquire(timeout=None)
        before.cancel()
        with pytest.raises(deskhand.BackendError, match="the wait for a desktop was cancelled"), before:
            pass
        after = pool.acquire(LIMIT)
        with after as desktop:
            after.cancel()
            desktop.screenshot()
        with pool.acquire(LIMIT):
            pass


def test_too_many_callers_are_turned_away_at_once(make: Maker) -> None:
    with Pool(make, size=1, warm=0, max_waiting=1) as pool:

        def wait() -> None:
            with pool.acquire():
                pass

        with ThreadPoolExecutor(1) as callers:
            with pool.acquire():
                waiting = callers.submit(wait)
                until(lambda: pool.status.waiting == 1, "the second caller to queue")
                with pytest.raises(PoolExhausted, match="too many callers wait"), pool.acquire(timeout=None):
                    pass
            waiting.result(LIMIT)


def test_a_machine_that_is_full(make: Maker) -> None:
    """Launches fail while a desktop is in use: the second caller hears why at his timeout, and gets the one given back."""
    with Pool(make, size=2, warm=0) as pool:
        with pool.acquire():
            make.errors = [LaunchFailed("the X server", 1.0, "no space left")]
            with pytest.raises(PoolExhausted, match="no space left") as caught, pool.acquire(timeout=0.15):
                pass
            # Before the third launch fails, 0.3 s after the first: then who comes next is refused.
            make.errors = []
            assert isinstance(caught.value.__cause__, LaunchFailed)
            assert pool.status.failed >= 1
        with pool.acquire():
            pass


def test_launches_that_never_succeed(make: Maker) -> None:
    """With nothing to wait for, every caller is told after the third failure, each by an object of his own."""
    make.errors = [LaunchFailed("the X server", 1.0, "no such font")]

    def try_it() -> LaunchFailed:
        with pytest.raises(LaunchFailed, match="no such font") as caught, pool.acquire():
            pass
        return caught.value

    with Pool(make, size=4, warm=0) as pool, ThreadPoolExecutor(3) as callers:
        make.gate.clear()
        jobs = [callers.submit(try_it) for _ in range(3)]
        until(lambda: pool.status.waiting == 3, "three callers")
        make.gate.set()
        assert len({id(job.result(LIMIT)) for job in jobs}) == 3
    make.errors = [RuntimeError("not ours")]
    with Pool(make) as pool, pytest.raises(LaunchFailed, match="RuntimeError: not ours"), pool.acquire():
        pass


def test_fresh(make: Maker) -> None:
    """By default nobody gets a desktop that another had, and what he kept of his is closed."""
    with Pool(make, size=2, warm=1, size_of_screen=(64, 48)) as pool:
        with pool.acquire() as first:
            first.perform(Move((1, 1)), settle=False)
        with pool.acquire() as second:
            assert second is not first
            assert make.backends[0].events != []
            with pytest.raises(deskhand.BackendError, match="given back to its pool"):
                until(lambda: first.perform(Move((2, 2)), settle=False) is None, "the desktop to be closed")
    assert all(options == {"size_of_screen": (64, 48)} for options in make.options)


def test_reset_by_a_function(make: Maker) -> None:
    """The next user gets the same desktop through another object; the one that the user before kept is of no use any more."""
    cleaned: list[Desktop] = []
    with Pool(make, size=1, reset=cleaned.append) as pool:
        with pool.acquire() as first:
            first.perform(PressKeys(["shift"]), settle=False)
        with pool.acquire() as second:
            assert [core_of(each) for each in cleaned] == [core_of(second)]
            assert second.pressed == ()
            with pytest.raises(deskhand.BackendError, match="given back to its pool"):
                first.perform(Move((1, 1)))

            def stop_the_call_of_another(seconds: float) -> None:
                first.interrupt()
                first.close()
                time.sleep(seconds)

            make.backends[0].on_wait = stop_the_call_of_another
            second.perform(Wait(0.3), Wait(0.3))
        assert len(make.backends) == 1
        # Whether it is fit was asked with the pointer, before each user.
        sent = [type(event).__name__ for event in make.backends[0].events]
        assert [kind for kind in sent if kind != "PointerMove"] == ["KeyDown", "KeyUp"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raises", "ValueError: no"),
        ("session", "UnsupportedAction: memory does not support"),
        ("closed by its user", "Closed: this desktop is closed"),
    ],
)
def test_a_reset_that_fails_means_a_fresh_desktop(make: Maker, how: str, why: str) -> None:
    def reset(desktop: Desktop) -> None:
        desktop.screenshot()
        raise ValueError("no")

    with Pool(make, size=1, reset="session" if how == "session" else reset) as pool:
        with pool.acquire() as first:
            if how == "closed by its user":
                first.close()
        with pool.acquire():
            assert [backend.closed for backend in make.backends] == [True, False]
            assert pool.status.failed == 1
            assert pool.status.trouble.startswith(why)


@pytest.mark.parametrize("reset", ["fresh", lambda _: None], ids=["fresh", "function"])
def test_what_was_given_back_refuses_at_once(make: Maker, reset: ResetBy) -> None:
    """Also while another thread is in a call, whose end is told in the same words, and nothing of it goes on."""
    with Pool(make, size=1, warm=0, reset=reset) as pool, ThreadPoolExecutor(1) as threads:
        with pool.acquire() as desktop:
            waiting = threading.Event()

            def wait(seconds: float) -> None:
                waiting.set()
                time.sleep(min(seconds, 0.01))

            make.backends[0].on_wait = wait
            view = desktop.also()
            long_call = threads.submit(desktop.perform, Wait(60), Move((1, 1)))
            assert waiting.wait(LIMIT)
        calls: list[Callable[[], object]] = [
            lambda: desktop.perform(Move((1, 1))),
            desktop.screenshot,
            lambda: view.perform(Move((1, 1))),
            desktop.clipboard.read,
            lambda: desktop.start("xterm"),
            desktop.health,
        ]
        for call in calls:
            with pytest.raises(deskhand.BackendError, match="given back to its pool"):
                call()
        with pytest.raises(deskhand.BackendError, match="given back to its pool"):
            long_call.result(LIMIT)


def test_an_idle_one_that_died_is_replaced(make: Maker) -> None:
    with Pool(make, size=1, warm=1) as pool:
        until(lambda: pool.status.ready == 1, "a desktop")
        kill(make.backends[0])
        until(lambda: len(make.backends) == 2 and pool.status.ready == 1, "another one")
        assert make.backends[0].closed
        assert pool.status.lost == 1


def test_one_that_died_is_never_handed_out(make: Maker) -> None:
    """Dead since the last check: the caller gets another, before those who came after him."""
    with Pool(make, size=1, warm=1) as pool:
        until(lambda: pool.status.ready == 1, "a desktop")
        kill(make.backends[0])
        with pool.acquire() as desktop:
            desktop.screenshot()
            assert pool.status.lost == 1


def test_one_that_hangs_is_given_up(make: Maker) -> None:
    """An idle desktop that says nothing for two seconds is interrupted, and replaced."""
    stopped = threading.Event()

    def look() -> None:
        assert stopped.wait(LIMIT)
        raise Interrupted

    with Pool(make, size=1, warm=1) as pool:
        until(lambda: pool.status.ready == 1, "a desktop")
        make.backends[0].look = look  # type: ignore[method-assign]
        make.backends[0].interrupt = stopped.set  # type: ignore[method-assign]
        until(lambda: len(make.backends) == 2 and pool.status.ready == 1, "another one")


def test_close_ends_everything(make: Maker) -> None:
    """Desktops in use and those that are just coming up too; who waits is told, who comes later also."""
    pool = Pool(make, size=2, warm=0)
    told: list[str] = []

    def wait() -> None:
        with pytest.raises(deskhand.BackendError, match="this pool is closed"), pool.acquire():
            pass
        told.append("closed")

    with pool.acquire() as desktop:
        make.gate.clear()
        with ThreadPoolExecutor(3) as threads:
            threads.submit(wait)
            until(lambda: pool.status.starting == 1, "another launch")
            closing = threads.submit(pool.close)
            until(lambda: told, "the caller to be told")
            assert not closing.done()
            make.gate.set()
            closing.result(LIMIT)
        assert len(make.backends) == 2
        with pytest.raises(deskhand.BackendError, match="closed"):
            desktop.screenshot()
    pool.close()
    wait()


def test_ctrl_c_leaves_nothing(make: Maker) -> None:
    """Interrupted at random moments of acquiring and giving back: no desktop is lost to the pool."""

    class Stop(BaseException):
        pass

    def stop(_number: int, frame: object) -> None:
        while frame is not None:
            if frame.f_code.co_name in {"__del__", "gc_callback"}:  # type: ignore[attr-defined]
                # Python itself would swallow it there, as it does a Ctrl-C; the callback is Hypothesis's.
                return
            if frame.f_code is use.__code__:  # type: ignore[attr-defined]
                raise Stop
            frame = frame.f_back  # type: ignore[attr-defined]

    def use() -> None:
        with pool.acquire(timeout=LIMIT):
            pass

    stopped = 0
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with Pool(make, size=2, reset=lambda _: None) as pool:
            for trial in range(300):
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 1e-5 + trial * 2e-6)
                        use()
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Stop:
                    stopped += 1
            gc.collect()
            until(lambda: pool.status.used == 0 and pool.status.waiting == 0, "all to be given back")
            with pool.acquire(), pool.acquire():
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped >= 30


def test_stopped_before_any_instruction(make: Maker) -> None:
    """As above, but before each instruction of acquiring and giving back in turn."""

    class Stop(BaseException):
        pass

    left = 0
    acquiring = {lease.__file__, pool_module.__file__, worker.__file__}

    def trace(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename not in acquiring or frame.f_code.co_name == "__del__":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise Stop
        return trace

    before = sys.gettrace()
    with Pool(make, size=1, reset=lambda _: None) as pool:
        for instruction in range(1, 2000):
            left = instruction
            sys.settrace(trace)
            try:
                with pool.acquire(timeout=LIMIT):
                    pass
            except Stop:
                continue
            finally:
                sys.settrace(before)
            break
        assert 100 < instruction < 1999
        with pool.acquire(timeout=LIMIT):
            pass


def test_cancelled_tasks_leave_nothing(make: Maker) -> None:
    """Cancelled after any number of steps of the loop: no desktop is lost to the pool."""

    async def use(pool: AsyncPool) -> None:
        async with pool.acquire() as desktop:
            await desktop.perform(Move((1, 1)), settle=False)

    async def main() -> None:
        async with AsyncPool(make, size=2, reset=lambda _: None) as pool:
            cancelled = 0
            for trial in range(100):
                tasks = [asyncio.create_task(use(pool)) for _ in range(3)]
                for _ in range(trial % 20):
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                cancelled += sum(isinstance(result, asyncio.CancelledError) for result in results)
            assert cancelled >= 100
            async with pool.acquire(), pool.acquire():
                assert pool.status.used == 2

    asyncio.run(main())


def test_the_async_form_raises_the_same(make: Maker) -> None:
    async def main() -> None:
        async with AsyncPool(make, size=1, warm=0, max_waiting=0) as pool:
            async with asyncio.timeout(LIMIT):
                with pytest.raises(PoolExhausted, match="too many"):
                    async with pool.acquire():
                        pass
        async with AsyncPool(make, size=1, warm=0) as pool, pool.acquire() as desktop:
            with pytest.raises(PoolExhausted):
                async with pool.acquire(timeout=0.01):
                    pass
            await desktop.screenshot()
            await pool.close()
            await pool.close()
            with pytest.raises(deskhand.BackendError):
                async with pool.acquire():
                    pass

    asyncio.run(main())


def test_without_a_block(make: Maker) -> None:
    with Pool(make, size=1, warm=0) as pool:
        lease = pool.acquire()
        lease.close()
        desktop = lease.open()
        desktop.perform(Move((1, 1)), settle=False)
        with pytest.raises(ActionError, match="once"):
            lease.open()
        assert pool.status.used == 1
        lease.close()
        lease.close()
        with pytest.raises(BackendError):
            desktop.perform(Move((1, 1)), settle=False)
        until(lambda: pool.status.used == 0, "the desktop to be given back")

    async def main() -> None:
        async with AsyncPool(make, size=1, warm=0) as pool:
            lease = pool.acquire()
            desktop = await lease.open()
            await desktop.perform(Move((1, 1)), settle=False)
            lease.close()
            lease.close()
            async with pool.acquire() as other:
                await other.perform(Move((2, 2)), settle=False)

    asyncio.run(main())


def test_the_two_surfaces_are_the_same() -> None:
    for cls, other in ((Pool, AsyncPool), (AsyncPool, Pool)):
        public = {name for name in vars(cls) if not name.startswith("_")}
        assert public <= set(dir(other)) | {"label"}
    assert inspect.signature(Pool) == inspect.signature(AsyncPool)
    assert inspect.signature(Pool.acquire).parameters.keys() == inspect.signature(AsyncPool.acquire).parameters.keys()


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"warm": -1}, {"size": 2, "warm": 3}, {"max_waiting": -1}, {"reset": "?"}, {"name": "x"}]
)
def test_impossible_arguments(make: Maker, wrong: dict[str, object]) -> None:
    with pytest.raises(deskhand.ActionError):
        Pool(make, **wrong)


def test_a_lease_is_entered_once(make: Maker) -> None:
    with Pool(make) as pool:
        lease = pool.acquire()
        with lease, pytest.raises(deskhand.ActionError, match="once"), lease:
            pass


@pytest.mark.filterwarnings("ignore:.*was not closed:ResourceWarning")
def test_a_forgotten_pool_ends_by_itself(make: Maker) -> None:
    Pool(make)
    until(lambda: make.backends, "a desktop")


def test_a_desktop_that_its_user_handed_over_is_ended_with_it() -> None:
    maker = Maker()
    with Pool(maker, size=1, warm=0) as pool:
        with pool.acquire(LIMIT) as desktop:
            other = pass_on(pass_on(desktop))
        until(lambda: maker.backends[0].closed, "the desktop to end")
        assert other.closed
        with pool.acquire(LIMIT) as desktop:
            desktop.screenshot()
    assert len(maker.backends) == 2


def test_a_desktop_that_its_user_handed_over_is_made_ready_for_the_next() -> None:
    maker = Maker()
    with Pool(maker, size=1, warm=0, reset=lambda _: None) as pool:
        with pool.acquire(LIMIT) as desktop:
            other = pass_on(desktop)
        with pool.acquire(LIMIT) as desktop:
            desktop.screenshot()
        assert other.closed
    assert len(maker.backends) == 1


def test_a_desktop_that_is_handed_over_when_its_pool_is_closed_is_ended() -> None:
    maker = Maker()
    pool = Pool(maker, size=1, warm=0)
    with pool.acquire(LIMIT) as desktop:
        other = pass_on(desktop)
        pool.close()
        assert other.closed
    assert maker.backends[0].closed
