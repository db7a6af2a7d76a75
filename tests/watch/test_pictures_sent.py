"""Which pictures a page is sent: of the screen as it is now, and of many desktops some at a time."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import deskhand
from deskhand import watch
from deskhand.desktop.access import bare
from faults.helpers import until
from integration.apps import environment_of
from watch.clients import enter, socket
from watch.painter import Painter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt
    from websockets.sync.connection import Connection

LIMIT = 20.0
_HEAD, _PIECE = struct.Struct("<IHHH"), struct.Struct("<HHHHI")


def _pieces(data: bytes) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """The first number of each piece's rectangle, and its pixels."""
    count, at = _HEAD.unpack_from(data)[3], _HEAD.size
    for _ in range(count):
        x, _, _, _, length = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        yield x, np.asarray(Image.open(io.BytesIO(data[at : at + length])).convert("RGB"))
        at += length


def _picture(made: Connection) -> list[tuple[int, npt.NDArray[np.uint8]]]:
    """The pieces of the next picture."""
    while True:
        told: dict[str, Any] = json.loads(made.recv(timeout=60))
        data = made.recv(timeout=60) if told["picture"] else b""
        made.send(json.dumps({"type": "ack", "sequence": told["sequence"]}))
        if told["picture"]:
            assert isinstance(data, bytes)
            return list(_pieces(data))


def test_who_comes_later_never_sees_an_old_picture(tmp_path: Path) -> None:
    with (
        deskhand.launch(size=(800, 600), window_manager=None, env={"HOME": str(tmp_path)}) as desktop,
        watch.serve(desktop) as server,
        Painter(environment_of(desktop)) as painter,
    ):
        keys = enter(server, "watch", connections=5)
        (watched,) = server.application._roster.shown.values()
        for number in range(3):
            painter.paint(number)
            with socket(server, keys) as made:
                ((_, first),) = _picture(made)
            assert np.array_equal(first, bare(desktop).screenshot(format="raw").array())
            # Nobody copies any more.
            until(lambda: watched.mirror._stop is None, LIMIT, "the last viewer to be gone")


def test_the_first_of_many_thumbnails_do_not_wait_for_the_last(tmp_path: Path) -> None:
    with deskhand.launch(size=(400, 300), window_manager=None, env={"HOME": str(tmp_path)}) as desktop:
        many = {f"desktop {number}": desktop for number in range(40)}
        with watch.serve(many) as server, socket(server, enter(server, "watch"), "/grid") as made:
            shown: list[int] = []
            turns = []
            while len(shown) < len(many):
                turns.append([index for index, _ in _picture(made)])
                shown += turns[-1]
            assert sorted(shown) == list(range(len(many)))
            assert max(map(len, turns)) <= 16
