"""A drawing in LibreOffice: shapes to label and to delete.

The drawing is read from its file, never from the screen.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from xml.etree import ElementTree as ET  # parses only files that LibreOffice wrote

from deskhand._core.settle import Settle
from deskhand.episodes.tasks.suite._acting import press, type_text, wait_until
from deskhand.episodes.tasks.suite._applications import open_drawing, prepare
from deskhand.episodes.tasks.suite._browsing import compared
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from deskhand.episodes.tasks.context import TaskContext

_FILE = "plan.fodg"
# LibreOffice lays out its window once more half a second after drawing it, by a timer.
_LAID_OUT = Settle(quiet=1.5, reaction=1.5, timeout=20.0)
_COLOURS = {
    "red": "#d62728",
    "orange": "#ff9f1c",
    "yellow": "#ffe14d",
    "green": "#2ca02c",
    "blue": "#4d8bff",
    "grey": "#a0a0a0",
}
_KINDS = ("rect", "ellipse")
_LABELS = ("Boiler", "Exit", "Kitchen", "Lift", "Office", "Stairs", "Store", "Well")
_PAPER = " ".join(
    [
        'format:page-width="210mm" format:page-height="160mm"',
        *(f'format:margin-{side}="5mm"' for side in ("top", "bottom", "left", "right")),
    ]
)
_SPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "format": "urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0",
}


class DrawingLabels(Task):
    """Write into one shape of a drawing, delete another, and save."""

    name: ClassVar[str] = "drawing-labels"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("drawing",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=20, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("lodraw",)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """Four shapes of different colours, and the two to change."""
        colours = random.sample(sorted(_COLOURS), 4)
        shapes = []
        for index, colour in enumerate(colours):
            width, height = random.randrange(50, 80), random.randrange(30, 50)
            x = 12 + (index % 2) * 95 + random.randrange(85 - width)
            y = 20 + (index // 2) * 70 + random.randrange(60 - height)
            shapes.append({"kind": random.choice(_KINDS), "colour": colour, "box": [x, y, width, height]})
        labelled, deleted = random.sample(colours, 2)
        return {"shapes": shapes, "labelled": labelled, "label": random.choice(_LABELS), "deleted": deleted}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        kinds = {shape["colour"]: _spoken(shape) for shape in parameters["shapes"]}
        return (
            f"The drawing {_FILE} is open. Write the word “{parameters['label']}” into the "
            f"{kinds[parameters['labelled']]}, delete the {kinds[parameters['deleted']]}, and save the drawing under its name, "
            "in its format."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        context.write(_FILE, _drawing(context.parameters["shapes"]))
        open_drawing(context, _FILE)
        context.desktop.perform(settle=_LAID_OUT)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        wanted: dict[str, str] = {shape["colour"]: "" for shape in context.parameters["shapes"]}
        wanted[context.parameters["labelled"]] = context.parameters["label"]
        del wanted[context.parameters["deleted"]]
        return compared({"shapes": _shapes(context.text(_FILE) or "")}, {"shapes": wanted}, f"what {_FILE} has")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        desktop = context.desktop
        for wanted in (context.parameters["labelled"], context.parameters["deleted"]):
            # Tab goes from shape to shape, in the order of drawing, and begins at the first if nothing is selected.
            number = [shape["colour"] for shape in context.parameters["shapes"]].index(wanted)
            press(desktop, "Escape", "Escape", *["Tab"] * (number + 1))
            if wanted == context.parameters["deleted"]:
                press(desktop, "Delete")
            else:
                press(desktop, "F2")
                type_text(desktop, context.parameters["label"])
                press(desktop, "Escape")
        press(desktop, "ctrl+s")
        wait_until(lambda: self.evaluate(context).success, "the saved drawing")


def _spoken(shape: Mapping[str, Any]) -> str:
    return f"{shape['colour']} {'rectangle' if shape['kind'] == 'rect' else 'ellipse'}"


def _drawing(shapes: Sequence[Mapping[str, Any]]) -> str:
    """A flat ODF drawing; each shape is named after its colour."""
    spaces = " ".join(f'xmlns:{name}="{address}"' for name, address in _SPACES.items())
    styles = "".join(
        f'<style:style style:name="{name}" style:family="graphic"><style:graphic-properties draw:fill="solid" '
        f'draw:fill-color="{colour}" draw:stroke="solid" svg:stroke-color="#333333" /></style:style>'
        for name, colour in _COLOURS.items()
    )
    drawn = "".join(
        f'<draw:{shape["kind"]} draw:name="{escape(shape["colour"])}" draw:style-name="{shape["colour"]}" '
        f'svg:x="{x}mm" svg:y="{y}mm" svg:width="{width}mm" svg:height="{height}mm" />'
        for shape in shapes
        for x, y, width, height in [shape["box"]]
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {spaces} office:version="1.3" '
        'office:mimetype="application/vnd.oasis.opendocument.graphics"><office:automatic-styles>'
        f'<style:page-layout style:name="page"><style:page-layout-properties {_PAPER} /></style:page-layout>{styles}'
        '</office:automatic-styles><office:master-styles><style:master-page style:name="master" '
        'style:page-layout-name="page" /></office:master-styles><office:body><office:drawing>'
        f'<draw:page draw:name="page1" draw:master-page-name="master">{drawn}</draw:page></office:drawing></office:body>'
        "</office:document>"
    )


def _shapes(text: str) -> dict[str, str]:
    """The shapes on the page: the text of each, by name; a shape without a name is listed by its kind."""
    try:
        document = ET.fromstring(text)  # noqa: S314 # written here, or saved by LibreOffice
    except ET.ParseError:
        return {}
    name = f"{{{_SPACES['draw']}}}name"
    page = document.find(f".//{{{_SPACES['draw']}}}page")
    shapes = [] if page is None else [shape for shape in page if shape.tag.startswith(f"{{{_SPACES['draw']}}}")]
    return {shape.get(name, shape.tag.partition("}")[2]): "".join(shape.itertext()).strip() for shape in shapes}
