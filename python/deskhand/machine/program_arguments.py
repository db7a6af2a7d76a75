"""The arguments of a program: its words, its variables and its directory, checked before anything is done with them.

This module owns what is accepted. What must never appear here: a process.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from deskhand._core.arguments import LONGEST, expect_path, expect_word
from deskhand.errors import ActionError, shown

# Splitting one takes time with the square of its length; no word of a program's may be longer.
_LONGEST_LINE = 1 << 17


def program_words(what: str, command: object) -> tuple[str, ...]:
    """The words of a command.

    Args:
        what: The caller's name for it, for the message.
        command: A command line, which is split as a shell would, a path, or the words, each of them text or a path.

    Raises:
        ActionError: It is none of these, is empty, or holds what no program can be given.
    """
    if isinstance(command, str):
        if len(command) > _LONGEST_LINE:
            raise ActionError(f"{what}: {shown(command)} is too long for a command line: give its words, as a list")
        try:
            words: list[object] = list(shlex.split(command))
        except ValueError as error:
            raise ActionError(f"{what}: {shown(command)} is no command line: {error}") from error
    elif isinstance(command, Iterable) and not isinstance(command, bytes | bytearray | memoryview | Mapping):
        words = list(command)
    else:
        words = [command]
    if not words:
        raise ActionError(f"{what}: the command is empty")
    found = tuple(expect_word(f"{what}: word {place} of the command", word) for place, word in enumerate(words, 1))
    if not found[0]:
        raise ActionError(f"{what}: the program's name is empty")
    return found


def program_variables(what: str, env: object) -> dict[str, str]:
    """Check variables for a program's environment; none for None.

    Raises:
        ActionError: It is not a mapping of names to texts or paths.
    """
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise ActionError(f"{what}: env is a mapping of names to texts, not {shown(env)}")
    found = {}
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise ActionError(f"{what}: env has {shown(name)}, which is no name of a variable")
        found[expect_word(f"{what}: a name in env", name)] = expect_word(f"{what}: env[{shown(name)}]", value)
    return found


def program_directory(what: str, cwd: object) -> str | None:
    """Check the directory that a program starts in; None for None.

    Raises:
        ActionError: It is neither text nor a path, or is empty.
    """
    if cwd is None:
        return None
    return expect_path(f"{what}: cwd", cwd)


def check_timeout(what: str, timeout: object) -> float:
    """Check a number of seconds, above 0 and at most 30 years.

    Raises:
        ActionError: It is not such a number.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST:
        raise ActionError(f"{what}: a timeout is a number of seconds above 0, not {shown(timeout)}")
    return timeout
