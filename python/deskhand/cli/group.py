"""The group of all commands, and how each of them ends."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from deskhand._native import __version__
from deskhand.cli.common import clean, examples
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = ["commands", "run", "run_command"]

# The module that has each command.
_MODULES = {
    "assets": "assets",
    "audit": "auditing",
    "bench": "benchmark",
    "click": "acting",
    "do": "acting",
    "doctor": "health",
    "down": "lifecycle",
    "export": "replaying",
    "image": "image",
    "key": "acting",
    "ls": "lifecycle",
    "mcp": "serving",
    "record": "recording",
    "replay": "recording",
    "report": "reporting",
    "run": "run_episodes",
    "screenshot": "acting",
    "serve": "serving",
    "shell": "running",
    "start": "lifecycle",
    "tasks": "tasks",
    "type": "acting",
    "up": "lifecycle",
    "windows": "acting",
}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal asked this process to end. Like KeyboardInterrupt, it is not to be handled as an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Commands(click.Group):
    """Imports a command's module when the command is used: all of them together take longer than most commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's own signature
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"deskhand.cli.{_MODULES[cmd_name]}")
        commands: tuple[click.Command, ...] = module.COMMANDS
        return next(command for command in commands if command.name == cmd_name)


@click.group(
    cls=_Commands,
    epilog=examples(
        "deskhand up                          # a desktop that stays until `deskhand down`",
        "deskhand start mousepad",
        "deskhand click 400 300 && deskhand type 'naïve ☕ text'",
        "deskhand key ctrl+s -o after.png",
        "deskhand down",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="deskhand")
def commands() -> None:
    """Act on a Linux desktop, wait until the screen has answered, see what changed."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command of deskhand.

    Args:
        arguments: What follows `deskhand`; by default those of this process.

    Returns:
        The exit code.
    """
    return run_command(commands, "deskhand", arguments)


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command, and end it in the way of all commands.

    Args:
        command: The command.
        name: Its name for the user.
        arguments: What follows the name; by default those of this process.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        # In a locale without some character, its escape is better than no answer.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # both are text files here
    for number in _ENDING:
        # Signals that `nohup` ignores stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        code = command.main(args=arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except _Ended as end:
        return 128 + end.number
    except click.Abort:
        return 128 + signal.SIGINT
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # The reader has closed the pipe. Buffered output must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DeskhandError, OSError) as error:
        click.echo("deskhand: " + clean(str(error), keep="\n"), err=True)
        return 1
    return code if isinstance(code, int) else 0


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything pressed is released; a second Ctrl-C must not cut that short."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise _Ended(number)
