"""Tasks in text editors: a GTK one (Mousepad) and a Qt one (FeatherPad)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.actions import KeyPress
from deskhand.episodes.tasks.suite._acting import (
    choose_file,
    find_window,
    press,
    type_text,
    wait_for_window,
    wait_until,
)
from deskhand.episodes.tasks.suite._applications import open_featherpad, open_mousepad, prepare
from deskhand.episodes.tasks.suite._material import (
    CITIES,
    ITEMS,
    SURNAMES,
    TOPICS,
    UNICODE,
    people,
    sentence,
    sentences,
)
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.task import Level

_MOUSEPAD, _FEATHERPAD = "mousepad", "featherpad"


def _grade_texts(context: TaskContext, wanted: Mapping[str, str]) -> Grade:
    """Whether each file has its text; a line break at the end of a file does not matter."""
    found = {name: context.text(name) for name in wanted}
    wrong = []
    for name, text in found.items():
        if text is None:
            wrong.append(f"{name} is not there")
        elif text.rstrip("\n") != wanted[name].rstrip("\n"):
            wrong.append(f"{name}: {_difference(text, wanted[name])}")
    reason = "; ".join(wrong) or f"{', '.join(wanted)} as wanted"
    return Grade(1 - len(wrong) / len(wanted), reason, found)


def _difference(found: str, wanted: str) -> str:
    have, want = found.rstrip("\n").split("\n"), wanted.rstrip("\n").split("\n")
    for number, (one, other) in enumerate(zip(have, want, strict=False), start=1):
        if one != other:
            return f"line {number} is {one!r}, wanted is {other!r}"
    return f"{len(have)} lines, wanted are {len(want)}"


def _save(desktop: Desktop, program: str) -> None:
    """Save the open file; both editors mark unsaved changes with an asterisk in the title."""
    press(desktop, "ctrl+s")
    _until_saved(desktop, program)


def _until_saved(desktop: Desktop, program: str) -> None:
    def saved() -> bool:
        window = find_window(desktop, class_name=program)
        return window is not None and window.active and not window.title.startswith("*")

    wait_until(saved, f"the saved file in {program}")


def _save_as(context: TaskContext, program: str, name: str) -> None:
    press(context.desktop, "ctrl+shift+s")
    choose_file(context.desktop, context.path(name), title="Save as")
    wait_for_window(context.desktop, name.rpartition("/")[2], program)
    _until_saved(context.desktop, program)


def _open(context: TaskContext, program: str, name: str) -> None:
    press(context.desktop, "ctrl+o")
    choose_file(context.desktop, context.path(name), title="Open")
    wait_for_window(context.desktop, name.rpartition("/")[2], program)


def _down(desktop: Desktop, lines: int) -> None:
    """Move the caret to the beginning of a line, counted from 0."""
    press(desktop, "ctrl+Home")
    if lines:
        desktop.perform(KeyPress(("Down",), repeat=lines))


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


class WriteNote(Task):
    """Write a few lines into an empty editor, and use the file dialog."""

    name = "text-write-note"
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_MOUSEPAD,)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        topic, number = random.choice(TOPICS), random.randint(1, 99)
        marked = [f"{sentence(random)} {random.choice(UNICODE)}" for _ in range(random.randint(2, 4))]
        return {
            "file": f"Documents/{topic}-{number}.txt",
            "lines": [f"{topic.title()} in {random.choice(CITIES)}", *marked],
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"Write these lines into the text editor, without the indentation, and save them as ~/{parameters['file']} "
            f"(~ is your home directory):\n\n{_listed(parameters['lines'])}"
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write("Documents/readme.txt", "Notes go here.\n")
        open_mousepad(context)

    def evaluate(self, context: TaskContext) -> Grade:
        return _grade_texts(context, {context.parameters["file"]: "\n".join(context.parameters["lines"])})

    def oracle(self, context: TaskContext) -> None:
        type_text(context.desktop, "\n".join(context.parameters["lines"]) + "\n")
        _save_as(context, _MOUSEPAD, context.parameters["file"])


class ReplaceWord(Task):
    """Replace a word everywhere in an open file."""

    name = "text-replace-word"
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_MOUSEPAD,)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        old = f"{random.choice(TOPICS).title()}-{random.randint(10, 99)}"
        new = f"{random.choice(CITIES)} {random.randint(100, 999)}"
        lines = sentences(random, random.randint(14, 22))
        for index in random.sample(range(len(lines)), random.randint(4, 8)):
            lines[index] = f"{lines[index][:-1]}, says {old}."
        return {"file": f"Documents/{random.choice(ITEMS)}.txt", "old": old, "new": new, "lines": lines}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"In the file that is open, replace {parameters['old']} everywhere by {parameters['new']}, and save the file."

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write(context.parameters["file"], "\n".join(context.parameters["lines"]) + "\n")
        open_mousepad(context, context.parameters["file"])

    def evaluate(self, context: TaskContext) -> Grade:
        wanted = "\n".join(context.parameters["lines"]).replace(context.parameters["old"], context.parameters["new"])
        return _grade_texts(context, {context.parameters["file"]: wanted})

    def oracle(self, context: TaskContext) -> None:
        desktop = context.desktop
        press(desktop, "ctrl+r")
        wait_for_window(desktop, "Find and Replace")
        type_text(desktop, context.parameters["old"])
        press(desktop, "alt+w")
        type_text(desktop, context.parameters["new"])
        press(desktop, "alt+a", "alt+r")
        # A button that is pressed by a key acts a quarter of a second later.
        wait_until(lambda: find_window(desktop, "*", _MOUSEPAD) is not None, "the replaced words")
        press(desktop, "Escape")
        wait_for_window(desktop, "- Mousepad")
        _save(desktop, _MOUSEPAD)


class DeleteLine(Task):
    """Delete one line of a list, found by its content."""

    name = "text-delete-line"
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_FEATHERPAD,)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        names = people(random, random.randint(12, 18))
        lines = [f"{name}, {random.choice(CITIES)}, {random.randint(2, 90)} {random.choice(ITEMS)}" for name in names]
        return {"file": f"Documents/{random.choice(TOPICS)}.txt", "lines": lines, "who": random.choice(names)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"Open ~/{parameters['file']} (~ is your home directory) in the text editor, delete the whole line about "
            f"{parameters['who']}, leave all others as they are, and save the file."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write(context.parameters["file"], "\n".join(context.parameters["lines"]) + "\n")
        open_featherpad(context)

    def evaluate(self, context: TaskContext) -> Grade:
        who, lines = context.parameters["who"], context.parameters["lines"]
        left = "\n".join(line for line in lines if not line.startswith(f"{who},"))
        return _grade_texts(context, {context.parameters["file"]: left})

    def oracle(self, context: TaskContext) -> None:
        lines = context.parameters["lines"]
        index = next(i for i, line in enumerate(lines) if line.startswith(f"{context.parameters['who']},"))
        _open(context, _FEATHERPAD, context.parameters["file"])
        _down(context.desktop, index)
        press(context.desktop, "shift+Down", "Delete")
        _save(context.desktop, _FEATHERPAD)


class InsertSorted(Task):
    """Add several entries, each at its place in a sorted list."""

    name = "text-insert-sorted"
    level: ClassVar[Level] = 2
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_FEATHERPAD,)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        surnames = sorted(random.sample(SURNAMES, random.randint(13, 17)))
        lines = [f"{surname}: {random.randint(100, 999)} {random.randint(1000, 9999)}" for surname in surnames]
        new = random.sample(lines, 3)
        return {"file": f"Documents/phones-{random.choice(CITIES)}.txt", "lines": lines, "new": new}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"The telephone list ~/{parameters['file']} (~ is your home directory) is sorted by surname. Open it in the text "
            "editor, add these entries, each at its place, so that it stays sorted, and save it:"
            f"\n\n{_listed(parameters['new'])}"
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        new = context.parameters["new"]
        context.write(
            context.parameters["file"], "".join(f"{x}\n" for x in context.parameters["lines"] if x not in new)
        )
        open_featherpad(context)

    def evaluate(self, context: TaskContext) -> Grade:
        return _grade_texts(context, {context.parameters["file"]: "\n".join(context.parameters["lines"])})

    def oracle(self, context: TaskContext) -> None:
        _open(context, _FEATHERPAD, context.parameters["file"])
        # From the top, because a new line does not move the places above it.
        for index, line in enumerate(context.parameters["lines"]):
            if line in context.parameters["new"]:
                _down(context.desktop, index)
                type_text(context.desktop, f"{line}\n")
        _save(context.desktop, _FEATHERPAD)


class MergeFiles(Task):
    """Merge three files into a new one, in an order that differs from that of their names."""

    name = "text-merge-files"
    level: ClassVar[Level] = 2
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_MOUSEPAD,)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        topics = random.sample(TOPICS, 3)
        parts = {f"{topic}.txt": sentences(random, random.randint(3, 6)) for topic in topics}
        return {"parts": parts, "file": f"Documents/{random.choice(CITIES)}-{random.randint(1, 30)}.txt"}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        first, second, third = parameters["parts"]
        return (
            f"The folder ~/Documents/parts has the files {first}, {second} and {third}. Make a new file ~/{parameters['file']} "
            "that has all their lines: first those of "
            f"{first}, then those of {second}, then those of {third}, without empty lines between. Leave the parts as they are."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        parts = context.parameters["parts"].items()
        context.write_all({f"Documents/parts/{name}": "\n".join(lines) + "\n" for name, lines in parts})
        open_mousepad(context)

    def evaluate(self, context: TaskContext) -> Grade:
        parts = context.parameters["parts"]
        whole = "\n".join(line for lines in parts.values() for line in lines)
        same = {f"Documents/parts/{name}": "\n".join(lines) for name, lines in parts.items()}
        # The parts count only if they were changed, because they are right before the agent does anything.
        grade = _grade_texts(context, {context.parameters["file"]: whole, **same})
        return Grade(float(grade.success), grade.reason, grade.state)

    def oracle(self, context: TaskContext) -> None:
        desktop = context.desktop
        file = context.parameters["file"]
        first, *others = context.parameters["parts"]
        _open(context, _MOUSEPAD, f"Documents/parts/{first}")
        _save_as(context, _MOUSEPAD, file)
        for name in others:
            _open(context, _MOUSEPAD, f"Documents/parts/{name}")
            press(desktop, "ctrl+a", "ctrl+c", "ctrl+w")
            wait_for_window(desktop, file.rpartition("/")[2], _MOUSEPAD)
            press(desktop, "ctrl+End", "ctrl+v")
            wait_until(lambda: find_window(desktop, "*", _MOUSEPAD) is not None, "the pasted lines")
        _save(desktop, _MOUSEPAD)


class Letters(Task):
    """Write letters from a template to those of a list that meet a condition."""

    name = "text-letters"
    level: ClassVar[Level] = 3
    tags: ClassVar[tuple[str, ...]] = ("text",)
    programs: ClassVar[tuple[str, ...]] = (_MOUSEPAD,)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=60, seconds=600)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        least, owing = random.randint(40, 60) * 10, random.randint(2, 3)
        entries = []
        for index, name in enumerate(people(random, random.randint(8, 12))):
            amount = least + random.randint(5, 300) if index < owing else random.randint(20, least - 5)
            entries.append([name, random.choice(CITIES), amount])
        random.shuffle(entries)
        return {"entries": entries, "least": least, "day": random.randint(2, 28), "sender": people(random, 1)[0]}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            "The file ~/Documents/customers.txt has a line for each customer: name; city; amount. The file "
            f"~/Documents/template.txt is the text of a letter. For each customer whose amount is above {parameters['least']}, "
            "write the letter with <name>, <city> and <amount> filled in, and save it as ~/Letters/SURNAME.txt, where SURNAME "
            "is the customer's surname exactly as it is spelled in the list. Write no other letters."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        lines = [f"{name}; {city}; {amount}" for name, city, amount in context.parameters["entries"]]
        template = self._letter(context.parameters, ["<name>", "<city>", "<amount>"])
        context.write_all({"Documents/customers.txt": "\n".join(lines) + "\n", "Documents/template.txt": template})
        context.run("mkdir -p Letters")
        open_mousepad(context, "Documents/customers.txt")

    def evaluate(self, context: TaskContext) -> Grade:
        wanted = {
            f"Letters/{entry[0].split()[-1]}.txt": self._letter(context.parameters, entry)
            for entry in self._chosen(context.parameters)
        }
        grade = _grade_texts(context, wanted)
        extra = [name for name in context.files("Letters") if f"Letters/{name}" not in wanted]
        state = {**grade.state, "extra": extra}
        if extra:
            return Grade(0.0, f"{grade.reason}; not wanted: {', '.join(extra)}", state)
        return Grade(grade.score, grade.reason, state)

    def oracle(self, context: TaskContext) -> None:
        desktop = context.desktop
        for entry in self._chosen(context.parameters):
            _open(context, _MOUSEPAD, "Documents/template.txt")
            press(desktop, "ctrl+a")
            type_text(desktop, self._letter(context.parameters, entry))
            _save_as(context, _MOUSEPAD, f"Letters/{entry[0].split()[-1]}.txt")

    def _chosen(self, parameters: Mapping[str, Any]) -> list[list[Any]]:
        return [entry for entry in parameters["entries"] if entry[2] > parameters["least"]]

    def _letter(self, parameters: Mapping[str, Any], entry: Sequence[Any]) -> str:
        name, city, amount = entry
        return (
            f"Dear {name},\n\nyour account in {city} shows {amount} € that are still to be paid.\n"
            f"Please do so before the {parameters['day']}th.\n\n{parameters['sender']}\n"
        )
