"""The page over TLS, alone and in a frame of another site."""

from __future__ import annotations

import contextlib
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest

import deskhand
from containers.remote import Authority
from deskhand import watch
from faults.helpers import until
from watch.browser import Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Frame

LIMIT = 20.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority.make("somebody").write(tmp_path_factory.mktemp("tls"), "here")


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[deskhand.Desktop]:
    home = tmp_path_factory.mktemp("home")
    with deskhand.launch(size=(400, 300), window_manager=None, env={"HOME": str(home)}) as made:
        yield made


class _Page(BaseHTTPRequestHandler):
    """A page of somebody else with a frame, whose address is the query."""

    def do_GET(self) -> None:
        text = f'<!doctype html><iframe src="{unquote(self.path.partition("?")[2])}" width=900 height=600></iframe>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def site(certificate: Path) -> Iterator[str]:
    """The origin of a server of such pages; for a browser it is another site than ours at 127.0.0.1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tls(certificate: Path) -> dict[str, str]:
    return {"certificate": str(certificate / "cert.pem"), "certificate_key": str(certificate / "key.pem")}


def test_a_desktop_is_watched_and_used_over_tls(desktop: deskhand.Desktop, browser: Browser, certificate: Path) -> None:
    with watch.serve(desktop, **tls(certificate)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        viewer = Viewer(browser, server.link("watch", "control"), ignore_https_errors=True)
        viewer.wait_live(desktop)
        (cookie,) = viewer.context.cookies()
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        viewer.take()
        viewer.page.mouse.move(*viewer.at(123, 45))
        until(lambda: desktop.pointer == (123, 45), LIMIT, "the pointer")
        viewer.hand_back()
        viewer.reload()
        viewer.wait_live(desktop)
        assert viewer.errors == []
        viewer.close()


def in_frame(browser: Browser, origin: str, link: str) -> tuple[Viewer, Frame]:
    viewer = Viewer(browser, f"{origin}/?{quote(link, safe='')}", ignore_https_errors=True)
    until(lambda: len(viewer.page.frames) == 2, LIMIT, "the frame")
    return viewer, viewer.page.frames[1]


def test_another_site_that_is_named_shows_it_in_a_frame(
    desktop: deskhand.Desktop, browser: Browser, certificate: Path
) -> None:
    with (
        site(certificate) as named,
        site(certificate) as other,
        watch.serve(desktop, embed_in=[named], **tls(certificate)) as server,
    ):
        viewer, frame = in_frame(browser, named, server.link("watch"))
        width = "document.querySelector('#picture')?.width"
        until(lambda: frame.evaluate(width) == desktop.size.width, LIMIT, "the picture in the frame")
        viewer.close()
        viewer, frame = in_frame(browser, other, server.link("watch"))
        until(lambda: any("frame-ancestors" in error for error in viewer.errors), LIMIT, "the refusal")
        assert not frame.evaluate("!!document.querySelector('#picture')")
        viewer.close()
