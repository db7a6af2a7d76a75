"""Drawing on a canvas: a line, two shapes, a figure through numbered dots.

The painting program itself is in `_painting`.
"""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from deskhand.actions import LeftClick
from deskhand.episodes.tasks.browser import Page
from deskhand.episodes.tasks.suite._painting import (
    COLOURS,
    HEIGHT,
    STROKE,
    WIDTH,
    canvas,
    drag,
    is_colour,
    open_painting,
    pick,
)
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from deskhand.episodes.tasks.context import TaskContext

_PROGRAMS = ("chromium", "perl")
# How far a person's line may be from its place, in pixels.
_NEAR = 10
# The least share of the pixels that should be painted, and the largest share of those that should not.
_MOST, _STRAY = 0.95, 0.01


def _cross(x: int, y: int, label: str) -> str:
    lines = f'<path d="M{x - 7} {y}h14M{x} {y - 7}v14" stroke="#555" />'
    return f'{lines}<text x="{x + 10}" y="{y - 10}" fill="#333">{label}</text>'


def _apart(random: random.Random, count: int, least: float, margin: int = 60) -> list[tuple[int, int]]:
    """Points of the canvas, with a distance between them."""
    points: list[tuple[int, int]] = []
    while len(points) < count:
        point = (random.randrange(margin, WIDTH - margin), random.randrange(margin, HEIGHT - margin))
        if all(math.dist(point, other) >= least for other in points):
            points.append(point)
    return points


def _distance(start: Sequence[int], end: Sequence[int]) -> NDArray[np.float64]:
    """The distance of each pixel of the canvas from a line."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    dx, dy = end[0] - start[0], end[1] - start[1]
    along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / (dx * dx + dy * dy), 0, 1)
    return np.asarray(np.hypot(x - start[0] - along * dx, y - start[1] - along * dy))


def _covered(ink: NDArray[np.bool_], start: Sequence[int], end: Sequence[int]) -> float:
    """The share of a line with ink near it."""
    count = round(math.dist(start, end)) + 1
    found = 0
    for index in range(count):
        x = round(start[0] + (end[0] - start[0]) * index / (count - 1))
        y = round(start[1] + (end[1] - start[1]) * index / (count - 1))
        found += bool(ink[max(0, y - _NEAR) : y + _NEAR + 1, max(0, x - _NEAR) : x + _NEAR + 1].any())
    return found / count


def _graded(pixels: NDArray[np.uint8] | None, wrong: Sequence[str], what: str) -> Grade:
    if pixels is None:
        return Grade(0.0, "the painting is not open any more", {"painting": None})
    state = {"painting": hashlib.sha256(pixels.tobytes()).hexdigest(), "inked": int((pixels[..., 3] > 128).sum())}
    return Grade(0.0 if wrong else 1.0, "; ".join(wrong) or what, state)


class DrawingLine(Task):
    """Draw one straight line between two of five marks."""

    name: ClassVar[str] = "drawing-line"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("drawing", "browser")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=12, seconds=180)
    programs: ClassVar[tuple[str, ...]] = _PROGRAMS

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The marks, the two to connect, and the colour."""
        marks = {label: list(point) for label, point in zip("ABCDE", _apart(random, 5, 160), strict=True)}
        start, end = random.sample(sorted(marks), 2)
        return {"marks": marks, "from": start, "to": end, "colour": random.choice(sorted(COLOURS))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"The browser shows a painting program. Draw one straight line in {parameters['colour']} with its line tool, from "
            f"the cross {parameters['from']} to the cross {parameters['to']}. Draw nothing else, and leave the page open."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        open_painting(context, "".join(_cross(x, y, label) for label, (x, y) in context.parameters["marks"].items()))

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        pixels = canvas(context)
        if pixels is None:
            return _graded(None, (), "")
        wanted = context.parameters
        start, end = (wanted["marks"][wanted[name]] for name in ("from", "to"))
        covered = _covered(is_colour(pixels, wanted["colour"]), start, end)
        inked = pixels[..., 3] > 0
        stray = int((inked & (_distance(start, end) > _NEAR + STROKE)).sum())
        wrong = [] if covered >= _MOST else [f"{covered:.0%} of the way has {wanted['colour']} ink, wanted all of it"]
        wrong += [f"{stray} pixels are painted elsewhere"] if stray > _STRAY * max(inked.sum(), 1) else []
        return _graded(pixels, wrong, f"the line from {wanted['from']} to {wanted['to']} is there, and nothing else")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        wanted = context.parameters
        with Page(context) as page:
            pick(context, page, "line", wanted["colour"])
            drag(context, page, _way(wanted["marks"][wanted["from"]], wanted["marks"][wanted["to"]]))


def _way(start: Sequence[int], end: Sequence[int]) -> list[tuple[int, int]]:
    """The path of a hand between two points."""
    return [
        (round(start[0] + (end[0] - start[0]) * i / 8), round(start[1] + (end[1] - start[1]) * i / 8)) for i in range(9)
    ]


_FORMS = ("rectangle", "ellipse")


class DrawingShapes(Task):
    """Draw two shapes into two of four dashed frames, one of them filled."""

    name: ClassVar[str] = "drawing-shapes"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("drawing", "browser")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=20, seconds=240)
    programs: ClassVar[tuple[str, ...]] = _PROGRAMS

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The frames, and the shapes for two of them."""
        frames = []
        for column in range(2):
            for row in range(2):
                width, height = random.randrange(180, 380), random.randrange(100, 200)
                x = column * WIDTH // 2 + random.randrange(30, WIDTH // 2 - width - 30)
                y = row * HEIGHT // 2 + random.randrange(30, HEIGHT // 2 - height - 20)
                frames.append([x, y, width, height])
        chosen, colours = random.sample(range(4), 2), random.sample(sorted(COLOURS), 2)
        forms, filled = random.sample(_FORMS, 2), random.randrange(2)
        shapes = [
            {"frame": frame, "colour": colour, "form": form, "filled": index == filled}
            for index, (frame, colour, form) in enumerate(zip(chosen, colours, forms, strict=True))
        ]
        return {"frames": frames, "shapes": shapes}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        kinds = {True: "a filled", False: "the outline of a"}
        words = [
            f"{kinds[shape['filled']]} {shape['colour']} {shape['form']} that just fits into frame {shape['frame'] + 1}"
            for shape in parameters["shapes"]
        ]
        return (
            f"The browser shows a painting program. Draw {words[0]}, and {words[1]}. An outline encloses nothing but "
            "paper. Draw nothing else, and leave the page open."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        frames = "".join(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#888" stroke-dasharray="5 5" />'
            f'<text x="{x}" y="{y - 8}" fill="#333">Frame {number}</text>'
            for number, (x, y, width, height) in enumerate(context.parameters["frames"], 1)
        )
        open_painting(context, frames)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        pixels = canvas(context)
        if pixels is None:
            return _graded(None, (), "")
        wrong = []
        inked = pixels[..., 3] > 0
        elsewhere = inked.copy()
        for shape in context.parameters["shapes"]:
            x, y, width, height = context.parameters["frames"][shape["frame"]]
            around = np.s_[max(0, y - _NEAR) : y + height + _NEAR, max(0, x - _NEAR) : x + width + _NEAR]
            elsewhere[around] = False
            ink = np.zeros_like(inked)
            ink[around] = is_colour(pixels, shape["colour"])[around]
            wrong += [f"frame {shape['frame'] + 1}: {what}" for what in _misfits(ink, shape, (x, y, width, height))]
        stray = int(elsewhere.sum())
        wrong += [f"{stray} pixels are painted elsewhere"] if stray > _STRAY * max(inked.sum(), 1) else []
        return _graded(pixels, wrong, "both shapes are there, and nothing else")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            for shape in context.parameters["shapes"]:
                x, y, width, height = context.parameters["frames"][shape["frame"]]
                pick(context, page, shape["form"], shape["colour"])
                if page.evaluate("filled.checked") != shape["filled"]:
                    context.desktop.perform(LeftClick(page.centre("#filled")))
                    page.until(f"filled.checked === {str(shape['filled']).lower()}")
                drag(context, page, _way((x, y), (x + width, y + height)))


def _misfits(ink: NDArray[np.bool_], shape: Mapping[str, Any], frame: tuple[int, int, int, int]) -> list[str]:
    """The differences between a shape and the wanted one."""
    x, y, width, height = frame
    if not ink.any():
        return [f"nothing {shape['colour']}, wanted a {shape['form']}"]
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    box = (columns[0], rows[0], columns[-1], rows[-1])
    if max(abs(got - want) for got, want in zip(box, (x, y, x + width, y + height), strict=True)) > _NEAR:
        return [f"a shape from {box[0]}, {box[1]} to {box[2]}, {box[3]}, wanted {x}, {y} to {x + width}, {y + height}"]
    part = ink[box[1] : box[3] + 1, box[0] : box[2] + 1]
    half_width, half_height = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    across, down = np.meshgrid(np.arange(part.shape[1]) - half_width, np.arange(part.shape[0]) - half_height)
    # How many pixels each pixel is inside the shape's outer edge; for an ellipse, on the way to its centre.
    if shape["form"] == "rectangle":
        depth, slant = np.minimum(half_width - np.abs(across), half_height - np.abs(down)), 1.0
    else:
        out = np.maximum(np.hypot(across / half_width, down / half_height), 1e-6)
        depth = np.hypot(across, down) * (1 / out - 1)
        slant = max(half_width, half_height) / min(half_width, half_height)
    edge, inside = (depth >= 0) & (depth <= 2), depth > (STROKE + 3) * slant
    wrong = []
    if part[depth < -3].any() or part[edge].mean() < 0.7:
        wrong.append(f"that is no {shape['form']}")
    covered = part[inside].mean()
    if covered < _MOST if shape["filled"] else covered > 0:
        wrong.append(f"{covered:.0%} of its inside is painted, wanted {'all' if shape['filled'] else 'nothing'} of it")
    return wrong


class DrawingDots(Task):
    """Join numbered dots in their order, and fill the figure."""

    name: ClassVar[str] = "drawing-dots"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("drawing", "browser")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=40, seconds=360)
    programs: ClassVar[tuple[str, ...]] = _PROGRAMS

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The dots, around the middle of the canvas, and the two colours."""
        count = random.randrange(6, 9)
        turn, first = random.random(), random.randrange(count)
        dots = []
        for index in range(count):
            angle = 2 * math.pi * (index + turn + 0.25 * random.random()) / count
            reach = 0.55 + 0.45 * random.random()
            dots.append(
                [
                    round(WIDTH / 2 + 0.42 * WIDTH * reach * math.cos(angle)),
                    round(HEIGHT / 2 + 0.42 * HEIGHT * reach * math.sin(angle)),
                ]
            )
        line, fill = random.sample(sorted(COLOURS), 2)
        return {"dots": dots[first:] + dots[:first], "line": line, "fill": fill}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            "The browser shows a painting program. Join the dots with straight lines in "
            f"{parameters['line']}, in the order of their numbers, and the last one with the first. Then fill the figure "
            f"inside with {parameters['fill']}. Draw nothing else, and leave the page open."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        dots = "".join(
            f'<circle cx="{x}" cy="{y}" r="4" fill="#777" /><text x="{x + 8}" y="{y - 8}" fill="#333">{number}</text>'
            for number, (x, y) in enumerate(context.parameters["dots"], 1)
        )
        open_painting(context, dots)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        pixels = canvas(context)
        if pixels is None:
            return _graded(None, (), "")
        wanted, sides = context.parameters, _sides(context.parameters["dots"])
        line = is_colour(pixels, wanted["line"])
        wrong = [
            f"{covered:.0%} of side {number} has {wanted['line']} ink, wanted all of it"
            for number, (start, end) in enumerate(sides, 1)
            if (covered := _covered(line, start, end)) < _MOST
        ]
        rim = np.min([_distance(start, end) for start, end in sides], axis=0) <= _NEAR + STROKE
        inside = _inside(sides)
        filled = is_colour(pixels, wanted["fill"])[inside & ~rim].mean()
        wrong += [f"{filled:.0%} of the figure is {wanted['fill']}, wanted all of it"] if filled < _MOST else []
        stray = int(((pixels[..., 3] > 0) & ~inside & ~rim).sum())
        wrong += [f"{stray} pixels are painted outside"] if stray > _STRAY * inside.sum() else []
        return _graded(pixels, wrong, "the figure is there and filled, and nothing else")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            pick(context, page, "line", context.parameters["line"])
            for start, end in _sides(context.parameters["dots"]):
                drag(context, page, _way(start, end))
            pick(context, page, "fill", context.parameters["fill"])
            left, top, _, _ = page.box("#paint")
            context.desktop.perform(LeftClick((round(left) + WIDTH // 2, round(top) + HEIGHT // 2)))


def _sides(dots: Sequence[Sequence[int]]) -> list[tuple[Sequence[int], Sequence[int]]]:
    return list(pairwise([*dots, dots[0]]))


def _inside(sides: Sequence[tuple[Sequence[int], Sequence[int]]]) -> NDArray[np.bool_]:
    """The pixels of the canvas inside a figure: a ray from them crosses an odd number of its sides."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    found = np.zeros((HEIGHT, WIDTH), dtype=bool)
    for (x1, y1), (x2, y2) in sides:
        if y1 != y2:
            found ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return found
