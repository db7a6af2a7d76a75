"""The command `watch`: a live page of desktops that run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from deskhand._core.extras import load
from deskhand._core.redaction import clean
from deskhand.cli.common import chosen, examples
from deskhand.errors import ActionError, ConnectFailed, EpisodeError
from deskhand.launchers import registry
from deskhand.launchers.targets import connect
from deskhand.watch.listening import listening, names_of, refuse_plain, server_of
from deskhand.watch.server import EXTRA, application
from deskhand.watch.serving import WEB_OPTIONS

if TYPE_CHECKING:
    import socket

    from deskhand.desktop.desktop import Desktop
    from deskhand.watch.grants import Scope
    from deskhand.watch.listening import UvicornOptions
    from deskhand.watch.server import Application

_FILE = click.Path(exists=True, dir_okay=False)
_MOST_LINKS = 20
_MOST_NAMED = 10


@click.command(
    epilog=examples(
        "deskhand watch                       # the only desktop that runs; prints a link that works once",
        "deskhand watch work --control        # take control on the page, where no other driver acts",
        "deskhand watch x11::1                # any display, or vnc://host:1",
        "deskhand watch --all --links 2       # all desktops that run, for two people",
        "deskhand watch ./trace               # play what was recorded there: a run, or DESKHAND_TRACE",
        "deskhand watch work --host 0.0.0.0 --certificate server.pem --certificate-key server.key",
    )
)
@click.argument("desktops", metavar="[NAME|TARGET|DIR]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All desktops of `deskhand ls`.")
@click.option("--control", is_flag=True, help="Links are for taking control too.")
@click.option(
    "--links", type=click.IntRange(1, _MOST_LINKS), default=1, show_default=True, help="How many links to print."
)
@click.option(
    "--hours",
    type=click.FloatRange(0.01, 8760),
    default=12.0,
    show_default=True,
    help="How long a link's access lasts.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; 0, the default, for a free one.")
@click.option(
    "--name", "names", multiple=True, help="A name of this server beside those of loopback and the certificate."
)
@click.option("--certificate", type=_FILE, help="Serve with TLS: the certificate, PEM.")
@click.option("--certificate-key", type=_FILE, help="Its private key, PEM; where the certificate's file has none.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def watch(
    *,
    desktops: tuple[str, ...],
    everything: bool,
    control: bool,
    links: int,
    hours: float,
    host: str,
    port: int,
    names: tuple[str, ...],
    certificate: str | None,
    certificate_key: str | None,
    no_open: bool,
) -> None:
    """Serve a live page of desktops, until Ctrl-C.

    It prints a link that works once, for ten minutes, and opens it in a browser where there is one. The agents of these
    desktops run in other processes: their pictures are shown, and with --control a person acts where no other driver does.

    With DIR, the directory of a run or of a trace (DESKHAND_TRACE), it plays the episode that began last, or those that are
    named after it: it writes a page of each into DIR, which works offline, and opens the only one.
    """
    if desktops and _is_recording(desktops[0]):
        if everything or control:
            raise click.UsageError(f"{clean(desktops[0])} is a recording: leave out --all and --control")
        _play(Path(desktops[0]), desktops[1:], opens=not no_open)
        return
    refuse_plain(host, certificate, "the link and the screen")
    # Check everything that may be missing before connecting.
    uvicorn = load("uvicorn", EXTRA)
    load("starlette.applications", EXTRA)
    load("websockets", EXTRA)
    known = (*names, *(() if certificate is None else names_of(certificate)))
    scopes: tuple[Scope, ...] = ("watch", "control") if control else ("watch",)
    with contextlib.ExitStack() as held:
        targets = _targets(desktops, everything=everything)
        opened = {target: held.enter_context(_connected(target, control=control)) for target in targets}
        listener = held.enter_context(listening(host, port))
        made = application(opened, hosts=known, agent=False)
        held.callback(made.close)
        address, used = listener.getsockname()[:2]
        scheme = "http" if certificate is None else "https"
        shown = next(iter(known), f"[{address}]" if ":" in address else address)
        url = f"{scheme}://{shown}:{used}/"
        click.echo(f"Serving {clean(', '.join(opened))} at {url}")
        printed = [
            made.link(url, *scopes, name=f"viewer {number}", lifetime=hours * 3600) for number in range(1, links + 1)
        ]
        for link in printed:
            click.echo(f"Open within 10 minutes, once: {link}")
        if not no_open and links == 1 and sys.stdout.isatty():
            webbrowser.open(printed[0])
        options: UvicornOptions = {**WEB_OPTIONS, "ssl_certfile": certificate, "ssl_keyfile": certificate_key}
        asyncio.run(_serve(uvicorn, made, listener, **options))


async def _serve(uvicorn: Any, made: Application, listener: socket.socket, **options: Unpack[UvicornOptions]) -> None:
    await server_of(uvicorn, made, **options).serve(sockets=[listener])


def _is_recording(name: str) -> bool:
    # The name of a desktop that runs comes first; `./NAME` is always a directory.
    return os.path.isfile(Path(name) / "manifest.json") and not any(name == entry.name for entry in registry.entries())  # noqa: PTH113 # False for a name that is too long, too


def _play(directory: Path, episodes: tuple[str, ...], *, opens: bool) -> None:
    # A live page needs none of this.
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415
    from deskhand.episodes.report.player import write_playback  # noqa: PLC0415

    names = list(dict.fromkeys(episodes))
    if not names:
        with open_run(directory) as run:
            begun = {each.key: each.directory.stat().st_ctime for each in run.recordings()}
        if not begun:
            raise EpisodeError(f"nothing is recorded in {directory} yet")
        names = [max(begun, key=lambda name: begun[name])]
        if len(begun) > 1:
            others = sorted(set(begun) - set(names))
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            click.echo(f"Name others to play them: {clean(', '.join(others[:_MOST_NAMED]))}{more}", err=True)
    pages = [write_playback(directory, name, directory / f"{name}.html") for name in names]
    for page in pages:
        click.echo(clean(str(page)))
    if opens and len(pages) == 1 and sys.stdout.isatty():
        webbrowser.open(pages[0].resolve().as_uri())


def _targets(desktops: tuple[str, ...], *, everything: bool) -> list[str]:
    if everything and desktops:
        raise ActionError("--all is every desktop that runs: leave the names out, or --all")
    if not everything:
        return list(dict.fromkeys(desktops)) or [chosen(None)]
    if not (names := [entry.name for entry in registry.entries()]):
        raise ActionError("no desktop runs: start one with `deskhand up`, or name a display, as in x11::99")
    return names


def _connected(target: str, *, control: bool) -> Desktop:
    """Connect only to look, or also to act, if no other driver does."""
    if control:
        try:
            return connect(target)
        except ConnectFailed as error:
            if "driver" not in str(error):
                raise
            click.echo(f"{clean(target)} can only be watched: {clean(str(error))}", err=True)
    return connect(target, view_only=True)


COMMANDS = (watch,)
