"""A run of the tests names what it leaves out, and what runs that."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EVIDENCE_ONLY

# Each collects a part of the tests anew.
pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]


def listed(*arguments: str, evidence: bool = False) -> str:
    """What `pytest --collect-only` says of a part of the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DESKHAND"))}
    if evidence:
        environment["DESKHAND_EVIDENCE"] = "1"
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_what_is_left_out_is_named_with_its_command() -> None:
    said = listed(*dict.fromkeys(f"tests/{name.partition('/')[0]}" for name in EVIDENCE_ONLY))
    assert "not run here" in said
    files: list[str] = []
    for name, content in EVIDENCE_ONLY.items():
        assert f"tests/{name}::" not in said
        (line,) = re.findall(rf"^{re.escape(name)} \({re.escape(content)}\): run it with (.*)$", said, re.MULTILINE)
        variable, program, *arguments = shlex.split(line)
        assert variable == "DESKHAND_EVIDENCE=1"
        assert (ROOT / program).exists()
        assert arguments[:2] == ["-m", "pytest"]
        files += arguments[2:]
    # The commands that it gives do run them.
    assert len(files) == len(EVIDENCE_ONLY)
    ran = listed(*files, evidence=True)
    assert all(f"tests/{name}::" in ran for name in EVIDENCE_ONLY)


@pytest.mark.parametrize(("part", "evidence"), [("tests/unit/test_sizes.py", False), ("tests/containers", True)])
def test_a_run_that_leaves_nothing_out_says_nothing(part: str, evidence: bool) -> None:  # noqa: FBT001
    assert "not run here" not in listed(part, evidence=evidence)


def test_nothing_else_is_left_out() -> None:
    """Whatever a `collect_ignore` leaves out is among what is named."""
    for path in (ROOT / "tests").rglob("conftest.py"):
        for line in path.read_text().splitlines():
            if line.startswith("collect_ignore"):
                assert "EVIDENCE_ONLY" in line, path
