"""One session of a shell while it runs: the thread that reads it, and its output so far."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from deskhand.machine.transcript import Transcript

if TYPE_CHECKING:
    from deskhand.machine.interface import Session


class RunningSession:
    """A session and its output.

    Attributes:
        session: The session.
        over: Whether all its output is here, because it has ended.
        news: Gets a word whenever there is something to see.
    """

    def __init__(self, session: Session, limit: int) -> None:
        """Read a session; `limit` is the number of bytes that are kept of each stream of a command."""
        self.session = session
        self.over: bool = False
        self._transcript = Transcript(limit)
        self._lock = threading.Lock()
        # It only wakes the waiting thread. Unlike a condition, a queue cannot be broken by a signal in the middle of a wait.
        self.news: SimpleQueue[str] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="deskhand-shell", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # The thread reads between two commands too: a job in the background must not block on its output.
        while came := self.session.read():
            with self._lock:
                for stream, data in came:
                    self._transcript.feed(stream, data)
                done = self._transcript.done
            if done:
                self.news.put("done")
        self.over = True
        self.news.put("over")

    def frame(self, command: bytes) -> bytes:
        """The text to send for a command, between two marks that are expected from now on."""
        start, end = os.urandom(16).hex(), os.urandom(16).hex()
        with self._lock:
            self._transcript.expect(start, end)
        return b"%b\n%b\0%b\n" % (start.encode(), command, end.encode())

    def verdict(self) -> tuple[int, bool] | None:
        """See `Transcript.verdict`; None until all output is here."""
        with self._lock:
            return self._transcript.verdict if self._transcript.done else None

    @property
    def begun(self) -> bool:
        """Whether the command has begun."""
        with self._lock:
            return self._transcript.begun

    def take(self) -> tuple[str, str, str, bool]:
        """See `Transcript.take`."""
        with self._lock:
            return self._transcript.take()

    def end(self, *, leave: bool = False) -> None:
        """End the session, with all that was started in it unless `leave`; its output stays."""
        if leave:
            self.session.leave()
        else:
            self.session.end()
        self._reader.join()
        self.session.close()
        self._transcript.end()
