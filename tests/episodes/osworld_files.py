"""Makes files from small descriptions, in the environment of OSWorld's evaluators: `python -I osworld_files.py < LIST`.

The list is JSON, `[[path, content], ...]`. The end of a path says what its content describes: a document, a table, slides, a
picture, a sound, a PDF or an archive; anything else is text, or JSON if it is no text.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import shutil
import struct
import sys
import tarfile
import tempfile
import wave
from pathlib import Path
from typing import Any

_RATE = 22050


def _docx(path: Path, paragraphs: list[Any]) -> None:
    """Paragraphs: a text, or one of text with spacing, image and table."""
    docx = importlib.import_module("docx")
    document = docx.Document()
    for each in paragraphs:
        part = {"text": each} if isinstance(each, str) else each
        if "text" in part:
            document.add_paragraph(part["text"]).paragraph_format.line_spacing = part.get("spacing")
        if "image" in part:
            _with_picture(part["image"], document.add_picture)
        if "table" in part:
            table = document.add_table(len(part["table"]), len(part["table"][0]))
            for row, cells in enumerate(part["table"]):
                for column, cell in enumerate(cells):
                    table.cell(row, column).text = cell
    document.save(path)


def _xlsx(path: Path, sheets: Any) -> None:
    """Sheets by name; rows alone are those of Sheet1."""
    openpyxl = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, each in (sheets if isinstance(sheets, dict) else {"Sheet1": sheets}).items():
        sheet = book.create_sheet(name)
        part = {"rows": each} if isinstance(each, list) else each
        for row in part["rows"]:
            sheet.append(row)
        _decorate(sheet, part)
    book.save(path)


def _decorate(sheet: Any, part: dict[str, Any]) -> None:
    styles = importlib.import_module("openpyxl.styles")
    for place, color in part.get("colors", {}).items():
        sheet[place].font = styles.Font(color=color)
    for place, color in part.get("fills", {}).items():
        sheet[place].fill = styles.PatternFill("solid", fgColor=color)
    for each in part.get("merged", ()):
        sheet.merge_cells(each)
    for row in part.get("hidden", ()):
        sheet.row_dimensions[row].hidden = True
    sheet.freeze_panes = part.get("freeze")
    sheet.sheet_view.zoomScale = part.get("zoom")
    if "choice" in part:
        place, among = part["choice"]
        validation = importlib.import_module("openpyxl.worksheet.datavalidation").DataValidation
        made = validation(type="list", formula1=f'"{among}"')
        made.add(place)
        sheet.add_data_validation(made)
    if "chart" in part:
        kind, title, direction = part["chart"]
        charts = importlib.import_module("openpyxl.chart")
        chart = getattr(charts, kind)()
        chart.title = title
        if direction:
            chart.barDir = direction
        chart.add_data(charts.Reference(sheet, min_col=2, min_row=1, max_row=len(part["rows"])), titles_from_data=True)
        sheet.add_chart(chart, "F2")
    if "pivot" in part:
        sheet.add_pivot(_pivot(part["pivot"]))


def _pivot(rows_by: int) -> Any:
    """A pivot table over A1:B3 of Sheet1: the sum of one field for each value of the other, whose number is given."""
    table, cache, field, fields = (
        importlib.import_module(f"openpyxl.pivot.{name}") for name in ("table", "cache", "record", "fields")
    )
    shared = cache.SharedItems(_fields=[fields.Text(v=each) for each in ("a", "b")])
    names = ("Name", "Sum")
    source = cache.CacheSource(type="worksheet", worksheetSource=cache.WorksheetSource(ref="A1:B3", sheet="Sheet1"))
    stored = cache.CacheDefinition(
        cacheSource=source, cacheFields=[cache.CacheField(name=each, sharedItems=shared) for each in names]
    )
    stored.records = field.RecordList()
    items = [table.FieldItem(x=0), table.FieldItem(x=1)]
    made = table.TableDefinition(
        name="Pivot",
        cacheId=1,
        dataCaption="Values",
        location=table.Location(ref="A3:B5", firstHeaderRow=1, firstDataRow=1, firstDataCol=1),
        pivotFields=[table.PivotField(axis="axisRow" if number == rows_by else None, items=items) for number in (0, 1)],
        rowFields=[table.RowColField(x=rows_by)],
        dataFields=[table.DataField(name="Sum", fld=1 - rows_by, subtotal="sum")],
    )
    made.cache = stored
    return made


def _pptx(path: Path, slides: list[Any]) -> None:
    """Slides as lists of shapes; a shape has one of text, picture and table, and a place in millions of EMU."""
    pptx = importlib.import_module("pptx")
    shows = pptx.Presentation()
    for shapes in slides:
        slide = shows.slides.add_slide(shows.slide_layouts[6])
        for each in shapes:
            place = [round(value * 1e6) for value in each.get("at", (1, 1, 3, 1))]
            if "picture" in each:
                _with_picture(each["picture"], lambda file, to=slide, at=place: to.shapes.add_picture(file, *at))
            elif "table" in each:
                rows = each["table"]
                table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
                for row, cells in enumerate(rows):
                    for column, cell in enumerate(cells):
                        table.cell(row, column).text = cell
            else:
                _text(pptx, slide.shapes.add_textbox(*place).text_frame.paragraphs[0], each)
    shows.save(path)


def _text(pptx: Any, paragraph: Any, part: dict[str, Any]) -> None:
    run = paragraph.add_run()
    run.text = part["text"]
    run.font.bold, run.font.underline = part.get("bold"), part.get("underline")
    if "size" in part:
        run.font.size = pptx.util.Pt(part["size"])
    if "color" in part:
        run.font.color.rgb = importlib.import_module("pptx.dml.color").RGBColor.from_string(part["color"])


def _with_picture(content: dict[str, Any], use: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "picture.png")
        _picture(path, content)
        use(str(path))


def _picture(path: Path, content: dict[str, Any]) -> None:
    """Waves of a length in pixels, with a brightness of 0 to 1; around them are `margin` transparent pixels."""
    image = importlib.import_module("PIL.Image")
    width, height = content.get("size", (96, 64))
    length, bright, margin = content.get("waves", 16), content.get("bright", 0.6), content.get("margin", 0)
    made = image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            level = 0.5 + 0.5 * math.sin(2 * math.pi * x / length) * math.cos(2 * math.pi * y / length)
            made.putpixel((x, y), (round(255 * bright * level), round(200 * bright * level), round(90 * bright)))
    if margin:
        whole = image.new("RGBA", (width + 2 * margin, height + 2 * margin), (0, 0, 0, 0))
        whole.paste(made, (margin, margin))
        made = whole
    made.save(path)


def _wav(path: Path, tones: list[float]) -> None:
    """Tones in Hz, half a second each; none leave the file empty."""
    if not tones:
        path.write_bytes(b"")
        return
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, _RATE, 0, "NONE", ""))
        for tone in tones:
            levels = (round(12000 * math.sin(2 * math.pi * tone * step / _RATE)) for step in range(_RATE // 2))
            file.writeframes(b"".join(struct.pack("<h", level) for level in levels))


def _pdf(path: Path, pages: list[str]) -> None:
    with importlib.import_module("fitz").open() as document:
        for page in pages:
            document.new_page().insert_text((72, 72), page)
        document.save(path)


def _zip(path: Path, files: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            make(Path(folder, name), content)
        shutil.make_archive(str(path.with_suffix("")), "zip", folder)


def _tar_gz(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def _anything(path: Path, content: Any) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


_KINDS = {
    ".docx": _docx, ".xlsx": _xlsx, ".pptx": _pptx, ".png": _picture, ".wav": _wav, ".pdf": _pdf, ".zip": _zip, ".gz": _tar_gz,
}  # fmt: skip


def make(path: Path, content: Any) -> None:
    """Make a file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _KINDS.get(path.suffix, _anything)(path, content)


if __name__ == "__main__":
    for place, described in json.load(sys.stdin):
        make(Path(place), described)
