"""The tasks that ship: what each of them takes for done, and that its oracle does it on a real desktop.

A sample is played here; `deskhand tasks check` tries all of them twenty times, as `make evidence` does.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import subprocess
import tarfile
import tracemalloc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.play.admission import admit
from deskhand.episodes.tasks.catalogue import built_in, find_tasks, instance
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.suite import files, spreadsheet, terminal, text
from deskhand.episodes.tasks.suite._acting import wait_until
from deskhand.episodes.tasks.suite._ods import cell_name, read_sheets, write_sheets
from deskhand.episodes.tasks.task import Grade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.episodes.tasks.task import Task

OWN = ("text", "files", "terminal", "spreadsheet")
# One of each application, and of each way to leave a result: what an application needs shows nowhere else.
SAMPLE = (
    "browser-form",
    "drawing-labels",
    "drawing-shapes",
    "multi-config-run",
    "multi-pdf-form",
    "settings-files",
    "text-write-note",
    "files-rename",
    "terminal-make-tree",
    "sheet-total-by-kind",
)


# --- on real desktops ---


@pytest.mark.soak
@pytest.mark.rerun_once
def test_oracles_do_what_is_asked_and_nobody_does_it_by_doing_nothing() -> None:
    for admission in admit(find_tasks(SAMPLE), runs=1, desktops=2):
        assert admission.admitted, admission


# --- what is taken for done, without a desktop: setup leaves out the applications ---


class Played:
    """A task whose files are there, as they are before anybody has done anything."""

    def __init__(self, task: Task, home: Path, desktop: Desktop, seed: int) -> None:
        self.task = task
        self.parameters = instance(task, seed)[1]
        self.home = home
        self.desktop = desktop
        self.seen_twice = False
        task.setup(self.context())

    def context(self, answer: str | None = None) -> TaskContext:
        return TaskContext(self.desktop, self.parameters, str(self.home), answer)

    def grade(self, answer: str | None = None) -> Grade:
        grade = self.task.evaluate(self.context(answer))
        assert isinstance(grade, Grade)
        assert grade.reason
        # Twice is seen once for each: most of the time goes into the commands that look.
        assert self.seen_twice or grade == self.task.evaluate(self.context(answer))
        self.seen_twice = True
        return grade


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Played]]:
    for module, names in (
        (text, ("open_mousepad", "open_featherpad")),
        (files, ("open_pcmanfm",)),
        (terminal, ("open_terminal",)),
        (spreadsheet, ("open_calc",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, lambda *_: None)
    with contextlib.ExitStack() as held:
        count = iter(range(100))

        def make(name: str, seed: int = 0) -> Played:
            home = tmp_path / f"home{next(count)}"
            home.mkdir()
            desktop = held.enter_context(Desktop(MemoryBackend((64, 64))))
            return Played(find_tasks([name])[0], home, desktop, seed)

        yield make


@pytest.mark.parametrize("name", [name for name, task in built_in().items() if set(OWN) & set(task.tags)])
def test_instructions_name_what_is_evaluated_and_fit_their_parameters(name: str) -> None:
    task = find_tasks([name])[0]
    for seed in range(30):
        parameters = instance(task, seed)[1]
        told = task.instruction(parameters)
        assert "{" not in told
        assert told.strip() == told
        assert parameters == instance(task, seed)[1]


@pytest.mark.parametrize("seed", range(5))
def test_a_note_is_done_when_its_file_has_exactly_its_lines(play: Callable[..., Played], seed: int) -> None:
    played = play("text-write-note", seed)
    assert not played.grade().success
    file = played.home / played.parameters["file"]
    lines = played.parameters["lines"]
    for wrong in (lines[:-1], lines[::-1], [f" {line}" for line in lines], [line[:-1] for line in lines]):
        file.write_text("\n".join(wrong))
        assert played.grade().score == 0, wrong
    for right in ("\n".join(lines), "\n".join(lines) + "\n"):
        file.write_text(right)
        assert played.grade().success


def test_a_word_is_replaced_everywhere_or_not_at_all(play: Callable[..., Played]) -> None:
    played = play("text-replace-word")
    file = played.home / played.parameters["file"]
    before, old, new = file.read_text(), played.parameters["old"], played.parameters["new"]
    assert before.count(old) >= 4
    file.write_text(before.replace(old, new, 1))
    assert not played.grade().success
    file.write_text(before.replace(old, new))
    assert played.grade().success


def test_a_line_is_deleted_whole_and_alone(play: Callable[..., Played]) -> None:
    played = play("text-delete-line")
    file = played.home / played.parameters["file"]
    lines = file.read_text().splitlines()
    index = next(i for i, line in enumerate(lines) if line.startswith(played.parameters["who"]))
    for wrong in (
        lines,
        [*lines[:index], "", *lines[index + 1 :]],
        lines[:index],
        [*lines[1:]] if index else lines[:-1],
    ):
        file.write_text("\n".join(wrong))
        assert not played.grade().success
    file.write_text("\n".join([*lines[:index], *lines[index + 1 :]]))
    assert played.grade().success


@pytest.mark.parametrize("seed", range(5))
def test_new_entries_are_where_the_order_wants_them(play: Callable[..., Played], seed: int) -> None:
    played = play("text-insert-sorted", seed)
    file = played.home / played.parameters["file"]
    assert not played.grade().success
    file.write_text(file.read_text() + "\n".join(played.parameters["new"]))
    whole = played.grade()
    # At the end they are right only when they belong there, in this order.
    assert whole.success is (played.parameters["lines"][-3:] == played.parameters["new"])
    file.write_text("\n".join(sorted(played.parameters["lines"])))
    assert played.grade().success


def test_parts_are_merged_in_the_order_that_was_said_and_stay_as_they_are(play: Callable[..., Played]) -> None:
    played = play("text-merge-files")
    parts = played.parameters["parts"]
    file = played.home / played.parameters["file"]
    file.write_text("\n".join(line for name in sorted(parts, reverse=True) for line in parts[name]))
    assert played.grade().success is (list(parts) == sorted(parts, reverse=True))
    file.write_text("\n\n".join("\n".join(lines) for lines in parts.values()))
    assert not played.grade().success
    file.write_text("\n".join("\n".join(lines) for lines in parts.values()))
    assert played.grade().success
    (played.home / "Documents/parts" / next(iter(parts))).unlink()
    assert not played.grade().success


@pytest.mark.parametrize("seed", range(3))
def test_letters_go_to_those_who_owe_enough_and_to_nobody_else(play: Callable[..., Played], seed: int) -> None:
    played = play("text-letters", seed)
    template = (played.home / "Documents/template.txt").read_text()
    entries = [line.split("; ") for line in (played.home / "Documents/customers.txt").read_text().splitlines()]
    letters = {
        name.split()[-1]: template.replace("<name>", name).replace("<city>", city).replace("<amount>", amount)
        for name, city, amount in entries
        if int(amount) > played.parameters["least"]
    }
    assert 2 <= len(letters) <= 3
    for index, (surname, letter) in enumerate(letters.items(), start=1):
        assert not played.grade().success
        (played.home / "Letters" / f"{surname}.txt").write_text(letter)
        assert played.grade().score == pytest.approx(index / len(letters))
    (played.home / "Letters" / "Nobody.txt").write_text(letter)
    assert played.grade().score == 0


@pytest.mark.parametrize("seed", range(2))
def test_folders_have_their_names_and_places(play: Callable[..., Played], seed: int) -> None:
    played = play("files-make-folders", seed)
    folder, outer = played.home / "Documents", played.parameters["outer"]
    (folder / outer).mkdir()
    (folder / played.parameters["inner"]).mkdir()
    assert not played.grade().success
    (folder / played.parameters["inner"]).rename(folder / outer / played.parameters["inner"])
    assert played.grade().success
    next(path for path in folder.iterdir() if path.is_file()).unlink()
    assert not played.grade().success


def test_files_are_renamed_and_not_copied(play: Callable[..., Played]) -> None:
    played = play("files-rename")
    folder = played.home / "Documents"
    for old, new in played.parameters["renamed"].items():
        assert not played.grade().success
        shutil.copy(folder / old, folder / new)
        assert not played.grade().success
        (folder / old).unlink()
    assert played.grade().success


def test_the_largest_file_is_copied_and_not_moved(play: Callable[..., Played]) -> None:
    played = play("files-copy-largest")
    source, target = played.home / "Downloads", played.home / played.parameters["target"]
    by_size = sorted(source.iterdir(), key=lambda path: path.stat().st_size)
    shutil.copy(by_size[-2], target)
    assert not played.grade().success
    (target / by_size[-2].name).unlink()
    shutil.copy(by_size[-1], target)
    assert played.grade().success
    by_size[-1].unlink()
    assert not played.grade().success


@pytest.mark.parametrize("seed", range(2))
def test_what_is_older_goes_and_the_rest_stays(play: Callable[..., Played], seed: int) -> None:
    played = play("files-delete-old", seed)
    folder = played.home / "Documents"
    old = [path for path in folder.iterdir() if _year(path) < played.parameters["year"]]
    assert 2 <= len(old) <= 4
    for path in old:
        assert not played.grade().success
        path.unlink()
    assert played.grade().success
    next(folder.iterdir()).unlink()
    assert not played.grade().success


def _year(path: Path) -> int:
    return int(subprocess.check_output(["date", "-r", path, "+%Y"], text=True))


@pytest.mark.parametrize("seed", range(2))
def test_files_of_two_kinds_are_moved_into_their_folders(play: Callable[..., Played], seed: int) -> None:
    played = play("files-sort-by-kind", seed)
    desk = played.home / "Desk"
    for folder, extension in played.parameters["moved"].items():
        assert not played.grade().success
        for path in desk.glob(f"*.{extension}"):
            path.rename(desk / folder / path.name)
    assert played.grade().success
    rest = next(path for path in desk.iterdir() if path.is_file())
    rest.rename(desk / folder / rest.name)
    assert not played.grade().success


@pytest.mark.parametrize("seed", range(2))
def test_a_tidy_project_has_all_four_things_done(play: Callable[..., Played], seed: int) -> None:
    played = play("files-tidy-project", seed)
    folder, parameters = played.home / "Project", played.parameters
    for year in parameters["years"]:
        (folder / year).mkdir()
    for name in parameters["bills"]:
        assert not played.grade().success
        (folder / name).rename(folder / name.removesuffix(".txt").split()[-1] / name)
    assert not played.grade().success
    (folder / parameters["draft"]).rename(folder / parameters["final"])
    assert not played.grade().success
    (folder / parameters["rest"]).unlink()
    assert played.grade().success


@pytest.mark.parametrize("seed", range(3))
def test_lines_are_counted_and_nothing_else_is_written(play: Callable[..., Played], seed: int) -> None:
    played = play("terminal-count-lines", seed)
    log = (played.home / "logs" / played.parameters["log"]).read_text()
    count = sum(line.startswith(played.parameters["word"]) for line in log.splitlines())
    for wrong in (str(count + 1), f"{count} lines", "", "-"):
        (played.home / "answer.txt").write_text(wrong)
        assert not played.grade().success
    (played.home / "answer.txt").write_text(f"{count}\n")
    assert played.grade().success


def test_a_tree_has_its_folders_and_its_line(play: Callable[..., Played]) -> None:
    played = play("terminal-make-tree")
    folder = played.home / played.parameters["path"]
    for name in played.parameters["siblings"]:
        (folder / name).mkdir(parents=True)
    assert not played.grade().success
    file = folder / played.parameters["file"]
    file.write_text(played.parameters["line"][:-1])
    assert not played.grade().success
    file.write_text(played.parameters["line"] + "\n")
    assert played.grade().success


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_names_the_busiest_address_and_no_other(play: Callable[..., Played], seed: int) -> None:
    played = play("terminal-busiest-address", seed)
    ends = [line.split()[-1] for line in (played.home / "logs/access.log").read_text().splitlines()]
    ranked = sorted(set(ends), key=ends.count, reverse=True)
    best, second = ranked[:2]
    assert ends.count(best) > ends.count(second)
    for wrong in (None, "", "I do not know", second, f"{best} or {second}", f"1{best}", f"{best}.7"):
        assert not played.grade(wrong).success, wrong
    for right in (best, f"It is {best}.", f"**{best}** has the most ({ends.count(best)} lines), {best}!"):
        assert played.grade(right).success, right


def test_the_stuck_worker_has_ended_and_no_other(play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch) -> None:
    # The workers are started by the terminal, which is not there: they are started here, once it would be.
    started: dict[str, subprocess.Popen[bytes]] = {}

    def open_terminal(context: TaskContext) -> None:
        for queue in context.parameters["state"]:
            command = [f"{context.home}/bin/worker", queue]
            started[queue] = subprocess.Popen(command, env={**os.environ, "HOME": context.home})

    monkeypatch.setattr(terminal, "open_terminal", open_terminal)
    try:
        played = play("terminal-stop-worker")
        failed = {queue: int((played.home / f"queues/{queue}.state").read_text().split()[-1]) for queue in started}
        stuck = max(failed, key=lambda queue: failed[queue])
        assert not played.grade().success
        started[stuck].kill()
        started[stuck].wait()
        wait_until(lambda: played.grade().success, "the grade without the stuck worker")
        other = next(queue for queue in started if queue != stuck)
        started[other].kill()
        started[other].wait()
        assert not played.grade().success
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def test_a_configuration_is_mended_and_nothing_else(play: Callable[..., Played]) -> None:
    played = play("terminal-fix-config")
    project = played.home / played.parameters["project"]
    build = [str(project / "build.sh"), "project.conf"]

    def mend(key: str, value: object) -> None:
        lines = (project / "project.conf").read_text().splitlines()
        lines = [f"{key} = {value}" if line.startswith(key) else line for line in lines]
        (project / "project.conf").write_text("\n".join(lines) + "\n")

    assert subprocess.run(build, check=False, capture_output=True).returncode == 2
    mend("source", played.parameters["source"])
    assert subprocess.run(build, check=False, capture_output=True).returncode == 3
    mend("pages", len(played.parameters["pages"]))
    assert not played.grade().success
    subprocess.run(build, check=True, capture_output=True)
    assert played.grade().success
    # Whoever changes the pages, or what checks them, has not mended the configuration.
    page = project / played.parameters["source"] / "00.page"
    page.write_text(page.read_text() + "more\n")
    assert not played.grade().success


@pytest.mark.parametrize("folder", ["", "logs/"])
def test_a_report_of_logs_has_its_table_and_its_archive(play: Callable[..., Played], folder: str) -> None:
    played = play("terminal-log-report")
    logs = played.parameters["logs"]
    ends = [line.split()[-1] for log in logs.values() for line in log.splitlines()]
    ranked = sorted(set(ends), key=ends.count, reverse=True)
    assert len({ends.count(address) for address in ranked}) == len(ranked)
    table = played.home / played.parameters["file"]
    table.write_text("".join(f"{address},{ends.count(address)}\n" for address in ranked[:3]))
    assert not played.grade().success
    with tarfile.open(played.home / played.parameters["archive"], "w:gz") as archive:
        for name, content in logs.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    assert not played.grade().success
    shutil.rmtree(played.home / "logs")
    assert played.grade().success
    table.write_text("".join(f"{address},{ends.count(address)}\n" for address in ranked[2::-1]))
    assert not played.grade().success
    (played.home / played.parameters["archive"]).write_bytes(b"no archive")
    assert not played.grade().success


# --- spreadsheets ---


def put(played: Played, sheet: str, values: dict[str, Any]) -> None:
    """Write values into the cells of the file, as an application would."""
    found = read_sheets((played.home / played.parameters["file"]).read_bytes())
    assert found is not None
    found[sheet] |= values
    size = range(40)
    rows = {
        name: [[cells.get(cell_name(row, column), "") for column in range(12)] for row in size]
        for name, cells in found.items()
    }
    (played.home / played.parameters["file"]).write_bytes(write_sheets(rows))


def test_values_are_entered_where_they_belong(play: Callable[..., Played]) -> None:
    played = play("sheet-enter-values")
    new = played.parameters["new"]
    cells = {
        cell_name(row, column): value for row, line in enumerate(new, start=1) for column, value in enumerate(line)
    }
    put(played, "Sheet1", dict(list(cells.items())[:-1]))
    assert not played.grade().success
    put(played, "Sheet1", {"C" + str(len(new) + 1): str(new[-1][2])})
    assert not played.grade().success, "a text that looks like a number is none"
    put(played, "Sheet1", cells)
    assert played.grade().success
    put(played, "Sheet1", {"D9": "more"})
    assert not played.grade().success
    (played.home / played.parameters["file"]).write_bytes(b"no spreadsheet")
    assert not played.grade().success


@pytest.mark.parametrize("seed", range(3))
def test_a_total_is_that_of_its_kind(play: Callable[..., Played], seed: int) -> None:
    played = play("sheet-total-by-kind", seed)
    amounts = [row[2] for row in played.parameters["rows"][1:] if row[1] == played.parameters["kind"]]
    put(played, "Sheet1", {"E1": sum(amounts) + 0.01, "E2": len(amounts)})
    assert not played.grade().success
    put(played, "Sheet1", {"E1": sum(amounts)})
    assert played.grade().success


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_sorted_as_rows(play: Callable[..., Played], seed: int) -> None:
    played = play("sheet-sort-rows", seed)
    header, *rows = played.parameters["rows"]
    column, falling = played.parameters["column"], played.parameters["falling"]
    assert not played.grade().success

    def store(rows: list[list[Any]]) -> None:
        (played.home / played.parameters["file"]).write_bytes(write_sheets({"Sheet1": [header, *rows]}))

    store(sorted(rows, key=lambda row: row[column], reverse=not falling))
    assert not played.grade().success
    alone = sorted((row[column] for row in rows), reverse=falling)
    store([[*row[:column], value, *row[column + 1 :]] for row, value in zip(rows, alone, strict=True)])
    assert not played.grade().success
    store(sorted(rows, key=lambda row: row[column], reverse=falling))
    assert played.grade().success


def test_a_table_is_exported_with_its_change(play: Callable[..., Played]) -> None:
    played = play("sheet-export-csv")
    file, rows = played.home / played.parameters["csv"], played.parameters["rows"]
    changed = [[*row[:2], played.parameters["points"]] if row[0] == played.parameters["who"] else row for row in rows]
    for wrong, mark in ((rows, ","), (changed, ";"), (changed[:-1], ",")):
        file.write_text("\n".join(mark.join(map(str, row)) for row in wrong))
        assert not played.grade().success
    file.write_bytes("\n".join(",".join(map(str, row)) for row in changed).encode("utf-16"))
    assert not played.grade().success
    file.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in changed))
    assert played.grade().success


@pytest.mark.parametrize("seed", range(3))
def test_orders_have_prices_amounts_and_one_total(play: Callable[..., Played], seed: int) -> None:
    played = play("sheet-order-totals", seed)
    price = dict(played.parameters["prices"])
    orders = played.parameters["orders"]
    values: dict[str, Any] = {}
    for row, (_, item, count) in enumerate(orders, start=2):
        values |= {f"D{row}": price[item], f"E{row}": round(count * price[item], 2)}
    put(played, "Orders", values)
    assert not played.grade().success
    total = sum(count * price[item] for who, item, count in orders if who == played.parameters["customer"])
    put(played, "Orders", {"H1": total, "G1": "Total"})
    assert played.grade().success
    put(played, "Prices", {"B2": 1})
    assert not played.grade().success


def test_cells_that_repeat_are_read_as_often_as_they_say() -> None:
    data = write_sheets({"A & <B>": [["x", "", 1.5], [], ["", "ü"]]})
    assert read_sheets(data) == {"A & <B>": {"A1": "x", "C1": 1.5, "B3": "ü"}}
    assert read_sheets(None) is None
    assert read_sheets(data[:-40]) is None
    assert cell_name(0, 0) == "A1"
    assert cell_name(9, 27) == "AB10"


def test_what_an_agent_packs_is_unpacked_within_bounds() -> None:
    """A header of 256 MiB in 260 kB, where an archive of logs was asked for."""
    header = tarfile.TarInfo("./PaxHeaders/x")
    header.type, header.size = tarfile.XHDTYPE, 256 << 20
    data = gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(header.size))
    context: Any = SimpleNamespace(parameters={"archive": "x"}, read=lambda _: data)
    tracemalloc.start()
    try:
        assert terminal.LogReport()._packed(context) == {}
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
