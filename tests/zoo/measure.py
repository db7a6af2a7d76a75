"""One case of the zoo: act, take the frame that settling returned, and compare it with what the screen came to show.

The later frame is taken when the stage says that it has made all its changes, and at least a second after the return; where
no stage tells, a second and a half after the return without another change counts. A frame is final when the two show the same
pixels, but for the regions that move on their own. The overshoot is the time from the last change before the return to the
return: once by the pixels that really changed on the screen, once by what the stage logged.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deskhand import KeyPress, LeftClick

from .stages import PINGABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    import deskhand
    from deskhand import Action, Rect

    from .stages import Log, Stage

__all__ = ["Case", "Result", "differing", "measure", "run"]

_LATER = 1.0
_LONGEST_SIGN = 0.95
_DONE_LIMIT = 10.0
# Nothing else about a caret is as certain as its shape: at most so wide, and as high as a line.
_CARET = (3, 40)


@dataclass(frozen=True)
class Case:
    """What a stage is to do about one input.

    Attributes:
        kind: Of stage.
        times: Seconds after the input at which it changes.
        load: What it does meanwhile.
        beside: What moves on its own.
        trigger: `key` or `click`.
    """

    kind: str
    times: tuple[float, ...]
    load: str
    beside: tuple[str, ...] = ()
    trigger: str = "key"

    @property
    def name(self) -> str:
        """Short and unique."""
        steps = f"{len(self.times)} steps" if len(self.times) > 1 else "1 step"
        beside = f" beside {'+'.join(self.beside)}" if self.beside else ""
        return f"{self.kind} {self.load} {round(self.times[-1] * 1000)} ms {steps}{beside} by {self.trigger}"

    @property
    def sign(self) -> bool:
        """Whether there is anything by which the end of the answer can be told.

        The first change within the time that settling grants a reaction, further ones within the quiet it waits for, or an
        application that computes or does not answer.
        """
        reaction, quiet = 0.1, 0.05
        if self.load in {"fetch", "pair", "cursor"}:
            # An answer is waited for until the question is a second old, and so is a pointer that says wait.
            return bool((np.diff((0.0, *self.times)) <= _LONGEST_SIGN).all())
        if self.load == "block" and self.kind in PINGABLE:
            return True
        if self.load not in {"timer", "never", "block"}:
            return True
        gaps = np.diff(self.times) if len(self.times) > 1 else np.zeros(1)
        # A timer is late by some milliseconds, and a frame clock by up to a frame.
        return self.times[0] <= reaction - 0.02 and bool((gaps <= quiet - 0.01).all())


@dataclass
class Result:
    """One frame that settling returned, and how it fared. Times are seconds.

    Attributes:
        name: Of the case.
        group: Of the table's row.
        sign: Whether there was any sign of what was still to come.
        final: Whether the frame was final.
        settled: What the observation said.
        reason: The same.
        wall: How long `perform` took.
        elapsed: The parts that the observation splits it in.
        overshoot: From the last change on the screen before the return to the return, None when there was none.
        overshoot_log: The same by the stage's log.
        missed: From the return to the last change, when the frame was not final.
        error: What went wrong otherwise.
        kind: Of the stage or application, as the command line names it.
    """

    name: str
    group: str
    sign: bool
    final: bool
    settled: bool
    reason: str
    wall: float
    elapsed: dict[str, float] = field(default_factory=dict)
    overshoot: float | None = None
    overshoot_log: float | None = None
    missed: float | None = None
    error: str = ""
    kind: str = ""


def differing(one: NDArray[np.uint8], other: NDArray[np.uint8], moving: Sequence[Rect]) -> NDArray[np.bool_]:
    """Where two frames differ, outside what moves on its own."""
    different: NDArray[np.bool_] = (one != other).any(axis=2)
    for rect in moving:
        different[max(0, rect.y) : rect.bottom, max(0, rect.x) : rect.right] = False
    return different


def _is_caret(different: NDArray[np.bool_]) -> bool:
    (top, left), (bottom, right) = (edge(np.argwhere(different), axis=0) for edge in (np.min, np.max))
    return bool(right - left < _CARET[0] and bottom - top < _CARET[1])


def measure(
    desktop: deskhand.Desktop,
    actions: Sequence[Action],
    *,
    name: str,
    group: str,
    sign: bool,
    moving: Sequence[Rect] = (),
    caret: bool = False,
    log: Callable[[], Log] | None = None,
    later: float = _LATER,
) -> Result:
    """Act, and see whether the frame that came back was final.

    Args:
        desktop: Where.
        actions: What to do.
        name: Of the case.
        group: Of the table's row.
        sign: Whether the application gives any sign of being at work.
        moving: Regions of the screen that move on their own.
        caret: Whether a blinking caret may be anywhere.
        log: What the application says it has done, if it says.
        later: Seconds after the return before which the later frame is not taken.
    """
    screen = desktop._core.backend.screen
    generation = screen.generation
    begun = time.monotonic()
    seen = desktop.perform(*actions)
    returned = time.monotonic()
    desktop._core.watch.pause(later)
    while log is not None and log().left and time.monotonic() < returned + _DONE_LIMIT:
        desktop._core.watch.pause(0.2)
    told = log() if log is not None else None
    after = desktop.screenshot()
    different = differing(seen.array(), after.array(), moving)
    final = not different.any() or (caret and _is_caret(different))
    changes = [
        at
        for _, at, rects in screen.history(generation)
        if any(not any(_within(rect, region) for region in moving) for rect in rects)
    ]
    before = [at for at in changes if begun < at <= returned]
    missed = [at for at in changes if at > returned]
    logged = [at for at in told.changes if at <= returned] if told is not None else []
    result = Result(
        name=name,
        group=group,
        sign=sign,
        final=final,
        settled=seen.settled,
        reason=str(seen.reason),
        wall=returned - begun,
        elapsed=asdict(seen.elapsed),
        overshoot=returned - before[-1] if before else None,
        overshoot_log=returned - logged[-1] if logged else None,
        missed=missed[-1] - returned if missed and not final else None,
    )
    if told is not None and (told.left or told.inputs != 1):
        result.error = f"the stage made all but {told.left} changes, for {told.inputs} inputs"
    return result


def _within(rect: tuple[int, int, int, int], region: Rect) -> bool:
    x, y, width, height = rect
    return region.x <= x and region.y <= y and x + width <= region.right and y + height <= region.bottom


def run(stage: Stage, case: Case) -> Result:
    """One case on its stage, which shows what is to move beside it."""
    stage.arm(case.times, case.load)
    return measure(
        stage.desktop,
        [KeyPress(("a",)) if case.trigger == "key" else LeftClick(stage.spot)],
        name=case.name,
        group=f"{case.kind} {case.load}",
        sign=case.sign,
        moving=stage.moving,
        log=stage.log,
    )
