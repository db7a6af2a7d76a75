"""`python -m bench`, as a user runs it: that it measures and reports, and leaves nothing behind. Never how fast anything is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from bench.figures import AHEAD, ROUND_TRIP, rested
from bench.inside import generation, unwatched
from bench.peers import PEERS, VNC_LOOKERS
from bench.tables import MARKERS
from conftest import need

if TYPE_CHECKING:
    from collections.abc import Iterator

    import deskhand

COMMAND = [sys.executable, "-m", "bench"]
# The repository, so that it is found from any folder.
_PATHS = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
HERE = {"PYTHONPATH": os.pathsep.join(filter(None, _PATHS))}
LIMIT = 240.0
PAGE = "look/1920x1080/page"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary directory of its own for the program, so that whatever stays there is seen."""
    # Not pytest's: Chromium puts a socket in it, and the path of one has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="b-", dir="/tmp") as path:
        yield Path(path)


def left(scratch: Path) -> list[Path]:
    return list(scratch.glob("deskhand-bench-*"))


def below(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return [*found, *(process for child in found for process in below(child))]


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_short_run_reports_what_it_saw(tmp_path: Path, scratch: Path, environment: dict[str, str]) -> None:
    for program, package in {"chromium": "chromium", "xterm": "xterm", "xsetroot": "x11-xserver-utils"}.items():
        need(program, package)
    readme, plot, document = tmp_path / "README.md", tmp_path / "plot.png", tmp_path / "bench.json"
    readme.write_text(f"before\n{MARKERS[0]}\n{MARKERS[1]}\nafter\n")
    files = ["--json", str(document), "--plot", str(plot), "--readme", str(readme)]
    ran = subprocess.run(
        [*COMMAND, "--quick", "--only", "look", "--rounds", "1", *files],
        env={**os.environ, **environment, **HERE, "TMPDIR": str(scratch)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # What draws the plot says so if making its cache of fonts takes long.
    assert PAGE in ran.stderr.splitlines()
    report: dict[str, Any] = json.loads(document.read_text())
    assert report["conditions"]["sections"] == [PAGE]
    assert set(report["machine"]) == {"processor", "cores", "memory", "system", "kernel", "python"}
    assert "deskhand" in report["versions"]
    ours = {(row["section"], row["case"]): row for row in report["rows"] if row["who"] == "deskhand"}
    cases = ["nothing changed", "one line changed", "a quarter changed", "everything changed"]
    for case in cases:
        assert ours[PAGE, case]["n"] >= 1
        assert 0 < ours[PAGE, case]["median"] <= ours[PAGE, case]["p95"]
    # These do not depend on the machine: what did not change is not encoded again, and a line costs only its strips.
    encoded = [ours[PAGE, case]["counts"]["bytes_deflated"] for case in cases]
    assert encoded[0] == 0
    assert 0 < encoded[1] < encoded[2] < encoded[3]
    # All that a change costs is within the clock: nothing was captured before it started.
    compared = [ours[PAGE, case]["counts"]["bytes_compared"] for case in cases]
    assert compared[0] == 0
    assert 0 < compared[1] < compared[2] < compared[3]
    assert compared[3] == 1920 * 1080 * 4
    changed = [ours[PAGE, case]["counts"]["pixels_changed"] for case in cases]
    assert changed[0] == 0
    assert 0 < changed[1] < 0.01
    assert (changed[2], changed[3]) == (0.25, 1)
    around = {case: row for (section, case), row in ours.items() if section == "clock/1920x1080/page"}
    assert set(around) == {
        ROUND_TRIP,
        *(rested(case) for case in (ROUND_TRIP, cases[0], cases[1], cases[3])),
        cases[1] + AHEAD,
        cases[3] + AHEAD,
    }
    assert all(row["n"] >= 1 and row["median"] > 0 for row in around.values())
    assert all(ours[PAGE, case]["counts"]["x_requests"] >= 1 for case in cases)
    others = {row["who"]: row for row in report["rows"] if row["who"] != "deskhand"}
    assert set(others) == {peer.name for peer in PEERS}
    for row in others.values():
        assert (row["median"] is None) == bool(row["missing"]), row
        assert "wrong" not in row["note"], row
    assert {verdict["met"] for verdict in report["targets"]} >= {None}
    assert "one line changed" in ran.stdout
    assert re.search(r"\| \*\*deskhand, one line changed \(0\.\d+ % of the pixels\)\*\* \|", readme.read_text())
    assert "| **deskhand, everything changed** |" in readme.read_text()
    assert readme.read_text().startswith("before\n")
    assert readme.read_text().endswith("\nafter\n")
    with Image.open(plot) as image:
        assert image.format == "PNG"
    assert left(scratch) == []


def test_what_is_unwatched_is_captured_by_a_look_alone(
    desktop: deskhand.Desktop, x_environment: dict[str, str]
) -> None:
    xsetroot = need("xsetroot", "x11-xserver-utils")
    for number in range(3):
        before = desktop.screenshot().generation
        # Control: watched, it is captured though nobody looks.
        subprocess.run([xsetroot, "-solid", f"#00{number}0ff"], env=x_environment, check=True)
        deadline = time.monotonic() + LIMIT
        while generation(desktop) == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = desktop.screenshot().generation
        with unwatched(desktop):
            subprocess.run([xsetroot, "-solid", f"#ff{number}000"], env=x_environment, check=True)
            # Three times as long as it takes the thread that watches.
            time.sleep(0.3)
            assert generation(desktop) == before
            assert desktop.screenshot().generation > before


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_vnc_is_measured_too(tmp_path: Path, scratch: Path, environment: dict[str, str]) -> None:
    for program, package in {"Xvnc": "tigervnc-standalone-server", "xauth": "xauth"}.items():
        need(program, package)
    document = tmp_path / "bench.json"
    ran = subprocess.run(
        [*COMMAND, "--quick", "--only", "vnc/*", "--rounds", "1", "--json", str(document)],
        env={**os.environ, **environment, **HERE, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(document.read_text())["rows"]
    ours = {(row["section"], row["case"]): row for row in rows if row["who"] == "deskhand"}
    assert {section for section, _ in ours} == {"vnc/decode", "vnc/screen", "vnc/key"}
    assert all(row["n"] >= 1 and row["median"] > 0 for row in ours.values())
    # From the change to a picture that shows it, of everybody alike.
    for case in ("one line changed", "everything changed"):
        rows_of = {row["who"]: row for row in rows if (row["section"], row["case"]) == ("vnc/screen", case)}
        assert set(rows_of) == {peer.name for peer in VNC_LOOKERS}
        for row in rows_of.values():
            assert (row["median"] is None) == bool(row["missing"]), row
        # What had arrived and was decoded before the clock started has a name of its own.
        assert ours["vnc/screen", case + AHEAD]["n"] >= 1
    assert [row["counts"]["wrong_frames"] for (section, _), row in ours.items() if section == "vnc/key"] == [0, 0]
    # Raw is the screen as it is; all of it was sent twice, and the second picture is what counts.
    assert ours["vnc/decode", "whole screen, raw"]["size"] >= 1920 * 1080 * 4
    decoders = {row["case"]: row for row in rows if row["who"] == "vncdotool's decoders"}
    for case in ("raw", "hextile", "zrle"):
        assert decoders[f"whole screen, {case}"]["median"] > 0
    assert left(scratch) == []


@pytest.mark.soak
def test_a_report_can_be_shown_again(tmp_path: Path, environment: dict[str, str]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            env={**os.environ, **environment, **HERE},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    measured = run("--only", "launch", "--rounds", "1", "--json", "first.json")
    assert measured.returncode == 0, measured.stderr
    shown = run("--from", "first.json", "--json", "second.json")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, measured.stdout, "")
    assert (tmp_path / "first.json").read_text() == (tmp_path / "second.json").read_text()
    assert json.loads(run("--from", "first.json", "--json", "-").stdout)["rows"][0]["case"] == "desktop ready"
    for arguments, code, message in (
        (["--only", "nothing"], 2, "no section matches 'nothing'; there are: launch"),
        (["--from", "first.json", "--plot", "plot.png"], 1, "nothing to draw"),
        (["--from", "first.json", "--readme", "first.json"], 1, "it needs the markers"),
    ):
        refused = run(*arguments)
        assert refused.returncode == code
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
    (tmp_path / "other.json").write_text("{}")
    assert "other.json is not a report" in run("--from", "other.json").stderr


def test_ctrl_c_ends_it_and_all_that_it_started(tmp_path: Path, scratch: Path, environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--only", "launch", "--rounds", "100000"],
        env={**os.environ, **environment, **HERE, "TMPDIR": str(scratch)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + LIMIT
    while not (started := below(process.pid)):
        assert process.poll() is None
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, error) == (130, "", "launch\n")
    for pid in started:
        # The guard ends them in order, and needs a moment.
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline
    assert left(scratch) == []


@pytest.mark.parametrize("arguments", [[], ["--quick", "--only", "look/*"], ["--help"]], ids=" ".join)
def test_the_command_line_says_where_it_is(arguments: list[str]) -> None:
    deskhand = Path(sys.executable).with_name("deskhand")
    ran = subprocess.run([deskhand, "bench", *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "deskhand: the benchmark is in the repository of deskhand: run `python -m bench` there\n"
