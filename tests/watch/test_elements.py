"""The element below a viewer's pointer: what is shown of it, to whom, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from conformance.servers import serving
from deskhand import Move, watch
from deskhand.desktop.access import bare, core_of
from deskhand.desktop.onlooker import Onlooker
from deskhand.watch.mirror import Mirror
from deskhand.watch.pointing import Pointing
from elements.puppet import Puppet
from faults.helpers import until
from watch.test_attacks import enter, socket, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.watch import Server
    from watch.browser import Viewer

LIMIT = 20.0
HOSTILE = "<img src=x onerror=alert(1)>"
PASSWORD = "correct horse battery"
OUTLINE = "[...document.querySelectorAll('#outline rect')].map(r => ['x', 'y', 'width', 'height'].map(n => +r.getAttribute(n)))"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[deskhand.Desktop, Server]]:
    home = tmp_path_factory.mktemp("home")
    with (
        deskhand.launch(size=(800, 600), env={"HOME": str(home)}) as desktop,
        watch.serve(desktop) as server,
    ):
        yield desktop, server


@pytest.fixture(scope="module")
def puppet(watched: tuple[deskhand.Desktop, Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puppet]:
    made = Puppet(watched[0], tmp_path_factory.mktemp("puppet") / "socket")
    made.run(f"button({HOSTILE!r}, 20, 20)")
    made.run(f"entry('Password', 20, 200, {PASSWORD!r}, secret=True)")
    watched[0].find("button", HOSTILE).wait_for("visible", timeout=LIMIT)
    yield made
    made.close()


def _element(desktop: deskhand.Desktop, role: str, name: str) -> Any:
    return bare(desktop).find(role, name).element()


def test_the_element_below_the_pointer_is_outlined_and_named(
    watched: tuple[deskhand.Desktop, Server], puppet: Puppet, opened: Callable[..., Viewer]
) -> None:
    desktop, _ = watched
    button = _element(desktop, "button", HOSTILE)
    viewer = opened("watch")
    viewer.page.mouse.move(*viewer.at(*button.point))
    assert not viewer.shown("#pointed")
    viewer.page.focus("#elements")
    viewer.page.keyboard.press("Enter")
    assert viewer.page.get_attribute("#elements", "aria-pressed") == "true"
    viewer.page.mouse.move(*viewer.at(button.point.x + 1, button.point.y))
    viewer.wait_shown("#pointed")
    assert viewer.text("#pointed") == f"button{HOSTILE}{button.ref}"
    assert viewer.page.evaluate(OUTLINE) == [list(button.box)]
    assert viewer.page.evaluate("document.querySelectorAll('#pointed img').length") == 0
    # It has moved on the desktop, and the pointer rests.
    puppet.run(f"place.move(widgets[{HOSTILE!r}], 20, 60)")
    viewer.wait_text("#pointed", "Puppet")
    viewer.page.mouse.move(*viewer.at(790, 20))
    viewer.wait_text("#pointed", "There is no element here.")
    assert viewer.page.evaluate(OUTLINE) == []
    viewer.page.click("#elements")
    viewer.wait_hidden("#pointed")
    viewer.page.mouse.move(*viewer.at(*button.point))
    desktop.perform(Move((3, 3)))
    viewer.wait_text("#operations", "3, 3")
    assert not viewer.shown("#pointed")


def _pointed(made: Any, x: int, y: int) -> dict[str, Any]:
    """What a page is told of a place, where it is known."""
    while True:
        made.send(json.dumps({"type": "point", "x": x, "y": y}))
        found: dict[str, Any] = {}
        while not found:
            told = turn(made)
            assert PASSWORD not in json.dumps(told)
            found = told.get("pointed", {})
        if found["at"] == [x, y] and "not known yet" not in found["none"]:
            return found


def test_what_is_written_in_an_element_is_never_told(watched: tuple[deskhand.Desktop, Server], puppet: Puppet) -> None:
    desktop, server = watched
    assert puppet.run(f"widgets['Password'].get_text() == {PASSWORD!r}")
    field = _element(desktop, "textbox", "Password")
    with socket(server, enter(server, "watch")) as made:
        found = _pointed(made, *field.point)
    assert found["element"] == {"ref": field.ref, "role": "textbox", "name": "Password", "box": list(field.box)}


def test_nobody_waits_for_the_elements(
    watched: tuple[deskhand.Desktop, Server], puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the agent nor the picture, of this viewer and of another."""
    desktop, server = watched
    del puppet
    begun, go = threading.Event(), threading.Event()
    read = Onlooker.read

    def slow(self: Onlooker, *arguments: Any) -> Any:
        begun.set()
        assert go.wait(LIMIT)
        return read(self, *arguments)

    monkeypatch.setattr(Onlooker, "read", slow)
    with socket(server, enter(server, "watch")) as made, socket(server, enter(server, "watch")) as other:
        turn(made)
        turn(other)

        def asked() -> bool:
            made.send(json.dumps({"type": "point", "x": 50, "y": 50}))
            return begun.wait(0.1)

        until(asked, LIMIT, "a reading")
        for each in range(40):
            # More than there are threads for pictures.
            made.send(json.dumps({"type": "point", "x": 50, "y": each}))
            other.send(json.dumps({"type": "point", "x": 60, "y": each}))
        assert desktop.perform(Move((200, 201))).size == desktop.size
        assert core_of(desktop).elements.read(2.0) is not None
        for each in (made, other):
            told: list[dict[str, Any]] = []
            while not any(row["title"] == "move 200, 201" for one in told for row in one.get("operations", [])):
                told.append(turn(each))
            # But for what was asked before the reading began.
            assert all(one["pointed"]["at"] == [50, 50] for one in told if "pointed" in one)
        go.set()
        # Of those that waited, the last.
        for each, x in ((made, 50), (other, 60)):
            found: list[Any] = []
            while not found or found[-1]["at"] != [x, 39]:
                found += [one["pointed"] for one in [turn(each)] if "pointed" in one]
            assert len(found) <= 3


def test_a_private_hold_hides_the_elements(watched: tuple[deskhand.Desktop, Server], puppet: Puppet) -> None:
    desktop, server = watched
    button = _element(desktop, "button", HOSTILE)
    with socket(server, enter(server, "watch")) as made:
        assert _pointed(made, *button.point)["element"]["name"] == HOSTILE
        with desktop.control.take("Ada", private=True):
            while not turn(made).get("state", {}).get("hidden"):
                pass
            made.send(json.dumps({"type": "point", "x": button.point.x, "y": button.point.y}))
            puppet.run("window.set_title('Puppet 2')")
        told: list[dict[str, Any]] = []
        while not any("state" in one and not one["state"]["hidden"] for one in told):
            told.append(turn(made))
        assert not any("pointed" in one for one in told)
        assert _pointed(made, *button.point)["element"]["name"] == HOSTILE
        puppet.run("window.set_title('Puppet')")


def test_references_are_those_of_the_agent_after_the_bus_has_gone(
    watched: tuple[deskhand.Desktop, Server], puppet: Puppet
) -> None:
    desktop, server = watched
    del puppet
    button = _element(desktop, "button", HOSTILE)
    with socket(server, enter(server, "watch")) as made:
        assert _pointed(made, *button.point)["element"]["ref"] == button.ref
        core = core_of(desktop)
        with core.turn():
            core.elements.close()
        found = _pointed(made, *button.point)
        assert _element(desktop, "button", HOSTILE).ref == found["element"]["ref"]


def _said(desktop: deskhand.Desktop) -> str:
    mirror = Mirror(desktop, lambda: None)
    pointing = Pointing(desktop, mirror)
    threads = ThreadPoolExecutor(1)
    mirror.start()
    try:
        said: list[str] = []

        def known() -> bool:
            # In a thread: Playwright has a loop in this one.
            said.append(threads.submit(asyncio.run, pointing.at(5, 5)).result()["none"])
            return "not known yet" not in said[-1]

        until(known, LIMIT, "an answer")
        return said[-1]
    finally:
        pointing.rest()
        threads.shutdown()
        mirror.stop(wait=True)


def test_where_there_is_no_bus_it_is_said(tmp_path: Path) -> None:
    with serving("xvnc") as place, place.connect() as desktop:
        assert "there is no accessibility bus" in _said(desktop)
    with deskhand.launch(size=(320, 240), window_manager=None, elements=False, env={"HOME": str(tmp_path)}) as plain:
        assert "there is no accessibility bus" in _said(plain)
