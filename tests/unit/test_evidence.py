"""What `evidence/` names is there: each revision is in this history, each table has a command that runs here."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOLD = ROOT / "tools/right_or_told.py"
EVIDENCE = sorted((ROOT / "evidence").glob("*.md"))
# What follows a slash is a task of OSWorld's.
_REVISION = re.compile(r"(?<!/)\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b|(?<= at )[0-9]{7}\b")
_COMMAND = re.compile(r"`([^`]+)`")


def in_history(revision: str) -> bool:
    """Whether it is a commit, and an ancestor of what is checked out."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run(
        [*git, "cat-file", "-e", f"{revision}^{{commit}}"], stderr=subprocess.DEVNULL, check=False
    ).returncode:
        return False
    return not subprocess.run([*git, "merge-base", "--is-ancestor", revision, "HEAD"], check=False).returncode


@pytest.fixture(scope="module", autouse=True)
def _history() -> None:
    shallow = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    asked = subprocess.run(shallow, capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.fail(f"the history is needed: run the tests in a clone ({asked.stderr.strip()})")
    if asked.stdout.strip() == "true":
        pytest.fail("this clone has a part of the history only: git fetch --unshallow")


def test_a_revision_that_is_not_there_is_known() -> None:
    assert in_history("HEAD")
    assert not in_history("6a35a00")
    assert _REVISION.findall(
        "on revision 6a35a00, at 2091593, 4,597,310 runs in 2097152 bytes, a facade of vlc/8ba5ae7a"
    ) == [
        "6a35a00",
        "2091593",
    ]


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name)
def test_revisions_are_in_the_history(path: Path) -> None:
    named = set(_REVISION.findall(path.read_text()))
    assert [revision for revision in sorted(named) if not in_history(revision)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "evidence").glob("*.json")), ids=lambda path: path.name)
def test_revisions_of_documents_are_in_the_history(path: Path) -> None:
    revision = json.loads(path.read_text()).get("revision")
    assert revision is None or in_history(revision)


def runs_here(command: str) -> bool:
    """Whether a command names something of this repository that can be run."""
    words = [word for word in command.split() if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    match words:
        case ["make", target, *_]:
            return bool(re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE))
        case ["deskhand", subcommand, *_]:
            sources = (ROOT / "python/deskhand/cli").glob("*.py")
            return any(re.search(rf"def {subcommand}\b|\"{subcommand}\"", source.read_text()) for source in sources)
        case [python, "-m", "pytest", *rest] if python.endswith("python"):
            return any((ROOT / word).exists() or word.endswith("/FILE") for word in rest if "/" in word)
        case [python, "-m", module, *_] if python.endswith("python"):
            places = [root / module.replace(".", "/") for root in (ROOT, ROOT / "tests")]
            return any((place / "__main__.py").is_file() or place.with_suffix(".py").is_file() for place in places)
        case [script, *_]:
            return "/" in script and (ROOT / script).is_file()
    return False


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("make blocks", True),
        ("make nothing-of-this-name", False),
        ("python -m bench --only vnc/key", True),
        ("deskhand nothing-of-this-name", False),
        ("tools/pool.py --desktops 32", True),
        ("tools/nothing.py", False),
        ("PYTHONPATH=tests python -m providers.cost", True),
        ("python -m providers.nothing", False),
        ("DESKHAND_EVIDENCE=1 .venv/bin/python -m pytest tests/containers", True),
        ("perf record -F 499", False),
    ],
)
def test_a_command_that_cannot_be_run_is_known(command: str, there: bool) -> None:  # noqa: FBT001
    assert runs_here(command) is there


def parts(text: str) -> list[tuple[str, str]]:
    """A document by its headings of the second degree, each with what it is below, and all that stands above it."""
    head, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    return [("", head), *((part.partition("\n")[0], f"{head}\n{part}") for part in rest)]


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name)
def test_numbers_have_a_command(path: Path) -> None:
    """What was measured by something that is not here cannot be measured again."""
    text = path.read_text()
    assert "outside of the repository" not in text
    without = []
    for title, part in parts(text):
        measured = any(re.search(r"\d", line) for line in part.splitlines() if line.startswith("|"))
        commands = [" ".join(command.split()) for command in _COMMAND.findall(part)]
        if measured and not any(runs_here(command) for command in commands):
            without.append(title or "the beginning")
    assert without == []


def test_what_is_run_again_and_again_is_there() -> None:
    """`tools/right_or_told.py` names tests, hours before some of them are run."""
    named = re.findall(
        r'"(tests/[^"]+\.py|{(?:FAULTS|INTEGRATION|CONFORMANCE)}/[^"]+\.py)(?:::(\w+))?"', TOLD.read_text()
    )
    assert len(named) > len(re.findall(r"^    Row\(", TOLD.read_text(), re.MULTILINE))
    for name, test in named:
        path = ROOT / re.sub(r"{(\w+)}", lambda room: f"tests/{room[1].lower()}", name)
        assert path.is_file(), name
        assert f"def {test}" in path.read_text(), (name, test)


def test_there_is_evidence() -> None:
    assert len(EVIDENCE) >= 5
