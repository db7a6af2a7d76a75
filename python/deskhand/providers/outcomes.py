"""How commands ended, in the form for all providers. Pure.

All encoders follow one rule: a command's outcome, which of several outcomes counts, what is a failure of the tool, and the
notes beside the output. No provider's payload is here.

| a command | outcome | the tool failed |
| --- | --- | --- |
| ended with 0 | success | |
| ended with another status | error | no: it ran, and its status is reported |
| failed with an unknown status | error | yes |
| was ended by its timeout | timeout | yes |
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

FAILED = 1
TIMED_OUT = 124
"""The exit status of a command that its timeout ended, as in coreutils' `timeout`, for providers that want a number."""

REFUSED = 126
"""The exit status of a command that was not run, as in shells."""

CANCELLED = 137
"""The exit status of a command that was cancelled, and so killed."""

_RESTARTED = "(the shell was restarted: its directory, variables and jobs are lost)"
_STATUSES = {"success": 0, "error": FAILED, "timeout": TIMED_OUT, "cancelled": CANCELLED}


def how_it_ended(output: CommandResult) -> Outcome:
    """A command's outcome. A non-zero exit code, which may be all that the shell gave, overrides a success."""
    return outcome_of(output.exit_code) if output.outcome == "success" else output.outcome


def failure_of(answer: ShellAnswer) -> CommandResult | None:
    """The first command that failed; None if all succeeded or none was run."""
    return next((output for output in answer.outputs if how_it_ended(output) != "success"), None)


def outcome(answer: ShellAnswer) -> Outcome:
    """The outcome of a call: that of its first failure."""
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
    """A command's exit status, for providers that want a number."""
    return output.exit_code or _STATUSES[how_it_ended(output)]


def notes_on(output: CommandResult, *, ending: bool = True) -> list[str]:
    """Notes about a command beside its output, a line each; none if it simply succeeded.

    Args:
        output: How it ended.
        ending: Whether to include how it ended; otherwise that is reported elsewhere.
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
    """Read a text with `notes_on` back: the text without the notes, the outcome and the status."""
    rest, _, last = text.removesuffix(f"\n{_RESTARTED}").rpartition("\n")
    if found := _STATUS.fullmatch(last):
        return rest, "error", int(found[1])
    return (rest, _READ[last], None) if last in _READ else (text, "success", None)
