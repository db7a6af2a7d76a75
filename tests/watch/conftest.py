"""A desktop that is served, and browsers that watch it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import ClassPolicy, watch
from deskhand.desktop.access import bare
from deskhand.policy.questions import Questions
from faults.helpers import until
from integration.apps import environment_of
from watch.browser import Viewer, chromium
from watch.painter import Painter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from deskhand.watch import Server

LIMIT = 20.0


@pytest.fixture(scope="module")
def questions() -> Questions:
    return Questions(timeout=120)


@pytest.fixture(scope="module")
def watched(
    tmp_path_factory: pytest.TempPathFactory, questions: Questions
) -> Iterator[tuple[deskhand.Desktop, Server]]:
    home = tmp_path_factory.mktemp("home")
    policy = ClassPolicy(allow=["observe", "input", "clipboard_read"])
    with (
        deskhand.launch(size=(800, 600), env={"HOME": str(home)}, policy=policy, ask=questions) as desktop,
        watch.serve(desktop, questions=questions) as server,
    ):
        # What is typed goes there.
        bare(desktop).start(["xterm", "-geometry", "10x2+0-0", "-e", "sleep", "6000"])
        yield desktop, server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(watched: tuple[deskhand.Desktop, Server], browser: Browser) -> Iterator[Callable[..., Viewer]]:
    viewers: list[Viewer] = []

    def make(*scopes: Any, name: str = "viewer", **options: Any) -> Viewer:
        viewer = Viewer(browser, watched[1].link(*scopes, name=name), **options)
        viewers.append(viewer)
        viewer.wait_live(watched[0])
        return viewer

    yield make
    for viewer in viewers:
        viewer.close()
    assert [viewer.errors for viewer in viewers] == [[] for _ in viewers]
    until(lambda: watched[0].control.holder is None, LIMIT, "the desktop to be handed back")


@pytest.fixture
def painter(watched: tuple[deskhand.Desktop, Server]) -> Iterator[Painter]:
    with Painter(environment_of(watched[0])) as made:
        yield made
