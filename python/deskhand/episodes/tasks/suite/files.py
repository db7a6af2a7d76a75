"""Tasks in the file manager (PCManFM)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.actions import KeyPress, Type
from deskhand.episodes.tasks.suite._acting import press, settled, wait_for_window, wait_until, wait_until_gone
from deskhand.episodes.tasks.suite._applications import open_pcmanfm, prepare
from deskhand.episodes.tasks.suite._material import CITIES, ITEMS, SURNAMES, TOPICS, UNICODE, sentence
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.task import Level

_PCMANFM = "pcmanfm"
_TRIES, _COPIED = 12, 0.5
_KINDS = {"pictures": "png", "papers": "pdf", "tables": "csv", "sounds": "wav", "texts": "txt"}


def _go(context: TaskContext, folder: str) -> None:
    """Show another folder, using the field for its path."""
    context.desktop.perform(KeyPress(("ctrl+l",)), Type(context.path(folder)), KeyPress(("Return",)))
    wait_for_window(context.desktop, folder.rpartition("/")[2], _PCMANFM)


def _select(context: TaskContext, folder: str, name: str) -> None:
    """Select one file of the folder that is shown, by typing its name into the list, and check the selection.

    The list acts on the selection of a fifth of a second ago, and forgets typed letters when it learns of a new or deleted
    file. "Copy Path(s)" in the menu "Edit" puts the path of the selected file on the clipboard, which shows the selection.
    """
    desktop, path = context.desktop, f"/{folder}/{name}"
    for attempt in range(_TRIES):
        select = (Type(name), KeyPress(("Escape",))) if attempt % 3 == 0 else ()
        desktop.perform(*select, KeyPress(("alt+e",)), KeyPress(("h",)))
        try:
            wait_until(
                lambda: (desktop.clipboard.read() or "").endswith(path),
                f"the path of {name} on the clipboard",
                timeout=_COPIED,
            )
        except EpisodeError:
            press(desktop, "Escape")
        else:
            return
    raise EpisodeError(f"{name} cannot be selected in {folder}")


def _await_end(context: TaskContext, name: str) -> None:
    wait_until(lambda: context.read(f"Documents/{name}") is None, f"the end of {name}")


def _answer(context: TaskContext, title: str, text: str = "") -> None:
    """Answer a dialog: type into its field if there is a text, and press Return."""
    dialog = wait_for_window(context.desktop, title, _PCMANFM)
    fill = (KeyPress(("ctrl+a",)), Type(text)) if text else ()
    context.desktop.perform(*fill, KeyPress(("Return",)))
    wait_until_gone(context.desktop, dialog)
    settled(context.desktop)


def _make_folder(context: TaskContext, name: str) -> None:
    press(context.desktop, "ctrl+shift+n")
    _answer(context, "Creating New Folder", name)


def _carry(context: TaskContext, source: str, name: str, target: str, *, copy: bool = False) -> None:
    """Copy or move a file of the folder that is shown into another folder, and come back."""
    _select(context, source, name)
    press(context.desktop, "ctrl+c" if copy else "ctrl+x")
    _go(context, target)
    press(context.desktop, "ctrl+v")
    wait_until(lambda: context.read(f"{target}/{name}") is not None, f"{name} in {target}")
    settled(context.desktop)
    _go(context, source)


def _grade_tree(context: TaskContext, folder: str, wanted: Mapping[str, str | None]) -> Grade:
    """Whether a folder has exactly these files with these texts, and these folders (None), at any depth."""
    found = context.files(folder)
    kinds = {name: "directory" if text is None else "file" for name, text in wanted.items()}
    missing = sorted(name for name in kinds if found.get(name) != kinds[name])
    extra = sorted(name for name in found if name not in kinds)
    changed = sorted(
        name
        for name, text in wanted.items()
        if text is not None and name not in missing and context.text(f"{folder}/{name}") != text
    )
    parts = (("missing", missing), ("not wanted", extra), ("with another content", changed))
    wrong = [f"{what}: {', '.join(names)}" for what, names in parts if names]
    reason = f"~/{folder}: {'; '.join(wrong) or f'{len(wanted)} files and folders, all as wanted'}"
    return Grade(float(not wrong), reason, {"found": found, "changed": changed})


def _write_files(context: TaskContext, folder: str, files: Mapping[str, str]) -> None:
    """Write files with fixed times: the list shows them, and they would otherwise differ between runs."""
    context.write_all({f"{folder}/{name}": text for name, text in files.items()})
    context.run(f"find {shlex.quote(folder)} -depth -exec touch -d '2024-05-06 07:08' {{}} +")


def _names(random: random.Random, count: int, extensions: tuple[str, ...]) -> list[str]:
    """File names of which none is the beginning of another."""
    stems = random.sample([*ITEMS, *TOPICS], count)
    return [f"{stem} {random.choice(CITIES)} {random.randint(1, 99)}.{random.choice(extensions)}" for stem in stems]


class _InFiles(Task):
    tags: ClassVar[tuple[str, ...]] = ("files",)
    programs: ClassVar[tuple[str, ...]] = (_PCMANFM,)


class MakeFolders(_InFiles):
    """Make a folder, and another one in it."""

    name = "files-make-folders"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        outer = f"{random.choice(TOPICS).title()} {random.choice(CITIES)} {random.randint(1990, 2030)}"
        inner = f"{random.choice(ITEMS)} {random.choice(UNICODE)} {random.randint(1, 99)}"
        return {"outer": outer, "inner": inner, "files": dict.fromkeys(_names(random, 5, ("txt", "md")), "A note.\n")}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"In the folder ~/Documents, which the file manager shows, make a folder named “{parameters['outer']}”, and in "
            f"that one a folder named “{parameters['inner']}”."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        _write_files(context, "Documents", context.parameters["files"])
        open_pcmanfm(context, "Documents")

    def evaluate(self, context: TaskContext) -> Grade:
        outer, inner = context.parameters["outer"], context.parameters["inner"]
        return _grade_tree(context, "Documents", {**context.parameters["files"], outer: None, f"{outer}/{inner}": None})

    def oracle(self, context: TaskContext) -> None:
        _make_folder(context, context.parameters["outer"])
        _go(context, f"Documents/{context.parameters['outer']}")
        _make_folder(context, context.parameters["inner"])


class Rename(_InFiles):
    """Rename two files."""

    name = "files-rename"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        files = {name: f"{sentence(random)}\n" for name in _names(random, random.randint(8, 14), ("txt", "md", "csv"))}
        old = random.sample(list(files), 2)
        new = [f"{random.choice(SURNAMES)} {random.choice(UNICODE)} {random.randint(100, 999)}.txt" for _ in old]
        return {"files": files, "renamed": dict(zip(old, new, strict=True))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        (one, new_one), (other, new_other) = parameters["renamed"].items()
        return (
            f"In the folder ~/Documents, which the file manager shows, rename “{one}” to “{new_one}”, and “{other}” to "
            f"“{new_other}”."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        _write_files(context, "Documents", context.parameters["files"])
        open_pcmanfm(context, "Documents")

    def evaluate(self, context: TaskContext) -> Grade:
        renamed = context.parameters["renamed"]
        return _grade_tree(
            context, "Documents", {renamed.get(n, n): text for n, text in context.parameters["files"].items()}
        )

    def oracle(self, context: TaskContext) -> None:
        for old, new in context.parameters["renamed"].items():
            _select(context, "Documents", old)
            press(context.desktop, "F2")
            _answer(context, "Rename File", new)


class CopyLargest(_InFiles):
    """Copy the largest file of a folder into another one."""

    name = "files-copy-largest"
    level: ClassVar[Level] = 2

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        names = _names(random, random.randint(9, 15), ("txt", "csv", "pdf", "png"))
        sizes = dict(zip(names, (400 * n for n in random.sample(range(3, 60), len(names))), strict=True))
        return {"sizes": sizes, "target": f"Backup {random.choice(CITIES)}", "fill": random.choice("abcdefgh")}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            "Copy the largest file of the folder ~/Downloads, which the file manager shows, into the folder "
            f"~/{parameters['target']}. Change nothing else."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        _write_files(context, "Downloads", self._files(context))
        _write_files(context, context.parameters["target"], {"list.txt": "Kept here.\n"})
        open_pcmanfm(context, "Downloads")

    def evaluate(self, context: TaskContext) -> Grade:
        files, largest = self._files(context), self._largest(context)
        kept = _grade_tree(context, "Downloads", files)
        copied = _grade_tree(
            context, context.parameters["target"], {"list.txt": "Kept here.\n", largest: files[largest]}
        )
        both = kept.success and copied.success
        return Grade(float(both), f"{copied.reason}; {kept.reason}", {"source": kept.state, "target": copied.state})

    def oracle(self, context: TaskContext) -> None:
        _carry(context, "Downloads", self._largest(context), context.parameters["target"], copy=True)

    def _files(self, context: TaskContext) -> dict[str, str]:
        return {name: context.parameters["fill"] * size for name, size in context.parameters["sizes"].items()}

    def _largest(self, context: TaskContext) -> str:
        sizes: dict[str, int] = context.parameters["sizes"]
        return max(sizes, key=sizes.__getitem__)


class DeleteOld(_InFiles):
    """Delete the files that were last changed before a year."""

    name = "files-delete-old"
    level: ClassVar[Level] = 2
    limits: ClassVar[TaskLimits] = TaskLimits(steps=40)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        names = _names(random, random.randint(9, 14), ("txt", "csv", "pdf"))
        year, old = random.randint(2012, 2019), random.randint(2, 4)
        years = {
            n: random.randint(2004, year - 1) if i < old else random.randint(year, 2023) for i, n in enumerate(names)
        }
        shuffled = random.sample(names, len(names))
        days = {name: f"{years[name]}-{random.randint(1, 12):02}-{random.randint(1, 28):02} 12:00" for name in shuffled}
        return {"days": days, "year": year}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"Delete all files of the folder ~/Documents, which the file manager shows, that were last changed before "
            f"{parameters['year']}. Whether they go into the waste basket or not does not matter. Keep the others."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        _write_files(context, "Documents", dict.fromkeys(context.parameters["days"], "Something.\n"))
        touches = (f"touch -d '{day}' {shlex.quote(name)}" for name, day in context.parameters["days"].items())
        context.run("cd Documents && " + " && ".join(touches))
        open_pcmanfm(context, "Documents")

    def evaluate(self, context: TaskContext) -> Grade:
        return _grade_tree(
            context,
            "Documents",
            dict.fromkeys(set(context.parameters["days"]) - set(self._old(context)), "Something.\n"),
        )

    def oracle(self, context: TaskContext) -> None:
        for name in self._old(context):
            _select(context, "Documents", name)
            press(context.desktop, "shift+Delete")
            _answer(context, "Confirm")
            _await_end(context, name)
            settled(context.desktop)

    def _old(self, context: TaskContext) -> list[str]:
        return [name for name, day in context.parameters["days"].items() if int(day[:4]) < context.parameters["year"]]


class SortByKind(_InFiles):
    """Move files of two kinds into folders of their own."""

    name = "files-sort-by-kind"
    level: ClassVar[Level] = 2
    limits: ClassVar[TaskLimits] = TaskLimits(steps=60)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        kinds = random.sample(list(_KINDS), 3)
        moved, stay = kinds[:2], kinds[2]
        counts = [2, random.randint(1, 2), random.randint(3, 6)]
        extensions = [_KINDS[kind] for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
        names = [
            f"{n.rpartition('.')[0]}.{e}"
            for n, e in zip(_names(random, len(extensions), ("x",)), extensions, strict=True)
        ]
        return {
            "files": {name: f"{sentence(random)}\n" for name in names},
            "moved": {k: _KINDS[k] for k in moved},
            "stay": stay,
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        (one, first), (other, second) = parameters["moved"].items()
        return (
            f"Move all .{first} files of the folder ~/Desk, which the file manager shows, into the folder ~/Desk/{one}, and "
            f"all .{second} files into the folder ~/Desk/{other}. Both folders are there already. Leave all other files "
            "where they are."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.run("mkdir -p " + " ".join(f"Desk/{kind}" for kind in context.parameters["moved"]))
        _write_files(context, "Desk", context.parameters["files"])
        open_pcmanfm(context, "Desk")

    def evaluate(self, context: TaskContext) -> Grade:
        wanted: dict[str, str | None] = dict.fromkeys(context.parameters["moved"])
        for name, text in context.parameters["files"].items():
            folder = self._folder_of(context, name)
            wanted[name if folder is None else f"{folder}/{name}"] = text
        return _grade_tree(context, "Desk", wanted)

    def oracle(self, context: TaskContext) -> None:
        for name in context.parameters["files"]:
            folder = self._folder_of(context, name)
            if folder is not None:
                _carry(context, "Desk", name, f"Desk/{folder}")

    def _folder_of(self, context: TaskContext, name: str) -> str | None:
        extension = name.rpartition(".")[2]
        return next((kind for kind, own in context.parameters["moved"].items() if own == extension), None)


class TidyProject(_InFiles):
    """Make folders by year, move bills into them, rename a file, and delete a leftover."""

    name = "files-tidy-project"
    level: ClassVar[Level] = 3
    limits: ClassVar[TaskLimits] = TaskLimits(steps=100, seconds=600)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        years = sorted(random.sample(range(2015, 2026), 2))
        surnames = random.sample(SURNAMES, 4)
        bills = {
            f"{surname} bill {years[i % 2]}.txt": f"{random.randint(10, 900)} € from {random.choice(CITIES)}\n"
            for i, surname in enumerate(surnames)
        }
        other = {f"{name}": "Stays.\n" for name in _names(random, random.randint(2, 4), ("md", "csv"))}
        return {
            "bills": bills,
            "years": [str(year) for year in years],
            "other": other,
            "draft": f"draft-{random.randint(10, 99)}.txt",
            "final": f"Plan {random.choice(TOPICS)} {random.choice(UNICODE)}.txt",
            "rest": f"old-{random.choice(ITEMS)}.tmp",
            "text": f"{sentence(random)}\n",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        one, other = parameters["years"]
        return (
            f"Tidy the folder ~/Project, which the file manager shows. Make the folders {one} and {other} in it, and move each "
            f"bill (“NAME bill YEAR.txt”) into the folder of its year. Rename {parameters['draft']} to "
            f"“{parameters['final']}”. Delete {parameters['rest']}; whether it goes into the waste basket or not does not "
            "matter. Leave everything else as it is."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        parameters = context.parameters
        single = {parameters["draft"]: parameters["text"], parameters["rest"]: "Left over.\n"}
        _write_files(context, "Project", {**parameters["bills"], **parameters["other"], **single})
        open_pcmanfm(context, "Project")

    def evaluate(self, context: TaskContext) -> Grade:
        parameters = context.parameters
        wanted: dict[str, str | None] = dict.fromkeys(parameters["years"])
        wanted |= {f"{self._year(name)}/{name}": text for name, text in parameters["bills"].items()}
        wanted |= {**parameters["other"], parameters["final"]: parameters["text"]}
        return _grade_tree(context, "Project", wanted)

    def oracle(self, context: TaskContext) -> None:
        parameters = context.parameters
        for year in parameters["years"]:
            _make_folder(context, year)
        for name in parameters["bills"]:
            _carry(context, "Project", name, f"Project/{self._year(name)}")
        _select(context, "Project", parameters["draft"])
        press(context.desktop, "F2")
        _answer(context, "Rename File", parameters["final"])
        _select(context, "Project", parameters["rest"])
        press(context.desktop, "shift+Delete")
        _answer(context, "Confirm")
        wait_until(lambda: context.read(f"Project/{parameters['rest']}") is None, f"the end of {parameters['rest']}")

    def _year(self, name: str) -> str:
        return name.removesuffix(".txt").rpartition(" ")[2]
