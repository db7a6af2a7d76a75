"""The commands for images of containers: `image build`, `image check`."""

from __future__ import annotations

import time

import click

from deskhand.cli.common import examples, is_quiet, json_option, quiet_option, show_json, table
from deskhand.launchers.docker.confinement import STAGES
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.images import build_image, check_image

_FAILED = 1


@click.group(epilog=examples("deskhand image build", "deskhand image build desktop", "deskhand image check"))
def image() -> None:
    """Build the images that `deskhand up --docker` starts, and check them."""


@image.command(epilog=examples("deskhand image build", "deskhand image build desktop"))
@click.argument("stage", type=click.Choice(STAGES), default="minimal")
@quiet_option
@json_option
def build(*, stage: str, as_json: bool) -> None:
    """Build an image; a part that is built already is not built again.

    `minimal` has a window manager and a terminal, `desktop` a panel, editors, a file manager, a browser and an office,
    `osworld` besides these what OSWorld's tasks name.
    """
    begun = time.monotonic()

    quiet = is_quiet()

    def tell(line: str) -> None:
        if not quiet:
            click.echo(f"{time.monotonic() - begun:6.1f} s  {line}", err=True)

    name = build_image(stage, tell=tell)
    if as_json:
        show_json({"image": name, "seconds": round(time.monotonic() - begun, 1)})
        return
    click.echo(f"{name} is there after {time.monotonic() - begun:.1f} s: deskhand up --docker --image {name}")


@image.command(
    epilog=examples("deskhand image check", "deskhand image check my/desktop", "deskhand image check --against my/last")
)
@click.argument("name", default=DEFAULT_IMAGE)
@click.option("--against", metavar="IMAGE", help="Name every package that differs from this image.")
@json_option
def check(*, name: str, against: str | None, as_json: bool) -> None:
    """Start a desktop from an image and check that nothing in it has more rights than intended."""
    findings = check_image(name, against=against)
    if as_json:
        show_json([{"name": f.name, "ok": f.ok, "found": f.found} for f in findings])
    else:
        table(("", "check", "found"), [("ok" if f.ok else "FAILED", f.name, f.found) for f in findings])
    if not all(f.ok for f in findings):
        raise click.exceptions.Exit(_FAILED)


COMMANDS = (image,)
