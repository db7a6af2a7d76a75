"""The sources of tasks: the suite that ships, folders, and your own classes; and the checks of a task's parts.

This module owns how tasks are named and found, the checks, and the digest of a task's source. It has no desktop and no run;
a folder's description of its task is read in `deskhand.episodes.tasks.folders`.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
import hashlib
import importlib
import inspect
import json
import math
import pkgutil
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_texts
from deskhand.episodes.tasks import suite
from deskhand.episodes.tasks.folders import TASK_FILE, FolderTask, is_task_folder, load_folder, own_error
from deskhand.episodes.tasks.foreign import ForeignTask
from deskhand.episodes.tasks.harbor import task as harbor
from deskhand.episodes.tasks.osworld import task as osworld
from deskhand.episodes.tasks.task import Resources, Task, TaskLimits, instance_seed
from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from deskhand.episodes.tasks.foreign import ForeignCatalogue

FOREIGN: tuple[ForeignCatalogue, ...] = (osworld.CATALOGUE, harbor.CATALOGUE)
"""The tasks of other benchmarks."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_GLOB = re.compile(r"[*?\[]")
_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)
_LEVELS = (1, 2, 3)
# Enough to find a template that some instances cannot fill, and cheap.
_TRIED_SEEDS = 3
_LEAST_SCREEN, _LARGEST_SCREEN = 64, 16384


def find_tasks(names: Sequence[str] = ()) -> list[Task]:
    """Find tasks, each once, in the order of the names; those of a pattern by level and name.

    Args:
        names: Each is a task's name, a pattern of names (`text-*`), `tag:text`, `level:2`, a folder with a `task.toml` or with
            such folders in it, `osworld:PATH` for tasks of OSWorld, `harbor:PATH` for those of Harbor, or `module:Class`.
            Without names, every task that ships.

    Raises:
        TaskError: There is no such task, a task is invalid, or two of them have the same name.
    """
    found: dict[str, Task] = {}
    for wanted in expect_texts("find_tasks: names", names or ()) or ("*",):
        for task in _select(wanted):
            first = found.setdefault(task.name, task)
            if type(first) is not type(task) and digest(first) != digest(task):
                raise TaskError(
                    task.name,
                    f"two tasks have this name: {_origin(first)} and {_origin(task)}",
                    "give one of them another name",
                )
    return list(found.values())


def ships(wanted: object) -> bool:
    """Whether a name for `find_tasks` means tasks that ship, and no foreign code."""
    if not isinstance(wanted, str) or "/" in wanted or catalogue_of(wanted) is not None:
        return False
    # In the same order as in `_select`.
    if wanted.startswith(("tag:", "level:")) or wanted in built_in():
        return True
    return _CLASS.fullmatch(wanted) is None and _GLOB.search(wanted) is not None and not Path(wanted).is_dir()


def catalogue_of(wanted: str) -> ForeignCatalogue | None:
    """The catalogue of another benchmark whose tasks a name means; None if it means others."""
    return next((each for each in FOREIGN if wanted.startswith(each.prefix)), None)


@functools.cache
def built_in() -> Mapping[str, Task]:
    """The tasks that ship, by name, in the order of their levels and names.

    Raises:
        TaskError: One of them is invalid.
    """
    tasks: list[Task] = []
    for entry in pkgutil.iter_modules(suite.__path__, f"{suite.__name__}."):
        if not entry.name.rpartition(".")[2].startswith("_"):
            module = importlib.import_module(entry.name)
            tasks += [_made(cls, entry.name) for cls in vars(module).values() if _is_task_of(cls, module)]
    by_name: dict[str, Task] = {}
    for task in sorted(tasks, key=lambda task: (task.level, task.name)):
        if task.name in by_name:
            raise TaskError(task.name, f"two tasks have this name: {_origin(by_name[task.name])} and {_origin(task)}")
        by_name[task.name] = task
    return by_name


def instance(task: Task, seed: int, *, run_seed: int = 0, variant: str = "") -> tuple[int, Mapping[str, Any]]:
    """The seed and the parameters of one instance of a task."""
    number = instance_seed(run_seed, task.name, variant, seed)
    return number, task.parameters(random.Random(number))  # noqa: S311 # for repeatability, not for secrecy


def digest(task: Task) -> str:
    """A digest of a task's source: its folder's files, or its class's module and the modules beside it that it uses.

    It is the same on every machine, and changes with any of these files.

    Raises:
        TaskError: A file cannot be read.
    """
    return _digest(type(task))


@functools.cache
def _digest(cls: type[Task]) -> str:
    whole = hashlib.sha256(cls.__qualname__.encode())
    for name, data in sorted(_sources(cls)):
        whole.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def _sources(cls: type[Task]) -> Iterable[tuple[str, bytes]]:
    if issubclass(cls, FolderTask):
        files = (path for path in cls.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return [(str(path.relative_to(cls.folder)), _read(cls, path)) for path in files]
    if issubclass(cls, ForeignTask):
        return cls.source()
    found: set[Path] = set()
    for base in cls.__mro__:
        if base not in {Task, object} and issubclass(base, Task):
            collect_files(sys.modules[base.__module__], found)
    return [(path.name, _read(cls, path)) for path in found]


def _read(cls: type[Task], path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError(cls.name, f"{path} cannot be read: {error.strerror}") from error


def collect_files(module: ModuleType, found: set[Path]) -> None:
    """Add the file of a module, and those of the modules in the same folder that it imports from."""
    file = getattr(module, "__file__", None)
    if file is None or Path(file) in found:
        return
    found.add(Path(file))
    for value in list(vars(module).values()):
        other = inspect.getmodule(value)
        beside = getattr(other, "__file__", None)
        if other is not None and beside is not None and Path(beside).parent == Path(file).parent:
            collect_files(other, found)


# --- finding ---


def _select(wanted: str) -> list[Task]:  # noqa: PLR0911 # one for each form
    if (foreign := catalogue_of(wanted)) is not None:
        return [_checked(task) for task in foreign.load(wanted)]
    if wanted.startswith("tag:"):
        return _tagged(wanted, [task for task in built_in().values() if wanted[4:] in task.tags])
    if wanted.startswith("level:"):
        return _tagged(wanted, [task for task in built_in().values() if str(task.level) == wanted[6:]])
    if _CLASS.fullmatch(wanted):
        return [_of_class(wanted)]
    if wanted in built_in():
        return [built_in()[wanted]]
    if "/" in wanted or wanted in {".", ".."} or Path(wanted).is_dir():
        return _of_folder(wanted)
    if _GLOB.search(wanted):
        matching = fnmatch.filter(built_in(), wanted)
        if matching:
            return [built_in()[name] for name in matching]
        raise TaskError(wanted, "no task's name matches", "`deskhand tasks list` shows them all")
    near = difflib.get_close_matches(wanted, list(built_in()), n=3, cutoff=0.5)
    hint = f"do you mean {' or '.join(near)}?" if near else "`deskhand tasks list` shows them all"
    raise TaskError(wanted, "there is no such task", hint)


def _tagged(wanted: str, tasks: list[Task]) -> list[Task]:
    if tasks:
        return tasks
    if wanted.startswith("tag:"):
        known = ", ".join(sorted({tag for task in built_in().values() for tag in task.tags}))
    else:
        known = ", ".join(map(str, _LEVELS))
    raise TaskError(wanted, "no task has it", f"there are {known}")


def _of_folder(wanted: str) -> list[Task]:
    folder = Path(wanted)
    if not folder.is_dir():
        raise TaskError(wanted, "there is no such folder")
    if is_task_folder(folder):
        folders = [folder]
    else:
        folders = sorted(child for child in folder.iterdir() if child.is_dir() and is_task_folder(child))
    if not folders:
        raise TaskError(wanted, f"neither it nor a folder in it has a {TASK_FILE}", f"write {folder / TASK_FILE}")
    return [_made(load_folder(each), str(each)) for each in folders]


def _of_class(wanted: str) -> Task:
    name, _, attribute = wanted.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise own_error(wanted, "importing its module", error) from error
        hint = "is its folder on the path? PYTHONPATH=FOLDER deskhand tasks list"
        raise TaskError(wanted, f"there is no module {error.name}", hint) from error
    except (Exception, SystemExit) as error:
        raise own_error(wanted, "importing its module", error) from error
    cls = getattr(module, attribute, None)
    if cls is None:
        here = [key for key, value in vars(module).items() if _is_task_of(value, module)]
        hint = f"it has {', '.join(here)}" if here else "it has no task at all"
        raise TaskError(wanted, f"module {name} has no {attribute}", hint)
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise TaskError(wanted, f"{attribute} is not a class of tasks, but {shown(cls)}", "derive it from Task")
    return _made(cls, wanted)


def _is_task_of(value: object, module: ModuleType) -> bool:
    """Whether it is a task that this module defines; a common base class of tasks has no name."""
    return (
        isinstance(value, type)
        and issubclass(value, Task)
        and value.__module__ == module.__name__
        and "name" in {key for base in value.__mro__ for key in vars(base)}
    )


def _made(cls: type[Task], origin: str) -> Task:
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        parts = ", ".join(missing)
        raise TaskError(
            origin, f"{cls.__name__} lacks {parts}", f"write {'each' if len(missing) > 1 else 'it'} as a method"
        )
    if not hasattr(cls, "name"):
        raise TaskError(origin, f"{cls.__name__} has no name", 'write name = "…" in the class')
    try:
        task = cls()
    except (Exception, SystemExit) as error:
        raise own_error(origin, "making it", error) from error
    check_parts(task)
    return task


def _checked(task: Task) -> Task:
    check_parts(task)
    return task


def _origin(task: Task) -> str:
    cls = type(task)
    if issubclass(cls, ForeignTask):
        return cls.origin
    return str(cls.folder) if issubclass(cls, FolderTask) else f"{cls.__module__}:{cls.__qualname__}"


# --- checks ---


def check_parts(task: Task) -> None:
    """Check each part of a task, and that a few instances can be described.

    Raises:
        TaskError: A part is invalid; the error names the task, the part and the fix.
    """
    name = task.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TaskError(
            shown(name), "name: it has lower-case letters, digits and single hyphens", "call it some-thing-2"
        )
    for part, fits, wanted in _RULES:
        value = getattr(task, part, None)
        if not fits(value):
            raise TaskError(name, f"{part}: it is {shown(value)}", f"it must be {wanted}")
    if not _are_masks(task.masks, task.screen):
        width, height = task.screen
        hint = f"it must be a sequence of (x, y, width, height), each within the screen of {width}x{height}"
        raise TaskError(name, f"masks: it is {shown(task.masks)}", hint)
    for seed in range(_TRIED_SEEDS):
        _check_instance(task, seed)


def _check_instance(task: Task, seed: int) -> None:
    try:
        _, parameters = instance(task, seed)
        _, again = instance(task, seed)
    except TaskError:
        raise
    except (Exception, SystemExit) as error:
        raise own_error(task.name, f"parameters: for seed {seed}", error) from error
    try:
        plain = json.loads(json.dumps(parameters))
    except (TypeError, ValueError) as error:
        hint = "give a mapping of strings, numbers, lists and mappings"
        raise TaskError(task.name, f"parameters: JSON cannot express them ({error})", hint) from error
    if not isinstance(plain, dict):
        raise TaskError(task.name, f"parameters: they are {shown(parameters)}", "give a mapping")
    if again != parameters:
        hint = "use the argument `random` for all random values, and no clocks or sets"
        raise TaskError(task.name, f"parameters: seed {seed} gives different values each time", hint)
    try:
        text = task.instruction(parameters)
    except TaskError:
        raise
    except (Exception, SystemExit) as error:
        raise own_error(task.name, f"instruction: for seed {seed}", error) from error
    if not isinstance(text, str) or not text.strip():
        raise TaskError(task.name, f"instruction: for seed {seed} it is {shown(text)}", "give a sentence")


def _positive(*values: object) -> bool:
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value)
        for value in values
    )


def _texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) and item for item in value)


def _is_day(value: object) -> bool:
    return isinstance(value, str) and (not value or _DAY.fullmatch(value) is not None)


def _is_limits(value: object) -> bool:
    return isinstance(value, TaskLimits) and isinstance(value.steps, int) and _positive(value.steps, value.seconds)


def _is_resources(value: object) -> bool:
    if not isinstance(value, Resources):
        return False
    sizes = _positive(value.memory, value.most_memory, value.cpus, value.most_cpus)
    return sizes and value.memory <= value.most_memory and value.cpus <= value.most_cpus


def _is_screen(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(side, int) and _LEAST_SCREEN <= side <= _LARGEST_SCREEN for side in value)
    )


def _are_masks(value: object, screen: tuple[int, int]) -> bool:
    return isinstance(value, (tuple, list)) and all(_is_within(mask, screen) for mask in value)


def _is_within(mask: object, screen: tuple[int, int]) -> bool:
    if not isinstance(mask, (tuple, list)) or len(mask) != 4:
        return False
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in mask):
        return False
    x, y, width, height = mask
    return bool(min(x, y) >= 0 and min(width, height) > 0 and x + width <= screen[0] and y + height <= screen[1])


_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("level", lambda value: value in _LEVELS and not isinstance(value, bool), "1, 2 or 3"),
    ("tags", _texts, 'a tuple of words, such as ("text",)'),
    ("limits", _is_limits, "TaskLimits with steps and seconds above 0"),
    ("resources", _is_resources, "Resources above 0, of which none is more than the most that may be used"),
    ("network", lambda value: value == "none" or (_texts(value) and value), '"none", or a tuple of hosts'),
    ("image", lambda value: isinstance(value, str) and bool(value), "the name of a container image"),
    ("screen", _is_screen, f"a tuple of width and height, {_LEAST_SCREEN}...{_LARGEST_SCREEN} pixels each"),
    ("programs", _texts, 'a tuple of commands, such as ("mousepad",)'),
    ("public_since", _is_day, 'a day such as "2024-04-11", or empty'),
)
