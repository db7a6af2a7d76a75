"""Where a policy is enforced: a desktop's methods, each judged, limited, written down and stoppable.

This module owns the order of things: stop, limits, safety checks, policy, question, audit, then the desktop. Every provider
module acts through a `Governor`; a `Desktop` without one is judged by nobody. Whatever fails here is a no, and nothing is
sent then. What must never appear here: a rule of what is allowed (see `deskhand.policy`), the form of the log (see
`deskhand.audit`).
"""

from __future__ import annotations

import _thread
import contextlib
import hashlib
import os
import shlex
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, get_args

from deskhand._native import Interrupted
from deskhand.actions import MAX_SECONDS
from deskhand.errors import ActionError, DeskhandError, DesktopLost, PolicyDenied, shown
from deskhand.governed_shell import GovernedShell, command_operation
from deskhand.inside import CommandResult
from deskhand.observation import Screenshot
from deskhand.policy import (
    ActionClass,
    Buckets,
    Call,
    ClassPolicy,
    Context,
    Decision,
    Deed,
    Operation,
    RateLimits,
    SafetyCheck,
    Verdict,
    check_deed,
    classify,
)
from deskhand.questions import ATTEMPT, Attempt, NoAnswer, answer
from deskhand.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from deskhand.actions import Action
    from deskhand.audit import AuditLog
    from deskhand.backends.base import Window
    from deskhand.desktop import Desktop
    from deskhand.events import ButtonDown, KeyDown
    from deskhand.formats import Format
    from deskhand.geometry import Point, Size
    from deskhand.inside import Usage, Where
    from deskhand.observation import Observation
    from deskhand.policy import Ask, Policy
    from deskhand.probes import Health
    from deskhand.programs import Program
    from deskhand.settle import Settle
    from deskhand.shell import Shell
    from deskhand.sizes import PictureSize

__all__ = ["ASK_TIMEOUT", "POLICY_TIMEOUT", "Governor"]

_T = TypeVar("_T")

POLICY_TIMEOUT = 5.0
"""Seconds that a policy may take by default."""
ASK_TIMEOUT = 60.0
"""Seconds that whoever is asked may take by default."""

_LONGEST_TEXT = 300
_STOP_LIMIT = 5.0
_STOP_PERIOD = 0.002
_END_PERIOD = 0.05
# What goes to a window, by the keyboard or at a point.
_TO_WINDOWS = (ActionClass.INPUT, ActionClass.CREDENTIAL, ActionClass.NAVIGATE, ActionClass.SAFETY_CHECK)


class Governor:
    """A desktop under a policy: what providers act through.

    Its methods are those of `Desktop`, and take a `call`. What is not allowed raises `PolicyDenied`; then nothing of that
    call was done. All actions of a `perform` are judged before the first is sent, so a batch is done as a whole or not at
    all.

    Example:
        >>> def ask(action, context):
        ...     return input(f"{context.provider}: {action}? ") == "yes"
        >>> governor = Governor(desktop, ask=ask, audit=AuditLog("audit.jsonl"))
        >>> governor.perform(LeftClick((400, 300)), call=Call("openai", "call_1"))
        >>> governor.shell("rm -r build", call=Call("openai", "call_2"))        # asks
        >>> governor.stop()                                                     # from any thread, or a signal handler
    """

    def __init__(
        self,
        desktop: Desktop | Governor,
        *,
        policy: Policy | None = None,
        ask: Ask | None = None,
        audit: AuditLog | None = None,
        limits: RateLimits | None = RateLimits(),  # noqa: B008 # it is frozen
        timeout: float = POLICY_TIMEOUT,
        ask_timeout: float = ASK_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put `desktop` under a policy. Who closes the desktop closes it as before.

        Args:
            desktop: What is driven; one that has a governor already is refused.
            policy: Judges every action; by default `ClassPolicy()`.
            ask: Called where the policy says `ask`, and for every safety check of a provider. None: nobody is there, which
                is a no.
            audit: Where every decision is written before it is acted on. A log that cannot be written is a no.
            limits: How much may be done; None for no limits.
            timeout: Seconds for the policy's answer; later ones are not heard.
            ask_timeout: Seconds for the answer to a question.
            clock: Monotonic seconds, for the limits.

        Raises:
            ActionError: It has a governor already, or a time is not above 0 and at most an hour.
        """
        for name, seconds in (("timeout", timeout), ("ask_timeout", ask_timeout)):
            if not 0 < seconds <= MAX_SECONDS:
                raise ActionError(f"{name} is above 0 and at most {MAX_SECONDS:g} seconds, not {shown(seconds)}")
        if isinstance(desktop, Governor):
            raise ActionError("this desktop has a governor: one policy decides")
        self.desktop = desktop
        self._policy: Policy = ClassPolicy() if policy is None else policy
        self._ask = ask
        self._audit = audit
        self._timeout = timeout
        self._ask_timeout = ask_timeout
        self._clock = clock
        self._buckets = None if limits is None else Buckets(limits, clock())
        self._counting = threading.Lock()
        # Calls of several threads take turns at the desktop; questions are asked without it, so who is asked may look.
        self._turn = threading.RLock()
        self._attempts: dict[Attempt, int] = {}
        self._stopped: str | None = None
        self._halting = False
        self._released = False
        self._picture: str | None = None

    @classmethod
    def of(cls, desktop: Desktop | Governor) -> Governor:
        """The governor itself, or one with the default policy around a plain desktop: for provider modules."""
        return desktop if isinstance(desktop, Governor) else cls(desktop)

    def __repr__(self) -> str:
        return f"<Governor of {self.desktop!r}{' stopped' if self._stopped is not None else ''}>"

    # --- what providers ask ---

    def review(self, call: Call) -> tuple[SafetyCheck, ...]:
        """Ask about the call's safety checks that have not been asked about yet.

        Every governed method does this before anything else; call it where a call has nothing but checks. Only `ask` can say
        yes, for each check alone, whatever the policy allows; the policy may say no.

        Returns:
            Those that were answered with an explicit yes: all of them, and exactly what may be told to the provider as
            acknowledged.

        Raises:
            PolicyDenied: One of them was not.
        """
        with self._attempt() as attempt:
            self._refuse_if_stopped("safety_check")
            self._review(call, attempt)
        return call.acknowledged

    def check(self, *deeds: Deed, call: Call | None = None) -> None:
        """Judge something that is not done through this object, such as `Operation("navigate", url)`, and write it down.

        Raises:
            PolicyDenied: It is not allowed.
        """
        with self._attempt() as attempt:
            self._approve(deeds, call or Call(), attempt)

    def carried_out(
        self,
        deed: Deed,
        work: Callable[[], _T],
        call: Call | None = None,
        *,
        interrupt: Callable[[], None] | None = None,
    ) -> _T:
        """Do something beside the screen, such as a command, when it was allowed.

        Args:
            deed: What it is.
            work: Does it.
            call: Whose it is.
            interrupt: Ends the work under way, from any thread or a signal handler; called again and again until it has ended.

        Raises:
            PolicyDenied: It was not.
        """
        return self._governed((deed,), call, work, beside=True, interrupt=interrupt)

    # --- the desktop's methods ---

    def perform(
        self,
        *actions: Action,
        settle: Settle | bool = True,
        size: PictureSize | None = None,
        format: Format = "png",
        quality: int = 80,
        call: Call | None = None,
    ) -> Observation:
        """As `Desktop.perform`; all actions are judged before the first of them is sent.

        Raises:
            PolicyDenied: One of them is not allowed (`index` says which); nothing was sent. Or `stop` came meanwhile.
        """
        deeds: tuple[Deed, ...] = actions or (Operation("screenshot"),)
        return self._governed(
            deeds,
            call,
            lambda: self.desktop.perform(*actions, settle=settle, size=size, format=format, quality=quality),
        )

    def screenshot(
        self,
        size: PictureSize | None = None,
        region: tuple[int, int, int, int] | None = None,
        *,
        cursor: bool = True,
        format: Format = "png",
        quality: int = 80,
        call: Call | None = None,
    ) -> Screenshot:
        """As `Desktop.screenshot`."""
        return self._governed(
            (Operation("screenshot"),),
            call,
            lambda: self.desktop.screenshot(size, region, cursor=cursor, format=format, quality=quality),
        )

    def shell(
        self,
        command: str,
        *,
        where: Where = "desktop",
        timeout: float = 60.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limit: int = 1 << 20,
        call: Call | None = None,
    ) -> CommandResult:
        """As `Desktop.shell`."""
        env = dict(env or {})
        under_way: list[Shell] = []

        def run() -> CommandResult:
            with self.desktop.shell_once(where=where, timeout=timeout, cwd=cwd, env=env, limit=limit) as shell:
                under_way.append(shell)
                return shell.run(command)

        def interrupt() -> None:
            for shell in under_way:
                shell.interrupt()

        return self.carried_out(command_operation(command, where, cwd, env), run, call, interrupt=interrupt)

    def open_shell(
        self,
        *,
        where: Where = "desktop",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        limit: int = 1 << 20,
    ) -> GovernedShell:
        """As `Desktop.open_shell`; each command is judged when it is run, and `stop` ends the one under way."""
        self._refuse_if_stopped("open_shell")
        env = dict(env or {})
        shell = self.desktop.open_shell(where=where, cwd=cwd, env=env, timeout=timeout, limit=limit)
        return GovernedShell(self, shell, where=where, cwd=cwd, env=env)

    def start(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        call: Call | None = None,
    ) -> Program:
        """As `Desktop.start`."""
        # What was judged is what is started, whatever happens to the caller's list meanwhile.
        words = command if isinstance(command, str) else tuple(command)
        env, cwd = dict(env or {}), None if cwd is None else os.fspath(cwd)
        line = words if isinstance(words, str) else shlex.join(words)
        return self._governed(
            (Operation("start", line, cwd=cwd, env=tuple(env.items())),),
            call,
            lambda: self.desktop.start(words, env=env, cwd=cwd, timeout=timeout),
        )

    def read_file(self, path: str, *, limit: int = 64 << 20, call: Call | None = None) -> bytes:
        """As `Desktop.read_file`."""
        return self._governed(
            (Operation("read_file", path),), call, lambda: self.desktop.read_file(path, limit=limit), beside=True
        )

    def write_file(self, path: str, data: bytes | str, *, call: Call | None = None) -> None:
        """As `Desktop.write_file`."""
        content = data.encode() if isinstance(data, str) else bytes(data)
        deed = Operation("write_file", path, len(content))
        self._governed((deed,), call, lambda: self.desktop.write_file(path, content), beside=True)

    def copy_in(self, source: str | os.PathLike[str], target: str, *, call: Call | None = None) -> None:
        """As `Desktop.copy_in`."""
        deed = Operation("copy_in", f"{os.fspath(source)} -> {target}")
        self._governed((deed,), call, lambda: self.desktop.copy_in(source, target), beside=True)

    def copy_out(
        self, source: str, target: str | os.PathLike[str], *, limit: int = 1 << 30, call: Call | None = None
    ) -> None:
        """As `Desktop.copy_out`."""
        deed = Operation("copy_out", f"{source} -> {os.fspath(target)}")
        self._governed((deed,), call, lambda: self.desktop.copy_out(source, target, limit=limit), beside=True)

    def logs(self, program: str | None = None, *, call: Call | None = None) -> str:
        """As `Desktop.logs`."""
        deed = Operation("logs", program or "")
        return self._governed((deed,), call, lambda: self.desktop.logs(program), beside=True)

    def usage(self, *, call: Call | None = None) -> Usage:
        """As `Desktop.usage`."""
        return self._governed((Operation("usage"),), call, self.desktop.usage, beside=True)

    def get_clipboard(self, *, call: Call | None = None) -> str | None:
        """As `Desktop.get_clipboard`."""
        return self._governed((Operation("get_clipboard"),), call, self.desktop.get_clipboard)

    def set_clipboard(self, text: str, *, call: Call | None = None) -> None:
        """As `Desktop.set_clipboard`."""
        deed = Operation("set_clipboard", text, len(text.encode("utf-8", "replace")))
        self._governed((deed,), call, lambda: self.desktop.set_clipboard(text))

    def windows(self, *, call: Call | None = None) -> list[Window]:
        """As `Desktop.windows`."""
        return self._governed((Operation("windows"),), call, self.desktop.windows)

    def activate(self, window: Window | int, *, timeout: float = 5.0, call: Call | None = None) -> None:
        """As `Desktop.activate`."""
        deed = Operation("activate", _window_name(window))
        self._governed((deed,), call, lambda: self.desktop.activate(window, timeout=timeout))

    def close_window(self, window: Window | int, *, timeout: float = 5.0, call: Call | None = None) -> bool:
        """As `Desktop.close_window`."""
        deed = Operation("close_window", _window_name(window))
        return self._governed((deed,), call, lambda: self.desktop.close_window(window, timeout=timeout))

    def resize(self, size: tuple[int, int], *, call: Call | None = None) -> None:
        """As `Desktop.resize`."""
        width, height = size
        deed = Operation("resize", f"{width}x{height}")
        self._governed((deed,), call, lambda: self.desktop.resize(size))

    def probe(self, *, timeout: float = 1.0, call: Call | None = None) -> Health:
        """As `Desktop.probe`."""
        return self._governed((Operation("probe"),), call, lambda: self.desktop.probe(timeout=timeout))

    def release_all(self) -> None:
        """As `Desktop.release_all`; always allowed."""
        self.desktop.release_all()

    @property
    def held(self) -> tuple[ButtonDown | KeyDown, ...]:
        """As `Desktop.held`."""
        return self.desktop.held

    @property
    def size(self) -> Size:
        """As `Desktop.size`."""
        return self.desktop.size

    @property
    def status(self) -> tuple[str, ...]:
        """As `Desktop.status`."""
        return self.desktop.status

    @property
    def pointer(self) -> Point:
        """As `Desktop.pointer`."""
        return self.desktop.pointer

    @property
    def display(self) -> str | None:
        """As `Desktop.display`."""
        return self.desktop.display

    @property
    def xauthority(self) -> Path | None:
        """As `Desktop.xauthority`."""
        return self.desktop.xauthority

    @property
    def name(self) -> str | None:
        """As `Desktop.name`."""
        return self.desktop.name

    # --- the kill switch ---

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped is not None

    def stop(self, reason: str = "it was stopped", *, timeout: float = _STOP_LIMIT) -> bool:
        """Release everything held and allow nothing any more; from any thread, or from a signal handler.

        The call under way is broken off and raises `PolicyDenied`, as every later one does. Questions that are open have no
        answer. The desktop itself takes no input any more, by whichever way; it may still be looked at, and closed.
        Within 100 ms all is released, unless the server itself hangs, or a single text of more than ten thousand characters is
        just being prepared. Commands under way are ended, with all that they have started, within 2 s.

        Args:
            reason: What later errors say.
            timeout: Seconds to wait until all has been released.

        Returns:
            True when all has been released. False when it has not in time, or when this thread is itself in a governed call,
            as in a signal handler: then it is released as soon as the handler returns.
        """
        if self._stopped is None:
            self._stopped = reason
        for attempt in tuple(self._attempts):
            attempt.end()
        if not self._halting:
            self._halting = True
            # Without a lock of Python's: a signal handler may have come between any two lines of whoever holds it.
            _thread.start_new_thread(self._halt, ())
        if self.desktop.in_call or threading.get_ident() in tuple(self._attempts.values()):
            return self._released
        deadline = time.monotonic() + timeout
        while not self._released and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _STOP_PERIOD))
        return self._released

    def _halt(self) -> None:
        try:
            self.desktop.halt(self._stopped or "")
        except DesktopLost:
            # It holds nothing any more.
            self._released = True
        except DeskhandError:
            # The next `stop` tries again.
            self._halting = False
        else:
            self._released = True
        while attempts := tuple(self._attempts):
            for attempt in attempts:
                attempt.end()
            time.sleep(_END_PERIOD)

    def _refuse_if_stopped(self, what: str) -> None:
        if self._stopped is not None:
            raise PolicyDenied(what, self._stopped)

    # --- inside ---

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[Attempt]:
        attempt = ATTEMPT.get() or Attempt()
        # A call that somebody makes while being asked is an attempt of its own.
        token = ATTEMPT.set(None)
        self._attempts[attempt] = threading.get_ident()
        try:
            yield attempt
        finally:
            self._attempts.pop(attempt, None)
            ATTEMPT.reset(token)

    def _governed(
        self,
        deeds: tuple[Deed, ...],
        call: Call | None,
        work: Callable[[], _T],
        *,
        beside: bool = False,
        interrupt: Callable[[], None] | None = None,
    ) -> _T:
        call = call or Call()
        with self._attempt() as attempt:
            self._approve(deeds, call, attempt)
            with contextlib.nullcontext() if beside else self._turn:
                self._refuse_if_stopped(deeds[0].type)
                if attempt.ended:
                    raise Interrupted("this call was stopped")
                attempt.acting, attempt.command = not beside, interrupt
                try:
                    return self._carry_out(deeds, call, work)
                finally:
                    attempt.acting, attempt.command = False, None

    def _carry_out(self, deeds: tuple[Deed, ...], call: Call, work: Callable[[], _T]) -> _T:
        audit = self._audit
        if audit is None:
            return work()
        try:
            result = work()
        except BaseException as error:
            done = error.done if isinstance(error, DeskhandError) else None
            self._note("outcome", call, deeds, error=type(error).__name__, done=done)
            raise
        self._note("outcome", call, deeds, done=len(deeds), **self._measured(result))
        return result

    def _measured(self, result: object) -> dict[str, object]:
        """What is written down of a result: how much it was, and of a picture what `b2sum -l 256` says of its bytes."""
        if isinstance(result, Screenshot):
            before, self._picture = self._picture, hashlib.blake2b(result.data, digest_size=32).hexdigest()
            return {"before": before, "after": self._picture, "bytes": len(result.data)}
        if isinstance(result, CommandResult):
            return {"bytes": len(result.stdout) + len(result.stderr), "exit_code": result.exit_code}
        return {"bytes": len(result)} if isinstance(result, str | bytes) else {}

    def _note(self, event: str, call: Call, deeds: tuple[Deed, ...], **fields: object) -> None:
        """Write down what cannot be refused any more. A log that failed here fails for the next action, and refuses that."""
        if self._audit is not None:
            with contextlib.suppress(OSError):
                self._audit.write(event, **_who(call), actions=[deed.type for deed in deeds], **fields)

    def _approve(self, deeds: tuple[Deed, ...], call: Call, attempt: Attempt) -> None:
        """Raise unless all of it is allowed; what is allowed has been written down when this returns."""
        for index, deed in enumerate(deeds):
            check_deed(deed, index)
        if not deeds:
            return
        self._refuse_if_stopped(deeds[0].type)
        if self._buckets is not None:
            with self._counting:
                short = self._buckets.take(deeds, self._clock())
            if short is not None:
                limit, after = short
                again = "" if after is None else f"; try again in {after:.3g} s"
                denied = Decision("deny", f"{limit}{again}")
                self._settle(deeds[0], self._context(deeds[0], call, 0, len(deeds)), denied, "limits", after)
        self._review(call, attempt)
        for index, deed in enumerate(deeds):
            context = self._context(deed, call, index, len(deeds))
            self._settle(deed, *self._judge(deed, context, attempt))

    def _settle(
        self, deed: Deed, context: Context, decision: Decision, by: str, retry_after: float | None = None
    ) -> None:
        """Write a decision down, and raise unless it is a yes that could be written."""
        if self._stopped is not None:
            decision, by = Decision("deny", self._stopped), "stop"
        try:
            if self._audit is not None:
                self._record(self._audit, deed, context, decision, by)
        except OSError as error:
            why = error.strerror or type(error).__name__
            decision = Decision("deny", f"the audit log cannot be written ({why}), and nothing is done without it")
        if decision.verdict != "allow":
            denied = PolicyDenied(deed.type, one_line(decision.reason, _LONGEST_TEXT), retry_after=retry_after)
            raise denied.note_progress(context.index, deed.type, 0)

    def _record(self, audit: AuditLog, deed: Deed, context: Context, decision: Decision, by: str) -> None:
        audit.write(
            "decision",
            **_who(context),
            desktop=context.desktop,
            index=context.index,
            count=context.count,
            **{"class": str(context.action_class)},
            action=audit.describe(deed),
            check=None if context.safety_check is None else context.safety_check.id,
            window=context.window,
            decision=decision.verdict,
            by=by,
            reason=one_line(decision.reason, _LONGEST_TEXT),
            before=self._picture,
        )

    def _review(self, call: Call, attempt: Attempt) -> None:
        for check in call.safety_checks:
            if check in call.acknowledged:
                continue
            deed = Operation("safety_check", one_line(check.message or check.code or check.id, _LONGEST_TEXT))
            context = replace(self._context(deed, call, 0, 1), safety_check=_cleaned(check))
            self._settle(deed, *self._judge(deed, context, attempt))
            call.acknowledge(check)

    def _judge(self, deed: Deed, context: Context, attempt: Attempt) -> tuple[Context, Decision, str]:
        """What is known by then, a verdict that is `allow` or `deny`, and who gave it."""
        if type(self._policy) is ClassPolicy:
            # It can neither fail nor wait, and needs no window.
            decision = self._policy.before(deed, context)
        else:
            context = self._with_window(deed, context)
            decision = self._ruling(deed, context, attempt)
        if decision.verdict == "allow" and context.safety_check is not None:
            decision = Decision("ask", "a policy cannot answer for a person")
        if decision.verdict != "ask":
            return context, decision, "policy"
        if self._ask is None:
            reason = f"{decision.reason or 'it is asked about'}, and nobody is there to be asked"
            return context, Decision("deny", reason), "policy"
        if context.window is None:
            context = self._with_window(deed, context)
        try:
            said = answer(self._ask, deed, context, timeout=self._ask_timeout, attempt=attempt)
        except NoAnswer as none:
            return context, Decision("deny", f"it was asked about: {none}"), "ask"
        # Only the one value: a truthy object, such as a coroutine or a mock, is no yes.
        if said is True:
            return context, Decision("allow", "it was asked about: yes"), "ask"
        return context, Decision("deny", "it was asked about: no"), "ask"

    def _ruling(self, deed: Deed, context: Context, attempt: Attempt) -> Decision:
        try:
            said = answer(self._policy.before, deed, context, timeout=self._timeout, attempt=attempt)
        except NoAnswer as none:
            return Decision("deny", f"the policy was asked, but {none}")
        verdict, reason = (said.verdict, said.reason) if isinstance(said, Decision) else (said, "")
        if isinstance(verdict, str) and verdict in get_args(Verdict) and isinstance(reason, str):
            return Decision(verdict, reason or f"the policy says {verdict}")  # type: ignore[arg-type] # it is one of these
        return Decision("deny", f"the policy answered with a {type(said).__name__}, not allow, deny or ask")

    def _context(self, deed: Deed, call: Call, index: int, count: int) -> Context:
        return Context(
            action_class=classify(deed),
            desktop=one_line(self.desktop.name or self.desktop.display or "", _LONGEST_TEXT),
            provider=one_line(call.provider, _LONGEST_TEXT),
            call_id=one_line(call.call_id, _LONGEST_TEXT),
            agent=one_line(call.agent, _LONGEST_TEXT),
            turn=one_line(call.turn, _LONGEST_TEXT),
            index=index,
            count=count,
            safety_checks=tuple(map(_cleaned, call.safety_checks)),
        )

    def _with_window(self, deed: Deed, context: Context) -> Context:
        if context.action_class not in _TO_WINDOWS:
            return context
        try:
            windows = self.desktop.windows()
        except (DeskhandError, TimeoutError):
            # Not every backend knows windows; and what is wrong with the desktop, the action itself will say.
            return context
        xy = getattr(deed, "xy", None)
        under = [w for w in windows if (w.rect.contains(xy) if xy else w.active)]
        return replace(context, window=one_line(under[-1].title, _LONGEST_TEXT)) if under else context


def _who(of: Call | Context) -> dict[str, object]:
    """The texts as a log may have them; what is empty is left out."""
    names = ("provider", "call_id", "agent", "turn")
    return {name: one_line(getattr(of, name), _LONGEST_TEXT) or None for name in names}


def _cleaned(check: SafetyCheck) -> SafetyCheck:
    texts = (None if text is None else one_line(text, _LONGEST_TEXT) for text in (check.code, check.message))
    return SafetyCheck(one_line(check.id, _LONGEST_TEXT), *texts)


def _window_name(window: Window | int) -> str:
    return f"{window:#x}" if isinstance(window, int) else f"{window.id:#x} {one_line(window.title, _LONGEST_TEXT)}"
