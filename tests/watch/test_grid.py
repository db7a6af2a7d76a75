"""Several desktops on a page, which come and go."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import Move, watch
from deskhand.desktop.access import core_of
from deskhand.errors import ActionError, Closed
from deskhand.watch.mirror import thumbnail
from integration.apps import environment_of
from watch.browser import Viewer
from watch.clients import closed_with, enter, socket, take_control, turn, turn_and_picture
from watch.painter import Painter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from deskhand.watch import Server

SIZE = (400, 300)
# The code that a connection is closed with whose desktop is not shown.
GONE = 4404


@pytest.fixture(scope="module")
def desktops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[deskhand.Desktop]]:
    home = {"HOME": str(tmp_path_factory.mktemp("home"))}
    with contextlib.ExitStack() as held:
        yield [held.enter_context(deskhand.launch(size=SIZE, window_manager=None, env=home)) for _ in range(3)]


def test_a_grid_of_desktops(watched: tuple[deskhand.Desktop, Server], browser: Browser, tmp_path: Path) -> None:
    desktop, _ = watched
    with (
        deskhand.launch(size=(400, 300), window_manager=None, env={"HOME": str(tmp_path)}) as other,
        watch.serve({"first": desktop, "second <b>": other}) as server,
    ):
        viewer = Viewer(browser, server.link("watch"))
        viewer.wait_shown("#tiles .tile")
        viewer.wait("document.querySelectorAll('#tiles canvas')[1].width === 360")
        other.perform(Move((33, 44)))
        viewer.wait_text("#tiles", "33, 44")
        assert viewer.page.locator("#tiles h2").all_text_contents() == ["first", "second <b>"]
        viewer.page.fill("#grid-filter", "second")
        viewer.page.locator("#tiles .tile").nth(1).click()
        viewer.wait_live(other)
        viewer.page.click("#back")
        viewer.wait_shown("#grid")
        viewer.close()
        assert viewer.errors == []


def test_desktops_come_and_go(desktops: list[deskhand.Desktop], browser: Browser) -> None:
    first, second, third = desktops
    with watch.serve({}) as server, contextlib.ExitStack() as shown:
        viewer = Viewer(browser, server.link("watch"))
        viewer.wait_text("#tiles-none", "No desktop is shown yet.")
        leaving = shown.enter_context(contextlib.ExitStack())
        told = leaving.enter_context(server.showing("job 1", first))
        shown.enter_context(server.showing("job 2", second))
        viewer.wait_text("#grid-state", "2 desktops")
        viewer.wait("[...document.querySelectorAll('#tiles canvas')].every(each => each.width === 360)")
        second.perform(Move((33, 44)))
        viewer.wait_text("#tiles", "33, 44")
        viewer.page.locator("#tiles .tile").first.click()
        viewer.wait_live(first)

        leaving.close()
        viewer.wait_toast("job 1 has ended")
        viewer.wait_shown("#grid")
        viewer.wait_text("#grid-state", "1 desktop")
        tiles = viewer.page.locator("#tiles .tile")
        assert tiles.nth(0).get_attribute("aria-label") == "job 1: Ended"
        assert tiles.nth(0).get_attribute("href") is None
        told.tell("success")
        viewer.wait("document.querySelector('#tiles .pill')?.textContent === 'success'")
        # Who loads the page again, or comes later, sees how it ended.
        viewer.reload()
        viewer.wait("document.querySelector('#tiles .pill')?.textContent === 'success'")
        viewer.wait("document.querySelector('#tiles canvas')?.width === 360")

        # The place of the one that has ended is taken, and no other tile moves.
        shown.enter_context(server.showing("job 3", third))
        viewer.wait_text("#grid-state", "2 desktops")
        assert viewer.page.locator("#tiles h2").all_text_contents() == ["job 3", "job 2"]
        tiles.nth(0).click()
        viewer.wait_live(third)
        viewer.page.click("#back")
        tiles.nth(1).click()
        viewer.wait_live(second)
        viewer.close()
        assert viewer.errors == []


def test_what_is_shown_no_more_is_as_before(desktops: list[deskhand.Desktop]) -> None:
    desktop = desktops[0]
    before = core_of(desktop).interceptors
    with watch.serve({}) as server:
        for _ in range(3):
            with server.showing("job", desktop):
                assert len(core_of(desktop).interceptors) == len(before) + 2
        assert core_of(desktop).interceptors == before
    with pytest.raises(Closed, match="shows no more desktops"), server.showing("job", desktop):
        pass
    wrong: Any = 7
    with watch.serve({}) as server, pytest.raises(ActionError, match="showing: name"), server.showing(wrong, desktop):
        pass
    assert core_of(desktop).interceptors == before


def numbers(server: Server, keys: tuple[str, str]) -> list[int]:
    with socket(server, keys, "/grid") as made:
        return [each["id"] for each in turn(made)["desktops"]]


def test_a_number_is_of_one_desktop_for_good(desktops: list[deskhand.Desktop]) -> None:
    first, second, _ = desktops
    with watch.serve({}) as server:
        keys = enter(server, "watch")
        assert numbers(server, keys) == []
        with server.showing("job", first):
            (number,) = numbers(server, keys)
            with socket(server, keys, f"/live/{number}") as made:
                assert turn(made)["state"]["name"] == "job"
                with server.showing("job", second):
                    assert numbers(server, keys) == [number, number + 1]
        # Its page was told, and nothing else is shown under its number.
        with server.showing("job", second):
            for gone in (number, 77):
                with socket(server, keys, f"/live/{gone}") as made:
                    assert closed_with(made) == (GONE, "this desktop is not shown, or no more")


def test_what_a_desktop_ended_with_is_shown(desktops: list[deskhand.Desktop]) -> None:
    """Also where its end was not seen: who watches another one comes back to the last operation and the last picture."""
    first, second, _ = desktops
    with watch.serve({}) as server, server.showing("job 2", second), Painter(environment_of(first)) as painter:
        keys = enter(server, "watch")
        with socket(server, keys) as made:
            turn(made)
            with server.showing("job 1", first) as shown:
                painter.paint(5)
                first.perform(Move((20, 21)))
                wanted = thumbnail(core_of(first).backend.screen)
            shown.tell("success")
            with socket(server, keys, "/grid") as grid:
                told, data = turn_and_picture(grid)
                (ended,) = [each for each in told["desktops"] if each["ended"] is not None]
                assert (ended["name"], ended["ended"], ended["latest"]["title"]) == ("job 1", "success", "move 20, 21")
                assert wanted in data


def test_the_end_of_a_private_hold_shows_nothing(desktops: list[deskhand.Desktop]) -> None:
    first, second, _ = desktops
    with watch.serve({}) as server, server.showing("job 2", second):
        keys = enter(server, "watch")
        with socket(server, keys) as made, server.showing("job 1", first):
            turn(made)
            hold = first.control.take("Ada", private=True)
        with socket(server, keys, "/grid") as grid:
            told, data = turn_and_picture(grid)
            (ended,) = [each for each in told["desktops"] if each["ended"] is not None]
            assert (ended["hidden"], ended["latest"]) == (True, None)
            assert thumbnail(core_of(first).backend.screen) not in data
        hold.release()


def test_a_page_that_draws_nothing_is_told_that_its_desktop_has_ended(desktops: list[deskhand.Desktop]) -> None:
    with watch.serve({}) as server, contextlib.ExitStack() as shown:
        shown.enter_context(server.showing("job", desktops[0]))
        with socket(server, enter(server, "watch"), "/live/0") as made:
            made.recv(timeout=60)
            shown.close()
            assert closed_with(made) == (GONE, "job has ended")


def test_a_page_is_told_that_its_desktop_has_ended(desktops: list[deskhand.Desktop]) -> None:
    with watch.serve({}) as server, contextlib.ExitStack() as shown:
        keys = enter(server, "watch", "control")
        shown.enter_context(server.showing("job\n1", desktops[0]))
        with socket(server, keys, "/live/0") as made:
            take_control(made)
            shown.close()
            assert closed_with(made) == (GONE, "job1 has ended")
        assert desktops[0].control.holder is None
        desktops[0].perform(Move((5, 5)))
