"""The pages of the site in one folder, with the places that they have in the repository, so that their links hold.

Files that are linked and are no pages become pages here: the code of examples, a folder's list of files, a text.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tools.docs import reference

ROOT = Path(__file__).resolve().parents[2]
# Pages, pictures and data that are taken as they are.
_TAKEN = (
    "*.md",
    "changelog.d/README.md",
    "docs/**/*.md",
    "docs/**/*.png",
    "docs/**/*.svg",
    "evidence/*",
    "examples/**/*",
)
_PAGE = ".md"
_FIGURES = {".png", ".svg"}
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".sbatch": "sh", "Dockerfile": "text", ".json": "json"}
# More of a file is no reading matter.
_LONGEST_FILE = 100_000
_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def stage(folder: Path) -> None:
    """Write all that the generator reads: its settings, and the pages.

    Args:
        folder: Its `pages` are made anew.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for settings in ("mkdocs.yml", "docstrings.py"):
        shutil.copy(Path(__file__).parent / settings, folder)
    folder = folder / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    sources = {
        path for pattern in _TAKEN for path in ROOT.glob(pattern) if path.is_file() and "__pycache__" not in path.parts
    }
    # Each folder of examples has a list of its files, unless it has a page.
    lists = {path.parent for path in sources if path.is_relative_to(ROOT / "examples")} | {ROOT / "evidence"}
    for path in sorted(sources):
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == _PAGE:
            place.write_text(page(path))
        elif path.suffix in _FIGURES:
            shutil.copy(path, place)
        else:
            place.with_name(f"{path.name}.md").write_text(_listing(path))
    for path in sorted(lists):
        if not (path / "README.md").exists():
            (folder / path.relative_to(ROOT) / "README.md").write_text(_list(path, sources))
    for name, text in reference.pages().items():
        place = folder / "reference" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    (folder / "LICENSE.md").write_text(f"# Licence\n\n```text\n{(ROOT / 'LICENSE').read_text()}\n```\n")
    (folder / "llms.txt.md").write_text(f"# llms.txt\n\n```text\n{(ROOT / 'llms.txt').read_text()}\n```\n")
    shutil.copytree(Path(__file__).parent / "assets", folder / "assets")


def page(path: Path) -> str:
    """The text of a page, as Python-Markdown reads it.

    It wants four spaces where GitHub takes two for a list in a list, and links to pages only.
    """
    parts = _FENCE.split(path.read_text())
    for place in range(0, len(parts), 2):
        text = re.sub(r"^ {2,3}(?=(?:[-*]|\d+\.) )", "    ", parts[place], flags=re.MULTILINE)
        parts[place] = _LINK.sub(lambda link: f"{link[1]}{_target(path, link[2])}{link[3] or ''}{link[4]}", text)
    return "".join(parts)


def _target(page: Path, link: str) -> str:
    """Where a link of a page leads on the site."""
    place = page.parent / link
    if re.match(r"[a-z]+:", link) or place.suffix in {_PAGE, *_FIGURES}:
        return link
    if place.is_dir():
        return os.path.join(link, "README.md")  # noqa: PTH118 # a link, and no path
    return f"{link}.md"


def _listing(path: Path) -> str:
    text = path.read_text(errors="replace")
    if len(text) > _LONGEST_FILE:
        text = text[:_LONGEST_FILE].rpartition("\n")[0] + "\n[the rest is in the repository]\n"
    language = _LANGUAGES.get(path.suffix) or _LANGUAGES.get(path.name) or "text"
    # Numbers would bury what is searched for.
    head = "---\nsearch:\n  exclude: true\n---\n\n" if path.is_relative_to(ROOT / "evidence") else ""
    return f"{head}# {path.relative_to(ROOT)}\n\n````{language}\n{text}\n````\n"


def _list(folder: Path, sources: set[Path]) -> str:
    """The page of a folder that has none."""
    entries = []
    for path in sorted(sources):
        if path.parent == folder and path.suffix not in _FIGURES:
            entries.append((path.name, path.name if path.suffix == _PAGE else f"{path.name}.md"))
        elif path.parent.parent == folder and path.name in {"README.md", "run.sbatch"}:
            entries.append((f"{path.parent.name}/", f"{path.parent.name}/README.md"))
    links = "\n".join(f"- [{name}]({target})" for name, target in entries)
    return f"# {str(folder.relative_to(ROOT)).capitalize()}\n\n{links}\n"
