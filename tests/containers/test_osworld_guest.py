"""OSWorld's guest server on a container: its commands and files are the container's, and a policy judges each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from deskhand import BackendError, ClassPolicy, Guard, PolicyDenied
from deskhand.providers.osworld.guest import Guest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Desktop


@pytest.fixture
def guest(desktop: Desktop) -> Iterator[Guest]:
    yield Guest(desktop, programs=True)
    desktop.machine.run("rm -rf ~/osworld")


def test_commands_and_files_are_those_of_the_container(guest: Guest) -> None:
    data = os.urandom(1 << 20)
    assert guest.upload("~/osworld/new/é.bin", data).content == f"File Uploaded: {1 << 20} bytes"
    answer = guest.file({"file_path": "~/osworld/new/é.bin"})
    assert (answer.content == data, answer.code, answer.file) == (True, 200, "é.bin")
    assert guest.file({"file_path": "~/osworld/none"}).code == 404
    guest.machine.run("mkfifo ~/osworld/pipe", timeout=20)
    for refused in ("~/osworld", "~/osworld/pipe"):
        with pytest.raises(BackendError):
            guest.file({"file_path": refused})
    assert guest.list_directory({"path": "~/osworld/new"}).content == {
        "directory_tree": {"type": "directory", "name": "new", "children": [{"type": "file", "name": "é.bin"}]}
    }
    ran = guest.execute({"command": "echo $HOME; exit 3", "shell": True}).content
    assert ran == {"status": "success", "output": "/home/user\n", "error": "", "returncode": 3}
    script = guest.run_bash_script({"script": "pwd; sleep 600 & echo $! >pid", "working_dir": "~/osworld"}).content
    assert script == {"status": "success", "output": "/home/user/osworld\n", "error": "", "returncode": 0}
    # What a script left in the background goes on, as on OSWorld's machine.
    assert guest.machine.ask("bash", "-c", "kill $(cat ~/osworld/pid)") == ""


def test_a_policy_judges_files_and_commands(desktop: Desktop) -> None:
    reads = Guest(desktop.also(Guard(policy=ClassPolicy(allow=["observe", "file_read"]))), programs=True)
    assert reads.file({"file_path": "/etc/hostname"}).code == 200
    with pytest.raises(PolicyDenied, match="write_file"):
        reads.upload("~/osworld", b"")
    with pytest.raises(PolicyDenied, match="shell"):
        reads.execute({"command": ["id"]})
