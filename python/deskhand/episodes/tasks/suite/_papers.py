"""Documents for the beginning of tasks: a PDF of plain lines, a spreadsheet of plain cells.

It has no task and no application.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAGE = (595, 420)
_SIZE = 13


def pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A document: the lines of each page, in characters of Latin 1. ISO 32000-1, 7.5."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    kids = []
    for lines in pages:
        shown = " ".join(f"({_in_pdf(line)}) Tj T*" for line in lines)
        content = f"BT /F1 {_SIZE} Tf {_SIZE * 1.6:g} TL 60 {_PAGE[1] - 70} Td {shown} ET"
        objects.append(f"<< /Length {len(content.encode('latin-1'))} >>\nstream\n{content}\nendstream")
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_PAGE[0]} {_PAGE[1]}] /Contents {len(objects)} 0 R "
            f"/Resources << /Font << /F1 {font} >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    written, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    end = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(written)}\n%%EOF\n"
    return written + f"xref\n0 {count}\n0000000000 65535 f \n{table}{end}".encode()


def _in_pdf(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def sheet(rows: Sequence[Sequence[str | int]]) -> str:
    """A flat ODF spreadsheet of one table."""
    address = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{name}="{address}:{name}:1.0"' for name in ("office", "table", "text"))
    lines = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {spaces} office:version="1.3" '
        'office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet1">{lines}</table:table></office:spreadsheet></office:body></office:document>'
    )


def _cell(value: str | int) -> str:
    kind = f'float" office:value="{value}' if isinstance(value, int) else "string"
    return f'<table:table-cell office:value-type="{kind}"><text:p>{escape(str(value))}</text:p></table:table-cell>'
