"""Protects what not everyone may read: secrets that are typed, and untrusted text on its way into a log or a terminal.

This module owns `Secret`, and the two ways to make text harmless: `clean` (no control characters) and `conceal` (an
exception that reveals nothing of a secret). What must never appear here: a log, a file, a secret in a message.
"""

from __future__ import annotations

import unicodedata
from typing import NoReturn

from deskhand.errors import ActionError, BackendError, DeskhandError, Untypable

MASK = "***"
"""What is shown instead of a secret."""

_CONTROL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# They join letters in several scripts and faces in emoji, and cannot reorder a line.
_JOINERS = "\u200c\u200d"


class Secret:
    """A text that is typed and never shown: a password, a token.

    ``str``, ``repr`` and ``format`` give ``***``. It is no string, so nothing writes it by accident: JSON refuses it, pickle
    refuses it, and no error of this package has any of its characters. Two of them are compared in constant time.

    Example:
        >>> desktop.perform(Type(Secret(getpass())), KeyPress(["Return"]))
    """

    __slots__ = ("_hidden",)

    def __init__(self, value: str) -> None:
        """Hide `value`.

        Raises:
            ActionError: It is no string.
        """
        if not isinstance(value, str):
            kind = type(value).__name__
            # A traceback with the values of variables must not have it either.
            del value
            raise ActionError(f"a Secret hides a string, not a {kind}")
        object.__setattr__(self, "_hidden", (value,))

    def reveal(self) -> str:
        """The text itself, for the code that types or sends it."""
        value: str = self._hidden[0]  # type: ignore[attr-defined] # a slot that only `__init__` sets
        return value

    def __len__(self) -> int:
        return len(self.reveal())

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        import hmac  # noqa: PLC0415 # it loads OpenSSL, which costs every program's start

        return hmac.compare_digest(_bytes(self), _bytes(other))

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __setattr__(self, name: str, value: object) -> NoReturn:
        del value
        raise ActionError(f"a Secret cannot be changed ({name})")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ActionError("a Secret cannot be pickled: send where it is stored, and make the Secret there")

    def __reduce__(self) -> NoReturn:
        self.__reduce_ex__(0)

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(0)


def _bytes(secret: Secret) -> bytes:
    return secret.reveal().encode("utf-8", "surrogatepass")


def clean(text: str, *, keep: str = "") -> str:
    """Make text from a screen safe for a terminal or a log: without control, format and lone surrogate characters.

    Args:
        text: Untrusted text.
        keep: Characters that are kept.
    """
    # Most texts, and much faster.
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c in keep or c in _JOINERS or unicodedata.category(c) not in _CONTROL)


def visible(text: str) -> str:
    """Untrusted text for a person who decides about it: nothing is left out, and what cannot be seen is written as an escape.

    Line ends and tabs stay. Joiners, which `clean` keeps, are written out too.
    """
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _CONTROL else c.encode("unicode_escape").decode()
        for c in text
    )


def one_line(text: str, limit: int) -> str:
    """Untrusted text, cleaned and cut to `limit` characters."""
    cleaned = clean(text[: 4 * limit])
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 3] + "..."


def conceal(error: BaseException) -> BaseException:
    """Make an exception safe to leave a call that typed a secret: without its characters, or the frames that had them.

    Errors of this package keep their kind and message, except for `Untypable`, which names characters. Others that are
    an `Exception` become a `BackendError` with the name of their class, as their texts may hold anything. Interruptions stay.
    """
    if isinstance(error, Untypable) and error.characters:
        safe: BaseException = Untypable.hidden(len(error.characters))
    elif isinstance(error, DeskhandError) or not isinstance(error, Exception):
        safe = error
    else:
        safe = BackendError(f"a secret could not be typed: {type(error).__name__}")
    if isinstance(safe, DeskhandError) and isinstance(error, DeskhandError) and error.index is not None:
        safe.note_progress(error.index, error.doing or "", error.done or 0)
    safe.__cause__ = safe.__context__ = None
    return safe.with_traceback(None)
