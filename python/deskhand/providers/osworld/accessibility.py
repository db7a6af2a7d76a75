"""The accessibility tree as OSWorld has it: its XML, and the table that its agents make of that. Pure.

The formats are those of OSWorld (https://github.com/xlang-ai/OSWorld): `_create_atspi_node` and `get_accessibility_tree` of
`desktop_env/server/main.py`, `judge_node` of `mm_agents/accessibility_tree_wrap/heuristic_retrieve.py` and
`linearize_accessibility_tree` of `mm_agents/agent.py`, for Ubuntu.

What an `Element` does not know is left out of the XML: the attributes `attr:`, the least, greatest and step of a value, what
actions are described as, and whether an element is an image or has a selection. What does not show is not in it either; in
OSWorld's it is, and its agents drop it. In the table a name or text stays on its line, where in OSWorld's it may begin rows:
both are untrusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from deskhand._core.arguments import expect
from deskhand._core.elements import Element, Elements

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["accessibility_table", "accessibility_xml"]

_NAMESPACES = {
    "st": "https://accessibility.ubuntu.example.org/ns/state",
    "attr": "https://accessibility.ubuntu.example.org/ns/attributes",
    "cp": "https://accessibility.ubuntu.example.org/ns/component",
    "doc": "https://accessibility.ubuntu.example.org/ns/document",
    "docattr": "https://accessibility.ubuntu.example.org/ns/document/attributes",
    "txt": "https://accessibility.ubuntu.example.org/ns/text",
    "val": "https://accessibility.ubuntu.example.org/ns/value",
    "act": "https://accessibility.ubuntu.example.org/ns/action",
}
# What XML 1.0 cannot hold, and the replacement characters that OSWorld takes out.
_NO_TEXT = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffb\U00010000-\U0010ffff]")
_HEADER = "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
# The tags that the table has: these, and what begins or ends so.
_TAGS = frozenset(
    """
    alert canvas check-box combo-box entry icon image paragraph scroll-bar section slider static table-cell terminal text
    """.split()  # noqa: SIM905 # a list of so many words
)
_BEGINNING = "document"
_ENDINGS = (
    "item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link", "tabelement", "textfield", "textarea",
    "menu",
)  # fmt: skip
_USABLE = frozenset({"enabled", "editable", "expandable", "checkable"})


def accessibility_xml(elements: Elements) -> str:
    """What OSWorld's server answers to `/accessibility`: a `desktop-frame` of applications, each of its windows.

    Args:
        elements: What was read; places are in pixels of the screen.
    """
    expect("accessibility_xml: elements", elements, Elements)
    return "".join(_xml(elements))


def _xml(elements: Elements) -> Iterator[str]:
    spaces = "".join(f" xmlns:{prefix}={quoteattr(uri)}" for prefix, uri in _NAMESPACES.items())
    yield f"<desktop-frame{spaces}>"
    # What is open below the desktop: the depth of each, and its tag.
    opened: list[tuple[int, str]] = []
    application: tuple[int, str] | None = None
    for element in elements:
        while opened and opened[-1][0] >= element.depth:
            yield f"</{opened.pop()[1]}>"
        if element.depth == 0 and application != (element.pid, element.application):
            if application is not None:
                yield "</application>"
            application = (element.pid, element.application)
            yield f"<application name={_attribute(element.application)}>"
        yield _opening(element)
        opened.append((element.depth, _tag(element)))
    while opened:
        yield f"</{opened.pop()[1]}>"
    if application is not None:
        yield "</application>"
    yield "</desktop-frame>"


def _opening(element: Element) -> str:
    words = [f"<{_tag(element)} name={_attribute(element.name)}"]
    words += [f'st:{state.replace("-", "_")}="true"' for state in sorted(_states(element))]
    if (place := _place(element)) is not None:
        words += [f'cp:screencoord="{place[0]}"', f'cp:size="{place[1]}"']
    if element.value is not None:
        words.append(f'val:value="{element.value}"')
    return f"{' '.join(words)}>{escape(_text(element))}"


def accessibility_table(elements: Elements) -> str:
    """What OSWorld's agents show a model of that: a line with tabs for each element that shows, can be used and says something.

    The columns for the class and the description are empty, as they are in OSWorld's on Ubuntu.

    Args:
        elements: As of `accessibility_xml`.
    """
    expect("accessibility_table: elements", elements, Elements)
    lines = [_HEADER]
    for element in elements:
        place = _place(element)
        if place is None or not _in_table(element):
            continue
        text = _line(_text(element))
        quoted = text.replace('"', '""')
        shown = f'"{quoted}"' if '"' in text or not text else text
        lines.append("\t".join((_tag(element), _line(element.name), shown, "", "", *place)))
    return "\n".join(lines)


def _in_table(element: Element) -> bool:
    tag = _tag(element)
    if not (tag in _TAGS or tag.startswith(_BEGINNING) or tag.endswith(_ENDINGS)):
        return False
    box = element.box
    if box is None or min(box.x, box.y) < 0 or box.empty:
        return False
    return bool(element.states & _USABLE) and bool(element.name or _text(element))


def _place(element: Element) -> tuple[str, str] | None:
    box = element.box
    if box is None or not element.states >= {"visible", "showing"}:
        return None
    return f"({box.x}, {box.y})", f"({box.width}, {box.height})"


def _states(element: Element) -> frozenset[str]:
    # AT-SPI has no such state: it is ours.
    return element.states - {"disabled"}


def _tag(element: Element) -> str:
    return element.native_role or "unknown"


def _text(element: Element) -> str:
    return _NO_TEXT.sub("", element.text or "")


def _line(text: str) -> str:
    return " ".join(_NO_TEXT.sub("", text).split())


def _attribute(text: str) -> str:
    return quoteattr(_NO_TEXT.sub("", text))
