"""Drives the desktop's browser as a user does: by its window, its address bar, its keys.

This module owns how a `Browse` is done. It has no provider's payload and does not use a browser's own protocol.

A model may open `http:` and `https:` pages and `about:blank`, and nothing else: `file:` would show the machine's files,
`chrome:` and the other `about:` pages the browser's settings, and `javascript:` runs in whatever page is open.
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

BROWSERS = (
    "chromium", "google-chrome", "chrome", "firefox", "brave-browser", "microsoft-edge", "vivaldi", "opera", "librewolf",
    "epiphany", "org.gnome.epiphany", "falkon", "midori",
)  # fmt: skip
"""The beginnings of window classes of browsers with Ctrl+L and Alt+Left, in lower case. Tested with Chromium."""

_QUIET = ("--no-first-run", "--no-default-browser-check")

PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("chromium", *_QUIET),
    ("google-chrome", *_QUIET),
    ("firefox",),
    ("firefox-esr",),
    ("epiphany",),
)
"""The programs to start if no browser is open; the first that is installed is used."""

SEARCH_PAGE = "https://www.google.com/"

_LONGEST = 8192
_WIDEST_CARET = 24
_ATTEMPTS = 3
_SCHEMES = ("http", "https")
_BLANK = "about:blank"
# People and models leave out the scheme of these. After a colon there must be a port, or the part before was a scheme.
_BARE = re.compile(r"(localhost|[^\s/:?#@\\]+\.[^\s/:?#@\\]+)(:\d+)?([/?#].*)?", re.IGNORECASE)
_LOCAL = re.compile(r"localhost|[\d.]+", re.IGNORECASE)
_INSTEAD = "do it by clicks and keys on what the screen shows"


def browse(desktop: Desktop, request: Browse) -> None:
    """Carry out a request in the desktop's browser: the one with the active window, else the topmost.

    Args:
        desktop: The desktop.
        request: The request. If no browser is open, one is started for anything but `back` and `forward`.

    Raises:
        UnsupportedAction: There is no browser on this desktop and none can be started, or its windows cannot be recognized.
        ActionError: A model may not open the URL, or the browser's window does not come to the front.
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
    """The destination of a request, for a policy to judge: the URL, or the kind of request if it has none.

    Raises:
        ActionError: A model may not open the URL.
    """
    if request.what == "search":
        return SEARCH_PAGE
    return request.what if request.url is None else checked_url(request.url)


def checked_url(url: str) -> str:
    """The URL in the form in which it is typed into an address bar.

    Without a scheme it gets `https://`, or `http://` if its host is `localhost` or a numeric address.

    Raises:
        ActionError: It is not a URL, or a model may not open it.
    """
    if len(url) > _LONGEST:
        raise ActionError(f"a URL has at most {_LONGEST} characters, not {len(url)}")
    # A newline would be typed as Return. Browsers read a backslash as a slash, and Python does not.
    if not url.isprintable() or " " in url or "\\" in url:
        raise ActionError(f"{shown(url)} is not a URL: encode blanks, control characters and backslashes in it")
    if url.lower() == _BLANK:
        return _BLANK
    bare = _BARE.fullmatch(url)
    whole = url if bare is None else f"{'http' if _LOCAL.fullmatch(bare[1]) else 'https'}://{url}"
    try:
        parts = urlsplit(whole)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ActionError(f"{shown(url)} is not a URL: {error}") from None
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
            "this desktop", what, f"browsers' windows cannot be recognized on it: {_INSTEAD}"
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
        # If the address bar has the focus already, nothing changes. Tab then moves the focus away before the next try.
        desktop.perform(KeyPress(["Tab"]))
    else:
        hint = f"the window {shown(window.title)} shows no address bar to type into: {_INSTEAD}"
        raise UnsupportedAction("this desktop", "navigate", hint)
    # The browser selects its completion behind the typed text. Without Delete, Return would open the completion.
    desktop.perform(Type(url), KeyPress(["Delete"]), KeyPress(["Return"]))


def _in_address_bar(desktop: Desktop, window: Rect) -> bool:
    """Press the keys that focus the address bar; return whether more than a caret changed where one would be."""
    seen = desktop.perform(KeyPress(["ctrl", "l"]))
    return any(rect.y < window.y + window.height // 4 and rect.width > _WIDEST_CARET for rect in seen.rects)
