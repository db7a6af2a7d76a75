"""Two network namespaces and a line between them that is made here, packet by packet, for not every kernel has netem.

What TCP does about a line that loses packets, or that nothing comes through any more, is the kernel's own. Both namespaces are
gone when this process ends. It must be root, at least of a user namespace of its own (`unshare --user --map-root-user`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from conformance.servers import need

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")

_CLONE_NEWNET, _TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x40000000, 0x400454CA, 0x0001, 0x1000
NEAR, FAR, PORT = "192.0.2.1", "192.0.2.2", 5900
# Packets that wait for the line in one direction: what is more is lost too, as in a router.
_WAITING = 64
_DROP, _GO = b"d", b"g"


@dataclass(frozen=True)
class Quality:
    """What a line does to packets, each way.

    Attributes:
        loss: Share of them that is lost, 0...1.
        delay: Seconds that each takes.
        jitter: It takes up to so many seconds less, or more. Packets stay in order.
        rate: Bytes a second; 0 for as many as come.
        seed: Of the losses and the jitter.
    """

    loss: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0
    rate: float = 0.0
    seed: int = 1


class NetworkNamespace:
    """A thread in a network namespace of its own; what it starts is there too."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.run(self._leave)

    @staticmethod
    def _leave() -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
            why = os.strerror(ctypes.get_errno())
            sys.exit(f"no network namespace can be made ({why}): run this as root")

    def run(self, work: Callable[..., T], *given: object) -> T:
        """Do it there."""
        return self._thread.submit(work, *given).result()

    def device(self, own: str, other: str) -> int:
        """A network device with these addresses, as the descriptor that gives and takes its packets."""
        return self.run(_device, own, other)


def _device(own: str, other: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"line", _IFF_TUN | _IFF_NO_PI))
    ip = need("ip", "iproute2")
    for what in ("link set lo up", f"addr add {own} peer {other} dev line", "link set line up"):
        subprocess.run([ip, *what.split()], check=True)
    return device


class PacketLine:
    """The line from `here`, which has the address `NEAR`, to `there`, which has `FAR`; use it in a `with` block.

    Attributes:
        counted: After the block: packets that came, that were lost, and that were too many for those waiting.
    """

    def __init__(self, here: NetworkNamespace, there: NetworkNamespace, quality: Quality) -> None:
        ends = here.device(NEAR, FAR), there.device(FAR, NEAR)
        argv = [
            sys.executable,
            "-m",
            "conformance.packets",
            *map(str, ends),
            *(str(value) for value in asdict(quality).values()),
        ]
        self.counted = (0, 0, 0)
        # In a process of its own, so that it is not late because of us.
        self._process = subprocess.Popen(
            argv, cwd=Path(__file__).parent.parent, pass_fds=ends, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for end in ends:
            os.close(end)
        # TCP takes the first packets' way for the line's own.
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        packets, lost, full = map(int, self._process.communicate()[0].split())
        self.counted = packets, lost, full

    def drop(self) -> None:
        """Every packet is lost from now on, and nobody is told: connections are half open."""
        self._tell(_DROP)

    def go(self) -> None:
        """End that."""
        self._tell(_GO)

    def _tell(self, what: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what)
        self._process.stdin.flush()


def carry(ends: tuple[int, int], quality: Quality) -> Counter[str]:
    """Carry packets between two devices until standard input ends; returns how many and how many not."""
    chance, rate = random.Random(quality.seed), quality.rate
    late: dict[int, deque[tuple[float, bytes]]] = {end: deque() for end in ends}
    free = dict.fromkeys(ends, 0.0)
    counted: Counter[str] = Counter()
    loss = quality.loss
    while True:
        due = min((queue[0][0] for queue in late.values() if queue), default=None)
        timeout = None if due is None else max(0.0, due - time.monotonic())
        readable, _, _ = select.select([0, *ends], [], [], timeout)
        if 0 in readable:
            told = os.read(0, 1)
            if not told:
                return counted
            loss = 1.0 if told == _DROP else quality.loss
        for source, sink in (ends, ends[::-1]):
            if source in readable:
                packet = os.read(source, 65536)
                # The kernel's own IPv6 is no part of it.
                if packet[0] >> 4 != 4:
                    continue
                counted["packets"] += 1
                if chance.random() < loss:
                    counted["lost"] += 1
                elif len(late[sink]) == _WAITING:
                    counted["too many"] += 1
                else:
                    now = time.monotonic()
                    free[sink] = max(now, free[sink]) + (len(packet) / rate if rate else 0.0)
                    late[sink].append(
                        (free[sink] + quality.delay + chance.uniform(-quality.jitter, quality.jitter), packet)
                    )
        for sink, queue in late.items():
            while queue and queue[0][0] <= time.monotonic():
                # A device that was closed, or whose queue is full, loses it as a cable would.
                with contextlib.suppress(OSError):
                    os.write(sink, queue.popleft()[1])


def main() -> None:
    """The line's own process."""
    near, far, *values, seed = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    counted = carry((int(near), int(far)), Quality(*map(float, values), int(seed)))
    sys.stdout.write("{packets} {lost} {too many}".format_map(counted))


if __name__ == "__main__":
    main()
