"""What a VNC target's spelling means, and where its password comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand.backends.vnc.target import is_vnc, parse_target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKHAND_VNC_PASSWORD", raising=False)
    monkeypatch.delenv("DESKHAND_VNC_PASSWORD_FILE", raising=False)


@pytest.mark.parametrize(
    ("url", "host", "port", "shown"),
    [
        ("vnc://host", "host", 5900, "vnc://host:5900"),
        ("vnc://host/", "host", 5900, "vnc://host:5900"),
        ("vnc://host:0", "host", 5900, "vnc://host:5900"),
        ("vnc://host:1", "host", 5901, "vnc://host:5901"),
        ("vnc://host:99", "host", 5999, "vnc://host:5999"),
        ("vnc://host:5901", "host", 5901, "vnc://host:5901"),
        ("vnc://host::5901", "host", 5901, "vnc://host:5901"),
        ("vnc://host::80", "host", 80, "vnc://host:80"),
        ("vnc://10.0.0.7:2", "10.0.0.7", 5902, "vnc://10.0.0.7:5902"),
        ("vnc://[::1]", "::1", 5900, "vnc://[::1]:5900"),
        ("vnc://[::1]:3", "::1", 5903, "vnc://[::1]:5903"),
        ("vnc://[fe80::1%eth0]::5907", "fe80::1%eth0", 5907, "vnc://[fe80::1%eth0]:5907"),
    ],
)
def test_hosts_displays_and_ports(url: str, host: str, port: int, shown: str) -> None:
    target = parse_target(url)
    assert (target.host, target.port, target.path, str(target)) == (host, port, "", shown)
    assert is_vnc(url)


def test_a_unix_socket() -> None:
    target = parse_target("vnc+unix:///run/a%20b.sock")
    assert (target.path, target.host, str(target)) == ("/run/a b.sock", "", "vnc+unix:///run/a b.sock")
    assert is_vnc("vnc+unix:///x")
    assert not is_vnc("x11::1")


@pytest.mark.parametrize(
    "url",
    [
        "vnc://",
        "vnc://:1",
        "vnc://host:",
        "vnc://host:x",
        "vnc://host:::1",
        "vnc://host::0",
        "vnc://host:70000",
        "vnc://host:٣",
        "vnc://[::1",
        "vnc://u:canary@",
        "vnc+unix://canary",
    ],
)
def test_what_is_no_target(url: str) -> None:
    with pytest.raises(deskhand.ActionError) as refused:
        deskhand.connect(url)
    assert "canary" not in str(refused.value)


def test_another_scheme_is_not_repeated() -> None:
    with pytest.raises(deskhand.ActionError) as refused:
        deskhand.connect("vnx://u:canary@host")
    assert "canary" not in str(refused.value)


def test_where_the_password_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("of file\nmore\n")
    url = "vnc://me:of%20url@host"

    def given(**how: object) -> str | None:
        password = parse_target(url, **how).password  # type: ignore[arg-type] # one keyword of several types
        return password() if password else None

    assert given(password="given", password_file=file) == "given"
    assert given(password=lambda: "asked") == "asked"
    assert given(password_file=file) == "of file"
    assert given() == "of url"
    assert parse_target(url).username == "me"
    assert parse_target(url, username="you").username == "you"
    url = "vnc://host"
    assert given() is None
    monkeypatch.setenv("DESKHAND_VNC_PASSWORD_FILE", str(file))
    assert given() == "of file"
    monkeypatch.setenv("DESKHAND_VNC_PASSWORD", "of environment")
    assert given() == "of environment"


def test_a_password_file_that_cannot_be_read(tmp_path: Path) -> None:
    password = parse_target("vnc://host", password_file=tmp_path / "none").password
    assert password is not None
    with pytest.raises(deskhand.ActionError, match="cannot read the password file"):
        password()


def test_no_repr_shows_a_password() -> None:
    target = parse_target("vnc://me:canary@host", password="canary")
    assert "canary" not in f"{target} {target!r}"
