"""What other processes do with a ledger in its tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.ledger import open_ledger

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from deskhand.episodes.ledger.ledger import Key

LEASE = 0.5


def lease_all(where: str, name: str, told: str, keys: list[Key], barrier: Barrier) -> None:
    """Open, queue, and lease and finish until nothing is left; a line for each."""
    barrier.wait()
    ledger = open_ledger(where)
    ledger.add(keys)
    with Path(told).open("a", buffering=1) as lines:
        while leases := ledger.lease(name, 3600, most=3):
            for lease in leases:
                assert ledger.finish(lease, {"worker": name})
                lines.write(f"{lease.key} {name} {lease.attempt}\n")
    ledger.close()


def work(where: str, name: str, told: str, seed: float) -> None:
    """Lease for a short time, and finish, try again, give back or forget, until all is done."""
    chance = random.Random(seed)
    ledger = open_ledger(where)
    with Path(told).open("a", buffering=1) as lines:
        while ledger.counts()["done"] < sum(ledger.counts().values()):
            for lease in ledger.lease(name, LEASE, most=3):
                match chance.randrange(12):
                    case 0:
                        ledger.retry(lease, "setup_failed")
                    case 1:
                        ledger.release(lease)
                    case 2:
                        pass
                    case _:
                        ledger.renew(lease, LEASE)
                        if ledger.finish(lease, {"worker": name, "attempt": lease.attempt}):
                            lines.write(f"{lease.key} {name} {lease.attempt}\n")
    ledger.close()
