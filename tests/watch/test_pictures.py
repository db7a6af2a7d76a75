"""The pages in each of their states, light and dark, in a large window and on a phone: all of it fits and can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from faults.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.soak
def test_all_of_it_fits_and_has_contrast(environment: dict[str, str], tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(ROOT / "python")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/watch_pictures.py"), str(tmp_path)],
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("*.png"))) == 72
