"""What single signs are worth: the same cases with a sign and without it, in turns on one desktop.

Two signs can be taken away alone: a request over the network that nobody has answered yet, and a pointer that says that the
application is at work. Each case has two rows, which tell how many frames were final and what the wait took. The rows of a
change at once, beside requests that are always under way, tell what the sign costs where it is of no use.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand._core.settle import Activity

from .measure import Case, run
from .stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import deskhand
    from deskhand.backends.protocols import Backend

    from .measure import Result

__all__ = ["SIGNS", "run_sign"]

_LEARNT = 4.0


def _requests(kind: str) -> list[Case]:
    return [
        *(Case(kind, (at,), "fetch", trigger="click") for at in (0.05, 0.15, 0.4, 0.8)),
        Case(kind, (0.3,), "pair", trigger="click"),
        Case(kind, (0.0,), "never", trigger="click"),
        Case(kind, (0.15,), "fetch", ("longpoll",), "click"),
        *(Case(kind, (0.0,), "timer", beside, "click") for beside in (("longpoll",), ("stream",), ("poll",), ())),
    ]


def _cursor(kind: str) -> list[Case]:
    return [
        *(Case(kind, (0.4,), "cursor", trigger=trigger) for trigger in ("click", "key")),
        Case(kind, (0.0, 0.4), "cursor", trigger="click"),
        Case(kind, (2.0,), "cursor", trigger="click"),
    ]


# By the names that the command line has for them.
SIGNS: dict[str, list[Case]] = {
    **{f"requests-{kind}": _requests(kind) for kind in ("chromium", "firefox")},
    **{f"cursor-{kind}": _cursor(kind) for kind in ("gtk", "gtk4", "qt", "tk")},
}


class _NoRequests:
    """A backend that does not see requests over the network."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def activity(self, *, changed: bool) -> Activity:
        activity: Activity = self._backend.activity(changed=changed)
        return Activity.RESTING if activity is Activity.AWAITING else activity


@contextmanager
def _without(desktop: deskhand.Desktop, what: str) -> Iterator[None]:
    """Let the driver not see one sign."""
    watch: Any = desktop._core.watch
    name, blind = ("_says_wait", lambda: False) if what == "cursor" else ("_backend", _NoRequests(watch._backend))
    before = getattr(watch, name)
    setattr(watch, name, blind)
    try:
        yield
    finally:
        setattr(watch, name, before)


def _row(case: Case) -> str:
    steps = f", {len(case.times)} steps" if len(case.times) > 1 else ""
    beside = f" beside {'+'.join(case.beside)}" if case.beside else ""
    return f"{case.kind}: {case.load} {round(case.times[-1] * 1000)} ms{steps}{beside} by {case.trigger}"


def run_sign(desktop: deskhand.Desktop, kind: str, home: Path, match: str, repeats: int) -> Iterator[Result]:
    """The cases of one sign in one application, each as often with it as without it."""
    what, _, stage_kind = kind.partition("-")
    stage = Stage(desktop, stage_kind, home)
    try:
        for case in SIGNS[kind]:
            if match not in case.name:
                continue
            if case.beside != stage.beside:
                stage.show(case.beside)
                desktop._core.watch.pause(_LEARNT)
            for _ in range(repeats):
                seen = run(stage, case)
                yield replace(seen, group=_row(case))
                with _without(desktop, what):
                    unseen = run(stage, case)
                yield replace(unseen, group=f"{_row(case)}, not seen", sign=False)
    finally:
        stage.close()
