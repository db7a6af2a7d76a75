"""What holds of every document: links lead somewhere, pages are linked, lengths are kept, names are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from deskhand.cli.group import commands

ROOT = Path(__file__).resolve().parents[2]
_TRACKED = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
DOCUMENTS = [
    path
    for name in subprocess.run(_TRACKED, capture_output=True, text=True, check=True).stdout.split()
    if (path := ROOT / name).exists()
]
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
INDEX = ROOT / "docs/decisions/README.md"


def prose(document: Path) -> str:
    """A document without its code blocks."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def links(document: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(document)))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    missing = []
    # What stands in a fragment goes to CHANGELOG.md.
    folder = ROOT if document.parent.name == "changelog.d" else document.parent
    for target in links(document):
        path, _, anchor = target.partition("#")
        place = folder / path if path else document
        if not place.exists() or (anchor and anchor not in anchors(place)):
            missing.append(target)
    assert missing == []


def test_links_are_found() -> None:
    assert "docs/desktops.md" in links(ROOT / "README.md")
    assert {"calute", "coming-from-another-project"} <= anchors(ROOT / "docs/coming-from.md") | anchors(
        ROOT / "docs/providers.md"
    )


def test_every_page_is_linked_from_the_readme() -> None:
    assert {f"docs/{page.name}" for page in ROOT.glob("docs/*.md")} <= set(links(ROOT / "README.md"))


def test_llms_txt_leads_to_every_page() -> None:
    """The form is that of llmstxt.org: a title, a summary in a quote, sections of links."""
    document = ROOT / "llms.txt"
    targets = links(document)
    assert [target for target in targets if not (ROOT / target).exists()] == []
    assert {f"docs/{page.name}" for page in ROOT.glob("docs/*.md")} <= set(targets)
    lines = document.read_text().splitlines()
    assert lines[0] == "# deskhand"
    assert lines[2].startswith("> ")
    assert re.findall(r"^#+ .*$", document.read_text(), re.MULTILINE)[1:] == ["## Use", "## Understand", "## Optional"]


def test_pages_that_the_code_names_are_there() -> None:
    named = {
        (str(source.relative_to(ROOT)), page)
        for source in (ROOT / "python").rglob("*.py")
        for page in re.findall(r"docs/[\w/\-]+\.md", source.read_text())
    }
    assert named
    assert {(where, page) for where, page in named if not (ROOT / page).exists()} == set()


def test_the_index_has_every_decision_by_its_title() -> None:
    listed = re.findall(r"^- \[(\d{4})\]\((.+?)\): (.+)$", INDEX.read_text(), re.MULTILINE)
    titles = [(path.name[:4], path.name, path.read_text().partition("\n")[0]) for path in DECISIONS]
    # A new one stands in the section of its subject.
    assert sorted((number, name, f"# {number}: {title}") for number, name, title in listed) == titles
    assert sorted(int(number) for number, _, _ in listed) == list(range(1, len(listed) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name[:4])
def test_a_decision_has_its_three_sections(path: Path) -> None:
    assert re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE) == ["Context", "Decision", "Consequences"]


@pytest.mark.parametrize(
    ("documents", "most"),
    [([ROOT / "README.md"], 120), ([ROOT / "ARCHITECTURE.md"], 120), (DECISIONS, 40)],
    ids=["readme", "architecture", "decisions"],
)
def test_documents_stay_short(documents: list[Path], most: int) -> None:
    assert [path.name for path in documents if path.read_text().count("\n") > most] == []


def test_the_commands_are_listed_as_their_help_says() -> None:
    context = click.Context(commands)
    helps = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    listed = re.findall(r"^\| `deskhand (\w+)` \| (.+) \|$", (ROOT / "docs/command-line.md").read_text(), re.MULTILINE)
    assert dict(listed) == {
        name: command.get_short_help_str(300) for name, command in helps.items() if command and not command.hidden
    }


def test_the_two_commands_are_named() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_files_that_are_named_are_there() -> None:
    """By their whole path or by the end of one. NAME, AREA and NNNN stand for what somebody will add."""
    ours = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(ours, capture_output=True, text=True, check=True).stdout.split()
    named = {
        (document.name, name)
        for document in (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *DECISIONS)
        for name in re.findall(r"`([\w./\-]+\.(?:py|rs|md|toml|txt))`", document.read_text())
        if not re.search("NAME|AREA|NNNN", name)
    }
    assert {
        (where, name) for where, name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)
    } == set()
