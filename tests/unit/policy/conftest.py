"""A desktop to judge, in memory, with a machine of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pytest

from deskhand import Desktop
from deskhand.backends.memory import MemoryBackend
from unit.policy.judged import Clock, Inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.machine.interface import CommandResult


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend(clock: Clock) -> MemoryBackend:
    backend = MemoryBackend((320, 200), clock=clock)

    def pass_time(seconds: float) -> None:
        clock.now += seconds

    backend.on_wait = pass_time
    return backend


@pytest.fixture
def inside() -> Inside:
    return Inside()


@pytest.fixture
def desktop(backend: MemoryBackend, inside: Inside, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    with Desktop(backend, inside=inside, name="desk", clock=clock) as desktop:  # type: ignore[arg-type] # no session

        class Once:
            """A shell's session is for tests of the shell."""

            def __init__(self, _where: str, what: str, **options: Any) -> None:
                desktop._core.refuse_input(what)
                self.options = options

            def run(self, command: str) -> CommandResult:
                return inside.shell(command, **self.options)

            def interrupt(self) -> None:
                pass

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        def once(_core: object, where: str, what: str, **options: Any) -> Once:
            return Once(where, what, **options)

        # It stands in for a shell.
        monkeypatch.setattr("deskhand.desktop.machine_view.open_shell", once)
        yield desktop
