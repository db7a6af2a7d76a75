"""A stage of plain X: no toolkit, no answer to pings."""

from __future__ import annotations

from actor import SIZE, Actor, PollLoop
from Xlib import X, display


class Stage(PollLoop):
    def __init__(self) -> None:
        self._display = display.Display()
        super().__init__(self._display)
        screen = self._display.screen()
        mask = X.KeyPressMask | X.ButtonPressMask | X.ExposureMask
        self._window = screen.root.create_window(
            100, 100, *SIZE, 0, screen.root_depth, background_pixel=0x202020, event_mask=mask
        )
        self._window.set_wm_name("zoo")
        self._window.map()
        self._gc = self._window.create_gc()
        self._display.flush()
        self.actor = Actor(self)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        self._gc.change(foreground=colour)
        self._window.fill_rectangle(self._gc, *rect)
        self._display.flush()
        self.actor.drawn()

    def read(self) -> None:
        while self._display.pending_events():
            if self._display.next_event().type in {X.KeyPress, X.ButtonPress}:
                self.actor.input()


stage = Stage()
while True:
    stage.turn(stage.read)
