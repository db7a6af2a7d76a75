"""OCR libraries, compared on screens whose text is known: `python -m bench.ocr`, in the repository.

Each reads the same pictures (`ocr_screens`), one after the other, on one thread. What must never appear here: a number that was
not measured in the run it is reported with.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np
from PIL import Image

from bench import ocr_screens, scenes
from bench.output import chosen
from bench.tables import table
from deskhand._core.geometry import Rect
from deskhand._core.text_lines import Found, Line, in_order, middle
from deskhand.cli.common import examples
from deskhand.cli.group import run_command
from deskhand.desktop.ocr_engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from bench.ocr_screens import Labelled

    _Reader: TypeAlias = Callable[[NDArray[np.uint8]], list[Line]]

# Pixels that the middle of a text may lie beside the box of what shows it.
_BESIDE = 3
_TESSDATA = "/usr/share/tesseract-ocr/5/tessdata"
_SPARSE = 11
# Tesseract reads letters of about 30 pixels best, which its documentation says.
_ENLARGED = 3


@dataclass(frozen=True, slots=True)
class Score:
    """How well one picture was read.

    Attributes:
        characters: The part of all characters that are right: 1 less the edit distance by their number, without spaces.
        whole: The part of the texts without a mistake.
        found: The part of the texts that have something with its middle in their box.
        seconds: Of the processor.
    """

    characters: float
    whole: float
    found: float
    seconds: float


def ours() -> _Reader:
    """RapidOCR as deskhand sets it up, and splits its lines."""
    engine = Engine()

    def read(picture: NDArray[np.uint8]) -> list[Line]:
        # What it remembers would be no reading.
        engine.forget()
        return engine.lines(picture, lambda: True) or []

    return read


def rapidocr() -> _Reader:
    """RapidOCR as it comes, on one thread."""
    threads = dict.fromkeys((f"EngineConfig.onnxruntime.{kind}_op_num_threads" for kind in ("intra", "inter")), 1)
    library: Any = importlib.import_module("rapidocr").RapidOCR(params={"Global.log_level": "critical", **threads})

    def read(picture: NDArray[np.uint8]) -> list[Line]:
        found = library(picture[:, :, ::-1])
        if found.txts is None:
            return []
        boxes = [Rect.of_edges(*map(int, (*box.min(axis=0), *box.max(axis=0)))) for box in found.boxes]
        return [Line(text, box, 1.0) for text, box in zip(found.txts, boxes, strict=True)]

    return read


def tesseract() -> _Reader:
    """Tesseract, on the picture three times as large, as sparse text; of it and its negative what has more words."""
    os.environ["OMP_THREAD_LIMIT"] = "1"
    library: Any = importlib.import_module("tesserocr")
    api = library.PyTessBaseAPI(path=_TESSDATA, psm=_SPARSE)
    word = library.RIL.WORD

    def words(picture: NDArray[np.uint8]) -> list[Line]:
        image = Image.fromarray(picture).convert("L")
        api.SetImage(image.resize((image.width * _ENLARGED, image.height * _ENLARGED), Image.Resampling.BICUBIC))
        api.SetSourceResolution(96 * _ENLARGED)
        api.Recognize()
        found = []
        for each in library.iterate_level(api.GetIterator(), word):
            box = each.BoundingBox(word)
            if box is not None and (text := each.GetUTF8Text(word).strip()):
                found.append(Line(text, Rect.of_edges(*(side // _ENLARGED for side in box)), 1.0))
        return found

    return lambda picture: max(words(picture), words(255 - picture), key=len)


READERS = {
    "deskhand (RapidOCR)": ours,
    "RapidOCR as it comes": rapidocr,
    "Tesseract": tesseract,
}


def score(labelled: Labelled, found: Sequence[Line], seconds: float) -> Score:
    """Compare what was read with what is there."""
    total = wrong = whole = there = 0
    for text, box in labelled.texts:
        inside = [line for line in found if box.inflate(_BESIDE).contains(middle(line.box))]
        ordered = in_order(Found(number, line) for number, line in enumerate(inside))
        wanted, got = _plain(text), _plain("".join(each.line.text for each in ordered))
        total += len(wanted)
        wrong += min(len(wanted), _distance(wanted, got))
        whole += wanted == got
        there += bool(inside)
    count = len(labelled.texts)
    return Score(1 - wrong / total, whole / count, there / count, seconds)


def _plain(text: str) -> str:
    return "".join(text.replace("…", "...").split())


def _distance(one: str, other: str) -> int:
    """How many characters have to be put in, taken out or replaced."""
    before = list(range(len(other) + 1))
    for row, mine in enumerate(one, 1):
        now = [row]
        for column, theirs in enumerate(other, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (mine != theirs)))
        before = now
    return before[-1]


def measure(name: str, pictures: Sequence[Labelled], say: Callable[[str], None]) -> dict[str, Score]:
    """Let one library read all pictures."""
    read = READERS[name]()
    scores = {}
    for labelled in pictures:
        begun = time.process_time()
        found = read(labelled.picture)
        scores[labelled.name] = score(labelled, found, time.process_time() - begun)
        say(f"{name}: {labelled.name}: {scores[labelled.name]}")
    return scores


def report(results: dict[str, dict[str, Score]]) -> str:
    """The tables."""
    lines = []
    for name, scores in results.items():
        each = list(scores.values())
        parts = [
            f"{100 * float(np.mean([getattr(s, part) for s in each])):.1f} %"
            for part in ("characters", "whole", "found")
        ]
        lines.append([name, *parts, f"{median(s.seconds for s in each):.2f} s"])
    header = ["", "characters right", "texts without a mistake", "middle in the right box", "processor time (median)"]
    screens = list(next(iter(results.values())))
    rows = [
        [screen, *(f"{100 * s[screen].characters:.1f} % / {s[screen].seconds:.1f} s" for s in results.values())]
        for screen in screens
    ]
    return table(header, "lrrrr", lines) + "\n\n" + table(["screen", *results], "l" + "r" * len(results), rows)


@click.command(
    epilog=examples("python -m bench.ocr", "python -m bench.ocr --screens gtk-dark,xterm-10-light --readers Tesseract"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--screens", metavar="NAMES", help="Only these, with commas; by default all.")
@click.option("--readers", metavar="NAMES", help="Only these, with commas; by default all. Tesseract needs tesserocr.")
def command(*, screens: str | None, readers: str | None) -> None:
    """Measure how well OCR libraries read screens."""
    names = chosen("--screens", screens, ocr_screens.NAMES)
    who = chosen("--readers", readers, READERS)

    def say(text: str) -> None:
        click.echo(text, err=True)

    pictures = []
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", ignore_cleanup_errors=True) as directory:
        for name in names:
            try:
                pictures.append(ocr_screens.make(name, Path(directory)))
            except scenes.Missing as missing:
                say(f"{name}: not measured: {missing}")
    load = os.getloadavg()[0]
    results = {name: measure(name, pictures, say) for name in who}
    click.echo(report(results))
    click.echo(f"\nThe load of the machine was {load:.1f} at the beginning and {os.getloadavg()[0]:.1f} at the end.")


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.ocr"))
