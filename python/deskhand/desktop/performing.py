"""Carrying out actions: check and translate first, then send, wait and observe.

This module owns the order of these steps. It takes turns at the desktop's core. It has no gate and makes no event by hand;
`sending` owns how input is sent, `pasting` what is pasted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.events import Answer, ButtonDown, ButtonUp, PointerMove, Step
from deskhand._core.geometry import Point, Rect
from deskhand._core.observation import Elapsed, Observation
from deskhand._core.redaction import Secret, conceal
from deskhand._core.settle import Reason, Settle, SettleResult
from deskhand._native import Interrupted
from deskhand.actions import (
    CursorPosition,
    Drag,
    KeyHold,
    KeyPress,
    LeftMouseDown,
    LeftMouseUp,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    TakeScreenshot,
    Type,
    Wait,
    Zoom,
    action_of,
    at_points,
    elements_of,
)
from deskhand.desktop.pasting import Paster
from deskhand.desktop.performed_elements import aim, read_elements, rest
from deskhand.desktop.sending import Sender
from deskhand.desktop.translate import translate
from deskhand.desktop.watcher import GRACE
from deskhand.errors import ActionError, DeskhandError, ServerSilent, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.formats import Format
    from deskhand._core.sizes import PictureSize
    from deskhand.actions import Action, CarriesAction
    from deskhand.desktop.connection import Core

# Actions after which the next one of the same call need not wait for the screen: they are parts of a gesture, or do nothing.
_NO_WAIT_AFTER = (
    CursorPosition, LeftMouseDown, LeftMouseUp, MouseDown, MouseUp, Move,
    PressKeys, ReleaseKeys, TakeScreenshot, Wait, Zoom,
)  # fmt: skip
# Actions whose input goes to the window with the focus; all other input goes to the one under the pointer.
_TO_FOCUS = (KeyHold, KeyPress, PressKeys, ReleaseKeys, Type)
_UNFINISHED = (Reason.WINDOW_BUSY, Reason.STILL_CHANGING, Reason.SERVER_SILENT)

UNTIL_TIMEOUT = 30.0
"""Seconds that a condition is waited for unless the caller says otherwise; see `deskhand.desktop.until`."""


class Performance:
    """One `Desktop.perform`, from its actions to the observation.

    Attributes:
        actions: What it does.
        elements: Whether the observation has the elements too.
        before: The screen's generation before it, when it has been carried out.
    """

    __slots__ = (
        "_aimed",
        "_backend",
        "_clock",
        "_core",
        "_drops",
        "_format",
        "_may_change",
        "_overtook",
        "_paster",
        "_pointer_moved",
        "_pressed",
        "_quality",
        "_sender",
        "_settings",
        "_since",
        "_size",
        "_watch",
        "actions",
        "before",
        "elements",
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        actions: Sequence[Action],
        settings: Settle | None,
        *,
        size: PictureSize | None,
        format: Format,
        quality: int,
        elements: bool,
        since: int | None = None,
    ) -> None:
        """See `Desktop.perform`; `settings` None does not wait. Changes are counted from the generation `since`, if given."""
        self._core = core
        self._backend = core.backend
        self._watch = core.watch
        self._pressed = core.pressed_keys
        self._clock = core.clock
        self.actions: Sequence[Action] = actions
        self._settings = settings
        self._size = size
        self._format = format
        self._quality = quality
        self.elements: bool = elements
        self._since = since
        self.before: int = 0
        self._sender = Sender(core, settings)
        self._paster = Paster(core, self._sender, settings)
        self._pointer_moved = False
        # Whether an action was sent though the screen had not settled after the one before.
        self._overtook = False
        # Whether something was found after one before the last that may go on by itself.
        self._may_change = False
        # Which actions release a button that was moved while it was pressed.
        self._drops: set[int] = set()
        # Which actions are done where elements are by then, or from there, and whether a button is held then.
        self._aimed: dict[int, bool] = {}

    def again(self) -> Performance:
        """A look at the same, without the actions. What changed is counted from before them."""
        shown_last = [action for action in self.actions if isinstance(action, Zoom)][-1:]
        return Performance(
            self._core,
            shown_last,
            self._settings,
            size=self._size,
            format=self._format,
            quality=self._quality,
            elements=self.elements,
            since=self.before,
        )

    def carry_out(self) -> Observation:
        """Do it.

        Raises:
            DeskhandError: See `Desktop.perform`. Whatever was pressed has been released.
        """
        secret = any(isinstance(action, Type) and isinstance(action.text, Secret) for action in self.actions)
        return self._perform_secretly() if secret else self._perform()

    def _perform(self) -> Observation:
        core = self._core
        with core.turn(self._sender.limit):
            planned = self._plan(self._sender.limit)
            core.acting = True
            try:
                seen = self._act_and_observe(planned)
            except BaseException as error:
                core.release_after(error)
                raised = error
                if self._paster.lost:
                    error.add_note(f"not on the clipboard any more: {', '.join(self._paster.lost)}")
                if isinstance(error, Interrupted):
                    try:
                        core.refuse_the_rest()
                    except DeskhandError as refused:
                        raised = refused
                index = self._sender.index
                if isinstance(raised, ServerSilent) and self.actions:
                    index = index or 0
                if isinstance(raised, DeskhandError) and index is not None:
                    raised.note_progress(index, self.actions[index].type, index)
                if raised is not error:
                    raise raised from None
                raise
            else:
                core.acting = False
                return seen

    def _perform_secretly(self) -> Observation:
        try:
            return self._perform()
        except BaseException as error:  # noqa: BLE001 # raised again below
            concealed = conceal(error)
        # Outside of the handler, so that nothing raised inside, nor a frame of it, stays attached to the caller's error.
        raise concealed

    def _act_and_observe(self, planned: Sequence[tuple[Action, Sequence[Step]]]) -> Observation:
        started = self._clock()
        self._pointer_moved = False
        self._watch.catch_up(self._sender.limit)
        self._notice_pointer()
        pasted = False
        for index, (action, events) in enumerate(planned):
            self._sender.begin(index)
            if index in self._aimed:
                # The place of the one that was planned is not its own.
                given, dragging = self.actions[index], self._aimed[index]
                action, events = aim(self._core, given, self._settings, self._sender.limit, dragging=dragging)  # noqa: PLW2901
            pasted |= self._send_action(action, events)
            if index < len(planned) - 1 and (index in self._drops or not isinstance(action, _NO_WAIT_AFTER)):
                result = self._settle(action)
                self._overtook |= result.reason in _UNFINISHED
                self._may_change |= result.may_change
                self._sender.note_answer(action, events, result)
                self._paster.end(result)
                if not self._backend.lag.frame:
                    self._backend.allow(self._sender.limit)
                    self._backend.look()
                # Where a look would take a round trip, the other side reports the pointer by itself.
                self._notice_pointer()
        sent = self._clock()
        result = self._settle(planned[-1][0] if planned else None, file=self._format == "png")
        if planned:
            self._sender.note_answer(*planned[-1], result)
        result = self._paster.end(result)
        settled = self._clock()
        elements = None
        if self.elements:
            elements, result = read_elements(self._core, result)
        try:
            left = None if self._sender.limit is None else max(0.0, sent + self._sender.limit - settled)
            self._backend.allow(None if left is None else max(left, GRACE))
            self._backend.look(left)
        except ServerSilent:
            result = replace(result, settled=False, reason=Reason.SERVER_SILENT)
        self._notice_pointer()
        changes = self._watch.changes(self._since)
        self.before = self._watch.before
        self._sender.refuse_blocked(changes)
        captured = self._clock()
        reason = Reason.QUIET if result.reason is Reason.UNCHANGED and self._sender.stirred else result.reason
        zoom = next((action.region for action, _ in reversed(planned) if isinstance(action, Zoom)), None)
        shot = self._watch.picture(self._size, zoom, cursor=True, format=self._format, quality=self._quality)
        encoded = self._clock()
        busy: tuple[Rect, ...] = ()
        if result.busy:
            # A region is wider than what changed in it, and the screen may have become smaller since.
            on_screen = Rect(0, 0, *shot.viewport.screen)
            busy = tuple(part for region in result.busy if not (part := region.intersect(on_screen)).empty)
        reaction = max(0.0, result.first_change - sent) if result.first_change is not None else 0.0
        return Observation(
            data=shot.data,
            format=shot.format,
            viewport=shot.viewport,
            cursor=shot.cursor,
            generation=shot.generation,
            pointer_shape=shot.pointer_shape,
            settled=result.settled,
            reason=reason,
            rects=tuple(rect for rect in changes if not any(rect.within(region) for region in busy)),
            busy=busy,
            elapsed=Elapsed(
                input=sent - started,
                reaction=reaction,
                settle=settled - sent - reaction,
                capture=captured - settled,
                encode=encoded - captured,
            ),
            pasted=pasted,
            clipboard_lost=tuple(self._paster.lost),
            pointer_moved=self._pointer_moved,
            unanswered=self._sender.unanswered or self._overtook,
            may_change=self._may_change or result.may_change,
            elements=elements,
            notes=self._core.control.take_notes(),
        )

    def _send_action(self, action: Action, events: Sequence[Step]) -> bool:
        """Send one action, by keys or otherwise; returns whether a text was pasted."""
        if isinstance(action, Type) and action.paste and action.text:
            self._paster.paste(action.text)
            return True
        pointer = self._backend.screen.pointer
        rest(self._core, action, events)
        pasted = False
        if isinstance(action, _TO_FOCUS) and (missing := self._paster.missing_here(action, events)):
            self._paster.type_around(action, missing)
            pasted = True
            self._sender.refuse_unfocused()
        elif isinstance(action, Type):
            self._sender.type(events)
        else:
            self._sender.send(events)
        self._core.clicks.note(action, events, pointer, self._clock())
        return pasted

    def _settle(self, after: Action | None, *, file: bool = False) -> SettleResult:
        settings = self._settings
        if self._sender.held_up and settings is not None:
            # The window has had all of that time before its keys were sent.
            settings = replace(settings, timeout=0.0)
        at_pointer = after is not None and not isinstance(after, _TO_FOCUS)
        return self._watch.settle(settings, at_pointer=at_pointer, file=file, kind=_kind(after))

    def _plan(self, limit: float | None) -> list[tuple[Action, Sequence[Step]]]:
        """Translate everything before anything is sent; asking for the pointer's place takes `limit` seconds at most."""
        planned: list[tuple[Action, Sequence[Step]]] = []
        pointer: Point | None = None
        held = {press for press in self._pressed.pressed if isinstance(press, ButtonDown)}
        dragged = bool(held)
        # Whether the pointer is at an element then, wherever that is.
        elsewhere = False
        size = self._sender.planned_size = self._core.size
        for index, given in enumerate(self.actions):
            self._watch.check_stop()
            action = given
            try:
                if (held or isinstance(action, Drag)) and pointer is None:
                    self._backend.look(limit)
                    pointer = Point(*self._backend.screen.pointer)
                action = self._placed(index, action, holding=bool(held), elsewhere=elsewhere)
                events = translate(action, size=size, pointer=pointer or Point(0, 0), dragging=bool(held))
                if isinstance(action, Type) and not action.paste and (missing := self._backend.untypable(events)):
                    action = self._paster.instead_of_keys(action, missing)
                if events and not isinstance(action, Wait):
                    self._core.refuse_input(action.type)
            except DeskhandError as error:
                raise error.note_progress(index, given.type, 0) from None
            for event in events:
                match event:
                    case PointerMove(x=x, y=y):
                        pointer = Point(x, y)
                        elsewhere = bool(elements_of(given))
                        dragged |= bool(held)
                    case ButtonDown():
                        held.add(event)
                    case ButtonUp(button=button):
                        held.discard(ButtonDown(button))
                        if dragged:
                            self._drops.add(index)
                        dragged &= bool(held)
            planned.append((action, events))
        # After the last input, the caller's way of waiting applies.
        last = next((index for index in reversed(range(len(planned))) if planned[index][1]), None)
        if last is not None and isinstance(planned[last][1][-1], Answer):
            planned[last] = planned[last][0], planned[last][1][:-1]
        return planned

    def _placed(self, index: int, action: Action, *, holding: bool, elsewhere: bool) -> Action:
        """An action with places, to be checked; those of elements are found when its turn comes: they may move until then."""
        refs = elements_of(action)
        # What is dragged from an element's place waits for that, too.
        if not refs and not (elsewhere and (holding or isinstance(action, Drag))):
            return action
        for ref in refs:
            self._core.elements.check(ref)
        self._core.refuse_input(action.type)
        self._aimed[index] = holding
        return at_points(action, [Point(0, 0)] * len(refs))

    def _notice_pointer(self) -> None:
        """Note whether another program has moved the pointer since the last input, as far as the backend knows."""
        pointer = self._backend.screen.pointer
        if self._core.left_pointer not in {None, pointer}:
            self._pointer_moved = True
            self._core.left_pointer = pointer


def plain_actions(given: Sequence[Action | CarriesAction]) -> tuple[Action, ...]:
    """The actions themselves; those of tool calls too."""
    plain = []
    for index, value in enumerate(given):
        try:
            plain.append(action_of(value))
        except DeskhandError as error:
            raise error.note_progress(index, getattr(value, "type", "?"), 0) from None
    return tuple(plain)


def settings_of(settle: Settle | bool) -> Settle | None:  # noqa: FBT001 # the public parameter has these types
    """How to wait, None for not at all.

    Raises:
        ActionError: It is neither a `Settle` nor a bool.
    """
    if settle is True:
        return Settle()
    if settle is False:
        return None
    if isinstance(settle, Settle):
        return settle
    raise ActionError(f"settle must be a Settle, True or False, not {shown(settle)}")


def _kind(action: Action | None) -> str | None:
    """What a key has in common with others whose answers may be alike: all that stand for a character, or the same one."""
    if isinstance(action, Type):
        return "character" if isinstance(action.text, str) and len(action.text) == 1 else None
    if isinstance(action, KeyPress) and action.repeat == 1:
        return "character" if len(action.keys) == 1 and len(action.keys[0]) == 1 else "+".join(action.keys)
    return None
