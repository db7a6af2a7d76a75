"""The pages of the demo and what the browser sends back, on a port that the system chose.

What arrives is written to files at once: the checks read those, so that nothing but the browser's request can make them right.
"""

from __future__ import annotations

import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Layout", "Site"]

Layout = dict[str, tuple[float, float, float, float]]
"""Element id to x, y, width and height on the screen."""

_HERE = Path(__file__).parent
_PAGES = {
    "": ("form.html", "text/html"),
    "pad": ("pad.html", "text/html"),
    "layout.js": ("layout.js", "text/javascript"),
}
_LARGEST_BODY = 1 << 20


class Site:
    """A web server for one run.

    Attributes:
        url: Where the browser begins. Its path has a secret in it: other users of this machine could post, too.
        form: The file that a submitted form goes to, as JSON.
        strokes: The file that a finished signature goes to, as JSON: a list of strokes, each a list of screen positions.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self.form = folder / "form.json"
        self.strokes = folder / "strokes.json"
        self._lock = threading.Lock()
        self._layouts: dict[str, Layout] = {}
        prefix = f"/{secrets.token_urlsafe(12)}/"
        handler = type("Handler", (_Handler,), {"site": self, "prefix": prefix})
        self._server = ThreadingHTTPServer((host, 0), handler)
        self.url = f"http://{host}:{self._server.server_port}{prefix}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def layout(self, page: str) -> Layout | None:
        """Where the elements of the page of that title are; None until the browser has posted it."""
        with self._lock:
            return self._layouts.get(page)

    def receive(self, name: str, body: str) -> str | None:
        """Take in what the browser posts.

        Returns:
            The page to go to next, if there is one.
        """
        if name == "layout":
            posted: dict[str, Any] = json.loads(body)
            with self._lock:
                self._layouts[str(posted["page"])] = {str(key): tuple(box) for key, box in posted["rects"].items()}
            return None
        if name == "form":
            _write(self.form, dict(parse_qsl(body, keep_blank_values=True)))
            return "pad"
        _write(self.strokes, json.loads(body))
        return None


class _Handler(BaseHTTPRequestHandler):
    site: ClassVar[Site]
    prefix: ClassVar[str]

    def do_GET(self) -> None:
        page = _PAGES.get(self.path.removeprefix(self.prefix)) if self.path.startswith(self.prefix) else None
        if page is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        name, kind = page
        self._answer(HTTPStatus.OK, (_HERE / name).read_bytes(), kind)

    def do_POST(self) -> None:
        name = self.path.removeprefix(self.prefix)
        length = int(self.headers.get("Content-Length", 0))
        known = self.path.startswith(self.prefix) and name in {"layout", "form", "strokes"}
        if not known or not 0 < length <= _LARGEST_BODY:
            self.close_connection = True
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        following = self.site.receive(name, self.rfile.read(length).decode())
        if following is None:
            self._answer(HTTPStatus.NO_CONTENT)
        else:
            self._answer(HTTPStatus.SEE_OTHER, location=self.prefix + following)

    def _answer(
        self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", location: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Cache-Control", "no-store")
        if location is not None:
            self.send_header("Location", location)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the base class named it
        """Say nothing: the run's own progress is on the terminal."""


def _write(path: Path, content: object) -> None:
    # Renamed into place: who waits for the file never reads half of it.
    half = path.with_suffix(".part")
    half.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    half.replace(path)
