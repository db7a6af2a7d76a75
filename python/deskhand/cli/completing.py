"""The command that prints the scripts by which shells complete: `completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from deskhand.cli.common import examples

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_DESKHAND_COMPLETE"


@click.command(
    epilog=examples(
        "deskhand completion fish > ~/.config/fish/completions/deskhand.fish",
        'eval "$(deskhand completion bash)"                    # in ~/.bashrc',
        'eval "$(deskhand completion zsh)"                     # in ~/.zshrc, after compinit',
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the script by which a shell completes what you type.

    It completes commands, options, and the names of desktops that run.
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101 # click has these three
    click.echo(kind(ctx.find_root().command, {}, "deskhand", _VARIABLE).source())


COMMANDS = (completion,)
"""The commands of this module."""
