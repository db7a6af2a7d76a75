"""Enforces a policy: a `Guard` is an interceptor in a desktop's gate that judges, limits and logs operations.

This module owns the order: limits, safety checks, environment, policy, question, audit log. A failure at any step denies
the operation, and nothing is done. The rules of what is allowed are in `deskhand.policy.rules`, and the form of the log is in
`deskhand.policy.audit`.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, get_args

from deskhand._core.arguments import expect, expect_amount, expect_callable, expect_like
from deskhand._core.attempts import NoAnswer
from deskhand._core.fields import MAX_SECONDS
from deskhand._core.observation import Screenshot
from deskhand.desktop.access import core_of, desktop_of
from deskhand.desktop.connection import Core
from deskhand.desktop.operations import CallContext, Operation
from deskhand.errors import ActionError, DeskhandError, PolicyDenied, shown
from deskhand.machine.interface import CommandResult
from deskhand.policy.asking import answer
from deskhand.policy.audit import AuditLog
from deskhand.policy.context import cleaned, context_of, short_line, texts_of_call, with_window
from deskhand.policy.limits import Buckets, RateLimits
from deskhand.policy.questions import Questions
from deskhand.policy.rules import (
    ActionClass,
    Answer,
    ClassPolicy,
    Context,
    Decision,
    JudgedAction,
    Verdict,
    changes_what_runs,
    check_action,
    classify,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.control_state import ControlEvent
    from deskhand.policy.rules import Ask, Policy

POLICY_TIMEOUT = 5.0
"""Default time limit for a policy's decision, in seconds."""
ASK_TIMEOUT = 60.0
"""Default time limit for the answer of `ask`, in seconds."""

# What a person may do who has control; everything else is judged as that of an agent.
_BY_HAND = (ActionClass.OBSERVE, ActionClass.INPUT, ActionClass.CREDENTIAL, ActionClass.CLIPBOARD_READ)
# What a `perform` without actions is judged as.
_LOOK = Operation("screenshot")


# A guard and a desktop that it judges: one guard may be in the gates of several.
_Place = tuple["Guard", Core | None]
# Where an operation was allowed and is running: the operations that it makes belong to it and are not judged again.
_PASSED: ContextVar[frozenset[_Place]] = ContextVar("deskhand_passed", default=frozenset())
# Where a question is waiting for its answer.
_ASKING: ContextVar[frozenset[_Place]] = ContextVar("deskhand_asking", default=frozenset())


@dataclass(frozen=True, slots=True)
class _Passed:
    """The token that `before` passes to `after`."""

    actions: tuple[JudgedAction, ...]
    token: Token[frozenset[_Place]]


class Guard:
    """Enforces a policy on a desktop: an `Interceptor`. `deskhand.launch` and `connect` put one in for `policy=`, `ask=`...

    A denied operation raises `PolicyDenied`, and nothing of that call is done. All actions of a `perform` are judged before
    the first is sent, so a batch is done completely or not at all. `Desktop.stop` is the kill switch.

    The code behind `ask` may look at the desktop, through any view of it. Any other operation that it tries there is an
    `ActionError`.

    Example:
        >>> def ask(action, context):
        ...     return input(f"{context.provider}: {action}? ") == "yes"
        >>> desktop = deskhand.launch("docker", ask=ask, audit=AuditLog("audit.jsonl"))
        >>> with deskhand.calling(CallContext("openai", "call_2")):
        ...     desktop.host.run("rm -r build")        # asks
        >>> stricter = desktop.also(Guard(policy=ClassPolicy(allow=["observe"])))
    """

    judges: ClassVar[bool] = True
    """See `deskhand.desktop.access.is_judged`."""

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        ask: Ask | None = None,
        audit: AuditLog | None = None,
        limits: RateLimits | None = RateLimits(),  # noqa: B008 # the dataclass is frozen
        timeout: float = POLICY_TIMEOUT,
        ask_timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a guard for one desktop, or for several that share the limits.

        Args:
            policy: Judges every action; by default `ClassPolicy()`.
            ask: Called where the policy says `ask`, and for every safety check of a provider. Without it, all of these are
                denied.
            audit: Where every decision is written before it takes effect. If the log cannot be written, operations are denied.
            limits: How much is allowed; None for no limits.
            timeout: Seconds for the policy's decision; a later one is ignored.
            ask_timeout: Seconds for the answer of `ask`; a later one is ignored. By default those of `Questions`, and 60 for
                any other.
            clock: Monotonic seconds, for the limits.

        Raises:
            ActionError: An argument has a wrong type, or a time is not above 0 and at most an hour.
        """
        if policy is not None:
            expect_like("Guard: policy", policy, "before")
        if ask is not None:
            expect_callable("Guard: ask", ask)
        if audit is not None:
            expect("Guard: audit", audit, AuditLog)
        if limits is not None:
            expect("Guard: limits", limits, RateLimits)
        expect_callable("Guard: clock", clock)
        if ask_timeout is None:
            ask_timeout = ask.timeout if isinstance(ask, Questions) else ASK_TIMEOUT
        for name, seconds in (("timeout", timeout), ("ask_timeout", ask_timeout)):
            if expect_amount(f"Guard: {name}", seconds) > MAX_SECONDS:
                raise ActionError(f"{name} is above 0 and at most {MAX_SECONDS:g} seconds, not {shown(seconds)}")
        self._policy: Policy = ClassPolicy() if policy is None else policy
        self._ask = ask
        self._audit = audit
        self._timeout = timeout
        self._ask_timeout = ask_timeout
        self._clock = clock
        self._buckets = None if limits is None else Buckets(limits, clock())
        self._counting = threading.Lock()
        self._picture: str | None = None

    def __repr__(self) -> str:
        return f"<Guard with {type(self._policy).__name__}>"

    # --- in the gate ---

    def before(self, operation: Operation) -> _Passed | None:
        """Raise unless the operation is allowed. An allowed operation has been logged when this returns."""
        place = self._place(operation)
        if place in _PASSED.get():
            return None
        actions: tuple[JudgedAction, ...] = operation.actions or (_LOOK if operation.type == "perform" else operation,)
        if place in _ASKING.get():
            if all(classify(action) is ActionClass.OBSERVE for action in actions):
                return None
            raise ActionError(
                f"{operation.type}: while `ask` decides about an action, only looking at the desktop is allowed"
            )
        if operation.holder is not None and all(classify(action) in _BY_HAND for action in actions):
            if operation.holder.private:
                return None
            self._note_by_hand(operation, actions, operation.holder.by)
        else:
            self._approve(operation, actions)
        return _Passed(actions, _PASSED.set(_PASSED.get() | {place}))

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """Log the outcome."""
        if not isinstance(token, _Passed):
            return
        _PASSED.reset(token.token)
        if self._audit is None:
            return
        if isinstance(outcome, BaseException):
            done = outcome.done if isinstance(outcome, DeskhandError) else None
            self._note(operation.call, token.actions, error=type(outcome).__name__, done=done)
        else:
            self._note(operation.call, token.actions, done=len(token.actions), **self._measured(outcome))

    def control(self, event: ControlEvent) -> None:
        """Log that control of the desktop changes.

        Raises:
            PolicyDenied: It is to be taken, and the log cannot be written.
        """
        if self._audit is None:
            return
        try:
            self._audit.write(
                "control", kind=event.kind, by=event.by or None, text=event.text or None, private=event.private or None
            )
        except OSError as error:
            if event.kind == "take":
                raise PolicyDenied("control.take", _unwritten(error)) from error

    # --- internal ---

    def _note_by_hand(self, operation: Operation, actions: tuple[JudgedAction, ...], by: str) -> None:
        """Log what a person does who has control: it is not judged, and not limited."""
        for index, action in enumerate(actions):
            check_action(action, index)
            context = context_of(operation, action, index, len(actions))
            self._settle(operation, action, context, Decision("allow", f"{by} has control"), by="person")

    def _place(self, operation: Operation) -> _Place:
        desktop = desktop_of(operation)
        return self, None if desktop is None else core_of(desktop)

    def _measured(self, result: object) -> dict[str, object]:
        """What the log says of a result: its size, and for a picture the hash that `b2sum -l 256` gives for its bytes."""
        if isinstance(result, Screenshot):
            before, self._picture = self._picture, hashlib.blake2b(result.data, digest_size=32).hexdigest()
            return {"before": before, "after": self._picture, "bytes": len(result.data)}
        if isinstance(result, CommandResult):
            return {"bytes": len(result.stdout) + len(result.stderr), "exit_code": result.exit_code}
        return {"bytes": len(result)} if isinstance(result, str | bytes) else {}

    def _note(self, call: CallContext, actions: tuple[JudgedAction, ...], **fields: object) -> None:
        """Log something that can no longer be denied. If this fails, the log fails for the next action too, which is denied."""
        if self._audit is not None:
            with contextlib.suppress(OSError):
                self._audit.write(
                    "outcome", **texts_of_call(call), actions=[action.type for action in actions], **fields
                )

    def _approve(self, operation: Operation, actions: tuple[JudgedAction, ...]) -> None:
        for index, action in enumerate(actions):
            check_action(action, index)
        if self._buckets is not None:
            with self._counting:
                short = self._buckets.take(actions, self._clock())
            if short is not None:
                limit, after = short
                again = "" if after is None else f"; try again in {after:.3g} s"
                denied = Decision("deny", f"{limit}{again}")
                context = context_of(operation, actions[0], 0, len(actions))
                self._settle(operation, actions[0], context, denied, by="limits", retry_after=after)
        self._review(operation)
        if operation.type == "safety_check":
            return
        for index, action in enumerate(actions):
            context = context_of(operation, action, index, len(actions))
            context, decision, by = self._judge(operation, action, context)
            self._settle(operation, action, context, decision, by=by)

    def _settle(
        self,
        operation: Operation,
        action: JudgedAction,
        context: Context,
        decision: Decision,
        *,
        by: str,
        retry_after: float | None = None,
    ) -> None:
        """Log a decision, and raise unless the operation is allowed and the log was written."""
        if (stopped := _stopped(operation)) is not None:
            decision, by = Decision("deny", stopped), "stop"
        try:
            if self._audit is not None:
                self._record(self._audit, action, context, decision, by)
        except OSError as error:
            decision = Decision("deny", _unwritten(error))
        if decision.verdict != "allow":
            denied = PolicyDenied(action.type, short_line(decision.reason), retry_after=retry_after)
            raise denied.note_progress(context.index, action.type, 0)

    def _record(self, audit: AuditLog, action: JudgedAction, context: Context, decision: Decision, by: str) -> None:
        audit.write(
            "decision",
            **texts_of_call(context),
            desktop=context.desktop,
            index=context.index,
            count=context.count,
            **{"class": str(context.action_class)},
            action=audit.describe(action),
            check=None if context.safety_check is None else context.safety_check.id,
            window=context.window,
            decision=decision.verdict,
            by=by,
            reason=short_line(decision.reason),
            before=self._picture,
        )

    def _review(self, operation: Operation) -> None:
        call = operation.call
        for check in call.safety_checks:
            if check in call.acknowledged:
                continue
            action = Operation("safety_check", short_line(check.message or check.code or check.id))
            context = replace(context_of(operation, action, 0, 1), safety_check=cleaned(check))
            context, decision, by = self._judge(operation, action, context)
            self._settle(operation, action, context, decision, by=by)
            call.acknowledge(check)

    def _judge(self, operation: Operation, action: JudgedAction, context: Context) -> tuple[Context, Decision, str]:
        """Return the context as known by now, a decision that is `allow` or `deny`, and what made the decision."""
        if (names := self._unnamed(action)) and context.safety_check is None:
            reason = f"{names} in its environment changes what runs, and the policy does not name it (environment=)"
            return context, Decision("deny", reason), "environment"
        if type(self._policy) is ClassPolicy:
            # This policy cannot fail or wait, and does not need the window.
            decision = self._policy.before(action, context)
        else:
            context = with_window(operation, action, context)
            decision = self._ruling(operation, action, context)
        if decision.verdict == "allow" and context.safety_check is not None:
            decision = Decision("ask", "a policy cannot answer for a person")
        if decision.verdict != "ask":
            return context, decision, "policy"
        if self._ask is None:
            reason = f"{decision.reason or 'it is asked about'}, and there is no one to ask (ask=)"
            return context, Decision("deny", reason), "policy"
        if context.window is None:
            context = with_window(operation, action, context)
        try:
            said = self._answer(self._ask, operation, action, context, self._ask_timeout)
        except NoAnswer as none:
            return context, Decision("deny", f"it was asked about: {none}"), "ask"
        given = said if isinstance(said, Answer) else Answer(said is True)
        who = f"{given.by} said " if given.by else ""
        note = f" ({given.note})" if given.note else ""
        # Only True itself: another truthy object, such as a coroutine or a mock, does not count as a yes.
        if given.allow is True:
            return context, Decision("allow", f"it was asked about: {who}yes{note}"), "ask"
        return context, Decision("deny", f"it was asked about: {who}no{note}"), "ask"

    def _unnamed(self, action: JudgedAction) -> str:
        """The command's variables that change what runs and that the policy does not name."""
        if not isinstance(action, Operation) or not action.env:
            return ""
        named = getattr(self._policy, "environment", ())
        return ", ".join(short_line(name) for name, _ in action.env if changes_what_runs(name) and name not in named)

    def _ruling(self, operation: Operation, action: JudgedAction, context: Context) -> Decision:
        try:
            said = self._answer(self._policy.before, operation, action, context, self._timeout)
        except NoAnswer as none:
            return Decision("deny", f"the policy was asked, but {none}")
        verdict, reason = (said.verdict, said.reason) if isinstance(said, Decision) else (said, "")
        if isinstance(verdict, str) and verdict in get_args(Verdict) and isinstance(reason, str):
            return Decision(verdict, reason or f"the policy says {verdict}")  # type: ignore[arg-type] # it is one of these
        return Decision("deny", f"the policy answered with a {type(said).__name__}, not allow, deny or ask")

    def _answer(
        self,
        function: Callable[..., object],
        operation: Operation,
        action: JudgedAction,
        context: Context,
        timeout: float,
    ) -> object:
        token = _ASKING.set(_ASKING.get() | {self._place(operation)})
        try:
            about = self._place(operation)[1]
            return answer(function, action, context, timeout=timeout, attempt=operation.attempt, about=about)
        finally:
            _ASKING.reset(token)


def _unwritten(error: OSError) -> str:
    why = error.strerror or type(error).__name__
    return f"the audit log cannot be written ({why}), and no operation is allowed without it"


def _stopped(operation: Operation) -> str | None:
    desktop = desktop_of(operation)
    return None if desktop is None else core_of(desktop).stopped
