"""Every command of the pages for newcomers works, in the order of the page and in one folder; only installing is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from containers.helpers import minimal_image
from soak import soaked

ROOT = Path(__file__).resolve().parents[2]
STARTS = sorted(ROOT.glob("docs/start-*.md"))
# What would change this machine.
_INSTALLS = ("pip install", "sudo ")
# What a page's commands leave behind, a part of what they print, and how often.
LEFT = {
    "start-agents": ([], "ok ", 1),
    "start-containers": (["box.png"], "naïve ☕ text", 1),
    "start-episodes": (["runs/mine/report.html"], "this time: 2 succeeded, 0 failed", 2),
}
_COMMAND = """#!/bin/sh
exec "{python}" -m deskhand "$@"
"""


def commands(page: Path) -> str:
    lines = "".join(re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(_INSTALLS))


@pytest.mark.parametrize("page", soaked(STARTS, but=STARTS[:1]), ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    if page.stem == "start-containers":
        minimal_image()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "deskhand").write_text(_COMMAND.format(python=sys.executable))
    (programs / "deskhand").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    # Short, because sockets are in it.
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    ran = subprocess.run(
        ["bash", "-e", "-u", "-c", commands(page)],
        cwd=here,
        env={"PATH": f"{programs}:/usr/bin:/bin", "XDG_RUNTIME_DIR": str(runtime), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    files, printed, times = LEFT[page.stem]
    assert [file for file in files if not (here / file).exists()] == []
    assert (ran.stdout + ran.stderr).count(printed) >= times


def test_each_start_is_known() -> None:
    assert {page.stem for page in STARTS} == set(LEFT)
