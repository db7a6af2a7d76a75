"""Operations on a desktop as values: `Operation`, its call (`CallContext`), and what sees each of them (`Interceptor`).

This module is pure. It knows no desktop, no policy and no provider.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from deskhand._core.arguments import expect, expect_like, expect_several, expect_text
from deskhand._core.attempts import Attempt
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterable, Iterator

    from deskhand._core.elements import Elements
    from deskhand._core.formats import Format
    from deskhand._core.geometry import Point, Size
    from deskhand._core.observation import Screenshot
    from deskhand._core.sizes import PictureSize
    from deskhand._core.window import Window
    from deskhand.actions import Action


@dataclass(frozen=True, slots=True)
class SafetyCheck:
    """A check that the provider wants a person to confirm before the call is carried out.

    OpenAI's `pending_safety_checks` have these fields. Google's `safety_decision` becomes one with the code
    `require_confirmation` and the explanation as its message.

    Attributes:
        id: The provider's own.
        code: What kind of check.
        message: The provider's text for people.
    """

    id: str
    code: str | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        expect_text("SafetyCheck.id", self.id)
        for name, value in (("code", self.code), ("message", self.message)):
            if value is not None:
                expect_text(f"SafetyCheck.{name}", value)


class CallContext:
    """One call of a provider's tool: the cause of operations.

    Attributes:
        provider: `openai`, `anthropic`, `google`, `mcp`...; empty when unknown.
        call_id: The provider's own id of this call.
        agent: Which agent, where there are several.
        turn: Which turn of its conversation.
        safety_checks: What the provider wants confirmed. Nothing of the call is done before each of them is.
    """

    __slots__ = ("_acknowledged", "agent", "call_id", "provider", "safety_checks", "turn")

    def __init__(
        self,
        provider: str = "",
        call_id: str = "",
        *,
        agent: str = "",
        turn: str = "",
        safety_checks: Iterable[SafetyCheck] = (),
    ) -> None:
        """See the attributes.

        Raises:
            ActionError: One is of another type.
        """
        self.provider: str = expect_text("CallContext.provider", provider)
        self.call_id: str = expect_text("CallContext.call_id", call_id)
        self.agent: str = expect_text("CallContext.agent", agent)
        self.turn: str = expect_text("CallContext.turn", turn)
        self.safety_checks: tuple[SafetyCheck, ...] = tuple(
            expect("each of CallContext.safety_checks", check, SafetyCheck)
            for check in expect_several("CallContext.safety_checks", safety_checks)
        )
        self._acknowledged: tuple[SafetyCheck, ...] = ()

    def __repr__(self) -> str:
        return f"CallContext({self.provider!r}, {self.call_id!r}, agent={self.agent!r}, turn={self.turn!r})"

    @property
    def acknowledged(self) -> tuple[SafetyCheck, ...]:
        """The safety checks that a person answered with an explicit yes, in the order of `safety_checks`.

        These, and no others, may be sent to the provider as acknowledged.
        """
        return self._acknowledged

    def acknowledge(self, check: SafetyCheck) -> None:
        """Note that a person was asked about this check and said yes. For `Guard` only.

        Raises:
            ActionError: The call has no such check.
        """
        if check not in self.safety_checks:
            raise ActionError(f"the call {shown(self.call_id)} has no safety check {shown(check.id)}")
        said = {*self._acknowledged, check}
        self._acknowledged = tuple(each for each in self.safety_checks if each in said)


_CALL: ContextVar[CallContext | None] = ContextVar("deskhand_call", default=None)


def current_call() -> CallContext:
    """The call that this context works for; an empty one if none was given."""
    return _CALL.get() or CallContext()


def calling(call: CallContext) -> contextlib.AbstractContextManager[CallContext]:
    """Attribute everything that is done on desktops in this block, in this thread or task, to `call`.

    Example:
        >>> with deskhand.calling(CallContext("openai", "call_1")):
        ...     desktop.perform(LeftClick((400, 300)))
    """
    return _calling(expect("calling: call", call, CallContext))


@contextlib.contextmanager
def _calling(call: CallContext) -> Iterator[CallContext]:
    token = _CALL.set(call)
    try:
        yield call
    finally:
        _CALL.reset(token)


@dataclass(frozen=True, slots=True)
class Holder:
    """A person, or a program, who has control of a desktop.

    Attributes:
        by: The name that was given to `take`.
        since: When the hold began, in seconds since 1970.
        private: Whether others may not look either.
    """

    by: str
    since: float
    private: bool = False


class WindowLooks(Protocol):
    """A desktop's windows to look at; see `Looks`."""

    def list(self) -> builtins.list[Window]:
        """See `Windows.list`."""
        ...


class Looks(Protocol):
    """A desktop to look at: the part of `Desktop` that an interceptor may use. What it does is as there."""

    @property
    def name(self) -> str | None:
        """See `Desktop.name`."""
        ...

    @property
    def display(self) -> str | None:
        """See `Desktop.display`."""
        ...

    @property
    def size(self) -> Size:
        """See `Desktop.size`."""
        ...

    @property
    def pointer(self) -> Point:
        """See `Desktop.pointer`."""
        ...

    @property
    def windows(self) -> WindowLooks:
        """See `Desktop.windows`."""
        ...

    def screenshot(
        self,
        size: PictureSize | None = None,
        region: tuple[int, int, int, int] | None = None,
        *,
        cursor: bool = True,
        format: Format = "png",
        quality: int = 80,
    ) -> Screenshot:
        """See `Desktop.screenshot`."""
        ...

    def elements(self, *, ocr: bool = False, timeout: float = 2.0) -> Elements:
        """See `Desktop.elements`."""
        ...


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a desktop. Operations are equal when they do the same, for any call.

    Attributes:
        type: `perform`, `screenshot`, `elements`, `start`, `shell`, `host_shell` (on this machine), `open_shell`,
            `open_host_shell`, `read_file`, `write_file`, `copy_in`, `copy_out`, `get_clipboard`, `set_clipboard`, `windows`,
            `activate`, `drop` (files on a window), `close_window`, `resize`, `logs`, `usage`, `probe`, `navigate`,
            `safety_check`, `hand_over`, or a provider's own word.
        target: The command line, path, URL or text that it is about.
        size: How many bytes it writes, where that is known.
        cwd: Where a command runs, if given.
        env: What is added to the command's environment: names and values.
        actions: What a `perform` does. A policy decides about each of them.
        data: What a `write_file` writes, or a `set_clipboard` of data: all its types, one after the other.
        call: The call that it belongs to.
        desktop: The same desktop without interceptors, to look at: looks through it do not pass the gate.
        attempt: The call under way, for an interceptor that waits: to stop the call ends the wait.
        holder: The person who does it and has control of the desktop (`Desktop.control`); None for an agent's.
    """

    type: str
    target: str = ""
    size: int | None = None
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    actions: tuple[Action, ...] = ()
    data: bytes | None = field(default=None, repr=False)
    call: CallContext = field(default_factory=CallContext, compare=False, repr=False)
    desktop: Looks | None = field(default=None, compare=False, repr=False)
    attempt: Attempt = field(default_factory=Attempt, compare=False, repr=False)
    holder: Holder | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        expect_text("Operation.type", self.type)
        expect_text("Operation.target", self.target)
        expect("Operation.call", self.call, CallContext)


class Interceptor(Protocol):
    """Stands in a desktop's gate: every operation passes it. Give it to `Desktop.also`.

    Operations of a person who has control pass it too; they have a `holder`. One that has a method `control(event)` also gets a
    `ControlEvent` whenever control of the desktop changes, and passes the operations of everybody who takes control.

    The calling thread runs it: several threads at once if several use the desktop. What it calls
    through `operation.desktop` does not pass any interceptor.
    """

    def before(self, operation: Operation) -> object:
        """Called before an operation. If this raises, the call raises the same, and nothing is done.

        Returns:
            A token, which `after` gets.
        """
        ...

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """Called after the operation has ended.

        Args:
            operation: What was done.
            token: What `before` returned.
            outcome: What the call returns, or the exception that it raises. A later interceptor's refusal is one.
        """
        ...


def check_interceptors(what: str, interceptors: Iterable[object]) -> None:
    """Refuse what is no `Interceptor`; `what` is the call that they were given to."""
    for interceptor in interceptors:
        expect_like(f"{what}: an interceptor", interceptor, "before", "after")
