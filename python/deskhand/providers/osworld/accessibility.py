"""The accessibility tree in OSWorld's formats: its XML, and the table that its agents make of it. Pure.

The formats are those of OSWorld (https://github.com/xlang-ai/OSWorld): `_create_atspi_node` and `get_accessibility_tree` of
`desktop_env/server/main.py`, `judge_node` of `mm_agents/accessibility_tree_wrap/heuristic_retrieve.py` and
`linearize_accessibility_tree` of `mm_agents/agent.py`, for Ubuntu.

Some things of OSWorld's XML are not in an `Element`, and so not in ours: the attributes `attr:`, the minimum, maximum and step
of a value, the descriptions of actions, and whether an element is an image or has a selection. Elements that do not show are
left out too; OSWorld has them, and its agents drop them. In the table a name or text stays on its line, while in OSWorld's it
may begin new rows: both are untrusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from deskhand._core.arguments import expect
from deskhand._core.elements import Element, Elements

if TYPE_CHECKING:
    from collections.abc import Iterator

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
# The characters that XML 1.0 cannot contain, and the replacement characters that OSWorld removes.
_NO_TEXT = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffb\U00010000-\U0010ffff]")
_HEADER = "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
# The tags in the table: these, and tags that begin or end like the following.
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
    """The answer of OSWorld's server to `/accessibility`: a `desktop-frame` with the applications and their windows.

    Args:
        elements: The elements; places are in pixels of the screen.
    """
    expect("accessibility_xml: elements", elements, Elements)
    return "".join(_xml(elements))


def _xml(elements: Elements) -> Iterator[str]:
    spaces = "".join(f" xmlns:{prefix}={quoteattr(uri)}" for prefix, uri in _NAMESPACES.items())
    yield f"<desktop-frame{spaces}>"
    # The open elements below the desktop: the depth and the tag of each.
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
    """The table of OSWorld's agents: tab-separated, a line for each element that shows, can be used and has a name or text.

    The columns for the class and the description are empty, as in OSWorld's on Ubuntu.

    Args:
        elements: As for `accessibility_xml`.
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
    # AT-SPI has no such state; deskhand adds it.
    return element.states - {"disabled"}


def _tag(element: Element) -> str:
    return element.native_role or "unknown"


def _text(element: Element) -> str:
    return _NO_TEXT.sub("", element.text or "")


def _line(text: str) -> str:
    return " ".join(_NO_TEXT.sub("", text).split())


def _attribute(text: str) -> str:
    return quoteattr(_NO_TEXT.sub("", text))
