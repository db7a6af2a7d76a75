"""A program that changes a screen by chance: for each number on standard input it draws, and prints it when that is done.

`Painter` is the side that tests hold.
"""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class Painter:
    """The program as a test sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def paint(self, number: int) -> None:
        """Draw what belongs to this number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{number}\n", "the painter ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def _paint() -> None:
    from Xlib import display  # noqa: PLC0415 # imported by the drawing process only

    client = display.Display()
    screen = client.screen()
    shown = []
    for line in sys.stdin:
        chance = random.Random(int(line))
        place = chance.randrange(-20, 780), chance.randrange(-20, 580)
        size = chance.randrange(1, 300), chance.randrange(1, 200)
        colour = chance.randrange(1 << 24)
        window = screen.root.create_window(
            *place, *size, 0, screen.root_depth, background_pixel=colour, override_redirect=True
        )
        window.map()
        shown.append(window)
        client.sync()
        context = window.create_gc(foreground=chance.randrange(1 << 24))
        for _ in range(chance.randrange(30)):
            window.fill_rectangle(context, chance.randrange(300), chance.randrange(200), 3, 2)
        if len(shown) > 3 or chance.random() < 0.3:
            shown.pop(0).destroy()
        client.sync()
        print(int(line), flush=True)
    client.close()


if __name__ == "__main__":
    _paint()
