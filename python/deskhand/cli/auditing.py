"""The command that reads audit logs: `audit verify`.

What must never appear here: the form of a record (see `deskhand.policy.audit`).
"""

from __future__ import annotations

import re

import click

from deskhand.cli.common import examples, json_option, show_json
from deskhand.policy.audit import verify as verify_log

_HASH = re.compile(r"[0-9a-f]{64}")


def _hash(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _HASH.fullmatch(value):
        raise click.BadParameter("it has 64 hexadecimal digits", param=param)
    return value


@click.group(epilog=examples("deskhand audit verify audit.jsonl"))
def audit() -> None:
    """Read the logs of a policy's decisions."""


@audit.command(
    epilog=examples(
        "deskhand audit verify audit.jsonl",
        "deskhand audit verify audit.jsonl --head $(cat head.kept-elsewhere)",
    )
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--head", metavar="HASH", callback=_hash, help="A hash that was kept: it must be that of a record.")
@json_option
def verify(*, file: str, head: str | None, as_json: bool) -> int:
    """Follow the chain of hashes, and name the first record that was changed.

    A file that ends within a record is intact up to there: the machine went down, or the file is being written. A part that
    was cut off after a complete record is only found with --head. The exit code is 1 when the chain is broken.
    """
    found = verify_log(file, head=head)
    if as_json:
        show_json(
            {
                "file": file,
                "whole": found.broken is None,
                "records": found.records,
                "head": found.head,
                "broken": found.broken,
                "reason": found.reason,
                "torn": found.torn,
            }
        )
    elif found.broken is not None:
        click.echo(
            f"{file}: broken at line {found.broken}: {found.reason}; {found.records} records before it are intact"
        )
    else:
        torn = "; the last line is incomplete" if found.torn else ""
        click.echo(f"{file}: {found.records} records, intact{torn}; head {found.head}")
    return 1 if found.broken is not None else 0


COMMANDS = (audit,)
