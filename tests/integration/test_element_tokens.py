"""`python -m bench.element_tokens`: that it plays, counts and reports; never how much anything costs."""

from __future__ import annotations

import pytest

from bench.element_tokens import CHANGES, MARKERS, PARTS, PICTURES, WHOLE, anthropic, block, measure
from bench.element_tokens import openai_patches as patches
from bench.element_tokens import openai_tiles as tiles
from bench.figures import Report
from bench.tables import into
from conftest import need
from deskhand import Size


@pytest.mark.parametrize(
    ("count", "width", "height", "tokens"),
    [
        (anthropic, 200, 200, 54),
        (anthropic, 1000, 1000, 1334),
        (anthropic, 1092, 1092, 1590),
        (patches, 1024, 1024, 1024),
        (patches, 1025, 1, 33),
        (tiles, 1024, 1024, 70 + 4 * 140),
        (tiles, 2048, 4096, 70 + 6 * 140),
        (tiles, 512, 512, 70 + 140),
    ],
)
def test_a_picture_costs_what_is_published(count: object, width: int, height: int, tokens: int) -> None:
    assert callable(count)
    assert count(Size(width, height)) == tokens


def test_an_episode_is_counted_step_by_step() -> None:
    need("mousepad", "mousepad")
    (part,) = (part for part in PARTS if part.name == "mousepad")
    report = measure([part], len)
    rows = {row.case: row for row in report.of("tokens/mousepad")}
    assert set(rows) == {WHOLE, CHANGES, *PICTURES}
    assert {row.n for row in rows.values()} == {len(part.steps)}
    assert 0 < rows[CHANGES].counts["sum"] < rows[WHOLE].counts["sum"]
    # The one window is the same throughout: what has changed is never longer than the whole.
    assert rows[CHANGES].counts["begun"] > 0
    text = block(Report.from_dict(report.to_dict()))
    assert f"{rows[CHANGES].counts['sum']:,.0f}" in text
    assert into(f"a\n{MARKERS[0]}\n{MARKERS[1]}\nb\n", text, MARKERS).startswith("a\n")


def test_all_parts_make_thirty_steps() -> None:
    assert sum(len(part.steps) for part in PARTS) == 30
