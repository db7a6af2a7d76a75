"""Ray as `deskhand run` starts it on this machine: who may use its ports, and what is left when its head is killed."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import State
from episodes.ray_plays import SECONDS, with_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds until nothing is left of a run whose head is dead, and until a run has ended.
ORPHANS, LIMIT = 60.0, 240.0
EPISODES = 24
LISTENING = "0A"
UNAUTHORIZED, FORBIDDEN = 401, 403
# Where Ray's dashboard, and the agents that it has on each node, take what is to be run.
PATHS = ("/api/jobs/", "/api/job_agent/jobs/", "/get_or_create_runtime_env")


class Run:
    """One `deskhand run` with X servers, whose processes can be told from others'."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.mark = f"DESKHAND_TEST_RUN={uuid.uuid4().hex}"
        options = ["--agent=episodes.ray_plays:waits", "--engine=ray", "--desktops=2", "--out=run", "--json"]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        own = {"HOME": str(folder), "PYTHONPATH": str(Path(__file__).parent.parent), SECONDS: "0.2"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deskhand", "run", "episodes.ray_plays:Wait", f"--seeds={EPISODES}", *options],
            env={**inherited, **own, **environment, **dict([self.mark.split("=")])},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until_done(self, count: int) -> None:
        """Until so many episodes have been played."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            count -= json.loads(line)["kind"] == "done"
            if count <= 0:
                return
        pytest.fail(f"the run ended too early: {self.process.stderr.read() if self.process.stderr else ''}")

    def processes(self) -> dict[int, str]:
        """Everything that it has started and that still lives."""
        return dict(with_environment(self.mark))

    def end(self) -> tuple[str, str]:
        """What it said until its end."""
        return self.process.communicate(timeout=LIMIT)

    def assert_nothing_is_left(self) -> None:
        """Of desktops and workers; Ray's own agents may outlive a head that was killed."""
        over = time.monotonic()
        while left := {pid: words for pid, words in self.processes().items() if "Agent" not in words}:
            assert time.monotonic() - over < ORPHANS, left
            time.sleep(0.1)


@contextlib.contextmanager
def run(folder: Path, **environment: str) -> Iterator[Run]:
    """A run, and afterwards nothing of it, whatever happened."""
    running = Run(folder, **environment)
    try:
        yield running
    finally:
        for pid in [running.process.pid, *running.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        running.process.communicate()


def listeners(pids: dict[int, str]) -> dict[tuple[str, int], str]:
    """Where these processes listen: address and port, and who."""
    owners = {}
    for pid, words in pids.items():
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    owners[os.readlink(entry)] = words  # noqa: PTH115 # it leads to no path
    found = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and (owner := owners.get(f"socket:[{fields[9]}]")):
                address, _, port = fields[1].partition(":")
                found[_address(address), int(port, 16)] = owner
    return found


def _address(text: str) -> str:
    words = [struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)]
    plain = ipaddress.ip_address(b"".join(words))
    return str(getattr(plain, "ipv4_mapped", None) or plain)


def asked(place: tuple[str, int], path: str, entrypoint: str, token: str | None) -> int | None:
    """The status that a request to run something is answered with; None where nobody speaks HTTP."""
    address, port = place
    connection = http.client.HTTPConnection("127.0.0.1" if address in {"::", "0.0.0.0"} else address, port, timeout=5)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("POST", path, json.dumps({"entrypoint": entrypoint}), headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@pytest.mark.soak
def test_nobody_without_the_token_has_anything_run(tmp_path: Path) -> None:
    """C15: there is no dashboard, and what listens takes no job from whoever has no token, or another one."""
    harm = tmp_path / "harm"
    with run(tmp_path) as running:
        running.until_done(1)
        found = listeners(running.processes())
        assert any("gcs_server" in owner for owner in found.values()), found
        # By default it would be at this port; Ray's own name of its process is a path.
        assert not [(place, owner) for place, owner in found.items() if place[1] == 8265 or "/dashboard.py" in owner]
        # Most speak gRPC, which is no HTTP; an agent of Ray's does.
        answers = {
            (place, path, said): asked(place, path, f"touch {harm}", said)
            for place in found
            for path in PATHS
            for said in (None, "f" * 64)
        }
        assert set(answers.values()) <= {None, UNAUTHORIZED, FORBIDDEN}, (found, answers)
        running.process.send_signal(signal.SIGTERM)
        running.end()
        running.assert_nothing_is_left()
    assert not harm.exists()


@pytest.mark.soak
def test_a_head_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """F36: the run ends and says why, its desktops go, and the next one plays what is left, each episode once."""
    # What nodes give a head to come back, 60 s otherwise.
    with run(tmp_path, RAY_gcs_rpc_server_reconnect_timeout_s="5") as running:
        running.until_done(4)
        (head,) = (pid for pid, words in running.processes().items() if "gcs_server" in words)
        os.kill(head, signal.SIGKILL)
        _, said = running.end()
        assert running.process.returncode == 1
        assert "GCS may have been killed" in said
        running.assert_nothing_is_left()
    ledger: Any = open_ledger(tmp_path / "run" / "episodes.sqlite")
    done = {row.key: row for row in ledger.rows() if row.state == State.DONE}
    assert len(done) >= 4
    with run(tmp_path) as again:
        out, err = again.end()
        assert again.process.returncode == 0, out + err
        again.assert_nothing_is_left()
    rows = ledger.rows()
    ledger.close()
    assert [row.state for row in rows] == [State.DONE] * EPISODES
    # What was done before was not done again.
    assert {row.key: row for row in rows if row.key in done} == done
