"""What programs in a container write: each start has a log of its own, of a bounded size, and fills nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import deskhand
from faults.helpers import until
from soak import soaked

if TYPE_CHECKING:
    from pathlib import Path

MOST = 256 << 10
XTERM = "exec xterm -xrm '*allowTitleOps: false'"


def content(desktop: deskhand.Desktop, program: deskhand.Program) -> bytes:
    desktop.machine.logs(program)
    return desktop.machine.read_file(str(program.log))


def test_a_program_that_goes_on_printing_fills_nothing(desktop: deskhand.Desktop) -> None:
    """More than there is room for in the directory of its log."""
    room = int(desktop.machine.run("df --output=size -B1 /run | tail -1").stdout)
    program = desktop.start(["sh", "-c", f"echo the beginning; yes | head -c {2 * room}; echo the end; {XTERM}"])
    said = content(desktop, program)
    assert len(said) <= MOST
    assert said.startswith(b"the beginning\ny\ny\n")
    assert said.endswith(b"\ny\nthe end\n")
    left_out = int(re.findall(rb"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n", said)[0])
    kept = len(said) - len(f"\n[... {left_out} bytes left out ...]\n")
    assert kept + left_out == len("the beginning\n") + 2 * room + len("the end\n")
    assert desktop.machine.logs("sh").endswith("y\nthe end\n")
    assert desktop.machine.run("pgrep -cx keep-logs").stdout == "1\n"


def test_a_failed_start_shows_its_own_output(desktop: deskhand.Desktop) -> None:
    first = desktop.start(["sh", "-c", f"echo of the first; {XTERM}"])
    for number in range(5):
        with pytest.raises(deskhand.LaunchFailed) as failed:
            desktop.start(["sh", "-c", f"echo of {number}; exit 3"])
        assert failed.value.log_tail == f"of {number}\n"
    with pytest.raises(deskhand.LaunchFailed) as failed:
        desktop.start(["sh", "-c", "exit 3"])
    assert failed.value.log_tail == ""
    assert desktop.machine.logs(first) == "of the first\n"


def test_logs_of_parts_and_of_nobody(desktop: deskhand.Desktop) -> None:
    for part in ("x-server", "window-manager", "bus", "accessibility", "keep-logs"):
        assert isinstance(desktop.machine.logs(part), str)
    with pytest.raises(deskhand.BackendError, match=r"no log of 'nobody'.*x-server"):
        desktop.machine.logs("nobody")


def test_logs_of_ended_programs_are_bounded_in_number(desktop: deskhand.Desktop) -> None:
    kept = desktop.start(["sh", "-c", f"echo kept; {XTERM}"])
    once = "/usr/local/lib/deskhand/start-program $PWD/many sh -c 'echo said'"
    script = f"cd $XDG_RUNTIME_DIR/logs; for i in $(seq 100); do {once}; done"
    assert desktop.machine.run(script).exit_code == 0
    count = "cd $XDG_RUNTIME_DIR/logs; ls | grep -c '^many-[0-9]*.log$'; ls | grep -c '^many.*pipe'"
    until(lambda: desktop.machine.run(count).stdout == "32\n0\n", 30, "the removal of old logs")
    assert desktop.machine.logs("many") == "said\n"
    assert desktop.machine.logs(kept) == "kept\n"


def test_who_reads_the_logs_may_end(desktop: deskhand.Desktop) -> None:
    """Programs go on, and what they write is kept."""
    desktop.machine.run(
        "(setsid /usr/local/lib/deskhand/start-program $XDG_RUNTIME_DIR/logs/lasting "
        "sh -c 'echo before; until [ -e /tmp/go ]; do sleep 0.01; done; seq 50000; touch /tmp/done; sleep 1000' &"
        ") >/dev/null 2>&1"
    )
    until(lambda: desktop.machine.run(f"ls {logs(desktop)}/lasting-*.log").exit_code == 0, 30, "its log")
    until(lambda: desktop.machine.logs("lasting") == "before\n", 30, "its first line")
    assert desktop.machine.run("pkill -9 -x keep-logs; touch /tmp/go").exit_code == 0
    until(lambda: desktop.machine.run("ls /tmp/done").exit_code == 0, 30, "the program to go on")
    assert desktop.machine.logs("lasting").endswith("\n49999\n50000\n")
    whole = desktop.machine.run("cat $XDG_RUNTIME_DIR/logs/lasting-*.log").stdout
    assert whole.startswith("before\n1\n2\n")
    assert "restarted keep-logs" in desktop.machine.logs()
    desktop.machine.run("pkill -f 'sleep 100[0]'")


def logs(desktop: deskhand.Desktop) -> str:
    return desktop.machine.run("echo $XDG_RUNTIME_DIR/logs").stdout.strip()


@pytest.mark.parametrize(
    "place",
    soaked(
        [
            "ln -s /etc/passwd {}.log",
            "ln -s /nowhere {}.log",
            "mkdir {}.log",
            "mkfifo {}.log",
            "mkdir {}.pipe",
            "ln -s /etc/passwd {}.pipe",
        ],
        but=["ln -s /etc/passwd {}.log", "mkfifo {}.log", "mkdir {}.pipe"],
    ),
)
def test_what_is_in_a_log_s_place_is_neither_followed_nor_waited_for(desktop: deskhand.Desktop, place: str) -> None:
    """The next process ids are known to a program that means harm."""
    trap = (
        "cd $XDG_RUNTIME_DIR/logs; sh -c 'n=$$; for i in $(seq $n $((n + 40))); do "
        + place.format("trap-$i")
        + "; done'; /usr/local/lib/deskhand/start-program $PWD/trap sh -c 'echo said; exit 4'"
    )
    result = desktop.machine.run(trap, timeout=30)
    assert result.exit_code == 4, result.stderr
    assert desktop.machine.run("echo alive", timeout=30).stdout == "alive\n"
    with pytest.raises(deskhand.LaunchFailed) as failed:
        desktop.start(["sh", "-c", "echo mine; exit 3"])
    assert failed.value.log_tail == "mine\n"
    desktop.machine.run("rm -rf $XDG_RUNTIME_DIR/logs/trap-*")


def test_a_full_directory_of_logs_holds_nobody_up(desktop: deskhand.Desktop) -> None:
    desktop.machine.run("head -c 1G /dev/zero >$XDG_RUNTIME_DIR/full")
    try:
        with pytest.raises(deskhand.LaunchFailed, match="status 3"):
            desktop.start(["sh", "-c", "seq 100000; exit 3"])
        with pytest.raises(deskhand.ShellError, match="No space left"):
            desktop.machine.run("true")
    finally:
        with pytest.raises(deskhand.LaunchFailed, match="status 3"):
            desktop.start(["sh", "-c", "rm -f $XDG_RUNTIME_DIR/full; exit 3"])
    with pytest.raises(deskhand.LaunchFailed) as failed:
        desktop.start(["sh", "-c", "echo again; exit 3"])
    assert failed.value.log_tail == "again\n"


@pytest.mark.parametrize("name", ["n" * 250, "naïve ☕", "a b'c", "-rf"])
def test_a_program_of_any_name_has_a_log(desktop: deskhand.Desktop, name: str) -> None:
    desktop.machine.write_file(f"/home/user/{name}", f"#!/bin/sh\necho here\n{XTERM}\n")
    desktop.machine.run("chmod +x ./*")
    program = desktop.start([f"/home/user/{name}"])
    assert desktop.machine.logs(program) == "here\n"
    desktop.windows.close(program.window)


def test_why_a_program_does_not_start(desktop: deskhand.Desktop) -> None:
    with pytest.raises(deskhand.ShellError, match=r"not found.*on PATH"):
        desktop.start("no-such-program")
    with pytest.raises(deskhand.ShellError, match="check the directory that it starts in"):
        desktop.start("xterm", cwd="/nonexistent")
    with pytest.raises(deskhand.ShellError, match="check the directory that it starts in"):
        desktop.machine.run("true", cwd="/nonexistent")
    for program in ("/etc", "/etc/passwd"):
        with pytest.raises(deskhand.ShellError, match=r"not executable.*check its rights"):
            desktop.start(program)
    with pytest.raises(deskhand.ShellError, match="not found"):
        desktop.start("cd")
    with pytest.raises(deskhand.ShellError, match=r"too long.*shorten them"):
        desktop.start(["true", "x" * 200_000])
    with pytest.raises(deskhand.LaunchFailed, match="as SIGKILL ends a program"):
        desktop.start(["sh", "-c", "kill -9 $$"])


def test_names_that_are_no_utf8_are_refused_and_not_changed(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """The engine is spoken to in JSON, which has another character in their place."""
    desktop.machine.run("mkdir odd; cd odd; printf kept >$'\\377'")
    odd = "/home/user/odd/\udcff"
    for call in (
        lambda: desktop.machine.read_file(odd),
        lambda: desktop.machine.write_file(odd, "x"),
        lambda: desktop.machine.copy_out(odd, tmp_path / "x"),
        lambda: desktop.machine.copy_in(tmp_path, f"{odd}/x"),
        lambda: desktop.start([odd]),
        lambda: desktop.start("xterm", env={"A": "\udcff"}),
        lambda: desktop.machine.run("true", cwd=odd),
    ):
        with pytest.raises(deskhand.ActionError, match="UTF-8"):
            call()
    (tmp_path / "file").write_text(" and copied")
    # A tar stream has the name as it is.
    desktop.machine.copy_in(tmp_path / "file", "/home/user/odd/\udcfe")
    desktop.machine.copy_out("/home/user/odd", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["\udcfe", "\udcff"]
    assert desktop.machine.run("cd odd; rm $'\\376'; ls | od -An -tx1; cat *").stdout == " ff 0a\nkept"


def test_what_is_no_file_is_neither_read_nor_replaced(desktop: deskhand.Desktop) -> None:
    desktop.machine.run("mkfifo fifo; ln -s fifo door")
    for name in ("fifo", "door"):
        with pytest.raises(deskhand.BackendError, match=r"cannot read .*is a fifo"):
            desktop.machine.read_file(f"/home/user/{name}")
        with pytest.raises(deskhand.BackendError, match=r"cannot write .*is a fifo"):
            desktop.machine.write_file(f"/home/user/{name}", "x")
    with pytest.raises(deskhand.BackendError, match="is a directory"):
        desktop.machine.write_file("/home/user", "x")
    assert desktop.machine.run("stat -c %F fifo; pgrep -x head").stdout == "fifo\n"
