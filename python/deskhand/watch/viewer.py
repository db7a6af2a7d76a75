"""One live connection of a page: what it is sent, and what it may ask for.

The server sends in turns. A turn has all that is new for this viewer: the state, operations, what changed in the picture. The
next one begins when the page has drawn it. So a slow viewer gets fewer turns, each with what is true then, and nothing queues
up for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any, Protocol

from deskhand._core.redaction import one_line
from deskhand.errors import ActionError, DeskhandError
from deskhand.watch.line import Line
from deskhand.watch.messages import TokenBucket, parse, update_bytes
from deskhand.watch.transfers import Download, Upload

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from deskhand.watch.grants import Grant, Grants
    from deskhand.watch.mirror import Update
    from deskhand.watch.watched import Watched

PROTOCOL = "deskhand.watch.1"

# Codes of the end of a socket. The first is the standard's own.
_BROKEN = 1008
ENDED = 4401
"""The grant has ended."""
GONE = 4404
"""The desktop is not shown, or no more."""
_SILENT = 4408

# State that changes by itself is looked at this often, in seconds.
_PERIOD = 2.0
# A page that draws nothing for so long is gone; one in the background still answers.
_SILENCE_LIMIT = 60.0
_RATE, _BURST = 300.0, 600.0
_MOST_ANSWERS = 16
_MOST_TASKS = 8


class Socket(Protocol):
    """What a viewer needs of a WebSocket; Starlette's has it."""

    async def accept(self, subprotocol: str | None = None) -> None:
        """Open it."""

    async def send_text(self, data: str) -> None:
        """Send a text."""

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes."""

    async def receive(self) -> Mapping[str, Any]:
        """The next message of ASGI."""

    async def close(self, code: int, reason: str) -> None:
        """Close it."""


class _Closing(Exception):
    """The connection is to be closed by the server."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Viewer:
    """What both kinds of viewers have: turns, limits, and an end."""

    def __init__(self, socket: Socket, grant: Grant, grants: Grants) -> None:
        """Serve a socket that was admitted and not accepted yet."""
        self.grant: Grant = grant
        self._socket = socket
        self._grants = grants
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._sequence = 0
        self._in_flight = 0
        self._sent = 0.0
        self._sent_size = 0
        self._line = Line()
        self._bucket = TokenBucket(_RATE, _BURST)
        self._answers: list[dict[str, Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self, after: float = 0.0) -> None:
        """Report, from any thread, that there is something new, to be told that many seconds later. The loop may have ended."""
        with contextlib.suppress(RuntimeError):
            if after:
                self._loop.call_soon_threadsafe(self._loop.call_later, after, self._news.set)
            else:
                self._loop.call_soon_threadsafe(self._news.set)

    async def serve(self) -> None:
        """Serve until either side ends it."""
        await self._socket.accept(PROTOCOL)
        both = [asyncio.ensure_future(each) for each in (self._send(), self._receive())]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        except _Closing as closing:
            with contextlib.suppress(RuntimeError, OSError):
                await self._socket.close(closing.code, str(closing))
        finally:
            for task in (*both, *self._tasks):
                task.cancel()
            await asyncio.gather(*both, *self._tasks, return_exceptions=True)

    async def _send(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                # `wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for.
                async with asyncio.timeout(self._pause()):
                    await self._news.wait()
            self._news.clear()
            if not self._grants.is_valid(self.grant):
                raise _Closing(ENDED, "this grant has ended")
            self._check_shown()
            if self._in_flight:
                if time.monotonic() - self._sent > _SILENCE_LIMIT:
                    raise _Closing(_SILENT, f"nothing was drawn for {_SILENCE_LIMIT:g} s")
                continue
            turn, pieces, size = await self._turn()
            if not turn and pieces is None:
                continue
            self._sequence += 1
            turn |= {"type": "turn", "sequence": self._sequence, "picture": pieces is not None}
            text, data = json.dumps(turn), b"" if pieces is None else update_bytes(self._sequence, size, pieces)
            self._in_flight, self._sent, self._sent_size = self._sequence, time.monotonic(), len(text) + len(data)
            try:
                await self._socket.send_text(text)
                if data:
                    await self._socket.send_bytes(data)
            except RuntimeError:
                # The server has closed it meanwhile, for a message that is too large, say.
                return

    def _check_shown(self) -> None:
        """Raise _Closing if nothing is shown any more; a page that acknowledges nothing is told, too."""

    def _pause(self) -> float:
        return max(0.0, min(_PERIOD, self._grants.seconds_left(self.grant)))

    async def _turn(
        self,
    ) -> tuple[dict[str, Any], Sequence[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        """What is new: for the text, the pieces of the picture if there are any, and the size of the screen."""
        raise NotImplementedError

    async def _receive(self) -> None:
        while True:
            event = await self._socket.receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            if not isinstance(text, str):
                self._take_piece(event.get("bytes") or b"")
                continue
            if not self._bucket.takes(time.monotonic()):
                raise _Closing(_BROKEN, f"more than {_RATE:g} messages a second")
            try:
                message = parse(text)
            except ActionError as error:
                raise _Closing(_BROKEN, one_line(str(error), 100)) from None
            if message["type"] == "ack":
                if message["sequence"] != self._in_flight:
                    raise _Closing(_BROKEN, "this turn was not sent")
                self._in_flight = 0
                self._line.learn(self._sent_size, time.monotonic() - self._sent)
                self._news.set()
            else:
                self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        raise _Closing(_BROKEN, f"a message of the type {message['type']} has no meaning here")

    def _take_piece(self, piece: bytes) -> None:
        raise _Closing(_BROKEN, f"{len(piece):,} bytes were not announced")

    def _answer(self, **answer: str) -> None:
        """Put something into the next turn, from any thread."""
        if len(self._answers) < _MOST_ANSWERS:
            self._answers.append(answer)
            self.wake()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if len(self._tasks) >= _MOST_TASKS:
            work.close()
            self._answer(error="the last requests are not done yet: wait a moment")
            return
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class LiveViewer(Viewer):
    """Watches one desktop."""

    def __init__(self, socket: Socket, grant: Grant, grants: Grants, watched: Watched) -> None:
        """Serve a socket that was admitted."""
        super().__init__(socket, grant, grants)
        self._watched = watched
        # The state that was sent last, and the one that the page had before the turn in flight.
        self._sent_state: dict[str, Any] = {}
        self._former_state: dict[str, Any] = {}
        self._revision = 0
        self._seen = -1
        # Where the viewer points, until it is looked up; what was found there, until it is sent.
        self._point: tuple[int, int] | None = None
        self._pointed: dict[str, Any] | None = None
        self._lookup: asyncio.Task[None] | None = None
        # The upload to the desktop, and the state of it that was sent last; the download from the desktop.
        self._upload: Upload | None = None
        self._sent_upload: dict[str, Any] | None = None
        self._download: Download | None = None
        # Requests of one viewer are carried out in order.
        self._act = asyncio.Lock()

    async def serve(self) -> None:
        """See `Viewer`."""
        self._watched.enter(self, self.wake)
        self._news.set()
        try:
            await super().serve()
        finally:
            self._watched.leave(self)
            # It may be taking control just now: this waits for it.
            if "control" in self.grant.scopes:
                note = "the page that had control was closed"
                await asyncio.shield(asyncio.to_thread(self._watched.release, self, note))

    def _check_shown(self) -> None:
        if self._watched.ended:
            raise _Closing(GONE, one_line(f"{self._watched.name} has ended", 100))

    async def _turn(
        self,
    ) -> tuple[dict[str, Any], Sequence[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        watched, turn = self._watched, dict[str, Any]()
        hidden = watched.hidden_from(self)
        if hidden and self._act.locked():
            # This viewer may just be taking control privately, or handing back: nothing is sent until that is done.
            return turn, None, (0, 0)
        state = {**watched.state(self), "hidden": hidden, "scopes": sorted(self.grant.scopes), "me": self.grant.name}
        if hidden and "approve" not in self.grant.scopes:
            # A question may contain a file that the holder sends.
            state["questions"] = []
        self._former_state = self._sent_state
        if state != self._sent_state:
            self._sent_state = turn["state"] = state
        if self._answers:
            turn["answers"], self._answers = self._answers, []
        if self._upload is not None and (upload_state := self._upload.state()) != self._sent_upload:
            self._sent_upload = turn["upload"] = upload_state
        if hidden:
            # Afterwards everything is sent again.
            self._seen, self._pointed, self._download = -1, None, None
            self._line.forget()
            return turn, None, (0, 0)
        revision, rows = watched.operations.newer(self._revision)
        if rows:
            turn["operations"], self._revision = rows, revision
        if self._download is not None and (piece := self._download.piece()) is not None:
            turn["copied"] = piece
        if self._pointed is not None:
            turn["pointed"], self._pointed = self._pointed, None
        return turn, *await self._picture()

    async def _picture(self) -> tuple[list[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        """The pieces of the picture that are to be sent now, if there are any, and the size of the screen."""
        mirror = self._watched.mirror
        if mirror.generation <= self._seen and not self._line.has_blurred:
            return None, (0, 0)
        update, pieces = await asyncio.to_thread(self._encode)
        if not pieces or self._watched.hidden_from(self):
            return None, (0, 0)
        if update is None:
            return pieces, mirror.size
        self._seen = update.generation
        return pieces, update.size

    def _encode(self) -> tuple[Update | None, list[tuple[tuple[int, int, int, int], bytes]]]:
        """What has changed, and a part that can be made sharp, as the line carries them; in a thread of its own."""
        mirror, line = self._watched.mirror, self._line
        update = mirror.update(self._seen) if mirror.generation > self._seen else None
        pieces = [] if update is None else list(update.pieces)
        if update is not None and pieces and pieces[0][0] == (0, 0, *update.size):
            line.forget()
        is_slow = line.is_slow_for(sum(len(data) for _, data in pieces))
        sent = [rect for rect, _ in pieces]
        with contextlib.suppress(DeskhandError):
            for place, (rect, data) in enumerate(pieces):
                if is_slow and len(data) > 2 * len(blurred := mirror.part(rect, sharp=False)):
                    pieces[place] = rect, blurred
                    line.blur(rect, len(data))
                else:
                    line.sharpen(rect)
            if (part := line.next_part(sent)) is not None:
                pieces.append((part, mirror.part(part, sharp=True)))
        return update, pieces

    def _handle(self, message: dict[str, Any]) -> None:
        kind, scopes = message["type"], self.grant.scopes
        if kind == "point":
            self._look_up(message["x"], message["y"])
            return
        needed = "approve" if kind == "answer" else "control"
        if needed not in scopes and not (kind == "stop" and "approve" in scopes):
            self._answer(error=f"your link is not for this: it needs the scope {needed}")
        elif kind in {"take", "release", "pause", "step", "resume", "stop", "decline", "answer"}:
            self._start(self._do(message))
        elif kind == "upload":
            self._upload = Upload(message, self.wake)
            self._watched.receive(self, self._upload)
            if not self._upload.size:
                self._watched.received(self, self._upload, whole=True)
        elif kind == "cancel":
            if self._upload is not None:
                self._upload.cancel()
        else:
            try:
                self._watched.give(self, message)
            except ActionError as error:
                if not self._has_lost_control():
                    self._answer(error=one_line(str(error), 500))

    def _has_lost_control(self) -> bool:
        """Whether the page does not know yet that it has lost control: its messages were on their way then."""
        if self._watched.has_control(self):
            return False
        known = [self._sent_state, self._former_state] if self._in_flight else [self._sent_state]
        return any(holder["mine"] for state in known if (holder := state.get("holder")) is not None)

    def _take_piece(self, piece: bytes) -> None:
        if self._upload is None:
            super()._take_piece(piece)
            return
        try:
            whole = self._upload.take(piece)
        except ActionError as error:
            raise _Closing(_BROKEN, str(error)) from None
        self._watched.received(self, self._upload, whole=whole)

    def _copied(self, text: str, picture: bytes) -> None:
        if picture:
            self._download = Download(picture)
            self.wake()
        else:
            self._answer(clipboard=text)

    def _look_up(self, x: int, y: int) -> None:
        """Find out what is at a pixel; of several that come meanwhile, the last one counts."""
        self._point = x, y
        if self._lookup is None or self._lookup.done():
            self._lookup = asyncio.ensure_future(self._look_up_all())
            self._tasks.add(self._lookup)
            self._lookup.add_done_callback(self._tasks.discard)

    async def _look_up_all(self) -> None:
        while self._point is not None:
            (x, y), self._point = self._point, None
            if not self._watched.hidden_from(self):
                self._pointed = await self._watched.pointing.at(x, y)
                self._news.set()

    async def _do(self, message: dict[str, Any]) -> None:
        async with self._act:
            try:
                await asyncio.to_thread(self._act_on, message)
            except DeskhandError as error:
                self._answer(error=one_line(str(error), 500))
        self._news.set()

    def _act_on(self, message: dict[str, Any]) -> None:
        watched, by = self._watched, self.grant.name
        match message["type"]:
            case "take":
                watched.take(
                    self,
                    by,
                    failed=lambda text: self._answer(error=text),
                    copied=self._copied,
                    private=message["private"],
                    force=message["force"],
                )
            case "release":
                watched.release(self, message["note"], whole=True)
            case "answer":
                watched.answer(message["id"], by, allow=message["allow"], for_session=message["session"])
            case kind:
                watched.steer(kind, by, message)
