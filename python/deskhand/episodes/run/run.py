"""A run as a whole: begins or continues it, for an engine to play.

This module owns the directory of a run. How an episode is played is in `deskhand.episodes.play.attempt`, and
how progress is shown in `deskhand.cli.run_progress`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from dataclasses import asdict, dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_callable, expect_path, expect_text, expect_texts
from deskhand._core.redaction import one_line
from deskhand._native import __version__
from deskhand.episodes.ledger import ledger_name, open_ledger
from deskhand.episodes.ledger.ledger import EVERYTHING, Key
from deskhand.episodes.play.agents import agent_code, find_agent, is_code
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.run.engines import ENGINES
from deskhand.episodes.run.host import describe
from deskhand.episodes.run.manifest import MANIFEST, VERSION, read_manifest, write_manifest
from deskhand.episodes.run.plan import Plan
from deskhand.episodes.run.worker_name import abandon_dead
from deskhand.episodes.tasks.catalogue import catalogue_of, digest, find_tasks, ships
from deskhand.errors import ActionError, EpisodeError, LaunchFailed, shown
from deskhand.launchers.docker.engine import connect_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.episodes.tasks.task import Task

_LEDGER = "episodes.sqlite"
_SHOWN = 3
_LONGEST_COMMAND = 500
_MOST = 1_000_000_000
# Settings that cannot change when a run continues: another value is another run. None: keep the run's value.
_SAME = ("agent", "run_seed", "backend", "image", "limit", "ledger")
# Settings that may only grow.
_GROWING = ("seeds", "repeats")
_DEFAULTS: Mapping[str, Any] = {
    "agent": "oracle",
    "run_seed": 0,
    "backend": "local",
    "image": None,
    "limit": None,
    "ledger": _LEDGER,
    "seeds": 1,
    "repeats": 1,
    "desktops": 1,
    "engine": "local",
}


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that was begun or continued.

    Attributes:
        plan: The plan for the engine.
        manifest: The manifest.
        keys: How many episodes it has, of the plan's shard.
        new: How many of the run's episodes are new in its ledger.
        given_back: How many were held by processes of this machine that have died since.
    """

    plan: Plan
    manifest: Mapping[str, Any]
    keys: int
    new: int
    given_back: int


def begin(
    out: str | os.PathLike[str],
    tasks: Sequence[str] = (),
    *,
    agent: str | None = None,
    desktops: int | None = None,
    engine: str | None = None,
    seeds: int | None = None,
    repeats: int | None = None,
    limit: int | None = None,
    backend: str | None = None,
    image: str | None = None,
    shard: tuple[int, int] = EVERYTHING,
    ledger: str | None = None,
    run_seed: int | None = None,
    host: bool = False,
    watched: bool = False,
    wall: Callable[[], float] = time.time,
) -> Begun:
    """Begin a run in a directory, or continue the one in it: settings that are not given keep their values or get defaults.

    An existing run is untrusted. Its code, and addresses that lead elsewhere, must be given again: tasks that do not ship with
    deskhand, an agent of a module or a record, a ledger outside of the directory.

    Args:
        out: The directory.
        tasks: The tasks; see `deskhand.episodes.tasks.catalogue.find_tasks`. If empty: those of the run, or all that ship.
        agent: The agent; see `deskhand.episodes.play.agents.find_agent`. By default `oracle`.
        desktops: How many episodes at once, 1 by default.
        engine: The engine, `local` (default) or `ray`; see `deskhand.episodes.run.engines.find_engine`.
        seeds: How many instances of each task, 1 by default.
        repeats: How often each instance, 1 by default.
        limit: The largest number of episodes, beginning with those of the first seed.
        backend: `local` (default) or `docker`.
        image: The container image instead of the tasks' own.
        shard: Play only part i of n.
        ledger: A PostgreSQL URL; by default a file in the directory.
        run_seed: The seed that determines all instances, 0 by default.
        host: Whether the agent `replay:PATH` may make recorded calls on this machine.
        watched: Whether each worker serves a page that shows its desktops live.
        wall: Seconds since 1970.

    Raises:
        EpisodeError: The directory has a different run, or the run cannot be played here: the error says what differs or lacks.
        LedgerError: The ledger cannot be used.
        LaunchFailed: No desktop could be launched.
    """
    directory = Path(expect_path("begin: out", out)).absolute()
    tasks = expect_texts("begin: tasks", tasks)
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise ActionError(f"begin: shard is (part, parts), not {shown(shard)}")
    for part in shard:
        expect("begin: each of shard", part, int)
    if agent is not None:
        expect_text("begin: agent", agent)
    for name, number in (("desktops", desktops), ("seeds", seeds), ("repeats", repeats), ("limit", limit)):
        if number is not None:
            expect("begin: " + name, number, int)
    expect_callable("begin: wall", wall)
    kept = read_manifest(directory) if os.path.exists(directory / MANIFEST) else None  # noqa: PTH110 # see read_manifest
    asked = {
        "agent": agent,
        "run_seed": run_seed,
        "backend": backend,
        "image": image,
        "limit": limit,
        "ledger": None if ledger is None else ledger_name(ledger),
        "seeds": seeds,
        "repeats": repeats,
        "desktops": desktops,
        "engine": engine,
    }
    settings = _settled(directory, asked, kept)
    select = [_absolute(name) for name in tasks] or ([] if kept is not None else ["*"])
    if settings["agent"].startswith("replay:") and settings["backend"] == "local" and not host:
        raise EpisodeError(
            f"{settings['agent']} would make recorded calls on this machine, with your rights: use --backend docker, or, if "
            "you trust the record, --host"
        )
    if kept is not None:
        _refuse_unnamed(directory, kept, asked, select)
        select = list(dict.fromkeys([*kept["select"], *select]))
    found = find_tasks(select)
    _check(settings, found, shard)
    manifest = {
        "version": VERSION,
        "deskhand": __version__,
        **settings,
        "select": select,
        "agent_code": agent_code(settings["agent"]),
        "tasks": {task.name: digest(task) for task in found},
        "limits": {task.name: asdict(task.limits) for task in found},
        "resources": {task.name: asdict(task.resources) for task in found},
        "network": {task.name: task.network for task in found},
        "public_since": {task.name: task.public_since for task in found if task.public_since},
        "images": _images(settings, found),
        "host": _host(),
        "started": wall(),
    }
    # With a password, which the manifest does not have.
    where = ledger or settings["ledger"]
    plan = Plan(
        directory=str(directory),
        ledger=str(directory / where) if where == _LEDGER else where,
        tasks=tuple(select),
        agent=settings["agent"],
        run_seed=settings["run_seed"],
        desktops=settings["desktops"],
        shard=shard,
        backend=settings["backend"],
        image=settings["image"],
        host=host,
        watched=watched,
    )
    _check_programs(found, plan)
    return _queue(plan, manifest, kept, found)


def _queue(plan: Plan, manifest: dict[str, Any], kept: Mapping[str, Any] | None, tasks: Sequence[Task]) -> Begun:
    directory = Path(plan.directory)
    if kept is not None:
        _refuse_other(directory, kept, manifest)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EpisodeError(f"the run's directory cannot be made: {error}; give another --out") from error
    keys = list(_keys(tasks, manifest["seeds"], manifest["repeats"], manifest["limit"]))
    ledger = open_ledger(plan.ledger)
    try:
        first = ledger.begin(manifest)
        _refuse_other(directory, first, manifest, settings=True)
        # Keep the time of the first beginning.
        manifest["started"] = (kept or first)["started"]
        write_manifest(directory, manifest)
        given_back = abandon_dead(ledger)
        new = ledger.add(keys)
        counts = ledger.counts(shard=plan.shard)
    finally:
        ledger.close()
    return Begun(plan, manifest, sum(counts.values()), new, given_back)


# --- internals ---


def _settled(directory: Path, asked: Mapping[str, Any], kept: Mapping[str, Any] | None) -> dict[str, Any]:
    """The run's settings: from the arguments, the existing run, and the defaults."""
    if kept is None:
        return {name: _DEFAULTS[name] if value is None else value for name, value in asked.items()}
    differing = [
        f"{_option(name)} was {kept[name]!r} and is {asked[name]!r}"
        for name in _SAME
        if asked[name] is not None and asked[name] != kept[name]
    ]
    differing += [
        f"{_option(name)} was {kept[name]} and is only {asked[name]}"
        for name in _GROWING
        if asked[name] is not None and asked[name] < kept[name]
    ]
    if differing:
        raise _other(directory, differing, f"to go on with it: {_command(directory, kept)}")
    return {name: kept[name] if value is None else value for name, value in asked.items()}


def _refuse_unnamed(directory: Path, kept: Mapping[str, Any], asked: Mapping[str, Any], select: Sequence[str]) -> None:
    """Refuse to run, import or connect to anything only because a manifest names it."""
    lacking = []
    if asked["agent"] is None and is_code(kept["agent"]):
        lacking.append(f"--agent {shown(kept['agent'])}")
    if asked["ledger"] is None and kept["ledger"] != _LEDGER:
        lacking.append(f"--ledger {shown(kept['ledger'])}")
    lacking += [f"the task {shown(name)}" for name in kept["select"] if not ships(name) and name not in select]
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise EpisodeError(
            f"the run in {directory} has code, or addresses that lead elsewhere: {', '.join(lacking[:_SHOWN])}{more}. If you "
            "trust it, give it again to go on with the run"
        )


def _command(directory: Path, kept: Mapping[str, Any]) -> str:
    """The command that goes on with a run. A manifest may have anything, so it is cut."""
    words = ["deskhand", "run", *(str(name) for name in kept["select"] if not ships(name)), "--out", str(directory)]
    words += ["--agent", kept["agent"]] if is_code(kept["agent"]) else []
    words += ["--ledger", kept["ledger"]] if kept["ledger"] != _LEDGER else []
    return one_line(shlex.join(words), _LONGEST_COMMAND)


def _refuse_other(
    directory: Path, kept: Mapping[str, Any], manifest: Mapping[str, Any], *, settings: bool = False
) -> None:
    differing = [
        f"the task {name} has changed since"
        for name, value in kept["tasks"].items()
        if manifest["tasks"].get(name) not in {None, value}
    ]
    differing += [
        f"the image {name} has changed since"
        for name, value in kept.get("images", {}).items()
        if manifest["images"].get(name) not in {None, value}
    ]
    if kept["agent"] == manifest["agent"] and kept.get("agent_code") not in {None, manifest["agent_code"]}:
        differing.append(f"the code of the agent {shown(kept['agent'])} has changed since")
    if settings:
        # The manifest of another machine, which this directory did not have.
        differing += [
            f"{_option(name)} was {kept.get(name)!r} and is {manifest[name]!r}"
            for name in ("agent", "run_seed", "backend", "image")
            if kept.get(name) != manifest[name]
        ]
    if differing:
        raise _other(directory, differing, "to go on with it, make them as they were")


def _other(directory: Path, differing: Sequence[str], hint: str) -> EpisodeError:
    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    return EpisodeError(
        f"another run is in {directory}: {'; '.join(differing[:_SHOWN])}{more}. Only seeds, repeats and tasks can be added to "
        f"it; {hint}, or give another --out"
    )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _absolute(name: str) -> str:
    """Make the path of a folder of tasks absolute."""
    if (foreign := catalogue_of(name)) is not None:
        return foreign.prefix + str(Path(name.removeprefix(foreign.prefix)).absolute())
    return str(Path(name).absolute()) if "/" in name or name in {".", ".."} or Path(name).is_dir() else name


def _check(settings: Mapping[str, Any], tasks: Sequence[Task], shard: tuple[int, int]) -> None:
    for name in (*_GROWING, "limit", "desktops"):
        if settings[name] is not None and settings[name] < 1:
            raise EpisodeError(f"{_option(name)} must be at least 1, not {settings[name]}")
        if settings[name] is not None and settings[name] > _MOST:
            raise EpisodeError(f"{_option(name)} must be at most {_MOST:,}, not {shown(settings[name])}")
    if settings["engine"] not in ENGINES:
        raise EpisodeError(f"there is no engine {shown(settings['engine'])}; there are: {', '.join(ENGINES)}")
    part, parts = shard
    if not 0 <= part < parts:
        raise EpisodeError(
            f"--shard {part}/{parts}: of {parts} shards the first is 0/{parts}, the last {parts - 1}/{parts}"
        )
    if not tasks:
        raise EpisodeError("there are no tasks")
    # Checked before anything is created: a wrong name would fail every episode.
    find_agent(settings["agent"], host=True)


def _check_programs(tasks: Sequence[Task], plan: Plan) -> None:
    with DesktopPools(tasks, backend=plan.backend, desktops=1, image=plan.image) as pools:
        missing = pools.missing()
    if missing:
        by_task = "; ".join(f"{task} needs {', '.join(programs)}" for task, programs in missing.items())
        where = "on this machine" if plan.backend == "local" else "in its image"
        hint = "install them, or use --backend docker" if plan.backend == "local" else "choose another --image"
        raise EpisodeError(f"programs are missing {where}: {by_task}; {hint}, or leave these tasks out")


def _images(settings: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, str]:
    """The digests of the images, because a name may mean another image tomorrow."""
    if settings["backend"] != "docker":
        return {}
    with contextlib.closing(connect_engine()) as engine:
        found = {}
        for name in sorted({settings["image"] or task.image for task in tasks if not task.builds_image}):
            try:
                with engine.translated(f"the image {name}"):
                    found[name] = str(engine.api.inspect_image(name)["Id"])
            except LaunchFailed as error:
                if not isinstance(error.__cause__, engine.errors.NotFound):
                    raise
                hint = "see `deskhand image build`, or pull it"
                raise EpisodeError(f"there is no image {name!r} where containers are started: {hint}") from error
        return found


def _keys(tasks: Sequence[Task], seeds: int, repeats: int, limit: int | None) -> Iterator[Key]:
    """The keys, with all tasks of the first seed first, so that half a run already shows all of them."""
    each = product(range(repeats), range(seeds), tasks)
    return islice((Key(task.name, "", seed, repeat) for repeat, seed, task in each), limit)


def _host() -> dict[str, Any]:
    found = describe()
    kibibytes = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0])
    return {
        "cpus": int(found["cores"]),
        "memory": kibibytes << 10,
        "kernel": found["kernel"],
        "cpu": found["processor"],
        "system": found["system"],
        "python": found["python"],
    }
