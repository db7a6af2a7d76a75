"""The protocol of a backend: what `Desktop` needs of it, and nothing more.

This module owns the protocol. What must never appear here: a composite action (see `deskhand.desktop.translate`), a decision of
when the screen has settled (see `deskhand._core.settle`), a lock (see `deskhand.desktop.desktop`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.events import Event, Step
    from deskhand._core.geometry import Rect, Size
    from deskhand._core.monitor import Monitor
    from deskhand._core.settle import Activity, Lag
    from deskhand._core.window import Window
    from deskhand._native import Screen


@dataclass(frozen=True, slots=True)
class Missed:
    """Input that was sent and did not reach the window that it was for.

    Attributes:
        obstacle: No window has the keyboard focus, or another program has grabbed the keyboard or the pointer. "unread" if keys
            did reach it, late: its client had read nothing during the whole wait.
        holder: What received it instead, as far as that is known: untrusted text.
        windows: The windows of that program, in screen pixels.
    """

    obstacle: Literal["unfocused", "keyboard", "pointer", "unread"]
    holder: str
    windows: tuple[Rect, ...]


class Backend(Protocol):
    """One connection to one desktop. Calls come from one thread at a time, except for `interrupt`, which any thread may call.

    Every method may raise `DesktopLost` when the other side is gone, and `Reconnected` when it was gone and is back: nothing is
    held then, and a call that only looks or waits may be repeated.
    """

    name: str
    """Its name in errors, such as `x11`."""
    has_windows: bool
    """Whether `windows`, `activate` and `close_window` work."""
    tells_focus: bool
    """Whether it is known when no application receives a text."""
    tells_pointer: bool
    """Whether the other side reports where it has put the pointer."""

    @property
    def screen(self) -> Screen:
        """The screen, kept current by this backend."""

    @property
    def size(self) -> Size:
        """Size of the screen in pixels."""

    @property
    def status(self) -> Sequence[str]:
        """Why slower paths are in use, and what the picture lacks, one sentence each; empty for nothing."""

    @property
    def lag(self) -> Lag:
        """How far what is seen may lag behind."""

    @property
    def can_paste(self) -> bool:
        """Whether `wait_pasted` can prove that a text was taken."""

    def untypable(self, events: Sequence[Step]) -> set[int]:
        """The keysyms among these that no key can bring, as far as that is known before they are sent."""

    def split(self, events: Sequence[Event]) -> Sequence[Sequence[Event]]:
        """The parts of a text, each of which the application must have taken before the next is sent; at least one."""

    def taken(self) -> None:
        """Note that the application has taken what was sent of a text since `split`."""

    def begin(self) -> None:
        """Note that several calls follow in a row; what the backend does on its own may rest until `end`."""

    def end(self) -> None:
        """End what `begin` began."""

    def allow(self, seconds: float | None) -> None:
        """Until `end` or the next `allow`, limit vain waits to these seconds from now; None: as long as there is hope.

        A wait for the other side then raises `ServerSilent`, if it has no limit of its own. Progress starts the time again.
        """

    def send(self, events: Sequence[Event]) -> Missed | None:
        """Send the events of one action, all at once, and return after the other side has processed them.

        Returns what is known not to have reached its window, if anything.
        """

    def release(self, events: Sequence[Event]) -> None:
        """Release what these events name, then everything else that the other side reports as pressed."""

    def look(self, limit: float | None = None) -> None:
        """Bring the screen and the pointer up to date with the other side as it is now.

        Where the other side is far away, this returns what is known after `limit` seconds.
        """

    def round_trip(self) -> None:
        """Ask the other side something, and return when it has answered; `look` may know enough without asking."""

    def mark(self, limit: float | None = None) -> int | None:
        """Separate what changed before from what changes because of what is sent from now on.

        Either all earlier changes are on the screen now (None), or a mark is under way. Waits for `limit` seconds at most.
        """

    def marked(self, mark: int) -> int | None:
        """The screen's generation when the latest mark came; None before. Newer changes follow what was sent after it."""

    def wait(self, timeout: float) -> bool:
        """Wait until pixels changed, a probe was answered or the windows changed; False after `timeout` seconds."""

    def probe(self, *, at_pointer: bool = False, window: int | None = None) -> int | None:
        """Ask `window`, or the one under the pointer or with the focus, to answer when it has handled its input.

        None if the window does not promise to. A window that closes counts as having answered.
        """

    def answered(self, probe: int) -> bool:
        """Whether that probe, or a later one, was answered."""

    def input_window(self) -> int | None:
        """The window that got `probe`, where windows are known."""

    def take_stock(self) -> None:
        """Note that an action is about to begin: what applications have done since the last wait they do on their own."""

    def activity(self, *, changed: bool) -> Activity:
        """What the application that got `probe`, or what it started, does now beyond what it does on its own.

        Where nothing has `changed`, or the keys may be a hot key, also whether another program has yet to read them.
        Unknown where it runs on another machine.
        """

    def double_click_time(self) -> float | None:
        """Seconds within which two clicks are a double click, where the desktop publishes that."""

    def has_window_manager(self) -> bool:
        """Whether a window manager runs that lists windows."""

    def focused_classes(self) -> list[str]:
        """The class of the window that keys go to, and that of its application; as far as the application has set them."""

    def windows(self) -> list[Window]:
        """The managed windows, or without a manager those that are shown, bottom to top."""

    def covers(self) -> Sequence[tuple[Rect, float]]:
        """What menus and others that no window manager places cover, and since when, on the clock of the screen's steps."""

    def monitors(self) -> list[Monitor]:
        """The monitors that make up the screen, by `deskhand._core.monitor.monitors_of`; at least one."""

    def activate(self, window: int) -> None:
        """Ask for the window to be raised and focused."""

    def close_window(self, window: int) -> None:
        """Ask the window to close."""

    def drop_files(self, uris: bytes, xy: tuple[int, int], timeout: float) -> None:
        """Drop what a `text/uri-list` lists on the window under the pointer, which is at `xy`; wait until it is taken."""

    def resize(self, size: Size) -> None:
        """Change the size of the screen."""

    def read_clipboard(self, timeout: float) -> str | None:
        """The clipboard's text, None when it holds none."""

    def write_clipboard(self, text: str, timeout: float) -> None:
        """Put text on the clipboard and keep serving it."""

    def clipboard_types(self, timeout: float) -> Sequence[str]:
        """The types that the clipboard's owner offers, in its order: untrusted names, of printable ASCII."""

    def read_clipboard_data(self, type: str, timeout: float) -> bytes | None:
        """The clipboard's content of that type, None when it is not offered."""

    def write_clipboard_data(self, data: Sequence[tuple[str, bytes]], timeout: float) -> None:
        """Offer content of these types on the clipboard, the best first, and keep serving it."""

    def lend_clipboard(self, text: str, *, with_primary: bool, timeout: float) -> Sequence[str]:
        """Write a text until `return_clipboard`; returns the formats of the old content that cannot be given back.

        Args:
            text: The text to paste.
            with_primary: On the primary selection too, where there is one.
            timeout: Seconds that the clipboard's owner may take to hand over all of its content.
        """

    def return_clipboard(self, timeout: float) -> None:
        """Put back what was there before `lend_clipboard`."""

    def wait_pasted(self, timeout: float) -> None:
        """Wait until an application has taken the text last written or lent; DeskhandTimeout if none does."""

    def clipboard_answered(self, timeout: float) -> int:
        """How many requests for the clipboard were answered, after answering all that have come. Only where `can_paste`."""

    def interrupt(self) -> None:
        """Make the wait under way, or the next one, raise `deskhand.Interrupted`."""

    def clear_interrupt(self) -> None:
        """Take an `interrupt` back."""

    def close(self) -> None:
        """Release everything and end the connection; calling it again is harmless."""
