"""What the benchmark makes of its numbers: rows, verdicts, tables, the plot. None of these numbers was measured."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

import deskhand
from bench import figures, looks, peers, plot, scenes, tables, vnc, worker
from bench.eyes import LOOKS, Eye
from bench.figures import AHEAD, OURS, PHOTO, ROUND_TRIP, Report, Row, Samples, judge, p95, ratio, rested
from bench.plot import draw
from bench.sections import SECTIONS, Section, choose, run
from bench.traffic import requests_in
from deskhand.errors import DesktopLost

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PAGE = "look/1920x1080/page"
CLOCK = "clock/1920x1080/page"
NOTHING, LINE, QUARTER = "nothing changed", "one line changed", "a quarter changed"
EVERYTHING = "everything changed"


def row(section: str, case: str, median: float | None, size: int | None = None, who: str = OURS, **more: Any) -> Row:
    return Row(section, case, who, n=3, median=median, p95=None if median is None else 2 * median, size=size, **more)


def report(*rows: Row) -> Report:
    machine = {"processor": "a processor", "cores": "2", "system": "a system", "python": "3.11"}
    return Report(machine, {"deskhand": "1.2.3 (abc)"}, {"date": "2026-01-02", "quick": False}, rows)


WHOLE = report(
    row(PAGE, NOTHING, 0.1, 200_000, counts={"pixels_changed": 0.0}),
    row(PAGE, LINE, 1.0, 200_000, counts={"strips_deflated": 1, "bytes_deflated": 184_352}),
    row(PAGE, QUARTER, 2.0, 220_000, counts={"pixels_changed": 0.251}),
    row(PAGE, EVERYTHING, 7.5, 260_000, counts={"pixels_changed": 1.0}),
    row(CLOCK, ROUND_TRIP, 0.04),
    row(CLOCK, rested(ROUND_TRIP), 0.36),
    row(CLOCK, rested(NOTHING), 0.37, 200_000),
    row(CLOCK, rested(LINE), 1.5, 200_000),
    row(CLOCK, LINE + AHEAD, 0.3, 200_000),
    row(PAGE, EVERYTHING, 99.9, 380_807, "a peer"),
    Row(PAGE, EVERYTHING, "an absent peer", missing="not installed: pip install it"),
    row("array/1920x1080/page", NOTHING, 1.4),
    row("array/1920x1080/page", EVERYTHING, 2.8, 8_294_400, "a raw peer", note="wrong"),
    row(PHOTO, EVERYTHING, 40.0, 6_000_000),
    row(PHOTO, EVERYTHING, 60.0, 5_600_000, "a peer"),
    row("look/3840x2160/page", LINE, 2.5, 400_000),
    row("look/3840x2160/page", EVERYTHING, 400.0, 400_000, "a peer"),
    row("act/xterm", "key press", 52.0, counts={"wrong_frames": 1, "compared": 20}),
    row("act/xterm", "key press", 2100.0, who="the field"),
    row("type/xterm", "1,000 ASCII characters, sent", 16.0, counts={"wrong_texts": 0}),
    row("idle", "CPU of 16 idle desktops", 0.08, unit="%", note="of one core"),
)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert p95([3.0]) == 3.0
    assert p95(list(range(1, 21))) == 19
    assert p95(list(range(100, 0, -1))) == 95


def test_samples_become_a_row() -> None:
    samples = Samples("a/b", "c", note="n")
    for value, size, strips in ((3.0, 10, 0), (1.0, 20, 4), (2.0, 40, 2)):
        samples.add(value, size, {"strips": strips})
    assert samples.row(wrong=5) == Row(
        "a/b", "c", n=3, median=2.0, p95=3.0, size=20, counts={"strips": 2, "wrong": 5}, note="n"
    )


def test_a_row_without_samples_says_why() -> None:
    samples = Samples("a", "b", "a peer")
    assert (samples.row().median, samples.row().missing) == (None, "not measured")
    samples.missing = "not installed"
    assert (samples.row().median, samples.row().missing) == (None, "not installed")


def test_who_failed_in_the_middle_has_a_number_and_a_note() -> None:
    samples = Samples("a", "b", "a peer", note="n")
    samples.add(1.0)
    samples.missing = "failed"
    assert (samples.row().median, samples.row().missing, samples.row().note) == (1.0, "", "n; failed")


def test_a_report_survives_json() -> None:
    again = Report.from_dict(json.loads(json.dumps(WHOLE.to_dict())))
    assert again.to_dict() == WHOLE.to_dict()
    assert list(again.rows) == list(WHOLE.rows)


def test_a_report_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="measure again"):
        Report.from_dict({"size": [1920, 1080], "rows": []})


def test_targets_are_judged_by_what_was_measured() -> None:
    verdicts = {v.name: (v.must, v.measured, v.met) for v in judge(WHOLE)}
    assert verdicts["look, nothing changed"] == ("≤ 0.15 ms", "0.10 ms", True)
    # The limit itself is within it.
    assert verdicts["look, one line changed"] == ("≤ 1 ms", "1.00 ms", True)
    assert verdicts["look, one line changed, p95"] == ("≤ 2 ms", "2.00 ms", True)
    assert verdicts["look, everything changed, size"] == ("≤ 250,000 bytes", "260,000 bytes", False)
    assert verdicts["3840×2160, one line changed"] == ("≤ 2 ms", "2.50 ms", False)
    assert verdicts["16 idle desktops together, CPU"] == ("≤ 0.5 %", "0.08 %", True)
    assert verdicts["desktop ready"] == ("≤ 500 ms", "not measured", None)
    assert verdicts["look, everything changed, beside the fastest peer"] == ("≥ 3×", "13.32× (a peer)", True)
    assert verdicts["raw array, everything changed, beside the fastest peer"] == ("≥ 1×", "not measured", None)
    assert len(verdicts) == len(figures.TARGETS) + 1 + len(figures.LEADS)


def test_the_fastest_peer_counts() -> None:
    peers = [row(PAGE, EVERYTHING, median, who=f"peer {median}") for median in (30.0, 14.0, 20.0)]
    found = judge(report(row(PAGE, EVERYTHING, 7.0), *peers, Row(PAGE, EVERYTHING, "an absent peer", missing="lost")))
    (verdict,) = (v for v in found if v.name.startswith("look, everything changed, beside"))
    assert (verdict.measured, verdict.met) == ("2.00× (peer 14.0)", False)


@pytest.mark.parametrize(
    ("median", "size", "met"),
    [(60.0, 5_000_000, True), (30.0, 7_000_000, True), (40.0, 5_000_000, True), (30.0, 5_000_000, False)],
)
def test_a_photo_must_not_be_beaten_in_both(median: float, size: int, met: bool) -> None:  # noqa: FBT001
    found = judge(report(row(PHOTO, EVERYTHING, 40.0, 6_000_000), row(PHOTO, EVERYTHING, median, size, "a peer")))
    (verdict,) = (v for v in found if v.name.startswith("photo"))
    assert verdict.met is met
    assert ("a peer" in verdict.measured) is not met


def test_targets_name_sections_that_are_measured() -> None:
    measured = {s.name for s in SECTIONS} | {"scaled/1920x1080/page", "array/1920x1080/page"}
    assert {t.section for t in (*figures.TARGETS, *figures.LEADS)} <= measured


def test_the_tuned_server_is_the_one_of_our_image() -> None:
    supervisor = Path(deskhand.__file__).parent / "launchers/docker/image/files/usr/local/lib/deskhand/supervisor"
    assert f" {' '.join(vnc.TUNED)} " in supervisor.read_text()


def test_keys_over_vnc_are_shown_and_judged_by_their_server() -> None:
    def keys(case: str, median: float, wrong: int) -> Row:
        counts = {"wrong_frames": wrong, "compared": 30}
        return Row("vnc/key", case, n=30, median=median, p95=median, counts=counts)

    found = report(keys(vnc.XTERM, 80.0, 0), keys(vnc.XTERM_TUNED, 80.0, 1))
    verdicts = {v.name: (v.must, v.met) for v in judge(found)}
    name = "VNC: key press in xterm → settled frame"
    assert verdicts[name] == ("≤ 90 ms", True)
    assert verdicts[f"{name}, tuned server"] == ("≤ 75 ms", False)
    shown = tables.block(found)
    assert f"| {name}, tuned server | ≤ 75 ms | 80.00 ms | ✗ **missed** |" in shown
    assert f"| {vnc.XTERM_TUNED} | 80.0 ms |  |  | 1 of 30 frames wrong |" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.34, "0.3×"), (9.99, "9.9×"), (12.9, "12×"), (99.9, "99×"), (999.9, "990×"), (1259.0, "1,200×")],
)
def test_a_ratio_is_never_rounded_up(value: float | None, text: str) -> None:
    assert tables.times(value) == text


def test_a_ratio_needs_both() -> None:
    assert ratio(WHOLE.find(PAGE, EVERYTHING, "a peer"), WHOLE.find(PAGE, LINE)) == 99.9
    assert ratio(WHOLE.find(PAGE, EVERYTHING, "an absent peer"), WHOLE.find(PAGE, LINE)) is None
    assert ratio(None, WHOLE.find(PAGE, LINE)) is None


@pytest.mark.parametrize(
    "line",
    [
        "| look, everything changed, size | ≤ 250,000 bytes | 260,000 bytes | ✗ **missed** |",
        "| photo over the whole screen | no peer both faster and smaller | none is | ✓ |",
        "| desktop ready | ≤ 500 ms | not measured | ? |",
        "| **deskhand, one line changed** | 1.00 ms | 2.00 ms | 200 kB |  |  |  |",
        "| **deskhand, a quarter changed (25.1 % of the pixels)** | 2.00 ms | 4.00 ms | 220 kB |  |  |  |",
        "| **deskhand, everything changed** | 7.50 ms | 15.0 ms | 260 kB |  |  |  |",
        "| what | at once | after a second's rest | at once, captured before |",
        "| a round trip to the X server, and nothing else | 0.04 ms | 0.36 ms |  |",
        "| nothing changed | 0.10 ms | 0.37 ms |  |",
        "| one line changed | 1.00 ms | 1.50 ms | 0.30 ms |",
        "| a peer | 99.9 ms | 200 ms | 381 kB | 990× | 99× | 13× |",
        "| an absent peer | not installed: pip install it |  |  |  |  |  |",
        "| a raw peer (wrong) | 2.80 ms | 5.60 ms |  | 2.0× |  |  |",
        "| 3840×2160, page, one line changed | 2.50 ms | 5.00 ms | 400 kB | a peer: 400 ms, 400 kB | 160× |",
        "| key press, xterm | 52.0 ms | 104 ms | 1 of 20 frames wrong | the field: 2,100 ms, 40× |",
        "| 1,000 ASCII characters, sent, xterm | 16.0 ms | 32.0 ms | 0 of 3 texts wrong |  |",
        "| look | strips deflated | bytes deflated |",
        "| one line changed | 1 | 184,352 |",
        "| CPU of 16 idle desktops | 0.08 % | of one core |",
    ],
)
def test_the_tables_show(line: str) -> None:
    assert line in tables.block(WHOLE).splitlines()


def test_the_block_tells_where_it_is_from() -> None:
    text = tables.block(WHOLE, plot="evidence/bench.svg")
    assert (
        "Written by a part of `python -m bench` on 2026-01-02: a processor, 2 cores, a system, Python 3.11, deskhand 1.2.3."
        in text
    )
    assert "](evidence/bench.svg)" in text
    whole = Report(WHOLE.machine, WHOLE.versions, {**WHOLE.conditions, "whole": True}, WHOLE.rows)
    assert "Written by `make bench` on" in tables.block(whole)


def test_what_was_not_measured_has_no_title() -> None:
    text = tables.block(report(row("launch", "desktop ready", 100.0)))
    assert "**Resources**" in text
    assert "**Acting" not in text
    assert "**Others" not in text
    assert "same on every machine" not in text


def test_every_table_has_as_many_cells_everywhere() -> None:
    for table in tables.block(WHOLE).split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, table


def test_a_document_gets_it_between_its_markers() -> None:
    before, after = tables.MARKERS
    text = f"head\n{before}\nold\n{after}\ntail\n"
    assert tables.into(text, "new") == f"head\n{before}\nnew\n{after}\ntail\n"


@pytest.mark.parametrize(
    "text", ["", "<!-- bench -->", "<!-- /bench --><!-- bench -->", 2 * "<!-- bench --><!-- /bench -->"]
)
def test_a_document_without_clear_markers_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="markers"):
        tables.into(text, "new")


@pytest.mark.parametrize("name", ["plot.png", "plot.svg"])
def test_the_plot_shows_both_scenes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    draw(WHOLE, path)
    if path.suffix == ".svg":
        first = path.read_bytes()
        draw(WHOLE, path)
        assert path.read_bytes() == first
    else:
        with Image.open(path) as image:
            assert image.width > 1.5 * image.height


def test_no_label_of_the_plot_covers_another_or_a_point() -> None:
    # The report that the page of benchmarks shows, and points that are nearly one.
    measured = Report.from_dict(json.loads((ROOT / "evidence/bench.json").read_text()))
    near = [
        row(plot.PHOTO, f"look {number}", 500 + number, size=9_000_000, who=f"peer {number}") for number in range(9)
    ]
    for rows in (*(plot._points(measured, section) for section, _ in plot._PANELS), near):
        figure = Figure(figsize=(8, 7), layout="constrained")
        canvas = FigureCanvasAgg(figure)
        labels = plot._panel(figure.subplots(), "a scene", rows)
        canvas.draw()
        plot._spread(labels, canvas.get_renderer())
        boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
        points = [label.axes.transData.transform(label.xy) for label in labels]
        assert len(boxes) == len(rows) > 7
        assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        assert not [(box, point) for box in boxes for point in points if box.contains(*point)]
        assert all(Bbox.union([box, labels[0].axes.bbox]).bounds == labels[0].axes.bbox.bounds for box in boxes)


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw(report(row("launch", "desktop ready", 100.0)), tmp_path / "plot.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("pattern", "quick", "names"),
    [
        ("page", True, ["look/1920x1080/page"]),
        ("look/*/photo", False, ["look/1920x1080/photo", "look/1024x768/photo", "look/3840x2160/photo"]),
        ("act", True, ["act/xterm"]),
        # Whoever names one in full wants it.
        ("act/mousepad", True, ["act/mousepad"]),
        (None, False, [section.name for section in SECTIONS]),
    ],
)
def test_sections_are_chosen(pattern: str | None, quick: bool, names: Sequence[str]) -> None:  # noqa: FBT001
    assert [section.name for section in choose(pattern, quick=quick)] == names


def test_a_section_that_fails_is_named_and_the_others_are_measured() -> None:
    def lost(_: Any) -> Any:
        yield row("lost/x", NOTHING, 1.0)
        raise DesktopLost("x_server", "it was killed")

    def well(_: Any) -> Any:
        yield row("well/x", NOTHING, 2.0)

    found = run([Section("lost/x", lost), Section("well/x", well)])
    assert [(each.section, each.case, each.median) for each in found.rows] == [
        ("lost/x", NOTHING, 1.0),
        ("lost/x", "all", None),
        ("well/x", NOTHING, 2.0),
    ]
    assert found.rows[1].missing.startswith("failed: ")
    assert "it was killed" in found.rows[1].missing
    assert found.conditions["failed"] == ["lost/x"]
    assert found.conditions["whole"] is False


def test_a_section_that_is_not_there_is_named_beside_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"'nothing'; there are: launch, look"):
        choose("nothing", quick=False)


def test_every_peer_has_its_way_to_look() -> None:
    assert {peer.look for peer in (*peers.PEERS, *peers.VNC_LOOKERS)} == set(LOOKS)
    assert {peer.name for peer in peers.VNC_LOOKERS} == {OURS, *(peer.name for peer in peers.VNC_PEERS)}


def test_a_peer_that_is_missing_says_how_to_get_it() -> None:
    here = peers.Peer("a", "", modules=(("json", "json"),), programs=(("sh", "dash"),))
    module = peers.Peer("b", "", modules=(("json", "json"), ("no_such_module", "no-such")))
    program = peers.Peer(
        "c", "", modules=(("no_such_module", "no-such"),), programs=(("no-such-program", "a-package"),)
    )
    hinted = peers.Peer("d", "", modules=(("no_such_module", "no-such"),), hint="build it")
    assert [peer.missing() for peer in (here, module, program, hinted)] == [
        "",
        "not installed: pip install no-such",
        "not installed: apt-get install a-package",
        "not installed: build it",
    ]


# ---- what the clock contains


class Stage:
    """Keeps what it was told to show."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, Any]] = []

    def load(self, pictures: Any) -> None:
        del pictures

    def show(self, name: str, rect: Any = None) -> None:
        self.shown.append((name, rect))


def scene(second: Any, name: str = "page") -> scenes.Scene:
    first = np.zeros((20, 40, 3), np.uint8)
    return scenes.Scene(name, first, second, (0, 0, 40, 2), (20, 10, 20, 10))


def test_the_share_of_the_pixels_that_change_is_counted() -> None:
    second = np.zeros((20, 40, 3), np.uint8)
    second[:10] = (0, 0, 1)
    assert scene(second).pixels_changed() == 0.5
    assert scene(second).pixels_changed((0, 0, 40, 2)) == 0.1
    assert scene(second).pixels_changed((20, 10, 20, 10)) == 0.0


def test_everything_is_every_pixel_or_nothing_is_measured() -> None:
    second = np.full((20, 40, 3), 255, np.uint8)
    play = looks._Screenplay(Stage(), scene(second))  # type: ignore[arg-type]
    assert play.pixels_changed == {NOTHING: 0.0, LINE: 0.1, QUARTER: 0.25, EVERYTHING: 1.0, looks.SCROLLED: 1.0}
    second[7, 7] = 0
    with pytest.raises(RuntimeError, match=r"everything should change, but 99\.875000% of the pixels do"):
        looks._Screenplay(Stage(), scene(second))  # type: ignore[arg-type]
    # Text that scrolls leaves most as it is, and its row says so.
    assert looks._Screenplay(Stage(), scene(second, "terminal")).pixels_changed[looks.SCROLLED] == 0.99875  # type: ignore[arg-type]


def test_no_pixel_of_a_photo_stays() -> None:
    photo = scenes.make("photo", (64, 48), Path())
    assert photo.pixels_changed() == 1.0
    # They are two photos, and not one in other colours.
    assert 20 < np.abs(photo.first.astype(int) - photo.second).mean() < 128


class Screen:
    """Stands for the desktop that the reference is taken from."""

    def __init__(self, play: Any, *, restless: bool = False) -> None:
        self._play, self._restless = play, restless

    def screenshot(self, **_: Any) -> Any:
        return self

    def array(self) -> Any:
        return 7 - self._play.expected() if self._restless else self._play.expected()


class Crew:
    """One peer, whose picture is that of the screen after it was asked `late` times; before, it is an old one."""

    def __init__(self, play: Any, late: int, *, sleeps: bool = True) -> None:
        self.names = ["a peer"]
        self.saved = 0
        self._play, self._late, self._sleeps = play, late, sleeps

    def wake(self, _name: str) -> bool:
        return self._sleeps

    def save(self, _name: str, path: Path) -> bool:
        self.saved += 1
        right = self._play.expected()
        np.save(path, right if self.saved > self._late else 255 - right)
        return True


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> looks._Screenplay:
    monkeypatch.setattr(looks, "_SETTLING", 0.0)
    monkeypatch.setattr(looks, "_CURSOR_PIXELS", 10)
    return looks._Screenplay(Stage(), scene(np.full((20, 40, 3), 255, np.uint8)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("late", "asked", "wrong"), [(0, 1, 0), (1, 2, 0), (3, 4, 0), (99, 4, 800)])
def test_a_picture_that_the_benchmark_made_old_is_not_a_wrong_one(
    play: looks._Screenplay, tmp_path: Path, late: int, asked: int, wrong: int
) -> None:
    crew = Crew(play, late)
    found = looks._wrong_pixels(Screen(play), play, crew, "a peer", tmp_path / "seen.npy")  # type: ignore[arg-type]
    assert (found, crew.saved) == (wrong, asked)


def test_a_screen_that_changes_by_itself_makes_nobody_wrong(play: looks._Screenplay, tmp_path: Path) -> None:
    screen = Screen(play, restless=True)
    with pytest.raises(RuntimeError, match="the screen changed by itself while a peer looked at it"):
        looks._wrong_pixels(screen, play, Crew(play, 99), "a peer", tmp_path / "seen.npy")  # type: ignore[arg-type]


def test_the_first_picture_that_shows_a_change_stops_the_clock(tmp_path: Path) -> None:
    before, after = tmp_path / "before.npy", tmp_path / "after.npy"
    pixels = np.zeros((20, 40, 3), np.uint8)
    np.save(before, pixels)
    pixels[5:10] = 200
    np.save(after, pixels)
    asked: list[float] = []

    def look() -> Any:
        asked.append(time.perf_counter())
        # Two old pictures, one that is torn, and the new one.
        shown = pixels.copy()
        if len(asked) < 4:
            shown[(5 if len(asked) < 3 else 7) : 10] = 0
        return shown

    peer = worker._Worker("mss_array", Eye(look))
    since = time.perf_counter()
    answer = peer.handle({"op": "until", "since": since, "path": str(after), "old": str(before), "rect": [0, 5, 40, 5]})
    assert answer is not None
    took = answer["ms"]
    assert isinstance(took, float)
    assert (asked[3] - since) * 1000 <= took <= (asked[4] - since) * 1000
    assert answer["bytes"] == pixels.nbytes


def test_a_change_that_no_picture_shows_is_no_time(tmp_path: Path) -> None:
    pixels = np.zeros((20, 40, 3), np.uint8)
    np.save(tmp_path / "before.npy", pixels)
    np.save(tmp_path / "after.npy", pixels + 1)
    peer = worker._Worker("mss_array", Eye(lambda: pixels))
    message = {"path": str(tmp_path / "after.npy"), "old": str(tmp_path / "before.npy"), "rect": [0, 0, 40, 20]}
    with pytest.raises(RuntimeError, match=r"none of \d+ pictures in .* shows the change"):
        peer.handle({"op": "until", "since": time.perf_counter(), **message})


def test_requests_are_counted_in_what_a_client_sent() -> None:
    short, long = b"\x2b\0\x01\0", b"\x48\0\x03\0" + bytes(8)
    large = b"\x48\0\0\0" + (4).to_bytes(4, "little") + bytes(8)
    assert requests_in(b"") == 0
    assert requests_in(short + long + large + short) == 4
    # What cannot be a request ends the count.
    assert requests_in(short + bytes(8)) == 1
