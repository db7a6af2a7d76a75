"""The versions of the providers' SDKs that these tests ran with, as a table: `PYTHONPATH=tests python -m providers.versions`.

It runs the tests, asks pip for the newest version of each SDK, and writes `evidence/sdks.md`. Some SDKs hold others back:
google-adk does google-genai and websockets, inspect-ai boto3. The newest are in `newest`, an environment beside the tests' own.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "evidence/sdks.md"
COMMAND = "PYTHONPATH=tests python -m providers.versions"
NEWEST = Path(sys.prefix) / "newest"
"""Where `make setup` puts the newest versions of what is held back."""

EXTRAS = (
    "agent-framework",
    "anthropic",
    "bedrock",
    "cua",
    "google",
    "google-adk",
    "inspect",
    "langchain",
    "mcp",
    "openai",
    "osworld",
)
"""The extras of providers."""

HELD_BACK = (
    "tests/providers/test_bedrock.py",
    "tests/providers/test_bedrock_wire.py",
    "tests/providers/test_google_desktop.py",
    "tests/providers/test_serve.py",
    "tests/episodes/test_loops.py",
)
"""The tests that use what is held back."""


@dataclass(frozen=True)
class Row:
    """One SDK: the extra that needs it and what of it, and the versions that were tested, the newest last."""

    sdk: str
    extra: str
    needed: Requirement
    tested: tuple[Version, ...]


def needed() -> dict[str, tuple[str, Requirement]]:
    """What the extras of providers need: the extra and the requirement of each SDK."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    requirements = [(extra, Requirement(line)) for extra in EXTRAS for line in extras[extra]]
    found: dict[str, tuple[str, Requirement]] = {}
    for extra, requirement in requirements:
        # What several need has one row, the first one's.
        found.setdefault(requirement.name, (extra, requirement))
    return found


def installed() -> dict[str, tuple[Version, ...]]:
    """The versions of each SDK that the tests run with here, the newest last."""
    found: dict[str, set[Version]] = {name: set() for name in needed()}
    for distribution in chain(
        distributions(), distributions(path=[*map(str, NEWEST.glob("lib/python*/site-packages"))])
    ):
        if (name := _normal(distribution.name)) in found:
            found[name].add(Version(distribution.version))
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def rows() -> list[Row]:
    """What the table says.

    Raises:
        ValueError: A line of it is none of a table of these.
    """
    read = []
    requirements = needed()
    for line in TABLE.read_text().splitlines():
        if not line.startswith("|") or line.startswith(("| SDK", "|---")):
            continue
        sdk, extra, least, tested = (cell.strip() for cell in line.strip("|").split("|"))
        if sdk not in requirements:
            raise ValueError(f"{TABLE.name} has {sdk}, which no extra of a provider needs: {COMMAND}")
        versions = tuple(Version(version) for version in tested.split(", "))
        read.append(Row(sdk, extra, Requirement(f"{sdk}{least}"), versions))
    return read


def behind() -> list[str]:
    """SDKs of which another version is installed than the newest that the table has, and both of these."""
    here = installed()
    known = {row.sdk: row.tested[-1] for row in rows()}
    return [
        f"{sdk} {known.get(sdk)}, here {have[-1]}" for sdk, have in here.items() if have and have[-1] != known.get(sdk)
    ]


def _newest(sdk: str) -> Version:
    """The newest that can be installed where there is nothing else."""
    asked = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-", sdk]
    told = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    (found,) = (each["metadata"]["version"] for each in told["install"] if _normal(each["metadata"]["name"]) == sdk)
    return Version(found)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _passed(python: Path, *tests: str) -> str:
    ran = subprocess.run([python, "-m", "pytest", "-q", *tests], cwd=ROOT, capture_output=True, text=True, check=False)
    last = ran.stdout.splitlines()[-1] if ran.stdout else ran.stderr
    if ran.returncode:
        raise SystemExit(f"{ran.stdout[-4000:]}\nno table is written: the tests of providers failed")
    return last.partition(" passed")[0]


def main() -> None:
    """Run the tests, and write the table."""
    here = installed()
    newest = {sdk: _newest(sdk) for sdk in here}
    if old := [f"{sdk} {have[-1]}, not {newest[sdk]}" for sdk, have in here.items() if have[-1] != newest[sdk]]:
        raise SystemExit(
            f"not the newest ({'; '.join(old)}): make setup anew; what others hold back, .newest in the Makefile installs"
        )
    passed = _passed(
        Path(sys.executable),
        "tests/providers",
        "tests/episodes/test_loops.py",
        "--deselect",
        "tests/providers/test_versions.py",
    )
    again = _passed(NEWEST / "bin/python", *HELD_BACK)
    when = f"On {dt.datetime.now(dt.UTC):%Y-%m-%d} with Python {platform.python_version()}"
    lines = [
        "# The providers' SDKs",
        "",
        f"`{COMMAND}` runs the tests of providers and writes this.",
        "",
        f"{when}: {passed} passed. Where there are two versions, another SDK holds the older one back, and {again} passed with",
        "the newer. No newer one could be installed then.",
        "",
        "| SDK | extra | needed | tested |",
        "|---|---|---|---|",
    ]
    for sdk, (extra, requirement) in needed().items():
        lines.append(f"| {sdk} | {extra} | {requirement.specifier} | {', '.join(map(str, here[sdk]))} |")
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
