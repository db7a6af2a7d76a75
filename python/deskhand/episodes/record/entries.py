"""What an entry of a record says of a command or a file, besides its outcome. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from deskhand.machine.interface import CommandResult

if TYPE_CHECKING:
    from deskhand.desktop.operations import Operation


def of_file(operation: Operation, answer: object) -> dict[str, Any]:
    """The path of a file that was read or written, and its size in bytes."""
    size = len(answer) if isinstance(answer, bytes) else operation.size
    return {"path": operation.target, **({} if size is None else {"size": size})}


def of_command(operation: Operation, answer: object) -> dict[str, Any]:
    """A command with what it ran with and how it ended, or the words of a program that was started."""
    if operation.type == "start":
        return {"argv": shlex.split(operation.target)}
    fields: dict[str, Any] = {"command": operation.target}
    if operation.cwd is not None:
        fields["cwd"] = operation.cwd
    if operation.env:
        fields["env"] = dict(operation.env)
    if isinstance(answer, CommandResult):
        for name in ("exit_code", "outcome", "stdout", "stderr"):
            fields[name] = getattr(answer, name)
    return fields
