"""LibreOffice Calc: the cells in view are elements, and all places are right before a pointer has moved in the window."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import KeyPress, LeftClick, Move
from typed.fields import write_office_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Desktop, Element

_PATIENCE = 60.0

_SHEET = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" office:version="1.2"
  xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
  office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>
  <table:table table:name="Stock">{rows}</table:table></office:spreadsheet></office:body></office:document>"""
_ROWS = [["name", "count"], ["apple", 3], ["pear", 7]]


def _row(values: list[object]) -> str:
    cells = "".join(
        f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        if isinstance(value, int)
        else f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        for value in values
    )
    return f"<table:table-row>{cells}</table:table-row>"


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    home = tmp_path_factory.mktemp("calc")
    write_office_settings(home / "office")
    sheet = home / "stock.fods"
    sheet.write_text(_SHEET.format(rows="".join(map(_row, _ROWS))), encoding="utf-8")
    program = need("soffice", "libreoffice-calc libreoffice-gtk3")
    with deskhand.launch(size=(1200, 800)) as desktop:
        command = [
            program,
            f"-env:UserInstallation=file://{home}/office",
            "--norestore",
            "--nologo",
            "--calc",
            str(sheet),
        ]
        desktop.start(command, env={"SAL_USE_VCLPLUGIN": "gtk3"}, timeout=_PATIENCE)
        desktop.find("cell", "B3", exact=True).wait_for(timeout=_PATIENCE)
        yield desktop


def _cell(desktop: Desktop, name: str) -> Element:
    return desktop.find("cell", name, exact=True).element(timeout=_PATIENCE)


def test_places_are_right_before_a_pointer_has_moved_in_the_window(desktop: Desktop) -> None:
    # LibreOffice places its own parts as if it had no menu bar, until the pointer moves.
    before = {element.ref: (element.line(), element.box) for element in desktop.elements()}
    desktop.perform(Move((600, 700)))
    after = {element.ref: (element.line(), element.box) for element in desktop.elements()}
    assert len(before) > 500
    assert {ref: after.get(ref) for ref in before} == before


def test_the_cells_in_view_are_elements(desktop: Desktop) -> None:
    elements = desktop.elements()
    cells = {element.name: element for element in elements if element.role == "cell"}
    assert {name: cell.text for name, cell in cells.items() if cell.text} == {
        "A1": "name", "B1": "count", "A2": "apple", "B2": "3", "A3": "pear", "B3": "7",
    }  # fmt: skip
    assert "D20" in cells
    outline = elements.text()
    assert ': "pear"' in outline
    # Empty ones would be most of what a model reads.
    assert '"D20"' not in outline


def test_a_cell_is_clicked_by_its_reference(desktop: Desktop) -> None:
    desktop.perform(LeftClick(element=_cell(desktop, "C5").ref))
    # Calc's own name for the cell that keys go to.
    desktop.find("textbox", text="C5", exact=True).wait_for(timeout=_PATIENCE)
    desktop.find("cell", "C5", exact=True, states=("focused",)).wait_for(timeout=_PATIENCE)


def test_a_cell_is_filled_with_what_is_given_and_no_more(desktop: Desktop) -> None:
    # Calc completes what begins like another cell of the column.
    desktop.find("cell", "A4", exact=True).fill("app", timeout=_PATIENCE)
    desktop.find("cell", "B4", exact=True).fill("=SUM(B2:B3)", timeout=_PATIENCE)
    desktop.find("cell", "B4", exact=True, text="10").wait_for(timeout=_PATIENCE)
    desktop.find("cell", "B2", exact=True).fill("5", timeout=_PATIENCE)
    desktop.find("cell", "B4", exact=True, text="12").wait_for(timeout=_PATIENCE)
    assert (_cell(desktop, "A4").text, _cell(desktop, "A2").text) == ("app", "apple")
    desktop.find("cell", "A4", exact=True).fill("", timeout=_PATIENCE)
    # Calc tells that a cell was emptied only when another one is written.
    desktop.find("cell", "C4", exact=True).fill("x", timeout=_PATIENCE)
    desktop.find("cell", "A4", exact=True, text=re.compile("^$")).wait_for(timeout=_PATIENCE)
    assert _cell(desktop, "A3").text == "pear"


def test_cells_that_come_into_view_replace_those_that_leave_it(desktop: Desktop) -> None:
    before = _cell(desktop, "A1")
    desktop.perform(KeyPress(["Page_Down"]))
    below = desktop.find("cell", "A50", exact=True).element(timeout=_PATIENCE)
    assert below.visible
    assert before.ref not in desktop.elements()
    desktop.perform(KeyPress(["ctrl", "Home"]))
    again = _cell(desktop, "A1")
    assert again.text == "name"
    assert again.ref != before.ref
