"""Compares the ways to a desktop in a container. Run as root (for an sshd), with `PYTHONPATH=tests`.

`tools/engine_ways.py --rounds 30` prints the table. The engine is always this machine's, even if it is used like that of
another
machine: through an sshd of our own, through TLS, and through ssh over a line with a delay of 10 ms each way and 100 Mbit/s. The
ways take turns, each with a container of its own, so that other load on the machine affects all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand
from conformance.fake import ELSEWHERE
from conformance.shaping import Line
from containers.remote import Authority, ssh_server, tls_relay
from deskhand import KeyPress, Settle
from deskhand.episodes.run.host import describe
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DELAY, RATE = 0.01, 12.5e6
X11, VNC, HERE, SSH, TLS, FAR = WAYS = (
    "X11, shared directory",
    "VNC, shared directory",
    "VNC by exec, engine here",
    "VNC by exec, ssh",
    "VNC by exec, TLS",
    "VNC by exec, ssh over 20 ms and 100 Mbit/s",
)
SETTLE = Settle(timeout=30)
# In a terminal over the whole screen, `l` draws a line of text, and `w` draws every cell anew.
PAINTER = r"""
$| = 1; system "stty raw -echo"; my ($rows, $columns) = split " ", `stty size`;
sub cell { "\e[3" . int(rand 8) . ";4" . int(rand 8) . "m" . chr(33 + int rand 94) }
sub row { "\e[$_[0];1H" . join "", map { cell() } 1 .. $columns }
print "\e[?25l\e[2J";
while (sysread STDIN, my $key, 1) { print $key eq "w" ? map { row($_) } 1 .. $rows : row(5) }
"""


@contextlib.contextmanager
def surroundings(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables during a launch."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Ways:
    """All ways, open, with the painter on their screens.

    Attributes:
        desktops: The desktops by way.
        ready: The seconds until the first picture of each.
    """

    def __init__(self, stack: contextlib.ExitStack, folder: Path, image: str) -> None:
        self._stack, self._image = stack, image
        self.desktops: dict[str, deskhand.Desktop] = {}
        self.ready: dict[str, float] = {}
        ssh = stack.enter_context(ssh_server(folder / "ssh"))
        line = stack.enter_context(Line(ssh.url.removeprefix("ssh://"), delay=DELAY, rate=RATE))
        key = ssh.known.read_text().partition(" ")[2]
        with ssh.known.open("a") as known:
            known.write(f"[{ELSEWHERE}]:{line.port} {key}")
        authority = Authority.make("deskhand")
        relay = stack.enter_context(tls_relay(authority.write(folder / "server", "engine")))
        mine = str(authority.write(folder / "client", "us"))
        self.launch(X11, {})
        near = self.launch(VNC, {}, vnc=True)
        assert near.xauthority is not None
        self.desktops[VNC] = stack.enter_context(deskhand.connect(f"vnc+unix://{near.xauthority.with_name('vnc')}"))
        self.launch(HERE, {}, remote=True)
        self.launch(SSH, ssh.environment())
        self.launch(TLS, {"DOCKER_HOST": relay, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": mine})
        self.launch(FAR, {**ssh.environment(), "DOCKER_HOST": f"ssh://{ELSEWHERE}:{line.port}"})

    def launch(self, way: str, variables: Mapping[str, str], **options: bool) -> deskhand.Desktop:
        """Start a desktop with these variables, and the painter in it."""
        begun = time.perf_counter()
        with surroundings(variables):
            desktop = self._stack.enter_context(deskhand.launch("docker", image=self._image, timeout=60, **options))
        desktop.screenshot()
        self.ready[way] = time.perf_counter() - begun
        desktop.start(["xterm", "-b", "0", "+sb", "-maximized", "-e", "perl", "-e", PAINTER], timeout=60)
        self.desktops[way] = desktop
        return desktop


def measure(desktops: Mapping[str, deskhand.Desktop], rounds: int) -> dict[tuple[str, str], list[float]]:
    """Milliseconds, by way and action."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(rounds):
        for way, desktop in desktops.items():
            for what in ("l", "w"):
                seen = desktop.perform(KeyPress([what]), settle=SETTLE)
                if not (seen.changed and seen.settled):
                    sys.exit(f"{way}: {what!r} in round {number}: {seen.reason}")
                parts = seen.elapsed
                taken[way, f"{what} first"].append((parts.input + parts.reaction) * 1000)
                taken[way, f"{what} settled"].append(parts.total * 1000)
            begun = time.perf_counter()
            desktop.screenshot()
            taken[way, "look"].append((time.perf_counter() - begun) * 1000)
    return taken


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-")))
        ways = Ways(stack, folder, options.image)
        taken = measure(ways.desktops, options.rounds)
    machine = describe()
    sys.stdout.write(f"""\
# The ways to a desktop in a container

Written by `tools/engine_ways.py --rounds {options.rounds}`.
{machine["processor"]}, {machine["cores"]} cores, {machine["system"]}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after.
1280x800, medians in ms of {options.rounds} rounds. "line": from pressing the key to its first pixel, and to the settled frame
as PNG; "whole": the same where every pixel changes; "look": nothing changed. "ready": launched once, to the first picture.

| way | line: first | line: settled | whole: first | whole: settled | look | ready |
|---|---:|---:|---:|---:|---:|---:|
""")
    for way in WAYS:
        columns = ("l first", "l settled", "w first", "w settled", "look")
        values = (f"{statistics.median(taken[way, column]):.3g}" for column in columns)
        sys.stdout.write(f"| {way} | {' | '.join(values)} | {ways.ready[way] * 1000:.0f} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
