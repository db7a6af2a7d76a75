"""What a program writes, kept in a file of a bounded size."""

from __future__ import annotations

import os

from .plain import Suppress

# Bytes of a log: the beginning and the end that are kept when it has grown too long, and how long it may grow.
HEAD, TAIL, MOST = 32 << 10, 64 << 10, 256 << 10
# As much as a pipe holds.
PIECE = 64 << 10


class Log:
    """The output of a program and of all that it has started: its beginning and its end, in a file of a bounded size.

    It comes through a pipe. Whatever happens to the file, the pipe is read, and the program goes on.
    """

    def __init__(self, pipe: int, path: str) -> None:
        self.pipe = pipe
        self.path = path
        self.file: int | None = None
        self.size: int = 0
        # The length of the line that says how much was left out, and that amount.
        self.gap: int = 0
        self.lost: int = 0
        with Suppress(OSError):
            # A file that is there was left by another program, or leads elsewhere.
            with Suppress(FileNotFoundError):
                os.unlink(path)
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def take(self) -> int | None:
        """Keep what has come; 0 at the end, None when nothing has come."""
        try:
            data = os.read(self.pipe, PIECE)
        except BlockingIOError:
            return None
        # Where the disk is full, what does not fit is lost.
        with Suppress(OSError):
            self._keep(data)
        return len(data)

    def _keep(self, data: bytes) -> None:
        if self.file is None:
            return
        if self.size + len(data) > MOST:
            # A process that reads the file meanwhile finds its end at every moment.
            end = os.pread(self.file, TAIL, self.size - TAIL)
            self.lost += self.size - HEAD - self.gap - len(end)
            line = f"\n[... {self.lost} bytes left out ...]\n".encode()
            os.pwrite(self.file, line + end, HEAD)
            self.gap, self.size = len(line), HEAD + len(line) + len(end)
            os.ftruncate(self.file, self.size)
        self.size += os.pwrite(self.file, data, self.size)

    def drain(self) -> bool:
        """Keep what had been written when this call began; False at the end."""
        for _ in range(1 + MOST // PIECE):
            if (taken := self.take()) is None:
                return True
            if taken == 0:
                return False
        return True

    def close(self) -> None:
        os.close(self.pipe)
        if self.file is not None:
            os.close(self.file)
