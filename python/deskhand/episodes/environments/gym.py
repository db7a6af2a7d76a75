"""A task on a desktop as a `gymnasium` environment: `deskhand/Desktop-v0`.

    >>> import gymnasium, deskhand.episodes.environments.gym
    >>> env = gymnasium.make("deskhand/Desktop-v0", task="text-replace-word")
    >>> picture, info = env.reset(seed=7)                      # info["instruction"] says what is to be done
    >>> env.step({**env.unwrapped.nothing(), "act": ACTS.index("left_click"), "xy": (400, 300)})
    >>> envs = gymnasium.make_vec("deskhand/Desktop-v0", num_envs=8, task="text-replace-word")      # over one pool

This module owns the two spaces, when an episode ends, and its reward. It has no task, and does not launch desktops itself.
"""

from __future__ import annotations

import contextlib
import random
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsFloat, Unpack, cast

import numpy as np

from deskhand._core.settle import Settle
from deskhand.actions import Action
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.task import Grade, Task, instance_seed
from deskhand.errors import ActionError, BackendError, DeskhandError, DesktopLost, MissingExtra, TaskError
from deskhand.pool.pool import Pool

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
    from gymnasium.vector.utils import iterate
except ImportError as _missing:
    raise MissingExtra("gymnasium", "gym") from _missing

from deskhand.desktop.access import commands_of
from deskhand.episodes.environments.gym_actions import MODIFIERS, action_of, action_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from deskhand._core.observation import Screenshot
    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.task import TaskLimits
    from deskhand.launchers.launch_options import EnvironmentOptions
    from deskhand.pool.status import ResetBy

_STILL = Settle(timeout=10.0)


class DesktopEnv(gymnasium.Env["NDArray[np.uint8]", "dict[str, object]"]):
    """One task on one desktop. `reset` sets an instance of it up; `done` or a limit ends it.

    An observation is the screen as an array of shape (height, width, 3), RGB, 0...255. The reward of a step is 0, except for
    the last one, whose reward is the task's score, 0...1. An episode is terminated when the agent says `done`, and truncated at
    the limits of the task. A step's `info` has `instruction`, `settled`, `reason`, `changed`; `error` if the action could not
    be done (the episode goes on); at the end `score`, `success`, `why`; and `invalid` with the cause if the desktop was lost or
    the task could not be evaluated. Such an episode is truncated, its reward is 0, and it should not be learnt from.

    Besides samples of the action space, `step` accepts any `deskhand.Action`, in pixels of the screen.
    """

    metadata: dict[str, object] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 # as in the library

    def __init__(
        self,
        task: Task | str,
        *,
        pool: Pool | None = None,
        backend: str | Callable[..., Desktop] = "local",
        size: tuple[int, int] | None = None,
        limits: TaskLimits | None = None,
        reset: ResetBy = "fresh",
        render_mode: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: Unpack[EnvironmentOptions],
    ) -> None:
        """Make the environment; its desktop is launched at the first `reset`.

        Args:
            task: The task, or the name by which `deskhand.episodes.tasks.catalogue.find_tasks` finds it.
            pool: Where desktops come from; the caller closes it. By default one of this environment's own.
            backend: The kind of desktops of that pool, see `deskhand.Pool`.
            size: Width and height of the pictures; by default of the screen.
            limits: Limits in place of the task's.
            reset: For that pool: how a desktop is made like new.
            render_mode: `rgb_array` or None.
            clock: Monotonic seconds.
            options: For every launch of that pool.

        Raises:
            TaskError: There is not exactly one such task, or it is invalid.
            ActionError: `render_mode` has another value.
        """
        if render_mode not in (None, "rgb_array"):
            raise ActionError(f"render_mode is 'rgb_array' or None, not {render_mode!r}")
        self.task: Task = task if isinstance(task, Task) else _one(task)
        self.render_mode = render_mode
        self.limits: TaskLimits = limits or self.task.limits
        width, height = self._size = size or self.task.screen
        self.observation_space: spaces.Box[np.uint8] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.action_space: spaces.Space[dict[str, object]] = cast(
            "spaces.Space[dict[str, object]]", action_space(self._size)
        )
        self._clock = clock
        self._given = pool
        self._make: Callable[[], Pool] = partial(
            Pool, backend, size=1, warm=0, reset=reset, screen=self.task.screen, **options
        )
        self._own: Pool | None = None
        self._held = contextlib.ExitStack()
        self._context: TaskContext | None = None
        self._instruction = ""
        self._picture: Screenshot | None = None
        self._steps = 0
        self._until = 0.0

    def nothing(self) -> dict[str, object]:
        """An action that only waits, as a base for other actions."""
        zero = np.zeros(2, np.int64)
        return {
            "act": 0,
            "xy": zero,
            "to": zero,
            "notches": zero,
            "modifiers": np.zeros(len(MODIFIERS), np.int8),
            "key": 0,
            "text": "",
        }

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, object]]:
        """Set an instance of the task up on a desktop that is like new.

        Args:
            seed: The instance; by default the next one, in a sequence that the last given seed determines.
            options: `variant`: the task's variant.

        Raises:
            LaunchFailed: No desktop could be launched.
            PoolExhausted: No desktop is free.
            BackendError: The task could not be set up, even after several tries.
        """
        super().reset(seed=seed)
        variant = str((options or {}).get("variant", ""))
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        instance = instance_seed(0, self.task.name, variant, number)
        parameters = self.task.parameters(random.Random(instance))  # noqa: S311 # to be repeated
        self._instruction = self.task.instruction(parameters)
        tries = RULES[Cause.SETUP_FAILED].retries
        for left in reversed(range(tries + 1)):
            self._give_back()
            try:
                return self._begin(parameters)
            except DeskhandError as error:
                self._give_back()
                if not left:
                    raise BackendError(
                        f"task {self.task.name} could not be set up, {tries + 1} times: {error}"
                    ) from error
        raise AssertionError  # pragma: no cover

    def _begin(self, parameters: Mapping[str, Any]) -> tuple[NDArray[np.uint8], dict[str, object]]:
        if self._given is None and self._own is None:
            self._own = self._make()
        pool = self._given or self._own
        assert pool is not None  # noqa: S101 # just made
        desktop = self._held.enter_context(pool.acquire(120.0))
        self._context = TaskContext(desktop, parameters, commands_of(desktop).home or "")
        self.task.setup(self._context)
        seen = desktop.perform(settle=_STILL, size=self._size, format="raw")
        self._picture = seen
        self._steps = 0
        self._until = self._clock() + self.limits.seconds
        return self._array(), {"instruction": self._instruction, "settled": seen.settled, "reason": seen.reason.value}

    def step(
        self, action: dict[str, object] | Action
    ) -> tuple[NDArray[np.uint8], SupportsFloat, bool, bool, dict[str, object]]:
        """Carry out an action, wait until the screen has settled, and look.

        Raises:
            ActionError: There was no `reset`, or the episode is over.
        """
        if self._context is None or self._picture is None:
            raise ActionError("step: reset the environment first")
        info: dict[str, object] = {"instruction": self._instruction}
        acted = done = False
        try:
            try:
                done = self._act(self._context.desktop, action, info)
            except ActionError as error:
                info["error"] = str(error)
            acted = True
            self._steps += 1
            truncated = not done and (self._steps >= self.limits.steps or self._clock() >= self._until)
            reward = self._graded(info) if done or truncated else 0.0
        except DesktopLost as lost:
            return self._lost(info, Cause.DESKTOP_LOST, str(lost))
        except Exception as error:
            if not acted:
                raise
            return self._lost(info, Cause.EVALUATOR_FAILED, f"{type(error).__name__}: {error}")
        if done or truncated:
            self._context = None
        return self._array(), reward, done, truncated, info

    def _act(self, desktop: Desktop, action: dict[str, object] | Action, info: dict[str, object]) -> bool:
        """Carry out an action. Returns whether the agent says that it is done."""
        assert self._picture is not None  # noqa: S101 # `step` has looked
        view = self._picture.viewport
        actions: Sequence[Action] | None = (
            (action,)
            if isinstance(action, Action)
            else action_of(action, lambda xy: view.to_screen((int(xy[0]), int(xy[1]))))
        )
        seen = desktop.perform(*(actions or ()), size=self._size, format="raw")
        self._picture = seen
        info.update(settled=seen.settled, reason=seen.reason.value, changed=seen.changed)
        return actions is None

    def _graded(self, info: dict[str, object]) -> float:
        assert self._context is not None  # noqa: S101 # `step` has looked
        found = self.task.evaluate(self._context)
        grade = found if isinstance(found, Grade) else Grade(float(found))
        info.update(score=grade.score, success=grade.success, why=grade.reason)
        return grade.score

    def _lost(
        self, info: dict[str, object], cause: Cause, detail: str
    ) -> tuple[NDArray[np.uint8], SupportsFloat, bool, bool, dict[str, object]]:
        self._context = None
        return self._array(), 0.0, False, True, {**info, "invalid": cause.value, "error": detail}

    def _array(self) -> NDArray[np.uint8]:
        assert self._picture is not None  # noqa: S101 # there was a reset
        # A copy, because learners write into it.
        return np.array(self._picture.array())

    def render(self) -> NDArray[np.uint8] | None:
        """The last picture, if `render_mode` is `rgb_array`."""
        return self._array() if self.render_mode == "rgb_array" and self._picture is not None else None

    def _give_back(self) -> None:
        self._context = None
        self._held.close()

    def close(self) -> None:
        """Give the desktop back, and close the environment's own pool. Further calls do nothing."""
        self._give_back()
        own, self._own = self._own, None
        if own is not None:
            own.close()


class _PendingCall(
    gymnasium.Wrapper["NDArray[np.uint8]", "dict[str, object]", "NDArray[np.uint8]", "dict[str, object]"]
):
    """An environment whose next call runs in a thread, before its result is requested."""

    _begun: Future[Any] | None = None

    def begin(self, threads: ThreadPoolExecutor, call: Callable[[], Any]) -> None:
        self._begun = threads.submit(call)

    def forget(self) -> None:
        """Wait for a call whose result was not requested: two calls never run in one environment."""
        begun, self._begun = self._begun, None
        if begun is not None and not begun.cancel():
            wait([begun])

    def _result(self, call: Callable[[], Any]) -> Any:
        begun, self._begun = self._begun, None
        return call() if begun is None else begun.result()

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> Any:
        return self._result(lambda: self.env.reset(seed=seed, options=options))

    def step(self, action: dict[str, object]) -> Any:
        return self._result(lambda: self.env.step(action))


class DesktopVectorEnv(SyncVectorEnv):
    """Several environments over one pool: their calls run in parallel, in threads of this process.

    `gymnasium.make_vec("deskhand/Desktop-v0", num_envs=8, task=...)` makes it.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: Task | str,
        pool: Pool | None = None,
        backend: str | Callable[..., Desktop] = "local",
        reset: ResetBy = "fresh",
        size: tuple[int, int] | None = None,
        limits: TaskLimits | None = None,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **options: Unpack[EnvironmentOptions],
    ) -> None:
        """Make them; see `DesktopEnv`. Their own pool has a desktop for each."""
        task = task if isinstance(task, Task) else _one(task)
        self._own = None
        if pool is None:
            pool = self._own = Pool(backend, size=num_envs, warm=0, reset=reset, screen=task.screen, **options)
        self._threads = ThreadPoolExecutor(num_envs, thread_name_prefix="deskhand-env")

        def make() -> _PendingCall:
            return _PendingCall(DesktopEnv(task, pool=pool, size=size, limits=limits, render_mode=render_mode))

        super().__init__([make] * num_envs, autoreset_mode=autoreset_mode)
        self._pending = cast("list[_PendingCall]", self.envs)
        self._over = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, object]]:
        """Reset all, or those of `options["reset_mask"]`, in parallel."""
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + n for n in range(self.num_envs)]
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_)))
        rest = {name: value for name, value in (options or {}).items() if name != "reset_mask"} or None
        with self._nothing_left():
            for env, one, wanted in zip(self._pending, seeds, mask, strict=True):
                if wanted:
                    env.begin(self._threads, partial(env.env.reset, seed=one, options=rest))
            self._over[mask] = False
            return super().reset(seed=seed, options=options)

    def step(
        self, actions: object
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, object]]:
        """Step all in parallel."""
        with self._nothing_left():
            for env, action, over in zip(self._pending, iterate(self.action_space, actions), self._over, strict=True):
                if not over:
                    env.begin(self._threads, partial(env.env.step, action))
                elif self.autoreset_mode == AutoresetMode.NEXT_STEP:
                    env.begin(self._threads, env.env.reset)
            seen, rewards, terminated, truncated, infos = super().step(actions)
        self._over = np.logical_or(terminated, truncated)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._over[:] = False
        return seen, rewards, terminated, truncated, infos

    @contextlib.contextmanager
    def _nothing_left(self) -> Iterator[None]:
        """If one environment raises, wait for the others before the error is passed on."""
        try:
            yield
        finally:
            for env in self._pending:
                env.forget()

    def close_extras(self, **kwargs: object) -> None:
        """Close them, and their own pool."""
        super().close_extras(**kwargs)
        self._threads.shutdown()
        if self._own is not None:
            self._own.close()


def _one(name: str) -> Task:
    tasks = find_tasks([name])
    if len(tasks) != 1:
        names = ", ".join(task.name for task in tasks[:5])
        raise TaskError(name, f"an environment needs exactly one task, not {len(tasks)}: {names}", "name one of them")
    return tasks[0]


gymnasium.register(
    "deskhand/Desktop-v0",
    entry_point="deskhand.episodes.environments.gym:DesktopEnv",
    vector_entry_point="deskhand.episodes.environments.gym:DesktopVectorEnv",
)
