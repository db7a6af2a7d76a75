"""The way of the Docker SDK to an engine's socket, without an engine."""

from __future__ import annotations

import gc
import socket
import warnings
from typing import TYPE_CHECKING

import docker
import pytest
import requests

from deskhand.launchers.docker import engine as engines

if TYPE_CHECKING:
    from pathlib import Path


def test_a_socket_that_cannot_be_connected_is_closed(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that goes between the knock and the request."""
    path = str(short / "engine")
    monkeypatch.setattr(engines, "_knock_at", lambda _: None)
    api = docker.APIClient(base_url=f"unix://{path}", version="1.41")
    api.get_adapter(api.base_url).close()
    api.mount(api.base_url, engines._adapter(path, 1.0, waits=False))
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(path)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(requests.exceptions.ConnectionError):
            api.ping()
        gc.collect()
    assert [str(warning.message) for warning in seen] == []
    api.close()
