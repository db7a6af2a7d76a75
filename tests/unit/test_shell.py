"""A shell over a session that a test scripts: what no real one does at will."""

from __future__ import annotations

from queue import SimpleQueue

import pytest

from deskhand.machine.shell import Shell
from deskhand.machine.transcript import ERRORS, OUTPUT


class Dying:
    """A session that begins a command and dies; who is asked how it ended does not know at first."""

    def __init__(self, unknown: int, code: int | None) -> None:
        self._answers = [None] * unknown + [code]
        self._said: SimpleQueue[list[tuple[int, bytes]]] = SimpleQueue()

    def write(self, data: bytes, timeout: float) -> int:
        del timeout
        start = data.partition(b"\n")[0] + b"\n"
        self._said.put([(OUTPUT, start + b"said"), (ERRORS, start)])
        self._said.put([])
        return len(data)

    def read(self) -> list[tuple[int, bytes]]:
        return self._said.get()

    def exit_status(self) -> int | None:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def end(self) -> None:
        pass

    def leave(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("unknown", [0, 1, 6])
def test_how_it_ended_may_be_known_later_than_that_it_has(unknown: int) -> None:
    """As an engine tells it: a command's streams end before its state does."""
    result = Shell(lambda: Dying(unknown, 137), once=True).run("kill -9 $$", timeout=60)
    assert (result.outcome, result.exit_code, result.stdout) == ("error", 137, "said")


def test_how_it_ended_may_never_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.machine.shell._STATUS_LIMIT", 0.1)
    result = Shell(lambda: Dying(0, None), once=True).run("kill -9 $$", timeout=60)
    assert (result.outcome, result.exit_code, result.stdout) == ("error", None, "said")
