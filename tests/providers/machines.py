"""Desktops with a machine of their own, as far as commands go, and everything at them that runs commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import AsyncDesktop, AsyncShell, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.machine.host_session import HostSession, host_environment
from deskhand.policy.guard import Guard
from deskhand.providers.session import AsyncModelSession, ModelSession

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Machine:
    """A machine of a desktop's own, as far as commands go: this one, in a directory of the test's."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env: dict[str, str] = {}

    def session(self, *, cwd: str | None, env: Mapping[str, str] | None, once: bool) -> HostSession:
        del once
        environment = host_environment({}, display=None, xauthority=None, extra={**self.env, **(env or {})})
        return HostSession(cwd=cwd or str(self.home), env=environment)

    @property
    def files(self) -> list[str]:
        """What commands have left in its directory."""
        return sorted(path.name for path in self.home.iterdir())


def a_desktop(machine: Machine) -> Desktop:
    """A desktop that has `machine`; its end is the end of all its shells."""
    return Desktop(MemoryBackend(), inside=machine)  # type: ignore[arg-type] # no files are asked for


def _governed(desktop: Desktop) -> Desktop:
    return desktop.also(Guard(ask=lambda *_: True))


KINDS: dict[str, Callable[[Desktop], Any]] = {
    "session": lambda desktop: desktop.machine.open_shell(),
    "async session": lambda desktop: AsyncShell(desktop.machine.open_shell()),
    "governed session": lambda desktop: _governed(desktop).machine.open_shell(),
    "async governed session": lambda desktop: AsyncShell(_governed(desktop).machine.open_shell()),
    "desktop": lambda desktop: desktop,
    "model session": ModelSession,
    "async desktop": AsyncDesktop,
    "async model session": AsyncModelSession,
    "judged": _governed,
    "async judged": lambda desktop: AsyncDesktop(_governed(desktop)),
    "governed model session": lambda desktop: ModelSession(_governed(desktop)),
}
"""What a provider is given that runs commands, by what it is."""
