"""OpenDocument spreadsheets as far as tasks need them: written for the setup, and read for the evaluation.

This module owns that format. Formulas are read as the values that the application has computed and saved with them. It has no
task and no desktop.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Value = str | float | int
Cells = dict[str, Value]
"""Values by the names of their cells: `A1`."""

_MIME = "application/vnd.oasis.opendocument.spreadsheet"
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
_STYLE = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
# A file may say "repeated a million times" of empty cells; other cells are limited to more than any task's table.
_MOST_ROWS, _MOST_COLUMNS = 2000, 200
_LARGEST = 32 << 20


def cell_name(row: int, column: int) -> str:
    """The name of a cell, with both numbers counted from 0: (1, 2) is `C2`."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def write_sheets(sheets: Mapping[str, Sequence[Sequence[Value]]]) -> bytes:
    """A file with these sheets, each a list of rows of values."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        f'<table:table-column table:style-name="wide" table:number-columns-repeated="{_width(rows)}"/>'
        f"{''.join(map(_row, rows))}</table:table>"
        for name, rows in sheets.items()
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{_OFFICE}" xmlns:table="{_TABLE}" '
        f'xmlns:text="{_TEXT}" xmlns:style="{_STYLE}" office:version="1.2"><office:automatic-styles><style:style '
        'style:name="wide" style:family="table-column"><style:table-column-properties style:column-width="4.5cm"/>'
        f"</style:style></office:automatic-styles><office:body><office:spreadsheet>{tables}</office:spreadsheet>"
        "</office:body></office:document-content>"
    )
    manifest = (
        '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest '
        'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_MIME}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # The format requires it as the first entry, uncompressed.
        for name, text, how in (
            ("mimetype", _MIME, zipfile.ZIP_STORED),
            ("content.xml", content, zipfile.ZIP_DEFLATED),
            ("META-INF/manifest.xml", manifest, zipfile.ZIP_DEFLATED),
        ):
            # Without the time, so that the same sheets give the same bytes.
            archive.writestr(zipfile.ZipInfo(name), text, how)
    return buffer.getvalue()


def _width(rows: Sequence[Sequence[Value]]) -> int:
    return max((len(row) for row in rows), default=1)


def _row(row: Sequence[Value]) -> str:
    return f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>"


def _cell(value: Value) -> str:
    if value == "":
        return "<table:table-cell/>"
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"><text:p>{value}</text:p></table:table-cell>'


def read_sheets(data: bytes | None) -> dict[str, Cells] | None:
    """The cells of each sheet that are not empty; None if it is not such a file, or is still being written."""
    if data is None:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo("content.xml").file_size > _LARGEST:
                return None
            root = ET.fromstring(archive.read("content.xml"))  # noqa: S314 # expat limits the expansion of entities
    except (zipfile.BadZipFile, zlib.error, KeyError, ET.ParseError, OSError, EOFError, RuntimeError, ValueError):
        # RuntimeError: an encrypted entry, or an unknown compression.
        return None
    tables = root.iter(f"{{{_TABLE}}}table")
    return {table.get(f"{{{_TABLE}}}name", ""): _cells(table) for table in tables}


def _cells(table: ET.Element) -> Cells:
    found: Cells = {}
    for row_index, row in _repeated(table.iter(f"{{{_TABLE}}}table-row"), "rows", _MOST_ROWS):
        cells = (cell for cell in row if cell.tag in {f"{{{_TABLE}}}table-cell", f"{{{_TABLE}}}covered-table-cell"})
        for column_index, cell in _repeated(cells, "columns", _MOST_COLUMNS):
            value = _value(cell)
            if value != "":
                found[cell_name(row_index, column_index)] = value
    return found


def _repeated(elements: Iterator[ET.Element], what: str, most: int) -> Iterator[tuple[int, ET.Element]]:
    index = 0
    for element in elements:
        for _ in range(int(element.get(f"{{{_TABLE}}}number-{what}-repeated", "1"))):
            if index >= most:
                return
            yield index, element
            index += 1


def _value(cell: ET.Element) -> Value:
    if cell.get(f"{{{_OFFICE}}}value-type") in {"float", "currency", "percentage"}:
        return float(cell.get(f"{{{_OFFICE}}}value", "nan"))
    return "\n".join("".join(paragraph.itertext()) for paragraph in cell.iter(f"{{{_TEXT}}}p"))
