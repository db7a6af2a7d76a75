"""How often the faults are injected: a sample in every test run, the whole proof with `make evidence`."""

from __future__ import annotations

import os

EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"


def _scaled(sample: int, evidence: int) -> int:
    return evidence if EVIDENCE else sample


LAUNCHES = _scaled(20, 200)
KILLED_DRIVERS = _scaled(8, 500)
SIGNALS = _scaled(80, 4000)
THREAD_EXCEPTIONS = _scaled(60, 3000)
CANCELLATIONS = _scaled(60, 3000)
# Of a container that tries everything to mislead its driver.
HOSTILE_RESETS = _scaled(2, 50)
CONTAINER_CYCLES = _scaled(6, 500)
CUTS = _scaled(10, 500)
# VNC servers, each of which gets one text.
FIRST_TEXTS = _scaled(2, 100)
# Of the widgets of an application whose elements are read.
RANDOM_CHANGES = _scaled(60, 1000)
DESKTOPS = _scaled(12, 50)
# For how many seconds a killed VNC server is away: the pauses between two attempts to reach it grow meanwhile.
AWAY = (0.3, 1.0, 1.7, 2.5, 3.3, 4.1, 5.0, 6.0) if EVIDENCE else (0.3,)
POOL_CYCLES = _scaled(30, 500)
MUTATED_SESSIONS = _scaled(2000, 100_000)
MUTATED_PAYLOADS = _scaled(1000, 10_000)
THREADS = 8
# What a shell must stand: bytes of output, and children of one command.
FLOOD = _scaled(300 * 10**6, 10 * 10**9)
CHILDREN = _scaled(300, 10_000)
STOPPED_SECONDS = _scaled(2, 5)
TIMEOUT = _scaled(600, 3600)
# For how many times longer a test waits for something to come, of which no time is promised. What is promised within a time is
# held to that in every run: see `faults.control`.
PATIENCE = int(os.environ.get("DESKHAND_PATIENCE", _scaled(10, 1)))
