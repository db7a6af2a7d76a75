"""A page that fetches after a click has settled when the answer is shown, and one whose server does not answer soon after."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import KeyPress, LeftClick, Move, Reason
from integration.apps import PATIENCE, chromium_command, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Each request is another one: Chromium asks for one address once at a time.
_PAGE = b"""<!doctype html><title>page</title><style>
button { position: absolute; left: 50px; top: 50px; width: 200px; height: 80px }
p { position: absolute; left: 50px; top: 200px; font: 40px sans-serif }</style><button>load</button><p></p><script>
let number = 0;
document.querySelector('button').onclick = async () => {
  document.querySelector('p').textContent += await (await fetch('/answer' + number++)).text();
};
document.onkeydown = () => fetch('/piecemeal' + number++);
requestAnimationFrame(() => requestAnimationFrame(() => fetch('/ready')));
</script>"""


class _Server(ThreadingHTTPServer):
    """Serves the page, and answers its requests after `delay` seconds, or when it ends."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay = 0.0
        self.asked = self.answered = 0
        self.ready = threading.Event()
        self.ends = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is sent whole, when all is counted.
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        body, answers = _PAGE, self.path.startswith("/answer")
        if self.path.startswith("/piecemeal"):
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            self.server.ends.wait()
        if answers:
            body = b"answer "
            self.server.asked += 1
            self.server.ends.wait(self.server.delay)
        # At the end of a test the browser has gone.
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.server.answered += answers
        if self.path == "/ready":
            self.server.ready.set()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    """The server, with its thread."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.ends.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def page(server: _Server, tmp_path: Path) -> Iterator[tuple[deskhand.Desktop, tuple[int, int]]]:
    """A desktop with the page, and the place of its button."""
    with deskhand.launch(size=(1000, 700)) as desktop:
        command = chromium_command(f"http://127.0.0.1:{server.server_port}/", tmp_path)
        window = desktop.start(command, timeout=60).window
        assert window is not None
        desktop.perform(Move((window.rect.x + 400, window.rect.y + 500)))
        button = window.rect.x + 150, window.rect.y + 180
        assert server.ready.wait(PATIENCE)
        desktop.perform(LeftClick(button))
        # A request that is still under way would be counted with the first one of a test.
        assert until(lambda: server.answered == 1)
        yield desktop, button


@pytest.mark.parametrize("delay", [0.15, 0.5])
def test_an_answer_is_shown_when_the_screen_has_settled(
    page: tuple[deskhand.Desktop, tuple[int, int]], server: _Server, delay: float
) -> None:
    desktop, button = page
    server.delay = delay
    for _ in range(3):
        before = server.answered
        seen = desktop.perform(LeftClick(button))
        assert server.answered == before + 1, seen
        assert (seen.settled, seen.may_change) == (True, False)
        assert any(rect.y > button[1] + 40 for rect in seen.rects), "the answer is shown"
        assert desktop.screenshot(format="raw").data == desktop.perform(format="raw").data


def test_a_server_that_does_not_answer_is_given_up(
    page: tuple[deskhand.Desktop, tuple[int, int]], server: _Server
) -> None:
    desktop, button = page
    server.delay = 600.0
    told = []
    # Chromium sends no more than six at once.
    for _ in range(5):
        asked = server.asked
        seen = desktop.perform(LeftClick(button), settle=deskhand.Settle(timeout=20.0))
        assert seen.settled
        assert until(lambda asked=asked: server.asked > asked)  # type: ignore[misc] # of a default mypy learns no type
        told.append(seen.may_change)
    # A second for each of the first two. Later a timer of Chromium's own may be told, one time in fifty on a busy machine.
    assert told[:2] == [True, True]
    assert not all(told[2:])


def test_an_answer_of_which_only_the_header_came_is_told(page: tuple[deskhand.Desktop, tuple[int, int]]) -> None:
    desktop, _ = page
    # The first key shows where the focus is.
    desktop.perform(KeyPress(["F9"]))
    seen = desktop.perform(KeyPress(["F9"]))
    assert (seen.reason, seen.may_change) == (Reason.UNCHANGED, True)
    assert not desktop.perform(Move((5, 5))).may_change
