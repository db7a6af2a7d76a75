"""`python -m bench.elements`, as a user runs it: that it measures and reports. Never how fast anything is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.elements_calls import Calls
from bench.elements_tables import MARKERS, Case, block
from bench.figures import Report
from conftest import need

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = [sys.executable, "-m", "bench.elements"]
_PATHS = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
HERE = {"PYTHONPATH": os.pathsep.join(filter(None, _PATHS))}
LIMIT = 240.0


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="b-", dir="/tmp") as path:
        yield Path(path)


def run(*arguments: str, environment: dict[str, str], scratch: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, **environment, **HERE, "TMPDIR": str(scratch)},
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_short_run_reports_what_was_read(scratch: Path, environment: dict[str, str]) -> None:
    need("mousepad", "mousepad")
    document, page = scratch / "elements.json", scratch / "page.md"
    page.write_text(f"before\n{MARKERS[0]}\n{MARKERS[1]}\nafter\n")
    arguments = ["--apps", "mousepad", "--rounds", "1", "--no-peers", "--cost"]
    ran = run(*arguments, "--json", str(document), "--readme", str(page), environment=environment, scratch=scratch)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(document.read_text())
    rows = {row["case"]: row for row in report["rows"] if row["section"] == "elements/mousepad"}
    assert set(rows) == {Case.FIRST_EVER, Case.FIRST, Case.UNCHANGED, Case.CHANGED, Case.CHANGED_EARLY}
    for row in rows.values():
        assert row["n"] >= 1
        assert row["median"] > 0
        assert row["counts"]["nodes"] > 10
        assert row["counts"]["left_out"] == 0
    # What is there already is asked for no more; a menu that opened is.
    calls = {
        case: rows[case]["counts"]["calls"] for case in (Case.FIRST, Case.UNCHANGED, Case.CHANGED, Case.CHANGED_EARLY)
    }
    assert calls[Case.FIRST] > calls[Case.UNCHANGED]
    assert calls[Case.CHANGED_EARLY] >= calls[Case.CHANGED] > calls[Case.UNCHANGED]
    assert rows[Case.CHANGED]["counts"]["nodes"] > rows[Case.UNCHANGED]["counts"]["nodes"]
    assert not rows[Case.CHANGED]["note"]
    cost = {row["case"]: row for row in report["rows"] if row["section"] == "elements-cost"}
    assert all(row["median"] > 0 for row in cost.values())
    assert set(cost["memory of the accessibility bus"]["counts"]) == {
        "at-spi-bus-laun",
        "at-spi2-registr",
        "dbus-daemon",
    }
    assert "| mousepad (GTK 3) |" in ran.stdout
    assert page.read_text().startswith("before\n")
    assert ran.stdout.strip() in page.read_text()
    # The same tables come of the document.
    assert block(Report.from_dict(report)) == ran.stdout.strip()
    assert list(scratch.glob("deskhand-bench-*")) == []


def test_who_is_not_there_and_what_is_not_known_is_said(scratch: Path, environment: dict[str, str]) -> None:
    refused = run("--apps", "nothing", environment=environment, scratch=scratch)
    assert refused.returncode == 2
    assert "no nothing; there are: mousepad, " in refused.stderr


def test_messages_are_counted_however_they_arrive() -> None:
    # A call with the header's fields in any order of pieces: member Ping, no body.
    fields = b"\x03\x01s\x00\x04\x00\x00\x00Ping\x00\x00\x00\x00"
    message = b"l\x01\x00\x01" + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")
    message += (len(fields)).to_bytes(4, "little") + fields
    stream = b"\0AUTH EXTERNAL 30\r\nBEGIN\r\n" + message * 3
    for size in (1, 7, len(stream)):
        calls = Calls()
        for start in range(0, len(stream), size):
            calls.take(stream[start : start + size], incoming=False)
        assert calls.said == {"Ping": 3}
