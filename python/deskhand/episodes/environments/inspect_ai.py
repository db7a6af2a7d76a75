"""Tasks as an evaluation of inspect: each sample is an attempt at a task, on a desktop of its own.

    >>> from deskhand.episodes.environments.inspect_ai import evaluation
    >>> inspect_ai.eval(evaluation("tag:text", desktops=4), model="openai/gpt-5.4", max_samples=4)

An attempt is that of `deskhand run` (see `deskhand.episodes.play.attempt`). Its agent's part begins in the setup of the sample,
and lasts until the sample is scored; the evaluation's cleanup ends what is left of it.

This module owns the way from an attempt to inspect's sample and score. It evaluates nothing itself, and launches no desktop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from deskhand._core.arguments import expect_integer
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.play.supervision import Ended, Stop
from deskhand.episodes.tasks.catalogue import catalogue_of, find_tasks, instance
from deskhand.episodes.tasks.task import Task, TaskLimits
from deskhand.errors import ActionError, DeskhandError, EpisodeError, MissingExtra, TaskError
from deskhand.providers import inspect_ai as provider
from deskhand.providers.session import AsyncModelSession, with_usual

try:
    import anyio
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.util import LimitExceededError
except ImportError as _missing:
    raise MissingExtra("inspect_ai", "inspect") from _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inspect_ai.tool import Tool

    from deskhand.episodes.play.attempt import Places
    from deskhand.episodes.play.episode import Episode
    from deskhand.providers.session import ModelSession, NamedOptions, SessionOptions

_T = TypeVar("_T")


def evaluation(
    tasks: str | Task | Sequence[str | Task] = (),
    *,
    seeds: int = 1,
    desktops: int = 4,
    backend: str | None = None,
    image: str | None = None,
    limits: TaskLimits | None = None,
    max_screenshots: int | None = 1,
    **options: Unpack[SessionOptions],
) -> inspect_ai.Task:
    """Make an evaluation of tasks.

    A sample's score is the task's, 0...1. Its metadata has `cause`, `detail`, `reason`, `seconds`, `steps` and `state`, as in
    the result of an episode. An attempt that is invalid there (no desktop, a task that cannot be set up or evaluated) raises
    here, so that the sample has an error and no score.

    Args:
        tasks: Tasks, or names of them as for `deskhand.episodes.tasks.catalogue.find_tasks`, such as `tag:text`,
            `osworld:PATH` or `harbor:PATH`. By default all that ship.
        seeds: How many instances of each task: 0, 1, 2... Inspect's epochs repeat each.
        desktops: How many desktops at once. More samples than that (`max_samples`) wait, and their time limit goes on.
        backend: `local` or `docker`; by default where the tasks usually run.
        image: The container image, instead of the tasks' own.
        limits: Limits in place of the tasks'.
        max_screenshots: As for `deskhand.providers.inspect_ai.tool`.
        options: As for `deskhand.providers.inspect_ai.tool`.

    Raises:
        TaskError: There is no such task, or one is invalid.
        EpisodeError: There is no such backend, or it cannot have these tasks or this image.
        ActionError: A number is impossible.
    """
    wanted = [tasks] if isinstance(tasks, str | Task) else list(tasks)
    names = [name for name in wanted if isinstance(name, str)]
    found = [task for task in wanted if isinstance(task, Task)]
    if names or not found:
        found += find_tasks(names)
    for name, count in Counter(task.name for task in found).items():
        if count > 1:
            raise TaskError(name, f"{count} tasks have this name", "give each another one, and name each once")
    samples = _Samples(
        found,
        seeds=expect_integer("evaluation: seeds", seeds, 1),
        desktops=expect_integer("evaluation: desktops", desktops, 1),
        backend=backend or _usual_backend(names, found),
        image=image,
        limits=limits,
        tool=partial(_tool, max_screenshots=max_screenshots, options=options),
    )
    return samples.evaluation()


def _usual_backend(names: Sequence[str], found: Sequence[Task]) -> str:
    usual = {each.backend if (each := catalogue_of(name)) is not None else "" for name in names}
    if not names and any(task.builds_image for task in found):
        usual = {"docker"}
    return (usual.pop() if len(usual) == 1 else "") or "local"


def _tool(held: _HeldAttempt, episode: Episode, max_screenshots: int | None, options: SessionOptions) -> Tool:
    usual = with_usual(options, size=provider.SIZE, provider="inspect")
    return provider.tool(_Session(held, episode, **usual), max_screenshots=max_screenshots)


class _Samples:
    """The samples of one evaluation, and the attempts of those that run."""

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        seeds: int,
        desktops: int,
        backend: str,
        image: str | None,
        limits: TaskLimits | None,
        tool: Callable[[_HeldAttempt, Episode], Tool],
    ) -> None:
        self._instances = {f"{task.name}.s{seed}": (task, seed) for task in tasks for seed in range(seeds)}
        self._make_pools = partial(DesktopPools, tasks, backend=backend, desktops=desktops, image=image, spare=False)
        # Refuses now what does not fit together; it starts nothing.
        self._make_pools()
        self._limits = limits
        self._desktops = desktops
        self._tool = tool
        self._pools: DesktopPools | None = None
        self._attempts: dict[str, _HeldAttempt] = {}
        self._free: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def evaluation(self) -> inspect_ai.Task:
        # Inspect sets attributes of these functions, which methods do not allow.
        @solver
        def desktop_with_task() -> Solver:
            async def solve(state: TaskState, generate: Generate) -> TaskState:
                del generate
                return await self._begin(state)

            return solve

        @solver
        def work() -> Solver:
            async def solve(state: TaskState, generate: Generate) -> TaskState:
                return await self._work(state, generate)

            return solve

        @scorer(metrics=[mean(), stderr()])
        def end_state() -> Scorer:
            async def score(state: TaskState, target: Target) -> Score:
                del target
                return await self._score(state)

            return score

        return inspect_ai.Task(
            dataset=MemoryDataset([self._sample(name) for name in self._instances], name="deskhand"),
            setup=desktop_with_task(),
            solver=work(),
            scorer=end_state(),
            cleanup=self._clean_up,
        )

    def _sample(self, name: str) -> Sample:
        task, seed = self._instances[name]
        _, parameters = instance(task, seed)
        about = {"task": task.name, "seed": seed, "level": task.level, "tags": list(task.tags)}
        return Sample(id=name, input=task.instruction(parameters), metadata=about)

    async def _begin(self, state: TaskState) -> TaskState:
        task, seed = self._instances[str(state.sample_id)]
        await self._semaphore().acquire()
        self._pools = pools = self._pools or self._make_pools()
        key = Key(task.name, "", seed, state.epoch - 1)
        held = self._attempts[state.uuid] = _HeldAttempt(task, key, partial(pools.places, task), self._limits)
        state.tools.append(self._tool(held, await held.begin()))
        return state

    async def _work(self, state: TaskState, generate: Generate) -> TaskState:
        held = self._attempt(state)
        with held.cancelled_at_its_end():
            state = await generate(state, tool_calls="loop")
        if held.over.is_set():
            result = await held.result()
            if result["cause"] == Cause.AGENT_BUDGET:
                # Inspect notes the limit, and scores the sample.
                raise LimitExceededError(
                    "custom", value=result["steps"], limit=held.limits.steps, message=result["detail"]
                )
        return state

    async def _score(self, state: TaskState) -> Score:
        held = self._attempt(state)
        held.finish(state.output.completion)
        result = await held.result()
        if not result["valid"]:
            raise _invalid(result)
        return Score(
            value=result["score"],
            answer=result["answer"],
            explanation=result["reason"],
            metadata={
                "cause": result["cause"],
                "detail": result["detail"],
                "reason": result["reason"],
                "seconds": result["times"],
                "steps": result["steps"],
                "state": result["state"],
            },
        )

    async def _clean_up(self, state: TaskState) -> None:
        held = self._attempts.get(state.uuid)
        if held is None:
            return
        await held.end()
        del self._attempts[state.uuid]
        self._semaphore().release()
        if not self._attempts and self._pools is not None:
            pools, self._pools = self._pools, None
            await asyncio.to_thread(pools.close)

    def _attempt(self, state: TaskState) -> _HeldAttempt:
        held = self._attempts.get(state.uuid)
        if held is None or not held.has_begun:
            raise EpisodeError(
                f"sample {state.sample_id} has no desktop: it does not run, or a limit ended it before its task was set up",
                "evaluate it again, with more time",
            )
        return held

    def _semaphore(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._free is None or self._free[0] is not loop:
            self._free = loop, asyncio.Semaphore(self._desktops)
        return self._free[1]


class _HeldAttempt:
    """An attempt in a thread, whose agent's part lasts until `finish`, a limit of its task or `end`.

    All but `_run` and `_hold` run in the event loop of the evaluation.
    """

    def __init__(self, task: Task, key: Key, places: Callable[[], Places], limits: TaskLimits | None) -> None:
        self.limits: TaskLimits = limits or task.limits
        self.over = asyncio.Event()
        self._task = task
        self._key = key
        self._places = places
        self._loop = asyncio.get_running_loop()
        self._stop = Stop()
        self._begun = asyncio.Event()
        self._ended = asyncio.Event()
        self._episode: Episode | None = None
        self._finish: Callable[[str], None] = lambda _: None
        self._result: Mapping[str, Any] = {}
        self._scope: anyio.CancelScope | None = None
        self._thread = threading.Thread(target=self._run, name="deskhand-attempt", daemon=True)

    @property
    def has_begun(self) -> bool:
        """Whether the task was set up."""
        return self._episode is not None

    async def begin(self) -> Episode:
        """Set the task up; raises `EpisodeError` if the attempt ends before that."""
        self._thread.start()
        await self._begun.wait()
        if self._episode is None:
            raise _invalid(self._result)
        return self._episode

    @contextlib.contextmanager
    def cancelled_at_its_end(self) -> Iterator[None]:
        """End the block when the agent's part is over."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                if self.over.is_set():
                    scope.cancel()
                yield
            finally:
                self._scope = None

    def finish(self, answer: str) -> None:
        """End the agent's part with this answer. If it is over already, nothing happens."""
        self._finish(answer)

    async def result(self) -> Mapping[str, Any]:
        """The result, when the attempt has ended."""
        await self._ended.wait()
        return self._result

    async def end(self) -> None:
        """End the attempt wherever it is, and wait until its desktop was given back."""
        if self._thread.ident is None:
            return
        self._stop("the sample has ended")
        await self._ended.wait()

    # --- in other threads ---

    def _run(self) -> None:
        try:
            result = attempt(
                self._task,
                self._key,
                self._places(),
                self._hold,
                agent_name="inspect",
                limits=self.limits,
                stop=self._stop,
            )
        except Exception as error:  # noqa: BLE001 # the sample reports it
            result = {"valid": False, "cause": str(Cause.DRIVER_BUG), "detail": f"{type(error).__name__}: {error}"}
        self._tell(partial(self._note_end, result))

    async def _hold(self, episode: Episode) -> str:
        """The agent: the sample acts in its place."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        def settle(said: str) -> None:
            if not answer.done():
                answer.set_result(said)

        def finish(said: str) -> None:
            # The loop is closed if the part is over.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, said)

        self._tell(partial(self._note_begin, episode, finish))
        try:
            return await answer
        finally:
            self._tell(self._note_over)

    def _tell(self, change: Callable[[], None]) -> None:
        # The loop is closed if the evaluation was killed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(change)

    # --- what they tell ---

    def _note_begin(self, episode: Episode, finish: Callable[[str], None]) -> None:
        self._episode, self._finish = episode, finish
        self._begun.set()

    def _note_over(self) -> None:
        # First the scope, so that what waits in it for the end is cancelled and does not go on.
        if self._scope is not None:
            self._scope.cancel()
        self.over.set()

    def _note_end(self, result: Mapping[str, Any]) -> None:
        self._result = result
        self._note_over()
        self._begun.set()
        self._ended.set()


class _Session(AsyncModelSession):
    """The session of a sample, which tells the model when the agent's part is over."""

    def __init__(self, held: _HeldAttempt, episode: Episode, **options: Unpack[NamedOptions]) -> None:
        super().__init__(episode.desktop, **options)
        self._held = held

    async def run(self, function: Callable[[ModelSession], _T]) -> _T:
        try:
            return await super().run(function)
        except Ended as ended:
            # A bare Ended would end the whole evaluation.
            await self._held.over.wait()
            raise ActionError(str(ended)) from None
        except DeskhandError:
            if not self._held.over.is_set():
                raise
            raise ActionError("the task's time or steps are used up: end here") from None


def _invalid(result: Mapping[str, Any]) -> EpisodeError:
    return EpisodeError(f"the attempt is invalid ({result['cause']}): {result['detail']}")
