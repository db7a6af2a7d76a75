"""What tests of episodes start carries a mark, so that what they leave can be told from others' doings."""

from __future__ import annotations

import uuid

import pytest

from deskhand.episodes.play import attempt
from episodes.plays import QUICK
from faults.helpers import MARK


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What every process started during this test carries in its environment."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A desktop in memory is at rest at once."""
    monkeypatch.setattr(attempt, "_STILL", QUICK)
    monkeypatch.setattr(attempt, "_LAST", QUICK)
