"""The tables of a paper from one or more runs: Markdown, LaTeX, CSV, or data. Pure.

This module owns which numbers stand in them, and how names from runs are written. The numbers come from `summary` and
`comparison`.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand._core.redaction import one_line
from deskhand.episodes.report.comparison import compare_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.episodes.report.comparison import Comparison, Difference
    from deskhand.episodes.report.statistics import Chance, Interval
    from deskhand.episodes.report.summary import DomainSummary, Summary

Form: TypeAlias = Literal["markdown", "csv", "latex"]

_LONGEST = 80
_LEAST_CHANCE = 0.001
_SEEDS = ("run_seed", "seeds", "repeats", "limit")
_UNKNOWN = "unknown"
_ABOUT = (
    "Scores in %, with 95 % intervals: of means with tasks as clusters (Student's t), of rates Wilson's. A task with several "
    "tags counts in each domain."
)
_MEASURES = ("strict", "valid_only", "success_rate")
# A cell that begins so is a formula for a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN = {ord(char): f"\\{char}" for char in "\\`*_[]<>|~&$"}
_LATEX = {ord(char): f"\\{char}" for char in "&%$#_{}"} | {
    ord("~"): r"\textasciitilde{}",
    ord("^"): r"\textasciicircum{}",
    ord("\\"): r"\textbackslash{}",
    ord("<"): "$<$",
    ord(">"): "$>$",
    ord("|"): "$|$",
    ord("≈"): r"$\approx$",
}


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """A run in a table.

    Attributes:
        name: Its name.
        manifest: Its manifest, which is untrusted.
        results: The results of its episodes.
        summary: Their numbers.
    """

    name: str
    manifest: Mapping[str, Any]
    results: Sequence[Mapping[str, Any]]
    summary: Summary


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts.

    Attributes:
        title: What stands above it.
        header: The names of its columns.
        rows: Its rows, with a cell for each column.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_table(runs: Sequence[RunNumbers], form: Form) -> str:
    """The tables of some runs, as a text.

    Args:
        runs: The runs; the first is compared with each of the others.
        form: The form of the text. CSV has a line for each run and domain, and no notes.
    """
    compared = [(other, compare_runs(other.results, runs[0].results)) for other in runs[1:]]
    if form == "csv":
        return _csv(runs, compared)
    tables = [_scores(runs), _domains(runs), *([_comparisons(runs[0], compared)] if compared else [])]
    notes = _notes(runs, compared)
    return write_markdown(tables, notes) if form == "markdown" else _latex(tables, notes)


def table_data(runs: Sequence[RunNumbers]) -> dict[str, Any]:
    """The numbers of the first run, and its comparison with each of the others, for programs."""
    first, *others = runs
    return {
        **_data(first),
        "compared": [{"with": _data(other), **asdict(compare_runs(other.results, first.results))} for other in others],
    }


def public_since(run: RunNumbers) -> dict[str, int]:
    """How many tasks of a run have been public since which day, as its tasks said; `unknown` where they did not."""
    stated = run.manifest.get("public_since")
    known = stated if isinstance(stated, dict) else {}
    counts = Counter(one_line(str(known.get(task.name) or _UNKNOWN), _LONGEST) for task in run.summary.tasks)
    return dict(sorted(counts.items()))


def _data(run: RunNumbers) -> dict[str, Any]:
    return {
        "run": run.name,
        **asdict(run.summary),
        "seeds": {name: run.manifest.get(name) for name in _SEEDS},
        "public_since": public_since(run),
    }


# --- the tables ---


def _scores(runs: Sequence[RunNumbers]) -> Table:
    header = (
        "run", "agent", "tasks", "episodes", "score, invalid counts 0", "score, valid only", "success, valid only",
        "invalid", "steps", "tokens in", "tokens out", "cost", "hours",
    )  # fmt: skip
    return Table("Scores", header, [_score_row(run) for run in runs])


def _score_row(run: RunNumbers) -> list[str]:
    found = run.summary
    return [
        _name(run.name),
        _name(found.agent),
        str(len(found.tasks)),
        str(found.done) if found.done == found.planned else f"{found.done} of {found.planned}",
        _percent(found.strict),
        _percent(found.valid_only),
        _percent(found.success_rate),
        _percent(found.invalid_rate),
        str(found.steps),
        str(found.tokens["input"]),
        str(found.tokens["output"]),
        f"{found.cost:.2f}",
        f"{found.seconds / 3600:.2f}",
    ]


def _domains(runs: Sequence[RunNumbers]) -> Table:
    by_run = [{each.name: each for each in run.summary.domains} for run in runs]
    names = sorted({name for each in by_run for name in each})
    header = [
        "domain",
        *(f"{_name(run.name)}: {what}" for run in runs for what in ("tasks", "invalid 0", "valid only")),
    ]
    return Table("Scores by domain", header, [[_name(name), *_domain_cells(name, by_run)] for name in names])


def _domain_cells(name: str, by_run: Sequence[Mapping[str, DomainSummary]]) -> list[str]:
    cells = []
    for domains in by_run:
        found = domains.get(name)
        cells += (
            ["0", "", ""] if found is None else [str(found.tasks), _percent(found.strict), _percent(found.valid_only)]
        )
    return cells


def _comparisons(first: RunNumbers, compared: Sequence[tuple[RunNumbers, Comparison]]) -> Table:
    header = (
        f"{_name(first.name)} against", "score", "episodes", "tasks", "difference", "p, tasks exchanged", "gained", "lost",
        "p, McNemar",
    )  # fmt: skip
    rows = []
    for other, found in compared:
        for title, each in (("invalid counts 0", found.strict), ("valid in both", found.valid_only)):
            rows.append([_name(other.name), title, *_difference_cells(each)])
    return Table("Compared episode by episode", header, rows)


def _difference_cells(found: Difference | None) -> list[str]:
    if found is None:
        return ["0", "0", "", "", "", "", ""]
    counts = [str(found.gained), str(found.lost), _chance(found.mcnemar)]
    return [str(found.pairs), str(found.tasks), _percent(found.score, "+"), _tested(found.chance), *counts]


# --- the notes ---


def _notes(runs: Sequence[RunNumbers], compared: Sequence[tuple[RunNumbers, Comparison]]) -> list[str]:
    notes = [_ABOUT]
    for run in runs:
        seeds = ", ".join(
            f"{name.replace('_', ' ')} {_name(str(run.manifest.get(name)))}"
            for name in _SEEDS
            if run.manifest.get(name) is not None
        )
        notes.append(f"{_name(run.name)}: {seeds or 'its seeds are unknown'}; {_spent_beside(run.summary)}.")
        since = "; ".join(f"{_name(day)}: {count}" for day, count in public_since(run).items())
        notes.append(
            f"{_name(run.name)}: tasks by the day since which they are public: {since or 'none'}. A model that was trained "
            "later may have seen them."
        )
    for other, found in compared:
        notes += _comparison_notes(runs[0], other, found)
    return notes


def _spent_beside(found: Summary) -> str:
    tokens_in, tokens_out, cost = (found.beside[name] for name in ("input", "output", "cost"))
    return f"attempts that do not count used {tokens_in:g} tokens in, {tokens_out:g} out, and cost {cost:.2f}"


def _comparison_notes(first: RunNumbers, other: RunNumbers, found: Comparison) -> list[str]:
    names = f"{_name(first.name)} and {_name(other.name)}"
    notes = []
    if found.only_first or found.only_second:
        notes.append(
            f"{names}: {found.only_second} episodes are only in the first, {found.only_first} only in the second, which are "
            "not compared."
        )
    if found.other_instances:
        notes.append(f"{names}: {found.other_instances} episodes are of other instances in the two, and not compared.")
    tasks = [run.manifest.get("tasks") for run in (first, other)]
    digests = [each if isinstance(each, dict) else {} for each in tasks]
    changed = [name for name, digest in digests[0].items() if digests[1].get(name, digest) != digest]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        notes.append(f"{names}: tasks that differ between the two: {', '.join(map(_name, changed[:3]))}{more}.")
    if (found.strict and not found.strict.chance.exact) or (found.valid_only and not found.valid_only.chance.exact):
        notes.append(f"{names}: ≈ is from cases that were drawn, with seed 0, as there are too many to count.")
    return notes


# --- the forms ---


def _name(text: str) -> str:
    return one_line(text, _LONGEST)


def _percent(value: Interval | None, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{100 * value.value:{sign}.1f} ({100 * value.low:{sign}.1f} to {100 * value.high:{sign}.1f})"


def _chance(p: float) -> str:
    return f"{p:.3f}" if p >= _LEAST_CHANCE else f"< {_LEAST_CHANCE}"


def _tested(chance: Chance) -> str:
    return _chance(chance.p) if chance.exact else f"≈ {_chance(chance.p)}"


def write_markdown(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Tables as Markdown, with notes below; cells and notes are untrusted lines."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.translate(_MARKDOWN) for cell in cells)} |"

    parts = []
    for table in tables:
        rows = "\n".join([line(table.header), "|" + "---|" * len(table.header), *map(line, table.rows)])
        parts.append(f"**{table.title}**\n\n{rows}\n")
    parts.append("\n".join(f"- {note.translate(_MARKDOWN)}" for note in notes) + "\n")
    return "\n".join(parts)


def _latex(tables: Sequence[Table], notes: Sequence[str]) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    parts = []
    for table in tables:
        parts += [
            f"% {table.title}",
            rf"\begin{{tabular}}{{{'l' * len(table.header)}}}",
            r"\hline",
            line(table.header),
            r"\hline",
        ]
        parts += [*map(line, table.rows), r"\hline", r"\end{tabular}", ""]
    return "\n".join([*parts, *(f"% {note}" for note in notes)]) + "\n"


def _csv(runs: Sequence[RunNumbers], compared: Sequence[tuple[RunNumbers, Comparison]]) -> str:
    text = io.StringIO()
    ends = [f"{name}{end}" for name in _MEASURES for end in ("", "_low", "_high")]
    compared_ends = [
        f"{name}_{end}"
        for name in ("difference_strict", "difference_valid_only")
        for end in ("pairs", "tasks", "score", "low", "high", "p", "p_exact", "gained", "lost", "p_mcnemar")
    ]
    spent = ("steps", "tokens_in", "tokens_out", "cost", "seconds")
    header = ["run", "agent", "domain", "tasks", "planned", "done", "valid", "successes", *ends, *spent, *compared_ends]
    writer = csv.DictWriter(text, header, lineterminator="\n")
    writer.writeheader()
    found_of = {id(run): found for run, found in compared}
    for run in runs:
        whole, about = run.summary, {"run": _plain(run.name), "agent": _plain(run.summary.agent)}
        row = {
            **about, "domain": "", "tasks": len(whole.tasks), "planned": whole.planned, **_counts(whole), "steps": whole.steps,
            "tokens_in": whole.tokens["input"], "tokens_out": whole.tokens["output"], "cost": whole.cost,
            "seconds": whole.seconds,
        }  # fmt: skip
        if (found := found_of.get(id(run))) is not None:
            row |= _difference_columns("difference_strict", found.strict)
            row |= _difference_columns("difference_valid_only", found.valid_only)
        writer.writerow(row)
        for each in whole.domains:
            writer.writerow({**about, "domain": _plain(each.name), "tasks": each.tasks, **_counts(each)})
    return text.getvalue()


def _plain(text: str) -> str:
    name = _name(text)
    return f"'{name}" if name.startswith(_FORMULA) else name


def _counts(found: Summary | DomainSummary) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(found, name) for name in ("done", "valid", "successes")}
    for name in _MEASURES:
        if (value := getattr(found, name)) is not None:
            row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
    return row


def _difference_columns(name: str, found: Difference | None) -> dict[str, Any]:
    if found is None:
        return {}
    score = found.score
    values = {
        "pairs": found.pairs, "tasks": found.tasks, "score": score.value, "low": score.low, "high": score.high,
        "p": found.chance.p, "p_exact": found.chance.exact, "gained": found.gained, "lost": found.lost,
        "p_mcnemar": found.mcnemar,
    }  # fmt: skip
    return {f"{name}_{part}": value for part, value in values.items()}
