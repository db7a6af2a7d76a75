"""Chromium on a desktop, and the content of its pages, read from outside through the browser's own protocol.

This module owns how the browser is started for an episode, and how a page is queried. It never changes a page (an oracle
clicks and types like any user), and has no task.

The protocol is served on loopback of the desktop's machine, at a port that the system chose and the profile names. The loopback
of a container can only be reached from inside it, so Perl, which every Debian has, sends the queries there. Pages come from a
server there too, at an address that is the same on every desktop: a file's address would show its home directory.
"""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from deskhand._core.settle import Settle
from deskhand.desktop.access import bare, commands_of
from deskhand.errors import BackendError, DeskhandTimeout, shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from deskhand.episodes.tasks.context import TaskContext

ADDRESS = "http://localhost/"
"""The address of an episode's pages; every other address leads there too, and finds nothing."""

PROFILE = ".browser"
"""The browser's profile, below the home directory."""

_SITE = ".site"

_LOADED = 60.0
_PERIOD = 0.05
# A page is drawn in several steps, and the browser's own interface in some more.
_STILL = Settle(quiet=0.1, reaction=0.2, timeout=20.0)
_ANSWER_LIMIT = 30
_LARGEST_ANSWER = 16 << 20
# The exit code of `ask.pl` if there is no browser to ask.
_ABSENT = 99
# Only the page: no first run, no question, no key ring, no background requests, no animation.
_FLAGS = (
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication,PrivacySandboxSettings4,HttpsUpgrades",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-smooth-scrolling",
    "--force-prefers-reduced-motion",
    "--hide-crash-restore-bubble",
    "--lang=en-US",
    "--test-type",
    "--remote-debugging-port=0",
)
_PREFERENCES: Mapping[str, Any] = {
    "credentials_enable_service": False,
    "profile": {"password_manager_enabled": False},
    "autofill": {"profile_enabled": False, "credit_card_enabled": False},
    "session": {"restore_on_startup": 5},
    "browser": {"show_home_button": False, "check_default_browser": False, "custom_chrome_frame": True},
}
_FIRST = "index.html"
_INSIDE = Path(__file__).parent / "machine_side"


@dataclass(frozen=True, slots=True)
class Tab:
    """One open page of the browser.

    Attributes:
        id: The browser's id for it.
        url: Its address.
        title: Its title.
    """

    id: str
    url: str
    title: str


def start_browser(
    context: TaskContext,
    pages: Mapping[str, str],
    first: str = "",
    *,
    position: tuple[int, int] = (0, 0),
    size: tuple[int, int] = (1280, 772),
    preferences: Mapping[str, Any] | None = None,
) -> None:
    """Start Chromium, and return when the page is loaded, its window is up and the screen is still.

    Args:
        context: The task's context. Downloads go to `Downloads` below the home directory, without a question.
        pages: The pages by name; the empty name is the first page. Data that a page posts to `received/NAME` is kept, see
            `received`.
        first: The name of the page to show, or an address.
        position: The position of its window, in screen pixels.
        size: The size of its window, in pixels.
        preferences: Added to those of the profile, in the form of Chromium's own file.

    Raises:
        LaunchFailed: The browser showed no window.
        DeskhandTimeout: The page was not loaded within a minute.
    """
    downloads = {"default_directory": context.path("Downloads"), "prompt_for_download": False}
    chosen = {**_PREFERENCES, "download": downloads, **(preferences or {})}
    context.write_all(
        {
            **{f"{_SITE}/pages/{name or _FIRST}": text for name, text in pages.items()},
            f"{_SITE}/serve.pl": (_INSIDE / "serve.pl").read_bytes(),
            f"{PROFILE}/Default/Preferences": json.dumps(chosen),
        }
    )
    # Chromium does not sandbox root's programs, and refuses to start as root without this option. The pages are ours.
    unconfined = not context.desktop.has_machine and context.run("id -u").stdout.strip() == "0"
    command = [
        "chromium",
        f"--user-data-dir={context.path(PROFILE)}",
        *_FLAGS,
        *(["--no-sandbox"] if unconfined else []),
    ]
    command += [f"--window-position={position[0]},{position[1]}", f"--window-size={size[0]},{size[1]}"]
    command += [first if ":" in first else ADDRESS + first]
    # The server is started before the browser, prints its port, and ends with the desktop.
    script = f"exec 3< <(exec perl {_SITE}/serve.pl {_SITE}); read -r port <&3; "
    script += 'exec "$@" --host-resolver-rules="MAP * 127.0.0.1:$port"'
    context.desktop.start(["bash", "-c", script, "browser", *command], cwd=context.home, timeout=_LOADED)
    with Page(context) as page:
        page.until("document.readyState === 'complete' && document.fonts.status === 'loaded'", timeout=_LOADED)
    context.desktop.perform(settle=_STILL)


def received(context: TaskContext, name: str) -> Any:
    """The data that a page posted last to `received/NAME`, as JSON; None if there is none, or it is not JSON."""
    try:
        return json.loads(context.text(f"{_SITE}/received/{name}") or "null")
    except json.JSONDecodeError:
        return None


class Page:
    """The page that the browser shows, read from outside. Leaving a `with` block only closes the connection.

    It is looked up for each query: after a navigation the next page answers.
    """

    def __init__(self, context: TaskContext) -> None:
        """Prepare; nothing is asked yet.

        Args:
            context: The context in which `start_browser` started the browser.
        """
        self._context = context
        # One shell for all queries, because starting one costs more than ten of them.
        # The core's shell, without the gate: queries from outside are not operations on the desktop.
        self._shell = commands_of(bare(context.desktop)).open_shell(timeout=2 * _ANSWER_LIMIT, limit=_LARGEST_ANSWER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        self._shell.close()

    def tabs(self) -> list[Tab]:
        """The open pages, the most recently used first; empty if no browser runs.

        Raises:
            BackendError: The browser does not answer.
        """
        answer = self._ask("/json/list")
        found = [] if answer is None else json.loads(answer)
        return [Tab(tab["id"], tab["url"], tab["title"]) for tab in found if tab["type"] == "page"]

    @property
    def is_open(self) -> bool:
        """Whether there is a page to query."""
        return bool(self.tabs())

    @property
    def url(self) -> str:
        """The address of the page that is shown."""
        return self._shown().url

    @property
    def title(self) -> str:
        """Its title."""
        return self._shown().title

    def evaluate(self, javascript: str) -> Any:
        """The value of an expression in the page that is shown, as JSON; a promise is awaited.

        Raises:
            BackendError: No page is open, the browser does not answer (perhaps because of a dialog of the page), or the
                expression raised.
        """
        return self._evaluate(self._shown(), javascript)

    def until(self, javascript: str, *, timeout: float = 20.0) -> Any:
        """Wait until an expression is true in the page that is shown; a page that is just changing is asked again.

        Raises:
            DeskhandTimeout: It was not true in time; the error has the expression and its last value.
        """
        deadline = time.monotonic() + timeout
        last: object = None
        while True:
            try:
                found = self.evaluate(javascript)
            except BackendError as error:
                found = None
                last = error
            else:
                last = found
            if found:
                return found
            if time.monotonic() > deadline:
                raise DeskhandTimeout(f"waited {timeout:g} s for {shown(javascript)} in the page; last: {shown(last)}")
            time.sleep(_PERIOD)

    def element(self, selector: str) -> str:
        """JavaScript for the first element of a CSS selector, which also searches shadow trees; null if there is none.

        ` >>> ` continues inside the element that was found: `settings-dropdown-menu#size >>> select`.
        """
        return f"({_FIND})({json.dumps(selector.split(' >>> '))})"

    def centre(self, selector: str) -> tuple[int, int]:
        """The middle of an element, see `element`, in screen pixels.

        Raises:
            BackendError: There is no such element, or it is not visible.
        """
        left, top, width, height = self.box(selector)
        return round(left + width / 2), round(top + height / 2)

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """The place of an element, see `element`, on the screen: x, y, width, height in pixels.

        Raises:
            BackendError: There is no such element, or its middle is outside of the window.
        """
        found = self.evaluate(f"({_BOX})({self.element(selector)})")
        if isinstance(found, str):
            raise BackendError(f"the element {selector} of {self.url} is {found}")
        left, top, width, height = found
        return left, top, width, height

    def _evaluate(self, tab: Tab, javascript: str) -> Any:
        parameters = {"expression": javascript, "returnByValue": True, "awaitPromise": True}
        request = json.dumps({"id": 1, "method": "Runtime.evaluate", "params": parameters})
        said = self._ask(f"/devtools/page/{tab.id}", request)
        if said is None:
            raise BackendError("the browser was closed during a query")
        answer = json.loads(said)
        if "error" in answer:
            raise BackendError(f"the browser refuses: {answer['error'].get('message')}")
        result = answer["result"]
        if "exceptionDetails" in result:
            said = (
                result["exceptionDetails"].get("exception", {}).get("description") or result["exceptionDetails"]["text"]
            )
            raise BackendError(f"the page {tab.url} raised: {said}")
        return result["result"].get("value")

    def _shown(self) -> Tab:
        tabs = self.tabs()
        if not tabs:
            raise BackendError("the browser shows no page: it was closed, or was not started for this task")
        if len(tabs) == 1:
            return tabs[0]
        for tab in tabs:
            if self._evaluate(tab, "document.visibilityState") == "visible":
                return tab
        return tabs[0]

    def _ask(self, *words: str) -> str | None:
        """The browser's answer; None if there is no browser."""
        file = self._context.path(f"{PROFILE}/DevToolsActivePort")
        program = (_INSIDE / "ask.pl").read_text()
        said = self._shell.run(shlex.join(["perl", "-e", program, str(_ANSWER_LIMIT), file, *words]))
        if said.exit_code == _ABSENT:
            return None
        if said.exit_code != 0:
            raise BackendError(f"the browser does not answer: {said.stderr.strip() or said.outcome}")
        return said.stdout


# All of the browser's own interface is above the page: no borders, no side bar, no status bar.
_BOX = """element => {
  if (!element) return "not there";
  const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  if (!box.width || !box.height) return "not shown";
  if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return "scrolled away";
  return [screenX + (outerWidth - innerWidth) / 2 + box.x, screenY + outerHeight - innerHeight + box.y, box.width, box.height];
}"""
_FIND = """parts => {
  const deep = (root, selector) => {
    const found = root.querySelector(selector);
    if (found) return found;
    for (const other of root.querySelectorAll("*")) {
      const inside = other.shadowRoot && deep(other.shadowRoot, selector);
      if (inside) return inside;
    }
    return null;
  };
  return parts.reduce((found, part) => found && deep(found.shadowRoot || found, part), document);
}"""
