"""The command `bench`, which says where the benchmark is."""

from __future__ import annotations

import click


@click.command(hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1)
@click.pass_context
def bench(ctx: click.Context, arguments: tuple[str, ...]) -> None:  # noqa: ARG001 # those of the benchmark
    """Say where the benchmark is."""
    click.echo("deskhand: the benchmark is in the repository of deskhand: run `python -m bench` there", err=True)
    ctx.exit(2)


COMMANDS = (bench,)
