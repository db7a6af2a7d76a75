"""Run in a container: makes of the directory of its X socket whatever could mislead a driver, again and again.

Usage: `hostile_inside.py VICTIMS DISPLAYS`, both lists of paths of the driver's machine, separated by commas.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import sys
import time

SOCKETS = "/tmp/.X11-unix"
OWN = "/var/lib/deskhand"
VICTIMS, DISPLAYS = (word.split(",") for word in sys.argv[1:3])
NAMES = ("X0", "xauthority", "restarted", "vnc", "bus_0", ".xauthority", ".X0", "own", "X1")
LINKS = [*VICTIMS, *DISPLAYS, "/dev/zero", "/", "..", "../own/xauthority", "../own", f"{OWN}/xauthority"]
REAL = f"{SOCKETS}/real"
kept: list[socket.socket] = []


def replace(path: str, make: object) -> None:
    new = f"{SOCKETS}/new-{random.randrange(1 << 30)}"
    make(new)  # type: ignore[operator]
    with contextlib.suppress(IsADirectoryError, NotADirectoryError, OSError):
        os.rename(new, path)
        return
    shutil.rmtree(path, ignore_errors=True)
    os.rename(new, path)


def listen(path: str, backlog: int) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(backlog)
    # It accepts nothing; who came first fills its queue.
    knocking = socket.socket(socket.AF_UNIX)
    knocking.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        knocking.connect(path)
    kept.extend((listener, knocking))
    del kept[:-40]


def deep(path: str) -> None:
    os.mkdir(path)
    here = os.open(path, os.O_PATH)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_PATH, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def huge(path: str) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def swap() -> None:
    for _ in range(50):
        for target in (random.choice(LINKS), None):
            new = f"{SOCKETS}/swapped"
            os.link(REAL, new) if target is None else os.symlink(target, new)
            os.rename(new, f"{SOCKETS}/X0")


def once() -> None:
    name = f"{SOCKETS}/{random.choice(NAMES)}"
    target = random.choice(LINKS)
    random.choice(
        (
            lambda: replace(name, lambda new: os.symlink(target, new)),
            lambda: replace(name, lambda new: os.symlink(target, new)),
            lambda: replace(name, os.mkfifo),
            lambda: replace(name, os.mkdir),
            lambda: replace(name, lambda new: os.mkdir(new, 0)),
            lambda: replace(name, lambda new: os.link(REAL, new)),
            lambda: replace(name, huge),
            lambda: replace(name, lambda new: listen(new, 0)),
            lambda: replace(name, deep if random.random() < 0.1 else os.mkdir),
            lambda: os.rename(name, f"{SOCKETS}/{random.choice(NAMES)}"),
            lambda: os.chmod(SOCKETS, random.choice((0, 0o777, 0o700))),
            lambda: os.rename(SOCKETS, f"{SOCKETS}-gone"),
            lambda: os.link(f"{OWN}/xauthority", name),
            lambda: open(f"{OWN}/xauthority", "wb"),
            lambda: os.symlink(target, f"{OWN}/X9"),
            lambda: os.chmod(f"{OWN}/xauthority", 0o666),
            swap,
        )
    )()


def main() -> None:
    os.link(f"{SOCKETS}/X0", REAL)
    end = time.monotonic() + 600
    tried = 0
    while time.monotonic() < end:
        # Its own trees are too deep for Python as well.
        with contextlib.suppress(OSError, RecursionError):
            once()
        with contextlib.suppress(OSError):
            os.chmod(SOCKETS, 0o700)
        tried += 1
        with open(f"{os.environ['HOME']}/tried", "w") as file:
            file.write(f"{tried:9}")


main()
