"""Containers for tests, from the `minimal` image, which the first test builds and later runs find built."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import Ours, minimal_image
from deskhand.launchers.docker.engine import connect_engine
from faults.scale import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

# Where no package is cached yet, the first test waits for the build.
BUILD_LIMIT = max(900, TIMEOUT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "containers" in item.path.parts:
            item.add_marker(pytest.mark.timeout(BUILD_LIMIT))


@pytest.fixture(scope="package", autouse=True)
def _ours(_apart: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Containers that are made here can be told from others': their files are below this session's directories."""
    Ours.folders = (_apart, tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def image() -> str:
    """The `minimal` image; without an engine this fails and says what to install."""
    return minimal_image()


@pytest.fixture
def engine(image: str) -> Iterator[Engine]:
    """The engine itself, to look from outside."""
    del image
    engine = connect_engine()
    yield engine
    engine.close()


@pytest.fixture
def contained(image: str) -> Iterator[Callable[..., deskhand.Desktop]]:
    """`deskhand.launch("docker")`; what it launched is closed at the end."""
    desktops: list[deskhand.Desktop] = []

    def make(**options: object) -> deskhand.Desktop:
        desktop = deskhand.launch("docker", **{"image": image, **options})  # type: ignore[arg-type] # options of several types
        desktops.append(desktop)
        return desktop

    yield make
    for desktop in desktops:
        desktop.close()


@pytest.fixture(scope="module")
def desktop(image: str) -> Iterator[deskhand.Desktop]:
    """A desktop that the tests of a module share; none of them may harm it."""
    with deskhand.launch("docker", image=image) as desktop:
        yield desktop


@pytest.fixture
def runtime(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where deskhand keeps its files during this test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    return short / "deskhand"


@pytest.fixture
def driver_environment(environment: dict[str, str], short: Path) -> dict[str, str]:
    """What a driver in a process of its own gets: a runtime directory of its own."""
    return {**os.environ, **environment, "XDG_RUNTIME_DIR": str(short)}
