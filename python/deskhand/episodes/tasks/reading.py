"""Reads files of other benchmarks, untrusted as they are.

This module owns the rule that only regular files of a bounded size are read. What must never appear here: the meaning of
their content.
"""

from __future__ import annotations

import os
import stat
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a regular file that is not a link, of at most `limit` bytes.

    Raises:
        OSError: It is anything else, or larger.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"it is larger than {limit} bytes")
    return data


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file that is not a link, to read it.

    Raises:
        OSError: It is anything else.
    """
    # A FIFO without a writer does not block like this.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")
