"""Recordings of what VNC servers send: made of a real server, ended in every way, and played back to the same pixels."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import deskhand
from conformance.fake import ELSEWHERE, FakeServer, rectangle, serve, update
from conformance.servers import need, xvnc
from deskhand.backends.vnc.recording import PIXELS, record, replay
from deskhand.backends.vnc.target import parse_target
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.servers import Place
    from deskhand.backends.vnc.recording import Decoded

CANARY = "Kanari7!"
COMMAND = str(Path(sys.executable).with_name("deskhand"))
FIXTURES = Path(__file__).parents[2] / "rust/rfb/tests/fixtures"


def fill(place: Place, colour: str) -> None:
    """Fill the whole screen, and return when that is done."""
    subprocess.run([need("xsetroot", "x11-xserver-utils"), "-solid", colour], env=place.environment, check=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Place]:
    """Xvnc, for which a password is asked."""
    tool = need("tigervncpasswd", "tigervnc-tools")
    made = subprocess.run([tool, "-f"], input=CANARY.encode() + b"\n", capture_output=True, check=True)
    (tmp_path / "passwd").write_bytes(made.stdout)
    with xvnc(tmp_path, "-SecurityTypes", "VncAuth", "-PasswordFile", str(tmp_path / "passwd")) as place:
        yield place


def shown(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def last(decoded: Decoded) -> np.ndarray:
    return shown(decoded.screen.png(cursor=False))


def ran(*arguments: str, code: int = 0) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.mark.parametrize("pixels", [None, *PIXELS])
def test_what_was_recorded_is_what_was_seen(server: Place, tmp_path: Path, pixels: str | None) -> None:
    file = tmp_path / "session.rfb"
    fill(server, "#203040")
    left = iter(["#ff8000", "#0080ff"])

    def stopped() -> bool:
        """Changes the screen once it has been sent, and ends when the second change has been sent too."""
        seen = replay(file.read_bytes()) if file.stat().st_size else None
        nonlocal wanted
        if seen is None or tuple(last(seen)[5, 5]) != wanted:
            return False
        colour = next(left, None)
        if colour is None:
            return True
        fill(server, colour)
        wanted = tuple(bytes.fromhex(colour[1:]))
        return False

    wanted = (0x20, 0x30, 0x40)
    made = record(
        parse_target(server.url, password=CANARY),
        file,
        seconds=20,
        pixels=[pixels] if pixels else None,
        stopped=stopped,
    )
    again = replay(file.read_bytes())
    assert wanted == (0x00, 0x80, 0xFF)
    with server.connect(password=CANARY) as desktop:
        expected = shown(desktop.screenshot(cursor=False).data)
    assert (last(again) == expected).all()
    assert (last(made) == expected).all()
    assert (again.received, again.updates, again.rectangles) == (made.received, made.updates, made.rectangles)
    assert again.updates >= 3
    assert again.decoding > 0
    assert again.seconds == pytest.approx(made.seconds, abs=1e-5)
    if pixels in {"hextile", "zrle", "tight"}:
        assert again.rectangles[pixels.capitalize()] >= 3
    content = file.read_bytes()
    assert CANARY.encode() not in content
    assert content.startswith(b"rfb-recording-2 640 480 ")


def test_a_recording_ends_with_control_c(server: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, frame = tmp_path / "session.rfb", tmp_path / "last.png"
    monkeypatch.setenv("DESKHAND_VNC_PASSWORD", CANARY)
    fill(server, "#336699")
    arguments = [COMMAND, "record", "--rfb", server.url, "-o", str(file), "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        until(lambda: file.exists() and file.stat().st_size > 640 * 480 * 4, 20, "the first picture")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    made = json.loads(out)
    assert (made["size"], made["closed"], made["updates"] > 0) == ([640, 480], False, True)
    told: dict[str, Any] = json.loads(ran("replay", str(file), "--json", "-o", str(frame)))
    assert {key: told[key] for key in ("bytes", "updates", "rectangles")} == {
        key: made[key] for key in ("bytes", "updates", "rectangles")
    }
    assert told["decoding_ms"] > 0
    assert tuple(shown(frame.read_bytes())[5, 5]) == (0x33, 0x66, 0x99)
    assert "640x480" in ran("replay", str(file))


def test_a_recording_ends_with_its_time_or_its_server(tmp_path: Path) -> None:
    file = tmp_path / "session.rfb"
    server = FakeServer(lambda client: serve(client, (64, 48)), host=ELSEWHERE)
    begun = time.monotonic()
    ran("record", "--rfb", server.url, "-o", str(file), "--seconds", "0.3")
    # The server would have ended it after 20 s.
    assert 0.3 <= time.monotonic() - begun < 19
    assert replay(file.read_bytes()).updates == 1

    def then() -> Iterator[bytes]:
        yield update()
        raise ConnectionError("it leaves")

    leaves = FakeServer(lambda client: serve(client, (64, 48), then=then()), host=ELSEWHERE)
    said = ran("record", "--rfb", leaves.url, "-o", str(file))
    assert "the server closed the connection" in said
    assert replay(file.read_bytes()).updates >= 1


def test_what_was_skipped_is_told(tmp_path: Path) -> None:
    parser = deskhand._native.VncParser((64, 48))
    unasked = update(rectangle((0, 0, 0, 0), -258), rectangle((0, 0, 0, 0), -258))
    file = tmp_path / "session.rfb"
    file.write_bytes(parser.header + parser.head(unasked, 0.5) + unasked)
    assert replay(file.read_bytes()).skipped == {-258: 2}
    assert "rectangles: none, 2 of -258 skipped" in ran("replay", str(file))
    assert json.loads(ran("replay", str(file), "--json"))["skipped"] == {"-258": 2}


def test_real_time_is_as_slow_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = deskhand._native.VncParser((64, 48))
    file = parser.header + b"".join(parser.head(b"\x02", at) + b"\x02" for at in (0.5, 0.5, 3.0))
    now, slept = 100.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(round(seconds, 3))
        now += seconds

    monkeypatch.setattr("deskhand.backends.vnc.recording.time.monotonic", lambda: now)
    monkeypatch.setattr("deskhand.backends.vnc.recording.time.sleep", sleep)
    assert replay(file, real_time=True).received == 3
    assert slept == [0.5, 0.0, 2.5]
    assert replay(file).seconds == 3.0
    assert len(slept) == 3


@pytest.mark.parametrize("name", [path.stem for path in sorted(FIXTURES.glob("*.rfb"))])
def test_old_recordings_are_played_back(name: str) -> None:
    """They have no times."""
    decoded = replay((FIXTURES / f"{name}.rfb").read_bytes())
    assert decoded.updates > 0
    assert last(decoded).shape == shown((FIXTURES / f"{name}.png").read_bytes()).shape


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"\x89PNG\r\n")
    assert "not a recording" in ran("replay", str(tmp_path / "other"), code=1)
    said = ran("record", "--rfb", f"vcn://me:{CANARY}@host", "-o", str(tmp_path / "new"), code=2)
    assert CANARY not in said
    assert not (tmp_path / "new").exists()
    ran("record", "--rfb", "vnc+unix:///nowhere", "-o", str(tmp_path / "new"), code=1)
    assert not (tmp_path / "new").exists()


def test_what_broke_the_protocol_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "session.rfb"
    server = FakeServer(lambda client: serve(client, (64, 48), then=[b"\xfa" * 9]), host=ELSEWHERE)
    assert "the type of a message is 250" in ran("record", "--rfb", server.url, "-o", str(file), code=1)
    assert "the type of a message is 250" in ran("replay", str(file), code=1)
    with pytest.raises(deskhand.ProtocolViolation):
        replay(file.read_bytes())
