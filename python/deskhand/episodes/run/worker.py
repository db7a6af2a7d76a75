"""Plays episodes: leases them from the ledger, tries them on desktops, and stores their results.

This module owns how many run at once, the signs of life, and what follows from a result: done, another attempt, or given back.
How an episode is played is in `deskhand.episodes.play.attempt`, and on which machines workers run in
`deskhand.episodes.run.engines`.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import State
from deskhand.episodes.outcome import RULES, Cause, outcome_of
from deskhand.episodes.play.agents import find_agent
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.play.shown_places import ShownPlaces
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.run.plan import News
from deskhand.episodes.run.worker_name import worker_name
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.errors import DesktopLost, EpisodeError, LedgerError
from deskhand.watch.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.ledger.ledger import Key, Lease, Ledger
    from deskhand.episodes.play.attempt import Places
    from deskhand.episodes.play.budget import Record
    from deskhand.episodes.play.episode import Agent
    from deskhand.episodes.run.plan import Plan, Tell
    from deskhand.episodes.tasks.task import Task
    from deskhand.watch.serving import Server

_POLL = 1.0
_BACKOFF, _LONGEST_BACKOFF = 5.0, 120.0
# How often a ledger that cannot be written is tried again, while leases last.
_LEDGER_TRIES, _LEDGER_PAUSE = 20, 1.0
# An episode that was lost this often is not tried again: it may be what kills the workers.
_MOST_LOSSES = 10
# Seconds. The page ends with the worker in any case.
_PAGE_LIFETIME = 30 * 86_400.0


class _HasPlaces(Protocol):
    def places(self, task: Task) -> Places: ...
    def close(self) -> None: ...


class Worker:
    """Plays the episodes of a plan until all are done or it is stopped.

    Example:
        >>> with Worker(plan) as worker:
        ...     await worker.run()
    """

    def __init__(
        self,
        plan: Plan,
        *,
        name: str | None = None,
        stop: Stop | None = None,
        tell: Tell = lambda _: None,
        ledger: Ledger | None = None,
        pools: _HasPlaces | None = None,
        record: Callable[[Path], Record] | None = None,
    ) -> None:
        """Load what is needed; no desktop is started yet.

        Args:
            plan: The plan.
            name: The unique name of this worker; by default it identifies this process.
            stop: Stops it: running episodes are given back.
            tell: Called with the news of every episode.
            ledger: Used in place of the plan's, which is opened here otherwise.
            pools: Used in place of the plan's desktops.
            record: Makes the record of an attempt, in place of files below the plan's directory.

        Raises:
            EpisodeError: A task, the agent or the ledger is wrong.
            MissingExtra: The plan is watched, and the extra `watch` is not installed.
        """
        self.plan = plan
        self.name: str = name or worker_name()
        self.stop: Stop = stop or Stop()
        self._tell = tell
        self._tasks = {task.name: task for task in find_tasks(plan.tasks)}
        self._agent: Agent = find_agent(plan.agent, host=plan.host)
        self._frames: FrameStore | None = None
        if record is None:
            self._frames = FrameStore(Path(plan.directory) / "frames")
            record = partial(Recorder, frames=self._frames)
        self._record = record
        self._ledger = ledger or open_ledger(plan.ledger)
        self._pools: _HasPlaces = pools or DesktopPools(
            list(self._tasks.values()), backend=plan.backend, desktops=plan.desktops, image=plan.image
        )
        self._running: dict[tuple[Key, int], tuple[Lease, Stop]] = {}
        self._changed = asyncio.Event()
        # Last, since nothing closes it if this fails.
        self._page: Server | None = serve({}) if plan.watched else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its desktops and files. Further calls do nothing."""
        with contextlib.ExitStack() as all_of_it:
            if self._page is not None:
                all_of_it.callback(self._page.close)
            all_of_it.callback(self._ledger.close)
            if self._frames is not None:
                all_of_it.callback(self._frames.close)
            all_of_it.callback(self._pools.close)

    async def run(self) -> None:
        """Play until all episodes of the shard are done, by this or other workers, or until it is stopped.

        Raises:
            LedgerError: The ledger cannot be used. Running episodes were stopped; the run can be continued.
            EpisodeError: The ledger has episodes of tasks that this run does not have. All running episodes are given back.
        """
        loop = asyncio.get_running_loop()
        unsubscribe = self.stop.subscribe(lambda: _soon(loop, self._stop_all))
        if self._page is not None:
            link = self._page.link("watch", lifetime=_PAGE_LIFETIME, link_lifetime=_PAGE_LIFETIME)
            self._tell(News("page", text=link))
        # Every episode needs a thread, or its agent's thread could not be ended.
        threads = ThreadPoolExecutor(self.plan.desktops, thread_name_prefix="deskhand-episode")
        try:
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(self._beat())
                await self._play_all(group, threads)
                beating.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            unsubscribe()
            self._stop_all()
            threads.shutdown(wait=False, cancel_futures=True)

    # --- internals ---

    async def _play_all(self, group: asyncio.TaskGroup, threads: ThreadPoolExecutor) -> None:
        plan = self.plan
        playing: set[asyncio.Task[None]] = set()
        while self.stop.reason is None:
            self._changed.clear()
            leases: list[Lease] = []
            if (free := plan.desktops - len(playing)) > 0:
                leases = await self._asked(
                    partial(self._ledger.lease, self.name, plan.lease, most=free, shard=plan.shard)
                )
                await self._refuse_unknown(leases, playing)
            for lease in leases:
                task = group.create_task(self._play(lease, threads))
                playing.add(task)
                task.add_done_callback(playing.discard)
                task.add_done_callback(lambda _: self._changed.set())
            if not leases and not playing:
                counts = await self._asked(partial(self._ledger.counts, shard=plan.shard))
                if not counts[State.QUEUED] + counts[State.LEASED]:
                    return
            idle = len(playing) < plan.desktops
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL if idle else None):
                    await self._changed.wait()

    async def _refuse_unknown(self, leases: Sequence[Lease], playing: set[asyncio.Task[None]]) -> None:
        """Check that this run has the task of each lease; otherwise give back all that this worker holds, without a loss.

        Raises:
            EpisodeError: A task is missing: the ledger has episodes of another run.
        """
        unknown = next((lease for lease in leases if lease.key.task not in self._tasks), None)
        if unknown is None:
            return
        for lease in leases:
            await self._asked(partial(self._ledger.release, lease))
        self._stop_all()
        if playing:
            await asyncio.wait(playing)
        raise EpisodeError(
            f"the ledger has {unknown.key}, but this run has no task {unknown.key.task}: "
            "give every machine the same tasks, or each run a ledger of its own"
        )

    async def _play(self, lease: Lease, threads: ThreadPoolExecutor) -> None:
        stop = Stop()
        self._running[lease.key, lease.attempt] = lease, stop
        try:
            if self.stop.reason is not None:
                stop(self.stop.reason)
            self._tell(News("begun", lease.key, lease.attempt))
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(threads, self._try, lease, stop)
            try:
                result = await asyncio.shield(running)
            except asyncio.CancelledError:
                # Another episode has raised an error that ends the run. Its thread ends by itself, and gives its desktop back.
                stop("the run ends")
                await asyncio.wait([running])
                raise
            await self._conclude(lease, result)
        finally:
            del self._running[lease.key, lease.attempt]

    def _try(self, lease: Lease, stop: Stop) -> dict[str, Any]:
        """In a thread."""
        task = self._tasks[lease.key.task]
        places: Places = self._pools.places(task)
        if lease.failures.get(Cause.DESKTOP_LOST, 0) >= _MOST_LOSSES:
            places = _NoPlaces(
                f"it was lost {_MOST_LOSSES} times, with its desktop or its worker, and is not tried again"
            )
        shown_places = None if self._page is None else ShownPlaces(places, str(lease.key), self._page)
        try:
            record = self._record(attempt_directory(Path(self.plan.directory), lease))
        except OSError as error:
            record = _Unwritable(error)
        result = attempt(
            task,
            lease.key,
            shown_places or places,
            self._agent,
            record,
            number=lease.attempt,
            agent_name=self.plan.agent,
            run_seed=self.plan.run_seed,
            worker=self.name,
            failures=lease.failures,
            stop=stop,
        )
        if shown_places is not None and shown_places.shown is not None:
            shown_places.shown.tell(outcome_of(result))
        return result

    async def _conclude(self, lease: Lease, result: dict[str, Any]) -> None:
        """Store the result of an attempt."""
        cause = None if result["cause"] is None else Cause(result["cause"])
        news = partial(News, key=lease.key, attempt=lease.attempt, result=result)
        failed = lease.failures.get(cause, 0) if cause is not None else 0
        if cause is Cause.CANCELLED:
            kept = await self._asked(partial(self._ledger.release, lease))
            self._tell(news("released") if kept else news("lost"))
        elif cause is not None and failed < RULES[cause].retries and failed < _MOST_LOSSES:
            delay = min(_LONGEST_BACKOFF, _BACKOFF * 2**failed) if RULES[cause].backoff else 0.0
            kept = await self._asked(partial(self._ledger.retry, lease, cause, delay=delay))
            self._tell(news("retried") if kept else news("lost"))
        else:
            kept = await self._asked(partial(self._ledger.finish, lease, result))
            self._tell(news("done") if kept else news("lost"))

    async def _beat(self) -> None:
        """Renew the leases; stop episodes that another worker has by now."""
        while True:
            await asyncio.sleep(self.plan.heartbeat)
            for lease, stop in list(self._running.values()):
                try:
                    kept = await asyncio.to_thread(self._ledger.renew, lease, self.plan.lease)
                except LedgerError as error:
                    self._tell(News("trouble", text=str(error)))
                    continue
                if not kept:
                    # An episode that has just been finished ignores this.
                    stop("another worker has it by now")

    async def _asked(self, ask: Callable[[], Any]) -> Any:
        """Ask the ledger; if it cannot be used, try again for a while."""
        for tried in range(_LEDGER_TRIES):
            try:
                return await asyncio.to_thread(ask)
            except LedgerError as error:
                if tried == _LEDGER_TRIES - 1 or self.stop.reason is not None:
                    raise
                self._tell(News("trouble", text=str(error)))
                await asyncio.sleep(_LEDGER_PAUSE)
        raise AssertionError

    def _stop_all(self) -> None:
        for _, stop in list(self._running.values()):
            stop(self.stop.reason or "the run ends")
        self._changed.set()


class _NoPlaces:
    """Gives no desktop."""

    def __init__(self, why: str) -> None:
        self._why = why

    @contextlib.contextmanager
    def acquire(self, timeout: float | None = None) -> Iterator[Desktop]:
        del timeout
        raise DesktopLost("driver", self._why, "see the last of its attempts")
        yield


class _Unwritable:
    """The record of an attempt whose files could not be created: every call fails for that reason."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise self._error

    attach = detach = before = after = control = event = frame = end_state = finish = _fail

    def sanitize(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """No agent has acted, so there is no secret."""
        return fields

    def close(self) -> None:
        """Nothing is open."""


def attempt_directory(directory: Path, lease: Lease) -> Path:
    """The directory of an attempt's record, in a run's directory."""
    return directory / "ep" / str(lease.key) / f"attempt-{lease.attempt}"


# --- helpers ---


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    # A closed loop has nothing to stop.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
