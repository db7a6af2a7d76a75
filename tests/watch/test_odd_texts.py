"""Long names, texts from right to left and small windows: all of it can be read, and nothing covers or moves anything else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import DeskhandError, LeftClick, PolicyDenied, Type
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import deskhand
    from deskhand.policy.questions import Questions
    from deskhand.watch import Server
    from watch.browser import Viewer

LIMIT = 20.0
# Of an element and all in it: what is wider than its place.
_OVERFLOWS = """(selector) => [...document.querySelectorAll(selector + ', ' + selector + ' *')]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0)
  .filter((each) => getComputedStyle(each).textOverflow !== 'ellipsis')
  .map((each) => `${each.tagName} ${each.className}: ${each.scrollWidth} in ${each.clientWidth}`)"""
# What a script has scrolled to show an element, and a person cannot.
_UNREACHABLE = """(place) => {
  const found = [];
  const all = document.querySelectorAll(place);
  for (let each = all[all.length - 1].parentElement; each; each = each.parentElement) {
    // That of the body is the window's.
    const way = getComputedStyle(each.parentElement ? each : document.body).overflowY;
    if (each.scrollTop > 0 && way !== 'auto' && way !== 'scroll') found.push(each.tagName);
  }
  return found;
}"""


class _Asks:
    """An agent whose commands wait for an answer."""

    def __init__(self, desktop: deskhand.Desktop, questions: Questions) -> None:
        self._desktop = desktop
        self._questions = questions
        self._threads: list[threading.Thread] = []

    def ask(self, command: str, env: Mapping[str, str]) -> None:
        def agent() -> None:
            with pytest.raises(PolicyDenied):
                self._desktop.host.run(command, env=dict(env))

        known = len(self._questions.pending)
        self._threads.append(threading.Thread(target=agent))
        self._threads[-1].start()
        until(lambda: len(self._questions.pending) > known, LIMIT, "the question")

    def end(self) -> None:
        for question in self._questions.pending:
            self._questions.answer(question.id, allow=False)
        for thread in self._threads:
            thread.join(60)


@pytest.fixture
def asks(watched: tuple[deskhand.Desktop, Server], questions: Questions) -> Iterator[_Asks]:
    made = _Asks(watched[0], questions)
    yield made
    made.end()


def test_the_focus_stays_on_a_question_when_another_one_comes(opened: Callable[..., Viewer], asks: _Asks) -> None:
    viewer = opened("watch", "approve", "control")
    asks.ask("first", {})
    viewer.wait_text(".question", "first")
    viewer.page.locator(".question button", has_text="Deny").focus()
    asks.ask("second", {})
    viewer.wait_text("#waiting", "second")
    assert viewer.page.evaluate("document.activeElement.textContent") == "Deny"
    viewer.page.keyboard.press("Enter")
    viewer.wait("document.querySelectorAll('.question').length === 1")
    assert "second" in viewer.text(".question")


def test_a_long_name_leaves_room_for_what_it_names(opened: Callable[..., Viewer], asks: _Asks) -> None:
    viewer = opened("watch", "approve")
    asks.ask("x" * 400, {"N" * 300: "the value that matters", "SHORT": "v" * 300})
    viewer.wait_text(".question", "the value that matters")
    widths = viewer.page.evaluate(
        "[...document.querySelectorAll('.question dd')].map(each => each.getBoundingClientRect().width)"
    )
    assert min(widths) > 100
    assert viewer.page.evaluate(_OVERFLOWS, "#waiting") == []


@pytest.mark.parametrize(
    "size", [{"width": 1000, "height": 640}, {"width": 320, "height": 640}], ids=["wide", "narrow"]
)
def test_long_names_of_people_and_long_operations_fit(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], size: dict[str, int]
) -> None:
    desktop, _ = watched
    name = "Ada" * 33
    viewer, other = opened("watch", "control", name=name), opened("watch", "control", viewport=size)
    texts = "w" * 10_000, "\u05e9" * 10_000, "two words " * 1000
    for text in texts:
        desktop.hand_over(text[:1900])
    viewer.take()
    other.wait_text("#state", name[:50])
    for text in texts:
        # The policy refuses the second one already, for its many keys.
        with pytest.raises(DeskhandError):
            desktop.perform(LeftClick((1, 1)), Type(text))
        other.wait_text("#operations", text[:100])
    assert other.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for place in ("#bar", "#waiting", "#operations"):
        assert other.page.evaluate(_OVERFLOWS, place) == []
    other.page.click("#take")
    assert other.page.evaluate(_OVERFLOWS, "#take-dialog") == []
    other.page.click("#take-dialog button[value=cancel]")
    viewer.hand_back()
    viewer.take(private=True)
    other.wait_shown("#curtain")
    assert other.page.evaluate(_OVERFLOWS, "#stage") == []
    viewer.hand_back()


def test_a_text_from_right_to_left_ends_on_its_left(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    request = desktop.hand_over("\u05e0\u05d0 \u05dc\u05d4\u05ea\u05d7\u05d1\u05e8.")
    viewer.wait_text(".request p", "\u05e0\u05d0")
    ends = viewer.page.evaluate(
        "() => { const text = document.querySelector('.request p').firstChild, range = document.createRange();"
        " const left = (from, to) => { range.setStart(text, from); range.setEnd(text, to);"
        " return range.getBoundingClientRect().left; };"
        " return [left(0, 1), left(text.length - 1, text.length)]; }"
    )
    assert ends[1] < ends[0]
    desktop.control.decline(request.id, "a test", "")
    viewer.wait_hidden(".request")


@pytest.mark.parametrize("scale", [2, 4])
def test_a_browser_that_is_zoomed_in_shows_all_of_the_page(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], asks: _Asks, scale: int
) -> None:
    desktop, _ = watched
    # What a window of 1280x1024 is for its page then.
    size = {"width": 1280 // scale, "height": 1024 // scale}
    viewer = opened("watch", "control", "approve", viewport=size, device_scale_factor=scale)
    asks.ask("true", {"NAME": "value"})
    viewer.wait_shown(".question")
    viewer.take()
    for place in ("#picture", ".question button.danger", "#operations", "#hands button:last-of-type", "#take"):
        viewer.page.locator(place).last.scroll_into_view_if_needed()
        assert viewer.page.evaluate(_UNREACHABLE, place) == [], f"{place} cannot be scrolled to"
        box = viewer.page.evaluate(
            "(place) => { const all = document.querySelectorAll(place), b = all[all.length - 1].getBoundingClientRect();"
            " return [b.left, b.top, b.right, b.bottom, innerWidth, innerHeight]; }",
            place,
        )
        assert box[0] >= -1
        assert box[2] <= box[4] + 1, place
        assert min(box[3], box[5]) - max(box[1], 0) >= 20, f"{place} cannot be seen: {box}"
    picture = viewer.page.evaluate("document.querySelector('#picture').getBoundingClientRect().height")
    assert picture >= 100
    viewer.page.locator("#picture").scroll_into_view_if_needed()
    viewer.page.mouse.move(*viewer.at(400, 300))
    until(lambda: max(abs(desktop.pointer[0] - 400), abs(desktop.pointer[1] - 300)) <= 2, LIMIT, "the pointer")
    viewer.hand_back()
