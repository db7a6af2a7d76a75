"""The commands that serve a desktop to programs of another protocol: `serve` and `mcp`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING, Any, Unpack

import click
from click.core import ParameterSource

from deskhand._core.extras import load
from deskhand.aio.desktop import AsyncDesktop
from deskhand.cli.common import chosen, desktop_option, examples, numbers
from deskhand.cli.guarding import guard_options, guarded, served_key
from deskhand.launchers.targets import connect, launch
from deskhand.launchers.targets import guarded as judge
from deskhand.watch.listening import WEB_SOCKETS, listening, refuse_plain, server_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from deskhand.desktop.desktop import Desktop
    from deskhand.watch.listening import UvicornOptions

_FILE = click.Path(exists=True, dir_okay=False)
# The module with the application of each protocol, the extra that it needs, and what is checked to be installed.
_PROTOCOLS = {
    "cua": ("deskhand.providers.cua.server", "cua", ("starlette.applications", "websockets")),
    "osworld": ("deskhand.providers.osworld.guest_server", "osworld", ("starlette.applications", "python_multipart")),
}


@click.command(
    epilog=examples(
        "deskhand serve                       # the only desktop that runs, at 127.0.0.1:8000, with a key that is printed",
        "deskhand serve -d work --port 0      # a port that is free, which is printed",
        "deskhand serve --policy observe,input,shell --audit audit.jsonl --ask terminal",
        "deskhand serve --protocol osworld --port 5000 --programs --policy all    # for OSWorld",
        "DESKHAND_API_KEY=... deskhand serve --host 0.0.0.0 --certificate server.pem --certificate-key server.key",
    )
)
@desktop_option
@click.option(
    "--protocol",
    type=click.Choice(sorted(_PROTOCOLS)),
    default="cua",
    show_default=True,
    help="The clients' protocol: Cua's computer-server, or OSWorld's guest server.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 for a free one."
)
@click.option(
    "--programs",
    is_flag=True,
    help="Let clients start programs on the desktop. Without --policy it also allows the class `shell`.",
)
@click.option("--certificate", type=_FILE, help="Serve with TLS: the certificate, PEM.")
@click.option("--certificate-key", type=_FILE, help="Its private key, PEM; where the certificate's file has none.")
@guard_options
def serve(
    *,
    desktop: str | None,
    protocol: str,
    host: str,
    port: int,
    programs: bool,
    certificate: str | None,
    certificate_key: str | None,
    policy: str,
    ask: str | None,
    audit: str | None,
) -> None:
    """Serve a desktop to clients of Cua's computer-server or of OSWorld, until Ctrl-C.

    Clients show a key: that in DESKHAND_API_KEY, or a new one, which is printed. Cua's send it as their API key, OSWorld's as
    the password in their address (vm_ip="osworld:KEY@127.0.0.1"). Their requests are judged by the policy; by default they may
    look and use pointer and keyboard.
    """
    refuse_plain(host, certificate, "the key and the screen")
    # Check everything that may be missing before taking the desktop.
    module, extra, needs = _PROTOCOLS[protocol]
    uvicorn = load("uvicorn", extra)
    for needed in needs:
        load(needed, extra)
    scheme = "http" if certificate is None else "https"
    with (
        guarded(_with_programs(policy) if programs else policy, ask, audit) as judged,
        connect(chosen(desktop), **judged) as target,
        _listening(target, host, port, "", scheme) as listener,
    ):
        # Its libraries come with an extra, and may be missing.
        server = importlib.import_module(module)
        served = server.application(AsyncDesktop(target), api_key=served_key(), programs=programs)
        ws = WEB_SOCKETS if protocol == "cua" else "none"
        asyncio.run(_serve(uvicorn, served, listener, ws=ws, ssl_certfile=certificate, ssl_keyfile=certificate_key))


@click.command(
    epilog=examples(
        "deskhand mcp                         # a desktop of its own, over standard input and output",
        "deskhand mcp --start mousepad        # with a program in it; --programs lets clients start more",
        "deskhand mcp -d work                 # the one that `deskhand up --name work` started",
        "deskhand mcp --docker --single       # in a container, and one tool, `computer`, for all actions",
        "deskhand mcp --http --port 8765      # streamable HTTP at http://127.0.0.1:8765/mcp, with a key that is printed",
        "deskhand mcp --policy observe --ask ./approve --audit audit.jsonl",
        """claude mcp add desktop -- deskhand mcp    # or, in a client's settings:""",
        """  {"mcpServers": {"desktop": {"command": "deskhand", "args": ["mcp"]}}}""",
    )
)
@desktop_option
@click.option(
    "--docker", is_flag=True, help="Where no desktop is named: one in a container instead of one of this machine."
)
@click.option("--size", type=numbers("WxH", "x", 2, 1), metavar="WxH", help="Width and height of the screenshots.")
@click.option(
    "--start",
    multiple=True,
    metavar="PROGRAM",
    help="Start a program before clients are served; may be given repeatedly.",
)
@click.option(
    "--programs",
    is_flag=True,
    help="Add a tool, `start`, by which clients start programs on the desktop. Without --policy it also allows the class "
    "`shell`.",
)
@click.option("--single", is_flag=True, help="One tool for all actions, instead of one for each.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP, to this machine only.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="With --http; 0: a free one."
)
@guard_options
def mcp(
    *,
    desktop: str | None,
    docker: bool,
    size: tuple[int, int] | None,
    start: tuple[str, ...],
    programs: bool,
    single: bool,
    http: bool,
    port: int,
    policy: str,
    ask: str | None,
    audit: str | None,
) -> None:
    """Serve a desktop to clients of the Model Context Protocol, until they leave or Ctrl-C.

    Without -d (or DESKHAND_DESKTOP) it starts a desktop, which ends with it. Requests of clients are judged by the policy; by
    default they may look and use pointer and keyboard. Over HTTP they send a key, as `Authorization: Bearer KEY`: that in
    DESKHAND_API_KEY, or a new one, which is printed.
    """
    from deskhand.providers.mcp import sdk, server  # noqa: PLC0415 # no other command needs it

    load("mcp.server.lowlevel", "mcp")
    with (
        guarded(_with_programs(policy) if programs else policy, ask, audit) as judged,
        connect(desktop) if desktop else launch("docker" if docker else "local") as target,
    ):
        # What the command line starts is not a client's request, which the policy would judge.
        for command in start:
            target.start(command)
        judge(target, **judged)
        made = server(AsyncDesktop(target), single=single, programs=programs, size=size)
        if not http:
            asyncio.run(sdk.serve_stdio(made))
            return
        uvicorn = load("uvicorn", "mcp")
        with _listening(target, "127.0.0.1", port, "/mcp", "http") as listener:
            used = listener.getsockname()[1]
            names = [f"{name}:{used}" for name in ("127.0.0.1", "localhost")]
            made_http = sdk.http_application(made, hosts=names, key=served_key())
            asyncio.run(_serve(uvicorn, made_http, listener, ws="none"))


@contextlib.contextmanager
def _listening(target: Desktop, host: str, port: int, path: str, scheme: str) -> Iterator[socket.socket]:
    """Listen at a socket, and print its address."""
    with listening(host, port) as listener:
        address, used = listener.getsockname()[:2]
        click.echo(f"Serving {target.name or repr(target)} at {scheme}://{address}:{used}{path}")
        yield listener


async def _serve(uvicorn: Any, served: object, listener: socket.socket, **options: Unpack[UvicornOptions]) -> None:
    await server_of(uvicorn, served, **options).serve(sockets=[listener])


def _with_programs(policy: str) -> str:
    """The default policy with the class `shell`. A policy that was chosen says itself whether programs may be started."""
    source = click.get_current_context().get_parameter_source("policy")
    return f"{policy},shell" if source is ParameterSource.DEFAULT else policy


COMMANDS = (serve, mcp)
