"""Tasks as a benchmark of AgentLab, for its agents that act by the functions of OSWorld (`computer_13`).

    >>> from agentlab.experiments.study import Study
    >>> from deskhand.episodes.environments.agentlab import benchmark
    >>> Study([agent_args], benchmark("tag:text", seeds=3)).run(n_jobs=4)

AgentLab imports this module with its experiments, so it needs AgentLab 0.4 and Python 3.12. Its interfaces are those of
`agentlab.benchmarks.abstract_env` and the observations of `agentlab.benchmarks.osworld` of that version.

This module owns the way from AgentLab's calls to `OSWorldEnv`. It evaluates nothing itself.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from agentlab.benchmarks.abstract_env import add_step_timing_to_env_info_decorator as _timed
from agentlab.benchmarks.osworld import OSWorldActionSet, OsworldGym
from agentlab.benchmarks.osworld_axtree_preprocessing import linearize_accessibility_tree
from PIL import Image

from deskhand._core.arguments import expect_integer
from deskhand.episodes.environments.osworld import OSWorldEnv
from deskhand.episodes.tasks.catalogue import find_tasks

if TYPE_CHECKING:
    from deskhand.episodes.tasks.task import Task

    # AgentLab is not there where types are checked.
    class AbstractEnv:
        """AgentLab's."""

    class AbstractEnvArgs:
        """AgentLab's."""

    class AbstractBenchmark:
        """AgentLab's."""

        def __init__(self, **fields: Any) -> None: ...
else:
    from agentlab.benchmarks.abstract_env import AbstractBenchmark, AbstractEnv, AbstractEnvArgs

_Step = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]


class DesktopEnv(AbstractEnv):
    """A task on a desktop of its own.

    An action is a call of a function of OSWorld's: `click(x=400, y=300)`, `typing(text='hello')`, `done()`. After `done()`,
    `fail()` and the last step the reward is the task's score, 0...1. An action that cannot be done is `last_action_error` of
    the next observation, and the episode goes on.
    """

    def __init__(self, task: Task, seed: int, max_steps: int, options: dict[str, Any]) -> None:
        """Make it; its desktop is launched at the first `reset`."""
        self._task = task
        self._seed = seed
        self._left = self._steps = max_steps
        self._env = OSWorldEnv(action_space="computer_13", **options)

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Set the task up. What AgentLab gives as `seed` is that of the arguments, which name the instance.

        Raises:
            TaskError, LaunchFailed: See `OSWorldEnv.reset`.
        """
        seen = self._env.reset(self._task, seed=self._seed if seed is None else seed)
        self._left = self._steps
        return self._observed(seen), {"task_info": {"instruction": self._env.instruction}}

    @_timed  # type: ignore[untyped-decorator] # AgentLab has no types
    def step(self, action: str) -> _Step:
        """Carry out an action, and wait until the screen has settled.

        Raises:
            TaskError: The task cannot be evaluated. AgentLab then counts the experiment as failed, and not as a score.
            DesktopLost: The desktop is gone; likewise.
        """
        function, _, fields = OsworldGym.parse_agentlab_action_str_to_func_args(action)
        if function in {"wait", "done", "fail"}:
            given: object = function.upper()
        else:
            given = {"action_type": str(function).upper(), "parameters": fields or {}}
        seen, _, done, info = self._env.step(given)
        self._left -= 1
        truncated = not done and self._left <= 0
        reward = self._env.evaluate() if done or truncated else 0.0
        return self._observed(seen), reward, done, truncated, {"task_info": dict(info)}

    def close(self) -> None:
        """End its desktop."""
        self._env.close()

    def _observed(self, seen: dict[str, Any]) -> dict[str, Any]:
        tree = seen["accessibility_tree"]
        return {
            "screenshot": np.asarray(Image.open(io.BytesIO(seen["screenshot"])).convert("RGB")),
            "axtree_txt": "" if tree is None else linearize_accessibility_tree(tree, platform="ubuntu"),
            "goal_object": [{"type": "text", "text": self._env.instruction}],
            "last_action_error": seen.get("error") or "",
            # Of a browser: an agent of AgentLab's expects them to be there.
            "focused_element_bid": "",
            "url": "",
            "open_pages_urls": [],
            "open_pages_titles": [],
            "active_page_index": 0,
        }


@dataclass
class DesktopEnvArgs(AbstractEnvArgs):
    """One instance of a task, in the form in which AgentLab keeps it.

    Attributes:
        task_name: The name that AgentLab shows.
        task: The task's own name.
        select: The names by which `deskhand.episodes.tasks.catalogue.find_tasks` finds it.
        task_seed: The instance.
        max_steps: The steps after which the state is scored.
        options: Those of `OSWorldEnv`.
    """

    task_name: str
    task: str
    select: tuple[str, ...]
    task_seed: int
    max_steps: int
    options: dict[str, Any] = field(default_factory=dict)

    def make_env(self, action_mapping: object = None, exp_dir: object = None, **others: object) -> DesktopEnv:
        """See `AbstractEnvArgs`; the agent's actions are OSWorld's already."""
        del action_mapping, exp_dir, others
        task = next(task for task in find_tasks(self.select) if task.name == self.task)
        return DesktopEnv(task, self.task_seed, self.max_steps, self.options)


class DesktopBenchmark(AbstractBenchmark):
    """See `benchmark`."""

    is_multi_tab: bool = False
    high_level_action_set_args: Any = None


def benchmark(*tasks: str, seeds: int = 1, name: str = "deskhand", **options: Any) -> DesktopBenchmark:
    """Make a benchmark of tasks.

    Args:
        tasks: Tasks, as for `deskhand.episodes.tasks.catalogue.find_tasks`: `tag:text`, `osworld:PATH`, a folder. By default
            all that ship.
        seeds: How many instances of each task.
        name: The name that AgentLab shows.
        options: Of `OSWorldEnv`: `backend="docker"`, `image=...`, `require_a11y_tree=True`.

    Raises:
        TaskError: There is no such task.
        ActionError: `seeds` is less than 1.
    """
    expect_integer("benchmark: seeds", seeds, 1)
    listed = [
        DesktopEnvArgs(f"{name}.{task.name}", task.name, tasks, seed, task.limits.steps, dict(options))
        for seed in range(seeds)
        for task in find_tasks(tasks)
    ]
    return DesktopBenchmark(name=name, env_args_list=listed, high_level_action_set_args=OSWorldActionSet("computer_13"))
