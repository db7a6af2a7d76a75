"""The page of a run, from a run that really was, in a real browser."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from conftest import need
from deskhand import KeyPress, LeftClick, PolicyDenied, Pool, Type
from deskhand.cli.group import commands
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.report.page import write_report
from deskhand.errors import EpisodeError, FileError
from episodes.dots import Dots, painted

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode


def pointing(episode: Episode) -> str:
    episode.note("I look for </script><b>the point</b>.")
    x, y = (int(each) for each in episode.instruction.removeprefix("Click at ").rstrip(".").split(", "))
    episode.desktop.perform(LeftClick((x, y)))
    episode.spend(input=1200, output=34, cost=0.25)
    return "It is done."


def typing(episode: Episode) -> None:
    episode.desktop.perform(Type("no click at all"), KeyPress(["Return"]))


def denied(episode: Episode) -> None:
    raise PolicyDenied("left_mouse_click", f"not here: {episode.instruction}")


def play(folder: Path, agents: list[Agent]) -> Path:
    """A run with an episode for each agent."""
    folder.mkdir()
    manifest = {"version": 1, "deskhand": "0", "agent": "x", "tasks": {"dots": ""}, "seeds": len(agents), "repeats": 1}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "backend": "memory"}))
    with Pool(painted, size=1) as pool:
        for seed, agent in enumerate(agents):
            key = Key("dots", "", seed, 0)
            with FrameStore(folder / "frames") as frames:
                record = Recorder(folder / "ep" / str(key) / "attempt-1", frames)
                attempt(Dots(), key, pool, agent, record)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("report") / "first", [pointing, typing, denied])


def shown(page: Path, folder: Path, anchor: str = "") -> str:
    """The page's document after its scripts have run."""
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder}/chromium",
        "--virtual-time-budget=5000",
    ]
    argv = [need("chromium", "chromium"), *flags, "--dump-dom", f"file://{page}{anchor}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_page_needs_nothing_but_itself(run: Path) -> None:
    page = write_report(run)
    assert page == run / "report.html"
    text = page.read_text()
    assert re.findall(r'<[^>]+\s(?:src|href)\s*=\s*["\']?(?!data:|#)[^"\'\s>]+', text) == []
    assert "@import" not in text


def test_an_episode_opens_with_its_pictures_and_what_was_done_in_them(run: Path, tmp_path: Path) -> None:
    page = write_report(run, tmp_path / "page.html")
    closed = shown(page, tmp_path)
    opened = shown(page, tmp_path, "#dots.s0.r0")
    # Pictures are put in when an episode is opened, and only into that one.
    assert len(re.findall(r'<img[^>]+ src="data:image/webp', closed)) == 0
    assert len(re.findall(r'<img[^>]+ src="data:image/webp', opened)) >= 3
    inside = opened[opened.index('<details id="dots.s0.r0"') : opened.index('<details id="dots.s1.r0"')]
    x, y = map(int, re.findall(r"Click at (\d+), (\d+)\.", inside)[0])
    assert f'<circle cx="{x}.0" cy="{y}.0" r="16">' in inside
    assert re.search(r'<rect x="\d+" y="\d+" width="\d+" height="\d+">', inside)
    assert "1200 tokens in, 34 out, cost 0.25" in inside
    assert "It is done." in inside
    # What a model says is text, whatever it looks like.
    assert "&lt;/script&gt;&lt;b&gt;the point&lt;/b&gt;" in inside


def test_the_numbers_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "page.html").read_text()
    assert "3 of 3 episodes" in text
    assert "<b>1 of 3</b>" in text
    assert "policy denied" in text
    found = CliRunner().invoke(commands, ["report", str(run), "--json"], standalone_mode=False)
    told = json.loads(found.stdout)
    assert (told["done"], told["valid"], told["successes"]) == (3, 3, 1)
    assert told["strict"]["value"] == pytest.approx(1 / 3)
    assert told["noted"] == {"policy_denied": 1}
    assert told["tokens"] == {"input": 1200, "output": 34}


def test_what_was_used_in_vain_is_told_beside(tmp_path: Path) -> None:
    run = play(tmp_path / "again", [pointing])
    counts = run / "ep" / "dots.s0.r0" / "attempt-1"
    assert "do not count" not in write_report(run).read_text().partition("<h2>")[0]
    shutil.copytree(counts, counts.with_name("attempt-1~1"))
    text = " ".join(write_report(run).read_text().split())
    assert (
        "<b>1200 / 34</b> <span>cost 0.25; besides 1200 / 34, cost 0.25, in attempts that do not count</span>" in text
    )
    found = CliRunner().invoke(commands, ["report", str(run), "--json"], standalone_mode=False)
    assert json.loads(found.stdout)["beside"] == {"input": 1200, "output": 34, "cost": 0.25}


def test_two_runs_side_by_side(run: Path, tmp_path: Path) -> None:
    better = play(tmp_path / "second", [pointing, pointing, pointing])
    found = CliRunner().invoke(commands, ["report", str(better), str(run)], standalone_mode=False)
    assert "second/report.html" in found.stdout
    text = (better / "report.html").read_text()
    assert "Beside first" in text
    assert "+66.7" in text
    assert "before: 0 %" in text
    assert "In the 3 episodes that are valid in both, second scores" in text
    assert text.count("<td>Score, valid only</td>") == 1


def test_pictures_of_what_failed_only(run: Path, tmp_path: Path) -> None:
    sizes = {}
    for frames in ("all", "failed", "none"):
        page = write_report(run, tmp_path / f"{frames}.html", frames=frames)  # type: ignore[arg-type] # they are
        sizes[frames] = page.read_text().count("data:image/webp")
    assert sizes["all"] > sizes["failed"] > sizes["none"] == 0


def test_a_run_without_results_yet_has_a_page(tmp_path: Path) -> None:
    run = play(tmp_path / "empty", [])
    (run / "manifest.json").write_text(json.dumps({**json.loads((run / "manifest.json").read_text()), "seeds": 2}))
    assert "2 episodes without a result yet" in write_report(run).read_text()


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "copy", ignore=shutil.ignore_patterns("report.html")))


def test_an_episode_whose_record_is_damaged_does_not_cost_the_page(run: Path, tmp_path: Path) -> None:
    copy = copied(run, tmp_path)
    torn, strange = (copy / "ep" / f"dots.s{seed}.r0" / "attempt-1" / "events.jsonl" for seed in (0, 1))
    torn.write_bytes(torn.read_bytes()[:-9])
    strange.write_bytes(strange.read_bytes() + b"[]\n")
    text = write_report(copy).read_text()
    assert text.count("Not all of it can be shown: the record ends in the middle of an event") == 1
    assert text.count("is not an event") == 1
    assert "1200 tokens in, 34 out, cost 0.25" in text


def test_pictures_that_are_damaged_do_not_cost_the_page(run: Path, tmp_path: Path) -> None:
    copy = copied(run, tmp_path)
    (file,) = (copy / "frames").glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE tiles SET data = x'00'")
        connection.commit()
    text = write_report(copy).read_text()
    assert text.count("Not all of it can be shown: the frames in ") == 3
    assert "data:image/webp" not in text


def test_what_has_no_number_has_none_on_the_page(tmp_path: Path) -> None:
    run = play(tmp_path / "invalid", [pointing])
    (file,) = run.glob("ep/*/attempt-1/result.json")
    result = json.loads(file.read_text())
    file.write_text(json.dumps({**result, "valid": False, "success": False, "score": None, "cause": "desktop_lost"}))
    text = write_report(run).read_text()
    row = text[text.index("<tr><td>dots</td>") :]
    assert re.findall(r'<td class="n[^>]*>([^<]*)</td>', row[: row.index("</tr>")])[1:] == [
        "0 of 1",
        "–",
        "1",
        "–",
        "–",
    ]
    assert "pass@" not in text


def test_of_how_many_tasks_a_number_is(run: Path) -> None:
    assert re.search(r"pass@1</span><b>33.3 %</b>\s*<span>one try, tasks: 1</span>", write_report(run).read_text())


def test_facts_are_parted_and_not_begun_by_points(run: Path) -> None:
    facts = re.findall(r'<p class="facts">([^<]*)</p>', write_report(run).read_text())
    assert any(" · 1 area changed · " in each for each in facts)
    assert [each for each in facts if not re.match(r"[a-z]", each)] == []


def test_a_page_that_has_no_place_is_refused_before_anything_is_read(run: Path, tmp_path: Path) -> None:
    read: list[int] = []
    with pytest.raises(EpisodeError, match=r"nowhere is not a directory: x\.html"):
        write_report(run, tmp_path / "nowhere" / "x.html", progress=lambda done, _all: read.append(done))
    assert read == []


def test_it_links_into_the_playback_of_each_attempt(run: Path, tmp_path: Path) -> None:
    mine = copied(run, tmp_path)
    attempts = mine / "ep" / "dots.s0.r0"
    # One that was stopped, and one that is tried again and counts.
    shutil.copytree(attempts / "attempt-1", attempts / "attempt-1~1")
    shutil.copytree(attempts / "attempt-1", attempts / "attempt-2")
    result = json.loads((attempts / "attempt-2" / "result.json").read_text())
    (attempts / "attempt-2" / "result.json").write_text(json.dumps({**result, "attempt": 2}))
    assert "playback" not in write_report(mine).read_text()
    for _ in range(2):  # a report that is made again replaces them
        found = CliRunner().invoke(commands, ["-q", "report", str(mine), "--playback"], catch_exceptions=False)
        assert found.exit_code == 0
    opened = shown(mine / "report.html", tmp_path, "#dots.s0.r0")
    inside = opened[opened.index('<details id="dots.s0.r0"') : opened.index('<details id="dots.s1.r0"')]
    links = re.findall(r'<a href="([^"#]+)">([^<]+)</a>( \(counts\))?', inside)
    folder = "report-playback/dots.s0.r0"
    assert links == [
        (f"{folder}/attempt-1~1.html", "attempt 1, stopped", ""),
        (f"{folder}/attempt-1.html", "attempt 1", ""),
        (f"{folder}/attempt-2.html", "attempt 2", " (counts)"),
    ]
    for link, *_ in links:
        assert "dots.s0.r0" in (mine / link).read_text()
    # A step leads to the same step of the attempt that counts.
    steps = re.findall(r'<article id="dots\.s0\.r0-(\d+)">.*?<a href="([^"]+)#(\d+)"', inside, re.DOTALL)
    assert len(steps) > 2
    assert {(link, step == number) for step, link, number in steps} == {(f"{folder}/attempt-2.html", True)}
    number = int(steps[1][0])
    played = shown(mine / steps[1][1], tmp_path, f"#{number}")
    assert f'aria-valuetext="{number} of ' in played
    names = sorted(path.name for path in (mine / "report-playback").iterdir())
    assert names == ["dots.s0.r0", "dots.s1.r0", "dots.s2.r0"]


def test_playbacks_are_not_written_through_links(run: Path, tmp_path: Path) -> None:
    mine, elsewhere = copied(run, tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = mine / "report-playback"
    folder.symlink_to(elsewhere)
    with pytest.raises(EpisodeError, match="report-playback is a link"):
        write_report(mine, playback=True)
    folder.unlink()
    folder.mkdir()
    (folder / "dots.s1.r0").symlink_to(elsewhere)
    with pytest.raises(EpisodeError, match=r"dots\.s1\.r0 is a link"):
        write_report(mine, playback=True)
    assert list(elsewhere.iterdir()) == []
    shutil.rmtree(folder)
    folder.write_text("a file")
    with pytest.raises(FileError, match="cannot write the page"):
        write_report(mine, playback=True)


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"is not a run: it has no manifest\.json"):
        write_report(tmp_path)


def test_a_page_is_there_as_a_whole_or_not_at_all(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("the page before")

    def stop(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_report(run, target, progress=stop)
    assert target.read_text() == "the page before"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
