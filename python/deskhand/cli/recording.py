"""The commands that save what a screen shows or a VNC server sends, and play recordings back: `record replay`."""

from __future__ import annotations

import math
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean
from deskhand.backends.vnc.recording import PIXELS
from deskhand.backends.vnc.recording import record as record_rfb
from deskhand.backends.vnc.recording import replay as replay_rfb
from deskhand.backends.vnc.target import is_vnc, parse_target
from deskhand.cli.common import (
    chosen,
    examples,
    file_to_write,
    json_option,
    millis,
    names_that_begin,
    numbers,
    quiet_option,
    show_json,
    write_file,
)
from deskhand.cli.replaying import replay_run

if TYPE_CHECKING:
    from deskhand.backends.vnc.recording import Decoded


_LOOK = 0.1


def _vnc_target(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_vnc(value):
        # The value is not repeated, because it may hold a password.
        raise click.BadParameter("this is no VNC server: write vnc://host:1 or vnc+unix:///path", param=param)
    return value


@click.command(
    epilog=examples(
        "deskhand record -o demo.gif                    # the only desktop that runs, until Ctrl-C",
        "deskhand record work -o demo.mp4 --seconds 30  # needs ffmpeg",
        "deskhand record --rfb vnc://host:1 -o session.rfb --seconds 10",
        "deskhand record --rfb vnc+unix:///run/desk.sock -o session.rfb      # until Ctrl-C",
        "deskhand record --rfb vnc://host:1 -o zrle.rfb --pixels zrle --pixels raw",
    )
)
@click.argument("desktop", metavar="[NAME|TARGET]", required=False, shell_complete=names_that_begin)
@click.option("--rfb", "target", metavar="TARGET", callback=_vnc_target, help="A VNC server, whose bytes are saved.")
@click.option("-o", "--output", required=True, metavar="FILE", callback=file_to_write, help="Where to.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long; by default until Ctrl-C.")
@click.option(
    "--pixels",
    multiple=True,
    type=click.Choice(list(PIXELS)),
    help="--rfb: request this encoding only, and no extension; repeat it for more, the best first.",
)
@json_option
def record(
    *,
    desktop: str | None,
    target: str | None,
    output: str,
    seconds: float | None,
    pixels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Record what a desktop shows, as GIF or MP4, or what a VNC server sends, with its times.

    Without --rfb, FILE ends in .gif or .mp4. Only what changes makes frames, ten a second at most. Nothing is pressed.

    With --rfb, nothing of the login is saved, nothing is pressed, and the clipboard is not read. A server's password comes from
    DESKHAND_VNC_PASSWORD or DESKHAND_VNC_PASSWORD_FILE.
    """
    if output == "-":
        raise click.UsageError("a recording goes to a file: use -o FILE")
    if target is None:
        if pixels:
            raise click.UsageError("--pixels is for --rfb")
        _film(chosen(desktop), output, seconds, as_json=as_json)
        return
    if desktop is not None:
        raise click.UsageError("--rfb names the server: leave the desktop out")
    stop = threading.Event()

    def let_in() -> None:
        # From now on there is something to save, so Ctrl-C is a normal end and not a failure.
        signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())

    decoded = record_rfb(
        parse_target(target), output, seconds=seconds, pixels=pixels or None, let_in=let_in, stopped=stop.is_set
    )
    ended = "; the server closed the connection" if decoded.closed else ""
    _report(decoded, output, {"closed": decoded.closed}, ended, as_json=as_json)


def _film(target: str, output: str, seconds: float | None, *, as_json: bool) -> None:
    # The other commands need none of these.
    from deskhand.launchers.targets import connect  # noqa: PLC0415
    from deskhand.watch.recording import record as record_screen  # noqa: PLC0415

    # Not an Event, on which a handler may lock itself out. A signal just before a wait does not end it: each is short.
    over: list[int] = []
    end = math.inf if seconds is None else time.monotonic() + seconds
    with connect(target, view_only=True) as desktop, record_screen(desktop, output) as film:
        signal.signal(signal.SIGINT, lambda number, _frame: over.append(number))
        if not as_json:
            click.echo(f"Recording {clean(target)}; Ctrl-C ends it", err=True)
        while not over and (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK, left))
    if as_json:
        show_json({"file": output, "frames": film.frames})
    else:
        click.echo(f"{output}: {film.frames} frames")


@click.command(
    epilog=examples(
        "deskhand replay session.rfb",
        "deskhand replay session.rfb -o last.png",
        "deskhand replay session.rfb --real-time --json",
        "deskhand replay runs/gpt --backend docker --desktops 4 --out runs/gpt-again",
        "deskhand replay runs/gpt text-rename.s0.r0 --backend docker --mask 1180,0,100,24",
        "deskhand replay runs/mine --task ./my-task --backend local --host    # repeats what was recorded, on this machine",
    )
)
@click.argument("path", metavar="FILE|DIR", type=click.Path(exists=True))
@click.argument("episodes", metavar="[EPISODE...]", nargs=-1)
@click.option("--real-time", is_flag=True, help="FILE: as slowly as it came; else as fast as it can be decoded.")
@click.option("-o", "--output", metavar="FILE", callback=file_to_write, help="FILE: save the last frame there, as PNG.")
@click.option("--desktops", type=click.IntRange(1), default=1, show_default=True, help="DIR: episodes at once.")
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False), help="DIR: keep the replays, as a run of their own."
)
@click.option(
    "--mask",
    "masks",
    metavar="X,Y,W,H",
    multiple=True,
    type=numbers("X,Y,W,H", ",", 4),
    help="DIR: a region that is not compared, such as a clock; again for another.",
)
@click.option("--backend", help="DIR: where desktops run: docker, or local with --host. Required.")
@click.option("--image", help="DIR: the container image, instead of the tasks' own.")
@click.option(
    "--host",
    is_flag=True,
    help="DIR: with --backend local: repeat the recorded operations on this machine, with your rights.",
)
@click.option(
    "--task",
    "tasks",
    metavar="TASK",
    multiple=True,
    help="DIR: a task of the run that does not ship: its folder, or module:Class; again for another.",
)
@click.option("--state-only", is_flag=True, help="DIR: frames may differ; only how an episode ends is compared.")
@quiet_option
@json_option
def replay(
    *,
    path: str,
    episodes: tuple[str, ...],
    real_time: bool,
    output: str | None,
    desktops: int,
    out: str | None,
    masks: tuple[tuple[int, int, int, int], ...],
    backend: str | None,
    image: str | None,
    host: bool,
    tasks: tuple[str, ...],
    state_only: bool,
    as_json: bool,
) -> int:
    """Play a recording again: what a VNC server sent (FILE), or the episodes of a run (DIR).

    For a FILE it reports the content and the time of decoding, without a server. The episodes of a DIR are done again on fresh
    desktops, with the same tasks and seeds, and compared: how they end, and every frame on the way. The exit code is 1 when
    anything differs.

    A run is code: its commands, programs and keys are repeated. For a run of others use --backend docker. Nothing is done on
    this machine without --host, and only tasks that ship, or that --task names, are imported, whatever the run says.
    """
    if Path(path).is_dir():
        if real_time or output is not None:
            raise click.UsageError("--real-time and -o are for the recording of a VNC server, which is a file")
        return replay_run(
            path,
            episodes,
            desktops,
            out,
            masks,
            tasks=tasks,
            backend=backend,
            image=image,
            host=host,
            state_only=state_only,
            as_json=as_json,
        )
    if episodes or out is not None or masks or state_only or backend or image or host or tasks:
        raise click.UsageError(f"{path} is a file: episodes are in the directory of a run")
    _replay_file(path, output, real_time=real_time, as_json=as_json)
    return 0


def _replay_file(file: str, output: str | None, *, real_time: bool, as_json: bool) -> None:
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
            "skipped": {str(number): count for number, count in decoded.skipped.items()},
        }
        show_json(data | more)
        return
    kinds = ", ".join(f"{count} {name}" for name, count in decoded.rectangles.items()) or "none"
    skipped = "".join(f", {count} of {number} skipped" for number, count in decoded.skipped.items())
    click.echo(
        f"{file}: {width}x{height}, {decoded.seconds:.1f} s, {decoded.received} bytes, {decoded.updates} updates; "
        f"rectangles: {kinds}{skipped}{end}"
    )


COMMANDS = (record, replay)
