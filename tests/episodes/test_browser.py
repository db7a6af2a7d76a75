"""The browser of an episode: its pages are asked from outside, and what they post is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import BackendError, KeyPress, LeftClick, Type
from deskhand.episodes.tasks.browser import ADDRESS, Page, received, start_browser
from deskhand.episodes.tasks.context import TaskContext
from integration.apps import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.desktop.operations import Operation

_FIRST = """<!doctype html><meta charset=utf-8><title>Erste Seite</title><button id=push>Push ☕</button><input id=field>
<div id=host></div><a id=on href=second.html>on</a><p id=none hidden>none</p>
<p id=far style="position: absolute; top: 4000px">far</p>
<script>
let pushed = 0;
push.onclick = () => {
  fetch("/received/pushed", { method: "POST", body: JSON.stringify({ times: ++pushed, text: "größer ☕" }) });
};
host.attachShadow({ mode: "open" }).innerHTML = "<span class=deep>deep</span>";
</script>"""
_SECOND = "<!doctype html><title>Second page</title><p>2"


@pytest.fixture(scope="module")
def context() -> Iterator[TaskContext]:
    for program in ("chromium", "perl"):
        need(program, program)
    with deskhand.launch(home=True) as desktop:
        assert desktop.host.home is not None
        context = TaskContext(desktop, {}, desktop.host.home)
        start_browser(context, {"": _FIRST, "second.html": _SECOND})
        yield context


@pytest.fixture
def page(context: TaskContext) -> Iterator[Page]:
    """The first page, whatever a test before has shown."""
    with Page(context) as page:
        context.desktop.perform(KeyPress(["ctrl", "l"]), Type("localhost"), KeyPress(["Delete"]), KeyPress(["Return"]))
        page.until("document.title === 'Erste Seite' && document.readyState === 'complete' && pushed === 0")
        yield page


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("1 + 1", 2),
        ("push.textContent", "Push ☕"),
        ("({ a: [1, null, 'ä'] })", {"a": [1, None, "ä"]}),
        ("Promise.resolve('later')", "later"),
        ("undefined", None),
        ("'x'.repeat(300000).length + 'ß'.repeat(70000)", "300000" + "ß" * 70000),
        ("/* " + "long " * 20000 + "*/ 7", 7),
    ],
    ids=["number", "text", "structure", "promise", "nothing", "long-answer", "long-question"],
)
def test_a_page_answers(page: Page, asked: str, answer: object) -> None:
    assert page.evaluate(asked) == answer


def test_what_a_page_raises_is_told(page: Page) -> None:
    with pytest.raises(BackendError, match=r"raised: ReferenceError: nobody is not defined"):
        page.evaluate("nobody")
    with pytest.raises(TimeoutError, match=r"waited 0.2 s for 'pushed === 9' in the page; last: False"):
        page.until("pushed === 9", timeout=0.2)


def test_elements_are_where_a_click_finds_them(context: TaskContext, page: Page) -> None:
    context.desktop.perform(LeftClick(page.centre("#push")), LeftClick(page.centre("#field")), Type("hé ☕"))
    assert page.until("pushed === 1 && field.value") == "hé ☕"
    assert page.evaluate(f"{page.element('#host >>> .deep')}.textContent") == "deep"
    assert page.box(".deep")[2] > 0
    for selector, why in (("#far", "scrolled away"), ("#none", "not shown"), ("#missing", "not there")):
        with pytest.raises(BackendError, match=why):
            page.centre(selector)


def test_what_a_page_posts_is_kept(context: TaskContext, page: Page) -> None:
    for times in (1, 2):
        context.desktop.perform(LeftClick(page.centre("#push")))
        wanted = {"times": times, "text": "größer ☕"}
        assert until(lambda wanted=wanted: received(context, "pushed") == wanted), received(context, "pushed")
    assert received(context, "never") is None
    context.write(".site/received/broken", "{")
    assert received(context, "broken") is None


def test_the_page_that_is_shown_is_asked(context: TaskContext, page: Page) -> None:
    context.desktop.perform(LeftClick(page.centre("#on")))
    page.until("document.title === 'Second page'")
    assert (page.url, page.title) == (f"{ADDRESS}second.html", "Second page")
    context.desktop.perform(KeyPress(["ctrl", "t"]))
    # On a busy machine a new tab takes longer than the screen is waited for, and is there before it is shown.
    assert until(lambda: len(page.tabs()) == 2 and page.title != "Second page")
    context.desktop.perform(KeyPress(["ctrl", "l"]), Type("localhost"), KeyPress(["Delete"]), KeyPress(["Return"]))
    page.until("document.title === 'Erste Seite'", timeout=PATIENCE)
    assert len(page.tabs()) == 2
    context.desktop.perform(KeyPress(["ctrl", "w"]))
    page.until("document.title === 'Second page'")


def test_nothing_outside_is_reached(page: Page) -> None:
    assert page.evaluate("fetch('http://localhost/second.html').then(answer => answer.status)") == 200
    assert page.evaluate("fetch('http://localhost/third.html').then(answer => answer.status)") == 404
    # Whatever its name: it is the same server, which has no such page.
    asked = "fetch('http://deskhand.example/x', { mode: 'no-cors' }).then(answer => answer.type)"
    assert page.evaluate(asked) == "opaque"


def test_nobody_hears_of_what_is_asked(context: TaskContext, page: Page) -> None:
    heard = []

    class Hears:
        def before(self, operation: Operation) -> None:
            heard.append(operation)

        def after(self, operation: Operation, token: object, outcome: object) -> None:
            del operation, token, outcome

    with Page(replace(context, desktop=context.desktop.also(Hears()))) as other:
        assert other.title == page.title
    assert heard == []


def test_a_browser_that_is_not_there() -> None:
    with deskhand.launch(home=True, size=(640, 480)) as desktop:
        assert desktop.host.home is not None
        context = TaskContext(desktop, {}, desktop.host.home)
        with Page(context) as page:
            assert page.tabs() == []
            assert not page.is_open
            with pytest.raises(BackendError, match="the browser shows no page"):
                page.evaluate("1")
            # What a browser that has ended leaves.
            context.write(".browser/DevToolsActivePort", "1\n/devtools/browser/x")
            assert not page.is_open
