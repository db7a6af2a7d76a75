"""What elements and screenshots cost a model in tokens: `python -m bench.element_tokens`, in the repository.

A scripted episode of 30 steps is played on real applications. After each step the model could be told all elements, what has
changed of them, or a picture; each is counted. What must never appear here: a number that was not counted in the run it is
reported with.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

import deskhand
from bench import scenes
from bench.elements_applications import page
from bench.figures import Report, Row, Samples
from bench.output import chosen, write_page, write_report
from bench.tables import table
from bench.versions import versions
from deskhand import KeyPress, LeftClick, Move, Scroll, Settle, Type
from deskhand.cli.common import examples, file_to_write
from deskhand.cli.group import run_command
from deskhand.episodes.run.host import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand import Action, Desktop, Size

MARKERS = ("<!-- element-tokens -->", "<!-- /element-tokens -->")
_SIZE = (1280, 800)
_PLACE = (0, 0, 1280, 780)
_LOADED = Settle(quiet=1.0, reaction=1.0, timeout=15)
_ENCODING = "o200k_base"
WHOLE, CHANGES = "all elements", "what has changed"
_FORM = """<!doctype html><meta charset="utf-8"><title>Order</title><h1>Order</h1><form>
<p><label>Name <input id="n"></label></p><p><label>Street <input></label></p><p><label>Town <input></label></p>
<p><label>Country <select><option>Austria<option>Belgium<option>Chile<option>Denmark</select></label></p>
<p><label><input type="radio" name="s">Post</label> <label><input type="radio" name="s">Courier</label></p>
<p><label><input type="checkbox">Gift</label> <label><input type="checkbox">Newsletter</label></p>
<p><label>Remarks <textarea></textarea></label></p>
<p><button type="button" onclick="document.getElementById('r').textContent = 'Thank you'">Order</button></p>
<p id="r"></p></form>"""

Step: TypeAlias = "Callable[[Desktop], Sequence[Action]]"
Count: TypeAlias = "Callable[[str], int]"


# --- what a picture costs, as the providers publish it ---


def anthropic(size: Size) -> int:
    """Tokens of a picture that Anthropic does not resize: width times height by 750."""
    return math.ceil(size.width * size.height / 750)


def openai_patches(size: Size) -> int:
    """Tokens of a picture for OpenAI's models that count patches of 32 pixels, at `detail="original"`."""
    return math.ceil(size.width / 32) * math.ceil(size.height / 32)


def openai_tiles(size: Size) -> int:
    """Tokens of a picture for OpenAI's models that count tiles (GPT-5): 70, and 140 for each of 512 pixels.

    It is made to fit into 2048 pixels, and its shorter side into 768, before it is cut.
    """
    scale = min(1.0, 2048 / max(size), 768 / min(size))
    across, down = (math.ceil(round(side * scale) / 512) for side in size)
    return 70 + 140 * across * down


PICTURES: dict[str, Callable[[Size], int]] = {
    "picture, Anthropic": anthropic,
    "picture, OpenAI's patches": openai_patches,
    "picture, OpenAI's tiles": openai_tiles,
}


# --- the episode ---


@dataclass(frozen=True, slots=True)
class Part:
    """An application and what is done in it.

    Attributes:
        name: Of its rows.
        title: As the table says it.
        command: Writes into a directory what it needs, and returns what starts it; raises `Missing`.
        steps: Each gives the actions of a step, done together.
    """

    name: str
    title: str
    command: Callable[[Path], Sequence[str]]
    steps: Sequence[Step]


def _do(*actions: Action) -> Step:
    return lambda _: actions


def _click(role: str, name: str) -> Step:
    def actions(desktop: Desktop) -> Sequence[Action]:
        return [LeftClick(element=desktop.find(role, name).element(timeout=20).ref)]

    return actions


def _mousepad(scratch: Path) -> Sequence[str]:
    del scratch
    scenes.need("mousepad", "mousepad")
    return ["mousepad"]


def _chromium(name: str, content: Callable[[], str]) -> Callable[[Path], Sequence[str]]:
    def command(scratch: Path) -> Sequence[str]:
        (scratch / f"{name}.html").write_text(content())
        return scenes.chromium(scratch / f"{name}.html", scratch / f"chromium-{name}", _PLACE)

    return command


PARTS = (
    Part(
        "mousepad",
        "mousepad, with its menus and its GTK dialog",
        _mousepad,
        (
            _do(Type("A line to begin with\n")),
            _do(Type("and another one")),
            _click("menuitem", "Edit"),
            _do(KeyPress(["Escape"])),
            _click("menuitem", "View"),
            _do(KeyPress(["Escape"])),
            _do(KeyPress(["ctrl", "s"])),
            _do(Type("notes.txt")),
            _do(KeyPress(["Escape"])),
            _do(KeyPress(["ctrl", "a"])),
        ),
    ),
    Part(
        "form",
        "Chromium, a form",
        _chromium("form", lambda: _FORM),
        (
            _click("textbox", "Name"),
            _do(Type("Ada")),
            _do(KeyPress(["Tab"]), Type("Ring 1")),
            _do(KeyPress(["Tab"]), Type("Wien")),
            _click("radio", "Courier"),
            _click("checkbox", "Gift"),
            _click("checkbox", "Newsletter"),
            _click("textbox", "Remarks"),
            _do(Type("Ring twice.")),
            _click("button", "Order"),
        ),
    ),
    Part(
        "links",
        "Chromium, 2,000 links in a table",
        _chromium("links", page),
        (
            _click("checkbox", "Check"),
            _click("checkbox", "Check"),
            _do(Move((300, 300))),
            _do(Scroll((300, 300), magnitude=3, direction="down")),
            _do(Move((500, 400))),
            _click("link", "link 20-3"),
            _do(Move((700, 300))),
            _do(Scroll((300, 300), magnitude=20, direction="up")),
            _click("checkbox", "Check"),
            _do(Move((300, 500))),
        ),
    ),
)


def play(part: Part, count: Count) -> Iterator[Row]:
    """The rows of one part: the tokens of each step."""
    section = f"tokens/{part.name}"
    samples = {case: Samples(section, case, unit="tokens") for case in (WHOLE, CHANGES, *PICTURES)}
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-bench-", ignore_cleanup_errors=True) as directory,
        deskhand.launch(size=_SIZE, env=scenes.home_environment(Path(directory) / "home-part")) as desktop,
    ):
        desktop.start(part.command(Path(directory)), timeout=60)
        before = desktop.perform(settle=_LOADED, elements=True).elements
        assert before is not None  # noqa: S101 # it was asked for
        # What the first answer of an episode has in any case.
        begun = count(before.text())
        for step in part.steps:
            seen = desktop.perform(*step(desktop), elements=True)
            now = seen.elements
            assert now is not None  # noqa: S101 # as above
            samples[WHOLE].add(count(now.text(seen.viewport)), counts={"elements": len(now)})
            samples[CHANGES].add(count(now.changes(before, seen.viewport)))
            for case, cost in PICTURES.items():
                samples[case].add(cost(seen.size))
            before = now
    for case, each in samples.items():
        extra = {"begun": float(begun)} if case == CHANGES else {}
        yield each.row(sum=each.sum, **extra)


def measure(parts: Sequence[Part], count: Count) -> Report:
    """Play, count and report."""
    begun, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    for part in parts:
        try:
            rows += play(part, count)
        except scenes.Missing as missing:
            rows.append(Row(f"tokens/{part.name}", WHOLE, unit="tokens", missing=f"not counted: {missing}"))
    conditions = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "seconds": round(time.monotonic() - begun),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "tokenizer": f"{_ENCODING} (bpe-openai)",
    }
    return Report(describe(), versions(), conditions, rows)


# --- what people read of it ---


def block(report: Report) -> str:
    """The tables of docs/benchmarks.md."""
    width, height = _SIZE
    titles = {f"tokens/{part.name}": part.title for part in PARTS}
    sections = [section for section in titles if report.of(section)]
    steps = sum(row.n for row in report.rows if row.case == WHOLE)
    how = (
        f"Written by `python -m bench.element_tokens` on {report.conditions['date']}, deskhand"
        f" {report.versions['deskhand']}: {steps} steps of a scripted episode at {width}×{height}, the elements and the picture"
        f" of each step. Texts are counted by `{_ENCODING}`, the tokenizer of OpenAI's models; Anthropic publishes none. A"
        " picture is counted as its provider publishes: width × height / 750 (Anthropic), patches of 32 pixels (OpenAI,"
        " `original`), 70 and 140 for each tile of 512 pixels (OpenAI, GPT-5). The first reading of an application is told"
        " whole in any case, and is in its own column."
    )
    cases = (WHOLE, CHANGES, *PICTURES)
    lines = []
    totals = dict.fromkeys((*cases, "begun"), 0.0)
    for section in sections:
        found = {row.case: row for row in report.of(section)}
        if found[WHOLE].median is None:
            lines.append([titles[section], found[WHOLE].missing, *[""] * (len(cases) + 1)])
            continue
        for case in cases:
            totals[case] += found[case].counts["sum"]
        totals["begun"] += found[CHANGES].counts["begun"]
        cells = [f"{found[case].counts['sum']:,.0f}" for case in cases]
        begun = f"{found[CHANGES].counts['begun']:,.0f}"
        lines.append([titles[section], f"{found[WHOLE].counts['elements']:,.0f}", begun, *cells])
    lines.append(["all", "", f"{totals['begun']:,.0f}", *(f"{totals[case]:,.0f}" for case in cases)])
    header = ["tokens of all steps", "elements", "first reading", *cases]
    return f"{how}\n\n{table(header, 'l' + 'r' * (len(header) - 1), lines)}"


@click.command(
    epilog=examples(
        "python -m bench.element_tokens --parts mousepad",
        "python -m bench.element_tokens --json evidence/element_tokens.json --readme docs/benchmarks.md",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--parts", metavar="NAMES", help="Only these, with commas; by default all.")
@click.option("--json", "json_path", metavar="PATH", callback=file_to_write, help="Write the report.")
@click.option("--readme", metavar="PATH", callback=file_to_write, help="Write the table between this file's markers.")
def command(*, parts: str | None, json_path: str | None, readme: str | None) -> None:
    """Count what elements and pictures of an episode cost a model in tokens."""
    known = {part.name: part for part in PARTS}
    names = chosen("--parts", parts, known)
    try:
        encoding = importlib.import_module("bpe_openai").get_encoding(_ENCODING)
    except ImportError:
        raise click.ClickException("the tokenizer is missing: pip install bpe-openai") from None
    report = measure([known[name] for name in names], lambda text: len(encoding.encode(text)))
    text = block(report)
    click.echo(text)
    if json_path is not None:
        write_report(json_path, report)
    if readme is not None:
        write_page(readme, text, MARKERS)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.element_tokens"))
