"""What the tests of policies share: a machine that counts what is asked of it, a clock, and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand.machine.interface import CommandResult, Usage

if TYPE_CHECKING:
    import deskhand
    from deskhand import Context
    from deskhand.policy.rules import JudgedAction


class Inside:
    """A machine that only counts what is asked of it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def shell(self, command: str, **_: object) -> CommandResult:
        self.done.append(command)
        return CommandResult("out", "", 0)

    def read_file(self, path: str, **_: object) -> bytes:
        self.done.append(path)
        return b"content"

    def view_file(self, path: str, **_: object) -> bytes:
        self.done.append(path)
        return b"content"

    def write_file(self, path: str, data: bytes, **_: object) -> None:
        self.done.append(f"{path} {data!r}")

    def copy_in(self, source: object, target: str) -> None:
        self.done.append(f"{source} {target}")

    def copy_out(self, source: str, target: object, **_: object) -> None:
        self.done.append(f"{source} {target}")

    def logs(self, program: str | None) -> str:
        self.done.append(f"logs {program}")
        return ""

    def usage(self) -> Usage:
        self.done.append("usage")
        return Usage(0, 0, 0.0, 0, None, None)

    def cause(self, lost: deskhand.DesktopLost) -> deskhand.DesktopLost:
        return lost


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def ruling(answer: object) -> Any:
    """A policy that always says this."""

    class Always:
        def before(self, _action: JudgedAction, _context: Context) -> object:
            return answer() if callable(answer) else answer

    return Always()
