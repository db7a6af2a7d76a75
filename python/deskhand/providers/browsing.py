"""The desktop's browser, driven as a user does it: its window, its address bar, its keys.

This module owns what is done for a `Browse`. What must never appear here: a provider's payload, a browser's own protocol.

A model may have the browser show `http:` and `https:` pages and `about:blank`, and nothing else: `file:` would show it the
machine's files, `chrome:` and the other `about:` pages the browser's settings, and `javascript:` runs in whatever page is open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deskhand.actions import KeyPress, Type
from deskhand.errors import ActionError, DeskhandTimeout, ServerSilent, ShellError, UnsupportedAction, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.geometry import Rect
    from deskhand._core.window import Window
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.values import Browse

__all__ = ["BROWSERS", "PROGRAMS", "SEARCH_PAGE", "browse", "checked_url", "destination"]

BROWSERS = (
    "chromium", "google-chrome", "chrome", "firefox", "brave-browser", "microsoft-edge", "vivaldi", "opera", "librewolf",
    "epiphany", "org.gnome.epiphany", "falkon", "midori",
)  # fmt: skip
"""How the classes of browsers' windows begin, in lower case: of those with Ctrl+L and Alt+Left. Tried with Chromium."""

_QUIET = ("--no-first-run", "--no-default-browser-check")

PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("chromium", *_QUIET),
    ("google-chrome", *_QUIET),
    ("firefox",),
    ("firefox-esr",),
    ("epiphany",),
)
"""What is started where no browser is open: the first of these that there is."""

SEARCH_PAGE = "https://www.google.com/"

_LONGEST = 8192
_WIDEST_CARET = 24
_ATTEMPTS = 3
_SCHEMES = ("http", "https")
_BLANK = "about:blank"
# What people, and models, leave the scheme out of. What comes after a colon is a port, or it was a scheme.
_BARE = re.compile(r"(localhost|[^\s/:?#@\\]+\.[^\s/:?#@\\]+)(:\d+)?([/?#].*)?", re.IGNORECASE)
_LOCAL = re.compile(r"localhost|[\d.]+", re.IGNORECASE)
_INSTEAD = "do it by clicks and keys on what the screen shows"


def browse(desktop: Desktop, request: Browse) -> None:
    """Ask the desktop's browser for something; the one whose window is active, else the topmost.

    Args:
        desktop: The desktop.
        request: What to ask for. Where no browser is open, one is started for anything but `back` and `forward`.

    Raises:
        UnsupportedAction: There is no browser on this desktop and none can be started, or its windows cannot be told.
        ActionError: The URL is none that a model may open, or the browser's window does not come to the front.
        LaunchFailed: The browser showed no window.
    """
    url = None if request.url is None else checked_url(request.url)
    if request.what == "search":
        url = SEARCH_PAGE
    window = _window(desktop, request.what)
    if window is None:
        if request.what in {"back", "forward"}:
            raise UnsupportedAction("this desktop", request.what, "no browser is open: open or navigate first")
        _start(desktop, request.what, () if url is None else (url,))
        return
    try:
        desktop.windows.activate(window)
    except ServerSilent:
        raise
    except DeskhandTimeout as error:
        raise ActionError(f"the browser's window {shown(window.title)} did not come to the front: {error}") from error
    if request.what in {"back", "forward"}:
        desktop.perform(KeyPress(["alt", "Left" if request.what == "back" else "Right"]))
    elif url is not None:
        _go(desktop, window, url)


def destination(request: Browse) -> str:
    """Where a request leads, for a policy to judge: the URL that is opened, or what is asked where there is none.

    Raises:
        ActionError: The URL is none that a model may open.
    """
    if request.what == "search":
        return SEARCH_PAGE
    return request.what if request.url is None else checked_url(request.url)


def checked_url(url: str) -> str:
    """The URL as it is typed into an address bar.

    Before one without a scheme `https://` is put, or `http://` where it names this machine, or any by its number.

    Raises:
        ActionError: It is none, or none that a model may open.
    """
    if len(url) > _LONGEST:
        raise ActionError(f"a URL has at most {_LONGEST} characters, not {len(url)}")
    # A newline in it would be typed as Return; browsers read a backslash as a slash, and Python does not.
    if not url.isprintable() or " " in url or "\\" in url:
        raise ActionError(f"{shown(url)} is no URL: encode blanks, control characters and backslashes in it")
    if url.lower() == _BLANK:
        return _BLANK
    bare = _BARE.fullmatch(url)
    whole = url if bare is None else f"{'http' if _LOCAL.fullmatch(bare[1]) else 'https'}://{url}"
    try:
        parts = urlsplit(whole)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ActionError(f"{shown(url)} is no URL: {error}") from None
    if parts.scheme not in _SCHEMES or not whole.lower().startswith(f"{parts.scheme}://"):
        raise ActionError(f"{shown(url)} is not opened: a URL begins with http:// or https://, or is {_BLANK}")
    if not host:
        raise ActionError(f"{shown(url)} names no host")
    return whole


def _window(desktop: Desktop, what: str) -> Window | None:
    try:
        windows = desktop.windows.list()
    except UnsupportedAction as error:
        raise UnsupportedAction(
            "this desktop", what, f"it does not tell which window is a browser's: {_INSTEAD}"
        ) from error
    found = [window for window in windows if window.class_name.lower().startswith(BROWSERS)]
    return next((window for window in found if window.active), found[-1] if found else None)


def _start(desktop: Desktop, what: str, arguments: Sequence[str]) -> None:
    for program in PROGRAMS:
        try:
            desktop.start([*program, *arguments])
        except ShellError:
            continue
        except UnsupportedAction as error:
            hint = f"no browser is open, and none can be started from here: {_INSTEAD}"
            raise UnsupportedAction("this desktop", what, hint) from error
        return
    names = ", ".join(program[0] for program in PROGRAMS)
    raise UnsupportedAction("this desktop", what, f"no browser is open, and none of {names} is installed")


def _go(desktop: Desktop, window: Window, url: str) -> None:
    for _ in range(_ATTEMPTS):
        if _in_address_bar(desktop, window.rect):
            break
        # Where it has the keyboard already, nothing changes: then it is given to what comes next, and taken back.
        desktop.perform(KeyPress(["Tab"]))
    else:
        hint = f"the window {shown(window.title)} shows no address bar to type into: {_INSTEAD}"
        raise UnsupportedAction("this desktop", "navigate", hint)
    # What the address bar has completed is selected behind what was typed, and Return would go there.
    desktop.perform(Type(url), KeyPress(["Delete"]), KeyPress(["Return"]))


def _in_address_bar(desktop: Desktop, window: Rect) -> bool:
    """Press what gives an address bar the keyboard; whether that was to be seen where one is, and was more than a caret."""
    seen = desktop.perform(KeyPress(["ctrl", "l"]))
    return any(rect.y < window.y + window.height // 4 and rect.width > _WIDEST_CARET for rect in seen.rects)
