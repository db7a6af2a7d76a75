"""The list of desktops that run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from deskhand import ActionError
from deskhand.launch import registry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Entry:
    """One that is alive, in a list of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return registry.Entry("mine", ":7", "cookie", str(tmp_path / "d-first"), os.getpid(), "", 1.0)


def test_a_name_is_given_once(entry: registry.Entry) -> None:
    registry.add(entry)
    with pytest.raises(ActionError, match="already"):
        registry.add(replace(entry, display=":8"))
    assert registry.find("mine") == entry
    assert registry.free_name() == "desktop"


def test_who_leaves_late_does_not_take_the_next_one_off_the_list(entry: registry.Entry) -> None:
    registry.add(entry)
    registry.remove(entry)
    assert registry.entries() == []
    successor = replace(entry, directory=entry.directory + "-next")
    registry.add(successor)
    registry.remove(entry)
    assert registry.find("mine") == successor
    registry.remove(replace(successor, socket="since then it was left running"))
    assert registry.find("mine") is None


def test_what_cannot_be_read_is_removed(entry: registry.Entry, tmp_path: Path) -> None:
    registry.add(entry)
    (tmp_path / "deskhand" / "broken.json").write_text("{")
    assert registry.entries() == [entry]
    assert not (tmp_path / "deskhand" / "broken.json").exists()
