"""A task for an agent, and the check whether it was done: `Task`.

This module owns a task's parts and the use of the seed. It launches no desktop and reads no files (see
`deskhand.episodes.tasks.catalogue`), and has no agent.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

Level: TypeAlias = Literal[1, 2, 3]
"""1 (one application, a few steps), 2, 3 (several applications, or many steps)."""


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """The limits of an agent's part. They belong to the task: with other limits it is another task.

    Attributes:
        steps: Calls that act: each `perform` with actions, and each command. Looking costs nothing.
        seconds: Wall time of the agent's part, without setup and evaluation.
    """

    steps: int = 30
    seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of this task's desktop: the reserved amount, and the limit.

    Attributes:
        memory: Bytes of memory that it needs.
        most_memory: Bytes above which it is killed; three times the need is enough not to change the result.
        cpus: Processors that it needs.
        most_cpus: Processors that it may use.
    """

    memory: int = 512 << 20
    most_memory: int = 1536 << 20
    cpus: float = 0.5
    most_cpus: float = 2.0


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of an evaluation.

    Attributes:
        score: 0...1; 1 is success.
        reason: One line: what was found, and what was wanted.
        state: The state that was checked, as JSON data; two evaluations of one state must give the same.
    """

    score: float
    reason: str = ""
    state: Mapping[str, object] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether the task was done completely."""
        return self.score >= 1.0


class Task(ABC):
    """One kind of work. A subclass describes it; a seed makes one instance of it.

    Attributes:
        name: Its name: lower-case letters, digits and hyphens.
        level: How much there is to do; see `Level`.
        tags: Its subjects: `text`, `spreadsheet`, `files`, `terminal`, `browser`, `drawing`, `settings`, `multi`.
        limits: The limits of the agent's part.
        resources: The resources of its desktop.
        network: `"none"`, or the hosts that may be reached.
        image: The container image with its applications.
        screen: Width and height of its desktop in pixels.
        programs: The programs that its desktop's machine needs; a run names missing ones before it begins.
        masks: Regions of its screen (x, y, width, height) that differ between two runs of one instance, such as a clock.
        evaluates_once: Whether evaluating acts on the desktop, so that it cannot be done twice to see whether it is steady.
        environment: Added to the environment of everything on its desktop.
        builds_image: Whether `ready` builds `image`, so that it need not be there before.
        ready_limit: Seconds that `ready` may take.
        evaluation_limit: Seconds that an evaluation may take.
        public_since: The day since which it is public, such as `2024-04-11`: a model may have been trained on it since. Empty
            if that is unknown.
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
    evaluates_once: ClassVar[bool] = False
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})
    builds_image: ClassVar[bool] = False
    ready_limit: ClassVar[float] = 180.0
    evaluation_limit: ClassVar[float] = 120.0
    public_since: ClassVar[str] = ""

    def parameters(self, random: random.Random) -> Mapping[str, object]:
        """The values that differ between two instances, as JSON data; all chance comes from `random`."""
        del random
        return {}

    def ready(self) -> None:  # noqa: B027 # most tasks need nothing but their desktop
        """Check, before a desktop is taken, what the task needs besides it; raises `TaskError` if that is missing."""

    @abstractmethod
    def instruction(self, parameters: Mapping[str, object]) -> str:
        """The agent's instruction."""

    @abstractmethod
    def setup(self, context: TaskContext) -> None:
        """Prepare the desktop for the agent. Returns when the first frame is still."""

    @abstractmethod
    def evaluate(self, context: TaskContext) -> Grade | bool | float:
        """Check the result from outside. It changes nothing: a second check finds the same."""

    @abstractmethod
    def oracle(self, context: TaskContext) -> str | None:
        """Do the task with the desktop's own actions, like an agent; returns the answer if the task needs one."""


def instance_seed(run_seed: int, task: str, variant: str, seed: int) -> int:
    """The seed of one instance: 0...2**64 - 1, the same on every machine, unrelated for neighbouring seeds."""
    digest = hashlib.sha256(f"{run_seed}|{task}|{variant}|{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
