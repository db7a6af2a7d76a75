"""The site is built strictly, its pages open without an error as files, and none is wider than a phone.

A sample of the pages of each kind is opened; all of them with DESKHAND_EVIDENCE=1.
"""

from __future__ import annotations

import html
import importlib
import inspect
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.docs import manual, reference, staging

import deskhand
from deskhand import errors
from docs.test_pages import links
from faults.helpers import need, until
from watch.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page, Request

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"
_GENERATOR = ROOT / ".venv/docs/bin/zensical"
_PHONE = {"width": 390, "height": 844}
# Of these folders, every page is opened. Of the others, so many.
_WHOLE = {"docs", "reference", "."}
_SAMPLE = 3
_IN_A_FIELD = "document.activeElement.shadowRoot?.activeElement?.tagName === 'INPUT'"
_FOUND = "[...document.querySelectorAll('*')].some(each => each.shadowRoot?.textContent.includes('PoolExhausted'))"
# The list of words takes most of the time of a page; one page searches in it.
_NO_WORDS = 'var __index = {"config": {"lang": ["en"], "separator": " "}, "items": []}'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    assert _GENERATOR.exists(), f"{_GENERATOR} is not there: run `make docs`"
    folder = tmp_path_factory.mktemp("site")
    staging.stage(folder)
    settings = folder / "mkdocs.yml"
    settings.write_text(settings.read_text().replace("../../python", str(ROOT / "python")))
    command = [str(_GENERATOR), "build", "--strict", "--clean", "--config-file", str(settings)]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return folder / "site"


class Opened:
    """A page of a browser, with what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "about:", "blob:")):
            self.wrong.append(f"{request.url} is elsewhere")

    def _failed(self, request: Request) -> None:
        # A page that is left takes the requests for its icon along.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"{request.url}: {request.failure}")


def chosen(site: Path) -> list[Path]:
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    if EVIDENCE:
        return pages
    taken: dict[str, int] = {}
    found = []
    for path in pages:
        folder = str(path.parent.relative_to(site))
        taken[folder] = taken.get(folder, 0) + 1
        if folder in _WHOLE or taken[folder] <= _SAMPLE:
            found.append(path)
    return found


@pytest.mark.soak
def test_every_page_opens_on_a_phone(site: Path) -> None:
    wrong: dict[str, object] = {}
    with chromium() as browser:
        page = browser.new_page(viewport=_PHONE)
        page.route("**/search.js", lambda route: route.fulfill(body=_NO_WORDS, content_type="text/javascript"))
        opened = Opened(page)
        for path in chosen(site):
            page.goto(path.as_uri())
            wide, empty = page.evaluate(
                "[document.documentElement.scrollWidth > innerWidth,"
                " document.querySelector('.md-content').innerText.trim().length < 20]"
            )
            if wide or empty or opened.wrong:
                wrong[str(path.relative_to(site))] = (wide, empty, *opened.wrong)
                opened.wrong.clear()
    assert wrong == {}


@pytest.mark.soak
def test_the_search_works_from_files(site: Path) -> None:
    with chromium() as browser:
        opened = Opened(browser.new_page())
        opened.page.goto((site / "index.html").as_uri())
        opened.page.keyboard.press("/")
        until(lambda: bool(opened.page.evaluate(_IN_A_FIELD)), 20.0, "the search to take the keyboard")
        opened.page.keyboard.type("PoolExhausted")
        until(lambda: bool(opened.page.evaluate(_FOUND)), 20.0, "the search to find a name of the reference")
        assert opened.wrong == []


def test_every_link_of_a_page_leads_to_a_page(tmp_path: Path) -> None:
    # The generator says the same, in a minute: `make docs`.
    staging.stage(tmp_path)
    pages = tmp_path / "pages"
    missing = [
        f"{path.relative_to(pages)}: {target}"
        for path in pages.rglob("*.md")
        for target in links(path)
        if (place := target.partition("#")[0]) and not (path.parent / place).exists()
    ]
    assert missing == []


def test_every_public_name_has_a_place() -> None:
    described = {name for room in reference.API.values() for name in room.names.split() if not room.whole}
    whole = [f"deskhand.{name}" for room in reference.API.values() if room.whole for name in room.names.split()]
    missing = {
        name
        for name in reference.public_names() - described
        if not any(deskhand._PLACES[name] == module for module in whole)
    }
    assert missing == set()


def test_every_provider_has_a_page() -> None:
    packages = {path.parent.name for path in (ROOT / "python/deskhand/providers").glob("*/__init__.py")}
    described = {
        name.split(".")[1] for room in reference.API.values() for name in room.names.split() if "providers." in name
    }
    assert packages <= described
    pages = re.findall(r"reference/providers-([a-z-]+)\.md", (ROOT / "tools/docs/mkdocs.yml").read_text())
    assert {page.replace("-", "_") for page in pages} == packages


@pytest.mark.soak
def test_every_name_of_the_reference_is_on_its_page(site: Path) -> None:
    for name, room in reference.API.items():
        ids = set(re.findall(r' id="([^"]+)"', (site / f"reference/{name}.html").read_text()))
        if room.whole:
            assert any(each.startswith("deskhand.") for each in ids), name
        else:
            assert {f"deskhand.{each}" for each in room.names.split()} <= ids


@pytest.mark.soak
def test_the_pages_of_modules_begin_with_their_docstrings_and_examples_are_code(site: Path) -> None:
    for name, room in reference.API.items():
        text = (site / f"reference/{name}.html").read_text()
        # Markdown takes the marks of an example for quotes in quotes.
        assert not re.search(r"<blockquote>\s*<blockquote>", text), name
        first = room.names.split()[0]
        if room.whole:
            docstring = inspect.getdoc(importlib.import_module(f"deskhand.{first}")) or ""
            words = re.findall(r"\w+", docstring.partition("\n")[0])
            shown = re.findall(r"\w+", html.unescape(re.sub(r"<[^>]+>", "", text.partition("</h1>")[2])))
            assert " ".join(words) in " ".join(shown[:200]), name


@pytest.mark.soak
@pytest.mark.parametrize("width", [390, 1440])
def test_the_plot_of_the_benchmark_is_shown(site: Path, width: int) -> None:
    with chromium() as browser:
        opened = Opened(browser.new_page(viewport={"width": width, "height": 844}))
        opened.page.goto((site / "docs/benchmarks.html").as_uri())
        drawn, shown, over = opened.page.evaluate(
            "(plot => [plot.naturalWidth, plot.getBoundingClientRect().width,"
            " document.documentElement.scrollWidth > innerWidth])(document.querySelector('img[src$=\"bench.svg\"]'))"
        )
        assert drawn > 0
        assert shown >= 600
        assert not over
        assert opened.wrong == []


def test_every_error_says_what_to_do() -> None:
    assert [name for name in reference.ERRORS if not all(reference.advice_of(name))] == []
    assert [
        name for name in reference.ERRORS if "What to do:" not in (inspect.getdoc(getattr(errors, name)) or "")
    ] == []


def test_the_manual_pages_are_clean(tmp_path: Path) -> None:
    pages = manual.write(tmp_path)
    names = {page.name for page in pages}
    assert {"deskhand.1", "deskhand-up.1", "deskhand-tasks-check.1"} <= names
    lint = [need("mandoc", "mandoc"), "-T", "lint", "-W", "warning", *map(str, pages)]
    checked = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_variables_of_the_environment_are_described() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "python").rglob("*.py"))
    # What the parts tell each other, and nobody sets.
    ours = {"COMMAND", "COMPLETE", "DISPLAYS", "DPI", "DRIVER", "HARBOR_ENV", "HARBOR_NETWORK", "POOL", "SIZE", "VNC"}
    ours |= {"WINDOW_MANAGER"}
    named = set(re.findall(r"\bDESKHAND_([A-Z_]+)\b", sources)) - ours
    assert {name for name in named if f"`DESKHAND_{name}`" not in page} == set()
