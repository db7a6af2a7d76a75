"""Nodes of a Ray cluster on this machine: real ones, each with the processes that a machine of its own would have."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

import ray
from ray.cluster_utils import Cluster

from episodes.ray_plays import with_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS = Path(__file__).resolve().parent.parent
_STORE = 80 << 20
_MARK = "DESKHAND_TEST_NODE"
_TRIES = 3
# As the engine has it: else Ray replaces `print`, for the tests that come after these too.
os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
# Also as the engine has it: else the workers, at a niceness of 15, hardly run beside the other tests.
os.environ.setdefault("RAY_worker_niceness", "0")


class Node:
    """One node.

    Attributes:
        desktops: How many it says that it has.
    """

    def __init__(self, cluster: Cluster, desktops: int, environment: Mapping[str, str]) -> None:
        self.desktops = desktops
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        self._cluster = cluster
        name, _, value = self._mark.partition("=")
        for tried in range(1, _TRIES + 1):
            try:
                self._node = cluster.add_node(
                    num_cpus=0,
                    resources={"desktop": desktops},
                    object_store_memory=_STORE,
                    env_vars={"PYTHONPATH": str(TESTS), name: value, **environment},
                )
                break
            except Exception as error:
                # Ray itself gives a node 30 s, which a busy machine may exceed.
                if "timed out during startup" not in str(error) or tried == _TRIES:
                    raise
                for process in self.processes():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)

    def kill(self) -> None:
        """Its machine is gone, as far as the others see: its raylet is killed, and those of its processes go that Ray ends."""
        self._cluster.remove_node(self._node, allow_graceful=False)

    def processes(self) -> dict[int, str]:
        """What was started on it and still lives: process → its first words."""
        return dict(with_environment(self._mark))


class Nodes:
    """A cluster whose head plays nothing; use it in a `with` block."""

    def __init__(self, **environment: str) -> None:
        self._environment = environment

    def __enter__(self) -> Self:
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        return self

    def __exit__(self, *_: object) -> None:
        ray.shutdown()
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        address: str = self._cluster.address
        return address

    def add(self, desktops: int) -> Node:
        return Node(self._cluster, desktops, self._environment)

    def connect(self) -> None:
        ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
