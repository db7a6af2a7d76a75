"""A painting program: a page with tools, colours and a canvas, and the canvas's pixels, read from outside.

It has no task.
"""

from __future__ import annotations

import base64
import io
import zlib
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from deskhand.actions import Drag, LeftClick
from deskhand.episodes.tasks.browser import Page, start_browser
from deskhand.episodes.tasks.suite._applications import prepare
from deskhand.episodes.tasks.suite._browsing import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from deskhand.episodes.tasks.context import TaskContext

COLOURS = {
    "black": (0, 0, 0),
    "red": (204, 30, 30),
    "orange": (235, 130, 20),
    "green": (30, 140, 60),
    "blue": (30, 80, 200),
    "purple": (130, 50, 160),
}
"""The colours, by name."""

WIDTH, HEIGHT = 1000, 540
_PNG_URL = "data:image/png;base64,"
"""Of the canvas, in pixels."""

STROKE = 5
"""The width of a line, in pixels."""

_TOOLS = ("pen", "line", "rectangle", "ellipse", "fill")
_STYLE = f"""
#sheet {{ position: relative; width: {WIDTH}px; height: {HEIGHT}px; border: 1px solid #7c8894; margin-top: 8px; }}
#sheet {{ background: #fff; }}
#sheet > * {{ position: absolute; left: 0; top: 0; }}
#paint {{ cursor: crosshair; touch-action: none; }}
h1 {{ margin: 0; font-size: 20px; }} body {{ margin: 10px 32px; }}
.swatch {{ width: 40px; height: 30px; padding: 0; border: 3px solid #fff; outline: 1px solid #7c8894; }}
button.on {{ outline: 3px solid #14539a; }}
#tools button {{ margin: 4px 8px 4px 0; }}
"""
_SCRIPT = """
const pad = paint.getContext("2d", { willReadFrequently: true });
let tool = "pen", colour = "black", start = null, before = null;
function choose(kind, name) {
  for (const button of document.querySelectorAll("[data-kind=" + kind + "]")) button.classList.toggle("on", button.id === name);
}
for (const button of document.querySelectorAll("[data-kind]")) button.onclick = () => {
  if (button.dataset.kind === "tool") tool = button.id; else colour = button.id;
  choose(button.dataset.kind, button.id);
};
clear_.onclick = () => pad.clearRect(0, 0, paint.width, paint.height);
function at(event) { return [Math.round(event.offsetX), Math.round(event.offsetY)]; }
function shape(from, to) {
  pad.strokeStyle = pad.fillStyle = "rgb(" + colours[colour] + ")";
  pad.lineWidth = STROKE; pad.lineCap = pad.lineJoin = "round";
  pad.beginPath();
  const [x, y] = from, width = to[0] - x, height = to[1] - y;
  if (tool === "rectangle") pad.rect(x, y, width, height);
  else if (tool === "ellipse") pad.ellipse(x + width / 2, y + height / 2, Math.abs(width / 2), Math.abs(height / 2), 0, 0, 7);
  else { pad.moveTo(x, y); pad.lineTo(...to); }
  if (filled.checked && (tool === "rectangle" || tool === "ellipse")) pad.fill();
  pad.stroke();
}
function pour(x, y) {
  const image = pad.getImageData(0, 0, paint.width, paint.height), data = new Uint32Array(image.data.buffer);
  const [r, g, b] = colours[colour], wanted = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  // A line's edge is half transparent: what is less than that is paper.
  const open = index => (data[index] >>> 24) < 128, waiting = [[x, y]];
  if (!open(y * paint.width + x)) return;
  while (waiting.length) {
    const [px, py] = waiting.pop();
    if (px < 0 || py < 0 || px >= paint.width || py >= paint.height || !open(py * paint.width + px)) continue;
    data[py * paint.width + px] = wanted;
    waiting.push([px - 1, py], [px + 1, py], [px, py - 1], [px, py + 1]);
  }
  pad.putImageData(image, 0, 0);
}
paint.onpointerdown = event => {
  if (event.button !== 0) return;
  if (tool === "fill") { pour(...at(event)); return; }
  paint.setPointerCapture(event.pointerId);
  start = at(event); before = pad.getImageData(0, 0, paint.width, paint.height);
  shape(start, start);
};
paint.onpointermove = event => {
  if (!start) return;
  if (tool !== "pen") { pad.putImageData(before, 0, 0); shape(start, at(event)); return; }
  for (const point of event.getCoalescedEvents().length ? event.getCoalescedEvents() : [event]) {
    const to = [Math.round(point.offsetX), Math.round(point.offsetY)];
    shape(start, to); start = to;
  }
};
paint.onpointerup = event => { if (start) paint.onpointermove(event); start = before = null; };
choose("tool", "pen"); choose("colour", "black");
""".replace("STROKE", str(STROKE))


def open_painting(context: TaskContext, template: str) -> None:
    """Show the program, with a template under the canvas that is not part of the painting.

    Args:
        context: The task's context.
        template: The content of an SVG of the canvas's size.
    """
    prepare(context)
    tools = "".join(f'<button id="{name}" data-kind=tool>{name.capitalize()}</button>' for name in _TOOLS)
    swatches = "".join(
        f'<button id="{name}" data-kind=colour class=swatch title="{name}" style="background: rgb{rgb}"></button>'
        for name, rgb in COLOURS.items()
    )
    body = (
        f"<h1>Paint</h1><div id=tools>{tools}<label class=beside><input type=checkbox id=filled> filled shapes</label>"
        f"{swatches}<button id=clear_>Clear all</button></div><div id=sheet>"
        f'<svg width="{WIDTH}" height="{HEIGHT}" font-size=15 font-family="DejaVu Sans">{template}</svg>'
        f'<canvas id=paint width="{WIDTH}" height="{HEIGHT}"></canvas></div>'
    )
    colours = f"const colours = { ({name: list(rgb) for name, rgb in COLOURS.items()})!r};\n"
    start_browser(context, {"": document("Paint", body, colours + _SCRIPT, _STYLE)})


def canvas(context: TaskContext) -> NDArray[np.uint8] | None:
    """The painting without its template: rows of red, green, blue and opacity; None if the page is gone or has no painting."""
    with Page(context) as page:
        if not page.is_open:
            return None
        url = page.evaluate("window.paint instanceof HTMLCanvasElement ? paint.toDataURL() : null")
    # The agent may have made the page say anything.
    if not isinstance(url, str) or not url.startswith(_PNG_URL):
        return None
    try:
        with Image.open(io.BytesIO(base64.b64decode(url.removeprefix(_PNG_URL))), formats=["PNG"]) as image:
            return np.asarray(image.convert("RGBA")) if image.size == (WIDTH, HEIGHT) else None
    except (ValueError, OSError, SyntaxError, zlib.error, Image.DecompressionBombError):
        return None


def is_colour(pixels: NDArray[np.uint8], colour: str) -> NDArray[np.bool_]:
    """Where a painting has a colour, almost opaque."""
    near = np.abs(pixels[..., :3].astype(int) - COLOURS[colour]).max(axis=-1) <= 40
    return np.asarray(near & (pixels[..., 3] > 128))


def pick(context: TaskContext, page: Page, *names: str) -> None:
    """Click on tools and colours."""
    for name in names:
        context.desktop.perform(LeftClick(page.centre(f"#{name}")))
        page.until(f"document.getElementById('{name}').matches('.on, :checked')")


def drag(context: TaskContext, page: Page, points: Sequence[tuple[int, int]]) -> None:
    """Drag over the canvas, through points on it."""
    left, top, _, _ = page.box("#paint")
    context.desktop.perform(Drag([(round(left) + x, round(top) + y) for x, y in points]))
