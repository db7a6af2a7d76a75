"""The commands that look and act: `screenshot do type key click windows`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import click

from deskhand._core.formats import Format
from deskhand._core.settle import Settle
from deskhand._core.sizes import MODELS
from deskhand.actions import BUTTONS, Action, KeyPress, Type
from deskhand.cli.common import (
    chosen,
    describe,
    desktop_option,
    examples,
    explain,
    file_to_write,
    json_option,
    numbers,
    place,
    report,
    show_json,
    standard_input,
    table,
    write_file,
)
from deskhand.errors import BackendError, DeskhandError
from deskhand.launchers.targets import connect
from deskhand.providers.clicks import a_click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.observation import Observation
    from deskhand._core.sizes import PictureSize
    from deskhand._core.window import Window

_F = TypeVar("_F", bound=Callable[..., Any])

_WINDOW_LIMIT = 5.0


def _frame_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == "-":
        raise click.BadParameter("standard output has the answer; only `deskhand screenshot` writes there", param=param)
    return file_to_write(ctx, param, value)


def _picture_size(value: object) -> PictureSize:
    """The type of `--size`: a picture's pixels, a factor, or a model's name."""
    text = str(value)
    if text in MODELS:
        return text
    try:
        return numbers("WxH", "x", 2, 1)(text) if "x" in text else float(text)  # type: ignore[return-value] # two numbers
    except (ValueError, click.BadParameter):
        raise click.BadParameter(f"{text!r} is not WxH, a factor or one of {', '.join(MODELS)}") from None


def _format(name: str | None, file: str) -> Format:
    """The requested format, else that of the file's ending, else PNG."""
    ending = Path(file).suffix.lower().removeprefix(".")
    wanted = name or {"jpg": "jpeg", "jpeg": "jpeg", "webp": "webp"}.get(ending, "png")
    return cast("Format", wanted)


_size_option = click.option(
    "--size",
    type=_picture_size,
    metavar="SIZE",
    help=f"Scale the picture: WxH, a factor, or the size that a model takes unscaled ({', '.join(MODELS)}).",
)


def _acting(command: _F) -> _F:
    """The options of every command that acts."""
    options = (
        desktop_option,
        click.option("-o", "--output", metavar="FILE", callback=_frame_file, help="Save the frame there, as PNG."),
        click.option(
            "--timeout",
            type=click.FloatRange(0, 3600),
            default=Settle().timeout,
            show_default=True,
            metavar="SECONDS",
            help="How long the screen may take to settle.",
        ),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def _act(
    actions: Sequence[Action],
    *,
    desktop: str | None,
    output: str | None,
    timeout: float,
    as_json: bool,
    text: Callable[[Observation], str] = describe,
    size: PictureSize | None = None,
    wait: bool = True,
) -> None:
    settle = Settle(timeout=timeout) if wait else False
    # A frame that is not saved need not be made smaller.
    form: Format = "raw" if output is None else "png"
    with connect(chosen(desktop)) as target:
        seen = target.perform(*actions, settle=settle, size=size, format=form)
    report(seen, file=output, as_json=as_json, text=text)


@click.command(
    epilog=examples(
        "deskhand screenshot",
        "deskhand screenshot -o - | pngcheck",
        "deskhand screenshot --region 0,0,400,300 --size 200x150 -o corner.png",
        "deskhand screenshot --size anthropic -o for-claude.png",
        "deskhand screenshot --quality 60 -o small.jpg",
        "deskhand screenshot --no-cursor --json",
    )
)
@desktop_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="screenshot.png",
    show_default=True,
    callback=file_to_write,
    help="The file to write; `-` is standard output.",
)
@click.option(
    "--region",
    type=numbers("X,Y,W,H", ",", 4),
    metavar="X,Y,W,H",
    help="Only this part of the screen, in screen pixels.",
)
@_size_option
@click.option(
    "--format",
    type=click.Choice(get_args(Format)),
    help="The file's format; by default that of its ending, else PNG.",
)
@click.option(
    "--quality",
    type=click.IntRange(1, 100),
    default=80,
    show_default=True,
    help="For jpeg and webp: the higher, the larger.",
)
@click.option("--cursor/--no-cursor", default=True, help="Whether the pointer is in the picture.")
@json_option
def screenshot(
    *,
    desktop: str | None,
    output: str,
    region: tuple[int, int, int, int] | None,
    size: PictureSize | None,
    format: str | None,
    quality: int,
    cursor: bool,
    as_json: bool,
) -> None:
    """Take a picture, without waiting for anything.

    It works while another program drives the desktop.
    """
    if output == "-" and as_json:
        raise click.UsageError("`-o -` and --json both want standard output")
    if output == "-" and sys.stdout.isatty():
        raise click.UsageError("a picture is not for a terminal: redirect standard output, or use -o FILE")
    with connect(chosen(desktop), view_only=True) as target:
        shot = target.screenshot(size, region, cursor=cursor, format=_format(format, output), quality=quality)
        screen = target.size
    if output == "-":
        sys.stdout.buffer.write(shot.data)
        return
    write_file(output, shot.data)
    if as_json:
        show_json(
            {
                "file": output,
                "format": shot.format,
                "bytes": len(shot.data),
                "size": list(shot.size),
                "screen": list(screen),
                "region": list(region) if region is not None else [0, 0, *screen],
                "cursor": list(shot.cursor),
            }
        )
    else:
        click.echo(f"{output}: {shot.size.width}x{shot.size.height}, {len(shot.data)} bytes")


def _parse_actions(text: str) -> list[Action]:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}", param_hint="ACTIONS") from error
    items = plain if isinstance(plain, list) else [plain]
    actions: list[Action] = []
    for index, item in enumerate(items):
        try:
            actions.append(Action.from_dict(item))
        except DeskhandError as error:
            kind = item.get("type") if isinstance(item, dict) else None
            raise error.note_progress(index, str(kind or "?"), 0) from None
    return actions


@click.command(
    "do",
    epilog=examples(
        """deskhand do '{"type": "left_mouse_click", "xy": [400, 300]}'""",
        """deskhand do '[{"type": "keypress", "keys": ["ctrl", "a"]}, {"type": "type", "text": "new"}]' -o after.png""",
        "deskhand do - --json <actions.json",
        "deskhand do '[]'                     # only wait for the screen, and look",
    ),
)
@click.argument("actions")
@_acting
@_size_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the screen to settle.")
def do(
    *,
    actions: str,
    desktop: str | None,
    output: str | None,
    timeout: float,
    as_json: bool,
    size: PictureSize | None,
    no_wait: bool,
) -> None:
    """Carry out ACTIONS and print what the screen answered.

    ACTIONS is a JSON action, or a list of them, in the form of `Action.to_dict`; `-` reads standard input. All are checked
    before the first one is sent. Keys and buttons left pressed are released when the command ends.
    """
    parsed = _parse_actions(standard_input("the JSON") if actions == "-" else actions)
    _act(
        parsed,
        desktop=desktop,
        output=output,
        timeout=timeout,
        as_json=as_json,
        text=explain,
        size=size,
        wait=not no_wait,
    )


@click.command(
    "type",
    epilog=examples(
        "deskhand type 'naïve ☕ text'",
        "printf 'two\\nlines' | deskhand type -",
        "deskhand type --paste - <long.txt",
        "deskhand type -- -v",
    ),
)
@click.argument("text")
@click.option(
    "--paste", is_flag=True, help="Use the clipboard instead of keys; it is empty when the command has ended."
)
@_acting
def type_(*, text: str, paste: bool, desktop: str | None, output: str | None, timeout: float, as_json: bool) -> None:
    """Type TEXT where the focus is, exactly: a newline is Return, a tab is Tab.

    `-` reads standard input, to its last newline; what is typed that way is not in the list of processes.
    """
    typed = Type(standard_input("the text") if text == "-" else text, paste=paste)
    _act([typed], desktop=desktop, output=output, timeout=timeout, as_json=as_json)


@click.command(
    epilog=examples(
        "deskhand key ctrl+s", "deskhand key ctrl+a Delete", "deskhand key Tab --repeat 3", "deskhand key plus"
    )
)
@click.argument("keys", nargs=-1, required=True)
@click.option("--repeat", type=click.IntRange(1, 100), default=1, help="How often each is pressed.")
@_acting
def key(
    *, keys: tuple[str, ...], repeat: int, desktop: str | None, output: str | None, timeout: float, as_json: bool
) -> None:
    """Press KEYS one after another; each is a key or a chord such as ctrl+shift+t."""
    presses = [KeyPress((chord,), repeat=repeat) for chord in keys]
    _act(presses, desktop=desktop, output=output, timeout=timeout, as_json=as_json)


@click.command(
    "click",
    epilog=examples(
        "deskhand click 400 300",
        "deskhand click 400 300 --count 2",
        "deskhand click 400 300 --button right -o menu.png",
        "deskhand click 400 300 --modifiers ctrl+shift",
    ),
)
@click.argument("x", type=int)
@click.argument("y", type=int)
@click.option("--button", type=click.Choice(BUTTONS), default="left", show_default=True)
@click.option("--count", type=click.IntRange(1, 3), default=1, show_default=True, help="2 is a double click.")
@click.option("--modifiers", multiple=True, metavar="KEYS", help="Held meanwhile, such as ctrl or ctrl+shift.")
@_acting
def click_(
    *,
    x: int,
    y: int,
    button: str,
    count: int,
    modifiers: tuple[str, ...],
    desktop: str | None,
    output: str | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Click on the pixel X Y of the screen, counted from 0 at the top left."""
    actions = [a_click(button, count, (x, y), modifiers=modifiers)]
    _act(actions, desktop=desktop, output=output, timeout=timeout, as_json=as_json)


def _window_id(value: object) -> int:
    try:
        return int(str(value), 0)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a window's id: use one of `deskhand windows`, such as 0x600003"
        ) from None


@click.command(
    epilog=examples(
        "deskhand windows",
        "deskhand windows --json",
        "deskhand windows --activate 0x600003",
        "deskhand windows --close 0x600003",
    )
)
@desktop_option
@click.option("--activate", type=_window_id, metavar="ID", help="First raise this window and give it the keyboard.")
@click.option("--close", "close", type=_window_id, metavar="ID", help="First ask this window to close.")
@json_option
def windows(*, desktop: str | None, activate: int | None, close: int | None, as_json: bool) -> None:
    """List the windows, bottom to top."""
    acts = activate is not None or close is not None
    with connect(chosen(desktop), view_only=not acts) as target:
        if activate is not None:
            target.windows.activate(activate, timeout=_WINDOW_LIMIT)
        if close is not None and not target.windows.close(close, timeout=_WINDOW_LIMIT):
            raise BackendError(f"window {close:#x} has not closed in {_WINDOW_LIMIT:g} s; it may be asking something")
        found = target.windows.list()
    if as_json:
        show_json([_window_data(window) for window in found])
    else:
        rows = [(f"{w.id:#x}", _state(w), w.class_name, w.title, place(w.rect)) for w in found]
        table(("id", "state", "class", "title", "place"), rows)


def _state(window: Window) -> str:
    return "active" if window.active else "minimized" if window.minimized else ""


def _window_data(window: Window) -> dict[str, Any]:
    return {
        "id": window.id,
        "active": window.active,
        "minimized": window.minimized,
        "class": window.class_name,
        "title": window.title,
        "pid": window.pid,
        "rect": list(window.rect),
    }


COMMANDS = (screenshot, do, type_, key, click_, windows)
