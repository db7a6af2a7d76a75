"""The page that plays an episode: what is on it, whatever the recording has, and how it plays in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import deskhand
from conftest import need
from deskhand import KeyPress, LeftClick, Pool, Type
from deskhand.cli.group import commands
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.report.page import write_report
from deskhand.episodes.report.playback import MOST_MOMENTS, Pictures, frames_of, side, spread
from deskhand.episodes.report.player import write_playback
from deskhand.episodes.report.timeline import Mark, Moment, moments
from deskhand.errors import EpisodeError
from episodes.dots import Dots, painted
from faults.helpers import until
from integration.apps import chromium_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand import Desktop
    from deskhand.episodes.play.episode import Episode

NAME = "dots.s0.r0"
LIMIT = 20


def acts(episode: Episode) -> str:
    episode.note("I look for </script><script>document.title = 'ran'</script><b>the point</b>.")
    x, y = (int(each) for each in episode.instruction.removeprefix("Click at ").rstrip(".").split(", "))
    episode.desktop.perform(LeftClick((x, y)))
    episode.spend(input=1200, output=34, cost=0.25)
    with pytest.raises(deskhand.OutOfBounds):
        episode.desktop.perform(LeftClick((5000, 5000)))
    episode.desktop.perform(Type("a"))
    return "It is done."


def misses(episode: Episode) -> None:
    episode.desktop.perform(Type("no click at all"), KeyPress(["Return"]))


def play(folder: Path, agent: Any) -> Path:
    folder.mkdir()
    manifest = {"version": 1, "deskhand": "0", "agent": "x", "tasks": {"dots": ""}, "seeds": 1, "repeats": 1}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with Pool(painted, size=1) as pool, FrameStore(folder / "frames") as frames:
        record = Recorder(folder / "ep" / NAME / "attempt-1", frames)
        attempt(Dots(), Key("dots", "", 0, 0), pool, agent, record)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("playback") / "first", acts)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("playback") / "other", misses)


def data_of(page: Path) -> dict[str, Any]:
    (found,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def shown(page: Path, folder: Path, anchor: str = "") -> str:
    """The page's document after its script has run."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/chromium"]
    argv = [need("chromium", "chromium"), *flags, "--virtual-time-budget=5000", "--dump-dom", f"file://{page}{anchor}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


# --- what is on it ---


def test_the_page_needs_nothing_but_itself(run: Path, tmp_path: Path) -> None:
    text = write_playback(run, NAME, tmp_path / "page.html").read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    assert re.findall(r'<[^>]+\s(?:src|href)\s*=\s*["\']?(?!data:|#)[^"\'\s>]+', text) == []
    outside = re.findall(
        r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|innerHTML|https?://(?!www\.w3\.org/2000/svg)", text
    )
    assert outside == []
    assert text.count("<script") == 2


def test_all_that_happened_is_there(run: Path, tmp_path: Path) -> None:
    data = data_of(write_playback(run, NAME, tmp_path / "page.html"))
    (only,) = data["sides"]
    assert (only["run"], only["episode"], only["screen"]) == ("first", NAME, [80, 64])
    assert only["outcome"] == {"good": True, "text": "success"}
    assert (only["tokens"], only["cost"], only["steps"]) == ([1200, 34], 0.25, 3)
    kinds = [moment["kind"] for moment in only["moments"]]
    assert [kinds.count(kind) for kind in ("note", "perform", "spend", "answer")] == [1, 3, 1, 1]
    clicked, failed, typed = [moment for moment in only["moments"] if moment["kind"] == "perform"]
    assert clicked["changed"]
    assert clicked["rects"]
    assert clicked["marks"][0]["points"]
    assert clicked["before"] != clicked["frame"]
    assert [part for part, _ in clicked["times"]] == ["input", "reaction", "settle", "capture", "encode"]
    assert failed["error"].startswith("OutOfBounds: point (5000, 5000)")
    assert typed["lines"] == ["type “a”"]
    numbers = {moment[name] for moment in only["moments"] for name in ("frame", "before")} - {None}
    assert numbers == set(range(len(data["pictures"])))
    assert all(picture.startswith("data:image/webp;base64,") for picture in data["pictures"])
    assert data["picturesLeftOut"] == 0


def test_two_runs_beside_one_another(run: Path, other: Path, tmp_path: Path) -> None:
    data = data_of(write_playback(run, NAME, tmp_path / "page.html", beside=other))
    first, second = data["sides"]
    assert (first["run"], second["run"]) == ("first", "other")
    assert (first["outcome"]["good"], second["outcome"]["good"]) == (True, False)
    assert "first, other" in (tmp_path / "page.html").read_text()
    dom = shown(tmp_path / "page.html", tmp_path, "#4")
    assert '<main id="sides" class="two">' in dom
    assert dom.count('<section class="side"') == 2
    assert re.search(r'<label id="align-label">', dom)


def test_what_has_no_room_is_left_out_and_said(run: Path, tmp_path: Path) -> None:
    whole = data_of(write_playback(run, NAME, tmp_path / "whole.html"))
    room = sum(map(len, whole["pictures"])) - 1
    some = data_of(write_playback(run, NAME, tmp_path / "some.html", most_bytes=room))
    assert 0 < len(some["pictures"]) < len(whole["pictures"])
    assert some["picturesLeftOut"] == len(whole["pictures"]) - len(some["pictures"])
    none = write_playback(run, NAME, tmp_path / "none.html", most_bytes=0)
    assert data_of(none)["pictures"] == []
    dom = shown(none, tmp_path, "#5")
    assert f"{len(whole['pictures'])} pictures are left out, because the page would be too large." in dom
    assert "There is no picture of step 5, nor of an earlier one" in dom


def test_pictures_are_kept_from_all_over_an_episode() -> None:
    assert list(spread(0)) == []
    assert list(spread(1)) == [0]
    assert list(spread(9))[:5] == [8, 0, 4, 2, 6]
    for count in range(40):
        assert sorted(spread(count)) == list(range(count))
    pictures = Pictures()
    names = [str(number) for number in range(9)]
    assert pictures.add(names, lambda _: "x" * 10, (OSError,), room=35) == {"8": 0, "0": 1, "4": 2}
    assert pictures.left_out == 6
    # What a second episode may have is what is left.
    assert pictures.add(["a", "a", "b"], lambda _: "y" * 10, (OSError,), room=50) == {"b": 3, "a": 4}


def test_a_picture_that_cannot_be_read_costs_only_itself() -> None:
    def read(name: str) -> str:
        if name == "bad":
            raise OSError("gone\x07")
        return name

    pictures = Pictures()
    assert pictures.add(["a", "bad", "c"], read, (OSError,), room=100) == {"c": 0, "a": 1}
    assert (pictures.trouble, pictures.left_out) == ("gone", 0)


# --- what somebody else's recording may have ---

STRANGE: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 10_000,
    [],
    [[]],
    [1],
    {},
    "\ud800",
]
FIELDS = (
    "t",
    "actions",
    "rects",
    "busy",
    "elapsed",
    "cursor",
    "notes",
    "by",
    "error",
    "reason",
    "before",
    "after",
    "frame",
)


@pytest.mark.parametrize(
    "kind", ["perform", "look", "shell", "start", "control", "note", "spend", "elements", "frame", "?"]
)
def test_an_event_may_have_anything(kind: str) -> None:
    events = [{"kind": kind, "id": "f", name: value} for name in FIELDS for value in STRANGE]
    events += [{"kind": kind, "id": value, "text": value, "argv": value, "command": value} for value in STRANGE]
    actions = [
        {"type": value, "xy": value, "start_xy": value, "distance_xy": value, "keys": value, "element": value}
        for value in STRANGE
    ]
    events += [
        {"kind": kind, "id": "f", "actions": [action], "cursor": value} for action in actions for value in STRANGE
    ]
    found = moments(events)
    plain = side(
        run="r", episode="e", begin={}, result={}, moments=found, trouble="", numbers=dict.fromkeys(frames_of(found), 0)
    )
    json.loads(json.dumps(plain, allow_nan=False).encode("utf-8"))


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: repr(value)[:12])
def test_a_result_and_a_beginning_may_have_anything(value: Any) -> None:
    names = ("agent", "valid", "success", "score", "cause", "detail", "reason", "answer", "steps", "tokens", "cost")
    result = {**dict.fromkeys(names, value), "valid": True}
    begin = {"instruction": value, "screen": value}
    for tokens in (value, {"input": value, "output": value}):
        plain = side(
            run="r", episode="e", begin=begin, result={**result, "tokens": tokens}, moments=[], trouble="", numbers={}
        )
        json.dumps(plain, allow_nan=False)
    assert plain["screen"] == [1280, 800]


def test_a_page_has_no_more_than_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.episodes.report.playback._MOST_TEXT", 2 << 20)
    mark = Mark(((0.0, 1.0),) * 1000, "x")
    one = Moment(1, "perform", 0.0, ("y" * 5000,) * 500, rects=((0, 0, 1, 1),) * 1000, marks=(mark,) * 1000)
    plain = side(run="r", episode="e", begin={}, result={}, moments=[one] * 2, trouble="", numbers={})
    assert max(len(value) for moment in plain["moments"] for value in moment.values() if isinstance(value, list)) == 200
    small = [Moment(number, "note", 0.0) for number in range(MOST_MOMENTS + 7)]
    plain = side(run="r", episode="e", begin={}, result={}, moments=small, trouble="", numbers={})
    assert (len(plain["moments"]), plain["leftOut"]) == (MOST_MOMENTS, 7)
    plain = side(run="r", episode="e", begin={}, result={}, moments=[one] * 20, trouble="", numbers={})
    assert len(json.dumps(plain)) < 3 << 20
    assert len(plain["moments"]) + plain["leftOut"] == 20


def hostile(run: Path, folder: Path) -> Path:
    """The run, with script and markup wherever a recording has a text."""
    copy = shutil.copytree(run, folder / "<img src=x onerror=document.title=1>")
    for file in copy.glob("ep/*/attempt-1/*.json*"):
        lines = []
        for line in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            plain = json.loads(line)
            lines.append(json.dumps(_spoilt(plain)))
        file.write_text("\n".join(lines) + "\n")
    return copy


EVIL = '</script><script>document.title="ran"</script><img src=x onerror=document.title=2>%%SCRIPT%% %%DATA%% \u2028'
KEPT = ("kind", "id", "before", "after", "frame", "task", "variant", "type", "cause")


def _spoilt(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each if key in KEPT else _spoilt(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spoilt(each) for each in value]
    return f"{value}{EVIL}" if isinstance(value, str) else value


def test_what_a_recording_says_is_text(run: Path, tmp_path: Path) -> None:
    copy = hostile(run, tmp_path)
    page = write_playback(copy, NAME, tmp_path / "page.html")
    text = page.read_text()
    assert text.count("<script") == 2
    assert "<img" not in text
    dom = shown(page, tmp_path, "#5")
    assert re.findall(r"<title>([^<]*)</title>", dom) == [f"{NAME}: &lt;img src=x onerror=document.title=1&gt;"]
    assert '<code class="bad">OutOfBounds' in shown(write_playback(run, NAME, page), tmp_path, "#7")
    assert '&lt;/script&gt;&lt;script&gt;document.title="ran"&lt;/script&gt;' in dom
    assert "onerror=document.title=2>" not in dom
    assert "%%SCRIPT%% %%DATA%%" in dom


def test_a_report_is_made_of_anything_too(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (events,) = copy.glob("ep/*/attempt-1/events.jsonl")
    with events.open("a") as file:
        file.write('{"kind": "perform", "actions": 7}\n{"kind": "perform", "after": {}, "rects": [1]}\n')
    assert write_report(copy).read_text().count("an event that cannot be read") == 2
    write_playback(copy, NAME, tmp_path / "page.html")


# --- where it goes ---


def test_the_command_writes_a_page_for_each_episode(run: Path, other: Path, tmp_path: Path) -> None:
    def call(*words: str) -> Any:
        return CliRunner().invoke(commands, ["export", *words], standalone_mode=False)

    told = call(str(run), "--format", "html", "--beside", str(other), "--to", str(tmp_path / "pages"), "--json")
    assert json.loads(told.stdout) == [str(tmp_path / "pages" / f"{NAME}.html")]
    assert len(data_of(tmp_path / "pages" / f"{NAME}.html")["sides"]) == 2
    again = call(str(run), "--format", "html", "--to", str(tmp_path / "pages"))
    assert "is there already" in str(again.exception)
    for wrong in ("nowhere.s0.r0", "../first", f"../ep/{NAME}"):
        assert "has no attempt of" in str(call(str(run), wrong, "--format", "html", "--to", str(tmp_path)).exception)
    assert "--beside is for" in str(call(str(run), "--format", "atif", "--beside", str(other), "--to", "x").exception)


def test_a_page_that_has_no_place_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"nowhere is not a directory: x\.html"):
        write_playback(run, NAME, tmp_path / "nowhere" / "x.html")


def test_an_episode_that_was_killed_is_played_as_far_as_it_is_there(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (folder,) = copy.glob("ep/*/attempt-1")
    (folder / "result.json").unlink()
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-9])
    (only,) = data_of(write_playback(copy, NAME, tmp_path / "page.html"))["sides"]
    assert only["outcome"] == {"good": False, "text": "not ended"}
    assert only["trouble"] == "the record ends in the middle of an event"
    assert only["moments"]


# --- in a browser ---


@pytest.fixture(scope="module")
def browser(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    """The page in a real browser, on a real desktop."""
    folder = tmp_path_factory.mktemp("browser")
    page = write_playback(run, NAME, folder / "page.html")
    with deskhand.launch(size=(1280, 1000)) as desktop:
        desktop.start(chromium_command(f"file://{page}", folder / "profile"), timeout=60)
        yield desktop


def says(desktop: Desktop, *words: str) -> None:
    """Wait until the page says all of it."""

    def found() -> bool:
        told = desktop.elements(timeout=10).text()
        return all(word in told for word in words)

    until(found, LIMIT, f"a page that says {words}")


def test_it_is_played_by_keys_and_buttons(browser: Desktop, run: Path, tmp_path: Path) -> None:
    moments_there = data_of(write_playback(run, NAME, tmp_path / "page.html"))["sides"][0]["moments"]
    count = len(moments_there)
    changed = next(each["number"] for each in moments_there if each["changed"])
    failed = next(each["number"] for each in moments_there if each["error"])
    says(browser, f"1 of {count},")
    browser.perform(KeyPress(["Right"]), KeyPress(["Right"]))
    says(browser, f"3 of {count},")
    browser.perform(KeyPress(["End"]))
    says(browser, f"{count} of {count},")
    browser.perform(KeyPress(["Home"]), KeyPress(["c"]))
    says(browser, f"{changed} of {count},", "area", "The model, before it", "The screen after step")
    browser.perform(KeyPress(["b"]))
    says(browser, f"The screen before step {changed}")
    browser.perform(KeyPress(["b"]))
    browser.find("button", "failure").click()
    says(browser, f"{failed} of {count},")
    browser.find("button", "First step").click()
    says(browser, f"1 of {count},")
    # It plays to the end by itself.
    browser.find("combobox", "Speed").select("4×")
    browser.find("button", "Play").click()
    says(browser, f"{count} of {count},", 'button "Play"')
