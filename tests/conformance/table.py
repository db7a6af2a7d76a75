"""The table of what a server cannot do, in docs/servers.md. `PYTHONPATH=tests python -m conformance` writes it."""

from __future__ import annotations

from pathlib import Path

from conformance.servers import FEATURES, LACKS

PAGE = Path(__file__).parents[2] / "docs" / "servers.md"
_BEGIN, _END = "<!-- servers -->\n", "<!-- /servers -->\n"

_TITLES = {
    "x11": "X11",
    "xvnc": "Xvnc 1.12",
    "x0tigervnc": "x0vncserver 1.12",
    "x11vnc": "x11vnc 0.9.16",
    "wayvnc": "wayvnc 0.5",
}


def table() -> str:
    """Markdown."""
    rows = [["", *_TITLES.values()], ["---"] * (len(_TITLES) + 1)]
    for feature, title in FEATURES.items():
        lacks = (LACKS[name].get(feature) for name in _TITLES)
        rows.append([title, *("✓" if lack is None else f"✗ {lack}" for lack in lacks)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def printed() -> str:
    """What the page has."""
    return PAGE.read_text().partition(_BEGIN)[2].partition(_END)[0]


def write() -> None:
    """Put the table into the page."""
    before, begin, rest = PAGE.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    PAGE.write_text(before + begin + table() + end + after)
