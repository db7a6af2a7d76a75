"""The page as people use it without thinking of it: two buttons at once, a lost connection, a new link in the same tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand.desktop.access import bare
from faults.helpers import until
from integration.apps import environment_of
from integration.observer import Observer
from watch.browser import Viewer
from watch.pictures import DROP, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    import deskhand
    from deskhand.watch import Server

LIMIT = 20.0
# Keeps the page's socket where a test reaches it.
_KEEP_SOCKET = """() => {
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...all) { window.socket = this; return send.apply(this, all); };
}"""
_PASTE = """(text) => {
  const pasted = new DataTransfer();
  pasted.setData('text/plain', text);
  document.querySelector('#keys').dispatchEvent(new ClipboardEvent('paste', { clipboardData: pasted, cancelable: true }));
}"""


@pytest.fixture
def observer(watched: tuple[deskhand.Desktop, Server]) -> Iterator[Observer]:
    with Observer(environment_of(watched[0])) as made:
        yield made


class Seen:
    """What an application got."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.all: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        self.all += self._observer.events()
        return self.all

    def of(self, *kinds: str) -> list[tuple[Any, ...]]:
        return [
            (each["kind"], each.get("name") or each.get("button"), each["down"])
            for each in self.read()
            if each["kind"] in kinds
        ]

    def wait(self, wanted: list[tuple[Any, ...]]) -> None:
        kinds = {kind for kind, *_ in wanted}
        until(lambda: len(self.of(*kinds)) >= len(wanted), LIMIT, f"all of {wanted}, of which came {self.all}")
        assert self.of(*kinds) == wanted


def test_buttons_that_are_pressed_together_are_released_each(opened: Callable[..., Viewer], observer: Observer) -> None:
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.take()
    mouse = viewer.page.mouse
    mouse.move(*viewer.at(100, 100))
    mouse.down(button="left")
    mouse.down(button="right")
    mouse.up(button="left")
    mouse.move(*viewer.at(120, 100))
    mouse.up(button="right")
    seen.wait([("button", 1, True), ("button", 3, True), ("button", 1, False), ("button", 3, False)])
    viewer.hand_back()


def test_the_back_button_of_a_mouse_does_not_leave_the_page(opened: Callable[..., Viewer], observer: Observer) -> None:
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.page.evaluate("history.pushState(null, '', '#/'), history.pushState(null, '', '#/0')")
    viewer.take()
    x, y = viewer.at(100, 100)
    client = viewer.context.new_cdp_session(viewer.page)
    for kind, held in (("mousePressed", 8), ("mouseReleased", 0)):
        press = {"type": kind, "x": x, "y": y, "button": "back", "buttons": held, "clickCount": 1}
        client.send("Input.dispatchMouseEvent", press)
    seen.wait([("button", 8, True), ("button", 8, False)])
    assert viewer.page.evaluate("location.hash") == "#/0"
    viewer.hand_back()


def test_a_wheel_that_the_browser_turned_sideways_for_shift_is_a_wheel_with_shift(
    opened: Callable[..., Viewer], observer: Observer
) -> None:
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.take()
    viewer.page.mouse.move(*viewer.at(100, 100))
    viewer.page.keyboard.down("Shift")
    viewer.page.mouse.wheel(100, 0)
    viewer.page.keyboard.up("Shift")
    seen.wait([("button", 5, True), ("button", 5, False)])
    viewer.hand_back()


def test_a_drag_goes_on_while_the_window_changes_its_size(opened: Callable[..., Viewer], observer: Observer) -> None:
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.take()
    mouse = viewer.page.mouse
    mouse.move(*viewer.at(100, 100))
    mouse.down()
    for width, height in ((700, 500), (1300, 900), (360, 300)):
        viewer.page.set_viewport_size({"width": width, "height": height})
        mouse.move(*viewer.at(400, 300))
        until(lambda: any(each.get("at") == [400, 300] for each in seen.read()), LIMIT, "the pointer there")
        mouse.move(*viewer.at(200, 200))
        until(lambda: seen.read()[-1].get("at") == [200, 200], LIMIT, "the pointer there")
        seen.all.clear()
        assert not seen.of("button")
    # Outside of the window is the edge of the screen.
    mouse.move(-50, -50)
    mouse.up()
    until(lambda: seen.of("button"), LIMIT, "the release")
    assert seen.of("button") == [("button", 1, False)]
    assert seen.read()[-1]["at"] == [0, 0]
    viewer.hand_back()


def test_what_is_pressed_is_released_when_the_page_is_loaded_again(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer], observer: Observer
) -> None:
    desktop, _ = watched
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.take()
    viewer.page.keyboard.down("ArrowLeft")
    seen.wait([("key", "Left", True)])
    viewer.reload()
    # A server repeats a key that is down.
    until(lambda: seen.of("key")[-1] == ("key", "Left", False), LIMIT, "the release")
    seen.all.clear()
    viewer.wait_live(desktop)
    viewer.take()
    # The key is still down, and repeats.
    viewer.page.keyboard.down("ArrowLeft")
    viewer.page.keyboard.up("ArrowLeft")
    viewer.page.keyboard.press("ArrowUp")
    until(lambda: ("key", "Up", False) in seen.of("key"), LIMIT, "the next key")
    assert [each for each in seen.of("key") if each[1] != "Left"] == [("key", "Up", True), ("key", "Up", False)]
    viewer.hand_back()


def test_a_lost_connection_in_the_middle_of_a_file_is_told(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    viewer.page.evaluate(_KEEP_SOCKET)
    viewer.take()
    # It never has a second piece.
    viewer.page.evaluate(
        "() => { const slice = Blob.prototype.slice; Blob.prototype.slice = function (from, to) {"
        " return from ? { arrayBuffer: () => new Promise(() => {}) } : slice.call(this, from, to); }; }"
    )
    viewer.page.evaluate(DROP, [[text_of(bytes(400_000)), "held.bin"], [text_of(b"x"), "waits.bin"]])
    viewer.wait_text("#transfer-text", "128 KiB of 391 KiB")
    viewer.page.evaluate("window.socket.close()")
    viewer.wait_toast("held.bin and 1 more are not sent")
    viewer.wait_hidden("#hands")
    viewer.wait_toast("You do not have control any more")
    viewer.wait_live(desktop)
    viewer.wait_text("#take", "Take control")


def test_the_buttons_of_a_hold_end_with_it(opened: Callable[..., Viewer]) -> None:
    touch = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    viewer, other = opened("watch", "control", **touch), opened("watch", "control", name="Bo")
    viewer.take()
    viewer.page.click("button[data-modifier=ctrl]")
    # A long touch is about to become a click of the right button.
    x, y = viewer.at(100, 100)
    client = viewer.context.new_cdp_session(viewer.page)
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    other.page.click("#take")
    other.page.click("#take-yes")
    other.wait_shown("#hands")
    viewer.wait_toast("You do not have control any more")
    other.hand_back()
    viewer.take()
    assert viewer.page.get_attribute("button[data-modifier=ctrl]", "aria-pressed") == "false"
    viewer.page.evaluate("new Promise((done) => setTimeout(done, 800))")  # longer than a long touch
    # On a busy machine the click may have begun before the other one took control: that is told.
    errors = viewer.page.locator(".toast.error").all_text_contents()
    assert [error for error in errors if "this call was broken off" not in error] == []
    viewer.hand_back()


def test_a_finger_drags_and_no_keyboard_comes_up(opened: Callable[..., Viewer], observer: Observer) -> None:
    touch = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 3}
    viewer, seen = opened("watch", "control", **touch), Seen(observer)
    viewer.take()
    client = viewer.context.new_cdp_session(viewer.page)
    for kind, places in (
        ("touchStart", [(100, 100)]),
        ("touchMove", [(200, 160)]),
        ("touchMove", [(500, 400)]),
        ("touchEnd", []),
    ):
        points = [dict(zip("xy", viewer.at(*place), strict=True)) for place in places]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    seen.wait([("button", 1, True), ("button", 1, False)])
    down, up = (each["at"] for each in seen.all if each["kind"] == "button")
    assert max(abs(down[0] - 100), abs(down[1] - 100), abs(up[0] - 500), abs(up[1] - 400)) <= 2
    # It would cover half of the picture with each touch.
    assert viewer.page.evaluate("document.activeElement.id") != "keys"
    viewer.page.click("#keyboard")
    assert viewer.page.evaluate("document.activeElement.id") == "keys"
    viewer.page.touchscreen.tap(*viewer.at(300, 300))
    assert viewer.page.evaluate("document.activeElement.id") == "keys"
    viewer.hand_back()


def test_a_new_link_is_opened_in_the_same_tab(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, server = watched
    viewer = opened("watch", name="former")
    (grant,) = [each for each in server.grants.all() if each.name == "former"]
    server.grants.revoke(grant)
    viewer.wait_text("#gate-text", "Ask for a new link")
    viewer.open_instead(server.link("watch", name="second"))
    viewer.wait_live(desktop)
    assert "#" not in viewer.page.url
    viewer.open_instead(server.link("watch", "control", name="third"))
    viewer.wait_shown("#take")
    assert "#" not in viewer.page.url
    viewer.errors.clear()


def test_a_page_too_many_says_so_and_comes_when_there_is_room(
    watched: tuple[deskhand.Desktop, Server], browser: Browser
) -> None:
    desktop, server = watched
    viewer = Viewer(browser, server.link("watch", connections=1))
    viewer.wait_live(desktop)
    first = viewer.open_beside(server.url)
    viewer.wait_toast("close another one")
    first.close()
    viewer.wait_live(desktop)
    viewer.close()
    assert viewer.errors == []


def test_a_half_character_that_is_pasted_does_not_end_the_connection(
    watched: tuple[deskhand.Desktop, Server], opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    viewer = opened("watch", "control")
    viewer.take()
    viewer.page.evaluate(f"(({_PASTE}))('half \\ud83d of it')")
    until(lambda: bare(desktop).clipboard.read() == "half \ufffd of it", LIMIT, "the text")
    viewer.hand_back("and \U0001f600 whole")


def test_option_of_a_mac_types_what_is_on_its_keyboard(opened: Callable[..., Viewer], observer: Observer) -> None:
    viewer, seen = opened("watch", "control"), Seen(observer)
    viewer.take()
    press = (
        "(platform) => { Object.defineProperty(navigator, 'platform', { value: platform, configurable: true });"
        " document.querySelector('#keys').dispatchEvent(new KeyboardEvent('keydown',"
        " { key: '@', code: 'KeyL', altKey: true, bubbles: true, cancelable: true })); }"
    )
    viewer.page.evaluate(press, "MacIntel")
    until(lambda: ("key", "at", True) in seen.of("key"), LIMIT, "the character")
    assert not [name for _, name, _ in seen.of("key") if name.startswith("Alt")]
    viewer.page.evaluate(press, "Linux x86_64")
    until(lambda: [name for _, name, down in seen.of("key") if name == "at" and down] == ["at"] * 2, LIMIT, "Alt+@")
    assert [name for _, name, _ in seen.of("key") if name.startswith("Alt")]
    viewer.hand_back()
