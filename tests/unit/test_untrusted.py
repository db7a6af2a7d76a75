"""What is opened where somebody else can write: only what is expected there."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import ConnectFailed
from deskhand._core.untrusted import PinnedSocket, read_regular
from deskhand.backends.x11.backend import X11Backend, glance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_CONTAINER = "0" * 64


@pytest.fixture
def listener(short: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short / "X0"))
        listener.listen()
        yield listener


@pytest.mark.parametrize("kind", ["symbolic link", "FIFO", "directory", "regular file"])
def test_what_is_no_socket_is_refused(short: Path, listener: socket.socket, kind: str) -> None:
    path = short / "X1"
    match kind:
        case "symbolic link":
            path.symlink_to(short / "X0")
        case "FIFO":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.touch()
    with pytest.raises(ConnectFailed, match=f"it is a {kind}, not a socket"):
        PinnedSocket(path)
    # So are displays that are named by such a path.
    with pytest.raises(ConnectFailed, match=f"it is a {kind}, not a socket"):
        X11Backend(f"unix:{path}")
    with pytest.raises(ConnectFailed, match=f"it is a {kind}, not a socket"):
        glance(f"unix:{path}", None, 1.0)
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()
    with pytest.raises(ConnectFailed, match="No such file"):
        PinnedSocket(short / "absent")


def test_whose_it_is_is_looked_at(short: Path, listener: socket.socket) -> None:
    path = short / "X0"
    PinnedSocket(path, owner=os.getuid()).close()
    with pytest.raises(ConnectFailed, match=f"belongs to user {os.getuid()}, not {os.getuid() + 1}"):
        PinnedSocket(path, owner=os.getuid() + 1)
    with pytest.raises(ConnectFailed, match=f"process {os.getpid()}, which listens there, is not in the container"):
        PinnedSocket(path, container=NO_CONTAINER)
    listener.close()
    with pytest.raises(ConnectFailed, match="refused"):
        PinnedSocket(path, container=NO_CONTAINER)


def test_it_stays_the_one_that_was_looked_at(short: Path, listener: socket.socket) -> None:
    path = short / "X0"
    (short / "own").mkdir()
    with PinnedSocket(path) as found:
        path.rename(short / "moved")
        path.symlink_to(short / "elsewhere")
        for _ in range(2):
            found.link(short / "own" / "X0")
        for address in (found.address, str(short / "own" / "X0")):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
                listener.accept()[0].close()
    assert os.listdir(short / "own") == ["X0"]  # noqa: PTH208
    found.close()


def test_who_accepts_nothing_is_not_waited_for_without_end(short: Path) -> None:
    path = short / "X0"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        with pytest.raises(ConnectFailed, match="unavailable"):
            PinnedSocket(path, container=NO_CONTAINER)
        told: list[object] = []

        def open_display() -> None:
            try:
                X11Backend(f"unix:{path}")
            except ConnectFailed as error:
                told.append(error.reason)

        # Its queue becomes free while the display is opened: then it is asked, and hangs up.
        opening = threading.Thread(target=open_display)
        opening.start()
        listener.accept()[0].close()
        listener.accept()[0].close()
        opening.join(60)
        assert len(told) == 1


def test_a_file_is_read_to_its_limit_and_nothing_else_is_read(tmp_path: Path) -> None:
    path, secret = tmp_path / "file", tmp_path / "secret"
    secret.write_bytes(b"secret")
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert read_regular(path, 100) == bytes(100)
    for make in (
        lambda: path.symlink_to(secret),
        lambda: path.symlink_to("/dev/zero"),
        lambda: os.mkfifo(path),
        path.mkdir,
    ):
        path.unlink()
        assert read_regular(path, 100) == b""
        make()
        assert read_regular(path, 100) == b""
