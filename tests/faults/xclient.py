"""An X client of its own, with python-xlib, that a test drives: one JSON list a line in, one JSON value a line out.

It is the independent witness: what it reports does not come through deskhand's connection.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import sys
import time
from typing import Any

from Xlib import X, display, error
from Xlib.ext import xtest
from Xlib.protocol.event import SelectionNotify

BLINK = 0.03
# Longer values are sent in pieces of this size.
PIECE = 200_000


@functools.cache
def content(kind: str, size: int) -> bytes:
    """What an owner hands out as this kind."""
    return (f"{kind} ".encode() * (size // len(kind) + 1))[:size]


class Client:
    def __init__(self) -> None:
        self.display = display.Display()
        self.screen = self.display.screen()
        self.root = self.screen.root
        self.events: list[str] = []
        self.requests = self.pieces = 0
        self.begins = False
        self.under_way: Any = None
        self.offered: dict[str, int] = {}
        self.manner = ""
        # What is sent in pieces: by window and property, the kind and how much was sent.
        self.sending: dict[tuple[int, int], tuple[str, int]] = {}
        self.blinking: Any = None
        self.lit = False

    def _color(self, rgb: int) -> int:
        # A TrueColor screen of depth 24: the pixel is the colour.
        return rgb

    def _window(self, x: int, y: int, w: int, h: int, rgb: int, *, override: bool) -> Any:
        window = self.root.create_window(
            x,
            y,
            w,
            h,
            0,
            X.CopyFromParent,
            X.InputOutput,
            X.CopyFromParent,
            background_pixel=self._color(rgb),
            override_redirect=override,
            event_mask=X.KeyPressMask | X.ButtonPressMask | X.ExposureMask,
        )
        window.map()
        self.display.sync()
        return window

    def pressed(self) -> dict[str, list[int]]:
        """Keycodes and buttons that the server reports as pressed."""
        keymap = self.display.query_keymap()
        mask = self.root.query_pointer().mask
        keys = [code for code in range(8, 256) if keymap[code // 8] >> (code % 8) & 1]
        return {"keys": keys, "buttons": [n for n in range(1, 6) if mask & (X.Button1Mask << (n - 1))]}

    def pointer(self) -> list[int]:
        """Where the server has the pointer."""
        found = self.root.query_pointer()
        return [int(found.root_x), int(found.root_y)]

    def shown(self) -> dict[str, list[int]]:
        """The windows directly on the root that can be seen, frames of a window manager included: id, and their rectangles."""
        found = {}
        for window in self.root.query_tree().children:
            try:
                attributes, place = window.get_attributes(), window.get_geometry()
            except error.XError:
                # It has gone meanwhile.
                continue
            if attributes.map_state == X.IsViewable and attributes.win_class == X.InputOutput:
                border = 2 * place.border_width
                found[str(window.id)] = [place.x, place.y, place.width + border, place.height + border]
        return found

    def paint(self, rgb: int) -> bool:
        """The root window in one colour."""
        self.root.change_attributes(background_pixel=self._color(rgb))
        self.root.clear_area()
        self.display.sync()
        return True

    def popup(self, x: int, y: int, w: int, h: int, rgb: int) -> int:
        """A window past the window manager, over everything, as a notification or a menu is."""
        return int(self._window(x, y, w, h, rgb, override=True).id)

    def popup_at_click(self, x: int, y: int, w: int, h: int, rgb: int) -> bool:
        """As `popup`, as soon as a button or key goes down in the window that this makes at the same place."""
        below = self._window(x, y, w, h, 0x404040, override=True)
        self.on_press = (below, lambda: self.popup(x + 5, y + 5, w - 10, h - 10, rgb))
        return True

    def blink(self, x: int, y: int, w: int, h: int) -> bool:
        """A window that changes its colour for ever."""
        self.blinking = self._window(x, y, w, h, 0xFF0000, override=True)
        return True

    def freeze(self, what: str) -> bool:
        """Keep what comes from the keyboard, the pointer, or both, from everybody."""
        return self.grab(what, X.GrabModeSync)

    def grab(self, what: str, mode: int = X.GrabModeAsync) -> bool:
        """Take the keyboard, the pointer, or both, as a menu or a screen lock does."""
        window = self._window(10, 10, 200, 100, 0x0000FF, override=True)
        done = []
        if what in {"keyboard", "both"}:
            done.append(window.grab_keyboard(0, mode, mode, X.CurrentTime))
        if what in {"pointer", "both"}:
            mask = X.ButtonPressMask | X.ButtonReleaseMask
            done.append(window.grab_pointer(0, mask, mode, mode, 0, 0, X.CurrentTime))
        self.display.sync()
        return all(status == X.GrabSuccess for status in done)

    def confine(self, x: int, y: int) -> bool:
        """Keep the pointer in a window of one pixel."""
        window = self._window(x, y, 1, 1, 0x0000FF, override=True)
        status = window.grab_pointer(0, 0, X.GrabModeAsync, X.GrabModeAsync, window, 0, X.CurrentTime)
        self.display.sync()
        return bool(status == X.GrabSuccess)

    def grab_server(self) -> bool:
        """Be the only client that is served."""
        self.display.grab_server()
        self.display.sync()
        return True

    def ungrab_server(self) -> bool:
        """Let others be served again."""
        self.display.ungrab_server()
        self.display.sync()
        return True

    def seen(self) -> list[str]:
        """Names of the input events that this client got."""
        return self.events

    def own_clipboard(self, how: str = "never answers") -> bool:
        """Own the clipboard, and answer nobody who asks for it; or begin with the first piece of many, and stop there."""
        self.begins = how == "begins"
        window = self._window(0, 0, 1, 1, 0, override=True)
        atom = self.display.intern_atom("CLIPBOARD")
        window.set_selection_owner(atom, X.CurrentTime)
        self.display.sync()
        return bool(self.display.get_selection_owner(atom) == window)

    def offer(self, kinds: dict[str, int], manner: str = "") -> int:
        """Own the clipboard with kinds of so many bytes each (see `content`), large ones in pieces; the window that owns it.

        The manner is how it goes wrong: `many` offers ten thousand kinds, `narrow` says in bytes what it offers, `silent`
        never hands out what begins with `long`, `mixed` sends pieces of several types, `numbers` gives the ids of pictures,
        `endless` sends pieces for ever and `crumbs` small ones, `pauses` stops after the first piece until `go_on`, and `dies`
        there.
        """
        self.offered, self.manner = kinds, manner
        window = self._window(0, 0, 1, 1, 0, override=True)
        window.set_selection_owner(self.display.intern_atom("CLIPBOARD"), X.CurrentTime)
        self.display.sync()
        return int(window.id)

    def hand_out(self, request: Any) -> None:
        """Answer who asks for what this offers."""
        atom, target = self.display.intern_atom, self.display.get_atom_name(request.target)
        window, place = request.requestor, request.property
        if target == "TARGETS":
            more = list(range(1, 10_001)) if self.manner == "many" else []
            targets = [atom("TARGETS"), atom("DELETE"), *map(atom, self.offered), *more]
            if self.manner == "narrow":
                window.change_property(place, atom("ATOM"), 8, bytes(number % 256 for number in targets))
            else:
                window.change_property(place, atom("ATOM"), 32, targets)
        elif target not in self.offered:
            place = 0
        elif self.manner == "silent" and target.startswith("long"):
            return
        elif self.manner == "numbers":
            window.change_property(place, atom("PIXMAP"), 32, [window.id])
        elif self.offered[target] > PIECE:
            self.sending[window.id, place] = target, 0
            window.change_attributes(event_mask=X.PropertyChangeMask)
            window.change_property(place, atom("INCR"), 32, [self.offered[target]])
        else:
            window.change_property(place, request.target, 8, content(target, self.offered[target]))
        window.send_event(
            SelectionNotify(
                time=request.time, requestor=window, selection=request.selection, target=request.target, property=place
            )
        )
        self.display.flush()

    def go_on(self) -> bool:
        """Send the rest to who waits for it, whoever owns the clipboard by now."""
        self.manner = ""
        for window, place in list(self.sending):
            self.send_piece(self.display.create_resource_object("window", window), place)
        self.display.sync()
        return True

    def send_piece(self, window: Any, place: int) -> None:
        """The next piece of what is on its way there, which was read up to here."""
        if (window.id, place) not in self.sending:
            return
        target, sent = self.sending[window.id, place]
        if sent > 0 and self.manner == "dies":
            os._exit(0)
        if sent > 0 and self.manner == "pauses":
            return
        end = sent + (1 if self.manner == "crumbs" else PIECE)
        piece = content(target, self.offered[target])[sent:end] or (b"more" if self.manner == "endless" else b"")
        type_ = "STRING" if self.manner == "mixed" and sent > 0 else target
        window.change_property(place, self.display.intern_atom(type_), 8, piece)
        self.display.flush()
        self.pieces += 1
        self.sending[window.id, place] = target, min(end, self.offered[target])
        if not piece:
            del self.sending[window.id, place]

    def ask_again(self, times: int) -> list[list[int]]:
        """Ask for a long text, and anew in the same place while a piece is there, which is deleted only then.

        Returns:
            Of each time: whether the answer said that pieces come, and how many bytes came.
        """
        atom = self.display.intern_atom
        window = self._window(0, 0, 1, 1, 0, override=True)
        window.change_attributes(event_mask=X.PropertyChangeMask)
        place, kind = atom("_PLACE"), atom("UTF8_STRING")

        def next_event(type_: int) -> None:
            while True:
                event = self.display.next_event()
                if event.type == type_ and (type_ != X.PropertyNotify or event.state == X.PropertyNewValue):
                    return

        def take() -> tuple[int, bytes]:
            found = window.get_full_property(place, X.AnyPropertyType)
            window.delete_property(place)
            return (found.property_type, bytes(found.value)) if found else (X.NONE, b"")

        found = []
        for _ in range(times):
            window.convert_selection(atom("CLIPBOARD"), kind, place, X.CurrentTime)
            next_event(X.SelectionNotify)
            take()
            next_event(X.PropertyNotify)
            window.convert_selection(atom("CLIPBOARD"), kind, place, X.CurrentTime)
            window.delete_property(place)
            next_event(X.SelectionNotify)
            in_pieces = take()[0] == atom("INCR")
            count = 0
            while in_pieces:
                next_event(X.PropertyNotify)
                piece = take()[1]
                count += len(piece)
                if not piece:
                    break
            found.append([int(in_pieces), count])
        return found

    def convert_multiple(self, *kinds: str) -> dict[str, list[int] | None]:
        """What the clipboard has of these kinds, asked for at once (ICCCM 2.6.2); None of one that it has not."""
        window = self._window(0, 0, 1, 1, 0, override=True)
        atom = self.display.intern_atom
        pairs = [word for kind in kinds for word in (atom(kind), atom(f"_PLACE_{kind}"))]
        window.change_property(atom("_PAIRS"), atom("ATOM_PAIR"), 32, pairs)
        window.convert_selection(atom("CLIPBOARD"), atom("MULTIPLE"), atom("_PAIRS"), X.CurrentTime)
        while (event := self.display.next_event()).type != X.SelectionNotify:
            pass
        assert event.property == atom("_PAIRS")
        answered = list(window.get_full_property(atom("_PAIRS"), X.AnyPropertyType).value)
        found: dict[str, list[int] | None] = {}
        for kind, place in zip(kinds, answered[1::2], strict=True):
            value = window.get_full_property(place, X.AnyPropertyType).value if place else None
            found[kind] = None if value is None else list(value)
        return found

    def convert_and_go(self, times: int) -> bool:
        """Ask the owner of the clipboard for several kinds, from windows that are gone before it can answer."""
        atom = self.display.intern_atom
        for _ in range(times):
            window = self._window(0, 0, 1, 1, 0, override=True)
            window.convert_selection(atom("CLIPBOARD"), atom("MULTIPLE"), atom("_PAIRS"), X.CurrentTime)
            window.destroy()
        self.display.sync()
        return True

    def touch(self, window: int, name: str) -> bool:
        """Change a property of somebody else's window."""
        found = self.display.create_resource_object("window", window)
        found.change_property(self.display.intern_atom(name), self.display.intern_atom("STRING"), 8, b"x")
        self.display.sync()
        return True

    def begin(self, request: Any) -> None:
        """Say that a text comes in pieces (ICCCM 2.7.2), and send the first when that was read."""
        window, place = request.requestor, request.property
        window.change_attributes(event_mask=X.PropertyChangeMask)
        window.change_property(place, self.display.intern_atom("INCR"), 32, [1 << 20])
        told = SelectionNotify(
            time=request.time, requestor=window, selection=request.selection, target=request.target, property=place
        )
        window.send_event(told)
        self.display.flush()
        self.under_way = request

    def delivered(self) -> int:
        """How many pieces were delivered."""
        return self.pieces

    def deliver(self) -> None:
        """The first piece, and no other."""
        if self.pieces == 0:
            self.under_way.requestor.change_property(self.under_way.property, self.under_way.target, 8, b"piece")
            self.display.flush()
            self.pieces += 1

    def asked(self) -> int:
        """How often somebody has asked for the clipboard that this client owns."""
        return self.requests

    def clipboard_owner(self) -> int:
        """The window that owns the clipboard, 0 for none."""
        owner = self.display.get_selection_owner(self.display.intern_atom("CLIPBOARD"))
        return int(getattr(owner, "id", 0))

    def press(self, keycode: int) -> bool:
        """Press a key and leave it down, as somebody else at this display may."""
        xtest.fake_input(self.display, X.KeyPress, keycode)
        self.display.sync()
        return True

    def keycode(self, keysym: int) -> int:
        """The keycode of a keysym."""
        return int(self.display.keysym_to_keycode(keysym))

    on_press: tuple[Any, Any] | None = None

    def take_events(self) -> None:
        while self.display.pending_events():
            event = self.display.next_event()
            if event.type == X.SelectionRequest:
                self.requests += 1
                if self.offered:
                    self.hand_out(event)
                elif self.begins:
                    self.begin(event)
            if event.type == X.PropertyNotify and event.state == X.PropertyDelete:
                if self.sending:
                    self.send_piece(event.window, event.atom)
                elif self.begins:
                    self.deliver()
            if event.type in {X.KeyPress, X.ButtonPress}:
                self.events.append(type(event).__name__)
                if self.on_press is not None:
                    action = self.on_press[1]
                    self.on_press = None
                    action()

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(sys.stdin, selectors.EVENT_READ, "stdin")
        selector.register(self.display.fileno(), selectors.EVENT_READ)
        print(json.dumps("ready"), flush=True)
        blinked = time.monotonic()
        while True:
            self.take_events()
            for key, _ in selector.select(BLINK if self.blinking is not None else None):
                if key.data == "stdin":
                    line = sys.stdin.readline()
                    if not line:
                        return
                    name, *arguments = json.loads(line)
                    self.take_events()
                    print(json.dumps(getattr(self, name)(*arguments)), flush=True)
            if self.blinking is not None and time.monotonic() - blinked >= BLINK:
                blinked = time.monotonic()
                self.lit = not self.lit
                self.blinking.change_attributes(background_pixel=self._color(0x00FF00 if self.lit else 0xFF0000))
                self.blinking.clear_area()
                self.display.flush()


if __name__ == "__main__":
    Client().run()
