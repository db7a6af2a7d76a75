"""A run on two nodes of a Ray cluster, each in a network of its own, while nothing comes through from one to the other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from conformance.packets import FAR, NEAR, NetworkNamespace, PacketLine, Quality
from deskhand.episodes.ledger import open_ledger
from episodes.postgres_server import PostgresServer
from episodes.ray_plays import SECONDS, assert_each_once, signal_all, with_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds until nothing is left of a node that has its network back, and until a run has ended.
ORPHANS, LIMIT = 60.0, 600.0
EPISODES = 600
PORT = 6379


class Cluster:
    """A head at `NEAR` and a node at `FAR` with two desktops each, and a ledger at `NEAR`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.near, self.far = NetworkNamespace(), NetworkNamespace()
        self.postgres = PostgresServer(folder, NEAR)
        self._mark = f"DESKHAND_TEST_CLUSTER_{uuid.uuid4().hex}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
        tests = str(Path(__file__).parent.parent)
        self._environment = {**inherited, **token, "HOME": str(folder), "PYTHONPATH": tests, SECONDS: "0.5"}

    def start(self) -> None:
        self.near.run(self.postgres.start)
        self._ray(self.near, "--head", f"--node-ip-address={NEAR}", f"--port={PORT}", f"--temp-dir={self.folder}/ray")
        self._ray(self.far, f"--address={NEAR}:{PORT}", f"--node-ip-address={FAR}")

    def _ray(self, host: NetworkNamespace, *options: str) -> None:
        command = [str(Path(sys.executable).with_name("ray")), "start", "--num-cpus=0", "--disable-usage-stats"]
        command += ["--resources", '{"desktop": 2}', f"--object-store-memory={80 << 20}", *options]
        started = host.run(
            lambda: subprocess.run(command, env=self._marked(host), capture_output=True, text=True, check=False)
        )
        assert started.returncode == 0, started.stdout + started.stderr

    def run(self) -> subprocess.Popen[str]:
        """`deskhand run`, beside the head."""
        options = [f"--seeds={EPISODES}", "--agent=episodes.ray_plays:waits", "--engine=ray", "--desktops=2", "--json"]
        ledger = ["--out=run", "--ledger", f"postgresql://tester@{NEAR}/postgres?schema=partition"]
        command = [sys.executable, "-m", "deskhand", "run", "episodes.ray_plays:Wait", *options, *ledger]
        environment = {**self._marked(self.near), "RAY_ADDRESS": f"{NEAR}:{PORT}"}
        return self.near.run(
            lambda: subprocess.Popen(command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        )

    def processes(self, host: NetworkNamespace) -> dict[int, str]:
        """What was started there and still lives."""
        return dict(with_environment(f"{self._mark}={self._name(host)}"))

    def end(self) -> None:
        for host in (self.near, self.far):
            signal_all(self.processes(host), signal.SIGKILL)
        self.postgres.stop()

    def _marked(self, host: NetworkNamespace) -> dict[str, str]:
        return {**self._environment, self._mark: self._name(host)}

    def _name(self, host: NetworkNamespace) -> str:
        return "near" if host is self.near else "far"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # Not below pytest's own directory: its paths are too long for Ray's sockets, and closed to PostgreSQL's user.
    folder = Path(tempfile.mkdtemp(prefix="deskhand-ray-"))
    cluster = Cluster(folder)
    try:
        with PacketLine(cluster.near, cluster.far, Quality()) as cluster.line:
            cluster.start()
            yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder)


@pytest.mark.parametrize("seconds", [30, 120])
def test_a_node_that_is_cut_off_for_a_while_loses_nothing(cluster: Cluster, seconds: float) -> None:
    """Half a minute is not noticed; in two Ray gives the node up, and a lease of its episodes runs out."""
    lines: list[dict[str, Any]] = []
    done, over = threading.Event(), threading.Event()

    def read(output: IO[str]) -> None:
        for line in output:
            lines.append(json.loads(line))
            if sum(line["kind"] == "done" for line in lines) == 20:
                done.set()
        over.set()

    with cluster.run() as run:
        threading.Thread(target=read, args=[run.stdout], daemon=True).start()
        assert done.wait(LIMIT), lines
        assert any("Xvfb" in words for words in cluster.processes(cluster.far).values())
        cluster.line.drop()
        assert not over.wait(seconds), lines[-1]
        cluster.line.go()
        assert over.wait(LIMIT), lines[-1]
        assert run.wait(LIMIT) == 0, lines[-1]
    ended = time.monotonic()
    while left := [words for words in cluster.processes(cluster.far).values() if "Xvfb" in words]:
        assert time.monotonic() - ended < ORPHANS, left
        time.sleep(0.1)

    ledger = open_ledger(cluster.postgres.url("partition"))
    rows = ledger.rows()
    ledger.close()
    assert_each_once(rows, EPISODES)
    assert len({row.worker for row in rows}) == 2
    assert {cause for row in rows for cause in row.failures} == ({"desktop_lost"} if seconds > 60 else set())
    end = lines[-1]
    assert (end["kind"], end["done"], end["stopped"]) == ("end", EPISODES, None)
    assert end["results"]["success"] + end["others"] == EPISODES
