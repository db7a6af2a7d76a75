"""Public calls with every wrong kind of argument, on a desktop that must live on."""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

from deskhand import ActionError, DeskhandError, Desktop, Pool, Shell
from deskhand._native import Interrupted
from faults.helpers import beside_control
from faults.surface import WRONG, Arguments, Parameter, PublicCall, fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Seconds for an argument that is refused.
REFUSED = 0.1


class Bench:
    """A desktop for many calls, and another when one of them has ended it."""

    def __init__(self, make: Callable[[], Desktop]) -> None:
        self._make = make
        self._begin()

    def _begin(self) -> None:
        self.desktop = self._make()
        self.shell = self.desktop.host.open_shell()
        windows = self.desktop.windows.list()
        self._arguments = Arguments(self.desktop, windows[0].id if windows else 1)

    def go_on(self) -> str:
        """What is wrong with the desktop, for which there is another then, as there is when the last call has ended it."""
        wrong = ""
        if not (self.desktop.closed or self.desktop._core.stopped or self.desktop._view.interceptors):
            try:
                self.desktop.control.resume()
                self.desktop.release()
            except (Exception, Interrupted) as error:  # noqa: BLE001 # whatever it is, it is wrong
                wrong = f"and the desktop does not answer: {error!r}"
            else:
                if not self.shell.alive:
                    self.shell = self.desktop.host.open_shell()
                return ""
        self.desktop.close()
        self._begin()
        return wrong

    def usual(self, call: PublicCall) -> dict[str, object]:
        """The other arguments of a call."""
        others: dict[str, object] = {}
        if call.name == "Desktop.start":
            # Nothing is started, and that is told after all arguments were looked at.
            others["command"] = "no-such-program"
        elif call.name == "connect":
            others |= {"view_only": True, "xauthority": self.desktop.xauthority}
        elif call.name == "windows.wait_for":
            # A title that no window has is right, and would be waited for.
            others["timeout"] = 0.0
        return self._arguments.of(call, **others)


def examine(
    bench: Bench, calls: list[PublicCall], target: Callable[[], object] = lambda: None, *, only: str = "all"
) -> list[str]:
    """Make each call with each wrong argument; what is wrong with the answers.

    An argument of another kind than the annotation asks for, and what is no finite number, must be refused by an `ActionError`;
    another may also be taken, or refused by any error of the tree.

    Args:
        bench: The desktop.
        calls: Those to make.
        target: Whose they are.
        only: `refused`: only those that must be; `others`: not those.
    """
    wrong = []
    for call in calls:
        worst, which = 0.0, ""
        with beside_control() as seen:
            for parameter, value in wrong_arguments(call):
                must = must_be_refused(parameter, value)
                if only == ("others" if must else "refused"):
                    continue
                usual, on = bench.usual(call), target()
                begun = time.monotonic()
                told = answer(call, on, usual, parameter, value, must=must)
                took = time.monotonic() - begun
                label = f"{call.name}({parameter.name}={_shown(value)})"
                wrong += [f"{label} {said}" for said in (told, bench.go_on()) if said]
                if must and took > worst:
                    worst, which = took, label
        if worst > seen[0].allowed(REFUSED):
            wrong.append(f"{which} took {worst:.2f} s")
    return wrong


def wrong_arguments(call: PublicCall) -> Iterator[tuple[Parameter, object]]:
    """Each parameter with each value but its default."""
    for parameter in call.parameters:
        for value in WRONG:
            if value is not parameter.default and (type(value), value) != (type(parameter.default), parameter.default):
                yield parameter, value


def must_be_refused(parameter: Parameter, value: object) -> bool:
    if parameter.hint is not Any and isinstance(value, float) and not math.isfinite(value):
        return True
    return not fits(value, parameter.hint)


def answer(
    call: PublicCall, on: object, usual: dict[str, object], parameter: Parameter, value: object, *, must: bool
) -> str:  # fmt: skip
    """What is wrong with it; `must`: it must be a refusal."""
    positional, named = parameter.given(value)
    given = (on, *positional) if call.bound else positional
    try:
        _end(call.call(*given, **{**usual, **named}))
    except ActionError:
        return ""
    except DeskhandError as error:
        return f"raised {error!r}"[:200] if must else ""
    except (Exception, Interrupted) as error:  # noqa: BLE001 # whatever it is, it is wrong
        return f"raised {error!r}"[:200]
    return "was taken" if must else ""


def _end(result: object) -> None:
    """Let go of what a call has made."""
    if isinstance(result, Desktop | Shell | Pool):
        result.close()
    elif isinstance(result, contextlib.AbstractContextManager) and not hasattr(result, "cancel"):
        with result:
            pass


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 30 else f"{text[:25]}..."
