"""The accessibility tree, read by us and by others: `python -m bench.elements`, in the repository.

Each application is alone on a desktop of its own, new in each round. Everybody reads the whole of what that desktop's bus
tells, in turns: we have no connection while others read, so that no application tells events to somebody who is not measured.
A click is made by us, for everybody, and is over (the screen has settled) before a clock starts. What must never appear here:
a number that was not measured in the run it is reported with.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import deskhand
from bench import scenes
from bench.child import Child, ChildError
from bench.context import timed
from bench.elements_applications import APPLICATIONS
from bench.elements_calls import listening
from bench.elements_tables import COST_CASES, MARKERS, PEERS, Case, Peer, block
from bench.figures import Report, Row, Samples
from bench.idle import memory
from bench.output import chosen, write_page, write_report
from bench.stage import environment_of
from bench.versions import versions
from deskhand import KeyPress, LeftClick, Settle
from deskhand.cli.common import examples, file_to_write
from deskhand.cli.group import run_command
from deskhand.desktop.access import core_of
from deskhand.episodes.run.host import describe
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.elements_applications import Application
    from deskhand import Element

_SIZE = (1920, 1080)
_REPOSITORY = Path(__file__).parents[1]
_PEERS = _REPOSITORY / ".venv" / "peers"
_READ_LIMIT = 60.0
_START_LIMIT = 60.0
_UNCHANGED_READINGS = 7
# A peer that takes longer is asked once: medians of minutes are not worth hours.
_SLOW = 5_000.0
_CALM = Settle(quiet=0.5, reaction=0.5, timeout=5)
_LOADED = Settle(quiet=1.0, reaction=1.0, timeout=15)
# By then a session relies on events; see rust/elements/src/collector/doubts.rs.
_KNOWN = 11.0
_OF_THE_BUS = ("at-spi-bus-laun", "at-spi2-registr")
_LAUNCHES, _KEYS = 10, 40
_REASON = 160
_ANEW = 25


@dataclass(slots=True)
class Run:
    """What all measurements share.

    Attributes:
        scratch: A directory of its own; it goes at the end.
        peers: Where the peers are; None for none.
        rounds: How often each is measured.
        say: Told what is going on.
    """

    scratch: Path
    peers: Path | None
    rounds: int
    say: Callable[[str], None] = field(default=lambda _text: None)


class _TooLongError(Exception):
    """A peer was given up; the round begins again without it."""


class _Contender:
    """A peer on one desktop. It is started anew for each round, and given up when it fails or takes too long."""

    def __init__(self, run: Run, peer: Peer, section: str) -> None:
        self.peer = peer
        self.samples = {case: Samples(section, case, peer.title, note=peer.note) for case in (Case.FIRST, Case.CHANGED)}
        self._run = run
        self._child: Child | None = None
        self._home = (run.peers or Path()) / peer.name
        self.over = not (self._home / peer.needs).exists()
        if self.over:
            self._tell(f"not installed: tools/peers puts it into {self._home}")

    def _tell(self, reason: str) -> None:
        for samples in self.samples.values():
            samples.missing = reason

    def begin(self, desktop: deskhand.Desktop) -> None:
        """Start it; it has imported what it needs when this returns."""
        if self.over:
            return
        home = self._run.scratch / f"home-{self.peer.name}"
        session = {**core_of(desktop).environment, **scenes.home_environment(home)}  # its bus
        environment = {**environment_of(desktop), **session, "PYTHONPATH": str(_REPOSITORY)}
        if not self.peer.own:
            environment["PYTHONPATH"] = os.pathsep.join([str(_REPOSITORY), os.environ.get("PYTHONPATH", "")])
        python = {"python": str(self._home / "bin/python")} if self.peer.own else {}
        argument = self._home / self.peer.needs
        log = self._run.scratch / f"{self.peer.name}.log"
        self._child = Child("bench.elements_worker", self.peer.name, argument, env=environment, log=log, **python)
        self._ask(None, op="ready")

    def read(self, case: Case) -> None:
        """Let it read once, if it is still there."""
        if self._child is not None and (answer := self._ask(case, op="read")) is not None:
            if not answer["nodes"]:
                self._tell("finds nothing")
                self.over = True
                return
            self.samples[case].add(answer["ms"], counts={"nodes": answer["nodes"]})
            if case == Case.CHANGED and answer["ms"] > _SLOW:
                self.over = True

    def _ask(self, case: Case | None, **message: object) -> dict[str, Any] | None:
        assert self._child is not None  # noqa: S101 # it was begun
        try:
            return self._child.ask(timeout=_READ_LIMIT, **message)
        except ChildError as error:
            said = textwrap.shorten(str(error), _REASON)
            reason = f"over {_READ_LIMIT:g} s" if said.startswith("no answer in") else f"failed: {said}"
            for each, samples in self.samples.items():
                if case in {None, Case.FIRST, each}:
                    samples.missing = reason
            self.over = True
            self.end(limit=0)
            if said.startswith("no answer in"):
                # The application has still to answer what it was asked: nobody else is measured on it.
                raise _TooLongError from None
            return None

    def end(self, limit: float = 2.0) -> None:
        """End its process."""
        if self._child is not None:
            self._child.close(limit=limit)
            self._child = None


def _target(desktop: deskhand.Desktop, application: Application, samples: Samples) -> Element:
    """What is clicked, when it is there; `samples` is told what that took."""
    deadline = time.monotonic() + _START_LIMIT
    for number in itertools.count():
        for element in desktop.elements(timeout=10):
            if element.role == application.role and element.name.rstrip(".") == application.label and element.point:
                return element
        if time.monotonic() > deadline:
            break
        if number == _ANEW:
            # What a session has missed, another may find; the row says so.
            samples.note = f"after {_ANEW} readings without what is clicked, a new session was needed"
            _forget(desktop)
        time.sleep(0.2)
    raise scenes.Missing(f"{application.name} shows no {application.role} {application.label!r}")


def _forget(desktop: deskhand.Desktop) -> None:
    core_of(desktop).elements.close()  # only a session that begins has a first reading


def application(run: Run, which: Application) -> Iterator[Row]:
    """The rows of one application."""
    section = f"elements/{which.name}"
    ours = {case: Samples(section, case) for case in Case}
    contenders = [_Contender(run, peer, section) for peer in PEERS] if run.peers else []
    counts: dict[Case, dict[str, float]] = {}
    done, begun = 0, 0
    while done < run.rounds:
        run.say(f"{which.name}: round {done + 1} of {run.rounds}")
        begun += 1
        scratch = run.scratch / f"{which.name}-{begun}"
        scratch.mkdir()
        command = list(which.command(scratch))
        with contextlib.ExitStack() as stack:
            desktop = stack.enter_context(deskhand.launch(size=_SIZE))
            desktop.start(command, timeout=_START_LIMIT)
            desktop.perform(settle=_LOADED)
            _read(desktop, ours[Case.FIRST_EVER])
            target = _target(desktop, which, ours[Case.FIRST_EVER])
            assert target.point is not None  # noqa: S101 # it was looked for
            act = LeftClick(target.point)
            for each in contenders:
                stack.callback(each.end)
            try:
                _round(desktop, act, ours, contenders[done % 3 :] + contenders[: done % 3])
            except _TooLongError:
                continue
            done += 1
            if done == run.rounds:
                counts = _counts(desktop, act)
    yield ours[Case.FIRST_EVER].row()
    for case, found in counts.items():
        yield ours[case].row(fastest=ours[case].fastest, **found)
    for each in contenders:
        yield from (samples.row() for samples in each.samples.values())


def _read(desktop: deskhand.Desktop, samples: Samples) -> int:
    begun = time.perf_counter()
    found = desktop.elements(timeout=_READ_LIMIT)
    took = (time.perf_counter() - begun) * 1000
    if len(found):
        samples.add(took, counts={"nodes": len(found), "left_out": len(found.left_out)})
    else:
        samples.missing = f"nothing was read: {', '.join(found.left_out)}"
    return found.version


def _round(
    desktop: deskhand.Desktop, act: LeftClick, ours: dict[Case, Samples], contenders: Sequence[_Contender]
) -> None:
    _forget(desktop)
    for each in contenders:
        each.begin(desktop)
    desktop.perform(settle=_CALM)
    for each in contenders:
        each.read(Case.FIRST)
    _read(desktop, ours[Case.FIRST])
    before = [_read(desktop, ours[Case.UNCHANGED]) for _ in range(_UNCHANGED_READINGS)]
    _click(desktop, act, ours[Case.CHANGED_EARLY], before[-1])
    desktop.perform(act)
    time.sleep(_KNOWN)
    _click(desktop, act, ours[Case.CHANGED], desktop.elements(timeout=_READ_LIMIT).version)
    _forget(desktop)
    desktop.perform(settle=_CALM)
    for each in contenders:
        each.read(Case.CHANGED)
        each.end()
    desktop.perform(act)
    desktop.perform(settle=_CALM)


def _click(desktop: deskhand.Desktop, act: LeftClick, samples: Samples, before: int) -> None:
    desktop.perform(act)
    if _read(desktop, samples) == before:
        samples.missing = "the click changed nothing"


def _counts(desktop: deskhand.Desktop, act: LeftClick) -> dict[Case, dict[str, float]]:
    """What is said on the bus for one reading of each kind, in a session that is not timed."""
    counts: dict[Case, dict[str, float]] = {}
    _forget(desktop)
    with listening() as calls:

        def read(case: Case, before: Callable[[], object]) -> None:
            before()
            calls.clear()
            desktop.elements(timeout=_READ_LIMIT)
            said = {f"{name}_calls": float(count) for name, count in calls.said.items()}
            heard = {"events": float(calls.heard["events"]), "bytes_heard": float(calls.bytes_heard)}
            counts[case] = {"calls": float(sum(calls.said.values())), **heard, **said}

        read(Case.FIRST, lambda: None)
        read(Case.UNCHANGED, lambda: None)
        read(Case.CHANGED_EARLY, lambda: desktop.perform(act))
        desktop.perform(act)
        time.sleep(_KNOWN)
        desktop.elements(timeout=_READ_LIMIT)
        read(Case.CHANGED, lambda: desktop.perform(act))
        _forget(desktop)
    return counts


def without_elements(run: Run) -> Iterator[Row]:
    """What `elements=True` costs who reads none: launching, acting and memory."""
    run.say("what elements=True costs")
    ready = {on: Samples("elements-cost", f"desktop ready, {name}") for on, name in COST_CASES.items()}
    for number in range(max(1, min(_LAUNCHES, run.rounds * 4))):
        for on in (True, False) if number % 2 else (False, True):
            begun = time.perf_counter()
            desktop = deskhand.launch(size=_SIZE, elements=on)
            ready[on].add((time.perf_counter() - begun) * 1000)
            desktop.close()
    key = {on: Samples("elements-cost", f"key press in mousepad, {name}") for on, name in COST_CASES.items()}
    with contextlib.ExitStack() as stack:
        desktops: dict[bool, deskhand.Desktop] = {}
        for on in COST_CASES:
            desktops[on] = desktop = stack.enter_context(deskhand.launch(size=_SIZE, elements=on))
            scenes.need("mousepad", "mousepad")
            desktop.start("mousepad")
            desktop.perform(settle=_LOADED)
        for number in range(max(2, min(_KEYS, run.rounds * 14))):
            for on in (True, False) if number % 2 else (False, True):
                key[on].add(timed(partial(desktops[on].perform, KeyPress(("a",)))))
        used = Samples("elements-cost", "memory of the accessibility bus", unit="MB", note="PSS, per desktop")
        sizes = _memory(desktops[True])
        used.add(sum(sizes.values()))
    for samples in (*ready.values(), *key.values()):
        yield samples.row(fastest=samples.fastest)
    yield used.row(**sizes)


def _memory(desktop: deskhand.Desktop) -> dict[str, float]:
    """Of the processes that make a desktop's accessibility bus, in MB, by name."""
    bus = f"DBUS_SESSION_BUS_ADDRESS={core_of(desktop).environment['DBUS_SESSION_BUS_ADDRESS']}".encode()
    sizes: dict[str, float] = {}
    launchers: set[str] = set()
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):
            name = (process / "comm").read_text().strip()
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            ours = any(bus in part for part in (process / "environ").read_bytes().split(b"\0"))
            if ours and name.startswith("at-spi-bus"):
                launchers.add(process.name)
            if ours and (name in _OF_THE_BUS or (name == "dbus-daemon" and parent in launchers)):
                sizes[name] = sizes.get(name, 0.0) + memory(int(process.name))[0]
    return sizes


def measure(run: Run, chosen: Sequence[Application], *, cost: bool) -> Report:
    """Measure, and report."""
    begun, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    for which in chosen:
        try:
            rows += application(run, which)
        except scenes.Missing as missing:
            rows.append(Row(f"elements/{which.name}", Case.FIRST, missing=f"not measured: {missing}"))
        except DeskhandError as error:
            rows.append(
                Row(f"elements/{which.name}", Case.FIRST, missing=f"failed: {textwrap.shorten(str(error), _REASON)}")
            )
    if cost:
        rows += without_elements(run)
    conditions = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "seconds": round(time.monotonic() - begun),
        "rounds": run.rounds,
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    return Report(describe(), versions(), conditions, rows)


@click.command(
    epilog=examples(
        "python -m bench.elements --apps mousepad,chromium --rounds 3",
        "python -m bench.elements --json evidence/elements.json --readme docs/benchmarks.md",
        "python -m bench.elements --from evidence/elements.json",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--apps", metavar="NAMES", help="Only these, with commas; by default all and what elements=True costs.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="How often each is measured.")
@click.option("--json", "json_path", metavar="PATH", callback=file_to_write, help="Write the report.")
@click.option("--readme", metavar="PATH", callback=file_to_write, help="Write the tables between this file's markers.")
@click.option("--peers", type=click.Path(path_type=Path), default=_PEERS, help="Where tools/peers has put them.")
@click.option("--no-peers", is_flag=True, help="Only ours.")
@click.option("--cost/--no-cost", default=None, help="Also, or not, what elements=True costs who reads none.")
@click.option(
    "--from", "source", type=click.Path(exists=True, dir_okay=False), help="Measure nothing: take that report."
)
def command(
    *,
    apps: str | None,
    rounds: int,
    json_path: str | None,
    readme: str | None,
    peers: Path,
    no_peers: bool,
    cost: bool | None,
    source: str | None,
) -> None:
    """Measure how long reading the accessibility tree takes, beside others."""
    if source is not None:
        report = Report.from_dict(json.loads(Path(source).read_text()))
    else:
        known = {each.name: each for each in APPLICATIONS}
        names = chosen("--apps", apps, known)
        with tempfile.TemporaryDirectory(prefix="deskhand-bench-", ignore_cleanup_errors=True) as directory:
            where = None if no_peers else peers.absolute()
            run = Run(Path(directory), where, rounds, lambda text: click.echo(text, err=True))
            report = measure(run, [known[name] for name in names], cost=apps is None if cost is None else cost)
    text = block(report)
    click.echo(text)
    if json_path is not None:
        write_report(json_path, report)
    if readme is not None:
        write_page(readme, text, MARKERS)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.elements"))
