"""The commands for whole desktops: `up ls down start`."""

from __future__ import annotations

import functools
import os
import shlex
import time
from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean
from deskhand.backends.x11.backend import glance
from deskhand.cli.common import (
    chosen,
    desktop_option,
    examples,
    json_option,
    names_that_begin,
    numbers,
    place,
    show_json,
    table,
)
from deskhand.cli.ending import end
from deskhand.errors import ActionError, BackendError, LaunchFailed, MissingExtra
from deskhand.launchers import registry
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE, DisplaySlot
from deskhand.launchers.local.launch import launch_local, leave_running
from deskhand.launchers.targets import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.geometry import Size
    from deskhand.desktop.desktop import Desktop

_NAME_ATTEMPTS = 5
# A server that is silent for this long is listed as one that does not answer.
_SILENCE_LIMIT = 1.0


@click.command(
    epilog=examples(
        "deskhand up",
        "deskhand up --name big --size 1920x1080",
        'eval "$(deskhand up)"                # and join it: DISPLAY and XAUTHORITY are set for any X client',
        "deskhand up --home mine              # with your settings, files and keys",
        "deskhand up --docker                 # in a container without network or rights",
        "deskhand up --docker --network example.org --network '*.debian.org:443'   # that reaches these hosts only",
        "deskhand up --json",
    )
)
@click.option("--name", help="How to call it; by default `desktop`, `desktop-2`, ...")
@click.option("--size", type=numbers("WxH", "x", 2, 1), metavar="WxH", default="1280x800", show_default=True)
@click.option("--docker", is_flag=True, help="In a container; `deskhand image build` makes its image.")
@click.option("--image", help=f"The container's image; {DEFAULT_IMAGE} if not given.")
@click.option(
    "--network",
    multiple=True,
    metavar="none|bridge|HOST",
    help="What the container reaches: nothing, all that this machine reaches, or a host (`example.org`, `*.example.org:443`), "
    "repeatable; none if not given.",
)
@click.option(
    "--home",
    metavar="mine|DIRECTORY",
    help="The home directory of its programs: your own, or a copy of this one; a new and empty one if not given.",
)
@click.option("--vnc", is_flag=True, help="Serve VNC too, at a Unix socket in the container's directory.")
@click.option(
    "--remote/--no-remote",
    default=None,
    help="The engine is on another machine, or not; by default it is where DOCKER_HOST or the context is ssh:// or tcp://.",
)
@json_option
def up(
    *,
    name: str | None,
    size: tuple[int, int],
    docker: bool,
    image: str | None,
    network: tuple[str, ...],
    home: str | None,
    vnc: bool,
    remote: bool | None,
    as_json: bool,
) -> None:
    """Start a desktop that stays until `deskhand down`."""
    begun = time.monotonic()
    if not docker and (image or network or vnc or remote is not None):
        raise click.UsageError("--image, --network, --vnc and --remote are for containers: add --docker")
    if docker and home is not None:
        raise click.UsageError("a container's home is its own: leave --home out")
    whole = not network or network in {("none",), ("bridge",)}
    reached = "".join(network) or "none" if whole else network
    options: dict[str, Any] = {"image": image or DEFAULT_IMAGE, "network": reached, "vnc": vnc, "remote": remote}
    here: dict[str, Any] = {"home": True if home is None else False if home == "mine" else home}
    if docker:
        from deskhand.launchers.docker.launch import launch_docker  # noqa: PLC0415 # containers take half of a start

        start_one = functools.partial(launch_docker, **options)
    else:
        start_one = functools.partial(launch_local, **here)
    desktop = _launch(start_one, name, size)
    try:
        entry = leave_running(desktop)
    except BaseException:
        desktop.close()
        raise
    if as_json:
        data = {
            "name": entry.name,
            "display": entry.display,
            "xauthority": entry.xauthority,
            "size": list(size),
            "pid": entry.pid,
            "directory": entry.directory,
            "container": entry.container,
            "seconds": round(time.monotonic() - begun, 3),
        }
        show_json(data)
        return
    where = entry.display or f"docker://{entry.name}"
    click.echo(f"# {entry.name} is up: {size[0]}x{size[1]} on {where}. End it with: deskhand down {entry.name}")
    if not entry.display:
        # On another machine: no X client of this one can join.
        click.echo(f"export DESKHAND_DESKTOP={entry.name}")
        return
    click.echo(f"export DISPLAY={entry.display} XAUTHORITY={shlex.quote(entry.xauthority)}")


def _launch(start_one: Callable[..., Desktop], name: str | None, size: tuple[int, int]) -> Desktop:
    for _ in range(_NAME_ATTEMPTS):
        candidate = name if name is not None else registry.free_name()
        # Before a launch, not after it: a taken name is the likeliest mistake.
        if name is not None and registry.find(registry.check_name(name)) is not None:
            raise ActionError(
                f"there is a desktop named {name!r} already; choose another name, or `deskhand down {name}`"
            )
        try:
            return start_one(size=size, name=candidate)
        except ActionError:
            # Another launch at the same moment got the same name.
            if name is not None or registry.find(candidate) is None:
                raise
    raise ActionError("every free name was taken while this desktop started: choose one with --name")


@click.command(epilog=examples("deskhand ls", "deskhand ls --json"))
@json_option
def ls(*, as_json: bool) -> None:
    """List the desktops that run."""
    found = [(entry, _glance(entry)) for entry in registry.entries()]
    now = time.time()
    if as_json:
        show_json([_entry_data(entry, seen, now) for entry, seen in found])
        return
    rows = [
        (
            entry.name,
            f"docker://{entry.name}" if entry.container else entry.display,
            f"{seen[0].width}x{seen[0].height}" if seen is not None else "?",
            _age(now - entry.created),
            "does not answer" if seen is None else seen[1] or "none",
        )
        for entry, seen in found
    ]
    if rows:
        table(("name", "display", "size", "age", "driven by"), rows)
    else:
        click.echo("no desktop runs: start one with `deskhand up`", err=True)


def _glance(entry: registry.Entry) -> tuple[Size, str | None] | None:
    if not entry.display:
        return _glance_remote(entry)
    try:
        return glance(entry.display, entry.xauthority, _SILENCE_LIMIT)
    except BackendError:
        return None


def _glance_remote(entry: registry.Entry) -> tuple[Size, str | None] | None:
    from deskhand.launchers.docker.container import Container  # noqa: PLC0415 # containers take half of a start
    from deskhand.launchers.docker.engine import connect_engine  # noqa: PLC0415
    from deskhand.launchers.docker.over_vnc import glance_remote  # noqa: PLC0415

    try:
        engine = connect_engine(environment=entry.engine)
    except (LaunchFailed, MissingExtra):
        return None
    try:
        size = glance_remote(Container(engine, entry.container, entry.name, DisplaySlot(None)), _SILENCE_LIMIT)
    except BackendError:
        return None
    finally:
        engine.close()
    # Over VNC the name of a driver is unknown.
    return None if size is None else (size, "?")


def _entry_data(entry: registry.Entry, seen: tuple[Size, str | None] | None, now: float) -> dict[str, Any]:
    return {
        "name": entry.name,
        "display": entry.display,
        "xauthority": entry.xauthority,
        "size": list(seen[0]) if seen is not None else None,
        "age_seconds": round(max(0.0, now - entry.created), 1),
        "answers": seen is not None,
        "driver": seen[1] if seen is not None and entry.display else None,
        "stays": bool(entry.socket),
        "pid": entry.pid,
        "directory": entry.directory,
        "container": entry.container,
    }


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


@click.command(epilog=examples("deskhand down", "deskhand down big", "deskhand down --all"))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=names_that_begin)
@click.option("--all", "every", is_flag=True, help="All that `deskhand up` started.")
@json_option
def down(*, names: tuple[str, ...], every: bool, as_json: bool) -> None:
    """End desktops, and return when nothing of them is left.

    Without a NAME: the one that DESKHAND_DESKTOP names, or the only one. A desktop that belongs to a program that runs ends
    with that program; here it is ended only when it is named.
    """
    if names and every:
        raise click.UsageError("either names or --all")
    if every:
        listed = registry.entries()
        entries = [entry for entry in listed if entry.socket]
        for entry in listed:
            if not entry.socket:
                click.echo(
                    f"{entry.name} belongs to a program that runs; `deskhand down {entry.name}` ends it", err=True
                )
    else:
        wanted = names or (chosen(os.environ.get("DESKHAND_DESKTOP") or None),)
        # All are looked up before any is ended, and each is ended once.
        entries = [_known(name) for name in dict.fromkeys(wanted)]
    for entry in entries:
        end(entry)
        if not as_json:
            click.echo(f"{entry.name} is down")
    if as_json:
        show_json([entry.name for entry in entries])


def _known(name: str) -> registry.Entry:
    if ":" in name:
        raise ActionError(f"{name!r} was not started by `deskhand up`: end it where it was started")
    entry = registry.find(registry.check_name(name))
    if entry is None:
        running = ", ".join(e.name for e in registry.entries()) or "none"
        raise ActionError(f"no desktop named {name!r} runs; running: {running}")
    return entry


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "deskhand start mousepad",
        "deskhand start xterm -geometry 100x30 -e htop",
        "deskhand start -d big chromium --no-first-run",
    ),
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@desktop_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long its window may take to come up.",
)
@json_option
def start(*, command: tuple[str, ...], desktop: str | None, timeout: float, as_json: bool) -> None:
    """Start a program and return when its window is up; it stays until it ends, or the desktop does.

    Options of `start` itself come before COMMAND. The words are taken as they are: no shell runs.
    """
    name = _name_of(chosen(desktop))
    begun = time.monotonic()
    with connect(name) as target:
        program = target.start(list(command), timeout=timeout)
    seconds = time.monotonic() - begun
    window = program.window
    if as_json:
        shown = None
        if window is not None:
            shown = {"id": window.id, "class": window.class_name, "title": window.title, "rect": list(window.rect)}
        data = {"pid": program.pid, "log": str(program.log), "window": shown, "seconds": round(seconds, 3)}
        show_json(data)
        return
    what = f"window {window.id:#x} {clean(window.title)!r}, {place(window.rect)}" if window is not None else "no window"
    click.echo(f"{command[0]}: process {program.pid}, {what}, {seconds * 1000:.0f} ms; its output: {program.log}")


def _name_of(desktop: str) -> str:
    """The name under which a display was launched: only there, a guard keeps the program after this command has ended."""
    if not desktop.startswith("x11:"):
        return desktop
    display = desktop.removeprefix("x11:").removeprefix("//")
    for entry in registry.entries():
        if entry.display == display:
            return entry.name
    raise ActionError(
        f"{desktop} was not started by `deskhand up`, so nothing would keep the program: start it with DISPLAY={display}"
    )


COMMANDS = (up, ls, down, start)
