"""A server of the page in a thread of this process, beside the agent that it shows."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Self, Unpack

from deskhand._core.arguments import expect_integer, expect_text
from deskhand._core.extras import load
from deskhand.errors import LaunchFailed
from deskhand.watch.listening import listening, names_of, refuse_plain, server_of
from deskhand.watch.messages import LONGEST_MESSAGE
from deskhand.watch.server import EXTRA, Application, application

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from deskhand.desktop.desktop import Desktop
    from deskhand.policy.questions import Questions
    from deskhand.watch.grants import GrantOptions, Grants, Scope
    from deskhand.watch.listening import UvicornOptions
    from deskhand.watch.roster import Shown

WEB_OPTIONS: UvicornOptions = {
    "access_log": False,
    "server_header": False,
    "ws_max_size": LONGEST_MESSAGE,
    # Pictures are small already, and what is sent small must not become large here.
    "ws_per_message_deflate": False,
    "limit_concurrency": 512,
    # A viewer who has control hands the desktop back first.
    "timeout_graceful_shutdown": 10,
}
"""Options of uvicorn for the page."""

_START_LIMIT = 10.0
_END_LIMIT = 10.0


def serve(
    desktop: Desktop | Mapping[str, Desktop],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: str | None = None,
    certificate_key: str | None = None,
    hosts: Iterable[str] = (),
    embed_in: Iterable[str] = (),
    questions: Questions | None = None,
) -> Server:
    """Serve the page that shows a desktop, in a thread beside this one, until `Server.close`.

    Args:
        desktop: See `application`, also for the last three.
        host: The address to listen at. Anything but loopback needs a certificate.
        port: The port; 0 for a free one.
        certificate: Serve with TLS: the certificate's file, PEM. The names in it are added to `hosts`.
        certificate_key: Its private key's file, PEM; where the certificate's file has none.
        hosts: Names of the server beside those of loopback and of the certificate.
        embed_in: Origins of pages that may show this one in a frame.
        questions: The questions that viewers with the scope `approve` may answer.

    Example:
        >>> with deskhand.launch() as desktop, serve(desktop) as server:
        ...     print(server.link("watch", "control"))

    Raises:
        MissingExtra: The extra `watch` is not installed.
        ActionError: An argument is wrong, or others on the network could read along.
        ConnectFailed: Nothing can listen there.
    """
    expect_text("serve: host", host)
    expect_integer("serve: port", port, 0, 65_535)
    refuse_plain(host, certificate, "the link and the screen")
    uvicorn = load("uvicorn", EXTRA)
    named = () if certificate is None else names_of(certificate)
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(listening(host, port))
        made = application(desktop, hosts=(*hosts, *named), embed_in=embed_in, questions=questions)
        undo.callback(made.close)
        options: UvicornOptions = {
            **WEB_OPTIONS,
            "ssl_certfile": certificate,
            "ssl_keyfile": certificate_key,
            "lifespan": "off",
        }
        server = server_of(uvicorn, made, **options)
        thread = threading.Thread(target=server.run, args=([listener],), name="deskhand-watch-server", daemon=True)
        thread.start()
        undo.callback(thread.join, _END_LIMIT)
        undo.callback(server.handle_exit, signal.SIGINT, None)
        waited = threading.Event()
        for _ in range(round(_START_LIMIT / 0.01)):
            if server.started or not thread.is_alive():
                break
            waited.wait(0.01)
        if not server.started:
            raise LaunchFailed("the server of the page", _START_LIMIT, "", "its thread did not begin to serve")
        address, used = listener.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        scheme = "http" if certificate is None else "https"
        return Server(made, f"{scheme}://{shown}:{used}/", undo.pop_all())


class Server:
    """A server that runs; leaving a `with` block ends it.

    Attributes:
        application: What it serves.
        url: Where the page is, without a token.
    """

    def __init__(self, application: Application, url: str, ending: contextlib.ExitStack) -> None:
        """Describe a server that runs."""
        self.application: Application = application
        self.url: str = url
        self._ending = ending

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self.url}>"

    @property
    def grants(self) -> Grants:
        """Who may do what."""
        return self.application.grants

    def link(self, *scopes: Scope, **options: Unpack[GrantOptions]) -> str:
        """A link that works once, for `watch`, `control` and `approve`; see `Application.link`."""
        return self.application.link(self.url, *scopes, **options)

    def showing(self, name: str, desktop: Desktop) -> AbstractContextManager[Shown]:
        """Show one more desktop until the `with` block ends; see `Application.showing`."""
        return self.application.showing(name, desktop)

    def close(self) -> None:
        """End it, and what belongs to viewers. The desktop stays open. Harmless when called again."""
        self._ending.close()
