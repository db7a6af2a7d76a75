"""The roles and states of elements: the numbers of AT-SPI, its names for them, and the names of ARIA.

The numbers are those of `AtspiRole` and `AtspiStateType` in `atspi-constants.h` of at-spi2-core 2.46. This module owns the
tables.
"""

from __future__ import annotations

ROLES = (
    "invalid", "accelerator-label", "alert", "animation", "arrow", "calendar", "canvas", "check-box", "check-menu-item",
    "color-chooser", "column-header", "combo-box", "date-editor", "desktop-icon", "desktop-frame", "dial", "dialog",
    "directory-pane", "drawing-area", "file-chooser", "filler", "focus-traversable", "font-chooser", "frame",
    "glass-pane", "html-container", "icon", "image", "internal-frame", "label", "layered-pane", "list", "list-item",
    "menu", "menu-bar", "menu-item", "option-pane", "page-tab", "page-tab-list", "panel", "password-text", "popup-menu",
    "progress-bar", "push-button", "radio-button", "radio-menu-item", "root-pane", "row-header", "scroll-bar",
    "scroll-pane", "separator", "slider", "spin-button", "split-pane", "status-bar", "table", "table-cell",
    "table-column-header", "table-row-header", "tearoff-menu-item", "terminal", "text", "toggle-button", "tool-bar",
    "tool-tip", "tree", "tree-table", "unknown", "viewport", "window", "extended", "header", "footer", "paragraph",
    "ruler", "application", "autocomplete", "editbar", "embedded", "entry", "chart", "caption", "document-frame",
    "heading", "page", "section", "redundant-object", "form", "link", "input-method-window", "table-row", "tree-item",
    "document-spreadsheet", "document-presentation", "document-text", "document-web", "document-email", "comment",
    "list-box", "grouping", "image-map", "notification", "info-bar", "level-bar", "title-bar", "block-quote", "audio",
    "video", "definition", "article", "landmark", "log", "marquee", "math", "rating", "timer", "static", "math-fraction",
    "math-root", "subscript", "superscript", "description-list", "description-term", "description-value", "footnote",
    "content-deletion", "content-insertion", "mark", "suggestion", "push-button-menu", "switch",
)  # fmt: skip
"""AT-SPI's names, by number."""

STATES = (
    "invalid", "active", "armed", "busy", "checked", "collapsed", "defunct", "editable", "enabled", "expandable",
    "expanded", "focusable", "focused", "has-tooltip", "horizontal", "iconified", "modal", "multi-line",
    "multiselectable", "opaque", "pressed", "resizable", "selectable", "selected", "sensitive", "showing", "single-line",
    "stale", "transient", "vertical", "visible", "manages-descendants", "indeterminate", "required", "truncated",
    "animated", "invalid-entry", "supports-autocompletion", "selectable-text", "is-default", "visited", "checkable",
    "has-popup", "read-only",
)  # fmt: skip
"""AT-SPI's names, by bit."""

# ARIA's words (WAI-ARIA 1.2, "Definition of Roles") for AT-SPI's, where they differ.
_ARIA = {
    "alert": "alert",
    "block-quote": "blockquote",
    "check-box": "checkbox",
    "check-menu-item": "menuitemcheckbox",
    "color-chooser": "dialog",
    "column-header": "columnheader",
    "combo-box": "combobox",
    "document-email": "document",
    "document-frame": "document",
    "document-presentation": "document",
    "document-spreadsheet": "document",
    "document-text": "document",
    "document-web": "document",
    "entry": "textbox",
    "file-chooser": "dialog",
    "filler": "generic",
    "font-chooser": "dialog",
    "frame": "window",
    "grouping": "group",
    "icon": "img",
    "image": "img",
    "info-bar": "status",
    "label": "text",
    "landmark": "region",
    "level-bar": "meter",
    "list-box": "listbox",
    "list-item": "listitem",
    "menu": "menuitem",
    "menu-bar": "menubar",
    "menu-item": "menuitem",
    "notification": "alert",
    "page-tab": "tab",
    "page-tab-list": "tablist",
    "panel": "generic",
    "password-text": "textbox",
    "popup-menu": "menu",
    "progress-bar": "progressbar",
    "push-button": "button",
    "push-button-menu": "button",
    "radio-button": "radio",
    "radio-menu-item": "menuitemradio",
    "redundant-object": "generic",
    "row-header": "rowheader",
    "scroll-bar": "scrollbar",
    "scroll-pane": "generic",
    "section": "generic",
    "spin-button": "spinbutton",
    "split-pane": "generic",
    "static": "text",
    "status-bar": "status",
    "table-cell": "cell",
    "table-column-header": "columnheader",
    "table-row": "row",
    "table-row-header": "rowheader",
    "text": "textbox",
    "toggle-button": "button",
    "tool-bar": "toolbar",
    "tool-tip": "tooltip",
    "tree-item": "treeitem",
    "tree-table": "treegrid",
    "unknown": "generic",
    "viewport": "generic",
}

ARIA_ROLES = set(_ARIA.values())
"""ARIA's words for what AT-SPI calls otherwise."""

GENERIC = {"generic", "root-pane", "layered-pane", "glass-pane", "extended", "invalid"}
"""Roles that only hold other elements."""

CLIPPING = {"document-frame", "document-web", "scroll-pane", "viewport"}
"""AT-SPI's names of elements that scroll: each shows a part of what is in it."""

UNCLIPPED = {"combo-box", "menu", "menu-bar", "menu-item", "popup-menu", "tool-tip"}
"""AT-SPI's names of what may have a window of its own for what is in it."""


def aria_role(name: str) -> str:
    """ARIA's word for a role of AT-SPI's; AT-SPI's own where ARIA has none."""
    return _ARIA.get(name, name)


def states_of(bits: int) -> frozenset[str]:
    """The names of the states that are set; `disabled` where an element is neither enabled nor sensitive."""
    found = {name for bit, name in enumerate(STATES) if bits >> bit & 1}
    if not found & {"enabled", "sensitive"}:
        found.add("disabled")
    return frozenset(found)
