"""A pool of containers: `python -m bench.container_pool [--image deskhand/osworld] [--desktops 16]`. Needs Docker.

It prints how long all take to be ready; the memory of each at rest; what a user finds that another one has left, while all are
used at once; and how long one that is given back takes until it is ready again, while the others rest.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click
import docker

from deskhand import Pool
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.leftovers import LABEL_DRIVER

if TYPE_CHECKING:
    from deskhand import Desktop

# What a user would find of another one: files, processes, windows that are no panel, and what is on the clipboard.
_LOOK = "find ~ /tmp /var/tmp /dev/shm -newer /proc/1 -name '*mine*'; pgrep -x sleep"
_LEAVE = "touch ~/mine /tmp/mine /var/tmp/mine /dev/shm/mine; setsid sleep 1000 </dev/null >/dev/null 2>&1 &"


def _wait(pool: Pool) -> float:
    """Seconds until each desktop is ready."""
    began = time.monotonic()
    while pool.status.ready < pool.status.size:
        time.sleep(0.005)
    return time.monotonic() - began


def _use(desktop: Desktop, number: int) -> str:
    """What is there of another user; it leaves something of each kind."""
    found = desktop.machine.run(_LOOK).stdout
    found += "".join(window.title for window in desktop.windows.list() if window.class_name.lower() != "tint2")
    found += desktop.clipboard.read() or ""
    desktop.machine.run(_LEAVE)
    desktop.clipboard.write(f"of user {number}")
    desktop.start(["xterm", "-T", f"of user {number}"])
    return found


def _memory() -> list[float]:
    """MB that each of our containers uses, without the files that the kernel could forget."""
    ours = f"{LABEL_DRIVER}=process {os.getpid()} on {socket.gethostname()}"
    used = []
    with contextlib.closing(docker.from_env()) as engine:
        for each in engine.api.containers(filters={"label": ours}):
            stats = engine.api.stats(each["Id"], stream=False)["memory_stats"]
            kept = stats["stats"].get("total_inactive_file", stats["stats"].get("inactive_file", 0))
            used.append(float(stats["usage"] - kept) / 1e6)
    return used


@click.command(help=__doc__)
@click.option("--image", default=DEFAULT_IMAGE, show_default=True)
@click.option("--desktops", default=16, show_default=True)
@click.option("--uses", default=20, show_default=True, help="How many resets are timed.")
@click.option("--rounds", default=4, show_default=True, help="How often all are used at once.")
def main(image: str, desktops: int, uses: int, rounds: int) -> None:
    """Measure and print."""
    with Pool("docker", image=image, size=desktops, warm=desktops, reset="session") as pool:
        click.echo(f"{desktops} of {image}: ready after {_wait(pool):.1f} s")
        click.echo(f"memory of each: {statistics.median(_memory()):.0f} MB")

        def user(number: int) -> str:
            with pool.acquire() as desktop:
                return _use(desktop, number)

        with ThreadPoolExecutor(desktops) as users:
            found = [each for each in users.map(user, range(desktops * rounds)) if each]
        click.echo(
            f"{desktops * rounds} uses by {desktops} at once: {len(found)} found something of another {found[:3]}"
        )
        _wait(pool)
        resets = []
        for _ in range(uses):
            with pool.acquire():
                pass
            resets.append(_wait(pool))
        click.echo(
            f"reset of one: {statistics.median(resets):.2f} s (median of {uses}; the longest {max(resets):.2f} s)"
        )


if __name__ == "__main__":
    main()
