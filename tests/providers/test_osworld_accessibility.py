"""OSWorld's accessibility tree and the table of its agents, against a reader as OSWorld's agents have one."""

from __future__ import annotations

import csv
import io
import os
import signal
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deskhand
from deskhand import ActionError, Element, Elements, Rect
from deskhand.providers.osworld import accessibility_table, accessibility_xml
from elements.puppet import Puppet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NS = {
    prefix: f"https://accessibility.ubuntu.example.org/ns/{name}"
    for prefix, name in {"st": "state", "cp": "component", "val": "value"}.items()
}
SHOWN = frozenset({"visible", "showing", "enabled", "sensitive"})


def element(tag: str, name: str = "", depth: int = 1, **more: Any) -> Element:
    plain = {"role": "", "states": SHOWN, "box": Rect(10, 20, 30, 40), "application": "app", "pid": 7}
    return Element(**{"ref": "e1", "name": name, "native_role": tag, "depth": depth, **plain, **more})


WINDOW = element("frame", "Window", 0)


def parsed(*elements: Element) -> ET.Element:
    return ET.fromstring(accessibility_xml(Elements(elements)))


def rows(*elements: Element) -> list[list[str]]:
    header, *lines = accessibility_table(Elements(elements)).split("\n")
    assert header == "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
    return [line.split("\t") for line in lines]


def test_the_tree_is_of_applications_and_their_windows() -> None:
    other = {"application": "other", "pid": 8}
    root = parsed(
        WINDOW,
        element("panel", depth=1),
        element("push-button", "OK", depth=2),
        element("frame", "Second", depth=0),
        element("frame", "Third", depth=0, **other),
        element("label", "Text", depth=3, **other),
    )
    assert root.tag == "desktop-frame"
    assert [(each.tag, each.get("name")) for each in root] == [("application", "app"), ("application", "other")]
    assert [each.get("name") for each in root[0]] == ["Window", "Second"]
    assert [each.get("name") for each in root.iter("push-button")] == ["OK"]
    assert root.find("application/frame/panel/push-button") is not None
    assert root.find("application[2]/frame/label") is not None
    assert parsed().tag == "desktop-frame"


def test_a_node_has_what_osworlds_has() -> None:
    states = SHOWN | {"single-line", "has-tooltip", "disabled"}
    given_ = element("slider", 'A "name" <&>\n', text="what\n<is> written", value=2.5, states=states)
    node = parsed(WINDOW, given_)[0][0][0]
    assert (node.tag, node.get("name"), node.text) == ("slider", 'A "name" <&>\n', "what\n<is> written")
    assert node.get(f"{{{NS['cp']}}}screencoord") == "(10, 20)"
    assert node.get(f"{{{NS['cp']}}}size") == "(30, 40)"
    assert node.get(f"{{{NS['val']}}}value") == "2.5"
    told = {key.partition("}")[2] for key, value in node.items() if NS["st"] in key and value == "true"}
    assert told == {"visible", "showing", "enabled", "sensitive", "single_line", "has_tooltip"}, (
        "disabled is no state of AT-SPI's"
    )
    hidden = parsed(WINDOW, element("slider", states=SHOWN - {"showing"}))[0][0][0]
    assert hidden.get(f"{{{NS['cp']}}}size") is None
    assert parsed(WINDOW, element("slider", box=None))[0][0][0].get(f"{{{NS['cp']}}}size") is None


@given(st.text(), st.text(), st.text())
def test_whatever_applications_say_the_xml_is_whole_and_each_row_is_one(name: str, text: str, application: str) -> None:
    hostile = element("push-button", name, text=text, application=application)
    root = parsed(element("frame", "Window", 0, application=application), hostile)
    assert len(list(root.iter())) == 4
    for row in rows(hostile):
        assert (len(row), row[0]) == (7, "push-button")


def test_a_text_cannot_begin_a_row() -> None:
    hostile = element("push-button", "OK\nlabel\tforged", text='more\n"quoted"')
    assert rows(hostile) == [["push-button", "OK label forged", '"more ""quoted"""', "", "", "(10, 20)", "(30, 40)"]]
    table = accessibility_table(Elements((hostile,)))
    assert list(csv.reader(io.StringIO(table), delimiter="\t"))[1][2] == 'more "quoted"'


@pytest.mark.parametrize(
    ("given_", "there"),
    [
        (element("push-button", "OK"), True),
        (element("toggle-button", "OK"), True),
        (element("menu-item", "OK"), True),
        (element("document-web", "OK"), True),
        (element("text", text="written"), True),
        (element("panel", "OK"), False),
        (element("page-tab", "OK"), False),
        (element("push-button"), False),
        (element("push-button", "OK", states=SHOWN - {"showing"}), False),
        (element("push-button", "OK", states=SHOWN - {"visible"}), False),
        (element("push-button", "OK", states=SHOWN - {"enabled"}), False),
        (element("push-button", "OK", states=SHOWN - {"enabled"} | {"checkable"}), True),
        (element("push-button", "OK", box=Rect(-1, 5, 30, 40)), False),
        (element("push-button", "OK", box=Rect(0, 0, 0, 40)), False),
        (element("push-button", "OK", box=None), False),
    ],
)
def test_the_table_has_what_osworlds_agents_keep(given_: Element, there: bool) -> None:  # noqa: FBT001
    assert bool(rows(given_)) == there


def test_what_says_nothing_is_quoted_as_osworld_does() -> None:
    assert rows(element("push-button", "OK"))[0][2] == '""'


def test_only_elements_are_taken() -> None:
    with pytest.raises(ActionError):
        accessibility_xml("tree")  # type: ignore[arg-type]
    with pytest.raises(ActionError):
        accessibility_table([])  # type: ignore[arg-type]


@pytest.fixture
def puppet(tmp_path: Path) -> Iterator[tuple[deskhand.Desktop, Puppet]]:
    with deskhand.launch(size=(800, 600)) as desktop:
        puppet = Puppet(desktop, tmp_path / "socket")
        yield desktop, puppet
        os.kill(puppet.program.pid, signal.SIGKILL)
        puppet.close()


def test_a_real_application(puppet: tuple[deskhand.Desktop, Puppet]) -> None:
    desktop, program = puppet
    program.run("button('Save'); check('Loud', 20, 80); entry('Name', 20, 140, 'Ada')")
    desktop.find("textbox", "Name").element()
    save = desktop.find("button", "Save").element()
    elements = desktop.elements()
    root = ET.fromstring(accessibility_xml(elements))
    (node,) = (each for each in root.iter("push-button") if each.get("name") == "Save")
    assert save.box is not None
    assert node.get(f"{{{NS['cp']}}}screencoord") == f"({save.box.x}, {save.box.y})"
    assert node.get(f"{{{NS['st']}}}focusable") == "true"
    lines = accessibility_table(elements).split("\n")
    assert f'push-button\tSave\t""\t\t\t({save.box.x}, {save.box.y})\t({save.box.width}, {save.box.height})' in lines
    assert any(line.startswith("text\tName\tAda\t") for line in lines)
    assert any(line.startswith("check-box\tLoud\t") for line in lines)
