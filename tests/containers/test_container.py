"""What a desktop in a container can do: act, start programs, run commands, move files, tell what it uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Type
from deskhand.launchers.docker import copying_out
from faults.helpers import crowded, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine


def test_it_acts_and_looks_through_shared_memory(desktop: deskhand.Desktop) -> None:
    assert desktop.status == ()
    program = desktop.start(["xterm", "-xrm", "*allowTitleOps: false", "-T", "words"])
    assert program.window is not None
    assert program.window.title == "words"
    seen = desktop.perform(Type("printf 'naïve ☕' >/tmp/typed\n"))
    assert seen.settled
    assert until(lambda: desktop.machine.run("cat /tmp/typed").stdout == "naïve ☕", 10, "what was typed")
    assert desktop.windows.close(program.window)


def test_a_program_that_cannot_start_says_why(desktop: deskhand.Desktop) -> None:
    with pytest.raises(deskhand.ShellError, match="not found"):
        desktop.start("no-such-program")
    with pytest.raises(deskhand.LaunchFailed, match="open display") as failed:
        desktop.start(["xterm", "-display", ":7"])
    assert "status 1" in str(failed.value)


def test_a_window_of_a_child_is_its_programs(desktop: deskhand.Desktop) -> None:
    program = desktop.start(["sh", "-c", "xterm -T child & wait"])
    assert program.window is not None
    assert program.window.pid != program.pid
    desktop.windows.close(program.window)


def test_a_command_tells_how_it_ended(desktop: deskhand.Desktop) -> None:
    result = desktop.machine.run("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert not result.timed_out
    assert not result.truncated
    assert desktop.machine.run("kill -9 $$").exit_code == 137
    assert (
        desktop.machine.run('echo "$GREETING" in "$PWD"', env={"GREETING": "hello"}, cwd="/tmp").stdout
        == "hello in /tmp\n"
    )
    assert desktop.machine.run("cat").stdout == ""


def test_output_is_bounded(desktop: deskhand.Desktop) -> None:
    result = desktop.machine.run("yes | head -c 20000000; yes | head -c 20000000 >&2", limit=1000)
    assert result.truncated
    assert result.stdout == result.stderr == "y\n" * 250 + "\n[... 19999000 bytes left out ...]\n" + "y\n" * 250
    assert result.exit_code == 0


def test_a_command_in_the_background_does_not_hold_it_up(desktop: deskhand.Desktop) -> None:
    result = desktop.machine.run("sleep 7001 & echo started", timeout=30)
    assert (result.stdout, result.timed_out) == ("started\n", False)
    assert desktop.machine.run("pkill -f 'sleep 700[1]'").exit_code == 0


def test_what_comes_just_before_the_end_is_not_lost(desktop: deskhand.Desktop) -> None:
    """Also where something else holds the streams open."""
    for number in range(10):
        result = desktop.machine.run(f"sleep 7001 & echo said {number}; echo so >&2", timeout=30)
        assert (result.stdout, result.stderr, result.exit_code) == (f"said {number}\n", "so\n", 0)
    assert desktop.machine.run("pkill -f 'sleep 700[1]'").exit_code == 0


def test_at_the_timeout_everything_goes(desktop: deskhand.Desktop) -> None:
    """Also who ignores signals, left the process group, or was adopted by init."""
    mess = (
        "trap '' TERM INT HUP; sleep 7002 & setsid sleep 7002 & (setsid sh -c 'sleep 7002 & sleep 7002' &); sleep 7002"
    )
    result = desktop.machine.run(mess, timeout=0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert desktop.machine.run("pgrep -f 'sleep 700[2]'").stdout == ""


def test_a_process_with_many_files_works_in_it(desktop: deskhand.Desktop) -> None:
    with crowded():
        data = bytes(range(256)) * 500
        desktop.machine.write_file("/home/user/crowded", data)
        assert desktop.machine.read_file("/home/user/crowded") == data
        with desktop.machine.open_shell() as shell:
            assert shell.run("echo here").stdout == "here\n"


def test_files_go_in_and_out(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    desktop.machine.write_file("/home/user/new folder/a", data)
    assert desktop.machine.read_file("/home/user/new folder/a") == data
    desktop.machine.write_file("/home/user/empty", "")
    assert desktop.machine.read_file("/home/user/empty") == b""
    with pytest.raises(deskhand.BackendError, match="larger than"):
        desktop.machine.read_file("/home/user/new folder/a", limit=1000)
    with pytest.raises(deskhand.BackendError, match="No such file"):
        desktop.machine.read_file("/nowhere")
    with pytest.raises(deskhand.BackendError, match="Read-only"):
        desktop.machine.write_file("/etc/passwd", "")
    with pytest.raises(deskhand.ActionError, match="absolute"):
        desktop.machine.read_file("relative")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "naïve ☕").write_bytes(data)
    desktop.machine.copy_in(tree, "/home/user/there")
    desktop.machine.copy_out("/home/user/there", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "naïve ☕").read_bytes() == data
    with pytest.raises(deskhand.ActionError, match="there is no"):
        desktop.machine.copy_in(tmp_path / "missing", "/home/user/x")


def test_files_that_are_more_than_their_names(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """Links, rights, directories of that name, and what the kernel makes as it is read."""
    desktop.machine.run(
        "cd; mkdir -p kinds/dir; cd kinds; echo old >file; chmod 640 file; ln -s file link; ln -s /nonexistent/x dead"
    )
    desktop.machine.write_file("/home/user/kinds/link", "new")
    told = desktop.machine.run("cd ~/kinds; cat file; stat -c '%a %F' file link; ls -A").stdout
    assert told == "new640 regular file\n777 symbolic link\ndead\ndir\nfile\nlink\n"
    for path in ("/home/user/kinds/dir", "/home/user/kinds/dead"):
        with pytest.raises(deskhand.BackendError, match="cannot write"):
            desktop.machine.write_file(path, "x")
    assert desktop.machine.run("cd ~/kinds; ls -A . dir").stdout == ".:\ndead\ndir\nfile\nlink\n\ndir:\n"
    desktop.machine.write_file("/home/user/kinds/fresh", "x")
    assert desktop.machine.run("stat -c %a ~/kinds/fresh; rm -r ~/kinds").stdout == "644\n"
    desktop.machine.copy_out("/proc/version", tmp_path / "version")
    assert (tmp_path / "version").read_bytes() == desktop.machine.read_file("/proc/version") != b""
    with pytest.raises(deskhand.BackendError, match="more than 3 bytes"):
        desktop.machine.copy_out("/proc/version", tmp_path / "short", limit=3)


@pytest.mark.parametrize(
    ("mess", "told"),
    [
        ("rm -rf trap; ln -s neighbour trap", "trap' is a symbolic link"),
        ("rm -rf trap; mkfifo trap", "trap' is a named pipe"),
        ("truncate -s 8G trap/holes", "more than 1073741824 bytes: raise the limit"),
        ("touch trap/file; ln trap/file other; chmod 000 trap; cd", "Permission denied"),
    ],
)
def test_what_comes_out_cannot_lead_out(desktop: deskhand.Desktop, tmp_path: Path, mess: str, told: str) -> None:
    neighbour = tmp_path / "neighbour"
    neighbour.write_text("the caller's own")
    made = desktop.machine.run(f"mkdir trap && {mess}")
    assert made.exit_code == 0, made.stderr
    try:
        with pytest.raises(deskhand.BackendError, match=told):
            desktop.machine.copy_out("/home/user/trap", tmp_path / "trap")
        assert list(tmp_path.iterdir()) == [neighbour]
        # Nobody goes on reading eight gigabytes for a driver that has gone.
        until(lambda: desktop.machine.run("pgrep -x tar").stdout == "", 20, "the end of the sender")
    finally:
        desktop.machine.run("chmod -R u+rwX trap; rm -rf trap other")


def test_a_dirty_home_comes_out_but_for_what_is_no_file(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """One absolute link, socket or pipe refuses nothing else; each is named, in the result and in a warning."""
    neighbour = tmp_path / "neighbour"
    neighbour.write_text("the caller's own")
    listen = "use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un($ARGV[0])) or die"
    made = desktop.machine.run(
        "mkdir -p dirty/a && cd dirty && echo kept >a/kept && mkfifo pipe && ln -s /etc link && ln -s ../neighbour up && "
        "ln -s .. a/b && ln -s a/b/../neighbour through && ln link same && ln -s a/kept fine && "
        "touch \"$(printf '\\033]0;owned\\007')\" \"$(printf '\\377')\" && "
        f"perl -e '{listen}' socket"
    )
    assert made.exit_code == 0, made.stderr
    with pytest.warns(deskhand.LeftOutWarning, match="dirty/socket"):
        found = desktop.machine.copy_out("/home/user/dirty", tmp_path / "dirty")
    assert sorted(line.partition(" (")[0] for line in found) == [
        "'dirty/\\x1b]0;owned\\x07'",
        "'dirty/link'",
        "'dirty/pipe'",
        "'dirty/same'",
        "'dirty/socket'",
        "'dirty/through'",
        "'dirty/up'",
    ]
    assert (tmp_path / "dirty/a/kept").read_text() == (tmp_path / "dirty/fine").read_text() == "kept\n"
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"neighbour", "dirty", "dirty/a", "dirty/a/kept", "dirty/a/b", "dirty/fine", "dirty/\udcff"}
    assert neighbour.read_text() == "the caller's own"


def test_a_tree_that_changes_comes_out_and_says_so(
    desktop: deskhand.Desktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a browser that runs does."""
    desktop.machine.run("mkdir live; head -c 30M /dev/urandom >live/log")
    copy, changed = shutil.copyfileobj, []

    def late(*arguments: object) -> None:
        # No pipe holds the rest of it, so it is not read yet.
        changed.append(desktop.machine.run("echo x >>live/log").exit_code)
        copy(*arguments)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(copying_out.shutil, "copyfileobj", late)
    with pytest.warns(deskhand.LeftOutWarning, match="live/log"):
        found = desktop.machine.copy_out("/home/user/live", tmp_path / "live")
    assert changed == [0]
    assert found == ("'live/log' (it changed while it was copied)",)
    assert (tmp_path / "live/log").stat().st_size == 30 << 20


def test_a_tree_of_the_size_of_its_limit_comes_out(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    assert (
        desktop.machine.run(
            "mkdir exact; head -c 3000000 /dev/urandom >exact/a; ln exact/a exact/b; ln -s a exact/c"
        ).exit_code
        == 0
    )
    with pytest.raises(deskhand.BackendError, match="more than 2999999 bytes"):
        desktop.machine.copy_out("/home/user/exact", tmp_path / "exact", limit=2_999_999)
    desktop.machine.copy_out("/home/user/exact", tmp_path / "exact", limit=3_000_000)
    data = desktop.machine.read_file("/home/user/exact/a")
    assert [(tmp_path / "exact" / name).read_bytes() == data for name in "abc"] == [True] * 3
    desktop.machine.copy_out("/home/user/exact/../exact/a", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == data
    for wrong in ("/home/user/..", "/", "relative"):
        with pytest.raises(deskhand.ActionError):
            desktop.machine.copy_out(wrong, tmp_path / "wrong")
    with pytest.raises(deskhand.BackendError, match="No such file"):
        desktop.machine.copy_out("/nowhere/at/all", tmp_path / "wrong")


def test_what_goes_in_is_files_directories_and_links(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "secret").symlink_to("/etc/hostname")
    desktop.machine.copy_in(tree, "/home/user/linked")
    # It leads to what the container has, and nothing of this machine has come along.
    assert desktop.machine.run("readlink linked/secret").stdout == "/etc/hostname\n"
    (tmp_path / "door").symlink_to(tree)
    desktop.machine.copy_in(tmp_path / "door", "/home/user/door")
    assert desktop.machine.run("readlink door/secret").stdout == "/etc/hostname\n"
    os.mkfifo(tree / "pipe")
    with pytest.warns(deskhand.LeftOutWarning, match="tree"):
        assert desktop.machine.copy_in(tree, "/home/user/piped") == ("'piped/pipe' (a named pipe)",)
    assert desktop.machine.run("ls piped").stdout == "secret\n"
    with pytest.raises(deskhand.ActionError, match="is a named pipe, and no file or directory"):
        desktop.machine.copy_in(tree / "pipe", "/home/user/piped")
    with pytest.raises(deskhand.ActionError, match="there is no"):
        desktop.machine.copy_in(tmp_path / "missing", "/home/user/piped")


def test_it_tells_what_it_uses(desktop: deskhand.Desktop) -> None:
    usage = desktop.machine.usage()
    assert 1 << 20 < usage.memory < usage.memory_limit == 2 << 30
    assert 4 <= usage.processes < 512 == usage.processes_limit
    assert usage.cpu_seconds > 0
    assert usage.oom_kills == 0


def test_another_process_drives_what_was_left_running(
    contained: Callable[..., deskhand.Desktop], engine: Engine
) -> None:
    with pytest.raises(deskhand.ConnectFailed, match="no such container"):
        deskhand.connect("docker://no-such-desktop")
    desktop = contained()
    watcher = deskhand.connect(f"docker://{desktop.name}", view_only=True)
    with watcher:
        assert watcher.size == desktop.size
        with pytest.raises(deskhand.UnsupportedAction):
            watcher.machine.run("true")
    with pytest.raises(deskhand.ConnectFailed, match="one driver at a time"):
        deskhand.connect(f"docker://{desktop.name}")
    assert engine.api.inspect_container(desktop.name)["State"]["Running"]


def test_it_serves_rfb_beside_x(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained(vnc=True)
    assert desktop.xauthority is not None
    socket = desktop.xauthority.with_name("vnc")
    with deskhand.connect(f"vnc+unix://{socket}") as viewer:
        assert viewer.size == desktop.size
    assert engine.api.inspect_container(desktop.name)["NetworkSettings"]["Ports"] in ({}, None)


def test_the_sdk_is_imported_only_where_it_is_needed() -> None:
    code = "import sys, deskhand, deskhand.launchers.targets; sys.exit('docker' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_sdk_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['docker'] = None\n"
        "import deskhand\n"
        "try: deskhand.launch('docker')\n"
        "except deskhand.MissingExtra as error: sys.exit(0 if \"pip install 'deskhand[docker]'\" in str(error) else 1)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
