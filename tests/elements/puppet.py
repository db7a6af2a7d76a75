"""The test's side of a puppet: starts it on a desktop, and has it run code."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from integration.apps import until

if TYPE_CHECKING:
    import deskhand

_SYSTEM_PYTHON = "/usr/bin/python3"


class Puppet:
    """A program whose widgets the test makes, and which tells what happened to them."""

    def __init__(self, desktop: deskhand.Desktop, path: Path, name: str = "puppet_gtk.py") -> None:
        self._path = path
        source = Path(__file__).with_name(name)
        self.program = desktop.start([_SYSTEM_PYTHON, str(source), str(path)], timeout=30)
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
        return until(lambda: what in self.told, 10)

    def close(self) -> None:
        """Let go of it; it ends with its desktop."""
        self._lines.close()
        self._socket.close()
