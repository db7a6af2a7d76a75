"""The parts of a tree that a copy leaves out, and the warning about them."""

from __future__ import annotations

import re
import stat
import warnings

from deskhand.machine.interface import LeftOutWarning

_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
# How many of the parts that are missing in a copy are named.
_MOST_NAMED = 100
# Characters of such a name, which must be enough to find the path.
_LONGEST_NAMED = 500
# GNU tar's messages about a tree that changes, or has a socket, for which it does not fail (it ends with 0 or 1).
_SAID = re.compile(
    r"tar: (?:\./)?(?P<name>.*): (?P<what>socket ignored|file changed as we read it|File removed before we read it"
    r"|File shrank by \d+ bytes; padding with zeros)"
)
_MEANT = {
    "socket ignored": "a socket",
    "file changed as we read it": "it changed while it was copied",
    "File removed before we read it": "it was removed meanwhile",
}


class LeftOut:
    """The parts of a tree that are missing or different in the copy."""

    def __init__(self) -> None:
        """Begin empty."""
        self._named: list[str] = []
        self._more = 0

    def note(self, name: str, reason: str) -> None:
        """Add one more, by its path."""
        if len(self._named) < _MOST_NAMED:
            text = repr(name)
            cut = (
                text
                if len(text) <= _LONGEST_NAMED
                else f"{text[: _LONGEST_NAMED // 2]}...{text[-_LONGEST_NAMED // 2 :]}"
            )
            self._named.append(f"{cut} ({reason})")
        else:
            self._more += 1

    def note_said(self, errors: bytes) -> bool:
        """Read a message of GNU tar about the tree; False if something else went wrong."""
        lines = [_SAID.fullmatch(line) for line in errors.decode("utf-8", "surrogateescape").splitlines()]
        for said in lines:
            if said is not None:
                self.note(said["name"], _MEANT.get(said["what"], "it became shorter while it was copied"))
        return None not in lines

    def tell(self, what: str) -> tuple[str, ...]:
        """Warn of them, and return their names.

        Args:
            what: The name of what was copied.
        """
        if not self._named:
            return ()
        found = (*self._named, *([f"{self._more} more"] if self._more else []))
        warnings.warn(f"not all of {what} was copied as it is: {', '.join(found)}", LeftOutWarning, stacklevel=2)
        return found


def kind_of(mode: int) -> str:
    """Why a part is left out of every copy, by its mode; empty for a file, a directory or a symbolic link."""
    return _KINDS.get(stat.S_IFMT(mode), "")
