"""The progress of a run, and how it is shown: as a table on a terminal, as lines, or as JSON."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import is_quiet
from deskhand.episodes.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.live import Live

    from deskhand.episodes.run.plan import News
    from deskhand.episodes.run.run import Begun

_PERIOD = 0.25
_SHOWN = 12


class Course:
    """The progress of a run.

    Attributes:
        keys: How many episodes there are.
        done: How many of them are done.
        under_way: Those that are being tried, with the time when that began.
        results: How many attempts of this command ended in which way: `success`, `failure`, or a cause that made them invalid.
        retried: How many attempts were, or will be, repeated.
        others: At the end: how many episodes were done meanwhile without a report: by other commands, or on a node that
            was cut off.
    """

    def __init__(self, keys: int, done: int) -> None:
        self.keys = keys
        self.done: int = done
        self.under_way: dict[str, float] = {}
        self.results: Counter[str] = Counter()
        self.retried: int = 0
        self.others = 0

    @property
    def is_in_vain(self) -> bool:
        """Whether attempts were made, and the machinery has failed in each."""
        return self.results.total() > 0 and not self.results["success"] and not self.results["failure"]

    def on_news(self, news: News) -> None:
        """Record a piece of news."""
        name = str(news.key)
        if news.kind == "begun":
            self.under_way[name] = time.monotonic()
        elif news.key is not None:
            self.under_way.pop(name, None)
        if news.kind == "done" and news.result is not None:
            self.done += 1
            self.results[outcome_of(news.result)] += 1
        self.retried += news.kind == "retried"


class Shown(Protocol):
    """Shows the progress of a run."""

    def begin(self, begun: Begun, course: Course) -> None:
        """Before the first episode."""

    def on_news(self, news: News, course: Course) -> None:
        """Show a piece of news, which `course` has counted already."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def show(self, course: Course) -> Any:
        """A context manager that keeps the progress on the screen; None if it is not drawn."""

    def end(self, begun: Begun, course: Course, reason: str | None, again: str) -> None:
        """After the last one. `reason`: why the run was stopped; `again`: the command that continues it."""


def screen_for(*, as_json: bool) -> Shown:
    """The way to show the progress of a run, by the options and by where the output goes."""
    if as_json:
        return _Lines()
    if is_quiet():
        return _Quiet()
    return _Table() if sys.stderr.isatty() else _Plain()


@contextlib.contextmanager
def showing(screen: Shown, course: Course) -> Iterator[None]:
    """Keep the progress on the screen for as long as the context lasts, if it is drawn."""
    shown = screen.show(course)
    with shown if shown is not None else contextlib.nullcontext():
        yield


def _summary(course: Course) -> str:
    results = course.results
    invalid = {name: count for name, count in sorted(results.items()) if name not in {"success", "failure"}}
    causes = ", ".join(f"{name} {count}" for name, count in invalid.items())
    parts = [f"{results['success']} succeeded", f"{results['failure']} failed"]
    parts += [f"{sum(invalid.values())} invalid ({causes})"] if invalid else []
    parts += [f"{course.retried} attempts repeated"] if course.retried else []
    parts += [f"{course.others} done elsewhere (`deskhand report` counts them)"] if course.others > 0 else []
    return ", ".join(parts)


class _Plain:
    """A line for each episode."""

    def begin(self, begun: Begun, course: Course) -> None:
        shard = begun.plan.shard
        part = "" if shard == (0, 1) else f" of shard {shard[0]}/{shard[1]}"
        back = f", {begun.given_back} given back by a process that died" if begun.given_back else ""
        self.say(f"{course.keys} episodes{part} in {begun.plan.directory}, {course.done} of them done{back}")

    def on_news(self, news: News, course: Course) -> None:
        line = _line(news, course)
        if line is not None:
            self.say(line)

    def say(self, text: str) -> None:
        click.echo(clean(text), err=True)

    def show(self, course: Course) -> Any:
        del course

    def end(self, begun: Begun, course: Course, reason: str | None, again: str) -> None:
        none = "none was left to play" if reason is None else "none"
        played = _summary(course) if course.results or course.retried else none
        click.echo(f"{course.done} of {course.keys} episodes are done; this time: {played}", err=True)
        if course.is_in_vain:
            click.echo(
                "None of these episodes is valid: something else than the agent has failed, see above.", err=True
            )
        if reason is not None:
            click.echo(f"Stopped. To go on: {again}", err=True)
        elif course.done < course.keys:
            click.echo(f"Other workers have the remaining episodes, or have died. To go on: {again}", err=True)
        else:
            click.echo(f"deskhand report {shlex.quote(begun.plan.directory)}   # makes a page of it", err=True)


def _line(news: News, course: Course) -> str | None:
    if news.kind == "begun":
        return None
    if news.kind == "trouble":
        return f"the ledger: {news.text}"
    if news.kind == "page":
        return f"Watch it, with a link that works once: {news.text}"
    result = news.result or {}
    seconds = result.get("times", {}).get("total", 0.0)
    what = outcome_of(result) if news.kind == "done" else news.kind
    why = result.get("detail") or ("" if result.get("success") else result.get("reason", ""))
    count = f"[{course.done}/{course.keys}]" if news.kind == "done" else ""
    attempt = f" attempt {news.attempt}" if news.attempt > 1 or news.kind == "retried" else ""
    return f"{count} {what:<8} {news.key}{attempt} {seconds:.1f} s {why}".strip()


class _Table(_Plain):
    """A bar and the episodes under way, on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 # as in common.table

        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None

    def on_news(self, news: News, course: Course) -> None:
        # Successes are in the bar.
        if news.kind != "done" or news.result is None or outcome_of(news.result) != "success":
            super().on_news(news, course)

    def say(self, text: str) -> None:
        # Not wrapped here, so that a link stays whole.
        self._console.print(clean(text), markup=False, soft_wrap=True)

    def show(self, course: Course) -> Any:
        from rich.live import Live  # noqa: PLC0415 # as in common.table

        self._live = Live(
            get_renderable=lambda: _picture(course),
            console=self._console,
            refresh_per_second=1 / _PERIOD,
            transient=True,
        )
        return self._live

    def end(self, begun: Begun, course: Course, reason: str | None, again: str) -> None:
        if self._live is not None:
            # The terminal gets its cursor back, also where the process ends at once.
            self._live.stop()
        super().end(begun, course, reason, again)


def _picture(course: Course) -> Any:
    from rich.console import Group  # noqa: PLC0415 # as in common.table
    from rich.progress_bar import ProgressBar  # noqa: PLC0415 # likewise
    from rich.table import Table  # noqa: PLC0415 # likewise
    from rich.text import Text  # noqa: PLC0415 # likewise

    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, course.keys), completed=course.done, width=40)
    head.add_row(bar, Text(f"{course.done}/{course.keys}"), Text(_summary(course)))
    table = Table.grid(padding=(0, 2))
    now = time.monotonic()
    oldest = sorted(course.under_way.items(), key=lambda item: item[1])
    for name, since in oldest[:_SHOWN]:
        table.add_row(Text(clean(name)), Text(f"{now - since:.0f} s", style="dim"))
    if len(oldest) > _SHOWN:
        table.add_row(Text(f"and {len(oldest) - _SHOWN} more", style="dim"), Text(""))
    return Group(head, table)


class _Quiet(_Plain):
    """Troubles, the link of the page, and the end."""

    def begin(self, begun: Begun, course: Course) -> None:
        pass

    def on_news(self, news: News, course: Course) -> None:
        if news.kind in {"trouble", "page"}:
            super().on_news(news, course)


class _Lines:
    """One JSON object a line, on standard output."""

    def begin(self, begun: Begun, course: Course) -> None:
        self._line(
            kind="run",
            directory=begun.plan.directory,
            episodes=course.keys,
            done=course.done,
            new=begun.new,
            given_back=begun.given_back,
        )

    def on_news(self, news: News, course: Course) -> None:
        del course
        key = None if news.key is None else news.key._asdict()
        self._line(kind=news.kind, key=key, attempt=news.attempt, result=news.result, text=news.text)

    def say(self, text: str) -> None:
        click.echo(clean(text), err=True)

    def show(self, course: Course) -> Any:
        del course

    def end(self, begun: Begun, course: Course, reason: str | None, again: str) -> None:
        self._line(
            kind="end",
            directory=begun.plan.directory,
            episodes=course.keys,
            done=course.done,
            results=dict(course.results),
            retried=course.retried,
            others=course.others,
            stopped=reason,
            again=again,
        )

    @staticmethod
    def _line(**fields: object) -> None:
        click.echo(json.dumps(fields))
