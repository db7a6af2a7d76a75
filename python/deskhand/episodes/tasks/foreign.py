"""Tasks of other benchmarks: what a catalogue of them has, and what a plan says of each of its tasks. Pure.

This module owns what such catalogues share. What must never appear here: a benchmark.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from deskhand.episodes.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class ForeignTask(Task):
    """A task of another benchmark; loading one makes a class for it.

    Attributes:
        origin: Where it comes from, for messages.
    """

    origin: ClassVar[str]

    @classmethod
    @abstractmethod
    def source(cls) -> Iterable[tuple[str, bytes]]:
        """The files that it consists of, or digests of them, by name: another source is another task."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task cannot run.

    Attributes:
        kind: What kind of reason it is, one of its catalogue's `kinds`.
        text: The reason in words.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan says of one task.

    Attributes:
        domain: Its group.
        id: Its name there.
        reasons: Why it cannot run; empty if it can.
        notes: What differs from its own benchmark although it runs.
    """

    domain: str
    id: str
    reasons: Sequence[Reason]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ForeignCatalogue:
    """The tasks of one benchmark.

    Attributes:
        prefix: What a name for its tasks begins with, such as `osworld:`.
        title: Its name.
        kinds: The kinds of reasons, in their order.
        load: Loads the tasks that a name means; raises `TaskError` if there are none.
        plan: Says of each task that a name means whether it can run on desktops of a backend.
        hints: By kind: what helps.
        backend: Where its tasks run if the user does not say; empty for the usual place.
        image: The image that a plan takes a container to be of; empty where each task has its own.
        elsewhere: By kind, and by `runs`: what the benchmark's own machine does there.
    """

    prefix: str
    title: str
    kinds: tuple[str, ...]
    load: Callable[[str], Sequence[ForeignTask]]
    plan: Callable[[str, str], Iterable[Planned]]
    hints: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""
    image: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
