"""Views a path in a container: a file's bytes or a directory's names, and nothing behind a link.

This module owns the script that looks, and the meaning of its answers. What must never appear here: a container.
"""

from __future__ import annotations

from deskhand.errors import BackendError, shown
from deskhand.machine.interface import Listing

LONGEST_LISTING = 1 << 18
"""The bytes of a directory's names to read."""

_LINK, _DIRECTORY, _OTHER, _MISSING = 20, 21, 22, 23

# Arguments: the path, how many bytes of a file, and of a listing. A policy has judged the path as it is written, so a target
# behind a link is named and not opened.
VIEW = f"""real=$(readlink -m -- "$1"; printf .); real=${{real%$'\\n'.}}
if [ "$real" != "$1" ]; then printf %s "$real"; exit {_LINK}; fi
if [ -d "$1" ]; then
  if [ ! -r "$1" ] || [ ! -x "$1" ]; then echo 'Permission denied' >&2; exit 1; fi
  find "$1" -mindepth 1 -maxdepth 2 -name '.*' -prune -o -printf '%y%P\\0' 2>/dev/null | head -c "$3"
  exit {_DIRECTORY}
fi
if [ -f "$1" ]; then exec head -c "$2" -- "$1"; fi
if [ -e "$1" ]; then stat -c %F -- "$1"; exit {_OTHER}; fi
exit {_MISSING}
"""


def viewed(code: int, out: bytes, path: str, where: str) -> bytes | Listing | None:
    """The script's result.

    Args:
        code: Its exit code.
        out: Its output.
        path: The path that it looked at.
        where: The container's name, for messages.

    Returns:
        A file's bytes or a directory's listing; None if the script failed, and its errors say why.

    Raises:
        BackendError: There is nothing, it is neither a file nor a directory, or the path leads through a link.
    """
    if code == 0:
        return out
    if code == _DIRECTORY:
        return _listing(out)
    if code == _LINK:
        raise BackendError(f"{path!r} in {where} leads through a link to {shown(_text(out))}: name that instead")
    if code == _OTHER:
        raise BackendError(f"{path!r} in {where} is neither a file nor a directory: it is a {_text(out).strip()}")
    if code == _MISSING:
        raise BackendError(f"there is no {path!r} in {where}")
    return None


def _listing(out: bytes) -> Listing:
    # A name that was cut off has no end.
    names = out.split(b"\0")
    del names[-1]
    found = sorted(_text(name[1:]) + ("/" if name[:1] == b"d" else "") for name in names)
    return Listing(tuple(found), more=len(out) >= LONGEST_LISTING)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
