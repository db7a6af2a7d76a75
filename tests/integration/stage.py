"""A stage for tests of settling: a window of plain X that moves on its own, and reacts to keys as told.

`python stage.py SCENE...` with scenes among `caret`, `clock`, `spinner`, `video`; each has a place of its own. A key paints the
answer square: `a` at once, `s` in ten steps 30 ms apart, `f` at once and away again after 30 ms; or, `v`, begins the video.
Others do nothing. No `_NET_WM_PING`.
"""

from __future__ import annotations

import select
import sys
import time

from Xlib import X, display

# Place and period of each scene; tests compare what they find with these.
SCENES = {
    "caret": ((40, 40, 2, 16), 0.5),
    "clock": ((300, 20, 60, 16), 1.0),
    "spinner": ((40, 120, 32, 32), 0.04),
    "video": ((200, 100, 160, 120), 0.04),
}
ANSWER = (400, 300, 50, 50)
STEPS, STEP_PERIOD = {"a": 1, "s": 10, "f": 2}, 0.03
BACKGROUND = 0x202020


def main() -> None:
    d = display.Display()
    screen = d.screen()
    window = screen.root.create_window(
        100,
        100,
        500,
        400,
        0,
        screen.root_depth,
        background_pixel=BACKGROUND,
        event_mask=X.KeyPressMask | X.ExposureMask,
    )
    window.set_wm_name("stage")
    window.map()
    gc = window.create_gc()
    steps = 0
    flashes = False
    due = {name: time.monotonic() + SCENES[name][1] for name in sys.argv[1:]}
    count = dict.fromkeys(SCENES, 0)
    answers = 0
    due_answer = float("inf")

    def paint(rect: tuple[int, int, int, int], colour: int) -> None:
        gc.change(foreground=colour)
        window.fill_rectangle(gc, *rect)

    while True:
        now = time.monotonic()
        for name, at in due.items():
            if now >= at:
                rect, period = SCENES[name]
                count[name] += 1
                due[name] = at + period
                paint(rect, 0x303030 + 0x0F1B2D * (count[name] % 7) if period < 1 else 0x00FF00 >> (count[name] % 4))
        if now >= due_answer:
            steps -= 1
            answers += 1
            due_answer = now + STEP_PERIOD if steps else float("inf")
            paint(ANSWER, BACKGROUND if flashes and not steps else 0x800000 + 0x1357 * answers)
        d.flush()
        wait = max(0.0, min([*due.values(), due_answer, now + 1.0]) - time.monotonic())
        if not d.pending_events():
            select.select([d.fileno()], [], [], wait)
        while d.pending_events():
            event = d.next_event()
            if event.type == X.KeyPress:
                key = chr(d.keycode_to_keysym(event.detail, 0) & 0xFF)
                if key in STEPS:
                    steps, flashes = STEPS[key], key == "f"
                    due_answer = time.monotonic()
                elif key == "v":
                    due["video"] = time.monotonic()


if __name__ == "__main__":
    main()
