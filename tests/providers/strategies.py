"""Values for tests of all providers: actions, pictures, viewports, and payloads that were damaged."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from deskhand import actions as a
from deskhand._core.geometry import Size, Viewport
from deskhand.desktop.operations import SafetyCheck
from deskhand.providers.values import Picture

if TYPE_CHECKING:
    from collections.abc import Iterator

VIEWPORT = Viewport(Size(1280, 800), Size(1280, 800))
"""The model saw the screen as it is: what is decoded of what was encoded is the same to the pixel."""

HALVED = Viewport(Size(1280, 800), Size(640, 400))

points = st.tuples(st.integers(0, VIEWPORT.model.width - 1), st.integers(0, VIEWPORT.model.height - 1))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ids = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
keys = st.lists(
    st.sampled_from(["ctrl", "shift", "alt", "a", "s", "Return", "Page_Up", "F5", "+", "é"]),
    min_size=1,
    max_size=3,
    unique=True,
)
modifiers = st.lists(st.sampled_from(["ctrl", "shift", "alt", "super"]), max_size=2, unique=True)
pictures = st.binary(min_size=1, max_size=60).map(lambda data: Picture(data, "image/png"))
checks = st.builds(SafetyCheck, ids, st.none() | texts, st.none() | texts)

EXAMPLES: tuple[a.Action, ...] = (
    a.LeftMouseDown((10, 20)),
    a.LeftMouseUp((90, 20)),
    a.LeftClick((400, 300)),
    a.DoubleClick((400, 300)),
    a.TripleClick((400, 300)),
    a.MiddleClick((5, 5)),
    a.RightClick((5, 5)),
    a.BackClick((5, 5)),
    a.ForwardClick((5, 5)),
    a.Drag([(10, 10), (90, 10)]),
    a.KeyPress(["ctrl", "s"]),
    a.KeyHold(["w"], duration=2),
    a.Move((640, 400)),
    a.TakeScreenshot(),
    a.Scroll((640, 400), direction="down", magnitude=3),
    a.Type("naïve ☕ text"),
    a.Wait(2),
)
"""The seventeen normalized actions, one of each, in their order."""


def damaged(payload: Any, seed: int) -> Any:
    """A copy of a payload in which a few places hold something else, are gone or are doubled."""
    chance = random.Random(seed)
    whole = copy.deepcopy([payload])
    for _ in range(chance.randint(1, 3)):
        place, key = chance.choice(list(_places(whole)))
        match chance.randint(0, 5):
            case 0 if isinstance(place, dict):
                del place[key]
            case 1 if isinstance(place, dict):
                place[chance.choice(["unknown", "type", "", "x", "\u0000"])] = copy.deepcopy(chance.choice(_ODD))
            case 2 if isinstance(place, list) and place is not whole:
                place.append(copy.deepcopy(place[key]))
            case 3 if isinstance(place[key], str):
                place[key] = place[key][: chance.randint(0, len(place[key]))] + chance.choice(
                    ["", "é", "\ud800", "0" * 5000]
                )
            case _:
                place[key] = copy.deepcopy(chance.choice(_ODD))
    return whole[0]


_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, -(2**63), 10**400, 0.5, 1e308, float("nan"), float("inf"), "", "x", "12", "[1, 2]",
    "\u0000", [], [0], [1, 2], [1, 2, 3, 4], [[1, 2]], {}, {"x": 1}, {"type": "click"}, b"bytes",
)  # fmt: skip


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in found:
        yield value, key
        yield from _places(inner)
