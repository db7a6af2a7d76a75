"""F34: clipboards that are large, foreign, binary, or owned by somebody who does not answer."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import KeyPress
from faults.helpers import need, until, within, x_environment, xclient

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = "".join(f"{n:x} zażółć 漢字 😀\n" for n in range(300_000))[: 10 * 1024 * 1024 // 2]


def _copy(desktop: deskhand.Desktop, data: bytes, *target: str) -> None:
    """Put something on the clipboard as another program does; the program stays to serve it."""
    with xclient(desktop) as client:
        before = client.ask("clipboard_owner")
        subprocess.run(
            [need("xclip", "xclip"), "-selection", "clipboard", *target],
            input=data,
            env=x_environment(desktop),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
        # It goes to the background before it owns anything.
        until(lambda: client.ask("clipboard_owner") not in {0, before}, 10, "xclip to own the clipboard")


@pytest.fixture(autouse=True)
def no_xclip_left(desktop: deskhand.Desktop) -> Iterator[None]:
    """Xclip serves in the background until the display ends, which is what `desktop` does to it."""
    yield
    desktop.close()


def test_big_text_in(desktop: deskhand.Desktop) -> None:
    """10 MB of another program's text (INCR) arrive exactly."""
    _copy(desktop, BIG.encode())
    with within(10, "reading"):
        assert desktop.clipboard.read() == BIG


def test_big_text_out(desktop: deskhand.Desktop) -> None:
    """10 MB of ours are read exactly by another program."""
    desktop.clipboard.write(BIG)
    done = subprocess.run(
        [need("xclip", "xclip"), "-selection", "clipboard", "-o", "-t", "UTF8_STRING"],
        env=x_environment(desktop),
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == BIG.encode()
    assert desktop.perform(KeyPress(["a"])).settled


def test_our_own_big_text(desktop: deskhand.Desktop) -> None:
    """What was written is read back, also in pieces."""
    for text in ("", "x", "\n", "é" * 200_000, BIG):
        desktop.clipboard.write(text)
        assert desktop.clipboard.read() == text


def test_too_big(desktop: deskhand.Desktop) -> None:
    """More than 64 MiB is refused in bounded time, and the desktop goes on."""
    _copy(desktop, b"x" * (65 * 1024 * 1024))
    with within(15, "the refusal"), pytest.raises((deskhand.BackendError, TimeoutError)):
        desktop.clipboard.read()
    desktop.clipboard.write("small")
    assert desktop.clipboard.read() == "small"


def test_binary(desktop: deskhand.Desktop) -> None:
    """A picture, or bytes that are no text: no text, or an error, in bounded time."""
    _copy(desktop, b"\x89PNG\r\n" + bytes(range(256)) * 100, "-t", "image/png")
    with within(6, "reading"):
        assert desktop.clipboard.read() is None
    _copy(desktop, bytes(range(256)))
    with within(6, "reading"):
        assert isinstance(desktop.clipboard.read(), str)


def test_owner_that_dies(desktop: deskhand.Desktop) -> None:
    """The owner of the clipboard is killed: there is nothing on it."""
    _copy(desktop, b"text")
    assert desktop.clipboard.read() == "text"
    for pid in _xclips(desktop):
        os.kill(pid, signal.SIGKILL)
    until(lambda: desktop.clipboard.read() is None, 6, "the clipboard to be empty")


@pytest.mark.parametrize(("how", "done"), [("never answers", "asked"), ("begins", "delivered")])
def test_owner_that_dies_meanwhile(desktop: deskhand.Desktop, how: str, done: str) -> None:
    """Nobody will answer what it was asked, or send the rest of a text in pieces: there is none, and that is known at once."""
    with xclient(desktop) as client, ThreadPoolExecutor(1) as pool:
        assert client.ask("own_clipboard", how)
        reading = pool.submit(desktop.clipboard.read)
        until(lambda: client.ask(done), 10, f"what the owner has {done}")
        client.kill()
        assert reading.result() is None


def test_owner_that_changes_while_it_is_asked(desktop: deskhand.Desktop) -> None:
    """Who owns it next is asked."""
    with xclient(desktop) as client, ThreadPoolExecutor(1) as pool:
        assert client.ask("own_clipboard")
        reading = pool.submit(desktop.clipboard.read)
        until(lambda: client.ask("asked"), 10, "the owner to be asked")
        _copy(desktop, b"of the next one")
        assert reading.result() == "of the next one"


def test_an_owner_that_is_asked_as_it_takes_the_clipboard_lives(desktop: deskhand.Desktop) -> None:
    """Xclip ends with the first error of X, such as a window that is gone when it answers."""
    command = [need("xclip", "xclip"), "-quiet", "-selection", "clipboard"]
    for number in range(60):
        with subprocess.Popen(
            command, env=x_environment(desktop), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as owner:
            assert owner.stdin is not None
            owner.stdin.write(f"text {number}".encode())
            owner.stdin.close()
            until(lambda owner=owner: desktop.clipboard.read() is not None or owner.poll() is not None, 10, "a text")  # type: ignore[misc]
            assert (owner.poll(), desktop.clipboard.read()) == (None, f"text {number}")
            owner.kill()


def test_owner_that_is_stopped(desktop: deskhand.Desktop) -> None:
    """The owner does not answer: TimeoutError after 5 s, or when asked to stop; the desktop goes on."""
    with xclient(desktop) as client:
        assert client.ask("own_clipboard")
        with within(7, "the timeout"), pytest.raises(TimeoutError):
            desktop.clipboard.read()
        assert desktop.perform(KeyPress(["a"])).settled
        desktop.clipboard.write("ours")
        assert desktop.clipboard.read() == "ours"


def _xclips(desktop: deskhand.Desktop) -> list[int]:
    wanted = f"DISPLAY={desktop.display}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text() == "xclip\n" and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
