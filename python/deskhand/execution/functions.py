"""The functions that calls name: plain functions, coroutines, and a desktop's actions; how each runs, and which may repeat.

When a call runs, and how often, is decided elsewhere.

A plain function runs in a thread of its own, because it may block. Such a thread cannot be stopped: after a timeout or a
cancellation it continues until the function returns, and the result is dropped. A coroutine is cancelled. A call on a desktop
is interrupted, and releases the keys and buttons that it holds before anything else runs there.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from deskhand._core.arguments import expect_several
from deskhand.actions import ACTIONS
from deskhand.desktop.access import core_of
from deskhand.errors import ActionError, shown
from deskhand.execution.call_queue import Turns, turns_of
from deskhand.execution.schedule import Lane
from deskhand.execution.types import ExecutionResult, ExecutionStatus
from deskhand.providers.action_tools import decode_tool, is_read_only, schema
from deskhand.providers.element_tools import ELEMENTS, decode_elements, elements_schema
from deskhand.providers.session import AsyncModelSession, ModelSession
from deskhand.providers.values import ProviderCall, Result

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from deskhand.aio.desktop import AsyncDesktop
    from deskhand.desktop.desktop import Desktop

if TYPE_CHECKING:
    AnyDesktop: TypeAlias = Desktop | AsyncDesktop | ModelSession | AsyncModelSession
    """A desktop in any of the forms that can act."""

_T = TypeVar("_T")


class Function:
    """A function that calls may name.

    Attributes:
        name: The name that calls use.
        lane: The desktop that it needs for itself; None if it needs none.
        turns: The queue of calls for that desktop.

    Example:
        >>> Function(search, repeatable=True)
        >>> Function(fill_in_form, desktop=desktop)     # called with the desktop first, in its thread
    """

    def __init__(
        self,
        call: Callable[..., object],
        name: str | None = None,
        *,
        repeatable: bool | None = None,
        desktop: AnyDesktop | None = None,
        looks: bool = False,
    ) -> None:
        """Declare a function.

        Args:
            call: A plain function or a coroutine. An exception is a failure. It may return an `ExecutionResult` to choose the
                status itself.
            name: The name that calls use; by default the function's own name.
            repeatable: Whether it may be called again after it failed or took too long, because a second call has no further
                effect. By default only a function that `looks` may.
            desktop: The desktop that it acts on. The function must be plain then: it is called with the desktop before the
                arguments, in the desktop's thread, while no other call of an executor has the desktop.
            looks: It only looks at that desktop.

        Raises:
            ActionError: It has no name, or is a coroutine that acts on a desktop.
        """
        if not callable(call):
            raise ActionError(f"a function must be callable, not {shown(call)}")
        found = name or getattr(call, "__name__", None)
        if not isinstance(found, str) or found == "<lambda>":
            raise ActionError(f"{shown(call)} has no name: give name=")
        self.name = found
        self._call: Callable[..., Any] = call
        self._is_coroutine = _is_coroutine(call)
        self._repeatable = looks if repeatable is None else repeatable
        self._looks = looks
        self._model_session: AsyncModelSession | None = None
        self.turns: Turns | None = None
        if desktop is not None:
            if self._is_coroutine:
                raise ActionError(
                    f"{found} acts on a desktop, and must be a plain function for that: it runs in its thread"
                )
            self._model_session = AsyncModelSession.of(desktop)
            self.turns = turns_of(self._model_session.session.desktop)
        self._signature = _signature(call, skip=desktop is not None)

    def is_repeatable(self, arguments: Mapping[str, object]) -> bool:
        """Whether a call with these arguments may be made again after it failed."""
        del arguments
        return self._repeatable

    def is_final(self, result: ExecutionResult) -> bool:
        """Whether another try would give the same result."""
        del result
        return False

    def lane(self, arguments: Mapping[str, object]) -> Lane | None:
        """The lane that a call with these arguments needs."""
        if self._model_session is None:
            return None
        return Lane(id(core_of(self._model_session.session.desktop)), looks=self.only_looks(arguments))

    def only_looks(self, arguments: Mapping[str, object]) -> bool:
        """Whether a call with these arguments leaves the desktop as it is."""
        del arguments
        return self._looks

    @property
    def stops(self) -> str:
        """What happens when it is stopped, as a text for people."""
        if self._model_session is not None:
            return "it was interrupted and holds no key or button; what it has done stays done: look before going on"
        if self._is_coroutine:
            return "it was cancelled"
        return "a plain function cannot be stopped: it continues in its thread, and its result is dropped"

    def parameters(self, arguments: Mapping[str, object]) -> tuple[list[str], list[str], bool]:
        """The names of its parameters, those of them that are required, and whether it takes any other name."""
        del arguments
        if self._signature is None:
            return [], [], True
        takes = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        named = [parameter for parameter in self._signature.parameters.values() if parameter.kind in takes]
        kinds = {parameter.kind for parameter in self._signature.parameters.values()}
        required = [parameter.name for parameter in named if parameter.default is inspect.Parameter.empty]
        return [parameter.name for parameter in named], required, inspect.Parameter.VAR_KEYWORD in kinds

    def check(self, arguments: Mapping[str, object]) -> None:
        """Check that it can be called with these arguments.

        Raises:
            ActionError: An argument is missing or unknown.
        """
        if self._signature is None:
            return
        try:
            self._signature.bind(**arguments)
        except TypeError as error:
            raise ActionError(f"{self.name}: {error}") from None

    async def run(self, arguments: Mapping[str, object]) -> object:
        """Call it."""
        if self._model_session is not None:
            return await self._model_session.run(lambda model_session: self._call(model_session.desktop, **arguments))
        if self._is_coroutine:
            return await self._call(**arguments)
        returned = await _in_thread(lambda: self._call(**arguments))
        return await returned if inspect.isawaitable(returned) else returned


Functions: TypeAlias = Mapping[str, Callable[..., object]] | Iterable[Callable[..., object] | Function]
"""Functions by name, or a list of functions that have names."""


class _Computer(Function):
    """A desktop's actions and `elements` as a function: all of them by `action`, or one of them by its name.

    Its arguments are those of `deskhand.providers.action_tools` and `element_tools`: points are in pixels of the picture that
    the model was shown last.
    """

    def __init__(self, name: str, model_session: AsyncModelSession, action: str | None = None) -> None:
        """Declare it.

        Args:
            name: The name that calls use.
            model_session: The desktop.
            action: The action; None if the argument `action` names it.
        """
        super().__init__(self._carry_out, name)
        self._model_session = model_session
        self._action = action
        self._signature = None
        self.turns = turns_of(model_session.session.desktop)

    def _split(self, arguments: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
        if self._action is not None:
            return self._action, dict(arguments)
        return arguments.get("action"), {name: value for name, value in arguments.items() if name != "action"}

    def is_repeatable(self, arguments: Mapping[str, Any]) -> bool:
        return self.only_looks(arguments)

    def is_final(self, result: ExecutionResult) -> bool:
        return isinstance(result.result, Result) and result.result.denied

    def only_looks(self, arguments: Mapping[str, Any]) -> bool:
        name, _ = self._split(arguments)
        found = ACTIONS.get(name) if isinstance(name, str) else None
        return name == ELEMENTS or (found is not None and is_read_only(found))

    def parameters(self, arguments: Mapping[str, Any]) -> tuple[list[str], list[str], bool]:
        name = str(self._split(arguments)[0])
        if name == ELEMENTS:
            plain = elements_schema()
        else:
            plain = schema(ACTIONS[name]) if name in ACTIONS else {"properties": {}, "required": []}
        return list(plain["properties"]), list(plain["required"]), False

    async def run(self, arguments: Mapping[str, Any]) -> ExecutionResult:
        assert self._model_session is not None  # noqa: S101 # set above
        return await self._model_session.run(lambda model_session: self._carry_out(model_session, arguments))

    def _carry_out(self, model_session: ModelSession, arguments: Mapping[str, Any]) -> ExecutionResult:
        name, fields = self._split(arguments)
        viewport = model_session.viewport
        step = decode_elements(fields) if name == ELEMENTS else decode_tool(self.name, name, fields, viewport)
        result = model_session.carry_out(ProviderCall(steps=(step,), viewport=viewport, name=self.name))
        status = ExecutionStatus.SUCCESS if result.error is None else ExecutionStatus.FAILURE
        return ExecutionResult(status, result, result.error)


def desktop_functions(desktops: AnyDesktop | Mapping[str, AnyDesktop]) -> list[Function]:
    """The functions for desktops' actions.

    Each desktop is a function under its name, with the argument `action` and the arguments of that action
    (`deskhand.providers.action_tools`). A desktop that is given without a name is called `computer`, and each action is also a
    (`left_mouse_click`...). The action `elements` reads what applications say that they show, in pixels of the model's picture
    (`deskhand.providers.element_tools`); pointer actions take a name of it as `element`. With a `ModelSession` that has an
    `elements_budget`, the result of every action has what it changed of that as its `text`.
    """
    if isinstance(desktops, Mapping):
        return [_Computer(name, AsyncModelSession.of(desktop)) for name, desktop in desktops.items()]
    model_session = AsyncModelSession.of(desktops)
    return [
        _Computer("computer", model_session),
        *(_Computer(name, model_session, name) for name in (*ACTIONS, ELEMENTS)),
    ]


def functions_of(functions: Functions) -> list[Function]:
    """Convert the `functions` argument into a list of functions."""
    if isinstance(functions, Mapping):
        return [Function(call, name) for name, call in functions.items()]
    several = expect_several("Executor: functions", functions)
    return [given if isinstance(given, Function) else Function(given) for given in several]


def _is_coroutine(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def _signature(call: Callable[..., Any], *, skip: bool) -> inspect.Signature | None:
    try:
        found = inspect.signature(call)
    except (ValueError, TypeError):
        # Some functions that are written in C have no signature.
        return None
    return found.replace(parameters=list(found.parameters.values())[1:]) if skip else found


def _in_thread(function: Callable[[], _T]) -> Coroutine[Any, Any, _T]:
    """Run code in a daemon thread: neither a timeout nor the end of the program waits for it."""

    async def wait() -> _T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[_T] | BaseException] = loop.create_future()
        context = contextvars.copy_context()

        def tell(outcome: tuple[_T] | BaseException) -> None:
            if not future.done():
                future.set_result(outcome)

        def work() -> None:
            outcome: tuple[_T] | BaseException
            try:
                outcome = (context.run(function),)
            except BaseException as error:  # noqa: BLE001 # raised again in `wait`
                outcome = error
            try:
                loop.call_soon_threadsafe(tell, outcome)
            except RuntimeError:
                # The loop was closed, so `wait` is gone.
                return

        threading.Thread(target=work, name="deskhand-function", daemon=True).start()
        outcome = await future
        if isinstance(outcome, tuple):
            return outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        # A function that ends its thread (SystemExit) must not end this one.
        raise RuntimeError(f"it ended with {outcome!r}") from outcome

    return wait()
