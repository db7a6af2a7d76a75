"""An environment with OSWorld's interface, so that an agent and a runner written for it work here unchanged.

    >>> env = OSWorldEnv(action_space="pyautogui")
    >>> seen = env.reset(task_config={"id": "text-replace-word"})
    >>> while not done:
    ...     response, actions = agent.predict(env.instruction, seen)
    ...     for action in actions:
    ...         seen, reward, done, info = env.step(action)
    >>> env.evaluate()

It does not copy OSWorld's fixed sleeps: `reset` and `step` return when the screen has settled, so a runner can set its own
to 0. The interface is that of `desktop_env` 1.0.2 and of the `lib_run_single.py` that drives it.

Actions are decoded in `deskhand.providers.osworld`. There is no task here.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.settle import Settle
from deskhand.desktop.access import commands_of
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.osworld.task import FAIL, OSWorldTask
from deskhand.episodes.tasks.task import Grade, Task, instance_seed
from deskhand.errors import ActionError, TaskError, shown
from deskhand.pool.pool import Pool
from deskhand.providers import osworld
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Finish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from deskhand.desktop.desktop import Desktop
    from deskhand.launchers.launch_options import LaunchOptions
    from deskhand.pool.status import ResetBy
    from deskhand.providers.values import Payload, Result

_STILL = Settle(timeout=10.0)


class OSWorldEnv:
    """A desktop with a task, with the interface of OSWorld's `DesktopEnv`.

    Attributes:
        action_space: `computer_13` or `pyautogui`.
        instruction: The agent's task in words; None before the first `reset`.
        action_history: The actions since then.
        vm_platform: Always `Linux`.
    """

    vm_platform = "Linux"

    def __init__(
        self,
        *,
        action_space: str = "computer_13",
        screen_size: tuple[int, int] | None = None,
        pool: Pool | None = None,
        backend: str | Callable[..., Desktop] = "local",
        reset: ResetBy = "fresh",
        require_a11y_tree: bool = False,
        require_terminal: bool = False,
        **options: Unpack[LaunchOptions],
    ) -> None:
        """Make the environment; its desktop is launched at the first `reset`.

        Args:
            action_space: The form of actions for `step`: dictionaries, or source of pyautogui, which is parsed and never run.
            screen_size: The size of the screen; by default that of the task.
            pool: Where desktops come from; the caller closes it. By default one of this environment's own for each size.
            backend: The kind of desktops of that pool, see `deskhand.Pool`.
            reset: For that pool: how a desktop is made like new.
            require_a11y_tree: Whether observations have the `accessibility_tree`, in OSWorld's XML.
            require_terminal: Must be False: there is no terminal.
            options: For every launch of that pool.

        Raises:
            ActionError: There is no such action space, or an unsupported observation is required.
        """
        if action_space not in osworld.SPACES:
            raise ActionError(f"an action space is one of {', '.join(osworld.SPACES)}, not {shown(action_space)}")
        if require_terminal:
            raise ActionError("an observation has no terminal: leave require_terminal out")
        self.action_space = action_space
        self.instruction: str | None = None
        self.action_history: list[object] = []
        self._with_tree = require_a11y_tree
        self._size = screen_size
        self._given = pool
        self._options: dict[str, Any] = {"launch": backend, "size": 1, "warm": 0, "reset": reset, **options}
        self._own: tuple[tuple[int, int], Pool] | None = None
        self._held = contextlib.ExitStack()
        self._task: Task | None = None
        self._seed = 0
        self._context: TaskContext | None = None
        self._model_session: ModelSession | None = None
        self._gave_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reset(
        self,
        task_config: Task | str | Mapping[str, object] | None = None,
        seed: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Payload:
        """Set a task up on a desktop that is like new.

        Args:
            task_config: The task, its name, or a mapping with its name as `id`, and optionally its `seed`. None: the last one.
            seed: The instance; 0 by default, and that of the last task if `task_config` is None.
            options: Ignored.

        Returns:
            The first observation: `screenshot` (a PNG), `instruction`, `accessibility_tree` or None, and None for `terminal`.

        Raises:
            TaskError: There is no such task, or it cannot run here.
            UnsupportedAction: The accessibility tree is required, and the desktop has none.
            LaunchFailed: No desktop could be launched.
        """
        del options
        if isinstance(task_config, Task):
            task = task_config
        elif task_config is None:
            if self._task is None:
                raise ActionError("reset: name the task in task_config")
            task = self._task
            seed = self._seed if seed is None else seed
        else:
            config: dict[str, Any] = {"id": task_config} if isinstance(task_config, str) else dict(task_config)
            task = _named(config.get("id"))
            seed = config.get("seed") if seed is None else seed
        self._leave()
        task.ready()
        self._task, self._seed = task, seed or 0
        instance = instance_seed(0, task.name, "", self._seed)
        parameters = task.parameters(random.Random(instance))  # noqa: S311 # to be repeated
        desktop = self._held.enter_context(self._pool(task).acquire(120.0))
        self._context = TaskContext(desktop, parameters, commands_of(desktop).home or "")
        task.setup(self._context)
        desktop.perform(settle=_STILL, format="raw")
        self._model_session = ModelSession(desktop, size=self._size, provider="osworld")
        self.instruction = task.instruction(parameters)
        self.action_history.clear()
        self._gave_up = False
        return self._get_obs()

    def step(self, action: object, pause: float = 2) -> tuple[Payload, float, bool, dict[str, bool]]:
        """Carry out an action, and return when the screen has settled.

        Args:
            action: An action of the action space; also `WAIT`, `DONE` and `FAIL`.
            pause: Ignored; there is no sleep.

        Returns:
            The observation (with `error` if the action could not be done), 0.0 as the reward, whether the agent says that it
            has ended, and in that case `{"done": True}` or `{"fail": True}`.

        Raises:
            ActionError: There was no `reset`.
            DesktopLost: The desktop is gone.
        """
        del pause
        model_session, _ = self._begun("step")
        self.action_history.append(action)
        try:
            call = osworld.decode(action, model_session.viewport, pointer=model_session.desktop.pointer)
        except ActionError as error:
            return self._encoded(model_session.unreadable(error)), 0.0, False, {}
        ends = [step.status for step in call.steps if isinstance(step, Finish)]
        self._gave_up = "failed" in ends
        info = {"fail" if self._gave_up else "done": True} if ends else {}
        return self._encoded(model_session.carry_out(call)), 0.0, bool(ends), info

    def evaluate(self) -> float:
        """The task's score, 0...1. After `FAIL` it is 1 for a task of OSWorld that cannot be done, and 0 for every other.

        Raises:
            ActionError: There was no `reset`.
        """
        _, context = self._begun("evaluate")
        assert self._task is not None  # noqa: S101 # `_begun` has checked
        if self._gave_up:
            if not isinstance(self._task, OSWorldTask):
                return 0.0
            context = replace(context, answer=FAIL)
        found = self._task.evaluate(context)
        return found.score if isinstance(found, Grade) else float(found)

    def render(self, mode: str = "rgb_array") -> bytes:
        """The screen as a PNG."""
        if mode != "rgb_array":
            raise ActionError(f"render: the mode is 'rgb_array', not {shown(mode)}")
        screenshot: bytes = self._get_obs()["screenshot"]
        return screenshot

    def _get_obs(self) -> dict[str, Any]:
        # Runners call this private method.
        model_session, _ = self._begun("_get_obs")
        return {
            "screenshot": model_session.look().data,
            "accessibility_tree": self._tree(),
            "terminal": None,
            "instruction": self.instruction,
        }

    def _encoded(self, result: Result) -> dict[str, Any]:
        return {**osworld.encode(result, instruction=self.instruction), "accessibility_tree": self._tree()}

    def _tree(self) -> str | None:
        model_session, _ = self._begun("the accessibility tree")
        return osworld.accessibility_xml(model_session.desktop.elements()) if self._with_tree else None

    def _begun(self, what: str) -> tuple[ModelSession, TaskContext]:
        if self._model_session is None or self._context is None:
            raise ActionError(f"{what}: reset the environment first")
        return self._model_session, self._context

    def _pool(self, task: Task) -> Pool:
        if self._given is not None:
            return self._given
        if self._own is None or self._own[0] != task.screen:
            self._end_pool()
            self._own = (task.screen, Pool(screen=task.screen, **self._options))
        return self._own[1]

    def _leave(self) -> None:
        self._model_session = self._context = None
        self._held.close()

    def _end_pool(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own[1].close()

    def close(self) -> None:
        """Give the desktop back, and close the environment's own pool. Further calls do nothing."""
        self._leave()
        self._end_pool()


def _named(name: object) -> Task:
    if not isinstance(name, str):
        raise TaskError(
            shown(name),
            "the task's config has no name",
            'pass {"id": "text-replace-word"}; `deskhand tasks list` has all',
        )
    tasks = find_tasks([name])
    if len(tasks) != 1:
        raise TaskError(name, f"an environment needs exactly one task, not {len(tasks)}", "name one of them")
    return tasks[0]
