"""What a container may have put where the driver reads: it may be anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from deskhand.launchers.docker.warnings import container_warnings

if TYPE_CHECKING:
    from pathlib import Path

MB = 1 << 20


def test_nothing_is_said_of_what_is_in_order(tmp_path: Path) -> None:
    assert container_warnings(tmp_path / "restarted", 1024 * MB) == []
    assert container_warnings(None, None) == []


def test_what_was_started_again_is_counted(tmp_path: Path) -> None:
    (tmp_path / "restarted").write_text("bus\nwindow-manager\nbus\n\x1b[31mnonsense\n")
    first, second = container_warnings(tmp_path / "restarted", 256 * MB)
    assert "window manager ended and was started again (1 times)" in first
    assert "session bus ended and was started again (2 times)" in second
    (told,) = container_warnings(None, 64 * MB)
    assert "64 MB" in told
    (told,) = container_warnings(None, None, 3)
    assert "3 of its processes were killed" in told


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "huge"])
def test_what_it_put_there_instead_does_no_harm(tmp_path: Path, kind: str) -> None:
    path, secret = tmp_path / "restarted", tmp_path / "secret"
    secret.write_text("bus\n")
    match kind:
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.write_bytes(b"x" * (8 << 20) + b"\nbus\n")
    assert container_warnings(path, None) == []
