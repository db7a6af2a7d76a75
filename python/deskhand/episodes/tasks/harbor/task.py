"""A task of Harbor as a `Task`: the image that it is done in, its solution, and the grade that its own tests give.

This module owns how the parts beside it are joined. What must never appear here: a field of `task.toml`, a Dockerfile.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.desktop.access import bare
from deskhand.episodes.tasks.foreign import ForeignCatalogue, ForeignTask, Planned, Reason
from deskhand.episodes.tasks.harbor.consent import Consent, allowed
from deskhand.episodes.tasks.harbor.folder import (
    ENVIRONMENT,
    PREFIX,
    SOLUTION,
    SOLUTION_SCRIPT,
    TEST_SCRIPT,
    TESTS,
    Entry,
    find_entries,
    slug,
)
from deskhand.episodes.tasks.harbor.image import build_image, image_name
from deskhand.episodes.tasks.harbor.plan import KINDS, lacking_variables, network_of, notes, reasons, resolve_env
from deskhand.episodes.tasks.harbor.rewards import LARGEST, score_of
from deskhand.episodes.tasks.task import Grade, Resources, TaskLimits
from deskhand.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.harbor.taskfile import TaskFile
    from deskhand.machine.interface import CommandResult

_VERIFIER = "/logs/verifier"
_FILES = ("reward.json", "reward.txt")
# Harbor's agents have the time that a task gives them, and no limit of steps.
_STEPS, _SECONDS = 1000, 3600.0
_MEMORY, _MOST_MEMORY = 512 << 20, 2 << 30
# Besides the tests themselves: copying them in, and reading what they have written.
_AROUND_TESTS = 120.0
# A build waits for those of other tasks, and installs a desktop.
_AROUND_BUILD = 2 * 3600.0
_OUTPUT, _SHOWN = 1 << 16, 300
# An agent may have left anything there.
_CLEAR = 'chmod -fR u+rwX -- "$1"; find "$1" -mindepth 1 -delete && mkdir -p -- "$1"'


class HarborTask(ForeignTask):
    """A task of Harbor; `load_tasks` makes a class for each folder.

    Attributes:
        entry: Its folder.
        consent: What the user allows it.
    """

    entry: ClassVar[Entry]
    consent: ClassVar[Consent]
    builds_image: ClassVar[bool] = True
    # Tests may change what they look at.
    evaluates_once: ClassVar[bool] = True

    @classmethod
    def source(cls) -> Iterable[tuple[str, bytes]]:
        """Digests of the parts of its folder, and what the user allows."""
        return [
            *cls.entry.digests,
            ("network", json.dumps(cls.network).encode()),
            ("variables", json.dumps(sorted(cls.consent.variables)).encode()),
        ]

    def ready(self) -> None:
        """Build its image, unless it is there.

        Raises:
            TaskError: The task cannot run here, or its image cannot be built.
            LaunchFailed: The engine does not answer.
        """
        file = self._file()
        if found := reasons(file, self.entry.script, self.consent):
            raise TaskError(self.name, "; ".join(reason.text for reason in found))
        source = file.image or (self.entry.folder / ENVIRONMENT, dict(self.entry.digests)[ENVIRONMENT])
        build_image(self.name, self.image, source, directory=file.directory, seconds=file.build_seconds)

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """Its `instruction.md`."""
        del parameters
        # A broken folder has one too, so that the run that has it can say what is wrong with it.
        return self.entry.instruction or f"(broken: {self.entry.broken})"

    def setup(self, context: TaskContext) -> None:
        """Check that its desktop is a container of its image."""
        if not context.desktop.has_machine:
            raise TaskError(self.name, "it runs in an image of its own", "--backend docker")
        _checked(self.name, "preparing its folders", context.run(f"mkdir -p {_VERIFIER} /logs/agent /logs/artifacts"))

    def evaluate(self, context: TaskContext) -> Grade:
        """The reward that its tests give."""
        file = self._file()
        for folder in (_VERIFIER, "/tests"):
            _checked(self.name, f"emptying {folder}", context.run(f"set -- {folder}; {_CLEAR}"))
        context.desktop.machine.copy_in(self.entry.folder / TESTS, "/tests")
        env = {**file.env, **file.test_env}
        ended = self._script(context, f"/tests/{TEST_SCRIPT}", env, file.test_seconds)
        if ended.timed_out:
            raise TaskError(self.name, f"its tests take more than {file.test_seconds:g} s")
        score, rewards = self._rewards(context, ended)
        tail = "" if score >= 1 else f": {_tail(ended)}"
        return Grade(score, f"its tests give {score:g}{tail}", {"rewards": dict(rewards)})

    def oracle(self, context: TaskContext) -> str | None:
        """Run its own solution.

        Raises:
            TaskError: It has none, or the solution reads a variable of the user's that is not allowed.
        """
        if not self.entry.solved:
            raise TaskError(self.name, f"it has no {SOLUTION}/{SOLUTION_SCRIPT}", "choose another --agent")
        file = self._file()
        env = {**file.env, **file.solution_env}
        if lacking := lacking_variables(env, self.consent):
            raise TaskError(self.name, f"its solution: {lacking}")
        context.desktop.machine.copy_in(self.entry.folder / SOLUTION, "/solution")
        ended = self._script(context, f"/solution/{SOLUTION_SCRIPT}", env, self.limits.seconds)
        return f"{SOLUTION_SCRIPT}: {ended.outcome}" + ("" if ended.exit_code == 0 else f": {_tail(ended)}")

    # --- internals ---

    def _file(self) -> TaskFile:
        if self.entry.file is None:
            raise TaskError(self.name, self.entry.broken)
        return self.entry.file

    def _script(self, context: TaskContext, path: str, env: Mapping[str, str], seconds: float) -> CommandResult:
        """Run a script of the task where its commands run, with variables that no other program gets."""
        given = resolve_env(env, self.consent)
        command = f"chmod +x {shlex.quote(path)} && exec {shlex.quote(path)} </dev/null 2>&1"
        # Records have the environment of commands, so this goes past them, as an oracle's looks do.
        return bare(context.desktop).machine.run(command, env=given, timeout=seconds, limit=_OUTPUT)

    def _rewards(self, context: TaskContext, ended: CommandResult) -> tuple[float, Mapping[str, float]]:
        for name in _FILES:
            path = f"{_VERIFIER}/{name}"
            if context.run(f"test -e {path}").exit_code == 0:
                return score_of(self.name, name, context.desktop.machine.read_file(path, limit=LARGEST))
        raise TaskError(self.name, f"its tests write neither {' nor '.join(_FILES)}: {_tail(ended)}")


def load_tasks(name: str) -> list[HarborTask]:
    """The tasks that `harbor:PATH` means; see `folder.find_entries`.

    Raises:
        TaskError: There are none.
    """
    consent = allowed()
    return [_made(entry, consent) for entry in find_entries(name)]


def plan_tasks(name: str, backend: str) -> Iterator[Planned]:
    """Whether each task that a name means can run here; see `folder.find_entries`."""
    consent = allowed()
    for entry in find_entries(name):
        if entry.file is None:
            yield Planned("", entry.folder.name, [Reason("broken", entry.broken)])
            continue
        found = reasons(entry.file, entry.script, consent, containers=backend != "local")
        yield Planned(entry.file.category, entry.folder.name, found, notes(entry.file, consent))


CATALOGUE = ForeignCatalogue(
    prefix=PREFIX,
    title="Harbor",
    kinds=KINDS,
    load=load_tasks,
    plan=plan_tasks,
    hints={
        "network": "lack the network: --network HOST, for each host that tasks may reach",
        "variable": "read a variable of yours: --env NAME, for each that they may read",
    },
    backend="docker",
)


def _made(entry: Entry, consent: Consent) -> HarborTask:
    attributes: dict[str, Any] = {
        "__doc__": f"The task of {entry.folder}.",
        "__module__": __name__,
        "entry": entry,
        "consent": consent,
        "name": slug(["harbor", entry.folder.absolute().name]),
        "origin": str(entry.folder),
        "tags": ("harbor",),
    }
    if entry.file is not None:
        attributes |= _described(entry, entry.file, consent)
    made: HarborTask = type("HarborTask_", (HarborTask,), attributes)()
    return made


def _described(entry: Entry, file: TaskFile, consent: Consent) -> dict[str, Any]:
    most = max(_MEMORY, _MOST_MEMORY if file.memory is None else file.memory << 20)
    cpus = file.cpus or 2.0
    return {
        "tags": ("harbor", *([file.category] if file.category else [])),
        "limits": TaskLimits(steps=_STEPS, seconds=file.agent_seconds or _SECONDS),
        "resources": Resources(memory=_MEMORY, most_memory=most, cpus=min(0.5, cpus), most_cpus=cpus),
        "network": network_of(file, consent)[0],
        "environment": resolve_env(file.env, consent),
        "image": image_name(file.image.encode() or dict(entry.digests)[ENVIRONMENT], file.directory),
        "ready_limit": file.build_seconds + _AROUND_BUILD,
        "evaluation_limit": file.test_seconds + _AROUND_TESTS,
    }


def _checked(name: str, doing: str, ended: CommandResult) -> None:
    if ended.exit_code != 0:
        raise TaskError(name, f"{doing} fails: {ended.stderr.strip()[:_SHOWN] or ended.outcome}")


def _tail(ended: CommandResult) -> str:
    lines = [line.strip() for line in ended.stdout.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-_SHOWN:] or ended.outcome
