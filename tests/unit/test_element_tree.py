"""Elements that are kept from one reading to the next are those that a reading would make anew."""

from __future__ import annotations

import random
from typing import Any

import pytest

from deskhand import Rect
from deskhand._core.roles import ROLES
from deskhand._core.window import Window
from deskhand.desktop.element_tree import CHROMIUM, GTK3, QT, ElementTree

# Among them those that say something of the places of what is in them.
PLACED = ("frame", "scroll-pane", "viewport", "menu", "combo-box", "list", "table", "root-pane", "filler")
PLAIN = ("push-button", "panel", "text", "list-item")


class Reported:
    """What applications report, and what changes of it."""

    def __init__(self, seed: int) -> None:
        """Two windows of each of four applications."""
        self.dice = random.Random(seed)
        self.screen = Rect(0, 0, 1000, 700)
        self.applications = [
            (f"app{place}", toolkit, "1", 100 + place, "") for place, toolkit in enumerate((GTK3, QT, "GTK", CHROMIUM))
        ]
        self.windows = [Window(at, f"window {at}", "", 100 + at // 2, self.rect(), active=False) for at in range(8)]
        self.found: list[Any] = []
        for at, window in enumerate(self.windows):
            self.add((0, at // 2, window.title, "frame"))
            for _ in range(self.dice.randrange(1, 25)):
                depth = self.dice.randrange(1, self.found[-1][0][1] + 2)
                self.add((depth, at // 2, "text", self.dice.choice(PLACED + PLAIN)))

    def rect(self) -> Rect:
        """Anywhere, and of any size."""
        dice = self.dice
        return Rect(dice.randrange(-50, 900), dice.randrange(-50, 600), dice.randrange(400), dice.randrange(300))

    def area(self) -> tuple[int, int, int, int] | None:
        """What may be told of a place."""
        return self.dice.choice((tuple(self.rect()), tuple(self.rect()), (0, 0, 0, 0), (-1, -1, -1, -1), None))

    def add(self, what: tuple[int, int, str, str]) -> None:
        """Report one more element."""
        depth, place, name, role = what
        identity = (len(self.found), depth, place, ROLES.index(role), self.dice.getrandbits(40))
        self.found.append((identity, (name, "", None, None), self.area(), ("click",), 0))

    def change(self) -> None:
        """Change something, of one kind."""
        dice = self.dice
        at = dice.randrange(len(self.found))
        (number, depth, place, role, states), words, area, actions, hidden = self.found[at]
        match dice.randrange(9):
            case 0:
                self.found[at] = ((number, depth, place, role, states), words, self.area(), actions, hidden)
            case 1:
                words = (f"name {dice.randrange(9)}", "", "written", 0.5)
                self.found[at] = ((number, depth, place, role, states), words, area, actions, hidden)
            case 2:
                role = ROLES.index(dice.choice(PLACED + PLAIN))
                self.found[at] = ((number, depth, place, role, states), words, area, actions, hidden)
            case 3:
                end = at + 1
                while end < len(self.found) and self.found[end][0][1] > depth:
                    end += 1
                del self.found[at:end]
            case 4:
                identity = (10_000 + dice.randrange(10**6), depth + 1, place, ROLES.index(dice.choice(PLACED)), states)
                self.found.insert(at + 1, (identity, words, self.area(), actions, hidden))
            case 5:
                window = dice.choice(self.windows)
                self.windows.remove(window)
                self.windows.append(Window(window.id, window.title, "", window.pid, self.rect(), active=True))
            case 6:
                self.windows = dice.sample(self.windows, len(self.windows))
            case 7:
                place = dice.randrange(4)
                name, toolkit, version, pid, _ = self.applications[place]
                told = (
                    f"{name}+",
                    dice.choice((toolkit, QT, "")),
                    version,
                    pid,
                    dice.choice(("", "it does not answer")),
                )
                self.applications = [told if at == place else each for at, each in enumerate(self.applications)]
            case _:
                self.screen = Rect(0, 0, 1000, dice.randrange(300, 700))
        if not self.found:
            self.add((0, 0, "window 0", "frame"))


@pytest.mark.parametrize("seed", range(20))
def test_a_kept_tree_is_the_one_that_is_made_anew(seed: int) -> None:
    reported = Reported(seed)
    kept = ElementTree()
    for version in range(100):
        for _ in range(reported.dice.randrange(1, 3)):
            reported.change()
        told = reported.applications, list(reported.found), reported.windows, reported.screen
        assert kept.make(version, *told) == ElementTree().make(version, *told), version


def test_what_has_not_changed_is_not_made_again() -> None:
    reported = Reported(1)
    tree = ElementTree()
    told = reported.applications, list(reported.found), reported.windows, reported.screen
    before = tree.make(1, *told)
    (number, *identity), words, *rest = reported.found[-1]
    reported.found[-1] = ((number, *identity), ("another", *words[1:]), *rest)
    after = tree.make(2, reported.applications, list(reported.found), list(reported.windows), reported.screen)
    assert [one is other for one, other in zip(before, after, strict=True)] == [True] * (len(before) - 1) + [False]
