"""Verifies a run that was made elsewhere: its plan, its records, and its scores, evaluated again from the recorded end states.

This module owns the verdicts. The run's folder is data: only tasks of the caller are called, and they are given no desktop.
What a result may say is in `plausible`. A record is its author's word: that it agrees with itself does not prove that it
happened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import one_line
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.play.grading import regrade
from deskhand.episodes.record.reader import LEDGER, key_of
from deskhand.episodes.report.plausible import implausible
from deskhand.episodes.tasks.catalogue import digest, instance
from deskhand.episodes.tasks.task import instance_seed
from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deskhand.episodes.ledger.ledger import Key
    from deskhand.episodes.record.reader import Recording, Run
    from deskhand.episodes.tasks.task import Task

_MOST_EPISODES = 1_000_000
_LARGEST_LEDGER = 1 << 30
_LONGEST = 300
_SHOWN = 3
_DIGITS = 12


class Verdict(StrEnum):
    """The verdict on an episode, a task or a run."""

    CONFIRMED = "confirmed"
    DIFFERS = "differs"
    UNCHECKED = "cannot be checked"


@dataclass(frozen=True, slots=True)
class EpisodeVerdict:
    """One planned episode.

    Attributes:
        episode: Its name.
        verdict: The verdict.
        reasons: What differs, or why it cannot be checked.
    """

    episode: str
    verdict: Verdict
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """One task: it differs if one of its episodes does, and is confirmed if all are.

    Attributes:
        task: Its name.
        verdict: The verdict.
        episodes: How many episodes of it are planned.
        confirmed: How many of them are confirmed.
        reasons: The first few reasons of its episodes.
    """

    task: str
    verdict: Verdict
    episodes: int
    confirmed: int
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """A run.

    Attributes:
        problems: What is wrong with it beside its planned episodes.
        tasks: Its tasks.
        episodes: Its episodes.
    """

    problems: Sequence[str]
    tasks: Sequence[TaskVerdict]
    episodes: Sequence[EpisodeVerdict]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole: it differs if there is a problem or a task differs."""
        if self.problems:
            return Verdict.DIFFERS
        return _worst([each.verdict for each in self.tasks])


@dataclass(frozen=True, slots=True)
class _Claim:
    """The result of an episode that the ledger has, or that of its last attempt if there is no ledger."""

    result: Mapping[str, Any]
    failures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Plan:
    tasks: Mapping[str, Any]
    run_seed: int
    started: float
    keys: Sequence[Key]
    others: frozenset[Key]


def verify_run(run: Run, tasks: Mapping[str, Task], *, now: float) -> RunVerdict:
    """Verify a run.

    Args:
        run: The run, which is untrusted.
        tasks: The tasks of this machine, by name; their code is called.
        now: Seconds since 1970.

    Raises:
        EpisodeError: The run does not say what was planned, or is too large.
    """
    plan = _plan(run.manifest)
    problems: list[str] = []
    claims = _claims(run, problems)
    recordings: dict[str, list[Recording]] = {}
    for each in run.recordings():
        recordings.setdefault(each.key, []).append(each)
    known = {*plan.keys, *plan.others}
    problems += [f"{key} is in the ledger, and was not planned" for key in claims if key not in known]
    names = {str(key) for key in known}
    problems += [
        f"the folder {name!r} has attempts, and is of no planned episode" for name in recordings if name not in names
    ]
    # What was queued before a limit is part of the run, too.
    keys = [*plan.keys, *(key for key in sorted(plan.others) if key in claims)]
    found: dict[str, list[EpisodeVerdict]] = {}
    for key in keys:
        attempts = recordings.pop(str(key), [])
        verdict = _Episode(plan, key, tasks.get(key.task), now).verdict(claims.get(key), attempts)
        found.setdefault(key.task, []).append(verdict)
    return RunVerdict(
        tuple(one_line(each, _LONGEST) for each in problems),
        tuple(_task(name, several) for name, several in found.items()),
        tuple(each for several in found.values() for each in several),
    )


# --- the plan and the ledger ---


def _plan(manifest: Mapping[str, Any]) -> _Plan:
    tasks, limit = manifest.get("tasks"), manifest.get("limit")
    numbers = {name: manifest.get(name) for name in ("run_seed", "seeds", "repeats")}
    wrong = [name for name, value in numbers.items() if not isinstance(value, int)]
    if not isinstance(tasks, dict) or not tasks or wrong or not isinstance(limit, int | None):
        raise EpisodeError(
            f"the manifest does not say what was planned: {', '.join(wrong) or 'its tasks or its limit'}"
        )
    seeds, repeats = int(manifest["seeds"]), int(manifest["repeats"])
    if min(seeds, repeats) < 1 or len(tasks) * seeds * repeats > _MOST_EPISODES:
        raise EpisodeError(
            f"the manifest plans {seeds} seeds and {repeats} repeats of {len(tasks)} tasks: too many, or none"
        )
    every = [
        key_of({"task": task, "variant": "", "seed": seed, "repeat": repeat})
        for repeat, seed, task in product(range(repeats), range(seeds), tasks)
    ]
    planned = list(islice(every, None if limit is None else max(0, limit)))
    started = manifest.get("started")
    begun = float(started) if isinstance(started, int | float) else 0.0
    return _Plan(tasks, int(manifest["run_seed"]), begun, planned, frozenset(every).difference(planned))


def _claims(run: Run, problems: list[str]) -> dict[Key, _Claim]:
    """The results by episode; an episode without one is not among them."""
    ledger = run.directory / LEDGER
    if ledger.exists() and ledger.lstat().st_size > _LARGEST_LEDGER:
        raise EpisodeError(f"the ledger has more than {_LARGEST_LEDGER} bytes")
    found: dict[Key, _Claim] = {}
    for key, claim in _read_claims(run):
        if key in found:
            problems.append(f"{key} is in the ledger twice")
        found[key] = claim
    return found


def _read_claims(run: Run) -> Iterator[tuple[Key, _Claim]]:
    try:
        rows = run.rows
        if rows is None and (run.directory / LEDGER).exists():
            raise EpisodeError(
                f"{run.directory} cannot be written to, so that its ledger cannot be opened: copy it first"
            )
        if rows is None:
            yield from ((key_of(each), _Claim(each, each.get("failures", {}))) for each in run.results())
            return
        for row in rows:
            key = key_of(row.key._asdict())
            if row.result is not None:
                yield key, _Claim(row.result, row.failures)
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise EpisodeError(f"the ledger or a result in it is damaged: {error!r}") from error


# --- an episode ---


@dataclass(slots=True)
class _Episode:
    """One planned episode, and what is found about it."""

    plan: _Plan
    key: Key
    task: Task | None
    now: float
    differs: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def verdict(self, claim: _Claim | None, attempts: Sequence[Recording]) -> EpisodeVerdict:
        if claim is None:
            self.differs.append("it was planned, and has no result")
        else:
            try:
                if (recording := self._counted(claim, attempts)) is not None:
                    self._check(claim, recording)
            except EpisodeError as error:
                self.differs.append(f"its record is damaged: {error}")
            except (ValueError, TypeError, KeyError, RecursionError, AttributeError, OverflowError) as error:
                # Of a form that no recorder writes.
                self.differs.append(f"its record is damaged: {error!r}")
        reasons = [one_line(each, _LONGEST) for each in (*self.differs, *self.unchecked)]
        kind = Verdict.DIFFERS if self.differs else Verdict.UNCHECKED if self.unchecked else Verdict.CONFIRMED
        return EpisodeVerdict(str(self.key), kind, tuple(reasons))

    def _counted(self, claim: _Claim, attempts: Sequence[Recording]) -> Recording | None:
        """The attempt that counts, after a look at the others: no result may have been left out for a better one."""
        number = claim.result.get("attempt")
        lost = claim.failures.get(str(Cause.DESKTOP_LOST), 0)
        counted = None
        for each in attempts:
            if each.attempt == number and not each.superseded:
                counted = each
                continue
            result = each.result
            if result is None or _is_repeated(result):
                # It was killed or stopped, or failed for a cause that leads to another attempt.
                continue
            if lost > 0:
                # Its worker had lost the episode to another one.
                lost -= 1
                continue
            detail = f"score {shown(result.get('score'))}"
            self.differs.append(f"{each.directory.name} ended with a result too ({detail}), which does not count")
        if counted is None:
            self.differs.append(f"the record of attempt {shown(number)}, which counts, is missing")
        elif (kept := counted.result or {}) != claim.result:
            other = [name for name in sorted({*claim.result, *kept}) if kept.get(name) != claim.result.get(name)]
            detail = ", ".join(other[:_SHOWN])
            self.differs.append(f"the ledger and the record of {counted.directory.name} differ in {detail}")
        return counted

    def _check(self, claim: _Claim, recording: Recording) -> None:
        result, begin = claim.result, recording.begin
        if any(key_of(each) != self.key for each in (result, begin or result)):
            self.differs.append("its result or its record is of another episode")
        if dict(claim.failures) != result.get("failures"):
            self.differs.append("its earlier attempts differ between the ledger and its result")
        seed = instance_seed(self.plan.run_seed, self.key.task, self.key.variant, self.key.seed)
        if result.get("instance_seed") != seed:
            self.differs.append(f"its seed is {shown(result.get('instance_seed'))}, and the plan's is {seed}")
        if begin.get("parameters") != result.get("parameters"):
            self.differs.append("its parameters differ between its record and its result")
        answers = [event.get("text") for event in recording.events if event["kind"] == "answer"]
        if (answers[-1] if answers else None) != result.get("answer"):
            self.differs.append("its answer differs between its record and its result")
        self.differs += implausible(result, recording, begun=self.plan.started, now=self.now)
        if self.task is None:
            self.unchecked.append("its task is not here: name it with --task if you trust its code")
            return
        planned, here = self.plan.tasks.get(self.key.task), digest(self.task)
        if planned != here:
            detail = f"digest {shown(str(planned)[:_DIGITS])}, and here {here[:_DIGITS]!r}"
            self.differs.append(f"its task differs from the one here: {detail}")
            return
        self._check_instance(result, self.task)
        if not self.differs:
            self._evaluate(result, recording, self.task)

    def _check_instance(self, result: Mapping[str, Any], task: Task) -> None:
        key = self.key
        _, parameters = instance(task, key.seed, run_seed=self.plan.run_seed, variant=key.variant)
        plain = json.loads(json.dumps(dict(parameters)))
        wanted = {
            "parameters": plain,
            "instruction": task.instruction(plain),
            "level": task.level,
            "tags": list(task.tags),
        }
        self.differs += [
            f"its {name} is not that of its seed" for name, value in wanted.items() if result.get(name) != value
        ]
        if result["steps"] > task.limits.steps:
            self.differs.append(f"it has {result['steps']} steps, and its task allows {task.limits.steps}")

    def _evaluate(self, result: Mapping[str, Any], recording: Recording, task: Task) -> None:
        if not result["valid"]:
            self.unchecked.append(f"it is invalid ({result['cause']}), so that there is no end state")
            return
        if task.evaluates_once:
            self.unchecked.append("its task is evaluated by acting on the desktop, which is gone")
            return
        state = recording.end_state
        if state is None or state.lacking:
            self.unchecked.append("its record has no end state" + (f": {state.lacking}" if state else ""))
            return
        grade, why = regrade(task, state, result["parameters"], result["answer"])
        if grade is None:
            self.unchecked.append(why)
            return
        again = {"score": grade.score, "state": dict(grade.state), "reason": grade.reason, "success": grade.success}
        for name, value in again.items():
            if value != result.get(name):
                detail = f"{shown(result.get(name))}, and is {shown(value)} from its end state"
                self.differs.append(f"its {name} was {detail}")


def _is_repeated(result: Mapping[str, Any]) -> bool:
    cause = result.get("cause")
    return cause is not None and cause in list(Cause) and RULES[Cause(cause)].retries > 0


# --- the verdicts ---


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    for verdict in (Verdict.DIFFERS, Verdict.UNCHECKED):
        if verdict in verdicts:
            return verdict
    return Verdict.CONFIRMED


def _task(name: str, episodes: Sequence[EpisodeVerdict]) -> TaskVerdict:
    verdict = _worst([each.verdict for each in episodes])
    detail = [f"{each.episode}: {reason}" for each in episodes if each.verdict is verdict for reason in each.reasons]
    more = [f"and {len(detail) - _SHOWN} more"] if len(detail) > _SHOWN else []
    confirmed = sum(each.verdict is Verdict.CONFIRMED for each in episodes)
    return TaskVerdict(name, verdict, len(episodes), confirmed, (*detail[:_SHOWN], *more))
