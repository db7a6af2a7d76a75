"""The context of an operation, for a policy, a person and the log, in texts of one line and of bounded length."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.redaction import one_line
from deskhand.desktop.access import core_of, desktop_of
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import DeskhandError
from deskhand.policy.rules import ActionClass, Context, classify

if TYPE_CHECKING:
    from deskhand.desktop.operations import CallContext, Operation
    from deskhand.policy.rules import JudgedAction

_LONGEST_TEXT = 300
# Classes of actions that go to a window, by the keyboard or at a point.
_TO_WINDOWS = (ActionClass.INPUT, ActionClass.CREDENTIAL, ActionClass.NAVIGATE, ActionClass.SAFETY_CHECK)


def short_line(text: str) -> str:
    """Untrusted text as a policy, a person or the log gets it: cleaned, and of bounded length."""
    return one_line(text, _LONGEST_TEXT)


def context_of(operation: Operation, action: JudgedAction, index: int, count: int) -> Context:
    """The context of one of an operation's actions, without its window."""
    call, desktop = operation.call, operation.desktop
    name = "" if desktop is None else desktop.name or desktop.display or ""
    return Context(
        action_class=classify(action),
        desktop=short_line(name),
        provider=short_line(call.provider),
        call_id=short_line(call.call_id),
        agent=short_line(call.agent),
        turn=short_line(call.turn),
        index=index,
        count=count,
        safety_checks=tuple(map(cleaned, call.safety_checks)),
    )


def with_window(operation: Operation, action: JudgedAction, context: Context) -> Context:
    """The context with the title of the window that the action goes to, as far as it is known."""
    desktop = desktop_of(operation)
    if context.action_class not in _TO_WINDOWS or desktop is None:
        return context
    try:
        windows = desktop.windows.list()
    except DeskhandError:
        # Not every backend knows windows. If something is wrong with the desktop, the action itself reports it.
        return context
    xy = getattr(action, "xy", None)
    if (ref := getattr(action, "element", None)) is not None:
        # Of where it was read last; what covers it now is waited for to go.
        title, xy = core_of(desktop).elements.place_of(ref)
        if title:
            return replace(context, window=short_line(title))
    under = [w for w in windows if (w.rect.contains(xy) if xy else w.active)]
    return replace(context, window=short_line(under[-1].title)) if under else context


def texts_of_call(of: CallContext | Context) -> dict[str, object]:
    """The call's texts as a log may contain them; empty ones are left out."""
    names = ("provider", "call_id", "agent", "turn")
    return {name: short_line(getattr(of, name)) or None for name in names}


def cleaned(check: SafetyCheck) -> SafetyCheck:
    """A provider's safety check with short texts."""
    texts = (None if text is None else short_line(text) for text in (check.code, check.message))
    return SafetyCheck(short_line(check.id), *texts)
