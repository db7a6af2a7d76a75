"""A task of OSWorld as a `Task`: the agent's instruction, the set-up of its desktop, and the score that upstream gives it.

This module owns how the parts beside it are joined. What must never appear here: a step, and an evaluator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.episodes.tasks.foreign import ForeignCatalogue, ForeignTask, Planned, Reason
from deskhand.episodes.tasks.osworld.assets import find_assets
from deskhand.episodes.tasks.osworld.collection import PREFIX, find_entries
from deskhand.episodes.tasks.osworld.evaluating import evaluate
from deskhand.episodes.tasks.osworld.evaluators import find_evaluators, load_table
from deskhand.episodes.tasks.osworld.here import facts_before, facts_here, lacking_programs
from deskhand.episodes.tasks.osworld.home import prepare
from deskhand.episodes.tasks.osworld.needs import needs_of
from deskhand.episodes.tasks.osworld.plan import KINDS, UPSTREAM, notes, only_in_containers, reasons
from deskhand.episodes.tasks.osworld.steps import Steps
from deskhand.episodes.tasks.task import Grade, Resources, TaskLimits
from deskhand.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.osworld.collection import Entry

FAIL = "FAIL"
"""The last line of an agent's answer that says that a task cannot be done, as in upstream's action spaces."""


class OSWorldTask(ForeignTask):
    """A task of OSWorld; `load_tasks` makes a class for each file.

    Attributes:
        entry: Its file.
    """

    entry: ClassVar[Entry]
    image: ClassVar[str] = "deskhand/osworld"
    screen: ClassVar[tuple[int, int]] = (1920, 1080)
    # Upstream's agents get up to 100 steps, and no other limit; its applications are larger than the suite's.
    limits: ClassVar[TaskLimits] = TaskLimits(steps=100, seconds=3600.0)
    resources: ClassVar[Resources] = Resources(memory=1 << 30, most_memory=4 << 30)
    evaluates_once: ClassVar[bool] = True
    # All of them came with its paper, arXiv 2404.07972.
    public_since: ClassVar[str] = "2024-04-11"

    @classmethod
    def source(cls) -> Iterable[tuple[str, bytes]]:
        """Its file."""
        return [(cls.entry.path.name, cls.entry.data)]

    def ready(self) -> None:
        """Check what can be known before a desktop is taken.

        Raises:
            TaskError: It cannot run here; the error has every reason.
        """
        if self.entry.task is None:
            raise TaskError(self.name, self.entry.broken)
        found = reasons(self.entry.task, facts_before(), load_table())
        if found:
            raise TaskError(self.name, "; ".join(reason.text for reason in found))

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """The instruction of its file."""
        del parameters
        # A broken file has one too, so that the run that has it can say what is wrong with it.
        return self.entry.task.instruction if self.entry.task is not None else f"(broken: {self.entry.broken})"

    def setup(self, context: TaskContext) -> None:
        """Carry out the steps of its file."""
        task = self._task()
        needs = needs_of(task, load_table())
        if missing := lacking_programs(context, needs.programs):
            hint = "choose another --image" if context.desktop.has_machine else "install it, or use --backend docker"
            raise TaskError(self.name, f"a program is missing: {', '.join(missing)}", hint, cannot_run=True)
        if not context.desktop.has_machine and (why := only_in_containers(needs)):
            raise TaskError(self.name, "; ".join(why), "--backend docker", cannot_run=True)
        prepare(context)
        Steps(context, find_assets()).carry_out(task.setup)

    def evaluate(self, context: TaskContext) -> Grade:
        """The score of upstream's evaluators."""
        task = self._task()
        gave_up = (context.answer or "").strip().rpartition("\n")[2].strip() == FAIL
        if task.infeasible:
            # As in upstream's `evaluate`, for which nothing of its package is needed.
            Steps(context, find_assets(), late=True).carry_out(task.post)
            return Grade(
                float(gave_up), "it cannot be done, and the agent " + ("said so" if gave_up else "did not say so")
            )
        evaluators = find_evaluators()
        if evaluators is None:
            raise TaskError(
                self.name, "there is no environment with upstream's evaluators", "deskhand assets evaluators"
            )
        score = evaluate(task, context, find_assets(), evaluators, gave_up=gave_up)
        said = "; the agent gave up" if gave_up else ""
        return Grade(
            score, f"upstream's {', '.join(task.functions)} gives {score:g}{said}", {"functions": list(task.functions)}
        )

    def oracle(self, context: TaskContext) -> str | None:
        """OSWorld has no solutions.

        Raises:
            TaskError: Always.
        """
        del context
        raise TaskError(self.name, "OSWorld's tasks come without solutions", "choose another --agent")

    def _task(self) -> Any:
        if self.entry.task is None:
            raise TaskError(self.name, self.entry.broken)
        return self.entry.task


def load_tasks(name: str) -> list[OSWorldTask]:
    """The tasks that `osworld:PATH` means; see `collection.find_entries`.

    Raises:
        TaskError: There are none.
    """
    return [_made(entry) for entry in find_entries(name)]


def plan_tasks(name: str, backend: str) -> Iterator[Planned]:
    """Whether each task that a name means can run here; see `collection.find_entries`."""
    facts, known = facts_here(backend), load_table()
    for entry in find_entries(name):
        broken = [Reason("broken", entry.broken)]
        if entry.task is None:
            yield Planned(entry.domain, entry.id, broken)
        else:
            yield Planned(entry.domain, entry.id, reasons(entry.task, facts, known), notes(entry.task, known))


CATALOGUE = ForeignCatalogue(
    prefix=PREFIX,
    title="OSWorld",
    kinds=KINDS,
    load=load_tasks,
    plan=plan_tasks,
    image=OSWorldTask.image,
    elsewhere=UPSTREAM,
    hints={
        "file": "lack a file: deskhand assets fetch osworld:PATH, where there is a network",
        "evaluator": "lack upstream's evaluators: deskhand assets evaluators osworld:PATH, where there is a network",
    },
)


def _made(entry: Entry) -> OSWorldTask:
    words = f"osworld-{entry.domain}-{entry.id}".lower()
    name = "-".join(part for part in "".join(char if char.isalnum() else "-" for char in words).split("-") if part)
    attributes = {
        "__doc__": f"The task of {entry.path}.",
        "__module__": __name__,
        "entry": entry,
        "origin": str(entry.path),
        "name": name,
        "tags": ("osworld", entry.domain),
    }
    made: OSWorldTask = type(f"OSWorldTask_{entry.id}", (OSWorldTask,), attributes)()
    return made
