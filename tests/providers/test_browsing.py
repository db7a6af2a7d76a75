"""The desktop's browser: a real Chromium, driven by its window and its keys, before a web server of the test's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deskhand
from conftest import need
from deskhand._core.geometry import Rect
from deskhand._core.window import Window
from deskhand.errors import ActionError, DeskhandTimeout, LaunchFailed, ShellError, UnsupportedAction
from deskhand.providers import browsing
from deskhand.providers.browsing import browse, checked_url
from deskhand.providers.values import Browse
from integration.apps import until

from . import web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site() -> Iterator[web.Web]:
    server = web.Web()
    yield server
    server.close()


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[deskhand.Desktop]:
    """A desktop on which a browser is installed and none runs yet."""
    with web.desktop_with(web.install_browser(tmp_path / "bin", tmp_path / "profile"), tmp_path / "home") as made:
        yield made


def test_pages_are_opened_and_left_again(desktop: deskhand.Desktop, site: web.Web) -> None:
    for what in ("back", "forward"):
        with pytest.raises(UnsupportedAction, match="no browser is open"):
            browse(desktop, Browse(what))
    browse(desktop, Browse("navigate", f"{site.root}/first"))
    assert web.title(desktop, "/first")
    browse(desktop, Browse("navigate", f"{site.root}/second?q=é"))
    assert web.title(desktop, "/second").startswith("/second")
    browse(desktop, Browse("back"))
    assert web.title(desktop, "/first").startswith("/first")
    browse(desktop, Browse("forward"))
    assert web.title(desktop, "/second").startswith("/second")
    assert site.asked[:2] == ["/first", "/second?q=%C3%A9"]
    assert len(desktop.windows.list()) == 1

    # What was visited often is completed by the address bar, and must not be gone to.
    for _ in range(2):
        browse(desktop, Browse("navigate", f"{site.root}/longer"))
    browse(desktop, Browse("navigate", f"{site.root}/long"))
    assert web.title(desktop, "/long - ").startswith("/long - ")

    # Twice in a row, with the keyboard in the address bar already, and from behind another window.
    desktop.perform(deskhand.KeyPress(["ctrl", "l"]))
    browse(desktop, Browse("navigate", f"{site.root}/again"))
    assert web.title(desktop, "/again").startswith("/again")
    other = desktop.start([need("xterm", "xterm"), "-class", "Other", "-e", "cat"])
    assert other.window is not None
    assert desktop.windows.list()[-1].class_name == "Other"
    browse(desktop, Browse("navigate", f"{site.root}/front"))
    assert web.title(desktop, "/front").startswith("/front")
    desktop.windows.activate(other.window)
    browse(desktop, Browse("open"))
    assert desktop.windows.list()[-1].class_name == "Chromium"
    assert desktop.windows.list()[-1].active
    assert len(desktop.windows.list()) == 2


def test_a_search_begins_where_one_can_search(
    desktop: deskhand.Desktop, site: web.Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the address is the test's: no test asks Google for anything.
    monkeypatch.setattr(browsing, "SEARCH_PAGE", f"{site.root}/search")
    browse(desktop, Browse("search"))
    assert web.title(desktop, "/search").startswith("/search")


def test_a_window_without_an_address_bar_is_not_typed_into(tmp_path: Path, site: web.Web) -> None:
    folder = web.install_browser(tmp_path / "bin", tmp_path / "profile", f"--app={site.root}/app")
    with web.desktop_with(folder, tmp_path / "home") as desktop:
        browse(desktop, Browse("open"))
        assert web.title(desktop, "/app").startswith("/app")
        # The page's field has the keyboard, and says so.
        desktop.perform(deskhand.Type("x"))
        assert until(lambda: "/heard" in site.asked)
        site.asked.clear()
        for _ in range(3):
            with pytest.raises(UnsupportedAction, match="no address bar"):
                browse(desktop, Browse("navigate", f"{site.root}/typed"))
        # What was typed last would be heard of before this.
        desktop.perform(deskhand.KeyPress(["F5"]))
        assert until(lambda: "/app" in site.asked)
        assert site.asked == ["/app"]


class _Elsewhere:
    """A desktop that has these windows, and answers the start of a program with an error."""

    def __init__(self, error: Exception, windows: list[Window] | None = None) -> None:
        self._error = error
        self._windows = windows
        self.started: list[list[str]] = []
        self.activated: list[Window] = []

    @property
    def windows(self) -> _Elsewhere:
        """Its windows' part is itself."""
        return self

    def list(self) -> list[Window]:
        if self._windows is None:
            raise UnsupportedAction("vnc", "windows", "only X11 reports windows")
        return self._windows

    def start(self, command: list[str]) -> None:
        self.started.append(command)
        raise self._error

    def activate(self, window: Window) -> None:
        self.activated.append(window)
        raise DeskhandTimeout("waited 5 s")


def _try(desktop: _Elsewhere, request: Browse) -> None:
    browse(desktop, request)  # type: ignore[arg-type]


def test_what_a_desktop_cannot_do_is_refused_by_name() -> None:
    none = ShellError("chromium", "not found")
    with pytest.raises(UnsupportedAction, match=r"windows cannot be recognized.*clicks and keys"):
        _try(_Elsewhere(none), Browse("open"))
    bare = _Elsewhere(none, [])
    with pytest.raises(UnsupportedAction, match=r"none of chromium, .*firefox.* is installed"):
        _try(bare, Browse("open"))
    assert [command[0] for command in bare.started] == [program[0] for program in browsing.PROGRAMS]
    remote = _Elsewhere(UnsupportedAction("x11", "start", "on its own machine"), [])
    with pytest.raises(UnsupportedAction, match="none can be started from here"):
        _try(remote, Browse("search"))
    with pytest.raises(LaunchFailed):
        _try(_Elsewhere(LaunchFailed("a window of chromium", 1.0), []), Browse("open"))


def test_the_active_browser_is_taken_else_the_topmost() -> None:
    window = Window(1, "terminal", "XTerm", None, Rect(0, 0, 9, 9), active=False)
    lower, upper = (replace(window, id=n, class_name=name) for n, name in ((2, "firefox-esr"), (3, "Google-chrome")))
    for windows, taken in (([lower, upper, window], upper), ([replace(lower, active=True), upper], 2)):
        desktop = _Elsewhere(ShellError("x", "y"), windows)
        with pytest.raises(ActionError, match="did not come to the front"):
            _try(desktop, Browse("back"))
        assert desktop.activated[0].id == (taken if isinstance(taken, int) else taken.id)


def test_a_window_that_only_begins_like_a_browser_in_its_title_is_none() -> None:
    desktop = _Elsewhere(ShellError("x", "y"), [Window(1, "Chromium", "Mousepad", None, Rect(0, 0, 9, 9), active=True)])
    with pytest.raises(UnsupportedAction, match="no browser is open"):
        _try(desktop, Browse("back"))


@pytest.mark.parametrize(
    ("given_url", "opened"),
    [
        ("http://example.org", "http://example.org"),
        ("HTTPS://Example.org:8080/a?b#c", "HTTPS://Example.org:8080/a?b#c"),
        ("about:blank", "about:blank"),
        ("example.org", "https://example.org"),
        ("localhost:8000/x", "http://localhost:8000/x"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("flights.google.com?q=1", "https://flights.google.com?q=1"),
        ("https://münchen.de/straße", "https://münchen.de/straße"),
    ],
)
def test_urls_that_are_opened(given_url: str, opened: str) -> None:
    assert checked_url(given_url) == opened


@pytest.mark.parametrize(
    "url",
    [
        "", " ", "file:///etc/passwd", "FILE:///etc/passwd", "chrome://settings", "about:config", "about:blank#x", "about:",
        "javascript:alert(1)", "data:text/html,x", "view-source:https://example.org", "ftp://example.org", "example",
        "http:example.org", "http:/example.org", "http:///path", "http://", "https://[::1", "http://a:99999/", "http://a:b/",
        "http://example.org\nhttp://evil", "http://example.org/a b", "http://example.org\\@evil.org", "\\\\host\\x", "--help",
        "user@example.org", "chrome-extension://abc/x.html", "blob:https://example.org/1", "http://x/" + "a" * 9000,
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ActionError):
        checked_url(url)


@given(st.text(max_size=60) | st.from_regex(r"(?i)[a-z\-]{0,12}:/{0,3}[^\s]{0,20}", fullmatch=True))
def test_whatever_is_opened_is_a_page_of_the_web(url: str) -> None:
    try:
        opened = checked_url(url)
    except ActionError:
        return
    assert opened == "about:blank" or opened.lower().startswith(("http://", "https://"))
    assert opened.isprintable()
    assert not opened.startswith("-")


def test_nothing_is_done_for_a_url_that_is_refused() -> None:
    desktop: Any = None
    with pytest.raises(ActionError, match="is not opened"):
        browse(desktop, Browse("navigate", "file:///etc/passwd"))
