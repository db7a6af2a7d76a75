"""Many desktops from one pool, all driven at once: mix-ups, leaks, memory and frames. Writes evidence/pool.md.

`tools/pool.py --desktops 32 --seconds 300` is the full run; `--seconds 20 --out -` is a quick check. `--backend docker` uses
containers (evidence/pool_docker.md), and `--displays 8` puts eight desktops into each (evidence/pool_docker_dense.md).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from Xlib import display as xlib

import deskhand
from deskhand.episodes.run.host import describe
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY, links_to

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MARK = f"DESKHAND_POOL_EVIDENCE={uuid.uuid4().hex}"
LEASE = 15.0
PATCH = (160, 100)


class Witness:
    """An X connection of its own, so that its painting does not pass through deskhand's."""

    def __init__(self, desktop: deskhand.Desktop) -> None:
        os.environ["XAUTHORITY"] = str(desktop.xauthority)
        self.display = xlib.Display(desktop.display)
        self.root = self.display.screen().root
        self.gc = self.root.create_gc()

    def paint(self, x: int, y: int, colour: int) -> None:
        self.gc.change(foreground=colour)
        self.root.fill_rectangle(self.gc, x, y, *PATCH)
        self.display.sync()


def processes() -> list[int]:
    """All processes that were started here, recognized by their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if MARK.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def memory(pids: list[int]) -> float:
    """The memory of these processes together in megabytes, with shared pages counted once (PSS)."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


def containers() -> list[dict[str, Any]]:
    """The containers and networks of this run, as the engine lists them."""
    engine = connect_engine()
    try:
        wanted = {"label": LABEL_DIRECTORY}
        found = [*engine.api.containers(all=True, filters=wanted), *engine.api.networks(filters=wanted)]
    finally:
        engine.close()
    here = os.environ["XDG_RUNTIME_DIR"]
    return [entry for entry in found if Path(entry["Labels"][LABEL_DIRECTORY]).is_relative_to(here)]


def storage() -> str:
    """The engine's storage driver: with some drivers, containers do not share pages of libraries."""
    engine = connect_engine()
    try:
        return str(engine.info["Driver"])
    finally:
        engine.close()


def shims(found: list[dict[str, Any]]) -> list[int]:
    """The engine's own processes, one for each container."""
    wanted = {entry["Id"].encode() for entry in found}
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"-id" in words and wanted & set(words):
                    pids.append(int(entry.name))
    return pids


def own() -> tuple[int, int]:
    """The numbers of descriptors and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


class Run:
    def __init__(self, desktops: int, seconds: float, options: dict[str, Any]) -> None:
        self.desktops, self.seconds, self.options = desktops, seconds, options
        self.contained = options["launch"] == "docker"
        self.screen: tuple[int, int] = options["screen"]
        self.lock = threading.Lock()
        self.together = threading.Barrier(desktops + 1)
        self.ends = 0.0
        self.frames = [0] * desktops
        self.mixed: list[str] = []
        self.errors: list[str] = []
        self.leases = 0

    def user(self, pool: deskhand.Pool, number: int) -> None:
        try:
            first = True
            while first or time.monotonic() < self.ends:
                with pool.acquire(timeout=300) as desktop:
                    if first:
                        self.together.wait(600)
                        first = False
                    self.drive(desktop, number)
                with self.lock:
                    self.leases += 1
        except Exception as error:  # noqa: BLE001 # every error is counted
            self.errors.append(f"user {number}: {type(error).__name__}: {error}")
            self.together.abort()

    def drive(self, desktop: deskhand.Desktop, number: int) -> None:
        chance = random.Random()
        with self.lock:
            # The environment, which all threads share, names the cookie file.
            witness = Witness(desktop)
        over = min(self.ends, time.monotonic() + LEASE * chance.uniform(0.5, 1.5))
        with contextlib.closing(witness.display):
            while time.monotonic() < over:
                x, y = (chance.randrange(length - patch) for length, patch in zip(self.screen, PATCH, strict=True))
                # The first byte identifies the painter.
                colour = number << 16 | chance.randrange(1 << 16)
                witness.paint(x, y, colour)
                seen = desktop.perform(deskhand.Move((x, y)), settle=False)
                pixel = seen.array()[y + PATCH[1] - 1, x + PATCH[0] - 1]
                red, green, blue = (int(value) for value in pixel)
                if red << 16 | green << 8 | blue != colour:
                    self.mixed.append(f"user {number} painted {colour:06x}, saw {red:02x}{green:02x}{blue:02x}")
                self.frames[number] += 1

    def run(self) -> dict[str, Any]:
        before, alone = own(), memory([os.getpid()])
        begun = time.monotonic()
        shared: list[int] = []
        with deskhand.Pool(size=self.desktops, warm=0, **self.options) as pool:
            self.ends = time.monotonic() + 3600
            threads = [threading.Thread(target=self.user, args=(pool, n)) for n in range(self.desktops)]
            for thread in threads:
                thread.start()
            with contextlib.suppress(threading.BrokenBarrierError):
                self.together.wait(600)
            ready = time.monotonic() - begun
            self.ends = time.monotonic() + self.seconds
            time.sleep(self.seconds / 2)
            pids = processes()
            if self.contained:
                shared = shims(containers())
            shim_memory = memory(shared) / self.desktops
            used = (memory([*pids, os.getpid()]) - alone) / self.desktops
            for thread in threads:
                thread.join()
            status = pool.status
        deadline = time.monotonic() + 5
        while own()[1] > before[1] and time.monotonic() < deadline:
            time.sleep(0.01)
        left = [f"process {pid}" for pid in processes()]
        left += [str(path) for path in Path(os.environ["XDG_RUNTIME_DIR"]).glob("deskhand/d-*")]
        left += [str(path) for path in links_to(os.environ["XDG_RUNTIME_DIR"])]
        if (after := own()) != before:
            left.append(f"{after[0] - before[0]} descriptors, {after[1] - before[1]} threads")
        if self.contained:
            left += [f"container or network {entry['Id']}" for entry in containers()]
        return {
            "ready": ready,
            "memory": used,
            "shims": shim_memory,
            "containers": len(shared),
            "processes": len(pids),
            "status": status,
            "left": left,
        }


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Put the files of this run into a directory of its own, and mark its processes."""
    with tempfile.TemporaryDirectory(prefix="deskhand-pool-") as directory:
        os.environ["XDG_RUNTIME_DIR"] = directory
        name, _, value = MARK.partition("=")
        os.environ[name] = value
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--desktops", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--backend", choices=["local", "docker"], default="local")
    parser.add_argument("--displays", type=int, default=1, help="with docker: desktops in each container")
    parser.add_argument("--reset", choices=["fresh", "session"], default="session")
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    parser.add_argument("--out", help="a file, or - for standard output")
    options = parser.parse_args()
    screen = (1280, 800)
    pool: dict[str, Any] = {"launch": options.backend, "reset": options.reset, "screen": screen}
    command = f"tools/pool.py --desktops {options.desktops} --seconds {options.seconds:g}"
    file = "pool"
    if options.backend == "docker":
        pool |= {"displays": options.displays, "image": options.image, "timeout": 300, "env": dict([MARK.split("=")])}
        command += f" --backend docker --displays {options.displays}"
        file = "pool_docker" if options.displays == 1 else "pool_docker_dense"
    if options.reset != "session":
        command += f" --reset {options.reset}"
    run = Run(options.desktops, options.seconds, pool)
    with apart():
        # Encoder threads and libraries are loaded with the first frame and stay, so they do not count as leaks.
        Run(1, 0.5, pool).run()
        found = run.run()
    machine = describe()
    frames = sum(run.frames)
    slowest, fastest = (function(run.frames) / run.seconds for function in (min, max))
    docker = (
        f"| the engine's storage driver | {storage()} |\n"
        f"| the engine's part beside that: a process for each container, per desktop | {found['shims']:.1f} MB |\n"
        f"| containers, half-way | {found['containers']} |\n"
        if run.contained
        else ""
    )
    text = f"""# One pool, {run.desktops} desktops

Written by `{command}`.
Machine: {machine["processor"]}, {machine["cores"]} cores, {machine["memory"]}, {machine["system"]}.
Screens of {screen[0]}x{screen[1]}. Each desktop has a thread that paints a patch of a colour of its own through an X connection
of its own, moves the pointer, takes the whole frame as PNG, decodes it and compares. After 7.5 to 22.5 s it gives its desktop
back, which is {"made as new" if options.reset == "session" else "ended"} (`reset="{options.reset}"`), and takes the next.

| what | found |
|---|---:|
| desktops ready, from nothing | {found["ready"]:.1f} s |
| users, one after the other and beside each other | {run.leases:,} |
| frames | {frames:,} |
| frames per second, all together | {frames / run.seconds:.1f} |
| frames per second, the slowest user and the fastest | {slowest:.2f}, {fastest:.2f} |
| frames that showed another's picture, or an old one | {len(run.mixed)} |
| errors | {len(run.errors)} |
| launches and resets that failed | {found["status"].failed} |
| memory of a desktop with its guard, bus, window manager and our part, half-way (PSS) | {found["memory"]:.1f} MB |
{docker}| processes, half-way | {found["processes"]} |
| left behind (processes, containers, files, descriptors, threads) | {len(found["left"])} |
"""
    if options.out == "-":
        sys.stdout.write(text)
    else:
        Path(options.out or ROOT / "evidence" / f"{file}.md").write_text(text)
    trouble = [found["status"].trouble] if found["status"].failed else []
    for line in [*run.mixed[:10], *run.errors[:10], *found["left"][:10], *trouble]:
        sys.stderr.write(f"{line}\n")
    return 1 if run.mixed or run.errors or found["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
