"""The ASGI application of the page: its files, its sessions, its sockets.

    GET    /                    the page; it shows nothing without a link
    POST   /session             {"token": ...} of a link -> the page's key; the answer sets the cookie
    GET    /session             what this page may do
    DELETE /session             end it
    WS     /live/0, /live/1...  one desktop, by its number
    WS     /grid                all of them, as thumbnails

This module owns who is let in. Every request needs a known `Host`; sockets and changes need this server's own `Origin`; all but
the page's files need a grant, and no client inside a watched desktop gets one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.arguments import expect, expect_flag, expect_mapping, expect_text
from deskhand._core.extras import load
from deskhand._core.redaction import one_line
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, DeskhandError, PolicyDenied
from deskhand.policy.questions import Questions
from deskhand.watch.grants import Grants
from deskhand.watch.grid import GridViewer
from deskhand.watch.messages import field_of
from deskhand.watch.peers import is_inside, place_of
from deskhand.watch.roster import Roster, Shown
from deskhand.watch.site import Site
from deskhand.watch.viewer import GONE, PROTOCOL, LiveViewer
from deskhand.watch.watched import Watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MutableMapping

    from starlette import types as asgi

    from deskhand.watch.grants import Grant, GrantOptions, Scope
    from deskhand.watch.viewer import Viewer

EXTRA = "watch"

_LONGEST_BODY = 4096
_LONGEST_TOKEN = 200
_MOST_VIEWERS = 128
_KEY_HEADER = "x-deskhand-key"
_KEY_PROTOCOL = "key."
_SCRIPTS = (
    *(
        "cards",
        "clipboard",
        "dialogs",
        "dom",
        "grid",
        "input",
        "live",
        "main",
        "operations",
        "picture",
        "pointed",
        "session",
    ),
    "transfers",
)
_FILES = {
    "": ("index.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"{name}.js": (f"{name}.js", "text/javascript") for name in _SCRIPTS},
}


def application(
    desktop: Desktop | Mapping[str, Desktop],
    *,
    grants: Grants | None = None,
    hosts: Iterable[str] = (),
    embed_in: Iterable[str] = (),
    questions: Questions | None = None,
    agent: bool = True,
) -> Application:
    """An ASGI application with the page that shows a desktop, to serve it by itself or as a part of another application.

    Nothing is shown without a link: `Application.link`.

    Args:
        desktop: The desktop, or several by the names that viewers read, or `{}` for those of `Application.showing` alone. They
            stay open. What is done through this object, and through views that are made of it from now on, is listed.
        grants: Who may do what; by default new ones, which are `Application.grants`.
        hosts: Names of the server beside those of loopback; see `Site`.
        embed_in: Origins of pages that may show this one in a frame. Over TLS the frame works on other sites too.
        questions: The questions that viewers with the scope `approve` may answer: what was given as `ask=` to the desktop.
        agent: Whether the desktop's agent acts in this process. If not, its operations are unknown, and it cannot be paused.

    Raises:
        MissingExtra: The extra `watch` is not installed.
        ActionError: An argument is wrong.
    """
    return Application(desktop, grants=grants, hosts=hosts, embed_in=embed_in, questions=questions, agent=agent)


class Application:
    """An ASGI application; make one with `application`.

    Attributes:
        grants: Who may do what.
    """

    def __init__(
        self,
        desktop: Desktop | Mapping[str, Desktop],
        *,
        grants: Grants | None,
        hosts: Iterable[str],
        embed_in: Iterable[str],
        questions: Questions | None,
        agent: bool,
    ) -> None:
        """See `application`."""
        named = {desktop.name or desktop.display or "desktop": desktop} if isinstance(desktop, Desktop) else desktop
        for name, each in expect_mapping("application: desktop", named).items():
            expect_text("application: a desktop's name", name)
            expect("application: desktop", each, Desktop)
        if questions is not None:
            expect("application: questions", questions, Questions)
        expect_flag("application: agent", agent)
        self.grants: Grants = (
            Grants(time.monotonic) if grants is None else expect("application: grants", grants, Grants)
        )
        self._site = Site(hosts, embed_in)
        self._responses = load("starlette.responses", EXTRA)
        self._starlette = load("starlette.applications", EXTRA)
        routing = load("starlette.routing", EXTRA)
        self._left: type[Exception] = load("starlette.requests", EXTRA).ClientDisconnect
        self._gone: type[Exception] = load("starlette.websockets", EXTRA).WebSocketDisconnect
        load("websockets", EXTRA)
        self._page = _files()
        # Cookies go to every port of a host, so each server has a name of its own.
        self._cookie = f"deskhand-{id(self):x}-{time.monotonic_ns():x}"
        self._viewers: set[Viewer] = set()
        self._watched = partial(Watched, agent=agent, questions=questions)
        self._roster = Roster(lambda: bool(self._viewers))
        for name, each in named.items():
            self._roster.add(self._watched(name, each))
        self._end_revocations = self.grants.on_revoked(self._revoked)
        routes = [
            routing.Route("/session", self._session, methods=["GET", "POST", "DELETE"]),
            routing.Route("/{name:path}", self._file, methods=["GET"]),
            routing.WebSocketRoute("/live/{number:int}", self._live),
            routing.WebSocketRoute("/grid", self._grid),
        ]
        self._inner = self._starlette.Starlette(routes=routes, lifespan=self._lifespan)

    def link(self, base: str, *scopes: Scope, **options: Unpack[GrantOptions]) -> str:
        """A link that works once.

        Args:
            base: Where the application is: `http://127.0.0.1:8000/`.
            scopes: What the link is for: `watch`, `control`, `approve`.
            options: `name`, `lifetime`, `link_lifetime` and `connections` of `Grants.issue`.
        """
        _, token = self.grants.issue(*scopes, **options)
        # What follows the # is sent to no server and stands in no log.
        return f"{base}#{token}"

    def close(self) -> None:
        """End what belongs to viewers; one who has control hands it back. The desktops stay. Harmless when called again."""
        self._end_revocations()
        self._roster.close()

    @contextlib.contextmanager
    def showing(self, name: str, desktop: Desktop) -> Iterator[Shown]:
        """Show one more desktop until the `with` block ends: of a pool, say. Pages show all of them as a grid.

        At the end one who has control hands it back, and its viewers get back to the grid. There its last picture stays until
        another desktop takes its place. The desktop stays open. A page that was loaded while there was one desktop alone shows
        the others when it is loaded again. Any thread may call it.

        Args:
            name: What viewers read. Several desktops may have one name.
            desktop: As for `application`.

        Raises:
            ActionError: An argument is wrong.
            Closed: This application was closed.
        """
        expect_text("showing: name", name)
        watched = self._watched(name, expect("showing: desktop", desktop, Desktop))
        with contextlib.ExitStack() as undo:
            undo.callback(watched.end)
            place = self._roster.add(watched)
            undo.callback(self._roster.end, place)
            yield Shown(partial(self._roster.conclude, place))

    async def __call__(
        self,
        scope: asgi.Scope,
        receive: asgi.Receive,
        send: asgi.Send,
    ) -> None:
        """Serve one connection, as ASGI calls an application."""
        if scope["type"] not in {"http", "websocket"}:
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        changes = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD"}
        refusal = self._site.refusal(scope["scheme"], headers, changes=changes)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] in {"http.response.start", "websocket.http.response.start"}:
                message["headers"] = [*message.get("headers", []), *self._site.headers()]
            await send(message)

        if not refusal:
            await self._inner(scope, receive, guarded)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": refusal})
        else:
            await self._refused(403, refusal)(scope, receive, guarded)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(self.close)

    # --- the page and its session ---

    async def _file(self, request: Any) -> Any:
        found = self._page.get(request.path_params["name"])
        if found is None:
            return self._refused(404, "there is no such page")
        content, kind = found
        return self._responses.Response(
            content, media_type=f"{kind}; charset=utf-8" if kind.startswith("text") else kind
        )

    async def _session(self, request: Any) -> Any:
        try:
            if request.method == "POST":
                return await self._open(request)
            grant = self._found(request.cookies, request.headers.get(_KEY_HEADER, ""))
            if grant is None:
                return self._refused(401, "this page needs a link: ask for one")
            if request.method == "DELETE":
                self.grants.revoke(grant)
                return self._responses.Response(status_code=204)
            return self._responses.JSONResponse(self._about(grant))
        except ActionError as error:
            return self._refused(400, str(error))
        except PolicyDenied as error:
            return self._refused(403, error.reason)

    async def _open(self, request: Any) -> Any:
        body = await self._body(request)
        token, key = (field_of(body, name, _LONGEST_TOKEN) for name in ("token", "key"))
        await self._refuse_inside(request)
        grant, secret = self.grants.redeem(token, key)
        answer = self._responses.JSONResponse(self._about(grant))
        secure = request.scope["scheme"] == "https"
        # Only a page in a frame of another site needs to be sent from there; the check of the origin stands in any case.
        abroad = secure and bool(self._site.embed_in)
        cookie = [
            f"{self._cookie}={secret}",
            f"Path={request.scope.get('root_path', '').rstrip('/')}/",
            f"Max-Age={max(1, int(self.grants.seconds_left(grant)))}",
            "HttpOnly",
            f"SameSite={'None' if abroad else 'Strict'}",
            *(["Secure"] if secure else []),
            *(["Partitioned"] if abroad else []),
        ]
        answer.headers.append("set-cookie", "; ".join(cookie))
        return answer

    def _about(self, grant: Grant) -> dict[str, Any]:
        return {
            "name": grant.name,
            "scopes": sorted(grant.scopes),
            "alone": self._roster.alone,
            "seconds": self.grants.seconds_left(grant),
        }

    async def _body(self, request: Any) -> str:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LONGEST_BODY:
                    raise ActionError(f"a request has at most {_LONGEST_BODY} bytes")
        except self._left:
            raise ActionError("the request is shorter than it says") from None
        return body.decode("utf-8", "replace")

    def _found(self, cookies: Mapping[str, str], key: str) -> Grant | None:
        return self.grants.find(cookies.get(self._cookie, ""), key)

    def _refused(self, code: int, why: str) -> Any:
        return self._responses.JSONResponse({"detail": why}, code)

    async def _refuse_inside(self, connection: Any) -> None:
        """Refuse a client that runs inside one of the desktops."""
        peer, server = connection.scope.get("client"), connection.scope.get("server")
        if peer is None or server is None:
            return
        inside = await asyncio.to_thread(
            lambda: is_inside([place_of(watched.desktop) for watched in self._roster.shown.values()], peer, server)
        )
        if inside:
            raise PolicyDenied("this connection", "it comes from inside the desktop: open the link outside of it")

    # --- sockets ---

    async def _live(self, socket: Any) -> None:
        def viewer(grant: Grant) -> Viewer | None:
            watched = self._roster.shown.get(socket.path_params["number"])
            return None if watched is None else LiveViewer(socket, grant, self.grants, watched)

        await self._admitted(socket, viewer)

    async def _grid(self, socket: Any) -> None:
        await self._admitted(socket, lambda grant: GridViewer(socket, grant, self.grants, self._roster))

    async def _admitted(self, socket: Any, viewer: Callable[[Grant], Viewer | None]) -> None:
        """Serve a socket if its grant lets it in; nothing is accepted before that."""
        offered = socket.scope.get("subprotocols", [])
        key = next((word.removeprefix(_KEY_PROTOCOL) for word in offered if word.startswith(_KEY_PROTOCOL)), "")
        known = False
        try:
            if PROTOCOL not in offered:
                raise PolicyDenied("this connection", "it speaks another version of the protocol: load the page again")
            if len(self._viewers) >= _MOST_VIEWERS:
                raise PolicyDenied("this connection", f"{_MOST_VIEWERS} viewers watch already")
            await self._refuse_inside(socket)
            known = self._found(socket.cookies, key) is not None
            grant = self.grants.enter(socket.cookies.get(self._cookie, ""), key)
        except DeskhandError as error:
            if known:
                # A page gets the reason when a socket ends, and not when one is refused.
                await socket.accept(PROTOCOL)
            await socket.close(1008, one_line(getattr(error, "reason", str(error)), 100))
            return
        try:
            # The page may leave while something is sent to it.
            with contextlib.suppress(self._gone):
                await self._serve(socket, viewer(grant))
        finally:
            self.grants.leave(grant)

    async def _serve(self, socket: Any, viewer: Viewer | None) -> None:
        if viewer is None:
            await socket.accept(PROTOCOL)
            await socket.close(GONE, "this desktop is not shown, or no more")
            return
        self._viewers.add(viewer)
        try:
            await viewer.serve()
        finally:
            self._viewers.discard(viewer)

    def _revoked(self, grant: Grant) -> None:
        for viewer in tuple(self._viewers):
            if viewer.grant is grant:
                viewer.wake()


def _files() -> dict[str, tuple[bytes, str]]:
    folder = resources.files("deskhand.watch").joinpath("page")
    return {path: (folder.joinpath(name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}
