"""What of ours an engine has is removed, also while somebody else removes it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from docker import errors

from deskhand.errors import BackendError
from deskhand.launchers.docker import leftovers


class Going:
    """A network whose container is marked for removal, and answers so for some time."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.removed = False

    def inspect_network(self, _network: str) -> dict[str, Any]:
        return {"Containers": {"one": {}} if self.refusals else {}}

    def disconnect_container_from_network(self, _container: str, _network: str, *, force: bool) -> None:
        assert force
        self.refusals -= 1
        raise errors.APIError(
            "Container one is marked for removal and cannot be connected or disconnected to the network"
        )

    def remove_network(self, _network: str) -> None:
        self.removed = True


def test_a_container_that_is_just_going_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_GOING_PERIOD", 0.0)
    going = Going(3)
    engine: Any = SimpleNamespace(api=going, errors=errors)
    assert leftovers._remove_network(engine, "net")
    assert going.removed


def test_an_engine_that_goes_on_refusing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_GOING_LIMIT", 0.0)
    engine: Any = SimpleNamespace(api=Going(1 << 30), errors=errors)
    with pytest.raises(BackendError, match="marked for removal"):
        leftovers._remove_network(engine, "net")
