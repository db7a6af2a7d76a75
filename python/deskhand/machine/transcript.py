"""Splits the output of a shell session into that of its commands, with a bound on how much is kept. Bytes in, text out.

This module owns the framing of a session's two streams and how much of them is kept. What must never appear here: a process, a
clock, a thread.

A command is framed by two marks, which no program can know before they are written. The session reads the first one just before
the command. The second one waits unread meanwhile, and is read when the command has ended. So no output of a command ends it.
"""

from __future__ import annotations

import codecs
from collections import deque

OUTPUT, ERRORS = 1, 2
# Less is kept of what background jobs write between two commands than of a command.
_BETWEEN = 8


class Kept:
    """The beginning and the end of a stream, half of the limit each; the bytes between them are only counted.

    The beginning says what a command was about, and the end how it went; with one of them alone, either the first error or
    the summary would be lost.
    """

    def __init__(self, limit: int) -> None:
        """Keep `limit` bytes at most."""
        self._limit = limit
        self._head = limit - limit // 2
        self._total = 0
        # In one buffer, which is decoded at once: so it never takes more than twice the limit.
        self._bytes = bytearray()
        # The place of the next byte once it is full: the end is a ring behind the beginning.
        self._at = self._head

    def add(self, data: bytes) -> None:
        """Add what came next."""
        self._total += len(data)
        room = self._limit - len(self._bytes)
        self._bytes += data[:room]
        # Of more than the ring holds, only the last part is kept.
        rest = memoryview(data)[max(room, len(data) - (self._limit - self._head)) :]
        while rest:
            count = min(len(rest), self._limit - self._at)
            if not count:
                self._at = self._head
                continue
            self._bytes[self._at : self._at + count] = rest[:count]
            self._at += count
            rest = rest[count:]

    @property
    def truncated(self) -> bool:
        """Whether more came than is kept."""
        return self._total > self._limit

    def take(self) -> str:
        """The text, as UTF-8 with invalid bytes replaced, and a line that says how much is missing, if any. Empties it."""
        kept = self._bytes
        if self.truncated:
            _rotate(kept, self._head, self._at)
            # A character that is cut in two is left out whole.
            begun = _begun(kept[max(0, self._head - 3) : self._head])
            rest = next((at for at, byte in enumerate(kept[self._head : self._head + 4]) if byte & 0xC0 != 0x80), 0)
            missing = self._total - self._limit + begun + rest
            kept[self._head - begun : self._head + rest] = b"\n[... %d bytes left out ...]\n" % missing
        text = kept.decode("utf-8", "replace")
        self._total, self._bytes, self._at = 0, bytearray(), self._head
        return text


def _rotate(data: bytearray, begin: int, at: int) -> None:
    """Move the bytes between these positions to the end."""
    moved = data[begin:at]
    del data[begin:at]
    data += moved


def _begun(data: bytearray) -> int:
    """How many bytes at the end are the beginning of an incomplete character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


class _Stream:
    def __init__(self, limit: int) -> None:
        self.command = Kept(limit)
        self.between = Kept(limit // _BETWEEN)
        self.words: list[bytes] = []
        self._marks: deque[bytes] = deque()
        self._rest = b""

    def expect(self, *marks: bytes) -> None:
        self._marks = deque(marks)
        self.words = []

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = b""
        while self._marks:
            mark = self._marks[0]
            at = data.find(mark)
            end = data.find(b"\n", at) if at >= 0 else -1
            if end < 0:
                # What may be the beginning of a mark waits for the rest.
                sure = at if at >= 0 else max(0, len(data) - len(mark) + 1)
                self._into.add(data[:sure])
                self._rest = data[sure:]
                return
            self._into.add(data[:at])
            self.words.append(data[at + len(mark) : end])
            self._marks.popleft()
            data = data[end + 1 :]
        self._into.add(data)

    def end(self) -> None:
        """Note that nothing more comes."""
        self._into.add(self._rest)
        self._rest = b""
        self._marks.clear()

    @property
    def _into(self) -> Kept:
        return self.command if len(self.words) == 1 else self.between


class Transcript:
    """Both streams of one session."""

    def __init__(self, limit: int) -> None:
        """Keep `limit` bytes of each stream of a command."""
        self._streams = {OUTPUT: _Stream(limit), ERRORS: _Stream(limit)}

    def expect(self, start: str, end: str) -> None:
        """Note that a command is about to be sent between these marks."""
        for stream in self._streams.values():
            stream.expect(start.encode(), end.encode())

    def feed(self, stream: int, data: bytes) -> None:
        """Add what was read from `OUTPUT` or `ERRORS`."""
        self._streams[stream].feed(data)

    def end(self) -> None:
        """Note that the session has ended, so that nothing more comes."""
        for stream in self._streams.values():
            stream.end()

    @property
    def begun(self) -> bool:
        """Whether the session has begun the command."""
        return any(stream.words and not stream.words[0] for stream in self._streams.values())

    @property
    def done(self) -> bool:
        """Whether all output of the command is here."""
        output, errors = self._streams[OUTPUT].words, self._streams[ERRORS].words
        # A session that has ended never reads the second mark.
        return len(output) == len(errors) and (len(output) == 2 or (len(output) == 1 and output[0] != b""))

    @property
    def verdict(self) -> tuple[int, bool]:
        """The exit code, once it is done, and whether the session has ended with it."""
        words = self._streams[OUTPUT].words[-1].split()
        return int(words[-1]), len(words) > 1

    def take(self) -> tuple[str, str, str, bool]:
        """Output, errors, what earlier background jobs wrote in between, and whether anything was left out. Empties all."""
        output, errors = self._streams[OUTPUT], self._streams[ERRORS]
        truncated = output.command.truncated or errors.command.truncated
        between = output.between.take() + errors.between.take()
        return output.command.take(), errors.command.take(), between, truncated
