"""Xwayland is recognised: its picture lacks windows, which a caller would not see otherwise."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import deskhand
from conformance.servers import wayvnc
from faults.xserver import Request, Server, u16, u32

NOTE = "this X server is Xwayland: windows of Wayland applications are not in its picture"


def test_that_of_a_compositor() -> None:
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder, wayvnc(Path(folder)) as place:
        with deskhand.connect(f"x11:{place.environment['DISPLAY']}", view_only=True) as desktop:
            (told,) = desktop.status
            assert told.startswith(NOTE)
            assert "wayvnc" in told
        with place.connect() as desktop:
            assert not any("Xwayland" in line for line in desktop.status), "its VNC server shows all windows"


def test_by_its_extension(tmp_path: Path) -> None:
    """Since 23.1 its outputs may be named after those of the compositor."""

    class Newer(Server):
        def usual(self, request: Request) -> bytes:
            if request.name == "QueryExtension" and request.body[5:13] == b"XWAYLAND":
                return request.reply(bytes([1, 160, 0, 0]))
            return super().usual(request)

    with Newer(tmp_path) as server, deskhand.connect(server.url) as desktop:
        assert [line.startswith(NOTE) for line in desktop.status] == [True]


@pytest.mark.parametrize(("name", "notes"), [(b"XWAYLAND3", 1), (b"HDMI-XWAYLAND", 0), (b"", 0)])
def test_by_its_outputs(tmp_path: Path, name: bytes, notes: int) -> None:
    monitor = u32(500) + bytes([1, 1]) + u16(0, 0, 0, 640, 480) + u32(0, 0)
    answers = {
        "RANDR.GetMonitors": lambda r: r.reply(u32(0, 1, 0), monitor),
        "GetAtomName": lambda r: r.reply(u16(len(name)), name),
    }
    with Server(tmp_path, answers) as server, deskhand.connect(server.url) as desktop:
        assert sum(line.startswith(NOTE) for line in desktop.status) == notes


@pytest.mark.parametrize("without", [(), ("RANDR",)], ids=["RandR before 1.5", "no RandR"])
def test_a_server_without_monitors_is_none(tmp_path: Path, without: tuple[str, ...]) -> None:
    refused = {"RANDR.GetMonitors": lambda r: r.event(0, second=1)}
    with Server(tmp_path, refused, without=without) as server, deskhand.connect(server.url) as desktop:
        assert not any("Xwayland" in line for line in desktop.status)
