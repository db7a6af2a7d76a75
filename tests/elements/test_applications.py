"""Applications that nobody wrote for these tests: their elements come, stay current, and are scrolled to when they are used."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import DeskhandTimeout, LeftClick, Scroll, Settle
from deskhand.desktop.elements import ElementReader
from elements.puppet import Puppet
from integration.apps import chromium_command, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand import Desktop

_ROWS, _COLUMNS = 250, 8
PATIENCE = 60.0
# In the long form a browser is started so often.
_STARTS = 20 if os.environ.get("DESKHAND_EVIDENCE") else 1
# And so many links of a page are clicked, in sight or not.
_CLICKS = 200 if os.environ.get("DESKHAND_EVIDENCE") else 0
_FIREFOX = """
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("startup.homepage_welcome_url", "");
"""


def page(path: Path, rows: int = _ROWS) -> str:
    """A page of links in a table; its title names the one that was clicked last. Its address."""
    cells = "".join(
        "<tr>" + "".join(f"<td><a href='#{row}-{column}'>link {row}-{column}</a></td>" for column in range(_COLUMNS))
        for row in range(rows)
    )
    told = "<script>addEventListener('hashchange', () => document.title = 'at ' + location.hash)</script>"
    path.write_text(f"<!doctype html><meta charset='utf-8'><title>none</title><table>{cells}</table>{told}")
    return f"file://{path}"


def _firefox_command(url: str, profile: Path) -> list[str]:
    profile.mkdir()
    (profile / "user.js").write_text(_FIREFOX)
    return [need("firefox-esr", "firefox-esr"), "--no-remote", "--profile", str(profile), url]


BROWSERS: dict[str, Callable[[str, Path], list[str]]] = {"chromium": chromium_command, "firefox": _firefox_command}


def says(desktop: Desktop, what: str) -> bool:
    return until(lambda: any(window.title.startswith(what) for window in desktop.windows.list()), PATIENCE)


def _names(desktop: Desktop, role: str) -> set[str]:
    return {element.name for element in desktop.elements(timeout=5) if element.role == role and element.visible}


def _shows(desktop: Desktop, role: str, wanted: set[str]) -> bool:
    return wanted <= _names(desktop, role)


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Path) -> Iterator[Puppet]:
    puppet = Puppet(desktop, tmp_path / "socket")
    yield puppet
    os.kill(puppet.program.pid, signal.SIGKILL)
    puppet.close()
    desktop.find("window", "Puppet").wait_for("hidden", timeout=10)


@pytest.mark.soak
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_is_there_however_early_it_is_read(launch: Callable[..., Desktop], tmp_path: Path, browser: str) -> None:
    """Read without a pause from the first moment: what is read while the page comes in must not be all that is ever known."""
    for number in range(_STARTS):
        home = tmp_path / str(number)
        home.mkdir()
        desktop = launch(size=(1000, 700))
        desktop.start(BROWSERS[browser](page(home / "page.html", 5), home / "profile"), timeout=PATIENCE)

        wanted = {f"link {row}-{column}" for row in range(5) for column in range(_COLUMNS)}
        assert until(partial(_shows, desktop, "link", wanted), PATIENCE), (number, _names(desktop, "link"))
        desktop.close()


@pytest.mark.soak
@pytest.mark.timeout(3600 if _CLICKS else 600)
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_link_is_scrolled_to(launch: Callable[..., Desktop], tmp_path: Path, browser: str) -> None:
    desktop = launch(size=(1000, 700))
    desktop.start(BROWSERS[browser](page(tmp_path / "page.html"), tmp_path / "profile"), timeout=PATIENCE)
    desktop.find("link", "link 0-0", exact=True).wait_for("visible", timeout=PATIENCE)
    choice = random.Random(7)
    anywhere = [f"{choice.randrange(_ROWS)}-{choice.randrange(_COLUMNS)}" for _ in range(_CLICKS)]
    for name in ("249-7", "0-0", "120-3", *anywhere):
        link = desktop.find("link", f"link {name}", exact=True)
        # What is out of sight is no part of what is read.
        if name == "249-7":
            assert all(element.visible or element.name != f"link {name}" for element in desktop.elements())
        link.click(timeout=PATIENCE)
        assert says(desktop, f"at #{name}"), name


@pytest.mark.soak
@pytest.mark.parametrize("browser", BROWSERS)
def test_an_item_with_items_below_it_is_clicked_itself(
    launch: Callable[..., Desktop], tmp_path: Path, browser: str
) -> None:
    """Its box has those below it, as that of a mail program's account has the folders."""
    desktop = launch(size=(1000, 700))
    lines = "".join(f"<div role=treeitem>Child {number}</div>" for number in range(4))
    (tmp_path / "page.html").write_text(
        "<title>tree</title><div role=tree><div role=treeitem aria-label=Parent>Parent<div role=group>"
        f"{lines}</div></div></div><script>onclick = event => document.title = 'at ' + event.target.firstChild.data</script>"
    )
    desktop.start(BROWSERS[browser](f"file://{tmp_path}/page.html", tmp_path / "profile"), timeout=PATIENCE)
    desktop.find("treeitem", "Child 3").click(timeout=PATIENCE)
    assert says(desktop, "at Child 3")
    desktop.find("treeitem", "Parent", exact=True).click(timeout=PATIENCE)
    assert says(desktop, "at Parent")


@pytest.mark.soak
def test_a_row_is_scrolled_to(desktop: Desktop, puppet: Puppet) -> None:
    """GTK 3 says neither where a row is that does not show nor scrolls to it: the wheel does."""
    puppet.run("rows(500)")
    desktop.find("button", "Row 0", exact=True).element()
    for number in (499, 2, 250):
        row = desktop.find("button", f"Row {number}", exact=True).element(timeout=20)
        desktop.perform(LeftClick(element=row.ref))
        assert puppet.tells(["clicked", f"Row {number}"])
    assert len(puppet.told) == 3


def test_what_is_scrolled_into_view_is_read(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("rows(500)")
    listed = desktop.find("listbox").element()
    for direction in ("down", "up"):
        desktop.perform(*[Scroll(element=listed.ref, direction=direction, magnitude=40) for _ in range(5)])
        shown = puppet.run(
            "(lambda at, row: [int(at // row) + 1, int((at + 300) // row) - 1])"
            "(widgets['rows'].get_vadjustment().get_value(), widgets['rows'].get_vadjustment().get_upper() / 500)"
        )

        wanted = {f"Row {number}" for number in range(shown[0], shown[1])}
        assert until(partial(_shows, desktop, "button", wanted), 10), (wanted, _names(desktop, "button"))


def test_what_the_wheel_does_not_bring_is_told(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("rows(100)")
    row = desktop.find("button", "Row 99", exact=True).element(timeout=20)
    # It takes the wheel for itself.
    puppet.run("widgets['rows'].add_events(1 << 21); widgets['rows'].connect('scroll-event', lambda *_: True)")
    with pytest.raises(DeskhandTimeout, match="is scrolled out of sight"):
        desktop.perform(LeftClick(element=row.ref), settle=Settle(timeout=2))
    assert puppet.told == []


def test_what_is_closed_is_not_scrolled_to(desktop: Desktop, puppet: Puppet) -> None:
    """A page of a notebook that does not show, and the items of a menu that is closed, are not there."""
    puppet.run("widgets['n'] = Gtk.Notebook(); place.put(widgets['n'], 20, 20)")
    puppet.run("[widgets['n'].append_page(Gtk.Button(label=name), None) for name in ('First', 'Second')]")
    puppet.run("widgets['n'].show_all(); combo('Colour', ['red', 'green'], 20, 200)")
    desktop.find("button", "First").element()
    with pytest.raises(DeskhandTimeout, match="found nothing"):
        desktop.find("button", "Second").click(timeout=1)
    with pytest.raises(DeskhandTimeout, match="found nothing"):
        desktop.find("menuitem", "green").click(timeout=1)


def _plain(element: deskhand.Element) -> tuple[object, ...]:
    return element.role, element.name, element.states, element.box, element.depth, element.text, element.value


def test_after_many_changes_what_is_kept_is_what_is_read_anew(desktop: Desktop, puppet: Puppet) -> None:
    """A thousand changes, and readings at any moment between them; a session that has kept nothing sees the same."""
    choice = random.Random(20)
    there = [f"B{number}" for number in range(30)]
    for number, name in enumerate(there):
        puppet.run(f"button('{name}', {number % 5 * 100}, {number // 5 * 60})")
    puppet.run("check('Loud', 20, 360); entry('Text', 150, 360); rows(40)")
    for step in range(100):
        changes = []
        for number in range(10):
            name, label = choice.choice(there), f"{step}.{number}"
            changes.append(
                choice.choice(
                    [
                        f"widgets['{name}'].set_label('{label}')",
                        f"widgets['{name}'].set_sensitive({choice.random() < 0.5})",
                        f"widgets['{name}'].set_visible({choice.random() < 0.7})",
                        f"place.move(widgets['{name}'], {choice.randrange(500)}, {choice.randrange(350)})",
                        f"widgets['{name}'].destroy(); button('{name}', {choice.randrange(500)}, {choice.randrange(350)})",
                        f"widgets['Loud'].set_active({choice.random() < 0.5})",
                        f"widgets['Text'].set_text('{label}')",
                        f"widgets['rows'].get_vadjustment().set_value({choice.randrange(1200)})",
                    ]
                )
            )
        puppet.run("; ".join(changes))
        if choice.random() < 0.5:
            desktop.elements()
        if step % 20 == 19:
            assert until(lambda: _same(desktop), 20), (step, _different(desktop))
    assert until(lambda: _same(desktop), 20), _different(desktop)


def _both(desktop: Desktop) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    desktop.perform()
    core = desktop._core
    with core.turn(), contextlib.closing(ElementReader(core.backend, core.watch, core.environment)) as other:
        return [_plain(element) for element in core.elements.read(5)], [_plain(element) for element in other.read(5)]


def _same(desktop: Desktop) -> bool:
    kept, anew = _both(desktop)
    return kept == anew


def _different(desktop: Desktop) -> list[tuple[object, ...]]:
    kept, anew = _both(desktop)
    return [*set(kept) ^ set(anew)][:6]
