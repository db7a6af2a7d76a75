"""A container's desktop on the live page: its picture, a person's input and files. Its engine is here, or elsewhere."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import uuid
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import deskhand
from containers.remote import ssh_server
from deskhand import watch
from deskhand.watch.transfers import PIECE
from faults.helpers import until
from watch.clients import announce, enter, news, socket, take_control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.connection import Connection

LIMIT = 30.0
# Three pieces, the last one short.
CONTENT = os.urandom(2 * PIECE + 5)
_HEAD, _RECT = struct.Struct("<IHHH"), struct.Struct("<HHHHI")


@pytest.fixture(scope="module", params=["this machine", "ssh"])
def desktop(
    request: pytest.FixtureRequest, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[deskhand.Desktop]:
    if request.param == "this machine":
        with deskhand.launch("docker", image=image) as desktop:
            yield desktop
        return
    with ssh_server(tmp_path_factory.mktemp("far") / "ssh") as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        with deskhand.launch("docker", image=image) as desktop:
            # No display of it is in reach, so the page has the pixels of the desktop's own connection.
            assert desktop.display is None
            yield desktop


def drawn(made: Connection, onto: Image.Image | None) -> Image.Image:
    """The picture of the page after the next turn that changes it."""
    while True:
        told = json.loads(made.recv(timeout=60))
        data = made.recv(timeout=60) if told["picture"] else b""
        made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
        if not told["picture"]:
            continue
        assert isinstance(data, bytes)
        _, width, height, count = _HEAD.unpack_from(data)
        picture = Image.new("RGB", (width, height)) if onto is None else onto
        at = _HEAD.size
        for _ in range(count):
            x, y, _, _, length = _RECT.unpack_from(data, at)
            at += _RECT.size
            picture.paste(Image.open(io.BytesIO(data[at : at + length])).convert("RGB"), (x, y))
            at += length
        return picture


def test_its_pixels_are_the_desktops(desktop: deskhand.Desktop) -> None:
    with watch.serve(desktop) as server, socket(server, enter(server, "watch")) as made:
        picture = drawn(made, None)
        for colour in ("red", "blue"):
            desktop.machine.run(f"xsetroot -solid {colour}")
            wanted = (255, 0, 0) if colour == "red" else (0, 0, 255)
            while picture.getpixel((5, 5)) != wanted:
                picture = drawn(made, picture)
        seen = desktop.screenshot(format="raw")
        while picture.tobytes() != seen.data:
            picture = drawn(made, picture)


def test_a_persons_file_and_keys_arrive(desktop: deskhand.Desktop) -> None:
    with watch.serve(desktop) as server, socket(server, enter(server, "control")) as made:
        desktop.start(["xterm", "-geometry", "80x24+0+0"])
        typed = f"/tmp/{uuid.uuid4().hex}"
        take_control(made)
        assert not announce(made, len(CONTENT), name="../a ☕.bin")["error"]
        for at in range(0, len(CONTENT), PIECE):
            made.send(CONTENT[at : at + PIECE])
        while not (told := news(made))["over"]:
            pass
        assert told["error"] == ""
        assert re.fullmatch(r".*/Downloads/a ☕( \(\d+\))?\.bin", told["where"])
        for message in (
            {"type": "button", "x": 100, "y": 100, "button": "left", "down": True, "modifiers": []},
            {"type": "button", "x": 100, "y": 100, "button": "left", "down": False, "modifiers": []},
            {"type": "text", "text": f"echo naïve >{typed}"},
            {"type": "chord", "key": "Enter", "modifiers": []},
        ):
            made.send(json.dumps(message))
        made.send(json.dumps({"type": "release", "note": "done"}))
        until(lambda: desktop.control.holder is None, LIMIT, "the desktop to be handed back")
    until(lambda: desktop.machine.run(f"cat {typed}").stdout == "naïve\n", LIMIT, "what was typed")
    assert desktop.machine.read_file(told["where"], limit=1 << 20) == CONTENT
    assert desktop.machine.run(f"stat -c %U '{told['where']}'").stdout == desktop.machine.run("id -un").stdout
