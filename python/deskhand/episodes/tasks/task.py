"""What an agent is to do, and how it is seen whether it did: `Task`.

This module owns a task's parts and what follows from a seed. What must never appear here: a desktop that is launched, an agent,
a file that is read (see `deskhand.episodes.tasks.catalogue`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

__all__ = ["Grade", "Level", "Resources", "Task", "TaskLimits", "instance_seed"]

Level: TypeAlias = Literal[1, 2, 3]
"""1 (one application, a few steps), 2, 3 (several applications, or many steps)."""


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """When an agent has had enough. They are part of the task: other limits are another task.

    Attributes:
        steps: Calls that act: each `perform` with actions, and each command. Looking alone is free.
        seconds: Wall time of the agent's part; setup and evaluation are not in it.
    """

    steps: int = 30
    seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Resources:
    """What a desktop of this task is given: what is set aside for it, and where it is stopped.

    Attributes:
        memory: Bytes of memory that it needs.
        most_memory: Bytes above which it is killed; three times what it needs is enough not to change the result.
        cpus: Processors that it needs.
        most_cpus: Processors that it may use.
    """

    memory: int = 512 << 20
    most_memory: int = 1536 << 20
    cpus: float = 0.5
    most_cpus: float = 2.0


@dataclass(frozen=True, slots=True)
class Grade:
    """What an evaluation found.

    Attributes:
        score: 0...1; 1 is success.
        reason: One line: what was found, and what was wanted.
        state: What was looked at, as JSON can say it; two evaluations of one state must give the same.
    """

    score: float
    reason: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether all of it was done."""
        return self.score >= 1.0


class Task(ABC):
    """One kind of work. Subclasses say what it is; a seed makes one instance of it.

    Attributes:
        name: Its name: lower-case letters, digits and hyphens.
        level: How much there is to do; see `Level`.
        tags: What it is about: `text`, `spreadsheet`, `files`, `terminal`, `browser`, `drawing`, `settings`, `multi`.
        limits: When the agent has had enough.
        resources: What its desktop is given.
        network: `"none"`, or the hosts that may be reached.
        image: The container image that has its applications.
        screen: Width and height of its desktop in pixels.
        programs: Those that must be installed where its desktop runs; a run names the missing ones before it begins.
        masks: Regions of its screen (x, y, width, height) that differ between two runs of one instance, such as a clock.
    """

    name: ClassVar[str]
    level: ClassVar[Level] = 1
    tags: ClassVar[tuple[str, ...]] = ()
    limits: ClassVar[TaskLimits] = TaskLimits()
    resources: ClassVar[Resources] = Resources()
    network: ClassVar[Literal["none"] | tuple[str, ...]] = "none"
    image: ClassVar[str] = "deskhand/desktop"
    screen: ClassVar[tuple[int, int]] = (1280, 800)
    programs: ClassVar[tuple[str, ...]] = ()
    masks: ClassVar[tuple[tuple[int, int, int, int], ...]] = ()

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """What differs between two instances, as JSON can say it; all chance comes from `random`."""
        del random
        return {}

    @abstractmethod
    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """What the agent is told."""

    @abstractmethod
    def setup(self, context: TaskContext) -> None:
        """Make the desktop what the agent is to find. It returns when the first frame is still."""

    @abstractmethod
    def evaluate(self, context: TaskContext) -> Grade | bool | float:
        """Look from outside at what the agent left. It changes nothing: a second look finds the same."""

    @abstractmethod
    def oracle(self, context: TaskContext) -> str | None:
        """Do it, by the desktop's own actions as an agent would; returns the answer, for tasks that ask for one."""


def instance_seed(run_seed: int, task: str, variant: str, seed: int) -> int:
    """The seed of one instance: 0...2**64 - 1, the same on every machine, unrelated for neighbours."""
    digest = hashlib.sha256(f"{run_seed}|{task}|{variant}|{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
