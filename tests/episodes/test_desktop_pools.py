"""What the pools of a run find out of their desktops before a run begins."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from deskhand.episodes.play.pools import DesktopPools
from deskhand.errors import EpisodeError
from episodes.plays import Press, memory_desktop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand.machine.interface import CommandResult


class Here:
    """A desktop whose commands run on this machine, with real bash."""

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs

    @contextlib.contextmanager
    def acquire(self, timeout: float | None = None) -> Iterator[Here]:
        del timeout
        yield self

    @property
    def machine(self) -> Here:
        """Its machine is itself."""
        return self

    def run(self, command: str) -> CommandResult:
        with memory_desktop() as desktop:
            if self._hangs:
                return desktop.host.run(f"sleep 60\n{command}", timeout=0.1)
            return desktop.host.run(command)


def fleet_of(programs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, *, hangs: bool = False) -> DesktopPools:
    class Needs(Press):
        pass

    Needs.programs = programs
    monkeypatch.setattr(DesktopPools, "places", lambda *_: Here(hangs=hangs))
    return DesktopPools([Needs()], backend="docker", desktops=1)


def test_a_program_is_looked_for_by_its_name_whatever_that_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = tmp_path / "made"
    odd = ("no such program", "it's none", f"$(touch {made})", "none; exit 3", "-v")
    pools = fleet_of(("bash", *odd, "no-such-program"), monkeypatch)
    assert pools.missing() == {"press": [*odd, "no-such-program"]}
    assert not made.exists()


def test_a_desktop_that_does_not_say_what_it_lacks_is_not_taken_for_one_that_lacks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = fleet_of(("bash",), monkeypatch, hangs=True)
    with pytest.raises(EpisodeError, match="deskhand/desktop: its missing programs cannot be listed: timeout"):
        pools.missing()
