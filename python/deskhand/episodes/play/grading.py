"""What an evaluation gave: checked, and made again from a recorded end state.

This module owns the bounds of a grade. It has no desktop and no record's files.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import clean
from deskhand.episodes.play.supervision import SupervisedThread
from deskhand.episodes.record.end_state import kept_context
from deskhand.episodes.tasks.task import Grade
from deskhand.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.episodes.record.end_state import EndState
    from deskhand.episodes.tasks.task import Task

_REASON = 2000
_STATE = 1 << 20
_GRACE = 2.0


def graded(value: object) -> Grade:
    """Check the result of an evaluation.

    Raises:
        TypeError, ValueError: It is invalid.
    """
    if isinstance(value, bool | int | float):
        grade = Grade(float(value))
    elif isinstance(value, Grade):
        grade = value
    else:
        raise TypeError(f"the evaluation returned {shown(value)}: it must be a Grade, True, False or a score of 0 to 1")
    if not isinstance(grade.score, bool | int | float) or not math.isfinite(grade.score) or not 0 <= grade.score <= 1:
        raise ValueError(f"the score is {shown(grade.score)}: it must be 0 to 1")
    if len(canonical(grade.state)) > _STATE:
        raise ValueError(
            f"the state is larger than {_STATE >> 20} MiB: it must describe what was checked, not contain it"
        )
    return Grade(float(grade.score), clean(str(grade.reason)[:_REASON]), json.loads(canonical(grade.state)))


def canonical(state: Mapping[str, Any]) -> str:
    """A state as a text that is the same for equal states."""
    return json.dumps(dict(state), sort_keys=True, allow_nan=False)


def regrade(task: Task, state: EndState, parameters: Mapping[str, Any], answer: str | None) -> tuple[Grade | None, str]:
    """Evaluate an attempt again, from its recorded end state.

    Args:
        task: The task, whose code is called.
        state: The end state, which is untrusted.
        parameters: The parameters of the attempt's instance.
        answer: The agent's answer.

    Returns:
        The grade; or None, and why there is none.
    """
    context = kept_context(state, parameters, answer)
    thread = SupervisedThread(lambda: graded(task.evaluate(context)), "deskhand-regrade")
    if not thread.wait(task.evaluation_limit):
        thread.end(_GRACE)
        return None, f"its evaluation takes more than {task.evaluation_limit:g} s"
    if context.missed:
        return None, f"its evaluation asks for what was not kept: {context.missed[0]}"
    if thread.error is not None:
        return None, f"its evaluation raises {shown(thread.error)}"
    grade: Grade = thread.value
    return grade, ""
