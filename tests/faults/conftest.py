"""Each fault test has a runtime directory and a mark of its own, so that what it leaves can be told from others' doings."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from faults.helpers import MARK
from faults.scale import TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture
def runtime(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where deskhand keeps its files during this test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    return short / "deskhand"


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What every process started during this test carries in its environment."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


@pytest.fixture
def driver_environment(environment: dict[str, str], runtime: Path, mark: str) -> dict[str, str]:
    """What a driver in a process of its own gets: the test's own home, runtime directory and mark."""
    return {**os.environ, **environment, "XDG_RUNTIME_DIR": str(runtime.parent), MARK: mark}
