"""The environment of Python in which upstream's evaluators run, and what it has.

Upstream's package wants an old numpy, torch and much more, so it never shares an interpreter with this one. This module owns
where that environment is, how it is made, and the table of what each evaluator uses. What must never appear here: an
evaluation (see `evaluating`).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.tasks.osworld.needs import Table
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PYTHON = "DESKHAND_OSWORLD_PYTHON"
"""The variable that names the interpreter."""

_PROBE_LIMIT, _INSTALL_LIMIT = 60.0, 3600.0
_PACKAGE = "desktop-env"
# What each import is called at PyPI, with the versions that upstream's package asks for.
_REQUIREMENTS = {
    "PIL": "Pillow~=11.0.0",
    "PyPDF2": "PyPDF2",
    "borb": "borb",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless>=4.5,<5",
    "docx": "python-docx",
    "easyocr": "easyocr>=1.6.2,<2",
    "fastdtw": "fastdtw",
    "fitz": "pymupdf",
    "formulas": "formulas",
    "imagehash": "ImageHash",
    "librosa": "librosa",
    "lxml": "lxml",
    "mutagen": "mutagen",
    "numpy": "numpy>=1.26,<2",
    "odf": "odfpy",
    "openpyxl": "openpyxl",
    "pandas": "pandas>=2.2,<2.3",
    "pdfplumber": "pdfplumber",
    "playwright": "playwright",
    "pptx": "python-pptx",
    "pydrive": "pydrive",
    "pypdf": "pypdf",
    "pytz": "pytz~=2024.1",
    "rapidfuzz": "rapidfuzz",
    "requests": "requests",
    "scipy": "scipy",
    "skimage": "scikit-image",
    "tldextract": "tldextract",
    "xmltodict": "xmltodict",
    "yaml": "PyYAML",
}
# Parts of other packages that are imported by their own names, or only through another one.
_ALONG = {"lxml": ("cssselect",)}
_FIND = """
import importlib.metadata, importlib.util, json, sys
names = json.loads(sys.argv[1])
try:
    version = importlib.metadata.version("desktop-env")
except importlib.metadata.PackageNotFoundError:
    version = ""
there = [name for name in names if importlib.util.find_spec(name) is not None]
print(json.dumps({"version": version, "packages": there}))
"""


@dataclass(frozen=True, slots=True)
class Evaluators:
    """An environment with upstream's evaluators.

    Attributes:
        python: Its interpreter.
        version: The version of upstream's package in it; empty if it has none.
        packages: The packages in it, of those that evaluators use, by the names that they are imported by.
    """

    python: str
    version: str
    packages: frozenset[str]


@functools.cache
def load_table() -> Table:
    """The table of what each evaluator uses, for the version of upstream's package that it was read from."""
    text = (resources.files("deskhand.episodes.tasks.osworld") / "evaluators.json").read_text(encoding="utf-8")
    data = json.loads(text)
    metrics, getters = (
        {name: (frozenset(row[0]), frozenset(row[1])) for name, row in data[kind].items()}
        for kind in ("metrics", "getters")
    )
    return Table(data["version"], metrics, getters)


def default_directory() -> Path:
    """Where the environment is made if no other place is named."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "deskhand" / "osworld-evaluators"


def find_evaluators() -> Evaluators | None:
    """The environment that `DESKHAND_OSWORLD_PYTHON` names, or the one in the default place; None if there is none.

    Raises:
        EpisodeError: The variable names something that is no Python.
    """
    named = os.environ.get(PYTHON)
    python = named or str(default_directory() / "bin" / "python")
    if named is None and not Path(python).exists():
        return None
    return _examined(python)


@functools.cache
def _examined(python: str) -> Evaluators:
    asked = [python, "-I", "-c", _FIND, json.dumps(sorted(_REQUIREMENTS))]
    hint = f"set {PYTHON} to the bin/python of an environment that `deskhand assets evaluators` has made"
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_PROBE_LIMIT, check=False)
        found = json.loads(done.stdout)
        return Evaluators(python, str(found["version"]), frozenset(found["packages"]))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError) as error:
        raise EpisodeError(f"{python} cannot be used as the Python of OSWorld's evaluators: {error}", hint) from error


def make_evaluators(
    directory: Path, packages: Iterable[str], tell: Callable[[str], object] = lambda _: None
) -> Evaluators:
    """Make the environment, or add to it: upstream's package without its own requirements, and the packages that are named.

    Args:
        directory: Where it is.
        packages: What evaluators use, by the names that they are imported by.
        tell: Called with a line for each step.

    Raises:
        EpisodeError: It cannot be made; the message has the end of what the installer said.
    """
    wanted = sorted({_REQUIREMENTS[name] for name in packages if name in _REQUIREMENTS})
    wanted += sorted({extra for name in packages for extra in _ALONG.get(name, ())})
    python = directory / "bin" / "python"
    steps = (
        []
        if python.exists()
        else [([sys.executable, "-m", "venv", str(directory)], f"a new environment in {directory}")]
    )
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    steps.append(([*pip, "--no-deps", f"{_PACKAGE}=={load_table().version}"], f"{_PACKAGE} {load_table().version}"))
    if wanted:
        steps.append(([*pip, *wanted], ", ".join(wanted)))
    for command, what in steps:
        tell(what)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_LIMIT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EpisodeError(f"the environment of OSWorld's evaluators, {what}: {error}") from error
        if done.returncode != 0:
            said = done.stderr.strip()[-1000:]
            raise EpisodeError(f"the environment of OSWorld's evaluators, {what}: {said}", "is there a network?")
    _examined.cache_clear()
    return _examined(str(python))
