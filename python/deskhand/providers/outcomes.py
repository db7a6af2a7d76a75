"""How commands ended, as every provider is told it. Pure.

One rule for all encoders: which outcome a command has, which of several shows, what counts as a failure of the tool, and what
there is to say beside what was written. What must never appear here: a provider's payload.

| a command | outcome | the tool failed |
| --- | --- | --- |
| ended with 0 | success | |
| ended with another status | error | no: it ran, and its status is told |
| ended badly, nobody says with which status | error | yes |
| was ended at its timeout | timeout | yes |
| was cancelled | cancelled | yes |
| could not be run, or was not allowed | error | yes |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deskhand.machine.interface import outcome_of

if TYPE_CHECKING:
    from deskhand.machine.interface import CommandResult, Outcome
    from deskhand.providers.values import ShellAnswer

__all__ = [
    "CANCELLED",
    "FAILED",
    "REFUSED",
    "TIMED_OUT",
    "ending_in",
    "failure_of",
    "how_it_ended",
    "notes_on",
    "outcome",
    "status_of",
    "tool_failed",
]

FAILED = 1
TIMED_OUT = 124
"""The exit status of what was ended at its timeout, as coreutils' `timeout` has it, for those who want a number."""

REFUSED = 126
"""The same of what was not run, as shells have it."""

CANCELLED = 137
"""The same of what was cancelled: it was killed."""

_RESTARTED = "(the shell was restarted: its directory, variables and jobs are lost)"
_STATUSES = {"success": 0, "error": FAILED, "timeout": TIMED_OUT, "cancelled": CANCELLED}


def how_it_ended(output: CommandResult) -> Outcome:
    """A command's outcome; its exit code, which may be all that somebody gave, counts where it says something worse."""
    return outcome_of(output.exit_code) if output.outcome == "success" else output.outcome


def failure_of(answer: ShellAnswer) -> CommandResult | None:
    """The first command that did not end well; None where all did, and of what was not run."""
    return next((output for output in answer.outputs if how_it_ended(output) != "success"), None)


def outcome(answer: ShellAnswer) -> Outcome:
    """The outcome of a call: of its first failure."""
    failure = failure_of(answer)
    if failure is not None:
        return how_it_ended(failure)
    return "success" if answer.error is None else "error"


def tool_failed(answer: ShellAnswer) -> bool:
    """Whether a command did not run to its end, or not at all: an error of the tool, and not of the command."""
    return answer.error is not None or any(
        how_it_ended(output) in ("timeout", "cancelled") or not (output.exit_code or how_it_ended(output) == "success")
        for output in answer.outputs
    )


def status_of(output: CommandResult) -> int:
    """A command's exit status for those who want a number."""
    return output.exit_code or _STATUSES[how_it_ended(output)]


def notes_on(output: CommandResult, *, ending: bool = True) -> list[str]:
    """What there is to say of a command beside what it wrote, a line each; of one that simply ended well nothing.

    Args:
        output: How it ended.
        ending: Whether to say how; otherwise that is told in another place.
    """
    notes = ["(more was written than is kept)"] if output.truncated else []
    if output.background:
        notes.append(f"(what earlier jobs wrote before this command:)\n{output.background.rstrip()}")
    if ending and (how := _ENDINGS[how_it_ended(output)]):
        is_status = how_it_ended(output) == "error" and output.exit_code
        notes.append(f"(exit code {output.exit_code})" if is_status else how)
    if output.restarted:
        notes.append(_RESTARTED)
    return notes


_ENDINGS: dict[Outcome, str] = {
    "success": "",
    "error": "(the command failed)",
    "timeout": "(ended at the timeout, with all that it had started; the session may be a new one)",
    "cancelled": "(cancelled, and ended with all that it had started; the session may be a new one)",
}
_READ: dict[str, Outcome] = {note: how for how, note in _ENDINGS.items() if note}
_STATUS = re.compile(r"\(exit code (\d{1,3})\)")


def ending_in(text: str) -> tuple[str, Outcome, int | None]:
    """How a command ended by what is told of it in words, where no more is: the text without `notes_on`, outcome and status."""
    rest, _, last = text.removesuffix(f"\n{_RESTARTED}").rpartition("\n")
    if found := _STATUS.fullmatch(last):
        return rest, "error", int(found[1])
    return (rest, _READ[last], None) if last in _READ else (text, "success", None)
