"""The page in a real browser: its pixels, a person's input, several viewers, questions, and texts that would be markup."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

import deskhand
from deskhand import (
    DeskhandError,
    DesktopHeld,
    KeyPress,
    LeftClick,
    MouseDown,
    MouseUp,
    Move,
    PolicyDenied,
    PressKeys,
    ReleaseKeys,
    Scroll,
    Type,
    watch,
)
from deskhand.desktop.access import bare
from deskhand.providers import mcp
from faults.helpers import until
from integration.apps import environment_of
from integration.observer import Observer
from unit.held import Call
from watch.browser import Viewer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Route

    from deskhand.policy.questions import Questions
    from deskhand.watch import Server
    from watch.painter import Painter

CHANGES = 300 if os.environ.get("DESKHAND_EVIDENCE") == "1" else 20
LIMIT = 20.0
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    "\"'><svg/onload=alert(3)>",
    "javascript:alert(4)",
    "{{constructor.constructor('alert(5)')()}}",
    "</textarea><iframe srcdoc='<script>alert(6)</script>'>",
    "\u202ecod.exe\u2066 <b>bold</b>",
    "&lt;img src=x onerror=alert(7)&gt;",
)


def test_every_pixel_of_the_page_is_the_desktops_after_each_change(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], painter: Painter
) -> None:
    desktop, _ = watched
    viewer = opened("watch")
    chance = random.Random(7)
    for number in range(CHANGES):
        painter.paint(number)
        if chance.random() < 0.5:
            bare(desktop).perform(Move((chance.randrange(800), chance.randrange(600))), settle=False)
        viewer.wait_same(desktop)


def test_a_new_size_of_the_screen_is_shown(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch")
    try:
        desktop.resize((640, 480))
        viewer.wait_live(desktop)
    finally:
        desktop.resize((800, 600))
    viewer.wait_live(desktop)


def _events(observer: Observer) -> list[tuple[Any, ...]]:
    """What arrived of keys and buttons: moves between are as many as the browser makes."""
    return [
        (
            event["kind"],
            event.get("name") or event.get("button"),
            event["down"],
            *(event["at"] if event["kind"] == "button" else ()),
        )
        for event in observer.events()
        if event["kind"] != "motion"
    ]


def _typed(events: list[tuple[Any, ...]]) -> list[str]:
    return [name for kind, name, down, *_ in events if kind == "key" and down and not name.startswith("Shift")]


def test_input_on_the_page_makes_the_events_of_the_api(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    page = viewer.page
    with Observer(environment_of(desktop)) as observer:
        desktop.perform(MouseDown("left", (100, 80)), MouseUp("left", (100, 80)))
        desktop.perform(MouseDown("right", (300, 200)), MouseUp("right", (300, 200)))
        desktop.perform(
            PressKeys(["ctrl"]), MouseDown("left", (50, 50)), MouseUp("left", (50, 50)), ReleaseKeys(["ctrl"])
        )
        desktop.perform(
            Scroll((400, 300), direction="down", magnitude=2), Scroll((400, 300), direction="up", magnitude=1)
        )
        desktop.perform(
            PressKeys(["Enter"]), ReleaseKeys(["Enter"]), PressKeys(["ArrowLeft"]), ReleaseKeys(["ArrowLeft"])
        )
        desktop.perform(PressKeys(["ctrl"]), KeyPress(["s"]), ReleaseKeys(["ctrl"]))
        by_api = _events(observer)

        viewer.take()
        page.mouse.click(*viewer.at(100, 80))
        page.mouse.click(*viewer.at(300, 200), button="right")
        page.keyboard.down("Control")
        page.mouse.click(*viewer.at(50, 50))
        page.keyboard.up("Control")
        page.mouse.move(*viewer.at(400, 300))
        page.mouse.wheel(0, 200)
        page.mouse.wheel(0, -100)
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Control+s")
        by_page: list[tuple[Any, ...]] = []

        def complete() -> bool:
            by_page.extend(_events(observer))
            return len(by_page) >= len(by_api)

        until(complete, LIMIT, f"all of {by_api}, of which came {by_page}")
        assert by_page == by_api
        viewer.hand_back()
    viewer.wait_same(desktop)


def test_texts_of_any_layout_and_input_methods_arrive(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    page = viewer.page
    with Observer(environment_of(desktop)) as observer:
        desktop.perform(Type("aBé€ж日本"))
        by_api = _typed(_events(observer))
        viewer.take()
        page.keyboard.type("aB")
        # Characters that the keyboard of this browser has not come as an input method gives them.
        for text in ("é", "€", "ж"):
            page.keyboard.insert_text(text)
        client = viewer.context.new_cdp_session(page)
        client.send("Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3})
        client.send("Input.insertText", {"text": "日本"})
        by_page: list[str] = []

        def complete() -> bool:
            by_page.extend(_typed(_events(observer)))
            return len(by_page) >= len(by_api)

        until(complete, LIMIT, f"all of {by_api}, of which came {by_page}")
        assert by_page == by_api
        viewer.hand_back()


def test_the_clipboard_goes_both_ways(watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]) -> None:
    desktop, server = watched
    viewer = opened("watch", "control", permissions=["clipboard-read", "clipboard-write"])
    viewer.take()
    viewer.page.click("#paste")
    viewer.page.fill("#paste-text", "to the desktop <b>")
    viewer.page.click("#paste-dialog button[value=keep]")
    until(lambda: not desktop.control.holder or server.application._roster.shown[0].input is not None, LIMIT, "a hold")
    viewer.hand_back()
    assert desktop.clipboard.read() == "to the desktop <b>"
    desktop.clipboard.write("from the desktop <i>")
    viewer.take()
    viewer.page.click("#copy")
    viewer.wait_shown("#copy-dialog")
    assert viewer.page.input_value("#copy-text") == "from the desktop <i>"
    viewer.page.click("#copy-dialog button[value=copy]")
    viewer.wait_toast("Copied.")
    assert viewer.page.evaluate("navigator.clipboard.readText()") == "from the desktop <i>"
    viewer.hand_back()


def test_the_agent_is_refused_while_a_person_has_control_and_reads_the_note(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control", name="Ada")
    desktop.perform(PressKeys(["shift"]))
    viewer.take()
    assert desktop.pressed == ()
    with pytest.raises(DesktopHeld, match="Ada has had control"):
        desktop.perform(LeftClick((10, 10)))
    viewer.wait_text("#operations", "refused")
    viewer.page.keyboard.down("Control")
    viewer.hand_back("Signed in.")
    assert desktop.perform().notes[-1].endswith("and says: Signed in.")
    assert desktop.pressed == ()


def test_closing_the_page_hands_the_desktop_back(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    viewer.take()
    viewer.page.mouse.move(*viewer.at(30, 30))
    viewer.page.mouse.down()
    viewer.page.close()
    until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")
    desktop.perform(LeftClick((10, 10)))


def test_a_private_hold_hides_the_desktop_from_other_viewers(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], painter: Painter
) -> None:
    desktop, _ = watched
    mine, other = opened("watch", "control", name="Ada"), opened("watch", "control", name="Bo")
    mine.take(private=True)
    other.wait_shown("#curtain")
    assert other.picture().getextrema() == ((0, 0), (0, 0), (0, 0))
    painter.paint(3)
    with pytest.raises(DesktopHeld):
        desktop.screenshot()
    assert other.picture().getextrema() == ((0, 0), (0, 0), (0, 0))
    assert "Ada has control privately" in other.text("#curtain")
    mine.hand_back()
    other.wait_hidden("#curtain")
    other.wait_same(desktop)
    mine.wait_same(desktop)


def test_control_is_taken_over_from_another_viewer_only_on_purpose(opened: Callable[..., Viewer]) -> None:
    mine, other = opened("watch", "control", name="Ada"), opened("watch", "control", name="Bo")
    mine.take()
    other.wait_text("#state", "Ada has control")
    other.page.click("#take")
    assert "Ada has control" in other.text("#take-text")
    other.page.click("#take-yes")
    other.wait_shown("#hands")
    mine.wait_hidden("#hands")
    other.hand_back()


def test_a_slow_viewer_gets_what_is_true_then_and_no_queue(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], painter: Painter
) -> None:
    desktop, _ = watched
    slow, fast, leaving = opened("watch"), opened("watch"), opened("watch")
    # It draws nothing from now on.
    slow.page.evaluate(
        "() => { const decode = createImageBitmap; window.held = [];"
        " createImageBitmap = (...all) => new Promise((go) => window.held.push(() => go(decode(...all)))); }"
    )
    before = slow.picture()
    for number in range(10):
        painter.paint(number)
        fast.wait_same(desktop)
        if number == 4:
            leaving.close()
    assert slow.picture().tobytes() == before.tobytes()
    # One update waits to be drawn, and no more were sent.
    first = slow.page.evaluate("window.held.length")
    assert 1 <= first <= 64
    painter.paint(11)
    fast.wait_same(desktop)
    assert slow.page.evaluate("window.held.length") == first
    slow.page.evaluate(
        "() => { const all = window.held; window.held = { push: (go) => go() }; for (const go of all) go(); }"
    )
    slow.wait_same(desktop)


def test_operations_are_listed_drawn_and_filtered(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch")
    desktop.perform(LeftClick((321, 123)))
    desktop.perform(Type("needle"))
    viewer.wait_text("#operations", "needle")
    viewer.wait_text("#operations", "321, 123")
    viewer.page.fill("#filter", "needle")
    visible = "[...document.querySelectorAll('#operations li')].filter(row => !row.hidden).length"
    assert viewer.page.evaluate(visible) == 1
    viewer.page.fill("#filter", "")
    row = viewer.page.locator("#operations li", has_text="321, 123").first
    row.click()
    assert viewer.page.evaluate(
        "[...document.querySelectorAll('#marks .dot')].map(dot => [dot.getAttribute('cx'), dot.getAttribute('cy')])"
    ) == [["321", "123"]]


def test_pause_step_and_resume(watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    viewer.page.click("#pause")
    viewer.wait_text("#state", "Paused")
    done: list[int] = []

    def agent() -> None:
        for number in range(2):
            desktop.perform(Move((10 + number, 10)))
            done.append(number)

    thread = threading.Thread(target=agent)
    thread.start()
    viewer.wait_text("#waiting", "perform")
    assert done == []
    viewer.page.click("#step")
    until(lambda: done == [0], LIMIT, "one step")
    viewer.page.click("#pause")
    thread.join(60)
    assert done == [0, 1]
    viewer.wait_text("#state", "Live")


def _asks(desktop: deskhand.Desktop, answers: list[object], command: str = "true") -> threading.Thread:
    def agent() -> None:
        try:
            answers.append(desktop.host.run(command, env={"SECRET_PLACE": "/srv/<i>"}).exit_code)
        except PolicyDenied as error:
            answers.append(str(error))
        except DeskhandError as error:
            answers.append(error)

    thread = threading.Thread(target=agent)
    thread.start()
    return thread


def test_questions_are_shown_completely_and_answered(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], questions: Questions
) -> None:
    desktop, _ = watched
    viewer, watcher = opened("watch", "approve", name="Ada"), opened("watch")
    answers: list[object] = []
    thread = _asks(desktop, answers)
    viewer.wait_shown(".question")
    text = viewer.text(".question")
    assert "true" in text
    assert "SECRET_PLACE" in text
    assert "/srv/<i>" in text
    watcher.wait_shown(".question")
    assert not watcher.shown(".question button")
    viewer.page.keyboard.press("Tab")
    viewer.page.locator(".question button", has_text="Deny").focus()
    viewer.page.keyboard.press("Enter")
    thread.join(60)
    assert "Ada" in str(answers)
    viewer.wait_hidden(".question")
    for each in (viewer, watcher):
        each.wait_text("#operations .denied .title", "host shell: true")
        assert "denied" in each.text("#operations .denied .about")
        assert each.text("#operations .denied .text") == answers[0]
    thread = _asks(desktop, answers)
    viewer.wait_shown(".question")
    viewer.page.locator(".question button", has_text="Allow once").click()
    thread.join(60)
    assert answers[1] == 0
    assert questions.pending == ()
    viewer.wait_text("#operations .done .title", "host shell: true")
    assert viewer.page.evaluate("document.querySelectorAll('#operations .denied').length") == 1


def test_a_request_for_help_is_shown_and_declined(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control", name="Ada")
    desktop.hand_over("please sign in <b>here</b>")
    viewer.wait_text("#waiting", "please sign in <b>here</b>")
    viewer.page.locator(".request button", has_text="Decline").click()
    viewer.wait_hidden(".request")
    assert "Ada declined" in desktop.perform().notes[-1]


def test_a_models_request_is_answered_on_the_page(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    """The tool that a model asks a person with, and the person who signs in and hands back."""
    desktop, _ = watched
    viewer = opened("watch", "control", name="Ada")
    arguments = {"reason": "please sign in", "wait": 120}
    asking = Call(lambda: mcp.run(desktop, {"name": "hand_over", "arguments": arguments}, hand_over=True))
    viewer.wait_text(".request", "please sign in")
    viewer.page.locator(".request button", has_text="Take control").click()
    viewer.page.click("#take-yes")
    viewer.wait_shown("#hands")
    viewer.page.mouse.click(*viewer.at(123, 45))
    viewer.hand_back("signed in as Ada")
    text, picture = asking.end()["content"]
    assert text["text"].endswith("and says: signed in as Ada")
    assert picture["mimeType"] == "image/png"
    assert tuple(desktop.pointer) == (123, 45)
    viewer.wait_hidden(".request")


def test_no_text_of_the_desktop_becomes_markup(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control", "approve", name="<b>Ada</b>")
    page = viewer.page
    tags = "[...document.querySelectorAll('*')].map(each => each.tagName.toLowerCase())"
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames()).filter(name => /^on/.test(name))"
    )
    before = page.evaluate(f"{tags}.filter(tag => ['img', 'script', 'iframe', 'textarea', 'svg'].includes(tag))")
    for text in HOSTILE:
        # The policy limits keys a second; the list has what was refused, too.
        with contextlib.suppress(DeskhandError):
            desktop.perform(Type(text), settle=False)
        desktop.hand_over(text)
    answers: list[object] = []
    thread = _asks(desktop, answers, " ".join(HOSTILE))
    viewer.wait_shown(".question")
    viewer.wait(f"document.querySelectorAll('.request').length === {len(HOSTILE)}")
    viewer.wait("document.querySelectorAll('#operations li').length > 8")
    # It is shown as it is, and what cannot be seen as an escape.
    assert "<script>alert(2)</script>" in viewer.text(".question")
    assert "\\u202e" in viewer.text(".question")
    desktop.clipboard.write(HOSTILE[0])
    viewer.take()
    page.click("#copy")
    viewer.wait_shown("#copy-dialog")
    page.click("#copy-dialog button[value=close]")
    assert page.evaluate(handlers) == []
    after = page.evaluate(f"{tags}.filter(tag => ['img', 'script', 'iframe', 'textarea', 'svg'].includes(tag))")
    assert after == before
    assert not {"b", "i", "iframe"} & set(page.evaluate(tags))
    page.locator(".question button", has_text="Deny").click()
    thread.join(60)
    viewer.hand_back(HOSTILE[1])


def test_a_script_of_another_place_is_not_run(opened: Callable[..., Viewer]) -> None:
    viewer = opened("watch")
    failed = "eval('1')", "document.body.innerHTML = '<p>'", "new Function('1')()"
    for script in failed:
        said = viewer.page.evaluate(
            "(script) => { const made = document.createElement('script');"
            " try { made.text = script; document.head.append(made); } catch (error) { return error.name; } return 'run'; }",
            script,
        )
        assert said == "TypeError"
    viewer.errors.clear()


def test_the_page_is_used_on_a_phone(watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control", viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    until(lambda: viewer.page.evaluate(fits), LIMIT, "the page to be laid out in its width")
    with Observer(environment_of(desktop)) as observer:
        viewer.take()
        viewer.page.touchscreen.tap(*viewer.at(200, 150))
        seen: list[tuple[Any, ...]] = []

        def came() -> bool:
            seen.extend(_events(observer))
            return len(seen) >= 2

        until(came, LIMIT, "a tap")
        assert [event[:3] for event in seen] == [("button", 1, True), ("button", 1, False)]
        assert all(abs(event[3] - 200) <= 2 and abs(event[4] - 150) <= 2 for event in seen)
        viewer.hand_back()


def test_a_revoked_grant_ends_the_page(watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]) -> None:
    desktop, server = watched
    viewer = opened("watch", "control", name="leaving")
    viewer.take()
    (grant,) = [each for each in server.grants.all() if each.name == "leaving"]
    assert server.grants.revoke(grant)
    viewer.wait_text("#gate-text", "Ask for a new link")
    until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")
    viewer.reload()
    viewer.wait_text("#gate-text", "link")
    viewer.errors.clear()


def test_a_link_works_once_and_the_page_again(watched: tuple[deskhand.Desktop, Server], browser: Browser) -> None:
    desktop, server = watched
    link = server.link("watch")
    first = Viewer(browser, link)
    first.wait_live(desktop)
    assert "#" not in first.page.url
    assert first.page.evaluate("document.cookie") == ""
    first.reload()
    first.wait_live(desktop)
    second = Viewer(browser, link)
    second.wait_text("#gate-text", "used already")
    assert not second.shown("#live")
    first.close()
    second.close()


@pytest.mark.parametrize("used", [False, True])
def test_a_link_that_got_no_answer_works_when_the_page_is_loaded_again(
    watched: tuple[deskhand.Desktop, Server], browser: Browser, *, used: bool
) -> None:
    desktop, server = watched
    viewer = Viewer(browser, "about:blank")

    def lose(route: Route) -> None:
        if used:
            assert route.fetch().ok
        route.abort()

    viewer.page.route("**/session", lose)
    viewer.open(server.link("watch"))
    viewer.wait_text("#gate-text", "The server does not answer. Load the page again.")
    viewer.page.unroute("**/session")
    viewer.reload()
    viewer.wait_live(desktop)
    assert "#" not in viewer.page.url
    viewer.close()


def test_a_page_asks_again_when_an_answer_is_lost(watched: tuple[deskhand.Desktop, Server], browser: Browser) -> None:
    desktop, server = watched
    viewer = Viewer(browser, "about:blank")
    lost = []

    def lose(route: Route) -> None:
        lost.append(route.fetch().ok)
        route.abort()

    viewer.page.route("**/session", lose, times=1)
    viewer.open(server.link("watch"))
    viewer.wait_live(desktop)
    assert lost == [True]
    viewer.close()


def test_the_page_says_when_the_desktop_is_gone(browser: Browser, tmp_path: Path) -> None:
    desktop = deskhand.launch(size=(400, 300), window_manager=None, env={"HOME": str(tmp_path)})
    with watch.serve(desktop) as server:
        viewer = Viewer(browser, server.link("watch"))
        viewer.wait_live(desktop)
        desktop.close()
        viewer.wait_text("#curtain", "closed")
        viewer.close()


def test_stop_is_the_kill_switch(browser: Browser, tmp_path: Path) -> None:
    with (
        deskhand.launch(size=(400, 300), window_manager=None, env={"HOME": str(tmp_path)}) as desktop,
        watch.serve(desktop) as server,
    ):
        viewer = Viewer(browser, server.link("approve", name="Ada"))
        viewer.wait_live(desktop)
        viewer.page.click("#stop")
        viewer.page.click("#stop-dialog button.danger")
        viewer.wait_text("#state", "Stopped")
        with pytest.raises(PolicyDenied, match="Ada stopped it"):
            desktop.perform(LeftClick((10, 10)))
        viewer.close()


def test_a_picture_has_the_cursor(watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]) -> None:
    desktop, _ = watched
    viewer = opened("watch")
    for at in ((0, 0), (799, 599), (400, 300)):
        desktop.perform(Move(at))
        viewer.wait_same(desktop)
    with_cursor = desktop.screenshot(format="raw")
    without = desktop.screenshot(format="raw", cursor=False)
    assert with_cursor.data != without.data
    assert Image.frombytes("RGB", with_cursor.size, with_cursor.data).tobytes() == viewer.picture().tobytes()
