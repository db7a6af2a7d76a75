"""A stage of Tk."""

from __future__ import annotations

import queue
import tkinter as tk
from typing import TYPE_CHECKING

from actor import SIZE, Actor

if TYPE_CHECKING:
    from collections.abc import Callable


class Stage:
    def __init__(self) -> None:
        self._root = tk.Tk()
        self._root.title("zoo")
        width, height = SIZE
        self._area = tk.Canvas(self._root, width=width, height=height, background="#202020", highlightthickness=0)
        self._area.pack()
        self._painted: dict[tuple[int, int, int, int], int] = {}
        self._calls: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._root.bind("<<called>>", lambda _: self._calls.get()())
        self._root.bind("<Key>", lambda _: self.actor.input())
        self._root.bind("<Button>", lambda _: self.actor.input())
        self._root.update()
        self.actor = Actor(self)
        self._root.mainloop()

    def call(self, do: Callable[[], object]) -> None:
        self._calls.put(do)
        self._root.event_generate("<<called>>", when="tail")

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        self._root.after(round(seconds * 1000), do)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        if rect not in self._painted:
            x, y, width, height = rect
            self._painted[rect] = self._area.create_rectangle(x, y, x + width, y + height, width=0)
        self._area.itemconfigure(self._painted[rect], fill=f"#{colour:06x}")
        self._root.update_idletasks()
        self.actor.drawn()

    def point(self, *, busy: bool) -> None:
        self._root.configure(cursor="watch" if busy else "")


Stage()
