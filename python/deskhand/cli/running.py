"""The command that runs another one: `shell`."""

from __future__ import annotations

import dataclasses
import sys

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import chosen, desktop_option, examples, json_option, millis, show_json, standard_input
from deskhand.launchers.targets import connect

# The exit codes of timeout(1) and shells.
_TIMED_OUT, _INTERRUPTED = 124, 130


@click.command(
    epilog=examples(
        "deskhand shell 'ls ~' -d box",
        "deskhand shell - -d box <script.sh        # which does not show in the list of processes",
        "deskhand shell --host 'xwininfo -root'    # on this machine, with your rights",
    )
)
@click.argument("command")
@desktop_option
@click.option("--host", is_flag=True, help="Run it on this machine, without any confinement.")
@click.option("--cwd", metavar="DIRECTORY", help="Its working directory; by default the home directory.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The time after which it is killed, with all that it has started.",
)
@json_option
def shell(*, command: str, desktop: str | None, host: bool, cwd: str | None, timeout: float, as_json: bool) -> int:
    """Run COMMAND, or standard input for `-`, with bash in the desktop's container.

    The exit code is the command's, and 124 at the timeout.
    """
    text = standard_input("the command") if command == "-" else command
    with connect(chosen(desktop)) as target:
        result = (target.host if host else target.machine).run(text, cwd=cwd, timeout=timeout)
    if as_json:
        data = dataclasses.asdict(result)
        seconds = data.pop("duration")
        show_json({**data, "duration_ms": millis(seconds)})
    else:
        for said, stream in ((result.stdout, sys.stdout), (result.stderr, sys.stderr)):
            # The output must not control this terminal; a file gets it unchanged.
            stream.write(clean(said, keep="\n\t") if stream.isatty() else said)
    if result.exit_code is None:
        return _TIMED_OUT if result.timed_out else _INTERRUPTED
    return result.exit_code


COMMANDS = (shell,)
