"""A wheel installs and works where there is no Rust toolchain."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import need

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


# What the one shared library in the wheel may need of a machine: the C library, and the compiler's.
SYSTEM = {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as for a release."""
    out = tmp_path_factory.mktemp("wheel")
    run([Path(sys.executable).with_name("maturin"), "build", "--release", "--quiet", "--out", out], cwd=ROOT)
    (wheel,) = out.glob("deskhand-*-abi3-*.whl")
    return wheel


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_wheel_has_one_shared_library(wheel: Path, tmp_path: Path) -> None:
    """C4: nothing is bundled, under whatever name."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if archive.read(name)[:4] == b"\x7fELF"]
        assert libraries == ["deskhand/_native.abi3.so"]
        # Type checkers read what is typed only where this says so (PEP 561).
        assert {"deskhand/py.typed", "deskhand/_native.pyi"} <= set(archive.namelist())
        information = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
        # The benchmark, the tests and the tools are in the repository alone.
        assert {name.partition("/")[0] for name in archive.namelist()} == {"deskhand", information}
        assert not [name for name in archive.namelist() if "bench/" in name]
        library = archive.extract(libraries[0], tmp_path)
    told = run([need("readelf", "binutils"), "--dynamic", "--wide", library])
    needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", told))
    assert "libc.so.6" in needed
    assert needed <= SYSTEM
    assert not re.search(r"\((RPATH|RUNPATH)\)", told)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_wheel_works_in_a_clean_environment(wheel: Path, tmp_path: Path, environment: dict[str, str]) -> None:
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
