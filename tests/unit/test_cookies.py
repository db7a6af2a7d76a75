"""Cookie files, whole, cut off and damaged: read as python-xlib reads them."""

from __future__ import annotations

import contextlib
import io
import socket
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from Xlib import xauth

from deskhand import ConnectFailed
from deskhand.backends.x11.backend import _entries, cookie_for

NAME = b"MIT-MAGIC-COOKIE-1"
LOCAL, WILD = 256, 65535

_fields = st.binary(max_size=20)
_known = st.tuples(st.integers(0, 65535), _fields, _fields, _fields, _fields)


def packed(*entries: tuple[int, bytes, bytes, bytes, bytes]) -> bytes:
    return b"".join(
        struct.pack(">H", family) + b"".join(struct.pack(">H", len(field)) + field for field in fields)
        for family, *fields in entries
    )


def as_python_xlib_reads(raw: bytes) -> list[tuple[int, bytes, bytes, bytes, bytes]]:
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        (file := Path(folder, "cookies")).write_bytes(raw)
        return list(xauth.Xauthority(str(file)).entries)


@given(st.lists(_known, max_size=4), st.integers(0, 60))
def test_whole_files_and_files_that_are_cut_off(
    entries: list[tuple[int, bytes, bytes, bytes, bytes]], cut: int
) -> None:
    raw = packed(*entries)
    assert list(_entries(raw)) == entries
    short = raw[: max(0, len(raw) - cut)]
    assert list(_entries(short)) == as_python_xlib_reads(short)


@given(st.binary(max_size=80))
def test_any_bytes(raw: bytes) -> None:
    assert list(_entries(raw)) == as_python_xlib_reads(raw)


def test_the_cookie_of_a_display(tmp_path: Path) -> None:
    here = socket.gethostname().encode()
    file = tmp_path / "cookies"
    file.write_bytes(
        packed(
            (LOCAL, b"elsewhere", b"7", NAME, b"of another machine"),
            (LOCAL, here, b"7", b"OTHER", b"of another kind"),
            (LOCAL, here, b"7", NAME, b"seven"),
            (WILD, b"", b"8", NAME, b"eight"),
            (WILD, b"", b"", NAME, b"any"),
        )
    )
    found = {display: cookie_for(display, file)[1] for display in (":7", ":7.0", "unix:/x/X8", ":9")}
    assert found == {":7": b"seven", ":7.0": b"seven", "unix:/x/X8": b"eight", ":9": b"any"}
    file.write_bytes(b"\0" * 7)
    assert cookie_for(":7", file) == (b"", b"", file)
    with pytest.raises(ConnectFailed, match="cannot read the cookie file"):
        cookie_for(":7", tmp_path / "missing")
