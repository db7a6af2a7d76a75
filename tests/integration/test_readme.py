"""What the README promises runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def run(example: str, folder: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_first_example_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]) -> None:
    for _ in range(2):
        # The second time in a home that the first has used.
        assert run(examples()[0], tmp_path, environment).startswith("True True ")
    with Image.open(tmp_path / "after.png") as frame:
        assert frame.size == (1280, 800)


def test_the_other_examples_run_too(tmp_path: Path, environment: dict[str, str]) -> None:
    _, *others = examples()
    assert [run(example, tmp_path, environment) for example in others] == [
        "{'type': 'computer'} data:image/png;base64,\n"
    ]


def test_the_two_commands_are_named() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
