"""The test's side of a puppet: starts it on a desktop, and has it run code."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.apps import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import deskhand

_SYSTEM_PYTHON = "/usr/bin/python3"
# What imports a toolkit, and the package that has it.
_TOOLKITS = {
    "GTK 3": ("import gi; gi.require_version('Gtk', '3.0')", "gir1.2-gtk-3.0"),
    "GTK 4": ("import gi; gi.require_version('Gtk', '4.0')", "gir1.2-gtk-4.0"),
    "Qt 5": ("import PyQt5.QtWidgets", "python3-pyqt5"),
    "Qt 6": ("import PyQt6.QtWidgets", "python3-pyqt6"),
}


@cache
def _need(toolkit: str) -> None:
    statement, package = _TOOLKITS[toolkit]
    if subprocess.run([_SYSTEM_PYTHON, "-c", statement], check=False, capture_output=True).returncode:
        pytest.fail(f"{toolkit} is not installed: apt-get install {package}")


@contextlib.contextmanager
def shown(desktop: deskhand.Desktop, path: Path, *, code: str = "", toolkit: str = "GTK 3") -> Iterator[Puppet]:
    """A puppet that has run `code`; afterwards it has ended and its window is gone."""
    puppet = Puppet(desktop, path, toolkit)
    if code:
        puppet.run(code)
    yield puppet
    puppet.end()
    desktop.find("window", "Puppet").wait_for("hidden", timeout=20)


class Puppet:
    """A program whose widgets the test makes, and which tells what happened to them."""

    def __init__(self, desktop: deskhand.Desktop, path: Path, toolkit: str = "GTK 3") -> None:
        self.toolkit = toolkit
        kind, version = toolkit.split()
        _need(toolkit)
        source = Path(__file__).with_name(f"puppet_{kind.lower()}.py")
        self.program = desktop.start([_SYSTEM_PYTHON, str(source), str(path), version], timeout=30)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def run(self, code: str) -> Any:
        """Run a statement, or evaluate an expression."""
        self._socket.sendall(json.dumps(code).encode() + b"\n")
        return json.loads(self._lines.readline())

    @property
    def told(self) -> list[Any]:
        """What happened to its widgets."""
        found: list[Any] = self.run("told")
        return found

    def tells(self, what: list[Any]) -> bool:
        """Whether that has happened, soon."""
        return until(lambda: what in self.told)

    def end(self) -> None:
        """End it."""
        os.kill(self.program.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let go of it; it ends with its desktop."""
        self._lines.close()
        self._socket.close()
