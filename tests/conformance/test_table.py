"""The documents print the table that the tests obey."""

from __future__ import annotations

from conformance.servers import FEATURES, LACKS
from conformance.table import printed, table


def test_the_page_has_the_table() -> None:
    assert printed() == table()


def test_every_lack_is_a_feature() -> None:
    assert {feature for lacks in LACKS.values() for feature in lacks} <= set(FEATURES)
