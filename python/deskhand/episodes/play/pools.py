"""Desktops for tasks: a pool for each kind of desktop that tasks need.

This module owns the mapping of a task's requirements to desktops. It has no episode and runs no task's code.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import threading
from typing import TYPE_CHECKING, Any, Self

from deskhand._core.redaction import one_line
from deskhand.errors import EpisodeError, LaunchFailed
from deskhand.launchers.docker.spec import Limits
from deskhand.pool.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.task import Task

BACKENDS = ("local", "docker")
# The same on every machine, whatever the user has set.
_ENVIRONMENT = {"TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
_CHECK_LIMIT = 120.0
_LONGEST = 300


class DesktopPools:
    """Pools by the requirements of tasks: the size of the screen, and for containers the image, network and resources.

    Leaving a `with` block closes all desktops.
    """

    def __init__(
        self, tasks: Sequence[Task], *, backend: str, desktops: int, image: str | None = None, spare: bool = True
    ) -> None:
        """Prepare the pools; no desktop is started yet.

        Args:
            tasks: All tasks of the run.
            backend: `local` or `docker`.
            desktops: How many desktops at once.
            image: The container image, instead of the tasks' own.
            spare: Whether one more is launched in advance where all tasks need the same kind.

        Raises:
            EpisodeError: There is no such backend, or it has no images.
        """
        if backend not in BACKENDS:
            raise EpisodeError(f"there is no backend {backend!r}; there are: {', '.join(BACKENDS)}")
        if image is not None and backend != "docker":
            raise EpisodeError(f"desktops of {backend!r} have no image: add --backend docker, or leave --image out")
        built = next((task.name for task in tasks if task.builds_image), None)
        if built is not None and (image is not None or backend != "docker"):
            wrong = "leave --image out" if image is not None else "add --backend docker"
            raise EpisodeError(f"the task {built} builds an image for its desktop: {wrong}, or leave the task out")
        self._tasks = list(tasks)
        self._backend = backend
        self._desktops = desktops
        self._image = image
        self._lock = threading.Lock()
        self._pools: dict[tuple[object, ...], Pool] = {}
        # With several kinds, that of the next desktop is not known.
        self._spare = 1 if spare and len({self._kind(task) for task in tasks}) == 1 else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def places(self, task: Task) -> Pool | _LazyPool:
        """The pool with the desktops of a task."""
        # A pool may start a desktop at once, and its image may not be there yet.
        return _LazyPool(lambda: self._pool(task)) if task.builds_image else self._pool(task)

    def _pool(self, task: Task) -> Pool:
        kind = self._kind(task)
        with self._lock:
            if kind not in self._pools:
                size, warm = self._desktops + self._spare, self._spare
                self._pools[kind] = Pool(self._backend, size=size, warm=warm, screen=task.screen, **self._options(task))
            return self._pools[kind]

    def missing(self) -> Mapping[str, Sequence[str]]:
        """The programs that tasks need and their desktops lack, by task.

        Raises:
            LaunchFailed: No desktop could be launched.
            EpisodeError: A desktop was launched, but its programs cannot be listed.
        """
        found: dict[str, Sequence[str]] = {}
        if self._backend == "local":
            if shutil.which("Xvfb") is None:
                raise LaunchFailed("the X server", 0.0, "", "Xvfb is not installed: apt-get install xvfb")
            for task in self._tasks:
                if lacking := [program for program in task.programs if shutil.which(program) is None]:
                    found[task.name] = lacking
            return found
        by_kind: dict[tuple[object, ...], list[Task]] = {}
        for task in self._tasks:
            by_kind.setdefault((self._image or task.image,), []).append(task)
        for tasks in by_kind.values():
            wanted = sorted({program for task in tasks for program in task.programs})
            if wanted:
                absent = self._lacking(tasks[0], wanted)
                found.update({t.name: some for t in tasks if (some := [p for p in t.programs if p in absent])})
        return found

    def _lacking(self, task: Task, programs: Sequence[str]) -> set[str]:
        names = [shlex.quote(program) for program in programs]
        asked = "\n".join(f"command -v -- {name} >/dev/null || printf '%s\\n' {name}" for name in names)
        with self.places(task).acquire(_CHECK_LIMIT) as desktop:
            found = desktop.machine.run(asked)
        if found.exit_code != 0:
            # An output that was cut short does not list everything that is missing.
            why = one_line(found.stderr.strip(), _LONGEST) or found.outcome
            raise EpisodeError(f"{self._image or task.image}: its missing programs cannot be listed: {why}")
        return set(found.stdout.splitlines())

    def close(self) -> None:
        """Close all desktops, even those in use. Further calls do nothing."""
        with self._lock, contextlib.ExitStack() as all_of_them:
            for pool in self._pools.values():
                all_of_them.callback(pool.close)

    def _kind(self, task: Task) -> tuple[object, ...]:
        if self._backend == "local":
            return (task.screen,)
        variables = tuple(sorted(task.environment.items()))
        return (task.screen, self._image or task.image, task.network, task.resources, variables)

    def _options(self, task: Task) -> dict[str, Any]:
        if self._backend == "local":
            return {"env": _ENVIRONMENT}
        resources = task.resources
        return {
            "env": {**_ENVIRONMENT, **task.environment},
            "image": self._image or task.image,
            "network": task.network,
            "limits": Limits(memory=resources.most_memory, cpus=resources.most_cpus),
        }


class _LazyPool:
    """The desktops of a pool that is made when the first of them is wanted."""

    def __init__(self, pool: Callable[[], Pool]) -> None:
        self._pool = pool

    def acquire(self, timeout: float | None = None) -> AbstractContextManager[Desktop]:
        return self._pool().acquire(timeout)
