"""A task as a folder: `task.toml` describes it, `task.py` has its code.

    name = "rename-report"                     from deskhand.episodes.tasks.task import Grade
    level = 1
    tags = ["files"]                           def setup(context):
    instruction = "Rename {old} to {new}."         context.write(context.parameters["old"], "text")
    programs = ["pcmanfm"]                         context.desktop.start("pcmanfm")

    [parameters]                               def evaluate(context):
    old = "draft.txt"                              return context.read(context.parameters["new"]) == b"text"
    new = ["final.txt", "sent.txt"]
    copies = { from = 2, to = 5 }              def oracle(context): ...

This module owns the form of that file. For a parameter, a list means one of its items, and a table with `from` and `to` means
an integer between them, both included; any other value is used unchanged. The other parts are those of `Task`, by name:
`image`, `public_since`, `screen = [1280, 800]`, `masks = [[x, y, width, height], ...]`, `network = ["example.org"]`,
`[limits]`, `[resources]`. How tasks are chosen is elsewhere, and there is no desktop here.
"""

from __future__ import annotations

import functools
import importlib.util
import string
import sys
import tomllib
import traceback
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from deskhand._core.arguments import expect_path
from deskhand.episodes.tasks.task import Grade, Resources, Task, TaskLimits
from deskhand.errors import DeskhandError, TaskError, shown

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from deskhand.episodes.tasks.context import TaskContext

TASK_FILE = "task.toml"
CODE_FILE = "task.py"

_PLAIN = ("name", "level", "image", "public_since")
_TUPLES = ("tags", "screen", "programs")
_KEYS = {*_PLAIN, *_TUPLES, "instruction", "masks", "network", "limits", "resources", "parameters"}
_FUNCTIONS = ("setup", "evaluate", "oracle")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class FolderTask(Task):
    """A task that a folder describes; `load_folder` makes a class for each folder.

    Attributes:
        folder: The folder.
        template: The instruction, with the names of parameters in braces.
        choices: The parameters from the file.
        code: The module.
    """

    folder: ClassVar[Path]
    template: ClassVar[str]
    choices: ClassVar[Mapping[str, Any]]
    code: ClassVar[ModuleType]

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The parameters of the file, updated with those of the code."""
        drawn = {name: _drawn(choice, random) for name, choice in self.choices.items()}
        further = getattr(self.code, "parameters", None)
        if further is None:
            return drawn
        given = self._call("parameters", further, random)
        if not isinstance(given, dict):
            raise self._wrong(f"parameters() of {CODE_FILE} gives {shown(given)}", "return a dict")
        return {**drawn, **given}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """The template, filled in."""
        try:
            return self.template.format_map(parameters)
        except KeyError as error:
            known = ", ".join(parameters) or "none"
            raise self._wrong(f"instruction: there is no parameter {error}", f"there are: {known}") from error
        except (ValueError, IndexError, AttributeError, TypeError) as error:
            hint = "write a brace that is meant as such twice: {{ }}"
            raise self._wrong(f"instruction: {shown(self.template)} cannot be filled in ({error})", hint) from error

    def setup(self, context: TaskContext) -> None:
        """Call the code's `setup`."""
        self._call("setup", self.code.setup, context)

    def evaluate(self, context: TaskContext) -> Grade | bool | float:
        """Call the code's `evaluate`."""
        found = self._call("evaluate", self.code.evaluate, context)
        if not isinstance(found, (Grade, bool, int, float)):
            raise self._wrong(f"evaluate() gives {shown(found)}", "return a Grade, a bool or a score from 0 to 1")
        return found

    def oracle(self, context: TaskContext) -> str | None:
        """Call the code's `oracle`."""
        answer = self._call("oracle", self.code.oracle, context)
        if answer is not None and not isinstance(answer, str):
            raise self._wrong(f"oracle() gives {shown(answer)}", "return the answer as a text, or None")
        return answer

    def _call(self, part: str, function: Callable[[Any], Any], argument: object) -> Any:
        """Call a function of the folder; an error of its own gets its place, and an error of the desktop is not changed."""
        try:
            return function(argument)
        except DeskhandError:
            raise
        except Exception as error:
            raise own_error(self.name, f"{part}()", error, self.folder) from error

    def _wrong(self, reason: str, hint: str = "") -> TaskError:
        return TaskError(self.name, reason, hint)


def own_error(task: str, doing: str, error: BaseException, folder: Path | None = None) -> TaskError:
    """Turn an error of a task's own code into one that names the task, and the file and line of the error.

    Args:
        task: The task's name.
        doing: The name of the code that raised it.
        error: The error.
        folder: The folder of the task's own code: the place is the last one in it, or else the last one of all.
    """
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename is not None:
        return TaskError(task, f"{doing} raises {what} ({error.filename}, line {error.lineno})")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in frames if folder is not None and Path(frame.filename).is_relative_to(folder)] or frames
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return TaskError(task, f"{doing} raises {what}{where}")


def is_task_folder(folder: Path) -> bool:
    """Whether a folder describes a task."""
    return (folder / TASK_FILE).is_file()


def load_folder(folder: Path) -> type[FolderTask]:
    """Load the class of the task that a folder describes; the same class as long as neither file changes.

    Raises:
        TaskError: A part is missing or wrong, or the code cannot be imported.
    """
    folder = Path(expect_path("load_folder: folder", folder)).resolve()
    files = (path for path in (folder / TASK_FILE, folder / CODE_FILE) if path.is_file())
    return _load(folder, tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files))


@functools.lru_cache(maxsize=256)
def _load(folder: Path, _stamps: tuple[tuple[int, int], ...]) -> type[FolderTask]:
    described = _described(folder)
    name = described.get("name", folder.name)
    task = name if isinstance(name, str) else str(folder)

    def wrong(reason: str, hint: str = "") -> TaskError:
        return TaskError(task, f"{TASK_FILE}: {reason}", hint)

    unknown = sorted(set(described) - _KEYS)
    if unknown:
        raise wrong(f"there is no part {', '.join(unknown)}", f"the parts are {', '.join(sorted(_KEYS))}")
    template = described.get("instruction")
    if not isinstance(template, str) or not template.strip():
        raise wrong(f"instruction: it is {shown(template)}", 'write instruction = "…"')
    choices = described.get("parameters", {})
    _check_choices(choices, wrong)
    attributes: dict[str, Any] = {"name": name, "template": template, "choices": choices, "folder": folder}
    attributes |= {key: described[key] for key in _PLAIN[1:] if key in described}
    for key in (*_TUPLES, "network"):
        if key in described:
            attributes[key] = tuple(described[key]) if isinstance(described[key], list) else described[key]
    if "masks" in described:
        attributes["masks"] = _tuples(described["masks"])
    for key, kind in (("limits", TaskLimits), ("resources", Resources)):
        if key in described:
            attributes[key] = _filled(kind, key, described[key], wrong)
    attributes["code"] = _code(task, folder)
    attributes["__doc__"] = f"The task of {folder}."
    attributes["__module__"] = attributes["code"].__name__
    return type(f"FolderTask_{_identifier(task)}", (FolderTask,), attributes)


def _described(folder: Path) -> dict[str, Any]:
    path = folder / TASK_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskError(str(folder), f"it has no {TASK_FILE}", f"write {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskError(str(folder), f"{TASK_FILE} is not TOML: {error}") from error
    except OSError as error:
        raise TaskError(str(folder), f"{TASK_FILE} cannot be read: {error.strerror}") from error


def _check_choices(choices: object, wrong: Callable[[str, str], TaskError]) -> None:
    if not isinstance(choices, dict):
        raise wrong(f"parameters: they are {shown(choices)}", "write a table [parameters]")
    for name, choice in choices.items():
        if not name.isidentifier():
            raise wrong(f"parameters: {shown(name)} cannot be a name in braces in an instruction", "use letters and _")
        if choice == []:
            raise wrong(f"parameters: {name} is an empty list", "name at least one value")
        if isinstance(choice, dict):
            ends = (choice.get("from"), choice.get("to"))
            whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
            if whole and ends[0] > ends[1]:  # type: ignore[operator] # integers
                raise wrong(f"parameters: {name} is from {ends[0]} to {ends[1]}", "begin with the smaller one")
            if set(choice) != {"from", "to"} or not whole:
                raise wrong(f"parameters: {name} is {shown(choice)}", "write { from = 1, to = 9 }, with integers")


def _drawn(choice: Any, random: random.Random) -> Any:
    if isinstance(choice, list):
        return random.choice(choice)
    if isinstance(choice, dict):
        return random.randint(choice["from"], choice["to"])
    return choice


def _filled(kind: type, key: str, given: object, wrong: Callable[[str, str], TaskError]) -> Any:
    known = [item.name for item in fields(kind)]
    if isinstance(given, dict) and (unknown := sorted(set(given) - set(known))):
        raise wrong(f"{key}: there is no {shown(unknown[0])}", f"it has {', '.join(known)}")
    if not isinstance(given, dict):
        raise wrong(f"{key}: it is {shown(given)}", f"write a table [{key}] of {', '.join(known)}")
    return kind(**{name: _bytes_of(value) if "memory" in name else value for name, value in given.items()})


def _tuples(value: object) -> object:
    """Convert lists in a list to tuples in a tuple; other values are left for the check of the parts."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _bytes_of(value: object) -> object:
    """Convert a size such as "512M" to bytes; other values are left for the check of the parts."""
    if isinstance(value, str) and value[:-1].isdecimal() and value[-1] in _UNITS:
        return int(value[:-1]) * _UNITS[value[-1]]
    return value


def _identifier(text: str) -> str:
    return "".join(char if char in string.ascii_letters + string.digits else "_" for char in text)


def _code(task: str, folder: Path) -> ModuleType:
    path = folder / CODE_FILE
    if not path.is_file():
        wanted = ", ".join(f"{name}(context)" for name in _FUNCTIONS)
        raise TaskError(task, f"it has no {CODE_FILE}", f"write {path} with {wanted}")
    # Named by its path, so that the code of two folders with the same name is not confused.
    spec = importlib.util.spec_from_file_location(f"deskhand_task_{_identifier(str(folder))}", path)
    if spec is None or spec.loader is None:
        raise TaskError(task, f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        # Without this, code that calls sys.exit() would end the command without a message.
        del sys.modules[module.__name__]
        raise own_error(task, CODE_FILE, error, folder) from error
    missing = [name for name in _FUNCTIONS if not callable(getattr(module, name, None))]
    if missing:
        parts = ", ".join(f"{name}(context)" for name in missing)
        raise TaskError(task, f"{CODE_FILE} lacks {parts}", f"write def {missing[0]}(context): in {path}")
    return module
