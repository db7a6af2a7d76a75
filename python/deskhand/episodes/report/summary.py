"""The numbers of a run: scores with their intervals, invalid episodes by cause, and where the time went.

This module owns how episodes are counted. It has no files and no page, and rounds nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from deskhand.episodes.outcome import Cause
from deskhand.episodes.report.statistics import Interval, clustered, paired, pass_all, pass_any, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Result = Mapping[str, Any]

PHASES = ("reset", "setup", "think", "input", "settle", "observe", "evaluate", "overhead")
"""The phases of an episode, in order: `think` is the rest of the agent's part."""

_SLEEP_RESET, _SLEEP_EVALUATE, _SLEEP_STEP = 60.0, 20.0, 2.0
_MOST_TRIES = 10


@dataclass(frozen=True, slots=True)
class FixedSleeps:
    """How long the same episodes would have slept in a harness that does not know when the screen has settled.

    Source: OSWorld sleeps 60 s after a reset, 20 s before an evaluation, and 2 s in each step (`desktop_env` 1.0.2).

    Attributes:
        seconds: The sum of these sleeps.
        waited: How long was really waited for the screen, in sum: resets, setups and settling.
    """

    seconds: float
    waited: float


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """One task of a run.

    Attributes:
        name: Its name.
        level: 1...3.
        tags: Its subjects.
        tries: How many of its episodes are done.
        valid: How many of them count.
        scores: The scores of the valid ones, in the order of the episodes.
        successes: How many succeeded.
        steps: The median of the valid ones' steps.
        seconds: The median of their whole time.
    """

    name: str
    level: int
    tags: tuple[str, ...]
    tries: int
    valid: int
    scores: tuple[float, ...]
    successes: int
    steps: float
    seconds: float


@dataclass(frozen=True, slots=True)
class DomainSummary:
    """The tasks of one subject; a task with several tags counts in each.

    Attributes:
        name: The tag.
        tasks: How many tasks have it.
        done: How many of their episodes are done.
        valid: How many of those count.
        successes: How many succeeded.
        strict: As in `Summary`, and so the next two.
        valid_only: None if no episode is valid.
        success_rate: None if no episode is valid.
    """

    name: str
    tasks: int
    done: int
    valid: int
    successes: int
    strict: Interval
    valid_only: Interval | None
    success_rate: Interval | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers.

    Attributes:
        agent: The agent's name.
        planned: How many episodes were planned.
        done: How many have a result.
        valid: How many of those count.
        successes: How many succeeded.
        strict: The mean score if an invalid episode counts 0, with the interval of tasks as clusters.
        valid_only: The mean score of the valid ones, likewise; None if there are none.
        success_rate: Successes among the valid, with Wilson's interval; None if there are none.
        invalid_rate: Invalid ones among those done, with Wilson's interval; None if nothing is done.
        invalid: How many were invalid, by cause.
        noted: How many valid ones ended for a cause of the agent, by cause.
        retries: How many attempts were repeated, by cause.
        any_of: k → the chance that one of k tries of a task succeeds (pass@k), mean of the tasks with k tries.
        all_of: k → the chance that all do (pass^k).
        tasks: Each task, by name.
        domains: Each tag of a task, by name.
        phases: Seconds in each of `PHASES`, in sum; here and below for the attempts that count, one an episode.
        seconds: Their whole time, in sum.
        wall: From the beginning of the first to the end of the last, in seconds.
        steps: All steps.
        tokens: `input` and `output`, in sum.
        cost: The sum, in the agents' own unit.
        beside: The sums of `input`, `output` and `cost` of the attempts that do not count: they were repeated, lost or stopped.
        sleeps: The time with fixed sleeps.
    """

    agent: str
    planned: int
    done: int
    valid: int
    successes: int
    strict: Interval
    valid_only: Interval | None
    success_rate: Interval | None
    invalid_rate: Interval | None
    invalid: Mapping[str, int]
    noted: Mapping[str, int]
    retries: Mapping[str, int]
    any_of: Mapping[int, float]
    all_of: Mapping[int, float]
    tasks: tuple[TaskSummary, ...]
    domains: tuple[DomainSummary, ...]
    phases: Mapping[str, float]
    seconds: float
    wall: float
    steps: int
    tokens: Mapping[str, int]
    cost: float
    beside: Mapping[str, float]
    sleeps: FixedSleeps


def summarize(
    results: Sequence[Result], *, planned: int | None = None, beside: Mapping[str, float] | None = None
) -> Summary:
    """Compute the numbers of a run.

    Args:
        results: The result of each episode that is done, as in the ledger. Cancelled ones are left out, because they say
            nothing.
        planned: How many episodes were planned; by default those that are done.
        beside: The usage of other attempts; see `Run.spent_beside`.
    """
    results = [each for each in results if each["cause"] != Cause.CANCELLED]
    valid = [each for each in results if each["valid"]]
    successes = sum(bool(each["success"]) for each in valid)
    tasks = tuple(_task(name, several) for name, several in _by_task(results).items())
    phases = {phase: sum(split(each)[phase] for each in results) for phase in PHASES}
    steps = sum(int(each["steps"]) for each in results)
    return Summary(
        agent=", ".join(sorted({str(each["agent"]) for each in results})),
        planned=len(results) if planned is None else planned,
        done=len(results),
        valid=len(valid),
        successes=successes,
        strict=_mean(results),
        valid_only=_mean(valid) if valid else None,
        success_rate=wilson(successes, len(valid)) if valid else None,
        invalid_rate=wilson(len(results) - len(valid), len(results)) if results else None,
        invalid=_counted(str(each["cause"]) for each in results if not each["valid"]),
        noted=_counted(str(each["cause"]) for each in valid if each["cause"] is not None),
        retries=_counted(cause for each in results for cause, n in each.get("failures", {}).items() for _ in range(n)),
        any_of=_over_tasks(tasks, pass_any),
        all_of=_over_tasks(tasks, pass_all),
        tasks=tasks,
        domains=_domains(results),
        phases=phases,
        seconds=sum(float(each["times"]["total"]) for each in results),
        wall=max((each["ended"] for each in results), default=0.0) - min((e["started"] for e in results), default=0.0),
        steps=steps,
        tokens={kind: sum(each["tokens"].get(kind, 0) for each in results) for kind in ("input", "output")},
        cost=sum(float(each["cost"]) for each in results),
        beside=beside or {"input": 0, "output": 0, "cost": 0.0},
        sleeps=FixedSleeps(
            # Invalid episodes are not evaluated.
            seconds=len(results) * _SLEEP_RESET + len(valid) * _SLEEP_EVALUATE + steps * _SLEEP_STEP,
            waited=phases["reset"] + phases["setup"] + phases["settle"],
        ),
    )


def split(result: Result) -> dict[str, float]:
    """Seconds of one episode in each of `PHASES`."""
    times = {phase: float(result["times"].get(phase, 0.0)) for phase in PHASES}
    acted = times["input"] + times["settle"] + times["observe"]
    times["think"] = max(0.0, float(result["times"].get("agent", 0.0)) - acted)
    return times


def compare(before: Sequence[Result], after: Sequence[Result]) -> tuple[Interval | None, list[tuple[Result, Result]]]:
    """Compare two runs episode by episode: by how much the second scores higher, and the episodes that both have.

    Args:
        before: The results of the first run.
        after: The results of the second.

    Returns:
        The interval is None if no episode is in both and valid in both.
    """
    known = {episode_of(each): each for each in before}
    both = [(known[episode_of(each)], each) for each in after if episode_of(each) in known]
    scores: dict[str, list[tuple[float, float]]] = {}
    for a, b in both:
        if a["valid"] and b["valid"]:
            scores.setdefault(str(b["task"]), []).append((float(a["score"]), float(b["score"])))
    return (paired(scores) if scores else None), both


def episode_of(result: Result) -> tuple[object, ...]:
    """What two results of one episode have in common."""
    return tuple(result[part] for part in ("task", "variant", "seed", "repeat"))


def _by_task(results: Sequence[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for each in sorted(results, key=episode_of):
        found.setdefault(str(each["task"]), []).append(each)
    return found


def _mean(results: Sequence[Result]) -> Interval:
    scores = {
        name: [float(each["score"]) if each["valid"] else 0.0 for each in several]
        for name, several in _by_task(results).items()
    }
    return clustered(scores) if scores else Interval(0.0, 0.0, 1.0)


def _task(name: str, results: Sequence[Result]) -> TaskSummary:
    valid = [each for each in results if each["valid"]]
    return TaskSummary(
        name=name,
        level=int(results[0]["level"]),
        tags=tuple(results[0]["tags"]),
        tries=len(results),
        valid=len(valid),
        scores=tuple(float(each["score"]) for each in valid),
        successes=sum(bool(each["success"]) for each in valid),
        steps=median(int(each["steps"]) for each in valid) if valid else 0.0,
        seconds=median(float(each["times"]["total"]) for each in valid) if valid else 0.0,
    )


def _domains(results: Sequence[Result]) -> tuple[DomainSummary, ...]:
    by_tag: dict[str, list[Result]] = {}
    for each in results:
        for tag in dict.fromkeys(map(str, each["tags"])):
            by_tag.setdefault(tag, []).append(each)
    return tuple(_domain(tag, by_tag[tag]) for tag in sorted(by_tag))


def _domain(tag: str, results: Sequence[Result]) -> DomainSummary:
    valid = [each for each in results if each["valid"]]
    successes = sum(bool(each["success"]) for each in valid)
    return DomainSummary(
        name=tag,
        tasks=len({str(each["task"]) for each in results}),
        done=len(results),
        valid=len(valid),
        successes=successes,
        strict=_mean(results),
        valid_only=_mean(valid) if valid else None,
        success_rate=wilson(successes, len(valid)) if valid else None,
    )


def _over_tasks(tasks: Sequence[TaskSummary], chance: Any) -> dict[int, float]:
    """The mean over tasks. Invalid episodes do not count as tries; a task with fewer than k tries has no chance for k."""
    found = {}
    for k in range(1, _MOST_TRIES + 1):
        chances = [chance(task.successes, task.valid, k) for task in tasks if task.valid >= k]
        if chances:
            found[k] = sum(chances) / len(chances)
    return found


def _counted(causes: Any) -> dict[str, int]:
    return dict(sorted(Counter(causes).items(), key=lambda item: (-item[1], item[0])))
