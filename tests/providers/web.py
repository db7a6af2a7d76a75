"""A browser of a test's desktop, and the web that it reaches: pages of our own, which say what was asked for."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import deskhand
from conftest import need
from integration.apps import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_FLAGS = "--no-sandbox --password-store=basic --disable-sync --disable-gpu --disable-background-networking"


class Web:
    """A local web server: a page's title is its path, and every visit is written down.

    A page has a field with the keyboard, and asks for `/heard` when something is typed into it, unless `pages` has it.
    """

    def __init__(self, pages: Mapping[str, str] | None = None) -> None:
        self._pages = pages or {}
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        asked, pages = self.asked, self._pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/favicon.ico":
                    asked.append(self.path)
                field = "<input autofocus oninput=fetch('/heard')>"
                plain = f"<!doctype html><title>{self.path}</title>{field}<p>{self.path}"
                body = pages.get(self.path, plain).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def install_browser(folder: Path, profile: Path, extra: str = "") -> Path:
    """A folder for PATH with a `chromium` that keeps to a profile of the test's; root's sandbox is none of our business."""
    folder.mkdir()
    script = folder / "chromium"
    real = need("chromium", "chromium")
    script.write_text(f'#!/bin/sh\nexec {real} {_FLAGS} --user-data-dir="{profile}" "$@" {extra}\n')
    script.chmod(0o755)
    return folder


@contextlib.contextmanager
def desktop_with(folder: Path, home: Path) -> Iterator[deskhand.Desktop]:
    """A desktop on whose PATH is nothing but a folder and what a shell needs."""
    home.mkdir()
    with deskhand.launch(size=(1000, 700), env={"HOME": str(home), "PATH": f"{folder}:/usr/bin:/bin"}) as desktop:
        yield desktop


def title(desktop: deskhand.Desktop, expected: str) -> str:
    """The title of the topmost window, as soon as it begins as expected."""
    until(lambda: desktop.windows.list()[-1].title.startswith(expected))
    return desktop.windows.list()[-1].title
