"""What a desktop that was lost, closed or given back says to every public call of it."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from deskhand import ActionError, Closed, Desktop, DesktopLost, Shell, UnsupportedAction
from deskhand._native import Interrupted
from faults.helpers import beside_control
from faults.surface import PublicCall, calls_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from faults.surface import Arguments

# What answers all the same, and why.
ANSWERS = {
    "Desktop.also": "a view of it",
    "Desktop.close": "there is nothing to do",
    "Desktop.closed": "whether it is",
    "Desktop.display": "as it was",
    "Desktop.has_machine": "as it was",
    "Desktop.clipboard": "whose calls do not",
    "Desktop.control": "whose calls do not",
    "Desktop.find": "whose calls do not",
    "Desktop.host": "whose calls do not",
    "Desktop.machine": "whose calls do not",
    "Desktop.pressed": "nothing is",
    "Desktop.windows": "whose calls do not",
    "Desktop.interrupt": "there is nothing to end",
    "Desktop.name": "as it was",
    "Desktop.size": "as it was",
    "Desktop.status": "what is known of it",
    "Desktop.stop": "nothing is held",
    "Desktop.xauthority": "as it was",
    "Shell.alive": "whether it is",
    "Shell.close": "there is nothing to do",
    "Shell.interrupt": "there is nothing to end",
    "Shell.judged": "as it was",
    "control.holder": "nobody",
    "control.paused": "it is not",
    "control.requests": "there are none",
    "control.waiting": "nothing does",
    "host.home": "as it was",
    "machine.home": "as it was",
}
# The same of one that was lost and is not closed yet.
ANSWERS_LOST = ANSWERS | {
    "Desktop.hand_over": "a person is asked, and not the desktop",
    "Desktop.operate": "what is done is the caller's",
    "Desktop.health": "what is wrong",
    **dict.fromkeys(
        ("control.decline", "control.pause", "control.release", "control.resume", "control.step"), "nothing is sent"
    ),
    "host.open_shell": "a shell of this machine",
    "host.run": "its command",
}
# Last, in this order: these are its end, if not a refusal.
_LAST = ("Desktop.stop", "Desktop.reset", "Desktop.close", "Shell.close")


def cut(desktop: Desktop) -> None:
    """Its connections end, whatever is at the other side."""
    for number in desktop._core.backend.descriptors():
        with socket.socket(fileno=os.dup(number)) as line:
            line.shutdown(socket.SHUT_RDWR)


def examine(
    desktop: Desktop | Shell,
    arguments: Arguments,
    answers: Mapping[str, str],
    *,
    limit: float = 1.0,
) -> list[str]:
    """Make every public call; what is wrong with the answers. The object is closed then, which never raises.

    Args:
        desktop: It has just died, or was closed.
        arguments: Those that it would take.
        answers: Calls that need not raise, with the reasons.
        limit: Seconds that each may take.
    """
    calls = {call.name: call for call in calls_of(type(desktop))}
    last = [name for name in _LAST if name in calls]
    order = [*(name for name in calls if name not in last), *last]
    wrong = []
    for name in order:
        call = calls[name]
        with beside_control() as seen:
            begun = time.monotonic()
            said = _answer(call, desktop, arguments.of(call), right=call.name in answers)
            took = time.monotonic() - begun
        if said:
            wrong.append(f"{call.name} {said}")
        if took > seen[0].allowed(limit):
            wrong.append(f"{call.name} took {took:.2f} s")
    return wrong


def _answer(call: PublicCall, on: object, given: Mapping[str, object], *, right: bool) -> str:
    """What is wrong with it; `right`: it need not raise."""
    try:
        result = call.call(on, **given)
        if isinstance(result, Shell):
            result.close()
    except (DesktopLost, Closed) as error:
        return f"raised {error!r}" if call.name in {"Desktop.close", "Shell.close"} else ""
    except ActionError as error:
        # It never could, or there is nothing to do.
        return "" if right or isinstance(error, UnsupportedAction) else f"raised {error!r}"[:160]
    except (Exception, Interrupted) as error:  # noqa: BLE001 # whatever it is, it is wrong
        return f"raised {type(error).__name__}: {error}"[:160]
    return "" if right else f"answered {result!r}"[:100]
