"""A model's session on a desktop: carries out providers' calls and returns their results.

This module owns the way from a `ProviderCall` to a `Result` for all providers, and which picture the model's next points refer
to. It has no provider's payload.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar, Unpack

from deskhand._core.arguments import expect
from deskhand._core.geometry import Viewport
from deskhand._core.sizes import Fit, picture_size
from deskhand.actions import LOOKING, Action, CursorPosition, Zoom
from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop import operations
from deskhand.desktop.access import await_help, core_of, is_judged, review
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.operations import Operation, calling
from deskhand.errors import (
    ActionError,
    Closed,
    DeskhandError,
    DesktopHeld,
    DesktopLost,
    PolicyDenied,
    Reconnected,
    UnsupportedAction,
)
from deskhand.policy.guard import Guard
from deskhand.policy.rules import NoPolicyWarning
from deskhand.providers.browsing import browse, destination
from deskhand.providers.element_tools import ELEMENTS, decode_elements, elements_answer
from deskhand.providers.groups import counted_from, groups_of
from deskhand.providers.hand_over_tool import HAND_OVER, answer, decode_hand_over
from deskhand.providers.payload import expect_object
from deskhand.providers.values import Browse, HandOver, Picture, ProviderCall, ReadElements, Result, StartProgram, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from deskhand._core.elements import Elements
    from deskhand._core.geometry import Point
    from deskhand._core.observation import Observation, Screenshot
    from deskhand._core.settle import Settle
    from deskhand._core.sizes import PictureSize
    from deskhand.desktop.operations import SafetyCheck
    from deskhand.policy.rules import Ask, Policy
    from deskhand.providers.hand_over_tool import RequestState

_T = TypeVar("_T")
# After these a model gets no elements: it did nothing, or asked for them.
_ONLY_LOOKS = (*LOOKING, ReadElements)

_NO_POLICY = (
    "no policy judges what the model does on this desktop: pass policy= or ask= here, to deskhand.launch or to "
    "deskhand.connect, or filter deskhand.NoPolicyWarning if that is intended"
)


class SessionOptions(TypedDict, total=False):
    """The options of `ModelSession` that functions with a desktop also take; ignored if they are given a session."""

    size: PictureSize | None
    settle: Settle | bool
    policy: Policy | None
    ask: Ask | None
    elements_budget: int | None


class NamedOptions(SessionOptions, total=False):
    """The same, and the name of the provider."""

    provider: str


def with_usual(options: SessionOptions, **usual: Unpack[NamedOptions]) -> NamedOptions:
    """The options, with defaults for missing ones."""
    return {**usual, **options}


class ModelSession:
    """A desktop as one conversation with a model uses it.

    Attributes:
        desktop: The desktop for this conversation: with the policy, if there is one. The caller closes the desktop.
        provider: The provider of the calls, for the policy and its log.
        size: The size of the model's pictures; see `Desktop.perform`.
        elements_budget: About how many tokens of elements go with the answer to each call that acts; None for none.
    """

    def __init__(
        self,
        desktop: Desktop,
        *,
        size: PictureSize | None = None,
        settle: Settle | bool = True,
        policy: Policy | None = None,
        ask: Ask | None = None,
        elements_budget: int | None = None,
        provider: str = "",
    ) -> None:
        """Begin a session.

        Args:
            desktop: The desktop. Interceptors that it already has, such as a policy, stay.
            size: The size of the model's pictures: keep it the same for a whole conversation.
            settle: How to wait for the screen after each call.
            policy: Judges the calls, in addition to the policies that the desktop has. Without any policy and without `ask`,
                everything is done except what a provider wants confirmed, with a `NoPolicyWarning`.
            ask: Called where the policy says so, and where a provider wants a confirmation; see `Guard`.
            elements_budget: After each call that acts, tell the model which elements have changed (at first all of them), in
                about this many tokens, 1...100,000. A provider whose answers have no place for a text refuses it. A call is
                refused where the elements cannot be read or a policy forbids that.
            provider: The provider of the calls.

        Raises:
            ActionError: The budget is no number of tokens.
        """
        expect("desktop", desktop, Desktop)
        if policy is not None or ask is not None:
            desktop = desktop.also(Guard(policy=policy, ask=ask))
        elif not is_judged(desktop):
            warnings.warn(_NO_POLICY, NoPolicyWarning, stacklevel=2)
        self.desktop = desktop
        self.size = size
        self.provider = provider
        self.elements_budget = elements_budget
        self._telling = None if elements_budget is None else ReadElements(changes=True, budget=elements_budget)
        self._pointing: Callable[[Viewport], Viewport] = lambda viewport: viewport
        self._settle = settle
        self._seen: Viewport | None = None
        self._read: tuple[Viewport, Elements] | None = None

    @classmethod
    def of(cls, desktop: Desktop | ModelSession, **options: Unpack[NamedOptions]) -> ModelSession:
        """Return the session itself, or make one on a desktop."""
        return desktop if isinstance(desktop, ModelSession) else cls(desktop, **options)

    @property
    def viewport(self) -> Viewport:
        """The viewport of the model's last picture; before the first, of the one that it would get now."""
        if self._seen is not None:
            return self._seen
        return Viewport(self.desktop.size, picture_size(self.size, self.desktop.size))

    def look(self) -> Picture:
        """The screen as the model sees it; its next points refer to this picture.

        Raises:
            PolicyDenied: Looking is not allowed.
        """
        with calling(operations.CallContext(self.provider)):
            return self._shown(self.desktop.screenshot(self.size))

    def carry_out(self, call: ProviderCall, *, before: int = 0) -> Result:
        """Carry out a call.

        Args:
            call: The call, decoded with this session's `viewport`.
            before: How many of its model's actions were done before it; an error counts them.

        Returns:
            The result. If a step cannot be done, is not allowed or fails, the reason is in `error`; the steps before it are
            done.

        Raises:
            DesktopLost: The desktop is gone.
            BackendError: The desktop was closed.
        """
        judged = self._judged(call)
        picture: Picture | None = None
        seen: Observation | None = None
        cursor: Point | None = None
        text: str | None = None
        notes: tuple[str, ...] = ()
        telling = None if all(isinstance(step, _ONLY_LOOKS) for step in call.steps) else self._telling
        try:
            acknowledged = review(self.desktop, judged) if call.safety else ()
            for done, run in groups_of(call, before):
                if isinstance(run, Browse):
                    self._browse(run, judged)
                    picture = seen = None
                    continue
                if isinstance(run, StartProgram):
                    with calling(judged):
                        self.desktop.start(run.command)
                    picture = seen = None
                    continue
                if isinstance(run, ReadElements):
                    text = self._read_elements(run, judged)
                    continue
                if isinstance(run, HandOver):
                    state = self._ask_for_help(run, judged)
                    seen = self._perform((), judged, done, elements=telling is not None)
                    notes += answer(run, state, self.desktop.control.holder, seen.notes)
                else:
                    seen = self._perform(run, judged, done, elements=telling is not None)
                    notes += seen.notes
                picture = self._shown(seen)
                if isinstance(run, tuple) and isinstance(run[-1], CursorPosition):
                    cursor = self.viewport.to_model(self.desktop.pointer)
            if not _only_reads(call):
                picture = picture or self.look()
            if telling is not None and text is None:
                text = self._read_elements(telling, judged, None if seen is None else seen.elements)
            if notes:
                text = "\n".join((*notes, *([] if text is None else [text])))
            return Result(
                call=call, picture=picture, cursor=cursor, text=text, acknowledged=acknowledged, observation=seen
            )
        except (DesktopLost, Closed):
            raise
        except DeskhandError as error:
            return self.refused(call, error, acknowledged=judged.acknowledged)

    def read_elements(self, arguments: object, *, id: str | None = None) -> Result:
        """Answer a call of the tool `elements` with a text, also if it cannot be read, is not allowed or fails.

        Args:
            arguments: The call's arguments; see `element_tools.elements_schema`.
            id: The call's id.

        Raises:
            DesktopLost: The desktop is gone.
            BackendError: The desktop was closed.
        """
        return self._answered(ELEMENTS, decode_elements, arguments, id)

    def hand_over(self, arguments: object, *, id: str | None = None) -> Result:
        """Answer a call of the tool `hand_over` with what a person did, and a picture; with a text where that cannot be.

        Args:
            arguments: The call's arguments; see `hand_over_tool.hand_over_schema`.
            id: The call's id.

        Raises:
            DesktopLost: The desktop is gone.
            BackendError: The desktop was closed.
        """
        return self._answered(HAND_OVER, decode_hand_over, arguments, id)

    def point_on(self, grid: Callable[[Viewport], Viewport]) -> None:
        """Give the places of elements on the grid of the model's points.

        Args:
            grid: Turns the viewport of the picture into that of the model's points.
        """
        self._pointing = grid

    def refuse_words(self, where: str) -> None:
        """Refuse a session with an `elements_budget`, for answers that have no place for a text.

        Raises:
            UnsupportedAction: The session has one.
        """
        if self.elements_budget is not None:
            raise UnsupportedAction(where, "elements_budget", "its answers have no place for a text")

    def refused(
        self, call: ProviderCall, error: DeskhandError, *, acknowledged: tuple[SafetyCheck, ...] = ()
    ) -> Result:
        """The answer to a call that cannot be read or carried out: the reason, and the screen as it is now.

        Raises:
            DesktopLost: The desktop is gone.
            BackendError: The desktop was closed.
        """
        try:
            # A call that only reads is answered with text, and the model keeps pointing into its last picture.
            picture = None if _only_reads(call) else self.look()
        except (DesktopHeld, PolicyDenied, Reconnected):
            # Looking is not allowed, a person has control privately, or the connection has just been made again: only the
            # reason matters.
            picture = None
        denied = isinstance(error, PolicyDenied)
        return Result(call=call, picture=picture, error=str(error), denied=denied, acknowledged=acknowledged)

    def unreadable(self, error: DeskhandError, *, id: str | None = None, name: str | None = None) -> Result:
        """Like `refused`, for a payload of which only the id and name could be read."""
        return self.refused(ProviderCall(steps=(), viewport=self.viewport, id=id, name=name), error)

    def _answered(
        self, name: str, decode: Callable[[Mapping[str, Any]], Step], arguments: object, id: str | None
    ) -> Result:
        try:
            steps = (decode(expect_object("a call's arguments", arguments)),)
        except ActionError as error:
            return Result(call=ProviderCall(steps=(), viewport=self.viewport, id=id, name=name), error=str(error))
        return self.carry_out(ProviderCall(steps=steps, viewport=self.viewport, id=id, name=name))

    def _judged(self, call: ProviderCall) -> operations.CallContext:
        """The call in the form for a policy and its log."""
        return operations.CallContext(self.provider, call.id or "", safety_checks=call.safety)

    def _browse(self, request: Browse, judged: operations.CallContext) -> None:
        with calling(judged):
            self.desktop.operate(Operation("navigate", destination(request)), lambda: browse(self.desktop, request))

    def _ask_for_help(self, request: HandOver, judged: operations.CallContext) -> RequestState:
        """Ask, and wait."""
        if core_of(self.desktop).control.notes:
            # A person may just have answered the last request, and would be asked the same again.
            return "unread"
        with calling(judged):
            asked = self.desktop.hand_over(request.reason)
            return "ended" if await_help(self.desktop, asked, request.wait) else "open"

    def _read_elements(
        self, request: ReadElements, judged: operations.CallContext, elements: Elements | None = None
    ) -> str:
        if elements is None:
            with calling(judged):
                elements = self.desktop.elements(ocr=request.ocr)
        viewport = self._pointing(self.viewport)
        # In another picture, every point has changed.
        before = self._read[1] if self._read is not None and self._read[0] == viewport else None
        self._read = viewport, elements
        return elements_answer(request, elements, viewport, before)

    def _perform(
        self, actions: tuple[Action, ...], judged: operations.CallContext, done: int, *, elements: bool
    ) -> Observation:
        zoomed = any(isinstance(action, Zoom) for action in actions)
        # A zoomed picture may be as sharp as the screen. A model's limits hold for it too, but not a size that was chosen for
        # the whole screen.
        size = self.size if not zoomed or isinstance(self.size, Fit | str) else None
        with calling(judged), counted_from(done):
            return self.desktop.perform(*actions, settle=self._settle, size=size, elements=elements)

    def _shown(self, seen: Screenshot) -> Picture:
        # A picture of a part of the screen is not pointed into.
        if seen.viewport.region is None:
            self._seen = seen.viewport
        return Picture.of(seen)


class AsyncModelSession:
    """A `ModelSession` with coroutines, which can be cancelled like those of an `AsyncDesktop`.

    Attributes:
        session: The session itself.
    """

    def __init__(self, desktop: Desktop | AsyncDesktop | ModelSession, **options: Unpack[NamedOptions]) -> None:
        """Like `ModelSession`, for either kind of desktop."""
        self.session: ModelSession = ModelSession.of(
            desktop.desktop if isinstance(desktop, AsyncDesktop) else desktop, **options
        )
        if isinstance(desktop, AsyncDesktop) and desktop.desktop is self.session.desktop:
            self._there = desktop
        else:
            self._there = AsyncDesktop(self.session.desktop)

    @classmethod
    def of(cls, desktop: AnyDesktop, **options: Unpack[NamedOptions]) -> AsyncModelSession:
        """Return the session itself, or make one on a desktop."""
        return desktop if isinstance(desktop, AsyncModelSession) else cls(desktop, **options)

    @property
    def viewport(self) -> Viewport:
        """Like `ModelSession.viewport`."""
        return self.session.viewport

    async def look(self) -> Picture:
        """Like `ModelSession.look`."""
        return await self.run(ModelSession.look)

    async def carry_out(self, call: ProviderCall) -> Result:
        """Like `ModelSession.carry_out`."""
        return await self.run(lambda model_session: model_session.carry_out(call))

    async def run(self, function: Callable[[ModelSession], _T]) -> _T:
        """Run code with the session in the desktop's thread; cancelling stops it at its next safe point."""
        return await self._there.run(lambda _: function(self.session))


AnyDesktop: TypeAlias = Desktop | AsyncDesktop | ModelSession | AsyncModelSession
"""Any object that a model's calls can be carried out on."""

DESKTOPS = (Desktop, AsyncDesktop, ModelSession, AsyncModelSession)


def _only_reads(call: ProviderCall) -> bool:
    return bool(call.steps) and all(isinstance(step, ReadElements) for step in call.steps)
