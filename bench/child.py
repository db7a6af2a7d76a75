"""Processes that answer each line of JSON with one line: the stage, and the peers.

Each contender has a process of its own, so that it does not pay for another's threads, and a crash affects only itself. The
processes measure the time themselves, so the cost of the pipe is in no number. The content of the messages is elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from deskhand._core.readiness import ready

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Child", "ChildError", "Replies"]

_END_LIMIT = 5.0
_LOG_TAIL = 400


class ChildError(Exception):
    """The process failed, ended, or did not answer in time; the message contains its last output."""


class Child:
    """The asking side."""

    def __init__(
        self, module: str, *arguments: object, env: Mapping[str, str], log: Path, python: str = sys.executable
    ) -> None:
        """Start `python -m module arguments`.

        Args:
            module: A module that uses `Replies`.
            arguments: Its arguments.
            env: Its whole environment.
            log: The file for its standard error.
            python: The interpreter.
        """
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-m", module, *map(str, arguments)],
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # The benchmark handles Ctrl-C: it closes the pipe, and the process ends.
                start_new_session=True,
                bufsize=0,
            )
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, *, timeout: float = 60.0, **message: object) -> dict[str, Any]:
        """Send one message and wait for the answer.

        Raises:
            ChildError: It did not answer, or answered with an error.
        """
        self.tell(**message)
        return self.answer(timeout)

    def tell(self, **message: object) -> None:
        """Send one message; `answer` must be called for it."""
        assert self._process.stdin is not None  # noqa: S101 # requested above
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            raise ChildError(self._last_words("it ended")) from None

    def answer(self, timeout: float = 60.0) -> dict[str, Any]:
        """Wait for the answer to the last `tell`.

        Raises:
            ChildError: As for `ask`.
        """
        assert self._process.stdout is not None  # noqa: S101 # requested above
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not ready([self._process.stdout], timeout=deadline - time.monotonic()):
                raise ChildError(self._last_words(f"no answer in {timeout:g} s"))
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                raise ChildError(self._last_words("it ended"))
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ChildError(answer["error"])
        return answer

    def _last_words(self, what: str) -> str:
        words = self._log.read_text(errors="replace").strip()[-_LOG_TAIL:]
        return f"{what}: {words}" if words else what

    def close(self, *, limit: float = _END_LIMIT) -> None:
        """End the process and those that it has started. Further calls do nothing.

        Args:
            limit: Seconds for the process to end by itself.
        """
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit)
        # It leads its session, and so its process group. A stopped process dies of this signal too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Replies:
    """The answering side: call `once` for each line that arrives, until it returns False."""

    def __init__(self, handle: Callable[[dict[str, Any]], Mapping[str, object] | None]) -> None:
        """Answer each message with the result of `handle`; its exceptions become errors on the asking side."""
        self._handle = handle
        # Libraries may print, which must not be mixed with the answers.
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._buffer = b""

    def once(self, timeout: float | None = None) -> bool:
        """Wait for a message and answer it; False when the asking side has closed.

        Args:
            timeout: Seconds to wait for it, by default forever; if none arrives, nothing is done.
        """
        if not ready([0], timeout=timeout):
            return True
        data = os.read(0, 65536)
        if not data:
            return False
        self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            try:
                answer = self._handle(json.loads(line)) or {}
            except Exception as error:  # noqa: BLE001 # the asking side decides what to do about it
                answer = {"error": f"{type(error).__name__}: {error}"}
            os.write(self._out, json.dumps(answer).encode() + b"\n")
        return True

    def forever(self) -> None:
        """Answer until the asking side closes."""
        while self.once():
            pass
