"""The monitors of a screen, as X servers and VNC servers report them."""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.fake import ELSEWHERE, FakeServer, rectangle, serve, update
from conftest import need
from deskhand import AsyncDesktop, LeftClick, Monitor, Rect
from faults.helpers import Bounds, until, x_environment, xclient
from faults.xserver import Request, Server, u16, u32

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop

_LAYOUT = -308
LEFT, RIGHT = (
    Monitor("left", Rect(0, 0, 600, 700), primary=True),
    Monitor("right", Rect(600, 0, 400, 700), primary=False),
)


def _split(desktop: Desktop) -> None:
    """Make two monitors of the screen."""
    for name, place, output in (("*left", "600/150x700/175+0+0", "screen"), ("right", "400/100x700/175+600+0", "none")):
        command = [need("xrandr", "x11-xserver-utils"), "--setmonitor", name, place, output]
        subprocess.run(command, env=x_environment(desktop), check=True)


def test_two_of_an_x_server(desktop: Desktop) -> None:
    (screen,) = desktop.monitors()
    assert (screen.rect, screen.primary) == (Rect(0, 0, 1000, 700), True)
    _split(desktop)
    assert sorted(desktop.monitors(), key=lambda monitor: monitor.rect.x) == [LEFT, RIGHT]
    with xclient(desktop) as client:
        client.ask("popup", 610, 20, 100, 50, 0x123456)
        shot = desktop.screenshot(region=RIGHT.rect)
        assert shot.size == RIGHT.rect.size
        assert tuple(shot.array()[25, 15]) == (0x12, 0x34, 0x56), "the place of the window on that monitor"
        desktop.perform(LeftClick((RIGHT.rect.x + 15, RIGHT.rect.y + 25)))
        assert client.ask("pointer") == [615, 25]


def test_through_a_view_and_a_coroutine(desktop: Desktop) -> None:
    import asyncio  # noqa: PLC0415

    _split(desktop)
    assert len(desktop.also().monitors()) == 2
    assert len(asyncio.run(AsyncDesktop(desktop).monitors())) == 2


def test_a_smaller_screen_has_smaller_monitors(desktop: Desktop) -> None:
    _split(desktop)
    other = deskhand.connect(f"x11:{desktop.display}", xauthority=desktop.xauthority, view_only=True)
    try:
        desktop.resize((700, 500))
        cut = {"left": Rect(0, 0, 600, 500), "right": Rect(600, 0, 100, 500)}
        for each in (other, desktop):
            assert {monitor.name: monitor.rect for monitor in each.monitors()} == cut
    finally:
        other.close()


def _monitor(place: tuple[int, int, int, int], *, outputs: int = 0, atom: int = 500) -> bytes:
    return struct.pack("<IBBHhhHHII", atom, 0, 0, outputs, *place, 0, 0)


def _monitors(*each: bytes, count: int | None = None) -> Callable[[Request], bytes]:
    told = len(each) if count is None else count
    return lambda request: request.reply(u32(0, told, 0), b"".join(each))


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (_monitors(), 1),
        (lambda request: request.event(0, second=1), 1),
        (_monitors(_monitor((-100, -100, 50, 50)), _monitor((0, 0, 0, 0))), 1),
        (_monitors(*[_monitor((0, 0, 320, 480)), _monitor((320, 0, 320, 480))] * 1000), 64),
    ],
    ids=["none", "an error", "outside", "many"],
)
def test_of_a_strange_server(tmp_path: Path, answer: Callable[[Request], bytes], count: int) -> None:
    asked: list[str] = []

    class Named(Server):
        def usual(self, request: Request) -> bytes:
            asked.append(request.name)
            if request.name == "GetAtomName":
                return request.reply(u16(65535), b"\x1b[31m" * 13107)
            return super().usual(request)

    with (
        Bounds(64 << 20),
        Named(tmp_path, {"RANDR.GetMonitors": answer}) as server,
        deskhand.connect(server.url) as desktop,
    ):
        asked.clear()
        monitors = desktop.monitors()
        assert len(monitors) == count
        assert all(monitor.rect.within(Rect(0, 0, 640, 480)) for monitor in monitors)
        assert all(len(monitor.name) <= 64 and monitor.name.isprintable() for monitor in monitors)
        assert asked.count("GetAtomName") <= 64


@pytest.mark.parametrize(
    "answer",
    [_monitors(_monitor((0, 0, 9, 9)), count=2**32 - 1), _monitors(_monitor((0, 0, 9, 9), outputs=65535))],
    ids=["monitors", "outputs"],
)
def test_numbers_that_are_not_true_are_a_violation(tmp_path: Path, answer: Callable[[Request], bytes]) -> None:
    with (
        Server(tmp_path, {"RANDR.GetMonitors": answer}) as server,
        Bounds(64 << 20),
        pytest.raises(deskhand.DeskhandError, match="cannot be read"),
    ):
        deskhand.connect(server.url)


def test_two_of_a_vnc_server() -> None:
    """A server says it with the size; one that says nothing has one."""
    screens = [(7, 0, 0, 400, 480, 0), (8, 400, 0, 400, 480, 0), (9, 1000, 0, 5, 5, 0)]
    body = struct.pack(">B3x", len(screens)) + b"".join(struct.pack(">I4HI", *screen) for screen in screens)
    layout = update(rectangle((0, 0, 640, 480), _LAYOUT, body))
    server = FakeServer(lambda client: serve(client, (640, 480), then=[layout]), host=ELSEWHERE)
    with deskhand.connect(server.url) as desktop:
        until(lambda: len(desktop.monitors()) == 2, 20, "two monitors")
        assert desktop.monitors() == [
            Monitor("7", Rect(0, 0, 400, 480), primary=False),
            Monitor("8", Rect(400, 0, 240, 480), primary=False),
        ]
    plain = FakeServer(lambda client: serve(client, (640, 480)), host=ELSEWHERE)
    with deskhand.connect(plain.url) as desktop:
        assert desktop.monitors() == [Monitor("", Rect(0, 0, 640, 480), primary=True)]
