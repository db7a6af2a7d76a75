"""The audit log: what was requested, decided and done, in a file that shows later changes.

This module owns the file's form: one JSON object a line, in order. Each record carries the hash of the one before (`prev`)
and, last, its own (`hash`: BLAKE2b of 256 bits over the line without it). Changing, removing or inserting a record breaks
the chain at that place. A cut at the end is found only with a hash that was kept elsewhere (`AuditLog.head`). This module
makes no decisions and writes no secrets.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from deskhand._core.arguments import expect, expect_callable, expect_flag, expect_path, expect_several
from deskhand._core.redaction import MASK, Secret
from deskhand.actions import Action
from deskhand.errors import ActionError, files_named, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from deskhand.policy.rules import JudgedAction

Texts = Literal["full", "mac", "none"]
"""How a text is written: in full, as its length and a keyed hash, or not at all. Secrets are never written.

`mac` applies to texts that are typed and copied and to values of variables; `none` applies to commands and URLs too.
"""

_START = "0" * 64
_LONGEST_STRING = 8192
_MOST_ITEMS = 256
_DEEPEST = 8
# Longer records are cut further; this log never writes a longer line.
_LONGEST_RECORD = 1 << 20
_SHORT_STRING = 256
_FEW_ITEMS = 16
_LONGEST_LINE = 1 << 22
# Operations whose target is a text: a command, a URL, what is copied.
_COPIED = ("set_clipboard",)
_COMMANDS = ("shell", "host_shell", "start", "navigate")
_HASH_FIELD = b',"hash":"'
_TAIL = len(_HASH_FIELD) + 64 + len(b'"}')


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


class AuditLog:
    """Appends records to a file. One process at a time may use it; the threads of that process may share it.

    Example:
        >>> with AuditLog("audit.jsonl") as log:
        ...     desktop = deskhand.launch(audit=log)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        texts: Texts = "full",
        secrets: Iterable[Secret] = (),
        sync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the file, or create it with mode 0600, and continue its chain.

        Args:
            path: The file; not a symbolic link.
            texts: How texts are written down; see `Texts`.
            secrets: Replaced by `***` wherever they appear in a record, such as in a command that a model writes.
            sync: Wait after each record until it is on disk. Otherwise a record survives the end of this process, but not a
                crash of the machine.
            clock: Seconds since 1970.

        Raises:
            ActionError: The file is not an audit log, belongs to another user, or is being written by another process.
            FileError: The file cannot be opened or written.
        """
        if texts not in get_args(Texts):
            raise ActionError(f"texts must be full, mac or none, not {shown(texts)}")
        self.path: str = expect_path("AuditLog: path", path)
        self._texts = texts
        self._secrets = expect_several("AuditLog: secrets", secrets)
        for secret in self._secrets:
            expect("AuditLog: each of secrets", secret, Secret)
        self._sync = expect_flag("AuditLog: sync", sync)
        expect_callable("AuditLog: clock", clock)
        self._clock = clock
        self._key = os.urandom(32)
        self._lock = threading.Lock()
        self._head = _START
        self._torn: bytes | None = None
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with files_named("cannot open the audit log", self.path):
            self._file = os.open(self.path, flags, 0o600)
        try:
            with files_named("cannot open the audit log", self.path):
                self._take()
            self.write("begin", format=1, pid=os.getpid())
        except BaseException:
            os.close(self._file)
            self._file = -1
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AuditLog {self.path}>"

    @property
    def head(self) -> str:
        """The hash of the last record. Keep it elsewhere to prove later that nothing was cut off."""
        return self._head

    def _take(self) -> None:
        about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_nlink != 1:
            raise ActionError(
                f"{self.path} is not a regular file that you own, with a single hard link: give the audit log another path"
            )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ActionError(f"another process writes to {self.path}: give each its own audit log") from None
        os.fchmod(self._file, 0o600)
        self._good = about.st_size
        if about.st_size:
            last, torn = self._last_lines(about.st_size)
            if last:
                self._head = _checked(last, None)["hash"]
            try:
                self._head = _checked(torn, self._head)["hash"] if torn else self._head
            except ActionError:
                self._torn = torn
            else:
                # The line is whole but for its end.
                self._write(b"\n" if torn else b"")
                self._good += len(b"\n" if torn else b"")

    def _last_lines(self, size: int) -> tuple[bytes, bytes]:
        """The last whole line, and what follows it."""
        start = max(0, size - _LONGEST_LINE)
        data = b""
        while len(data) < size - start:
            piece = os.pread(self._file, size - start - len(data), start + len(data))
            if not piece:
                break
            data += piece
        whole, newline, torn = data.rpartition(b"\n")
        return (whole.rpartition(b"\n")[2] if newline else b""), torn

    def write(self, event: str, **fields: object) -> None:
        """Append one record, completely or not at all.

        Args:
            event: The kind of record.
            fields: Its content: plain JSON data. None is left out.

        Raises:
            FileError: The record could not be written: the disk is full, or the log was closed.
        """
        with self._lock, files_named("cannot write the audit log", self.path):
            if self._torn is not None:
                # From the record, readers of the file know that nothing was removed at this place.
                self._append(b"\n" if self._torn else b"", "recovered", {"torn": _hash(self._torn)})
            self._append(b"", event, fields)

    def _append(self, before: bytes, event: str, fields: dict[str, object]) -> None:
        if self._file < 0:
            raise OSError(errno.EBADF, "it is closed")
        moment = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="microseconds")
        given = {name: value for name, value in fields.items() if value is not None}
        body = self._body({"time": moment, "event": event}, given, _LONGEST_STRING, _MOST_ITEMS)
        if len(body) > _LONGEST_RECORD:
            body = self._body({"time": moment, "event": event, "cut": True}, given, _SHORT_STRING, _FEW_ITEMS)
        own = _hash(body)
        line = before + body[:-1] + _HASH_FIELD + own.encode() + b'"}\n'
        whole = self._good + len(line)
        try:
            self._write(line)
            self._head, self._torn, self._good = own, None, whole
        except BaseException as error:
            # A Ctrl-C may arrive between any two lines, so what counts is what the file contains.
            if not isinstance(error, OSError) and os.fstat(self._file).st_size == whole:
                self._head, self._torn, self._good = own, None, whole
            else:
                self._give_up_torn()
            raise

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]
        if self._sync:
            os.fsync(self._file)

    def _give_up_torn(self) -> None:
        """After an incomplete record: truncate it, or remember it where the file cannot be truncated."""
        size = os.fstat(self._file).st_size
        if size == self._good:
            return
        try:
            os.ftruncate(self._file, self._good)
        except OSError:
            # The file may only be appended to.
            if self._torn is None:
                self._torn = os.pread(self._file, size - self._good, self._good)
                self._good = size
            else:
                # The second time in a row: one record could not describe both.
                os.close(self._file)
                self._file = -1

    def _body(self, record: dict[str, object], fields: dict[str, object], longest: int, most: int) -> bytes:
        bounded = self._bounded(fields, longest, most, _DEEPEST)
        assert isinstance(bounded, dict)  # noqa: S101 # of a dictionary comes one
        return json.dumps({**record, **bounded, "prev": self._head}, separators=(",", ":")).encode()

    def _bounded(self, value: object, longest: int, most: int, deepest: int) -> object:
        """Plain data of a bounded size, without secrets. Longer texts and lists are cut at the end."""
        if isinstance(value, dict | list | tuple) and deepest == 0:
            return "..."
        if isinstance(value, dict):
            names = list(value)[:most]
            kept = {
                str(self._bounded(str(name), _SHORT_STRING, most, deepest)): self._bounded(
                    value[name], longest, most, deepest - 1
                )
                for name in names
            }
            return kept if len(names) == len(value) else {**kept, "...": f"and {len(value) - most} more"}
        if isinstance(value, list | tuple):
            items = [self._bounded(each, longest, most, deepest - 1) for each in value[:most]]
            return items if len(value) <= most else [*items, f"... and {len(value) - most} more"]
        if not isinstance(value, str):
            return value
        for secret in self._secrets:
            if secret:
                value = value.replace(secret.reveal(), MASK)
        more = len(value) - longest
        return value if more <= 0 else f"{value[:longest]}... and {more} characters more"

    def describe(self, action: JudgedAction) -> dict[str, object]:
        """An action or operation as it is recorded: plain data, without texts that must not be written."""
        if isinstance(action, Action):
            plain = action.to_dict()
            if isinstance(text := plain.get("text"), str) and not plain.get("secret"):
                plain["text"] = self._text(text)
            return plain
        hidden = action.type in _COPIED or (self._texts == "none" and action.type in _COMMANDS)
        target: object = self._text(action.target) if hidden else action.target
        env = {name: self._text(value) for name, value in action.env}
        more = {"size": action.size, "cwd": action.cwd, "env": env or None}
        return {"type": action.type, "target": target, **{name: it for name, it in more.items() if it is not None}}

    def _text(self, text: str) -> object:
        if self._texts == "full":
            return text
        mac = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._key, digest_size=16).hexdigest()
        return {"length": len(text), "mac": mac} if self._texts == "mac" else {}

    def close(self) -> None:
        """Write the last record and close the file. Further calls do nothing."""
        with contextlib.suppress(OSError):
            self.write("end")
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes:
        records: How many records are whole and follow one another, counted from the first.
        head: The hash of the last of them.
        broken: The line number of the first record that was changed, counted from 1; None if all are intact.
        reason: What is wrong with that record.
        torn: Whether the file ends within a record, as after a crash of the machine.
    """

    records: int
    head: str
    broken: int | None = None
    reason: str = ""
    torn: bool = False


class _Broken(Exception):
    """A line is not a record, or does not follow the record before it."""


def _checked(line: bytes, prev: str | None) -> dict[str, Any]:
    """Parse the line of a record; `prev` is the hash of the record before it, None if unknown."""
    split = len(line) - _TAIL
    if split < 1 or line[split : split + len(_HASH_FIELD)] != _HASH_FIELD or not line.endswith(b'"}'):
        raise ActionError("it is not a record of an audit log")
    body = line[:split] + b"}"
    own = line[split + len(_HASH_FIELD) : -2].decode("ascii", "replace")
    if _hash(body) != own:
        raise ActionError("its hash is not that of its content")
    try:
        record = json.loads(line)
    except ValueError:
        raise ActionError("it is not JSON") from None
    if prev is not None and record.get("prev") != prev:
        raise ActionError("it does not follow the record before it")
    return dict(record)


def _lines(path: str) -> Iterator[bytes]:
    with files_named("cannot read the audit log", path), Path(path).open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            yield line


def verify(path: str | os.PathLike[str], *, head: str | None = None) -> Verification:
    """Check the chain of an audit log, even while it is being written.

    Args:
        path: The file.
        head: A hash that was kept (see `AuditLog.head`): one of the records must have it.

    Raises:
        ActionError: The path is not an audit log.
        FileError: The file cannot be read.
    """
    path = expect_path("verify: path", path)
    records, last, found = 0, _START, head is None
    torn: bytes | None = None
    number = 0
    for number, line in enumerate(_lines(path), 1):
        if not line.endswith(b"\n"):
            if len(line) >= _LONGEST_LINE:
                return Verification(records, last, number, "it is longer than any record")
            return _verdict(records, last, head if not found else None, number, torn=True)
        try:
            record = _checked(line[:-1], last)
        except ActionError as error:
            if torn is None and not line.startswith(b"\n"):
                # It may be the rest of a record that was interrupted when the process ended; the next record then says so.
                torn, reason, where = line[:-1], error.message, number
                continue
            return Verification(
                records, last, where if torn is not None else number, reason if torn is not None else error.message
            )
        if torn is not None:
            if record.get("event") != "recovered" or record.get("torn") != _hash(torn):
                return Verification(records, last, where, reason)
            torn = None
        records, last = records + 1, record["hash"]
        found = found or last == head
    if torn is not None:
        return Verification(records, last, where, reason)
    return _verdict(records, last, head if not found else None, number, torn=False)


def _verdict(records: int, last: str, missing: str | None, number: int, *, torn: bool) -> Verification:
    if missing is not None:
        return Verification(records, last, number, f"no record has the hash {missing}: the end was cut off", torn)
    return Verification(records, last, torn=torn)
