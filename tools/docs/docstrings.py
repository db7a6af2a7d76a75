"""Examples in docstrings as code, for the site: an extension of griffe, which reads the docstrings.

griffe knows sections named `Examples` only, and Markdown takes `>>>` after a list for quotes.
"""

from __future__ import annotations

import re

import griffe

_SECTION = re.compile(r"^( *)Example:$", re.MULTILINE)
_SESSION = re.compile(r"^ +(?:>>>|\$) .*(?:\n +\S.*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Names the sections as griffe does, and fences what is in none."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change a docstring before it is parsed."""
        if obj.docstring is None:
            return
        text = _SECTION.sub(r"\1Examples:", obj.docstring.value)
        if "Examples:" not in text:
            text = _SESSION.sub(_fenced, text)
        obj.docstring.value = text


def _fenced(session: re.Match[str]) -> str:
    lines = session[0].splitlines()
    depth = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(["```pycon", *(line[depth:] for line in lines), "```"])
