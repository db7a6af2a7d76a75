"""The messages of the page, as its modules are checked with, are those that the server takes."""

from __future__ import annotations

import json
import re
from importlib import resources

from deskhand.watch import messages

_TYPEDEF = re.compile(r'@typedef \{\{type: "(\w+)"(?:, )?(.*)\}\} \w+$', re.MULTILINE)
# A value of each type that the server takes wherever the type stands.
_VALUES = {"number": 1, "boolean": True, "string": "Enter", "Modifier[]": ["ctrl"], "Button": "left"}


def _typed() -> dict[str, dict[str, str]]:
    """The fields of each message, with their types, as the page's modules know them."""
    text = resources.files("deskhand.watch").joinpath("page/messages.js").read_text("utf-8")
    found = {}
    for kind, fields in _TYPEDEF.findall(text):
        found[kind] = dict(field.split(": ") for field in fields.split(", ") if field)
    return found


def test_the_page_and_the_server_know_the_same_messages() -> None:
    typed = _typed()
    assert set(typed) == set(messages._FIELDS)
    for kind, fields in typed.items():
        values = {name: _VALUES.get(of, of.split('"')[1] if '"' in of else None) for name, of in fields.items()}
        text = json.dumps({"type": kind, **values})
        assert messages.parse(text)["type"] == kind, text
