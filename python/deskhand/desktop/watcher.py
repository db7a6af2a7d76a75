"""Looking at a desktop and waiting for it: the settle machine run on a real clock and a real backend.

This module owns what has been seen so far, the ambient changes learnt from it, and the loops that wait. What must never appear
here: input, a lock (callers hold the desktop's), a rule of settling (see `deskhand._core.settle`).
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from deskhand._core.ambient import Ambient
from deskhand._core.formats import encode
from deskhand._core.geometry import Point, Rect, Size, Viewport, check_region
from deskhand._core.habits import Habit, Habits
from deskhand._core.observation import Screenshot
from deskhand._core.pointer_shapes import pointer_shape
from deskhand._core.settle import Reason, Settle, SettleResult, inside_any
from deskhand._core.settle_machine import Machine
from deskhand._core.sizes import picture_size
from deskhand._native import Interrupted
from deskhand.errors import ServerSilent

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.formats import Format
    from deskhand._core.sizes import PictureSize
    from deskhand.backends.protocols import Backend

# The longest wait, so that a stop by another thread takes effect soon.
_SLICE = 0.25
# Extra time at the end, so that a slow server is not reported as silent.
GRACE = 0.2
# So many files are made for one that follows, at most: what goes on changing is not worth more.
_MADE_AHEAD = 2
# What a pointer looks like where an application is at work.
_AT_WORK = frozenset({"wait", "progress"})


class Watch:
    """What the driver has seen of one desktop.

    Attributes:
        clock: Monotonic seconds.
        before: The screen's generation before what was sent since `catch_up`, as far as that is known.
        stop: Set from another thread to end the wait under way with `Interrupted`.
        sent: When the last input was sent.
        keyed: When the last keys were sent that no application is known to have answered.
    """

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        """Watch `backend`, with times from `clock` in monotonic seconds."""
        self.stop = False
        self._backend = backend
        self._screen = backend.screen
        self.clock = clock
        self._ambient = Ambient()
        self._habits = Habits()
        self._waited = False
        self._seen = self._screen.generation
        self._epoch = self._screen.epoch
        self._mark: int | None = None
        self.before: int = self._seen
        self.sent: float = -math.inf
        self.keyed: float = -math.inf

    def check_stop(self) -> None:
        """Raise `Interrupted` if a stop was asked for."""
        if self.stop:
            raise Interrupted("this call was stopped")

    def catch_up(self, limit: float | None = None) -> None:
        """Separate new changes from old, and learn what changed on its own since the last call; see `Backend.mark`."""
        self._mark = self._backend.mark(limit)
        self._backend.take_stock()
        self._waited = self._says_wait()
        self.before = self._screen.generation
        if self._mark is None:
            self._screen.keep()
        if self._screen.epoch != self._epoch:
            self._epoch = self._screen.epoch
            self._ambient.forget()
        for at, rects in self._news():
            self._note_between(at, rects)

    def _says_wait(self) -> bool:
        """Whether the pointer looks as where an application is at work. No request is made: the name came with the image."""
        return pointer_shape(self._screen.cursor_name) in _AT_WORK

    def begin_anew(self) -> None:
        """Forget what changed so far: a person was at work, and the desktop did not change on its own."""
        self._seen = self._screen.generation
        self._ambient.forget()

    def changes(self, since: int | None = None) -> list[Rect]:
        """What changed since `catch_up`, or since that generation."""
        self._find_mark(self._screen.generation)
        return [Rect(*rect) for rect in self._screen.changes(self.before if since is None else since)]

    def _find_mark(self, seen: int) -> None:
        """Assign what was seen before the mark came to before. `seen` must be known before this is called."""
        if self._mark is not None:
            marked = self._backend.marked(self._mark)
            self.before = seen if marked is None else marked
            if marked is not None:
                self._mark = None

    def _news(self) -> list[tuple[float, list[Rect]]]:
        """What changed since the last time; changes from before the mark are the desktop's own."""
        seen = [
            (generation, at, [Rect(*rect) for rect in rects])
            for generation, at, rects in self._screen.history(self._seen)
        ]
        if seen:
            self._seen = seen[-1][0]
        self._find_mark(self._seen)
        news = []
        for generation, at, rects in seen:
            if generation > self.before:
                news.append((at, rects))
            else:
                self._note_between(at, rects)
        return news

    def _note_between(self, at: float, rects: list[Rect]) -> None:
        if self._habits.may_unlearn(at):
            still = self._ambient.regions(at)
            if not all(inside_any(rect, still) for rect in rects):
                self._habits.unlearn()
        self._ambient.feed(at, rects)

    def pause(self, seconds: float) -> None:
        """Let time pass, keeping the screen current."""
        deadline = self.clock() + seconds
        while (left := deadline - self.clock()) > 0:
            self.check_stop()
            self._backend.allow(left)
            with contextlib.suppress(ServerSilent):
                self._backend.wait(min(left, _SLICE))
        self._backend.allow(None)

    def until(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until `done()`, which is called whenever something happened; False if it is not within `timeout` seconds."""
        deadline = self.clock() + timeout
        while not done():
            self.check_stop()
            left = deadline - self.clock()
            if left <= 0:
                return False
            self._backend.wait(min(left, _SLICE))
        return True

    def appears(self, limit: float) -> bool:
        """Wait until something changes that did not on its own before; False after `limit` seconds. With 0 it only looks."""
        now = self.clock()
        machine = Machine(Settle(), now=now, ambient=self._ambient.regions(now), can_probe=False)
        relevant: list[tuple[float, list[Rect]]] = []
        deadline = now + limit
        self._report(machine, relevant)
        while not relevant and (left := deadline - self.clock()) > 0:
            self.check_stop()
            self._backend.wait(min(left, _SLICE))
            self._report(machine, relevant)
        return bool(relevant)

    def settle(
        self,
        settings: Settle | None,
        *,
        at_pointer: bool = False,
        window: int | None = None,
        whole: bool = True,
        file: bool = False,
        kind: str | None = None,
    ) -> SettleResult:
        """Wait until the screen has answered the input that has just been sent.

        Args:
            settings: How to wait; None does not.
            at_pointer: The input went to the window under the pointer, else to the one with the focus.
            window: The input went to this window.
            whole: The input is a whole action: what keeps changing after it is the desktop's own from here.
            file: A file follows, as the one before: it is made while nothing changes.
            kind: What all input of this kind has in common, where its answers may be alike.
        """
        if settings is None:
            return SettleResult(settled=False, reason=Reason.NOT_WAITED, first_change=None, last_change=None, busy=())
        now = self.clock()
        ambient = self._ambient.regions(now)
        machine = Machine(settings, now=now, ambient=ambient, can_probe=True, lag=self._backend.lag)
        self._backend.allow(settings.timeout + GRACE)
        relevant: list[tuple[float, list[Rect]]] = []
        ask = partial(self._backend.probe, at_pointer=at_pointer, window=window)
        habit = None
        try:
            probe = ask()
            habit = self._habit(kind)
            if habit is not None and self._habits.is_learnt(habit):
                machine.hasten()
            result = self._run(machine, relevant, ask, probe, file=file)
        except ServerSilent:
            result = machine.silent()
        finally:
            self._screen.expect(0)
            self._backend.allow(None)
        if habit is not None and result.reason is Reason.QUIET and machine.was_lone is not None:
            self._habits.ended(habit, self.clock(), alone=machine.was_lone)
        if result.reason is Reason.STILL_CHANGING and whole:
            # What this action set going (a video, a spinner) goes on by itself from here.
            for at, rects in relevant:
                self._ambient.feed(at, rects)
        return result

    def _habit(self, kind: str | None) -> Habit | None:
        """What is learnt of the window that was just asked, if anything is of this kind of input."""
        window = None if kind is None else self._backend.input_window()
        return None if kind is None or window is None else Habit(window, kind)

    def _run(
        self,
        machine: Machine,
        relevant: list[tuple[float, list[Rect]]],
        ask: Callable[[], int | None],
        probe: int | None,
        *,
        file: bool,
    ) -> SettleResult:
        """Ask, look and wait until the machine, which has just begun, has a verdict; `relevant` is what changed."""
        unanswered: deque[int] = deque()

        def asked(probe: int | None, at: float) -> None:
            if probe is None:
                machine.unprobeable()
            else:
                machine.probed(at)
                unanswered.append(probe)

        asked(probe, machine.start)
        while True:
            # Before the changes are: an event from before an answer must not be reported after it.
            answers = 0
            while unanswered and self._backend.answered(unanswered[0]):
                unanswered.popleft()
                answers += 1
            self._report(machine, relevant)
            now = self.clock()
            for _ in range(answers):
                machine.answered(now)
            if machine.wants_look(now):
                activity = self._backend.activity(changed=machine.has_changed)
                machine.looked(now, activity, says_wait=not self._waited and self._says_wait())
            result = machine.result(now)
            if result is not None:
                if result.settled and self._shows_more(machine, relevant):
                    continue
                return result
            if machine.wants_probe(now):
                asked(ask(), now)
            else:
                self.check_stop()
                if file and machine.has_changed:
                    self._screen.expect(_MADE_AHEAD)
                    file = False
                self._backend.wait(machine.wait(now))

    def _shows_more(self, machine: Machine, relevant: list[tuple[float, list[Rect]]]) -> bool:
        """Whether a look finds a relevant change: this thread may not have run since before the screen changed."""
        if self._backend.lag.frame:
            # What is seen lags behind; a probe is answered after the changes.
            return False
        before = len(relevant)
        # This thread may have been away for longer than the wait may last.
        self._backend.allow(max(GRACE, machine.ends + GRACE - self.clock()))
        self._backend.look()
        self._report(machine, relevant)
        return len(relevant) > before

    def _report(self, machine: Machine, relevant: list[tuple[float, list[Rect]]]) -> None:
        for at, rects in self._news():
            if machine.changed(at, rects):
                relevant.append((at, rects))
            else:
                self._ambient.feed(at, rects)

    def picture(
        self,
        size: PictureSize | None,
        region: tuple[int, int, int, int] | None,
        *,
        cursor: bool,
        format: Format,
        quality: int,
    ) -> Screenshot:
        """The screen as it was last brought up to date."""
        screen = self._screen
        whole = Size(*screen.size)
        area = check_region(Rect(*region), whole) if region is not None else None
        wanted = picture_size(size, area.size if area is not None else whole)
        generation = screen.generation
        match format:
            case "png":
                data = screen.png(wanted, area, cursor)
            case "indexed":
                data = screen.indexed_png(wanted, area, cursor)
            case "raw":
                data = screen.rgb(wanted, area, cursor)[2]
            case lossy:
                data = encode(screen.rgb(wanted, area, cursor)[2], wanted, lossy, quality)
        viewport, shape = Viewport(whole, wanted, area), pointer_shape(screen.cursor_name)
        return Screenshot(data, format, viewport, Point(*screen.pointer), generation, pointer_shape=shape)
