"""Looking at the screen: its cost when nothing, a line, a quarter or everything has changed since the last look.

The clock starts when a change is on the screen, and stops when the bytes are available. The thread that watches the screen
between two calls is paused, so that none of its work is done before the clock starts. Looks without that pause, and looks after
a second's rest, have rows of their own. The peers look at the same screen, once a round; the size of the change does not matter
to them, because they take the whole screen. While one contender is measured, the others are stopped.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import deskhand
from bench.context import Context, quiet, timed
from bench.figures import AHEAD, OURS, ROUND_TRIP, Row, Samples, rested
from bench.inside import counters, generation, round_trip, unwatched
from bench.peers import PEERS, Crew
from bench.stage import Stage
from bench.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.scenes import Scene

__all__ = ["CASES", "look"]

SCALED = (1366, 768)
_OURS_A_ROUND = 3
_TIGHTENING = 1.0
# The least time that an agent thinks: then caches are cold, and processes asleep.
_REST = 1.0
_UNSEEN_TRIES = 10
_NOTICED_LIMIT, _NOTICED_SLICE = 5.0, 0.005
# Faster changes count as a video, which is coded differently and has a row of its own.
_BETWEEN = 0.12
_COUNTED = 5
# The largest number of pixels by which two images of the pointer, such as x11vnc's and ours, may differ.
_CURSOR_PIXELS = 64 * 64
# How often a peer is asked for a correct picture, and how much longer it may take each time.
_ATTEMPTS, _SETTLING = 4, 1.0
# The scene and size at which all peers look, and the numbers of rounds; elsewhere only marked peers look.
_MAIN = ("page", (1920, 1080))
_ROUNDS = {_MAIN: (12, 3), ("photo", (1920, 1080)): (5, 1)}
_OTHER_ROUNDS = (6, 2)

NOTHING, LINE, QUARTER, EVERYTHING = (
    "nothing changed",
    "one line changed",
    "a quarter changed",
    "everything changed",
)
LATER = "everything changed, a second later"
SCROLLED = "text scrolled by a line"
CASES: dict[str, tuple[str, ...]] = {
    "page": (NOTHING, LINE, QUARTER, EVERYTHING),
    "terminal": (NOTHING, LINE, SCROLLED),
    "photo": (QUARTER, EVERYTHING),
}
"""The changes of each scene."""


class _Screenplay:
    """Changes a part of the stage from one picture to the other, and back."""

    def __init__(self, stage: Stage, scene: Scene) -> None:
        self._stage = stage
        self._scene = scene
        self._parts = {LINE: scene.line, QUARTER: scene.quarter}
        self.pixels_changed = {NOTHING: 0.0, EVERYTHING: scene.pixels_changed(), SCROLLED: scene.pixels_changed()}
        self.pixels_changed |= {case: scene.pixels_changed(part) for case, part in self._parts.items() if part}
        if scene.name != "terminal" and self.pixels_changed[EVERYTHING] < 1:
            raise RuntimeError(f"everything should change, but {self.pixels_changed[EVERYTHING]:%} of the pixels do")
        self._shown = dict.fromkeys((LINE, QUARTER, EVERYTHING), "first")
        stage.load(scene.pictures)
        stage.show("first")

    def change(self, what: str) -> None:
        """Make a change; it is on the screen when this returns."""
        if what == NOTHING:
            return
        part = EVERYTHING if what == SCROLLED else what
        picture = "second" if self._shown[part] == "first" else "first"
        if part == EVERYTHING:
            self.show(picture)
        else:
            self._stage.show(picture, self._parts[part])
            self._shown[part] = picture

    def show(self, picture: str) -> None:
        """Show one of the two pictures, completely."""
        self._stage.show(picture)
        self._shown = dict.fromkeys(self._shown, picture)

    def expected(self) -> NDArray[np.uint8]:
        """The present content of the screen."""
        found = self._scene.pictures[self._shown[EVERYTHING]].copy()
        for part, rect in self._parts.items():
            if rect is not None:
                x, y, w, h = rect
                found[y : y + h, x : x + w] = self._scene.pictures[self._shown[part]][y : y + h, x : x + w]
        return found


@dataclass(frozen=True, slots=True)
class _View:
    """One of our ways to look; it returns the size of the file and the screen's generation, if it has them."""

    group: str
    look: Callable[[deskhand.Desktop], tuple[int | None, int | None]]
    cases: Sequence[str]
    gives: str


def _native(desktop: deskhand.Desktop) -> tuple[int, int]:
    shot = desktop.screenshot()
    return len(shot.png), shot.generation


def _scaled(desktop: deskhand.Desktop) -> tuple[int, int]:
    shot = desktop.screenshot(size=SCALED)
    return len(shot.png), shot.generation


def _array(desktop: deskhand.Desktop) -> tuple[None, None]:
    desktop.screenshot(format="raw").array()
    return None, None


def look(context: Context, size: tuple[int, int], name: str) -> Iterator[Row]:
    """Measure one scene at one size.

    Args:
        context: The run.
        size: The size of the screen.
        name: The name of the scene.

    Raises:
        Missing: A program in the scene is not installed.
    """
    scene = context.scene(name, size)
    place = f"{size[0]}x{size[1]}/{name}"
    views = [_View("look", _native, CASES[name], "png")]
    if (name, size) == _MAIN:
        views += [
            _View("scaled", _scaled, CASES[name], "scaled"),
            _View("array", _array, (NOTHING, EVERYTHING), "array"),
        ]
    given = {view.gives for view in views}
    whole, fast = _ROUNDS.get((name, size), _OTHER_ROUNDS)
    everybody = (name, size) in _ROUNDS
    peers = [peer for peer in PEERS if peer.gives in given and (everybody or peer.everywhere)]
    groups = {peer.name: next(view.group for view in views if view.gives == peer.gives) for peer in peers}
    ours = {(view.group, case): Samples(f"{view.group}/{place}", case) for view in views for case in view.cases}
    theirs = {peer.name: Samples(f"{groups[peer.name]}/{place}", EVERYTHING, peer.name) for peer in peers}
    with deskhand.launch(size=size) as desktop, Stage(desktop, context.scratch) as stage:
        play = _Screenplay(stage, scene)
        with Crew(desktop, context.scratch, peers) as crew:
            wrong = _verify(desktop, play, crew, context.scratch)
            rounds = context.times(whole, fast)
            for number in range(-1, rounds):
                context.say(f"{place}: round {max(number, 0) + 1} of {rounds}")
                _round(desktop, play, views, ours, number)
                _peers_round(play, crew, theirs, number)
        later = _tightened(desktop, play, f"look/{place}", 1 if context.quick else 3)
        requests = _requests(desktop, play, views, context.scratch)
        clock = _clock(context, desktop, play, place) if (name, size) == _MAIN else []
    for peer_name, samples in theirs.items():
        failures = crew.failures.get(peer_name, [])
        again = f"failed {len(failures)} times, and was started anew; at last: {failures[-1]}" if failures else ""
        # Beside numbers it becomes a note.
        samples.missing = crew.missing.get(peer_name, again)
        samples.note = wrong.get(peer_name, "")
    for key, samples in ours.items():
        yield samples.row(pixels_changed=round(play.pixels_changed[key[1]], 6), x_requests=requests[key])
    yield later
    yield from clock
    for samples in theirs.values():
        yield samples.row()


def _round(
    desktop: deskhand.Desktop,
    play: _Screenplay,
    views: Sequence[_View],
    ours: dict[tuple[str, str], Samples],
    number: int,
) -> None:
    """Measure all of ours, in a new order each time; the very first round only warms up."""
    todo = [(view, case) for view in views for case in view.cases] * _OURS_A_ROUND
    random.Random(number).shuffle(todo)  # noqa: S311 # for an order, not for secrecy
    for view, case in todo:
        quiet()
        time.sleep(_BETWEEN)
        with unwatched(desktop):
            before, counted = _change_unseen(desktop, play, view, case)
            begun = time.perf_counter()
            size, after = view.look(desktop)
            took = (time.perf_counter() - begun) * 1000
            counts = {key: value - counted[key] for key, value in counters(desktop).items()}
        if before is not None and (after == before) != (case == NOTHING):
            raise RuntimeError(f"{case}, but the generation of the screen went from {before} to {after}")
        if number >= 0:
            ours[view.group, case].add(took, size, counts)


def _change_unseen(
    desktop: deskhand.Desktop, play: _Screenplay, view: _View, case: str
) -> tuple[int | None, Mapping[str, float]]:
    """Make a change that has not been captured when this returns; returns the generation and the counters before it.

    The thread that watches the screen may be in the middle of a capture when it is paused, and capture the change in that one.
    """
    for _ in range(_UNSEEN_TRIES):
        # The next look finds only changes after this one, and every measured look follows one of the same kind.
        _, before = view.look(desktop)
        known, counted = generation(desktop), counters(desktop)
        play.change(case)
        if (generation(desktop), counters(desktop)) == (known, counted):
            return before, counted
    raise RuntimeError(f"{case}, and each time some of it was captured before the clock started")


def _clock(context: Context, desktop: deskhand.Desktop, play: _Screenplay, place: str) -> list[Row]:
    """Measure the cost of a rest before a look, and of a look whose change was captured before the clock started."""
    section = f"clock/{place}"
    cases = (NOTHING, LINE, EVERYTHING)
    bare, bare_rested = Samples(section, ROUND_TRIP), Samples(section, rested(ROUND_TRIP))
    cold = {case: Samples(section, rested(case)) for case in cases}
    ahead = {case: Samples(section, case + AHEAD) for case in cases if case != NOTHING}
    rounds = context.times(12, 3)
    for number in range(rounds):
        context.say(f"{section}: {number + 1} of {rounds}")
        time.sleep(_REST)
        bare_rested.add(timed(lambda: round_trip(desktop)))
        bare.add(timed(lambda: round_trip(desktop)))
        for case, samples in cold.items():
            desktop.screenshot()
            time.sleep(_REST)
            with unwatched(desktop):
                known = generation(desktop)
                play.change(case)
                # For the same reason as in `_change_unseen`.
                if generation(desktop) == known:
                    samples.add(*_looked(desktop))
        for case, samples in ahead.items():
            before = desktop.screenshot().generation
            play.change(case)
            _wait_noticed(desktop, before)
            samples.add(*_looked(desktop))
    return [samples.row() for samples in (bare, bare_rested, *cold.values(), *ahead.values())]


def _looked(desktop: deskhand.Desktop) -> tuple[float, int]:
    """The milliseconds and bytes of a look."""
    begun = time.perf_counter()
    png = desktop.screenshot().png
    return (time.perf_counter() - begun) * 1000, len(png)


def _wait_noticed(desktop: deskhand.Desktop, before: int) -> None:
    """Wait until the watching thread has captured a change."""
    deadline = time.monotonic() + _NOTICED_LIMIT
    while generation(desktop) == before:
        if time.monotonic() > deadline:
            raise RuntimeError(f"a change was not captured within {_NOTICED_LIMIT:g} s")
        time.sleep(_NOTICED_SLICE)
    quiet()


def _peers_round(play: _Screenplay, crew: Crew, theirs: dict[str, Samples], number: int) -> None:
    pictures = ("first", "second") if number % 2 else ("second", "first")
    play.show(pictures[1])
    names = crew.names
    random.Random(number).shuffle(names)  # noqa: S311 # as above
    for name in names:
        if crew.wake(name):
            for picture in pictures:
                play.show(picture)
        quiet()
        seen = crew.look(name) if name in crew.names else None
        if seen is not None and number >= 0:
            theirs[name].add(*seen)


def _tightened(desktop: deskhand.Desktop, play: _Screenplay, section: str, rounds: int) -> Row:
    """Measure the size of the file after there was time to make it smaller."""
    samples = Samples(section, LATER, note="the look after a second in which nothing changed")
    for _ in range(rounds):
        play.change(EVERYTHING)
        # What only one look has shown may have changed before the next one, and is left as it is.
        desktop.screenshot()
        desktop.screenshot()
        # Not a `Wait`: background work is only done while there is no call.
        time.sleep(_TIGHTENING)
        begun = time.perf_counter()
        shot = desktop.screenshot()
        samples.add((time.perf_counter() - begun) * 1000, len(shot.png))
    return samples.row()


def _requests(
    desktop: deskhand.Desktop, play: _Screenplay, views: Sequence[_View], scratch: Path
) -> dict[tuple[str, str], float]:
    """The number of requests of each look to the X server, as counted by the server."""
    found = {}
    with Traffic(desktop, scratch) as traffic:
        for view in views:
            for case in view.cases:
                counts = []
                for _ in range(_COUNTED):
                    quiet()
                    view.look(desktop)
                    play.change(case)
                    traffic.count()
                    view.look(desktop)
                    counts.append(traffic.count())
                found[view.group, case] = statistics.median(counts)
    return found


def _verify(desktop: deskhand.Desktop, play: _Screenplay, crew: Crew, scratch: Path) -> dict[str, str]:
    """Check that every contender sees the stage; returns a note for each peer that does not."""
    notes = {}
    for step in (NOTHING, EVERYTHING):
        play.change(step)
        expected = play.expected()
        if not np.array_equal(desktop.screenshot(cursor=False).array(), expected):
            raise RuntimeError(f"{OURS} does not show what is on the screen")
        if _differing(desktop.screenshot(format="raw").array(), expected) > _CURSOR_PIXELS:
            raise RuntimeError(f"the array of {OURS} does not show what is on the screen")
    for name in crew.names:
        wrong = _wrong_pixels(desktop, play, crew, name, scratch / "seen.npy")
        if wrong > _CURSOR_PIXELS:
            notes[name] = f"{wrong:,} pixels are wrong"
    return notes


def _wrong_pixels(desktop: deskhand.Desktop, play: _Screenplay, crew: Crew, name: str, path: Path) -> int:
    """The number of pixels in which a peer's picture differs from the screen; 0 if it makes no such picture.

    A peer that watches the screen by itself, and is stopped while others are measured, may have an old picture for that reason.
    It gets more changes to notice, and time, before its picture counts as wrong.
    """
    wrong = 0
    sleeps = crew.wake(name)
    for attempt in range(_ATTEMPTS):
        if sleeps:
            for _ in range(2):
                play.change(EVERYTHING)
                time.sleep(attempt * _SETTLING)
        expected = play.expected()
        if name not in crew.names or not crew.save(name, path):
            return 0
        # The reference is taken after the peer's picture, and must be the expected one: so nothing changed in between.
        if not np.array_equal(desktop.screenshot(cursor=False).array(), expected):
            raise RuntimeError(f"the screen changed by itself while {name} looked at it")
        seen = np.load(path)
        wrong = _differing(seen, expected) if seen.shape == expected.shape else 0
        if wrong <= _CURSOR_PIXELS:
            break
        sleeps = crew.wake(name)
    return wrong


def _differing(seen: NDArray[np.uint8], expected: NDArray[np.uint8]) -> int:
    return int((seen != expected).any(axis=2).sum())
