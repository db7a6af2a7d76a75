"""The commands that save what a VNC server sends, and play it back: `record replay`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskhand.backends.vnc_recording import PIXELS
from deskhand.backends.vnc_recording import record as record_rfb
from deskhand.backends.vnc_recording import replay as replay_rfb
from deskhand.backends.vnc_target import is_vnc, parse_target
from deskhand.cli.common import examples, file_to_write, json_option, millis, show_json, write_file

if TYPE_CHECKING:
    from deskhand.backends.vnc_recording import Decoded

__all__ = ["COMMANDS"]


def _vnc_target(_ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not is_vnc(value):
        # It is not repeated: whatever it was meant to be, it may hold a password.
        raise click.BadParameter("this is no VNC server: write vnc://host:1 or vnc+unix:///path", param=param)
    return value


@click.command(
    epilog=examples(
        "deskhand record --rfb vnc://host:1 -o session.rfb --seconds 10",
        "deskhand record --rfb vnc+unix:///run/desk.sock -o session.rfb      # until Ctrl-C",
        "deskhand record --rfb vnc://host:1 -o zrle.rfb --pixels zrle --pixels raw",
    )
)
@click.option("--rfb", "target", required=True, metavar="TARGET", callback=_vnc_target, help="The VNC server.")
@click.option("-o", "--output", required=True, metavar="FILE", callback=file_to_write, help="Where to.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long; by default until Ctrl-C.")
@click.option(
    "--pixels",
    multiple=True,
    type=click.Choice(list(PIXELS)),
    help="Ask for this encoding only, and no extension; again for another, the best first.",
)
@json_option
def record(*, target: str, output: str, seconds: float | None, pixels: tuple[str, ...], as_json: bool) -> None:
    """Save what a VNC server sends, with its times.

    Nothing of the login is saved, nothing is pressed, and its clipboard is not asked for. A server's password comes from
    DESKHAND_VNC_PASSWORD or DESKHAND_VNC_PASSWORD_FILE.
    """
    if output == "-":
        raise click.UsageError("a recording goes to a file: use -o FILE")
    stop = threading.Event()

    def let_in() -> None:
        # From now on there is something to save, so this is a good end, and not that of a command that was broken off.
        signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())

    decoded = record_rfb(
        parse_target(target), output, seconds=seconds, pixels=pixels or None, let_in=let_in, stopped=stop.is_set
    )
    ended = "; the server closed the connection" if decoded.closed else ""
    _report(decoded, output, {"closed": decoded.closed}, ended, as_json=as_json)


@click.command(
    epilog=examples(
        "deskhand replay session.rfb",
        "deskhand replay session.rfb -o last.png",
        "deskhand replay session.rfb --real-time --json",
    )
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--real-time", is_flag=True, help="As slowly as it came; else as fast as it can be decoded.")
@click.option("-o", "--output", metavar="FILE", callback=file_to_write, help="Save the last frame there, as PNG.")
@json_option
def replay(*, file: str, real_time: bool, output: str | None, as_json: bool) -> None:
    """Decode a recording again, without a server, and say what was in it and what decoding took."""
    if output == "-":
        raise click.UsageError("standard output has the answer; use -o FILE")
    decoded = replay_rfb(Path(file).read_bytes(), real_time=real_time)
    if output is not None:
        write_file(output, decoded.screen.png())
    more = {"decoding_ms": millis(decoded.decoding), "frame": output}
    _report(decoded, file, more, f"; decoded in {decoded.decoding * 1000:.1f} ms", as_json=as_json)


def _report(decoded: Decoded, file: str, more: dict[str, Any], end: str, *, as_json: bool) -> None:
    width, height = decoded.screen.size
    if as_json:
        data = {
            "file": file,
            "size": [width, height],
            "seconds": round(decoded.seconds, 6),
            "bytes": decoded.received,
            "updates": decoded.updates,
            "rectangles": decoded.rectangles,
        }
        show_json(data | more)
        return
    kinds = ", ".join(f"{count} {name}" for name, count in decoded.rectangles.items()) or "none"
    click.echo(
        f"{file}: {width}x{height}, {decoded.seconds:.1f} s, {decoded.received} bytes, {decoded.updates} updates; "
        f"rectangles: {kinds}{end}"
    )


COMMANDS = (record, replay)
