"""Reads one task file of OSWorld, untrusted as it is. Pure.

This module owns the shape that a file must have, and the bounds of its parts. What must never appear here: a file, and what
a task needs or does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

LARGEST = 1 << 20
"""The largest task file that is read, in bytes; upstream's have 12 kB at most."""

INFEASIBLE = "infeasible"
"""The name of the evaluator of a task that cannot be done."""

HOME = "/home/user"
"""The home directory that the tasks are written for."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HOME = re.compile(r"/home/user(?![\w.-])")
_DEEPEST, _MOST_PARTS, _MOST_STEPS, _MOST_FUNCTIONS = 32, 20_000, 200, 50


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One step of a set-up or of a post-configuration.

    Attributes:
        kind: Its type, such as `download`.
        parameters: Its parameters, as JSON data.
    """

    kind: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One task of OSWorld.

    Attributes:
        id: Its id, which is the name of its file.
        domain: Its folder, such as `libreoffice_calc`.
        instruction: The agent's instruction.
        apps: The applications that it names.
        setup: The steps before the agent's part.
        post: The steps before the evaluation.
        functions: The names of the metrics; `infeasible` alone for a task that cannot be done.
        results: The getters of what the agent has left, one for each metric; None where a metric needs none.
        expected: The getters of what is expected, likewise.
        evaluator: The whole evaluator, as JSON data for upstream's code.
        proxy: Whether upstream sends its traffic through a proxy.
    """

    id: str
    domain: str
    instruction: str
    apps: tuple[str, ...]
    setup: tuple[SetupStep, ...]
    post: tuple[SetupStep, ...]
    functions: tuple[str, ...]
    results: tuple[Mapping[str, Any] | None, ...]
    expected: tuple[Mapping[str, Any] | None, ...]
    evaluator: Mapping[str, Any]
    proxy: bool

    @property
    def infeasible(self) -> bool:
        """Whether it cannot be done, so that an agent has to say so."""
        return self.functions == (INFEASIBLE,)

    @property
    def getters(self) -> tuple[str, ...]:
        """The types of all its getters, each once."""
        found = (str(getter["type"]) for getter in (*self.results, *self.expected) if getter is not None)
        return tuple(dict.fromkeys(found))


def parse_task(data: bytes, *, domain: str, id: str) -> TaskFile:
    """Read a task file.

    Args:
        data: The file's content.
        domain: The folder that it was in.
        id: The name of the file, without its ending.

    Raises:
        TaskError: It is not a task; the error names the file and its part.
    """
    name = f"{domain}/{id}"

    def wrong(part: str, value: object, wanted: str) -> TaskError:
        return TaskError(name, f"{part}: it is {shown(value)}", f"it must be {wanted}")

    if len(data) > LARGEST:
        raise TaskError(name, f"its file has {len(data)} bytes", f"a task has at most {LARGEST}")
    try:
        task = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TaskError(name, f"its file is not JSON: {str(error)[:200]}") from None
    if not isinstance(task, dict):
        raise wrong("the file", task, "an object")
    _bound(name, task)
    if task.get("id") != id or not _ID.fullmatch(id):
        raise wrong("id", task.get("id"), f"the name of its file, {shown(id)}")
    instruction = task.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        raise wrong("instruction", instruction, "a text")
    evaluator = task.get("evaluator")
    if not isinstance(evaluator, dict):
        raise wrong("evaluator", evaluator, "an object")
    functions = _functions(evaluator.get("func"), wrong)
    for part in ("conj",):
        if evaluator.get(part, "and") not in {"and", "or"}:
            raise wrong(f"evaluator.{part}", evaluator[part], "and, or or")
    count = len(functions) if isinstance(evaluator["func"], list) else None
    _check_options(evaluator.get("options", {}), count, wrong)
    proxy = task.get("proxy", False)
    if not isinstance(proxy, bool):
        raise wrong("proxy", proxy, "true or false")
    results = _getters("result", evaluator.get("result"), count, wrong)
    if functions != (INFEASIBLE,) and results.count(None) == len(results):
        raise wrong("evaluator.result", evaluator.get("result"), "an object with a type")
    return TaskFile(
        id=id,
        domain=domain,
        instruction=instruction,
        apps=_apps(task.get("related_apps", []), wrong),
        setup=_steps("config", task.get("config", []), wrong),
        post=_steps("evaluator.postconfig", evaluator.get("postconfig", []), wrong),
        functions=functions,
        results=results,
        expected=_getters("expected", evaluator.get("expected"), count, wrong),
        evaluator=evaluator,
        proxy=proxy,
    )


def named(value: str) -> bool:
    """Whether a text can be the id or the domain of a task, and so a part of a path."""
    return _ID.fullmatch(value) is not None and ".." not in value


def strings(value: object) -> Iterator[str]:
    """All texts in JSON data, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from strings(each)


def at_home(value: Any, home: str) -> Any:
    """JSON data with another home directory in the place of `/home/user`."""
    if home == HOME:
        return value
    if isinstance(value, str):
        return _HOME.sub(lambda _: home, value)
    if isinstance(value, dict):
        return {name: at_home(each, home) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [at_home(each, home) for each in value]
    return value


# --- parts ---


def _bound(name: str, value: object) -> None:
    """Check how deep and how large the data is, before anything walks through it."""
    level, parts = [value], 0
    for _ in range(_DEEPEST):
        below: list[object] = []
        for each in level:
            if isinstance(each, (dict, list)):
                below += each.values() if isinstance(each, dict) else each
        parts += len(below)
        if parts > _MOST_PARTS:
            raise TaskError(name, f"its file has more than {_MOST_PARTS} parts")
        if not below:
            return
        level = below
    raise TaskError(name, f"its file is deeper than {_DEEPEST} levels")


def _functions(value: object, wrong: Callable[[str, object, str], TaskError]) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    fits = all(isinstance(name, str) and _WORD.fullmatch(name) for name in names)
    if not 0 < len(names) <= _MOST_FUNCTIONS or not fits:
        raise wrong("evaluator.func", value, "the name of a metric, or a list of names")
    return tuple(names)


def _getters(
    part: str, value: object, count: int | None, wrong: Callable[[str, object, str], TaskError]
) -> tuple[Mapping[str, Any] | None, ...]:
    if value is None or value in ({}, []):
        return (None,) * (count or 1)
    if isinstance(value, list) != (count is not None) or (isinstance(value, list) and len(value) != count):
        raise wrong(f"evaluator.{part}", value, "one getter for each metric")
    getters: Sequence[object] = value if isinstance(value, list) else [value]
    for getter in getters:
        if getter in (None, {}):
            continue
        kind = getter.get("type") if isinstance(getter, dict) else None
        if not isinstance(getter, dict) or not isinstance(kind, str) or not _WORD.fullmatch(kind):
            raise wrong(f"evaluator.{part}", getter, "an object with a type")
        # Upstream's code joins these with a folder on this machine.
        inside = {"dest", "csv_path", *(["path"] if kind == "cache_file" else [])}
        for key in ("dest", "csv_path", "path"):
            _check_paths(f"evaluator.{part}.{key}", getter.get(key), wrong, inside=key in inside)
        if "/" in str(getter.get("time_format", "")):
            raise wrong(f"evaluator.{part}.time_format", getter["time_format"], "a format without a /")
    return tuple(getter or None for getter in getters)  # type: ignore[misc] # as checked


def _check_paths(part: str, value: object, wrong: Callable[[str, object, str], TaskError], *, inside: bool) -> None:
    """Check a path or a list of paths; one that must stay inside of a directory is the name of a file."""
    for path in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
            raise wrong(part, path, "a path")
        if inside and (path.startswith("/") or ".." in path.split("/")):
            raise wrong(part, path, "the name of a file, without .. and not absolute")


def _check_options(value: object, count: int | None, wrong: Callable[[str, object, str], TaskError]) -> None:
    options = value if isinstance(value, list) else [value]
    if isinstance(value, list) and len(value) != count:
        raise wrong("evaluator.options", value, "an object for each metric")
    for each in options:
        if each is not None and not isinstance(each, dict):
            raise wrong("evaluator.options", each, "an object")


def _steps(part: str, value: object, wrong: Callable[[str, object, str], TaskError]) -> tuple[SetupStep, ...]:
    if not isinstance(value, list) or len(value) > _MOST_STEPS:
        raise wrong(part, value, f"a list of at most {_MOST_STEPS} steps")
    steps = []
    for step in value:
        kind = step.get("type") if isinstance(step, dict) else None
        parameters = step.get("parameters", {}) if isinstance(step, dict) else None
        if not isinstance(kind, str) or not _WORD.fullmatch(kind) or not isinstance(parameters, dict):
            raise wrong(part, step, "steps with a type and parameters")
        steps.append(SetupStep(kind, _checked(f"{part}.{kind}", kind, parameters, wrong)))
    return tuple(steps)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_command(value: object) -> bool:
    return _is_text(value) or (
        isinstance(value, list) and bool(value) and all(isinstance(word, str) and "\0" not in word for word in value)
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(each) for each in value)


def _is_inside(value: object) -> bool:
    return value == "" or (_is_text(value) and "/" not in str(value) and str(value) not in {".", ".."})


def _are_files(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(file, dict) and _is_text(file.get("url")) and _is_text(file.get("path")) for file in value
    )


def _are_visits(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(visit, dict)
        and _is_text(visit.get("url"))
        and isinstance(visit.get("title"), str)
        and isinstance(visit.get("visit_time_from_now_in_seconds"), (int, float))
        for visit in value
    )


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 3600


# For each kind of step: its parameters, which of them it needs, and their checks.
_PARAMETERS: Mapping[str, tuple[frozenset[str], Mapping[str, Callable[[Any], bool]]]] = {
    "download": (frozenset({"files"}), {"files": _are_files}),
    "open": (frozenset({"path"}), {"path": _is_text}),
    "launch": (frozenset({"command"}), {"command": _is_command}),
    **dict.fromkeys(
        ("execute", "command"),
        (frozenset({"command"}), {"command": _is_command, "stdout": _is_inside, "stderr": _is_inside}),
    ),
    "sleep": (frozenset({"seconds"}), {"seconds": _is_seconds}),
    **dict.fromkeys(("activate_window", "close_window"), (frozenset({"window_name"}), {"window_name": _is_text})),
    "chrome_open_tabs": (frozenset({"urls_to_open"}), {"urls_to_open": _are_texts}),
    "chrome_close_tabs": (frozenset({"urls_to_close"}), {"urls_to_close": _are_texts}),
    "update_browse_history": (frozenset({"history"}), {"history": _are_visits}),
}


def _checked(
    part: str, kind: str, parameters: Mapping[str, Any], wrong: Callable[[str, object, str], TaskError]
) -> Mapping[str, Any]:
    needed, checks = _PARAMETERS.get(kind, (frozenset(), {}))
    for name in sorted(needed - set(parameters)):
        raise wrong(part, parameters, f"an object with {name}")
    for name, check in checks.items():
        if name in parameters and not check(parameters[name]):
            raise wrong(f"{part}.{name}", parameters[name], _WANTED[check])
    return parameters


_WANTED: Mapping[Callable[[Any], bool], str] = {
    _is_text: "a text",
    _is_command: "a command: a text, or a list of words",
    _are_texts: "a list of texts",
    _is_inside: "the name of a file, without a folder",
    _are_files: "a list of objects with url and path",
    _are_visits: "a list of visits with url, title and visit_time_from_now_in_seconds",
    _is_seconds: "0 to 3600 seconds",
}


def _apps(value: object, wrong: Callable[[str, object, str], TaskError]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(_is_text(app) and len(app) <= 100 for app in value):
        raise wrong("related_apps", value, "a list of names")
    return tuple(value)
