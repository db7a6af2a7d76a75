"""Removes directories that other processes have filled."""

from __future__ import annotations

import os

from .plain import Suppress


def _enter(name: str, parent: int | None = None) -> int:
    """Open a directory, not a link to one, and take the right to change it: Go's cache is read-only, for example."""
    path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(path).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{path}", 0o700)
        return os.open(f"/proc/self/fd/{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(path)


def _unlink(name: str, parent: int) -> bool:
    """Unlink a file; False for a directory."""
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        return False
    except OSError:
        pass
    return True


def _empty(top: int) -> None:
    """Move every directory below to the top before it is emptied: so no depth needs a long path or many descriptors."""
    moved = os.urandom(8).hex()
    todo = os.listdir(top)
    count = 0
    while todo:
        name = todo.pop()
        if _unlink(name, top):
            continue
        with Suppress(OSError):
            below = _enter(name, top)
            try:
                for child in [child for child in os.listdir(below) if not _unlink(child, below)]:
                    count += 1
                    with Suppress(OSError):
                        # A directory can only be moved if it is writable itself.
                        os.close(_enter(child, below))
                        os.rename(child, f"{moved}-{count}", src_dir_fd=below, dst_dir_fd=top)
                        todo.append(f"{moved}-{count}")
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=top)


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it, and as much as possible if a part cannot be removed.

    A container may have written there: `shutil.rmtree` ends in a RecursionError where directories are a thousand deep.
    """
    with Suppress(OSError):
        top = _enter(path)
        try:
            for name in os.listdir(top):
                if not _unlink(name, top):
                    with Suppress(OSError):
                        below = _enter(name, top)
                        try:
                            # Each by itself: what a container sees is not moved to a place from which it could look out.
                            _empty(below)
                        finally:
                            os.close(below)
                        os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        os.rmdir(path)
