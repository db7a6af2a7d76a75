"""Finds the task files of a checkout of OSWorld, or of its folder `evaluation_examples`.

This module owns what the name `osworld:PATH` means. What must never appear here: the content of a task (see `taskfile`).
"""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.tasks.osworld.taskfile import LARGEST, TaskFile, named, parse_task
from deskhand.episodes.tasks.reading import read_bounded
from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "osworld:"
"""What a name for tasks of OSWorld begins with."""

_EXAMPLES = "examples"
_NESTED = "evaluation_examples"
_LIST = "test_all.json"
_LARGEST_LIST = 4 << 20
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One task that a list names.

    Attributes:
        domain: Its folder.
        id: Its id.
        path: Its file.
        data: The file's content; empty if it cannot be read.
        task: The task; None if its file is broken.
        broken: Why it is broken; empty if it is not.
    """

    domain: str
    id: str
    path: Path
    data: bytes
    task: TaskFile | None
    broken: str = ""


def find_entries(name: str) -> list[Entry]:
    """Find and read the tasks that a name means, in the order of the list.

    Args:
        name: `osworld:` and the path of a checkout, of its `evaluation_examples`, or of a list of tasks in it. A domain, an id,
            `DOMAIN/ID` or a pattern of these may follow the folder: `osworld:OSWorld/os`, `osworld:OSWorld/chrome/03*`.

    Raises:
        TaskError: There is no such folder or list, or nothing in it matches. A broken task file raises nothing.
    """
    where = name.removeprefix(PREFIX)
    root, wanted, chosen = _root(name, Path(where))
    listed = _listed(name, chosen if chosen is not None else root / _LIST, root)
    kept = [pair for pair in listed if _matches(pair, wanted)]
    if not kept:
        domains = ", ".join(sorted({domain for domain, _ in listed}))
        raise TaskError(name, f"no task of {root} matches {shown(wanted)}", f"its domains are {domains}")
    return [_entry(root, domain, id_) for domain, id_ in kept]


def _root(name: str, path: Path) -> tuple[Path, str, Path | None]:
    """The folder that has the examples, what follows it, and the list that is named."""
    rest: list[str] = []
    for folder in (path, *path.parents):
        for root in (folder, folder / _NESTED):
            if (root / _EXAMPLES).is_dir():
                if rest and rest[-1].endswith(".json") and (list_ := root.joinpath(*rest)).is_file():
                    if rest[0] != _EXAMPLES:
                        return root, "", list_
                    rest[-1] = rest[-1].removesuffix(".json")
                if rest and rest[0] == _NESTED:
                    continue
                return root, "/".join(rest[1:] if rest and rest[0] == _EXAMPLES else rest), None
        rest.insert(0, folder.name)
    hint = f"give a checkout of OSWorld, or its folder {_NESTED}, as in {PREFIX}OSWorld"
    raise TaskError(name, f"there is no folder {_EXAMPLES} in {path} or above it", hint)


def _matches(pair: tuple[str, str], wanted: str) -> bool:
    if not wanted:
        return True
    domain, id_ = pair
    return any(fnmatch.fnmatchcase(each, wanted) for each in (domain, id_, f"{domain}/{id_}"))


def _listed(name: str, path: Path, root: Path) -> list[tuple[str, str]]:
    if not path.exists() and path == root / _LIST:
        return _all_of(name, root)
    try:
        found = json.loads(read_bounded(path, _LARGEST_LIST))
    except OSError as error:
        raise TaskError(name, f"the list {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise TaskError(name, f"the list {path} is not JSON: {str(error)[:200]}") from None
    hint = 'a list of tasks is an object of domains with lists of ids: {"os": ["..."]}'
    if not isinstance(found, dict) or not all(isinstance(ids, list) for ids in found.values()):
        raise TaskError(name, f"the list {path} has another form", hint)
    pairs = [(domain, id_) for domain, ids in found.items() for id_ in ids]
    return _checked(name, path, pairs)


def _checked(name: str, path: Path, pairs: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    kept: dict[tuple[str, str], None] = {}
    for domain, id_ in pairs:
        if not isinstance(id_, str) or not named(id_) or not named(domain):
            raise TaskError(name, f"{path} names {shown(domain)}/{shown(id_)}", "names have letters, digits, - and _")
        kept[domain, id_] = None
        if len(kept) > _MOST:
            raise TaskError(name, f"{path} names more than {_MOST} tasks")
    return list(kept)


def _all_of(name: str, root: Path) -> list[tuple[str, str]]:
    """Every task file, where there is no list."""
    files = sorted((root / _EXAMPLES).glob("*/*.json"))
    return _checked(name, root / _EXAMPLES, ((file.parent.name, file.stem) for file in files))


def _entry(root: Path, domain: str, id_: str) -> Entry:
    path = root / _EXAMPLES / domain / f"{id_}.json"
    try:
        data = read_bounded(path, LARGEST)
    except OSError as error:
        return Entry(domain, id_, path, b"", None, f"its file cannot be read: {error.strerror or error}")
    try:
        return Entry(domain, id_, path, data, parse_task(data, domain=domain, id=id_))
    except TaskError as error:
        return Entry(domain, id_, path, data, None, error.message)
