"""The common parts of tasks with a browser: the look of pages, and a person's way of using one.

It has no task and no content of pages.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from deskhand.actions import KeyPress, LeftClick, Scroll, Type
from deskhand.episodes.tasks.task import Grade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.episodes.tasks.browser import Page
    from deskhand.episodes.tasks.context import TaskContext

_STYLE = """
* { box-sizing: border-box; font-family: "DejaVu Sans", sans-serif; transition: none; }
body { margin: 20px 32px; font-size: 15px; line-height: 1.45; color: #1d2630; background: #fbfbf8; }
h1 { font-size: 24px; margin: 0 0 14px; } h2 { font-size: 18px; margin: 18px 0 6px; }
a { color: #14539a; } nav a { margin-right: 18px; }
table { border-collapse: collapse; margin: 10px 0; } th, td { border: 1px solid #b9c2cb; padding: 4px 12px; text-align: left; }
th { background: #e6ebf0; } td.number { text-align: right; }
label { display: block; margin: 8px 0 2px; } label.beside { display: inline-block; margin: 4px 14px 4px 0; }
input[type=text], select, textarea { font-size: 15px; padding: 4px 6px; width: 340px; border: 1px solid #7c8894; }
input, select, textarea { background: #fff; }
button { font-size: 15px; padding: 5px 16px; margin: 10px 8px 4px 0; }
.note { color: #2b6a35; font-weight: bold; }
"""

# In pixels; a notch of the wheel scrolls about half of it.
_MIDDLE = 200

SEND = """
async function send(name, what) {
  const answer = await fetch("/received/" + name, { method: "POST", body: JSON.stringify(what) });
  if (!answer.ok) throw new Error("not received: " + answer.status);
}
"""
"""JavaScript: `send(name, what)` posts data for `received`; its promise is resolved once the data is kept."""


def document(title: str, body: str, script: str = "", style: str = "") -> str:
    """A page with the common look: only fonts of the image, nothing that moves."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><link rel="icon" href="data:,">'
    page = f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}{style}</style></head>"
    return f"{page}<body>{body}<script>{script}</script></body>"


def table(head: Sequence[str], rows: Sequence[Sequence[object]], name: str = "") -> str:
    """A table; numbers are aligned right. Cells that are neither text nor number are HTML."""
    cells = "".join(f"<th>{escape(word)}</th>" for word in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table id="{name}"><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>'


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"<td class=number>{value}</td>"
    return f"<td>{escape(str(value))}</td>"


def click(context: TaskContext, page: Page, selector: str) -> None:
    """Click in the middle of an element."""
    context.desktop.perform(LeftClick(page.centre(selector)))


def fill(context: TaskContext, page: Page, selector: str, text: str) -> None:
    """Click on a field and type, replacing its content; returns when the field has the text."""
    # Not only ctrl+a: in an empty field it selects nothing, and elsewhere the whole page.
    context.desktop.perform(LeftClick(page.centre(selector)), KeyPress(["ctrl", "a"]), Type(text))
    page.until(f"{page.element(selector)}.value === {json.dumps(text)}")


def choose(context: TaskContext, page: Page, selector: str, option: str) -> None:
    """Choose from a list with the keyboard, beginning at its first entry."""
    names = page.evaluate(f"[...{page.element(selector)}.options].map(o => o.text.trim())")
    # A focused list takes keys without being opened.
    context.desktop.perform(LeftClick(page.centre(selector)))
    context.desktop.perform(KeyPress(["Home"]), *[KeyPress(["Down"])] * names.index(option), KeyPress(["Return"]))
    page.until(f"{page.element(selector)}.selectedOptions[0].text.trim() === {json.dumps(option)}")


def scroll_to(context: TaskContext, page: Page, selector: str) -> None:
    """Turn the wheel in the middle of the screen until an element is in the middle of the window, or nothing moves."""
    script = f"(box => box.y + box.height / 2 - innerHeight / 2)({page.element(selector)}.getBoundingClientRect())"
    size = context.desktop.size
    before, off = 0.0, float(page.evaluate(script))
    while abs(off) > _MIDDLE and off != before:
        context.desktop.perform(Scroll((size.width // 2, size.height // 2), distance_xy=(0, round(off))))
        before, off = off, float(page.evaluate(script))


def compared(found: Mapping[str, Any] | None, wanted: Mapping[str, Any], what: str) -> Grade:
    """Success if every wanted value was found; the reason names the differences."""
    if found is None:
        return Grade(0.0, f"{what}: nothing, wanted {dict(wanted)}", {"found": None})
    wrong = [
        f"{name} is {found.get(name)!r}, wanted {value!r}" for name, value in wanted.items() if found.get(name) != value
    ]
    return Grade(0.0 if wrong else 1.0, f"{what}: {'; '.join(wrong) or 'as wanted'}", {"found": dict(found)})
