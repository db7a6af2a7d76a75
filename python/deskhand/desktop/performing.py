"""Carrying out actions: checked and translated first, then sent, waited for and observed.

This module owns the order of these steps. It takes its turns at the desktop's core. It has no gate and no event made by hand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from deskhand._core.events import Answer, ButtonDown, ButtonUp, Event, KeyDown, Pause, PointerMove, Step
from deskhand._core.geometry import Point, Rect, check_point
from deskhand._core.keys import char_keysym
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
)
from deskhand.desktop.translate import SecretEvents, translate
from deskhand.desktop.watcher import GRACE
from deskhand.errors import ActionError, DeskhandError, InputBlocked, PolicyDenied, ServerSilent, Untypable, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.formats import Format
    from deskhand._core.sizes import PictureSize
    from deskhand.actions import Action, CarriesAction
    from deskhand.backends.protocols import Missed
    from deskhand.desktop.connection import Core

__all__ = ["Performance", "plain_actions", "settings_of"]

# Actions after which the next one of the same call need not wait for the screen: they are parts of a gesture, or do nothing.
_NO_WAIT_AFTER = (
    CursorPosition,
    LeftMouseDown,
    LeftMouseUp,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    TakeScreenshot,
    Wait,
    Zoom,
)
# Actions whose input goes to the window with the focus; that of all others goes to the one under the pointer.
_TO_FOCUS = (KeyHold, KeyPress, PressKeys, ReleaseKeys, Type)
# What a hover or a part of a drag is given to be taken: toolkits hand motion on once a frame, and draw within one or two.
_ANSWER = Settle(quiet=0.03, reaction=0.05, timeout=0.25)
# A part of a text is given so long to appear.
_ECHO = 0.5
# For so many seconds of a call, in all, an application that is still at work then is waited for.
_PATIENCE = 3.0
# Longer pauses are waited for here, where they can be interrupted; shorter ones are paced by the backend.
_LONGEST_BACKEND_PAUSE = 0.05
_PASTE_LIMIT = 5.0
# For so long a text that was taken is waited for to appear.
_PASTE_SHOWN = 1.0
_CLIPBOARD_LIMIT = 5.0
# What editors and terminals alike take. Some paste the primary selection with it, as xterm does.
_PRIMARY_CHORD = "shift+Insert"
# Terminals have their own chord for it, because Ctrl+V is a character to them.
_PASTE_CHORDS = {"xterm": _PRIMARY_CHORD, "uxterm": _PRIMARY_CHORD}
_TERMINALS = ("terminal", "kitty", "alacritty", "konsole", "terminator")
# No key brings these a character beyond U+FFFF. Java cuts keysyms to 16 bits: AWT by the class of its window with the keyboard,
# JavaFX by that of its application. Writer puts what comes through an input method before letters of its own buffer.
_NARROW = ("focusproxy", "java", "libreoffice-writer", "libreoffice-web", "libreoffice-global")
# The keysyms of characters beyond U+FFFF; those of keys that are no characters, such as XF86AudioPlay, are above them all.
_WIDE_KEYSYMS = range(0x0101_0000, 0x0111_0000)
# Windows of WINE's: it knows only the keys of its own layouts, and some that carry characters up to U+FFFF.
_WINE = ".exe"
_CONTROLS = re.compile("([\\x00-\\x1f]+)")


class Performance:
    """One `Desktop.perform`, from its actions to the observation."""

    __slots__ = (
        "_actions",
        "_answered",
        "_backend",
        "_clock",
        "_core",
        "_drops",
        "_format",
        "_held_up",
        "_index",
        "_limit",
        "_lost",
        "_missed",
        "_patience",
        "_planned_size",
        "_pointer_moved",
        "_pressed",
        "_quality",
        "_settings",
        "_size",
        "_stirred",
        "_unanswered",
        "_watch",
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
    ) -> None:
        """See `Desktop.perform`; `settings` None does not wait."""
        self._core = core
        self._backend = core.backend
        self._watch = core.watch
        self._pressed = core.pressed_keys
        self._clock = core.clock
        self._actions = actions
        self._settings = settings
        # For how long the other side is waited for at a time.
        self._limit = None if settings is None else settings.timeout
        self._size = size
        self._format = format
        self._quality = quality
        # Which action is under way; None before the first.
        self._index: int | None = None
        self._pointer_moved = False
        # Which actions release a button that was moved while it was pressed.
        self._drops: set[int] = set()
        # Requests for the clipboard that were answered when a text was taken from it.
        self._answered = 0
        # What of the old clipboard cannot be given back.
        self._lost: list[str] = []
        self._patience = _PATIENCE
        self._unanswered = False
        # Whether the screen has answered a part of the action under way.
        self._stirred = False
        # Whether the window had read nothing for as long as that, before it was sent the keys of the action under way.
        self._held_up = False
        # What did not reach the window that it was for, and the action that sent it.
        self._missed: tuple[Missed, int] | None = None
        # The size of the screen that the points were checked against.
        self._planned_size = core.size

    def carry_out(self) -> Observation:
        """Do it.

        Raises:
            DeskhandError: See `Desktop.perform`. Whatever was pressed has been released.
        """
        secret = any(isinstance(action, Type) and isinstance(action.text, Secret) for action in self._actions)
        return self._perform_secretly() if secret else self._perform()

    def _perform(self) -> Observation:
        core = self._core
        with core.turn(self._limit):
            planned = self._plan(self._limit)
            core.acting = True
            try:
                seen = self._act_and_observe(planned)
            except BaseException as error:
                core.release_after(error)
                told = error
                if self._lost:
                    error.add_note(f"not on the clipboard any more: {', '.join(self._lost)}")
                if isinstance(error, Interrupted) and core.stopped is not None:
                    told = PolicyDenied("the rest of this call", core.stopped)
                index = self._index
                if isinstance(told, ServerSilent) and self._actions:
                    index = index or 0
                if isinstance(told, DeskhandError) and index is not None:
                    told.note_progress(index, self._actions[index].type, index)
                if told is not error:
                    raise told from None
                raise
            else:
                core.acting = False
                return seen

    def _perform_secretly(self) -> Observation:
        try:
            return self._perform()
        except BaseException as error:  # noqa: BLE001 # raised again below
            told = conceal(error)
        # Outside of the handler: nothing of what was raised inside, nor a frame of it, stays attached to what the caller gets.
        raise told

    def _act_and_observe(self, planned: Sequence[tuple[Action, Sequence[Step]]]) -> Observation:
        started = self._clock()
        self._pointer_moved = False
        self._watch.catch_up(self._limit)
        self._notice_pointer()
        pasted = False
        for index, (action, events) in enumerate(planned):
            self._index, self._stirred, self._held_up = index, False, False
            pasted |= self._send_action(action, events)
            if index < len(planned) - 1 and (index in self._drops or not isinstance(action, _NO_WAIT_AFTER)):
                result = self._settle(at_pointer=not isinstance(action, _TO_FOCUS))
                self._note_answer(action, events, result)
                self._end_paste(result)
                if not self._backend.lag.frame:
                    self._backend.allow(self._limit)
                    self._backend.look()
                # Where to look would take a round trip, the other side tells of the pointer by itself.
                self._notice_pointer()
        sent = self._clock()
        result = self._settle(at_pointer=bool(planned) and not isinstance(planned[-1][0], _TO_FOCUS))
        if planned:
            self._note_answer(*planned[-1], result)
        result = self._end_paste(result)
        settled = self._clock()
        try:
            left = None if self._limit is None else max(0.0, sent + self._limit - settled)
            self._backend.allow(None if left is None else max(left, GRACE))
            self._backend.look(left)
        except ServerSilent:
            result = replace(result, settled=False, reason=Reason.SERVER_SILENT)
        self._notice_pointer()
        changes = self._watch.changes()
        self._refuse_blocked(changes)
        captured = self._clock()
        reason = Reason.QUIET if result.reason is Reason.UNCHANGED and self._stirred else result.reason
        zooms = [action.region for action, _ in planned if isinstance(action, Zoom)]
        zoom = zooms[-1] if zooms else None
        shot = self._watch.picture(self._size, zoom, cursor=True, format=self._format, quality=self._quality)
        encoded = self._clock()
        # A region is wider than what was seen to change in it, and the screen may have become smaller since.
        on_screen = Rect(0, 0, *shot.viewport.screen)
        busy = tuple(part for region in result.busy if not (part := region.intersect(on_screen)).empty)
        reaction = max(0.0, result.first_change - sent) if result.first_change is not None else 0.0
        return Observation(
            data=shot.data,
            format=shot.format,
            viewport=shot.viewport,
            cursor=shot.cursor,
            generation=shot.generation,
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
            clipboard_lost=tuple(self._lost),
            pointer_moved=self._pointer_moved,
            unanswered=self._unanswered,
            may_change=result.may_change,
        )

    def _send_action(self, action: Action, events: Sequence[Step]) -> bool:
        """Send one action, by keys or otherwise; whether a text was pasted."""
        if isinstance(action, Type) and action.paste and action.text:
            self._paste(action.text)
            return True
        pointer = self._backend.screen.pointer
        clicks, now = self._core.clicks, self._clock()
        if rest := clicks.rest(action, events, pointer, now, self._backend.double_click_time):
            self._watch.pause(rest)
        pasted = False
        if isinstance(action, _TO_FOCUS) and (missing := self._missing_here(action, events)):
            self._type_around(action, missing)
            pasted = True
            self._refuse_unfocused()
        elif isinstance(action, Type):
            self._type(events)
        else:
            self._send(events)
        clicks.note(events, pointer, self._clock())
        return pasted

    def _settle(self, *, at_pointer: bool) -> SettleResult:
        settings = self._settings
        if self._held_up and settings is not None:
            # The window was given all of that time before its keys were sent.
            settings = replace(settings, timeout=0.0)
        return self._watch.settle(settings, at_pointer=at_pointer)

    def _plan(self, limit: float | None) -> list[tuple[Action, Sequence[Step]]]:
        """Translate everything before anything is sent; where the pointer is is asked for `limit` seconds at most."""
        planned: list[tuple[Action, Sequence[Step]]] = []
        pointer: Point | None = None
        held = {press for press in self._pressed.pressed if isinstance(press, ButtonDown)}
        dragged = bool(held)
        size = self._planned_size = self._core.size
        for index, given in enumerate(self._actions):
            self._watch.check_stop()
            action = given
            try:
                if (held or isinstance(action, Drag)) and pointer is None:
                    self._backend.look(limit)
                    pointer = Point(*self._backend.screen.pointer)
                events = translate(action, size=size, pointer=pointer or Point(0, 0), dragging=bool(held))
                if isinstance(action, Type) and not action.paste and (missing := self._backend.untypable(events)):
                    action = self._pasted_instead(action, missing)
                if events:
                    self._core.refuse_input(action.type)
            except DeskhandError as error:
                raise error.note_progress(index, given.type, 0) from None
            for event in events:
                match event:
                    case PointerMove(x=x, y=y):
                        pointer = Point(x, y)
                        dragged |= bool(held)
                    case ButtonDown():
                        held.add(event)
                    case ButtonUp(button=button):
                        held.discard(ButtonDown(button))
                        if dragged:
                            self._drops.add(index)
                        dragged &= bool(held)
            planned.append((action, events))
        # What is sent last is waited for as the caller wishes.
        last = next((index for index in reversed(range(len(planned))) if planned[index][1]), None)
        if last is not None and isinstance(planned[last][1][-1], Answer):
            planned[last] = planned[last][0], planned[last][1][:-1]
        return planned

    def _pasted_instead(self, action: Type, missing: set[int]) -> Type:
        if isinstance(action.text, Secret):
            # The clipboard is for every program to read: only who asks for it puts a secret there.
            raise Untypable.hidden(len(missing), f"{self._backend.name} has no key left for them; use paste=True")
        if self._backend.can_paste:
            return replace(action, paste=True)
        characters = [(at, char) for at, char in enumerate(action.text) if char_keysym(char) in missing]
        raise Untypable(
            characters, f"{self._backend.name} has no key left for them, and its clipboard cannot bring them"
        )

    def _missing_here(self, action: Action, events: Sequence[Step]) -> set[int]:
        """The keysyms among these of characters that no key brings to the application with the keyboard."""
        letters = {event.keysym for event in events if isinstance(event, KeyDown) and _is_beyond_ascii(event.keysym)}
        if not letters:
            return letters
        classes = [name.lower() for name in self._backend.focused_classes()]
        if any(name.endswith(_WINE) for name in classes):
            hint = "WINE's programs lose the keys of such characters without a word; try paste=True"
            if isinstance(events, SecretEvents):
                raise Untypable.hidden(len(letters), hint)
            raise Untypable(_named(action, letters), hint)
        return {keysym for keysym in letters if keysym in _WIDE_KEYSYMS and any(name in _NARROW for name in classes)}

    def _type_around(self, action: Action, wide: set[int]) -> None:
        """Paste what no key brings to the application with the keyboard; line ends and tabs stay keys."""
        if not isinstance(action, Type):
            raise Untypable(_named(action, wide), "no key brings them to the application with the keyboard; use Type")
        if isinstance(action.text, Secret):
            raise Untypable.hidden(len(wide), "no key brings them to the application with the keyboard; use paste=True")
        for piece in _CONTROLS.split(action.text):
            if any(char_keysym(char) in wide for char in piece):
                self._paste(piece)
                self._end_paste(self._watch.settle(self._settings))
            else:
                self._send(translate(Type(piece), size=self._core.size, pointer=Point(0, 0)))

    def _send(self, events: Sequence[Step]) -> None:
        """Send events; pauses that are long enough to be interrupted are spent here, keeping the screen current."""
        if isinstance(events, SecretEvents):
            # It has no pauses, and stays one thing that shows nothing.
            self._send_batch(events)
            return
        # The whole action is refused, or none of it.
        self._refuse_stale(events)
        batch: list[Event] = []
        for event in events:
            if isinstance(event, Answer):
                self._send_batch(batch)
                batch = []
                self._await_answer()
            elif isinstance(event, Pause) and event.seconds > _LONGEST_BACKEND_PAUSE:
                self._send_batch(batch)
                batch = []
                self._watch.pause(event.seconds)
            else:
                batch.append(event)
        self._send_batch(batch)

    def _type(self, events: Sequence[Step]) -> None:
        """Send a text, waiting for its parts to appear where the backend asks for that; once one has not, for no other."""
        # A text has no `Answer`.
        *parts, rest = self._backend.split(cast("Sequence[Event]", events))
        secret = isinstance(events, SecretEvents)
        if parts and self._settings is None:
            # A click before it was not waited for, and what that draws must not pass for the text.
            self._watch.settle(_ANSWER, whole=False)
        for part in parts:
            # What was drawn before is no answer to this.
            self._watch.appears(0)
            self._send(SecretEvents(part) if secret else part)
            if not self._unanswered:
                lag = self._backend.lag
                if self._watch.appears(_ECHO + lag.frame + 2 * max(lag.trip, lag.nap)):
                    self._stirred = True
                    if sum(isinstance(event, KeyDown) for event in part) > 1:
                        # The first of several may appear before the others.
                        self._watch.settle(_ANSWER, whole=False)
                    self._backend.taken()
                else:
                    self._unanswered = True
        self._send(SecretEvents(rest) if secret and parts else rest)
        self._refuse_unfocused()

    def _note_answer(self, action: Action, events: Sequence[Step], result: SettleResult) -> None:
        """Note that a text appeared, or that it changed nothing where nobody tells who has the keyboard."""
        if isinstance(action, Type) and events and not self._backend.tells_focus:
            self._unanswered |= result.reason is Reason.UNCHANGED
            if result.first_change is not None and not self._unanswered:
                self._backend.taken()

    def _refuse_stale(self, events: Sequence[Step]) -> None:
        """Check points again if the screen was resized since they were; servers move what is outside to the nearest edge."""
        if (size := self._core.size) != self._planned_size:
            for event in events:
                if isinstance(event, PointerMove):
                    check_point((event.x, event.y), size)

    def _await_answer(self) -> None:
        """Wait until the application under the pointer has taken what was sent, or there is no patience left."""
        lag = self._backend.lag
        if lag.nap:
            # The server may not look for as long as that, whatever the application has done.
            self._watch.pause(lag.trip + 2 * _ANSWER.reaction)
            return
        settings = replace(_ANSWER, timeout=_ANSWER.timeout + lag.frame + 2 * lag.trip)
        while True:
            begun = self._clock()
            result = self._watch.settle(settings, at_pointer=True, whole=False)
            self._stirred |= result.first_change is not None
            if result.reason is not Reason.WINDOW_BUSY or result.first_change is not None:
                return
            self._patience -= self._clock() - begun
            if self._patience <= 0:
                self._unanswered = True
                return

    def _send_batch(self, batch: Sequence[Event]) -> None:
        if not batch:
            return
        self._watch.check_stop()
        self._refuse_stale(batch)
        self._pressed.expect(batch)
        if self._pressed.pressed:
            self._core.watch_over()
        self._backend.allow(self._limit)
        missed = self._backend.send(batch)
        if missed is not None and missed.obstacle == "unread":
            self._held_up = True
        elif missed is not None:
            self._missed = missed, self._index or 0
        for event in batch:
            self._pressed.note(event)
            if isinstance(event, PointerMove):
                self._core.left_pointer = event.x, event.y

    def _refuse_unfocused(self) -> None:
        """Tell that a text was typed for nobody; the keys of a chord may be a window manager's."""
        if self._missed is not None and self._missed[0].obstacle == "unfocused":
            raise InputBlocked("keyboard", unfocused=True)

    def _refuse_blocked(self, changes: Sequence[Rect]) -> None:
        """Tell that input went to somebody else, unless that changed anything in the windows of who got it."""
        if self._missed is None or self._missed[0].obstacle == "unfocused":
            return
        missed, self._index = self._missed
        if all(rect.intersect(window).empty for rect in changes for window in missed.windows):
            raise InputBlocked(missed.obstacle, missed.holder)

    def _notice_pointer(self) -> None:
        """Note whether somebody else has moved the pointer since our last input, as far as the backend has been told."""
        pointer = self._backend.screen.pointer
        if self._core.left_pointer not in {None, pointer}:
            self._pointer_moved = True
            self._core.left_pointer = pointer

    def _paste(self, text: str | Secret) -> None:
        chord = self._paste_chord()
        self._backend.allow(self._limit)
        # Noted first: whether it was taken or not, and whoever stops this call, a secret does not stay there.
        self._core.clipboard_lent = True
        plain = text.reveal() if isinstance(text, Secret) else text
        self._lost += self._backend.lend_clipboard(
            plain, with_primary=chord == _PRIMARY_CHORD, timeout=_CLIPBOARD_LIMIT
        )
        self._send(translate(KeyPress((chord,)), size=self._core.size, pointer=Point(0, 0)))
        self._refuse_unfocused()
        self._refuse_blocked(())
        self._backend.allow(_PASTE_LIMIT)
        self._backend.wait_pasted(_PASTE_LIMIT)
        self._answered = self._backend.clipboard_answered(_CLIPBOARD_LIMIT)

    def _end_paste(self, result: SettleResult) -> SettleResult:
        """Give the clipboard back if a text was pasted from it, once that is seen; how the wait for the screen ended.

        Chromium asks for a text twice, and inserts what it gets the second time. While it waits for us it is at rest.
        """
        if not self._core.clipboard_lent:
            return result
        seen = result
        deadline = self._clock() + _PASTE_SHOWN
        while True:
            before, self._answered = self._answered, self._backend.clipboard_answered(_CLIPBOARD_LIMIT)
            is_shown = seen.first_change is not None and before == self._answered
            if seen.reason is not Reason.NOT_WAITED and (is_shown or self._clock() >= deadline):
                break
            seen = self._watch.settle(self._settings or Settle())
        self._core.give_clipboard_back()
        return result if self._settings is None else seen

    def _paste_chord(self) -> str:
        if not self._backend.has_windows:
            # It is not known who has the keyboard.
            return _PRIMARY_CHORD
        window = next((w for w in self._backend.windows() if w.active), None)
        class_name = window.class_name.lower() if window else ""
        if class_name in _PASTE_CHORDS:
            return _PASTE_CHORDS[class_name]
        return "ctrl+shift+v" if any(word in class_name for word in _TERMINALS) else "ctrl+v"


def _is_beyond_ascii(keysym: int) -> bool:
    return 0xA0 <= keysym <= 0xFF or 0x0100_0000 <= keysym < _WIDE_KEYSYMS.stop


def _named(action: Action, keysyms: set[int]) -> list[tuple[int, str]]:
    """Those characters and where they are in a text; a chord has them one after the other."""
    text = action.text if isinstance(action, Type) and isinstance(action.text, str) else ""
    named = [(at, char) for at, char in enumerate(text) if char_keysym(char) in keysyms]
    return named or [(at, chr(keysym & 0xFF_FFFF)) for at, keysym in enumerate(sorted(keysyms))]


def plain_actions(given: Sequence[Action | CarriesAction]) -> tuple[Action, ...]:
    """The actions themselves, of tool calls too."""
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
