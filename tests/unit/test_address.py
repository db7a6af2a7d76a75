"""Which engine an environment means."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from deskhand.errors import LaunchFailed
from deskhand.launchers.docker.engine_address import find_engine

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = "unix:///var/run/docker.sock"


def context(config: Path, name: str, host: str, *, tls: bool = False) -> None:
    place = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts" / "meta" / place
    meta.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": endpoint}}))
    if tls:
        (config / "contexts" / "tls" / place / "docker").mkdir(parents=True)


def test_the_order_is_that_of_dockers_own_command(tmp_path: Path) -> None:
    context(tmp_path, "chosen", "ssh://a")
    context(tmp_path, "named", "tcp://b:2376", tls=True)
    here = {"DOCKER_CONFIG": str(tmp_path)}
    assert find_engine(here).url == LOCAL
    (tmp_path / "config.json").write_text('{"currentContext": "chosen"}')
    assert find_engine(here).url == "ssh://a"
    named = find_engine({**here, "DOCKER_CONTEXT": "named"})
    assert (named.url, named.verify, named.is_local) == ("tcp://b:2376", True, False)
    assert named.certificates is not None
    assert named.certificates.is_dir()
    assert find_engine({**here, "DOCKER_CONTEXT": "default"}).url == LOCAL
    assert find_engine({**here, "DOCKER_CONTEXT": "named", "DOCKER_HOST": "unix:///c"}).url == "unix:///c"


def test_the_same_engine_is_found_again_when_another_is_chosen(tmp_path: Path) -> None:
    for name in ("first", "second"):
        context(tmp_path, name, f"ssh://{name}")
    here = {"DOCKER_CONFIG": str(tmp_path)}
    for chosen, environment in (
        ("first", {}),
        ("first", {"DOCKER_HOST": "tcp://x:1", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c"}),
        ("default", {}),
    ):
        (tmp_path / "config.json").write_text(json.dumps({"currentContext": chosen}))
        found = find_engine({**here, **environment})
        (tmp_path / "config.json").write_text('{"currentContext": "second"}')
        assert find_engine({**here, **found.variables}) == found


@pytest.mark.parametrize(
    ("host", "scheme", "local"),
    [
        ("unix:///run/user/1000/docker.sock", "unix", True),
        ("tcp://127.0.0.1:2375", "tcp", False),
        ("https://host:2376", "tcp", False),
        ("ssh://me@host:22/run/engine.sock", "ssh", False),
    ],
)
def test_what_is_of_this_machine(host: str, scheme: str, *, local: bool) -> None:
    found = find_engine({"DOCKER_HOST": host})
    assert (found.scheme, found.is_local) == (scheme, local)


@pytest.mark.parametrize(
    "host", ["npipe:////./pipe/docker", "tcp://host", "ssh://", "ssh://-oProxyCommand=x", "tcp://h:port", "nothing"]
)
def test_what_names_no_engine(host: str) -> None:
    with pytest.raises(LaunchFailed, match="ssh://user@host"):
        find_engine({"DOCKER_HOST": host})


def test_a_password_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed, match="a password") as told:
        find_engine({"DOCKER_HOST": "ssh://me:secret@host"})
    assert "secret" not in str(told.value)
    with pytest.raises(LaunchFailed, match="no context 'absent'"):
        find_engine({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "absent"})
