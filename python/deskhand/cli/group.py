"""The group of all commands, and how each of them ends."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from deskhand._core.redaction import clean
from deskhand._native import __version__
from deskhand.cli.common import examples, quiet_option
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType


class _Listed(NamedTuple):
    """A command in the list of all: the module that has it, and what its help begins with."""

    module: str
    about: str


# Grouped by purpose. The help texts are repeated here, because importing all commands for them takes 0.15 s, for
# `--help`, and for each press of Tab.
_SECTIONS: Mapping[str, Mapping[str, _Listed]] = {
    "Have a desktop": {
        "up": _Listed("lifecycle", "Start a desktop that stays until `deskhand down`."),
        "ls": _Listed("lifecycle", "List the desktops that run."),
        "down": _Listed("lifecycle", "End desktops, and return when nothing of them is left."),
        "doctor": _Listed(
            "health", "Check this machine, and the chosen desktop if there is one, and say how to mend what is wrong."
        ),
    },
    "Act and look": {
        "start": _Listed(
            "lifecycle",
            "Start a program and return when its window is up; it stays until it ends, or the desktop does.",
        ),
        "click": _Listed("acting", "Click on the pixel X Y of the screen, counted from 0 at the top left."),
        "type": _Listed("acting", "Type TEXT where the focus is, exactly: a newline is Return, a tab is Tab."),
        "key": _Listed("acting", "Press KEYS one after another; each is a key or a chord such as ctrl+shift+t."),
        "do": _Listed("acting", "Carry out ACTIONS and print what the screen answered."),
        "screenshot": _Listed("acting", "Take a picture, without waiting for anything."),
        "watch": _Listed("watching", "Serve a live page of desktops, until Ctrl-C."),
        "windows": _Listed("acting", "List the windows, bottom to top."),
        "shell": _Listed("running", "Run COMMAND, or standard input for `-`, with bash in the desktop's container."),
    },
    "Serve it to agents": {
        "mcp": _Listed(
            "serving", "Serve a desktop to clients of the Model Context Protocol, until they leave or Ctrl-C."
        ),
        "serve": _Listed("serving", "Serve a desktop to clients of Cua's computer-server or of OSWorld, until Ctrl-C."),
        "audit": _Listed("auditing", "Read the logs of a policy's decisions."),
    },
    "Have agents do tasks": {
        "tasks": _Listed("tasks", "List, show and check the tasks for agents."),
        "assets": _Listed(
            "assets", "Bring what tasks of OSWorld need: files that they download, and upstream's evaluators."
        ),
        "run": _Listed("run_episodes", "Have an agent do tasks, each on a desktop of its own, and record the results."),
        "report": _Listed(
            "reporting",
            "Make one page of a run of episodes, which works offline: scores, causes, times, and every episode step by step.",
        ),
        "verify": _Listed(
            "reporting",
            "Check a run that was made elsewhere: its plan, its records, and its scores from the recorded end states.",
        ),
        "export": _Listed("replaying", "Write the episodes of a run in the form of other programs."),
        "replay": _Listed(
            "recording", "Play a recording again: what a VNC server sent (FILE), or the episodes of a run (DIR)."
        ),
    },
    "Further": {
        "image": _Listed("image", "Build the images that `deskhand up --docker` starts, and check them."),
        "record": _Listed(
            "recording", "Record what a desktop shows, as GIF or MP4, or what a VNC server sends, with its times."
        ),
        "completion": _Listed("completing", "Print the script by which a shell completes what you type."),
    },
}
_HIDDEN = {"bench": "benchmark"}
_MODULES = {
    **{name: listed.module for section in _SECTIONS.values() for name, listed in section.items()},
    **_HIDDEN,
}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal asked this process to end. Like KeyboardInterrupt, it is not to be handled as an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Commands(click.Group):
    """Imports a command's module when the command is used: all of them together take longer than most commands."""

    verbose = False

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's own signature
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"deskhand.cli.{_MODULES[cmd_name]}")
        commands: tuple[click.Command, ...] = module.COMMANDS
        return next(command for command in commands if command.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, section in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, listed.about) for name, listed in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        listed = {name: each.about for section in _SECTIONS.values() for name, each in section.items()}
        names = [CompletionItem(name, help=listed[name]) for name in sorted(listed) if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


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
@quiet_option
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=lambda _ctx, _param, value: _be_verbose() if value else None,
    help="Print what is logged, and where in the code an error comes from.",
)
@click.version_option(__version__, prog_name="deskhand")
def commands() -> None:
    """Act on a Linux desktop, wait until the screen has answered, see what changed.

    `deskhand COMMAND --help` has a command's options and examples.
    """


def _be_verbose() -> None:
    import logging  # noqa: PLC0415 # for those who ask

    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
    # The command's context has gone when its error is printed.
    _Commands.verbose = True


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
        # An empty NO_COLOR means nothing (no-color.org). Where there is no terminal, click leaves colours out by itself.
        colour = False if os.environ.get("NO_COLOR") else None
        code = command.main(args=arguments, prog_name=name, standalone_mode=False, color=colour)
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
        if _Commands.verbose:
            import traceback  # noqa: PLC0415 # as for logging

            traceback.print_exc()
        click.echo("deskhand: " + clean(str(error), keep="\n"), err=True)
        return 1
    return code if isinstance(code, int) else 0


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything pressed is released; a second Ctrl-C must not cut that short."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise _Ended(number)
