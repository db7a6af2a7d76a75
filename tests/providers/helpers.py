"""What tests of providers share."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from deskhand.machine.host_session import HostSession, host_environment
from deskhand.machine.interface import CommandResult, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType, TracebackType

EXAMPLES = Path(__file__).parents[2] / "examples"
LONGEST = 40


def load_example(name: str) -> ModuleType:
    """A program of `examples/`, as a module; none may be longer than a reader has patience for."""
    path = EXAMPLES / f"{name}.py"
    assert len(path.read_text().splitlines()) <= LONGEST, path
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def streamed(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Server-sent events, each of its type, as httpx makes a response of them."""
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return {"headers": {"content-type": "text/event-stream"}, "content": "".join(lines).encode()}


class LocalSession:
    """A bash that stays: what is set by one command is there for the next."""

    def __init__(self) -> None:
        self._bash = self._start()

    def _start(self) -> subprocess.Popen[str]:
        command = ["bash", "--noprofile", "--norc"]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, command: str, *, timeout: float) -> CommandResult:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        killer = threading.Timer(timeout, self._bash.kill)
        killer.start()
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n=%d=\\n' $?\n")
        self._bash.stdin.flush()
        lines = []
        for line in self._bash.stdout:
            if line.startswith("=") and line.endswith("=\n"):
                break
            lines.append(line)
        killer.cancel()
        return CommandResult("".join(lines).removesuffix("\n"), "", int(line.strip("=\n")))

    def restart(self) -> None:
        self.close()
        self._bash = self._start()

    def close(self) -> None:
        self._bash.kill()
        self._bash.wait(10)
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.close()
        self._bash.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Bash:
    """Runs each command with bash, in a directory of the test's; as a desktop's machine it opens sessions there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ran: list[str] = []

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        return self.shell(command, timeout=timeout, cwd=None, env=None, limit=1 << 20)

    def shell(
        self, command: str, *, timeout: float, cwd: str | None, env: Mapping[str, str] | None, limit: int
    ) -> CommandResult:
        assert limit > 0
        self.ran.append(command)
        done = subprocess.run(
            ["timeout", "--foreground", str(timeout), "bash", "-c", command],
            cwd=cwd or self.home,
            env={"PATH": "/usr/bin:/bin", **(env or {})},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        code = None if done.returncode == 124 else done.returncode
        return CommandResult(done.stdout, done.stderr, code, outcome_of(code, timed_out=code is None))

    def session(self, *, cwd: str | None, env: Mapping[str, str] | None, once: bool) -> HostSession:
        del once
        environment = host_environment({}, display=None, xauthority=None, extra=env)
        return HostSession(cwd=cwd or str(self.home), env=environment)
