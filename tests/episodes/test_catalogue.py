"""Tasks are found by name, pattern, tag, level, folder and class; what is wrong with one is named, with what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from click.testing import CliRunner

from deskhand import Desktop, UnsupportedAction
from deskhand.backends.memory import MemoryBackend
from deskhand.cli.group import commands
from deskhand.episodes.tasks import catalogue
from deskhand.episodes.tasks.catalogue import built_in, check_parts, digest, find_tasks, instance
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.folders import load_folder
from deskhand.episodes.tasks.task import Grade, Resources, Task, TaskLimits
from deskhand.errors import TaskError

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping


class Greeting(Task):
    """A task of no program at all."""

    name = "greeting"
    tags = ("text",)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"who": random.choice(["Ada", "Zoë"])}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Greet {parameters['who']}."

    def setup(self, context: TaskContext) -> None:
        del context

    def evaluate(self, context: TaskContext) -> Grade:
        return Grade(float(context.answer == f"Hello {context.parameters['who']}"))

    def oracle(self, context: TaskContext) -> str:
        return f"Hello {context.parameters['who']}"


TOML = """
name = "greet-somebody"
level = 2
tags = ["text", "terminal"]
instruction = "Greet {who} {times} times from {place}."
programs = ["true"]
network = ["example.org"]
public_since = "2024-04-11"
screen = [800, 600]
masks = [[700, 0, 100, 24]]

[limits]
steps = 5

[resources]
memory = "256M"

[parameters]
who = ["Ada", "Zoë", "孔"]
times = { from = 2, to = 4 }
place = "here"
"""

CODE = """
def parameters(random):
    return {"secret": random.randint(1, 10**9)}

def setup(context):
    context.write("a/word.txt", context.parameters["who"])

def evaluate(context):
    return context.text("a/word.txt") == context.parameters["who"] * context.parameters["times"]

def oracle(context):
    context.write("a/word.txt", context.parameters["who"] * context.parameters["times"])
    return "done"
"""


def folder(place: Path, toml: str | None = TOML, code: str | None = CODE) -> str:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in (("task.toml", toml), ("task.py", code)):
        if text is not None:
            (place / name).write_text(text)
    return str(place)


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    with Desktop(MemoryBackend((320, 200))) as desktop:
        yield desktop


# --- finding ---


def test_none_named_means_all_that_ship_in_the_order_of_level_and_name() -> None:
    found = find_tasks()
    assert [task.name for task in found] == list(built_in())
    assert [(task.level, task.name) for task in found] == sorted((task.level, task.name) for task in found)


def test_tasks_are_chosen_by_name_pattern_tag_and_level_each_once(tmp_path: Path) -> None:
    names = list(built_in())
    assert [task.name for task in find_tasks([names[-1], names[0], names[-1]])] == [names[-1], names[0]]
    assert [task.name for task in find_tasks(["text-*"])] == [name for name in names if name.startswith("text-")]
    assert all("files" in task.tags for task in find_tasks(["tag:files"]))
    assert {task.level for task in find_tasks(["level:2"])} == {2}
    both = find_tasks([folder(tmp_path / "own"), "level:1"])
    assert both[0].name == "greet-somebody"
    assert len(both) == 1 + len(find_tasks(["level:1"]))


def test_a_class_is_named_by_its_module() -> None:
    (task,) = find_tasks([f"{__name__}:Greeting"])
    assert type(task).__name__ == "Greeting"
    assert instance(task, 3) == instance(task, 3)
    assert len({instance(task, seed)[0] for seed in range(50)}) == 50


def test_a_folder_says_what_a_task_is(tmp_path: Path) -> None:
    (task,) = find_tasks([folder(tmp_path / "own")])
    assert task.public_since == "2024-04-11"
    assert (task.level, task.tags, task.network, task.screen) == (2, ("text", "terminal"), ("example.org",), (800, 600))
    assert task.masks == ((700, 0, 100, 24),)
    assert task.limits == TaskLimits(steps=5)
    assert task.resources == Resources(memory=256 << 20)
    seen = [instance(task, seed)[1] for seed in range(60)]
    assert {each["who"] for each in seen} == {"Ada", "Zoë", "孔"}
    assert {each["times"] for each in seen} == {2, 3, 4}
    assert {each["place"] for each in seen} == {"here"}
    assert len({each["secret"] for each in seen}) == 60
    first = seen[0]
    assert task.instruction(first) == f"Greet {first['who']} {first['times']} times from here."


def test_the_code_of_a_folder_sets_up_evaluates_and_acts(tmp_path: Path, desktop: Desktop) -> None:
    (task,) = find_tasks([folder(tmp_path / "own")])
    context = TaskContext(desktop, instance(task, 0)[1], str(tmp_path))
    task.setup(context)
    assert task.evaluate(context) is False
    assert task.oracle(context) == "done"
    assert task.evaluate(context) is True


def test_a_folder_of_folders_has_all_their_tasks(tmp_path: Path) -> None:
    folder(tmp_path / "b", TOML.replace("greet-somebody", "second"))
    folder(tmp_path / "a", TOML.replace("greet-somebody", "first"))
    (tmp_path / "notes").mkdir()
    assert [task.name for task in find_tasks([str(tmp_path)])] == ["first", "second"]


def test_the_same_folder_twice_is_one_task_and_a_changed_one_is_another(tmp_path: Path) -> None:
    where = folder(tmp_path / "own")
    (one,) = find_tasks([where, where + "/"])
    before = digest(one)
    assert digest(find_tasks([where])[0]) == before
    (tmp_path / "own" / "data.txt").write_text("more")
    (tmp_path / "own" / "task.py").write_text(CODE + "\n# another\n")
    assert digest(find_tasks([where])[0]) != before


def test_the_digest_of_a_class_is_that_of_its_module_and_what_it_takes_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    whole = (
        Path(__file__)
        .read_text()
        .split("TOML = ", maxsplit=1)[0]
        .replace("class Greeting", "from ._words import W\nclass Greeting")
    )
    seen = []
    for package, words in (("own_tasks_a", "W = 1"), ("own_tasks_b", "W = 1"), ("own_tasks_c", "W = 2")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "_words.py").write_text(f"{words}\ndef f(): pass\n")
        (tmp_path / package / "greeting.py").write_text(whole.replace("import W\n", "import W, f\n"))
        seen.append(digest(find_tasks([f"{package}.greeting:Greeting"])[0]))
    assert seen[0] == seen[1] != seen[2]
    # What two copies of one task are is one task, as long as they are the same.
    assert len(find_tasks(["own_tasks_a.greeting:Greeting", "own_tasks_b.greeting:Greeting"])) == 1
    with pytest.raises(TaskError, match="two tasks have this name"):
        find_tasks(["own_tasks_a.greeting:Greeting", "own_tasks_c.greeting:Greeting"])


def test_every_task_that_ships_has_parameters_that_differ() -> None:
    for task in find_tasks():
        seen = {json.dumps(instance(task, seed)[1], sort_keys=True) for seed in range(20)}
        assert len(seen) >= 8, task.name


# --- what is wrong ---


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("text-write-nota", r"task text-write-nota: there is no such task.*do you mean text-write-note"),
        ("zzzzzz", r"there is no such task.*deskhand tasks list"),
        ("zz-*", r"no task's name matches"),
        ("tag:nonsense", r"no task has it.*files.*text"),
        ("level:4", r"no task has it.*1, 2, 3"),
        ("./nowhere/at-all", r"there is no such folder"),
        ("no_such_module:Task", r"there is no module no_such_module.*PYTHONPATH"),
        ("json:Task", r"module json has no Task"),
        ("json:JSONEncoder", r"not a class of tasks"),
        (f"{__name__}:Nothing", r"has no Nothing.*Greeting"),
    ],
)
def test_who_is_unknown_is_named_with_those_that_are_near(wanted: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        find_tasks([wanted])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name = ", "nme = "), r"there is no part nme.*instruction.*name"),
        (('name = "greet-somebody"', 'name = "Greet Somebody"'), r"name: it has lower-case letters"),
        (("level = 2", "level = 7"), r"task greet-somebody: level: it is 7.*1, 2 or 3"),
        (("level = 2", "level ="), r"task.toml is not TOML: .*line 3"),
        (('tags = ["text", "terminal"]', 'tags = "text"'), r"tags: it is 'text'.*tuple of words"),
        (("instruction", "# instruction"), r"instruction: it is None.*write instruction"),
        (("{times} times", "{time} times"), r"instruction: there is no parameter 'time'.*who, times, place, secret"),
        (("{times} times", "{times times"), r"instruction: .*cannot be filled in.*\{\{ \}\}"),
        (("steps = 5", "steps = 0"), r"limits: it is TaskLimits\(steps=0.*above 0"),
        (("steps = 5", "moves = 5"), r"limits: there is no 'moves'.*steps, seconds"),
        (('"256M"', '"256 potatoes"'), r"resources: it is .*potatoes"),
        (('"256M"', '"20G"'), r"resources: .*none is more than the most"),
        (('"2024-04-11"', '"2024-4-11"'), r"public_since: it is '2024-4-11'.*a day such as"),
        (('"2024-04-11"', "2024-04-11"), r"public_since: it is datetime.date.*a day such as"),
        (("[800, 600]", "[800]"), r"screen: it is \(800,\).*width and height"),
        (("[[700, 0, 100, 24]]", "5"), r"masks: it is 5.*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[700, 0, 100, 24]"), r"masks: it is .*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[[700, 0, 100]]"), r"masks: it is .*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[[700, 0, 101, 24]]"), r"masks: it is .*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[[-1, 0, 100, 24]]"), r"masks: it is .*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[[700, 0, 0, 24]]"), r"masks: it is .*x, y, width, height.*800x600"),
        (("[[700, 0, 100, 24]]", "[[700, 0.5, 100, 24]]"), r"masks: it is .*x, y, width, height.*800x600"),
        (('["example.org"]', '"everything"'), r"network: it is 'everything'.*none"),
        (('["Ada", "Zoë", "孔"]', "[]"), r"parameters: who is an empty list"),
        (("from = 2, to = 4", "from = 9, to = 4"), r"parameters: times is from 9 to 4.*the smaller one"),
        (("from = 2, to = 4", 'from = 2, to = "x"'), r"parameters: times is .*integers"),
    ],
)
def test_a_wrong_part_of_a_folder_is_named_with_what_it_must_be(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in TOML
    where = folder(tmp_path / "own", TOML.replace(*change, 1))
    with pytest.raises(TaskError, match=message):
        find_tasks([where])


@pytest.mark.parametrize(
    ("toml", "code", "message"),
    [
        (None, CODE, r"has a task\.toml"),
        (
            TOML,
            None,
            r"task greet-somebody: it has no task\.py.*setup\(context\), evaluate\(context\), oracle\(context\)",
        ),
        (TOML, "def setup(context): pass", r"task\.py lacks evaluate\(context\), oracle\(context\).*def evaluate"),
        (TOML, "x = 1\nimport no_such_thing\n", r"task\.py raises ModuleNotFoundError.*task\.py, line 2\)"),
        (
            TOML,
            "import sys\nsys.exit('none of that')\n",
            r"task\.py raises SystemExit: none of that \(.*task\.py, line 2\)",
        ),
        (TOML, "raise SystemExit\n", r"task\.py raises SystemExit \(.*task\.py, line 1\)"),
        (TOML, "def setup(context:\n", r"task\.py raises SyntaxError.*task\.py, line 1\)"),
        (
            TOML,
            CODE.replace('{"secret"', '1 / 0, {"secret"'),
            r"parameters\(\) raises ZeroDivisionError.*task\.py, line 3\)",
        ),
        (
            TOML,
            "import sys\n" + CODE.replace('{"secret"', 'sys.exit(3), {"secret"'),
            r"parameters: for seed 0 raises SystemExit: 3",
        ),
        (
            TOML,
            CODE.replace('return {"secret"', 'return 5, {"secret"'),
            r"parameters\(\) of task\.py gives.*return a dict",
        ),
        (
            TOML,
            "import os\n" + CODE.replace("random.randint(1, 10**9)", "os.urandom(8).hex()"),
            r"seed 0 gives different values each time",
        ),
        (TOML, CODE.replace("random.randint(1, 10**9)", "{1, 2}"), r"JSON cannot express them"),
    ],
)
def test_a_missing_part_of_a_folder_is_named_and_so_is_the_line_of_its_code(
    tmp_path: Path, toml: str | None, code: str | None, message: str
) -> None:
    where = folder(tmp_path / "own", toml, code)
    with pytest.raises(TaskError, match=message):
        find_tasks([where])


def test_code_that_ends_the_process_is_a_task_that_is_wrong_and_a_ctrl_c_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ends_at_once.py").write_text("x = 1\nraise SystemExit(0)\n")
    with pytest.raises(TaskError, match=r"importing its module raises SystemExit: 0 \(.*ends_at_once\.py, line 2\)"):
        find_tasks(["ends_at_once:Task"])
    interrupted = "raise KeyboardInterrupt\n"
    (tmp_path / "is_interrupted.py").write_text(interrupted)
    for wanted in ("is_interrupted:Task", folder(tmp_path / "own", TOML, interrupted)):
        with pytest.raises(KeyboardInterrupt):
            find_tasks([wanted])

    class Ends(Greeting):
        def __init__(self) -> None:
            sys.exit("made for nothing")

    monkeypatch.setattr(sys.modules[__name__], "Ends", Ends, raising=False)
    with pytest.raises(TaskError, match=r"making it raises SystemExit: made for nothing"):
        find_tasks([f"{__name__}:Ends"])


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    where = Path(folder(tmp_path / "own"))
    (where / "task.toml").unlink()
    (where / "task.toml").symlink_to("task.toml")
    with pytest.raises(TaskError, match=r"task\.toml cannot be read: Too many levels"):
        load_folder(where)
    with pytest.raises(TaskError, match=r"name: it has lower-case letters"):
        find_tasks([folder(tmp_path / "null", TOML.replace("greet-somebody", r"greet\u0000you"))])


def test_a_further_file_of_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    where = Path(folder(tmp_path / "own"))
    (task,) = find_tasks([str(where)])
    # A file that nobody can read, whatever rights he has: nothing is mapped at its beginning.
    (where / "more").symlink_to("/proc/self/mem")
    with pytest.raises(TaskError, match=r"task greet-somebody: .*/own/more cannot be read: Input/output error"):
        digest(task)


def test_an_error_of_a_folders_code_has_its_place_and_one_of_the_desktop_stays_what_it_is(
    tmp_path: Path, desktop: Desktop
) -> None:
    code = CODE.replace("def setup(context):", "def setup(context):\n    context.desktop.windows.list()")
    code = code.replace("def oracle(context):", "def oracle(context):\n    return [].pop()")
    (task,) = find_tasks([folder(tmp_path / "own", TOML, code)])
    context = TaskContext(desktop, instance(task, 0)[1], str(tmp_path))
    with pytest.raises(TaskError, match=r"oracle\(\) raises IndexError: pop from empty list \(.*task\.py, line 13\)"):
        task.oracle(context)
    with pytest.raises(UnsupportedAction, match="windows"):
        task.setup(context)


def test_a_class_that_lacks_a_part_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half(Task):
        name = "half"

        def instruction(self, parameters: Mapping[str, Any]) -> str:
            return str(parameters)

        def setup(self, context: TaskContext) -> None:
            pass

    class Wrong(Greeting):
        programs: ClassVar[Any] = "mousepad"

    module = sys.modules[__name__]
    monkeypatch.setattr(module, "Half", Half, raising=False)
    with pytest.raises(TaskError, match=r"Half lacks evaluate, oracle: write each as a method"):
        find_tasks([f"{__name__}:Half"])
    with pytest.raises(TaskError, match=r"programs: it is 'mousepad'"):
        check_parts(Wrong())


@pytest.mark.parametrize("masks", [((0, 0, 1281, 1),), ((0, 0, True, 1),), (0, 0, 9, 9), "none", None])
def test_masks_of_a_class_are_within_its_screen(monkeypatch: pytest.MonkeyPatch, masks: object) -> None:
    monkeypatch.setattr(Greeting, "masks", masks)
    with pytest.raises(TaskError, match=r"task greeting: masks: it is .*\(x, y, width, height\).*1280x800"):
        find_tasks([f"{__name__}:Greeting"])
    for fitting in ((), [[0, 0, 1280, 800]], ((1279, 799, 1, 1), (0, 0, 9, 9))):
        monkeypatch.setattr(Greeting, "masks", fitting)
        assert find_tasks([f"{__name__}:Greeting"])


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    first, second = folder(tmp_path / "a"), folder(tmp_path / "b", code=CODE + "\n# another\n")
    with pytest.raises(TaskError, match=r"two tasks have this name: .*/a and .*/b"):
        find_tasks([first, second])


# --- the command line ---


def cli(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["tasks", *words])
    if isinstance(result.exception, TaskError):
        return 1, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_the_list_has_every_task_for_people_and_for_programs() -> None:
    code, text = cli("list")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[1:]] == list(built_in())
    code, text = cli("list", "--json", "tag:files")
    assert [each["name"] for each in json.loads(text)] == [task.name for task in find_tasks(["tag:files"])]


def test_show_says_what_an_agent_is_told_for_a_seed(tmp_path: Path) -> None:
    where = folder(tmp_path / "own")
    code, text = cli("show", where, "--seed", "4")
    (task,) = find_tasks([where])
    number, parameters = instance(task, 4)
    assert code == 0
    assert task.instruction(parameters) in text
    assert str(number) in text
    assert "5 steps" in text
    assert "masks    700,0,100,24\n" in text
    code, text = cli("show", where, "--seed", "4", "--json")
    assert json.loads(text)["parameters"] == parameters
    assert json.loads(text)["masks"] == [[700, 0, 100, 24]]
    code, text = cli("show", "text-write-note")
    assert "masks    none\n" in text
    code, text = cli("show", "level:2")
    assert code == 2
    assert f"means {len(find_tasks(['level:2']))} tasks" in text
    code, text = cli("show", "no-such-task")
    assert code == 1
    assert "there is no such task" in text


def test_what_ships_is_found_whatever_else_was_imported() -> None:
    catalogue.built_in.cache_clear()
    assert [task.name for task in find_tasks()] == list(built_in())
