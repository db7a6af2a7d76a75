"""Pasting a text into the application with the keyboard, and giving the clipboard back.

This module owns the chord that pastes into each application, and which characters no key brings to it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.events import KeyDown, Step
from deskhand._core.geometry import Point
from deskhand._core.keys import char_keysym
from deskhand._core.redaction import Secret
from deskhand._core.settle import Reason, Settle, SettleResult
from deskhand.actions import KeyPress, Type
from deskhand.desktop.translate import SecretEvents, translate
from deskhand.errors import Untypable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.actions import Action
    from deskhand.desktop.connection import Core
    from deskhand.desktop.sending import Sender

_PASTE_LIMIT = 5.0
# Seconds to wait for a text to appear after it was taken.
_PASTE_SHOWN = 1.0
_CLIPBOARD_LIMIT = 5.0
# Editors and terminals alike accept this chord. Some paste the primary selection with it, as xterm does.
_PRIMARY_CHORD = "shift+Insert"
# Terminals have their own chord for it, because Ctrl+V is a character to them.
_PASTE_CHORDS = {"xterm": _PRIMARY_CHORD, "uxterm": _PRIMARY_CHORD}
_TERMINALS = ("terminal", "kitty", "alacritty", "konsole", "terminator")
# No key brings these programs a character beyond U+FFFF. Java cuts keysyms to 16 bits: AWT is known by the class of its window,
# JavaFX by that of its application. Writer puts what comes through an input method before letters of its own buffer.
_NARROW = ("focusproxy", "java", "libreoffice-writer", "libreoffice-web", "libreoffice-global")
# The keysyms of characters beyond U+FFFF; those of keys that are no characters, such as XF86AudioPlay, are above them all.
_WIDE_KEYSYMS = range(0x0101_0000, 0x0111_0000)
# Windows of WINE: it knows only the keys of its own layouts, and some that carry characters up to U+FFFF.
_WINE = ".exe"
_CONTROLS = re.compile("([\\x00-\\x1f]+)")


class Paster:
    """Pastes the texts of one call.

    Attributes:
        lost: The formats of the old clipboard that cannot be given back.
    """

    __slots__ = ("_answered", "_backend", "_clock", "_core", "_sender", "_settings", "_watch", "lost")

    def __init__(self, core: Core, sender: Sender, settings: Settle | None) -> None:
        """Paste into `core`'s desktop, by the keys of `sender`."""
        self._core = core
        self._backend = core.backend
        self._watch = core.watch
        self._clock = core.clock
        self._sender = sender
        self._settings = settings
        # Requests for the clipboard that were answered when a text was taken from it.
        self._answered = 0
        self.lost: list[str] = []

    def instead_of_keys(self, action: Type, missing: set[int]) -> Type:
        """The action as a paste, because no key is left for these keysyms.

        Raises:
            Untypable: It is a secret, or the clipboard cannot carry it.
        """
        if isinstance(action.text, Secret):
            # Every program can read the clipboard: a secret goes there only if the caller asks for it.
            raise Untypable.hidden(len(missing), f"{self._backend.name} has no key left for them; use paste=True")
        if self._backend.can_paste:
            return replace(action, paste=True)
        characters = [(at, char) for at, char in enumerate(action.text) if char_keysym(char) in missing]
        raise Untypable(
            characters, f"{self._backend.name} has no key left for them, and its clipboard cannot carry them"
        )

    def missing_here(self, action: Action, events: Sequence[Step]) -> set[int]:
        """The keysyms, among these, of characters that no key brings to the focused application."""
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

    def type_around(self, action: Action, wide: set[int]) -> None:
        """Paste the characters that the focused application cannot take from keys; line ends and tabs stay keys."""
        if not isinstance(action, Type):
            raise Untypable(
                _named(action, wide), "the application that has the keyboard focus cannot take them from keys; use Type"
            )
        if isinstance(action.text, Secret):
            raise Untypable.hidden(
                len(wide), "the application that has the keyboard focus cannot take them from keys; use paste=True"
            )
        for piece in _CONTROLS.split(action.text):
            if any(char_keysym(char) in wide for char in piece):
                self.paste(piece)
                self.end(self._watch.settle(self._settings))
            else:
                self._sender.send(translate(Type(piece), size=self._core.size, pointer=Point(0, 0)))

    def paste(self, text: str | Secret) -> None:
        """Lend the clipboard, press the chord that pastes, and wait until the text is taken.

        Raises:
            DeskhandTimeout: The application did not take it.
        """
        chord = self._chord()
        self._backend.allow(self._sender.limit)
        # Noted first: even if the text is not taken, or this call is stopped, a secret does not stay there.
        self._core.clipboard_lent = True
        plain = text.reveal() if isinstance(text, Secret) else text
        self.lost += self._backend.lend_clipboard(plain, with_primary=chord == _PRIMARY_CHORD, timeout=_CLIPBOARD_LIMIT)
        self._sender.send(translate(KeyPress((chord,)), size=self._core.size, pointer=Point(0, 0)))
        self._sender.refuse_unfocused()
        self._sender.refuse_blocked(())
        self._backend.allow(_PASTE_LIMIT)
        self._backend.wait_pasted(_PASTE_LIMIT)
        self._answered = self._backend.clipboard_answered(_CLIPBOARD_LIMIT)

    def end(self, result: SettleResult) -> SettleResult:
        """Give the clipboard back if a text was pasted from it, once that shows; returns how the wait for the screen ended.

        Chromium asks for a text twice, and inserts what it gets the second time. While it waits for the answer it is at rest.
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

    def _chord(self) -> str:
        if not self._backend.has_windows:
            # The window with the keyboard is unknown.
            return _PRIMARY_CHORD
        window = next((w for w in self._backend.windows() if w.active), None)
        class_name = window.class_name.lower() if window else ""
        if class_name in _PASTE_CHORDS:
            return _PASTE_CHORDS[class_name]
        return "ctrl+shift+v" if any(word in class_name for word in _TERMINALS) else "ctrl+v"


def _is_beyond_ascii(keysym: int) -> bool:
    return 0xA0 <= keysym <= 0xFF or 0x0100_0000 <= keysym < _WIDE_KEYSYMS.stop


def _named(action: Action, keysyms: set[int]) -> list[tuple[int, str]]:
    """Those characters and their positions in a text; a chord has them one after the other."""
    text = action.text if isinstance(action, Type) and isinstance(action.text, str) else ""
    named = [(at, char) for at, char in enumerate(text) if char_keysym(char) in keysyms]
    return named or [(at, chr(keysym & 0xFF_FFFF)) for at, keysym in enumerate(sorted(keysyms))]
