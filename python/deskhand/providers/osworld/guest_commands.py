"""How OSWorld's guest server carries out a command or source.

Source that presses keys or moves the pointer with PyAutoGUI is not run: it is decoded, and the desktop does it (see
`pyautogui.py`). Other commands and source run on the desktop's machine.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Viewport
from deskhand.actions import Action
from deskhand.desktop.operations import CallContext, calling
from deskhand.errors import ActionError, BackendError, InputBlocked, OutOfBounds, PolicyDenied, Untypable, shown
from deskhand.providers.osworld.guest_machine import NOT_ALLOWED
from deskhand.providers.osworld.pyautogui import decode_source, without_pyautogui
from deskhand.providers.outcomes import notes_on
from deskhand.providers.payload import expect_list, expect_string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.machine.interface import CommandResult
    from deskhand.providers.osworld.guest_machine import GuestMachine

PROVIDER = "osworld"
"""The name of these calls' provider in policies and audit logs."""

COMMAND_SECONDS = 120.0
"""How long a command may take."""

_PYTHON = re.compile(r"(?:/usr/(?:local/)?bin/)?python3?")
# Debian has no program `python`.
FIND_PYTHON = '"$(command -v python || command -v python3 || echo python3)"'


def command_of(given: Mapping[str, Any], machine: GuestMachine) -> tuple[list[str], str]:
    """A command as its words, and as a line for bash."""
    command, shell = given.get("command"), given.get("shell", False)
    if isinstance(command, str):
        try:
            words = ["/bin/sh", "-c", command] if shell else shlex.split(command)
        except ValueError as error:
            raise ActionError(f"the command cannot be split into words: {error}") from None
    else:
        words = [expect_string("a word of command", word) for word in expect_list("command", command or [])]
        if shell:
            words = ["/bin/sh", "-c", *words]
    words = [machine.path(word) if word.startswith("~/") else word for word in words]
    return words, shlex.join(words)


def output_of(ended: CommandResult) -> dict[str, Any]:
    """What an answer says of a command that has ended."""
    errors = [*([ended.stderr] if ended.stderr else []), *notes_on(ended, ending=False)]
    return {"output": ended.stdout, "error": "\n".join(errors), "returncode": ended.exit_code}


def execute(machine: GuestMachine, words: Sequence[str], line: str) -> dict[str, Any]:
    """Run a command, or do what its PyAutoGUI source says.

    Args:
        machine: The machine.
        words: The command's words.
        line: The command as a line for bash.

    Raises:
        BackendError: It did not end in time.
    """
    if len(words) == 3 and _PYTHON.fullmatch(words[0]) and words[1] == "-c":
        if (done := perform_source(machine, words[2])) is not None:
            return done
        line = f"{FIND_PYTHON} -c {shlex.quote(without_pyautogui(words[2]))}"
    ended = machine.run(line, timeout=COMMAND_SECONDS)
    if ended.exit_code is None:
        raise BackendError(f"the command was ended after {COMMAND_SECONDS:g} s: {shown(line)}")
    return output_of(ended)


def perform_source(machine: GuestMachine, source: str) -> dict[str, Any] | None:
    """Do what PyAutoGUI source says; None if it says something else, which Python may be run for.

    Raises:
        PolicyDenied: It is not allowed; or it says something else, and programs are not allowed.
    """
    desktop = machine.desktop
    try:
        steps = decode_source(source, Viewport(desktop.size, desktop.size), desktop.pointer)
        with calling(CallContext(PROVIDER)):
            if actions := [step for step in steps if isinstance(step, Action)]:
                desktop.perform(*actions)
    except (OutOfBounds, InputBlocked, Untypable) as error:
        # As when Python itself raises an error.
        return {"output": "", "error": str(error), "returncode": 1}
    except ActionError as error:
        if not machine.programs:
            raise PolicyDenied("shell", f"this is not only input ({error}), and {NOT_ALLOWED}") from error
        return None
    return {"output": "", "error": "", "returncode": 0}
