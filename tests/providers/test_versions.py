"""The table of SDK versions that were tested says what the extras need, and which of them come with another major version."""

from __future__ import annotations

import subprocess

import pytest

from providers.versions import COMMAND, HELD_BACK, NEWEST, ROOT, Row, behind, installed, needed, rows

ROWS = {row.sdk: row for row in rows()}


def test_the_table_has_each_sdk_as_its_extra_needs_it() -> None:
    expected = {sdk: (extra, requirement.specifier) for sdk, (extra, requirement) in needed().items()}
    assert {sdk: (row.extra, row.needed.specifier) for sdk, row in ROWS.items()} == expected, COMMAND


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.sdk)
def test_what_was_tested_is_what_is_needed_and_no_other_major_version_is_here(row: Row) -> None:
    """Of a newer one within the same the end of a run tells; see `conftest.py`."""
    assert all(row.needed.specifier.contains(version) for version in row.tested)
    tested = {version.major for version in row.tested}
    assert {version.major for version in installed()[row.sdk]} == tested, f"tested were {row.tested}: {COMMAND}"


def test_what_is_behind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {**installed(), "boto3": (ROWS["boto3"].tested[0],), "mcp": ROWS["mcp"].tested}
    monkeypatch.setattr("providers.versions.installed", lambda: here)
    assert any(line.startswith(f"boto3 {ROWS['boto3'].tested[-1]}, here ") for line in behind())
    assert not any(line.startswith("mcp ") for line in behind())


@pytest.mark.soak
@pytest.mark.parametrize("file", HELD_BACK)
def test_the_newest_of_what_is_held_back(file: str) -> None:
    """In an environment beside this one: Who installs neither google-adk nor inspect-ai gets these."""
    python = NEWEST / "bin/python"
    if not python.exists():
        pytest.fail(f"{NEWEST} is missing: make setup")
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
