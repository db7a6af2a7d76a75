"""A text editor for the files of a desktop's machine, for all providers: `TextEditor`.

This module owns how an `EditCall` is carried out: which files are read and written, for which provider, and which edits can be
undone. It has no provider's payload and no SDK, and `edits` changes the texts.

A policy sees a view as a `read_file`, a new file as a `write_file`, and an edit as both, one after the other. It judges the
files that are really touched: paths are absolute, and a link is reported instead of followed.
"""

from __future__ import annotations

import hashlib
import posixpath
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from deskhand._core.arguments import expect
from deskhand.desktop.operations import CallContext, calling
from deskhand.errors import ActionError, DeskhandError, DesktopLost, PolicyDenied, UnsupportedAction, shown
from deskhand.providers.edits import Text, inserted, listed, numbered, replaced, text_of
from deskhand.providers.session import AsyncModelSession
from deskhand.providers.values import EditAnswer, EditCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop, ModelSession

COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")

_LARGEST = 4 << 20
_T = TypeVar("_T")

_MOST_SHOWN = 100_000
_MOST_KEPT = 32 << 20
_MOST_EDITS = 200
_LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit that can be undone: the content before, and the hash of the content after."""

    path: str
    before: bytes
    left: bytes


class TextEditor:
    """A text editor for the files of a desktop's machine, a container. Use one for each conversation: it remembers its edits.

    Files of up to 4 MiB of UTF-8 can be edited. The last 200 edits can be undone, of at most 32 MiB in total.

    Attributes:
        desktop: The desktop, with the policy that judges what is read and written; the caller closes it.
        max_characters: How much of a file is shown at once.

    Example:
        >>> from deskhand.providers import anthropic as deskhand_anthropic
        >>> editor = TextEditor(desktop)
        >>> deskhand_anthropic.respond(desktop, answer, editor=editor)
    """

    def __init__(self, desktop: AnyDesktop, *, max_characters: int | None = None) -> None:
        """Take a desktop.

        Args:
            desktop: The desktop, or a model session on it.
            max_characters: How many characters of a file are shown at once; 100,000 by default. The answer mentions a cut.

        Raises:
            ActionError: `max_characters` is not a number above 0.
        """
        most = _MOST_SHOWN if max_characters is None else max_characters
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ActionError(f"max_characters is a number above 0, not {shown(max_characters)}")
        self.max_characters = most
        self._there = AsyncModelSession.of(desktop)
        # Of two simultaneous edits of one file, one would be lost.
        self._turn = threading.Lock()
        self._edits: deque[_Edit] = deque()
        self._kept = 0

    @property
    def desktop(self) -> Desktop:
        """See the class."""
        return self._there.session.desktop

    def view(self, path: str, lines: tuple[int, int] | None = None) -> str:
        """A file's lines with their numbers, or the names in a directory.

        Args:
            path: An absolute path.
            lines: The first and the last line, -1 for the end; all by default.

        Raises:
            ActionError: The path is not absolute, the file is not text, or does not have these lines.
            BackendError: The file cannot be read.
        """
        place = self._place(path)
        found = self.desktop.machine.view_file(place, limit=_LARGEST)
        if not isinstance(found, bytes):
            if lines is not None:
                raise ActionError(f"{place} is a directory: view_range is for files")
            return listed(found, place)
        return numbered(text_of(found, place), lines, most=self.max_characters)

    def create(self, path: str, text: str) -> str:
        """Create a file, and its directory if needed.

        Returns:
            A description of what was done, like the three methods below.

        Raises:
            ActionError: The path is not absolute, or the text cannot be in a file.
            BackendError: The path exists already, or cannot be written.
        """
        place = self._place(path)
        if path.endswith("/"):
            raise ActionError(f"{shown(path)} names a directory: give the name of a file")
        data = _bytes(text)
        self.desktop.machine.write_file(place, data, new=True)
        return f"File created successfully at: {place}"

    def replace(self, path: str, old: str, new: str = "") -> str:
        """Replace the one occurrence of a text in a file.

        Raises:
            ActionError: The text occurs never or more than once; also as for `view`.
            BackendError: The file cannot be read or written.
        """
        _bytes(old)
        _bytes(new)
        return self._edit(path, lambda text, place: replaced(text, old, new, place))

    def insert(self, path: str, line: int, text: str) -> str:
        """Insert lines after a line of a file, 0 for its beginning.

        Raises:
            ActionError: There is no such line; also as for `view`.
            BackendError: The file cannot be read or written.
        """
        _bytes(text)
        return self._edit(path, lambda was, place: inserted(was, line, text, place))

    def undo(self, path: str) -> str:
        """Undo the last edit of a file, unless the file has changed since.

        Raises:
            ActionError: There is no edit to undo, or the file has changed.
            BackendError: The file cannot be read or written.
        """
        place = self._place(path)
        with self._turn:
            edit = next((edit for edit in reversed(self._edits) if edit.path == place), None)
            if edit is None:
                raise ActionError(f"there is no edit of {place} to undo; the creation of a file cannot be undone")
            if _hash(self._read(place)) != edit.left:
                raise ActionError(f"{place} has changed since it was edited here: nothing was undone. View it first")
            self.desktop.machine.write_file(place, edit.before)
            self._edits.remove(edit)
            self._kept -= len(edit.before)
        return f"The last edit of {place} was undone."

    def _edit(self, path: str, change: Callable[[Text, str], tuple[Text, str]]) -> str:
        place = self._place(path)
        with self._turn:
            before = self._read(place)
            made, said = change(text_of(before, place), place)
            data = made.data
            _check_size(len(data))
            self.desktop.machine.write_file(place, data)
            self._remember(_Edit(place, before, _hash(data)))
        return said

    def _remember(self, edit: _Edit) -> None:
        self._edits.append(edit)
        self._kept += len(edit.before)
        while len(self._edits) > _MOST_EDITS or self._kept > _MOST_KEPT:
            self._kept -= len(self._edits.popleft().before)

    def _read(self, place: str) -> bytes:
        found = self.desktop.machine.view_file(place, limit=_LARGEST)
        if not isinstance(found, bytes):
            raise ActionError(f"{place} is a directory: use view for it")
        return found

    def _place(self, path: object) -> str:
        if not isinstance(path, str) or not path or "\0" in path or len(path) > _LONGEST_PATH:
            raise ActionError(f"path must be the absolute path of a file, not {shown(path)}")
        _bytes(path)
        if not path.startswith("/"):
            there = posixpath.normpath(posixpath.join(self.desktop.machine.home, path))
            raise ActionError(f"the path {shown(path)} is not absolute; in the home directory it is {there}")
        # normpath keeps two slashes at the beginning.
        return "/" + posixpath.normpath(path).lstrip("/")


AnyEditor: TypeAlias = "TextEditor | AnyDesktop"
"""An editor, or a desktop, for which an editor is made."""


def editor_of(given: AnyEditor, *, max_characters: int | None = None) -> TextEditor:
    """Return the editor itself, or make one for a desktop, which shows that many characters of a file."""
    return given if isinstance(given, TextEditor) else TextEditor(given, max_characters=max_characters)


def carry_out_edit(editor: TextEditor | None, call: EditCall, *, provider: str) -> EditAnswer:
    """Carry out a call of an editor.

    Args:
        editor: Carries it out; with None the call is refused.
        call: The call.
        provider: The provider of the call, for the policy and its log.

    Returns:
        The answer. If the call fails or is not allowed, the reason is in it.

    Raises:
        DesktopLost: The desktop is gone.
    """
    denied = False
    expect("carry_out_edit: call", call, EditCall)
    try:
        if editor is None:
            raise UnsupportedAction("this desktop", call.command, "it has no text editor")
        with calling(CallContext(provider, call.id or "")):
            said, failed = _carried_out(editor, call), False
    except DesktopLost:
        raise
    except DeskhandError as error:
        said, failed, denied = str(error), True, isinstance(error, PolicyDenied)
    return EditAnswer(text=said, id=call.id, name=call.name, failed=failed, denied=denied, extra=call.extra)


def _carried_out(editor: TextEditor, call: EditCall) -> str:
    match call.command:
        case "view":
            return editor.view(call.path, call.lines)
        case "create":
            return editor.create(call.path, call.text)
        case "str_replace" if call.old is not None:
            return editor.replace(call.path, call.old, call.text)
        case "insert" if call.line is not None:
            return editor.insert(call.path, call.line, call.text)
        case "undo_edit":
            return editor.undo(call.path)
    raise ActionError(f"{shown(call.command)} is not one of {', '.join(COMMANDS)}, or a field is missing")


async def with_editor(editor: TextEditor, function: Callable[[ModelSession], _T]) -> _T:
    """Call a function in the thread of the editor's desktop; it can be cancelled like `AsyncModelSession.run`."""
    return await editor._there.run(function)  # noqa: SLF001 # of the same module


def _bytes(text: str) -> bytes:
    """A text as the bytes of a file.

    Raises:
        ActionError: A file cannot contain it.
    """
    if "\0" in text:
        raise ActionError("a text must not contain a zero byte")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ActionError("a text must not contain a lone surrogate") from None
    _check_size(len(data))
    return data


def _check_size(size: int) -> None:
    if size > _LARGEST:
        raise ActionError(f"only files of up to {_LARGEST} bytes can be edited, not of {size}")


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()
