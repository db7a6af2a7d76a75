"""What a run leaves behind: a table on the terminal, a contact sheet, and one page that needs nothing but a browser."""

from __future__ import annotations

import html
import io
import math
from dataclasses import dataclass, fields
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont
from rich.table import Table

from deskhand import Elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recorder import Check, Step
    from rich.console import Console

__all__ = ["Run", "contact_sheet", "page", "show"]

_PARTS = tuple(part.name for part in fields(Elapsed))
_COLUMNS = 4
_THUMBNAIL = 400
_CAPTION = 30
_MARGIN = 14
_BACK, _FRONT, _DIM, _MARK = "#17202a", "#f2f5f7", "#9fb0bd", "#ff3d7f"


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        steps: What was done.
        checks: What was checked.
        seconds: How long it took, from no desktop to no desktop.
        about: The machine and the versions, a phrase each.
        error: What ended it early; empty when nothing did.
    """

    steps: Sequence[Step]
    checks: Sequence[Check]
    seconds: float
    about: Sequence[str]
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it went through and every check held."""
        return not self.error and bool(self.checks) and all(check.ok for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        held = sum(check.ok for check in self.checks)
        ended = f"; ended early: {self.error}" if self.error else ""
        return f"{held} of {len(self.checks)} checks held, {len(self.steps)} steps in {self.seconds:.1f} s{ended}"


def show(run: Run, console: Console) -> None:
    """Print the times of every step, the checks and the verdict."""
    table = Table(title="What each step took, in ms", title_justify="left", header_style="bold")
    table.add_column("", justify="right", style="dim")
    table.add_column("step")
    for name in (*_PARTS, "wall"):
        table.add_column(name, justify="right")
    table.add_column("reason")
    table.add_column("rects", justify="right")
    table.add_column("png kB", justify="right")
    for step in run.steps:
        seen = step.seen
        times = [_ms(getattr(seen.elapsed, part)) for part in _PARTS]
        reason = seen.reason.value if seen.settled else f"[yellow]{seen.reason.value}[/]"
        size = f"{len(seen.png) / 1000:.0f}"
        table.add_row(str(step.number), step.title, *times, _ms(step.wall), reason, str(len(seen.rects)), size)
    console.print(table)
    for check in run.checks:
        console.print("[green]ok[/]     " if check.ok else "[bold red]FAILED[/] ", end="")
        console.print(check.title, markup=False)
    console.print(run.verdict, style="bold green" if run.ok else "bold red", markup=False)


def contact_sheet(run: Run) -> Image.Image:
    """All frames in a grid, what changed outlined. Captions are ASCII, so that any font has them."""
    frames = [Image.open(io.BytesIO(step.seen.png)) for step in run.steps]
    scale = _THUMBNAIL / max(frame.width for frame in frames)
    height = round(scale * max(frame.height for frame in frames))
    cell = (_THUMBNAIL + _MARGIN, height + _CAPTION + _MARGIN)
    rows = math.ceil(len(frames) / _COLUMNS)
    sheet = Image.new("RGB", (_COLUMNS * cell[0] + _MARGIN, rows * cell[1] + _MARGIN), _BACK)
    draw = ImageDraw.Draw(sheet)
    font, small = ImageFont.load_default(15), ImageFont.load_default(12)
    for index, (step, frame) in enumerate(zip(run.steps, frames, strict=True)):
        x = _MARGIN + index % _COLUMNS * cell[0]
        y = _MARGIN + index // _COLUMNS * cell[1]
        thumbnail = frame.resize((round(frame.width * scale), round(frame.height * scale)), Image.Resampling.LANCZOS)
        sheet.paste(thumbnail, (x, y))
        for rect in step.seen.rects:
            box = [x + rect.x * scale, y + rect.y * scale, x + rect.right * scale, y + rect.bottom * scale]
            draw.rectangle([round(edge) for edge in box], outline=_MARK)
        draw.text((x, y + height + 5), f"{step.number}. {step.title}", fill=_FRONT, font=font)
        took = f"{step.seen.elapsed.total * 1000:.0f} ms"
        draw.text((x + _THUMBNAIL, y + height + 7), took, fill=_DIM, font=small, anchor="ra")
    return sheet


def page(run: Run) -> str:
    """The run as one HTML page; pictures are inside it, so that it can be sent as one file."""
    template = Template((Path(__file__).parent / "report.html").read_text(encoding="utf-8"))
    longest = max((step.seen.elapsed.total for step in run.steps), default=1.0)
    return template.substitute(
        verdict=html.escape(run.verdict),
        state="ok" if run.ok else "failed",
        about=html.escape(" · ".join(run.about)),
        legend="".join(f'<span class="{part}">{part}</span>' for part in _PARTS),
        checks="\n".join(_check(check) for check in run.checks),
        steps="\n".join(_step(step, longest) for step in run.steps),
    )


def _check(check: Check) -> str:
    if check.ok:
        return f'<li class="ok">{html.escape(check.title)}</li>'
    found = f"<dl><dt>expected</dt><dd>{html.escape(check.expected)}</dd><dt>found</dt><dd>{html.escape(check.found)}</dd></dl>"
    return f'<li class="failed">{html.escape(check.title)}{found}</li>'


def _step(step: Step, longest: float) -> str:
    seen = step.seen
    width, height = seen.size
    marks = "".join(f'<rect x="{r.x}" y="{r.y}" width="{r.width}" height="{r.height}"/>' for r in seen.rects)
    busy = "".join(f'<rect class="busy" x="{r.x}" y="{r.y}" width="{r.width}" height="{r.height}"/>' for r in seen.busy)
    parts = [(part, getattr(seen.elapsed, part)) for part in _PARTS]
    bar = "".join(f'<i class="{part}" style="width:{value / longest * 100:.3f}%"></i>' for part, value in parts)
    times = "".join(f"<span>{part} <b>{_ms(value)}</b></span>" for part, value in parts)
    actions = "".join(f"<code>{html.escape(action)}</code>" for action in step.actions)
    rects = f"{len(seen.rects)} changed {'area' if len(seen.rects) == 1 else 'areas'}"
    own = f", {len(seen.busy)} changing on its own" if seen.busy else ""
    return f"""<article id="step-{step.number}">
<h3><a href="#step-{step.number}">{step.number}</a> {html.escape(step.title)}</h3>
<p class="actions">{actions}</p>
<figure><img src="{seen.data_url}" width="{width}" height="{height}" alt="{html.escape(step.frame)}">
<svg viewBox="0 0 {width} {height}">{marks}{busy}</svg></figure>
<div class="bar">{bar}</div>
<p class="times">{times}<span>= <b>{_ms(seen.elapsed.total)}</b> ms</span><span>wall {_ms(step.wall)} ms</span></p>
<p class="facts">{html.escape(seen.reason.value)} · {rects}{own} · {len(seen.png) / 1000:.0f} kB ·
<a href="{html.escape(step.frame)}">{html.escape(step.frame)}</a></p>
</article>"""


def _ms(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
