"""OSWorld's guest server over HTTP, so that OSWorld's environment and agents, and other harnesses, can drive a desktop.

This module owns the routes, the forms and the check of the key. What a request does is in `guest.py`.

OSWorld's client shows no key of its own. It sends what is before the `@` of its address as HTTP Basic authentication, and
what `~/.netrc` has for the host: the password is the key, and the name of the user does not matter.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deskhand._core.extras import load
from deskhand.desktop.operations import Operation
from deskhand.errors import ActionError, DeskhandError, PolicyDenied, UnsupportedAction
from deskhand.providers.http_server import FOR_WEB_PAGES, UNKNOWN_KEY, HttpServer, error_text, log, parsed
from deskhand.providers.osworld.guest import Answer, Guest
from deskhand.providers.osworld.guest_machine import LARGEST_FILE
from deskhand.providers.osworld.screen_recording import ScreenRecording
from deskhand.providers.payload import expect_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.applications import Starlette

    from deskhand.aio.desktop import AsyncDesktop
    from deskhand.desktop.desktop import Desktop

_EXTRA = "osworld"
# Commands, source and scripts.
_LARGEST_REQUEST = 16 << 20
_LARGEST_FORM = LARGEST_FILE + (1 << 20)

_GETS: Mapping[str, Callable[[Guest, Mapping[str, Any]], Answer]] = {
    "/screenshot": Guest.screenshot,
    "/accessibility": Guest.accessibility,
    "/terminal": Guest.terminal,
    "/platform": Guest.platform,
    "/cursor_position": Guest.cursor_position,
}
_POSTS: Mapping[str, Callable[[Guest, Mapping[str, Any]], Answer]] = {
    "/screen_size": Guest.screen_size,
    "/desktop_path": Guest.desktop_path,
    "/wallpaper": Guest.wallpaper,
}
_FORMS: Mapping[str, Callable[[Guest, Mapping[str, Any]], Answer]] = {
    "/window_size": Guest.window_size,
    "/file": Guest.file,
}
_OBJECTS: Mapping[str, Callable[[Guest, Mapping[str, Any]], Answer]] = {
    "/execute": Guest.execute,
    "/setup/execute": Guest.execute,
    "/execute_with_verification": Guest.execute_with_verification,
    "/setup/execute_with_verification": Guest.execute_with_verification,
    "/run_python": Guest.run_python,
    "/run_bash_script": Guest.run_bash_script,
    "/list_directory": Guest.list_directory,
    "/setup/launch": Guest.launch,
    "/setup/open_file": Guest.open_file,
    "/setup/download_file": Guest.download_file,
    "/setup/change_wallpaper": Guest.change_wallpaper,
    "/setup/activate_window": Guest.activate_window,
    "/setup/close_window": Guest.close_window,
}


def application(desktop: AsyncDesktop, *, api_key: str, programs: bool = False) -> Starlette:
    """The ASGI application that serves a desktop.

    Args:
        desktop: The desktop; it stays open when the application ends. Its policy judges the clients' requests: without a policy
            they may do everything.
        api_key: The key that clients must send: the password of HTTP Basic authentication, or the header `X-API-Key`.
        programs: Whether clients may run programs and commands; on a local desktop they run on this machine.

    Raises:
        MissingExtra: The extra `osworld` is not installed.
        ActionError: The key is empty.
    """
    return _Server(desktop, api_key, programs=programs).routed()


class _Server(HttpServer):
    """The handlers of the routes."""

    def __init__(self, desktop: AsyncDesktop, api_key: str, *, programs: bool) -> None:
        super().__init__(desktop, api_key, extra=_EXTRA)
        load("python_multipart", _EXTRA)
        self._request = load("starlette.requests", _EXTRA).Request
        self._routing = load("starlette.routing", _EXTRA)
        self._in_thread = load("starlette.concurrency", _EXTRA).run_in_threadpool
        self._programs = programs
        self._recording: ScreenRecording | None = None

    def routed(self) -> Starlette:
        """The application."""
        routes = [
            *(self._route(path, "GET", self._nothing, ask) for path, ask in _GETS.items()),
            *(self._route(path, "POST", self._nothing, ask) for path, ask in _POSTS.items()),
            *(self._route(path, "POST", self._form, ask) for path, ask in _FORMS.items()),
            *(self._route(path, "POST", self._object, ask) for path, ask in _OBJECTS.items()),
            self._routing.Route("/setup/upload", self._admitted(self._upload), methods=["POST"]),
            self._routing.Route("/start_recording", self._admitted(self._start_recording), methods=["POST"]),
            self._routing.Route("/end_recording", self._admitted(self._end_recording), methods=["POST"]),
        ]
        return self.application(routes, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        yield
        if self._recording is not None:
            await self._ended(self._recording)

    def _route(
        self,
        path: str,
        method: str,
        read: Callable[[Any], Awaitable[Mapping[str, Any]]],
        ask: Callable[[Guest, Mapping[str, Any]], Answer],
    ) -> Any:
        async def answer(request: Any) -> Answer:
            given = await read(request)
            return await self._guest(lambda guest: ask(guest, given))

        return self._routing.Route(path, self._admitted(answer), methods=[method])

    def _admitted(self, answer: Callable[[Any], Awaitable[Answer]]) -> Callable[[Any], Awaitable[Any]]:
        """The handler that answers clients with the key, and tells them what failed."""

        async def handle(request: Any) -> Any:
            if "origin" in request.headers:
                return self.refusal(403, FOR_WEB_PAGES)
            if not self.admits(_key(request.headers)):
                return self.refusal(401, UNKNOWN_KEY, www_authenticate='Basic realm="deskhand"')
            try:
                return self._response(await answer(request))
            except self.refused:
                raise
            except Exception as error:  # noqa: BLE001 # whatever it is, its client gets an answer in the form that it reads
                if not isinstance(error, DeskhandError):
                    log.exception("the request %s failed", request.url.path)
                why = error_text(error)
                return self.json({"status": "error", "message": why, "error": why}, _code(error))

        return handle

    def _response(self, answer: Answer) -> Any:
        content, code = answer.content, answer.code
        if isinstance(content, str):
            return self.responses.PlainTextResponse(content.encode("utf-8", "replace"), code)
        if not isinstance(content, bytes):
            return self.json(content, code)
        made = self.responses.Response(content, code, media_type=answer.media_type)
        if answer.file is not None:
            name = quote(answer.file, safe="", errors="replace")
            made.headers["content-disposition"] = f"attachment; filename*=UTF-8''{name}"
        return made

    async def _guest(self, ask: Callable[[Guest], Answer]) -> Answer:
        return await self.desktop.run(lambda there: ask(Guest(there, programs=self._programs)))

    # --- requests ---

    async def _nothing(self, request: Any) -> Mapping[str, Any]:
        await self.body(request, _LARGEST_REQUEST)
        return {}

    async def _object(self, request: Any) -> Mapping[str, Any]:
        return expect_object("the body of the request", parsed(await self.body(request, _LARGEST_REQUEST)))

    async def _form(self, request: Any) -> Mapping[str, Any]:
        async with self._bounded(request, _LARGEST_REQUEST).form(max_files=0, max_fields=10) as form:
            return dict(form)

    def _bounded(self, request: Any, largest: int) -> Any:
        """The request, of which at most `largest` bytes are read. Files of it are on a disk, not in memory."""
        taken = 0

        async def receive() -> Any:
            nonlocal taken
            message = await request.receive()
            taken += len(message.get("body", b""))
            if taken > largest:
                raise self.refused(413, f"a request is at most {largest} bytes")
            if message["type"] == "http.disconnect":
                raise self.refused(400, "the request is shorter than it says")
            return message

        return self._request(request.scope, receive)

    async def _upload(self, request: Any) -> Answer:
        async with self._bounded(request, _LARGEST_FORM).form(max_files=1, max_fields=10) as form:
            path, file = form.get("file_path"), form.get("file_data")
            if not isinstance(path, str) or file is None or isinstance(file, str):
                return Answer({"error": "file_path and file_data are required"}, 400)
            data = await file.read()
        return await self._guest(lambda guest: guest.upload(path, data))

    async def _start_recording(self, request: Any) -> Answer:
        await self._nothing(request)
        if self._recording is not None:
            return Answer({"status": "error", "message": "Recording is already in progress."}, 400)

        def begin(there: Desktop) -> ScreenRecording:
            # All its looks are judged here, as one.
            return there.operate(Operation("screenshot", "a recording"), lambda: ScreenRecording(there))

        begun = await self.desktop.run(begin)
        if self._recording is not None:
            # Another client began one meanwhile.
            await self._ended(begun)
            return Answer({"status": "error", "message": "Recording is already in progress."}, 400)
        self._recording = begun
        return Answer({"status": "success", "message": "Started recording successfully."})

    async def _end_recording(self, request: Any) -> Answer:
        await self._nothing(request)
        recording, self._recording = self._recording, None
        if recording is None:
            return Answer({"status": "error", "message": "No recording in progress to stop."}, 400)
        return Answer(await self._ended(recording), media_type="video/mp4", file="recording.mp4")

    async def _ended(self, recording: ScreenRecording) -> bytes:
        video: bytes = await self._in_thread(recording.end)
        return video


def _key(headers: Any) -> str | None:
    """The key that a request shows."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return None
    key: str | None = headers.get("x-api-key")
    return key


def _code(error: Exception) -> int:
    """The status code of a failed request."""
    if isinstance(error, PolicyDenied):
        return 403
    if isinstance(error, UnsupportedAction):
        return 501
    return 400 if isinstance(error, ActionError) else 500
