"""A wheel installs and works where there is no Rust toolchain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import deskhand
with deskhand.launch(size=(320, 200)) as desktop:
    seen = desktop.perform(deskhand.Move((10, 20)))
    assert seen.settled and seen.cursor == (10, 20), seen
print(deskhand.__file__)
"""


def run(argv: Sequence[str | Path], **options: object) -> str:
    ran = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert ran.returncode == 0, ran.stderr
    return str(ran.stdout)


# It builds all of Rust if that has changed since the last build.
@pytest.mark.timeout(1800)
def test_the_wheel_works_in_a_clean_environment(tmp_path: Path, environment: dict[str, str]) -> None:
    maturin = Path(sys.executable).with_name("maturin")
    run([maturin, "build", "--release", "--quiet", "--out", tmp_path], cwd=ROOT)
    (wheel,) = tmp_path.glob("deskhand-*-abi3-*.whl")
    clean = tmp_path / "clean"
    run([sys.executable, "-m", "venv", clean])
    bare = {**environment, "PATH": "/usr/bin:/bin"}
    run([clean / "bin/python", "-m", "pip", "install", "--quiet", wheel])
    where = run([clean / "bin/python", "-c", SCRIPT], cwd=tmp_path, env=bare)
    assert str(clean) in where
    told = subprocess.run(
        [clean / "bin/deskhand", "ls"], capture_output=True, text=True, env=bare, cwd=tmp_path, check=False
    )
    assert told.returncode != 0
    assert "deskhand[cli]" in told.stderr
