"""A stage inside a terminal: what it paints are blocks of coloured spaces."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty

from actor import Actor, PollLoop, on_grid

# Pixels of the window's coordinates to a character cell, so that the scenes stay apart as in the other stages.
CELL = (10, 20)


class Stage(PollLoop):
    def __init__(self) -> None:
        super().__init__(sys.stdin)
        os.write(1, b"\x1b[?25l\x1b[2J")
        self.actor = Actor(self, CELL)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        x, y, width, height = on_grid(rect, CELL)
        column, row = x // CELL[0] + 1, y // CELL[1] + 1
        width, height = width // CELL[0], height // CELL[1]
        rgb = ";".join(str(channel) for channel in colour.to_bytes(3, "big"))
        lines = "".join(f"\x1b[{row + n};{column}H{' ' * width}" for n in range(height))
        os.write(1, f"\x1b[48;2;{rgb}m{lines}\x1b[m".encode())
        self.actor.drawn()

    def read(self) -> None:
        while select.select([0], [], [], 0)[0]:
            if not os.read(0, 1):
                sys.exit()
            self.actor.input()


before = termios.tcgetattr(0)
tty.setraw(0)
stage = Stage()
while True:
    stage.turn(stage.read)
