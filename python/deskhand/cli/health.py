"""The command that checks the machine: `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import desktop_option, examples, json_option, show_json
from deskhand.cli.doctor import Check, State, examine
from deskhand.cli.doctor_facts import System, Target
from deskhand.errors import ActionError, DeskhandError
from deskhand.launchers import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red"}


@click.command(epilog=examples("deskhand doctor", "deskhand doctor -d x11::99", "deskhand doctor --json"))
@desktop_option
@json_option
@click.option("--fix-nothing", is_flag=True, help="Change nothing. This is what doctor always does.")
@click.pass_context
def doctor(ctx: click.Context, *, desktop: str | None, as_json: bool, fix_nothing: bool) -> None:  # noqa: ARG001
    """Check this machine, and the chosen desktop if there is one, and say how to mend what is wrong.

    It changes nothing. The exit code is 1 when a check fails; a warning is not a failure.
    """
    checks = examine(System(), _target(desktop))
    failed = any(check.state is State.FAIL for check in checks)
    if as_json:
        data = [{"name": c.name, "state": str(c.state), "detail": c.detail, "fix": c.fix} for c in checks]
        show_json({"ok": not failed, "checks": data})
    else:
        _show(checks)
    if failed:
        ctx.exit(1)


def _target(desktop: str | None) -> Target | None:
    """The display of the chosen desktop; without a choice, that of the only one."""
    if desktop is None:
        try:
            entries = registry.entries()
        except DeskhandError:
            # Without a runtime directory, another check reports that.
            return None
        return Target(entries[0].display, entries[0].xauthority) if len(entries) == 1 else None
    if desktop.startswith("x11:"):
        return Target(desktop.removeprefix("x11:").removeprefix("//"), None)
    entry = registry.find(registry.check_name(desktop))
    if entry is None:
        running = ", ".join(e.name for e in registry.entries()) or "none"
        raise ActionError(f"no desktop named {desktop!r} runs; running: {running}")
    return Target(entry.display, entry.xauthority)


def _show(checks: Sequence[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        state = click.style(f"{check.state:<4}", fg=_COLOURS[check.state])
        click.echo(f"{state}  {check.name:<{width}}  {clean(check.detail)}")
        if check.fix:
            click.echo(f"      {'':<{width}}  to mend it: {clean(check.fix)}")


COMMANDS = (doctor,)
