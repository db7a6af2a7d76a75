"""The shell on this machine: a session that no command can confuse, with bounds that hold, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import AsyncDesktop
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import pass_on
from faults.helpers import MARK, driver, marked, until, within
from faults.scale import CHILDREN, FLOOD

if TYPE_CHECKING:
    from collections.abc import Iterator

# C13: all that a command started is gone so soon after its timeout.
GONE = 2.0
# Leaves the group, the session and the parent, drops the environment, and ignores what can be ignored.
MESS = (
    "trap '' TERM INT HUP; sleep {n} & setsid sleep {n} & (setsid sh -c 'trap \"\" TERM; sleep {n} & sleep {n}' &);"
    " (env -i setsid sleep {n} &); (setsid env -i nohup setsid sleep {n} >/dev/null 2>&1 &); sleep {n}"
)


@pytest.fixture(scope="module")
def desktop() -> Iterator[deskhand.Desktop]:
    """A desktop that the tests share; they need nothing of it but its being there."""
    with deskhand.launch(size=(200, 100), window_manager=None) as desktop:
        yield desktop


@pytest.fixture
def mark() -> str:
    """What marks the processes of one test."""
    return uuid.uuid4().hex


@pytest.fixture
def shell(desktop: deskhand.Desktop, mark: str) -> Iterator[deskhand.Shell]:
    """A shell here; nothing of it is left after the test."""
    with desktop.host.open_shell(env={MARK: mark}, timeout=60) as shell:
        yield shell
    assert marked(mark) == {}


def sleepers(seconds: str) -> list[str]:
    """Who sleeps for so long, whatever environment they have."""
    wanted = f"sleep\0{seconds}\0".encode()
    return [pid for pid in _processes() if wanted in _read(Path("/proc", pid, "cmdline"))]


def _processes() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def seconds() -> Iterator[str]:
    """A time to sleep that nobody else sleeps for; in the end nobody does."""
    seconds = f"{9_000_000_000 + uuid.uuid4().int % 10**9}"
    yield seconds
    left = sleepers(seconds)
    for pid in left:
        os.kill(int(pid), 9)
    assert left == []


# --- what it is ---


def test_it_keeps_what_a_command_has_changed(shell: deskhand.Shell, tmp_path: Path) -> None:
    assert shell.run(f"cd '{tmp_path}'; greeting=hello; greet() {{ echo \"$greeting $1\"; }}; false").exit_code == 1
    result = shell.run("echo $?; greet you; pwd")
    assert (result.stdout, result.stderr) == (f"1\nhello you\n{tmp_path}\n", "")
    assert (result.exit_code, result.outcome, result.truncated, result.restarted) == (0, "success", False, False)
    assert 0 < result.duration < 60
    shell.restart()
    assert shell.run('echo "$greeting"; type greet').outcome == "error"
    assert shell.run("pwd").stdout != f"{tmp_path}\n"


def test_output_errors_and_exit_code_are_apart(shell: deskhand.Shell) -> None:
    result = shell.run("echo out; echo err >&2; (exit 3)")
    assert (result.stdout, result.stderr, result.exit_code, result.outcome) == ("out\n", "err\n", 3, "error")
    assert not result.timed_out
    assert shell.run("printf 'no newline'").stdout == "no newline"
    assert shell.run("").exit_code == 0
    assert shell.run("head -c 3 /dev/zero; printf '\\377naïve ☕\\200'").stdout == "\0\0\0\ufffdnaïve ☕\ufffd"
    assert shell.run("bash -c 'kill -9 $$'").exit_code == 137


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ('echo "unbalanced', "unexpected EOF", 2),
        ("echo 'unbalanced", "unexpected EOF", 2),
        ("if true; then", "syntax error", 2),
        ("cat <<END\nno end", "no end", 0),
        ("echo fi; )", "syntax error", 2),
        ("return 4", "can only `return'", 2),
        ("true\n\nno-such-program", "bash: line 3: no-such-program: command not found", 127),
        ("exec >/dev/null 2>&1", "", 0),
        ("exec 3</etc/passwd {other}>/dev/null 203</dev/null 204>&- 205>&-", "", 0),
        ("set -x", "", 0),
        ("set; declare -p; env; cat /proc/self/cmdline /proc/self/environ", "BASH", 0),
        ("set -a; trap 'true' DEBUG ERR RETURN; shopt -s extdebug expand_aliases", "", 0),
        ("printf '%s\\n' {a..f}{0..9}; printf '\\0\\0 0\\n exit 0\\n'", "a0", 0),
        ("read() { echo mine; }; printf() { echo mine; }; alias exit=true", "", 0),
        ("cat; read line; echo $?; python3 -c 'import sys; print(repr(sys.stdin.read()))'", "1\n''\n", 0),
        ("cat </dev/tty", "/dev/tty", 1),
        ("# nothing", "", 0),
        ("echo 'x" + "y" * 300_000 + "' | wc -c", "300002\n", 0),
    ],
)
def test_no_command_breaks_the_session(shell: deskhand.Shell, command: str, said: str, code: int) -> None:
    shell.run("state=kept")
    result = shell.run(command, timeout=30)
    assert said in result.stdout + result.stderr
    assert (result.exit_code, result.restarted) == (code, False)
    assert shell.run('echo "$state"').stdout == "kept\n"


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("echo bye; exit 3", "bye\n", 3),
        ("exec sh -c 'echo other; exit 5'", "other\n", 5),
        ("echo last; kill -9 $$", "last\n", 137),
        ("set -e; echo strict; false; echo never", "strict\n", 1),
        ("echo all; kill -9 0", "all\n", 137),
        ("sleep inf & echo job; exit 0", "job\n", 0),
        # Where bash keeps what it redirects for the time of a command.
        ("exec 10>&- 11>&- 12>&- 13>&- 14>&- 15>&-; echo said", "said\n", 1),
    ],
)
def test_after_the_end_of_the_shell_itself_there_is_another(
    shell: deskhand.Shell, mark: str, command: str, said: str, code: int
) -> None:
    shell.run("state=lost")
    result = shell.run(command, timeout=30)
    assert (result.stdout, result.exit_code, result.restarted) == (said, code, True)
    assert shell.alive
    assert shell.run('echo "[$state]"').stdout == "[]\n"
    assert "sleep" not in marked(mark).values()


def test_a_shell_that_ended_between_two_commands(shell: deskhand.Shell, mark: str) -> None:
    """The next command runs all the same, once, and says that the state is lost."""
    pid = shell.run("state=lost; echo $$").stdout.strip()
    shell.run(f"(sleep 0.1; kill -9 {pid}) &")
    until(lambda: not Path(f"/proc/{pid}").exists(), 10, "the end of the shell")
    result = shell.run('echo "[$state]"')
    assert (result.stdout, result.exit_code, result.restarted) == ("[]\n", 0, True)
    # What a guard that was killed has left is found by its mark.
    shell.run("sleep inf &")
    os.kill(int(shell.run("ps -o ppid= $PPID").stdout), 9)
    with pytest.raises(deskhand.BackendError):
        shell.run("sleep inf")
    assert marked(mark) == {}
    assert shell.run("echo again").stdout == "again\n"


def test_a_thousand_short_commands(shell: deskhand.Shell) -> None:
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    before = held()
    for number in range(1000):
        assert shell.run(f"echo {number}; echo $((n++)) >&2").stdout == f"{number}\n"
    assert shell.run("echo $n").stdout == "1000\n"
    assert held() == before


def test_several_threads_take_turns(shell: deskhand.Shell) -> None:
    found: list[str] = []

    def work(name: str) -> None:
        found.extend(shell.run(f"x={name}; echo $x").stdout.strip() + name for _ in range(20))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(2 * name for name in "abc" for _ in range(20))


# --- its bounds ---


def test_jobs_in_the_background_neither_hold_it_up_nor_are_held_up(shell: deskhand.Shell, tmp_path: Path) -> None:
    result = shell.run(
        "(while [ ! -e go ]; do sleep 0.01; done; yes | head -c 1000000; echo late >&2; touch done) &"
        f" cd '{tmp_path}'; echo started".replace("go ]", f"'{tmp_path}/go' ]").replace(
            "touch done", f"touch '{tmp_path}/done'"
        ),
        timeout=30,
    )
    assert (result.stdout, result.background) == ("started\n", "")
    (tmp_path / "go").touch()
    # A megabyte is more than any pipe holds: somebody reads while nobody asks.
    until((tmp_path / "done").exists, 30, "the end of the job")
    result = shell.run("echo next")
    assert result.stdout == "next\n"
    assert result.background.startswith("y\ny\n")
    assert result.background.endswith("y\nlate\n")
    assert len(result.background) < 1 << 18


def test_of_much_output_the_beginning_and_the_end_are_kept(desktop: deskhand.Desktop) -> None:
    result = desktop.host.run("seq 1000000; seq 1000000 >&2", limit=1000)
    for text in (result.stdout, result.stderr):
        head, missing, tail = text.split("\n[... ")[0], text.split("[... ")[1].split(" ")[0], text.split("...]\n")[1]
        assert head.startswith("1\n2\n")
        assert tail.endswith("999999\n1000000\n")
        assert len(head) + len(tail) == 1000
        assert int(missing) == 6888896 - 1000
    assert result.truncated
    assert result.exit_code == 0


def test_memory_stays_within_twice_the_limit() -> None:
    """C13: the driver's own memory, while a flood comes in; 10 GB of it for the evidence."""
    limit = 16 << 20
    code = f"""
def memory(key):
    status = open("/proc/self/status").read().split(key)[1]
    return int(status.split()[0]) << 10
with deskhand.launch(size=(50, 50), window_manager=None) as desktop:
    with desktop.host.open_shell(limit={limit}) as shell:
        shell.run("echo warm; head -c 1000000 /dev/zero")
        open("/proc/self/clear_refs", "w").write("5")
        before = memory("VmRSS:")
        result = shell.run("yes | head -c {FLOOD}", timeout=600)
        say(grown=memory("VmHWM:") - before, length=len(result.stdout), truncated=result.truncated,
            duration=result.duration)
"""
    with driver(code, os.environ) as process:
        told = process.read(600)
    assert told["truncated"]
    assert limit <= told["length"] < limit + 100
    # The pieces that are read, and what Python allocates besides.
    assert told["grown"] <= 2 * limit + (2 << 20), told


def test_at_the_timeout_everything_goes(shell: deskhand.Shell, mark: str, seconds: str) -> None:
    shell.run(f"state=lost; sleep {seconds} &")
    # On a busy machine it takes more than a moment until it has said something.
    with within(2.0 + GONE, "a timeout and its consequences"):
        result = shell.run("echo before; " + MESS.format(n=seconds), timeout=2.0)
    assert (result.stdout, result.exit_code, result.outcome) == ("before\n", None, "timeout")
    assert result.timed_out
    assert result.restarted
    assert sleepers(seconds) == []
    assert marked(mark) == {}
    assert shell.run('echo "[$state]"').stdout == "[]\n"


@pytest.mark.parametrize(
    "command",
    ["sleep inf", "while :; do :; done", "set -n", "kill -STOP $$", "wait $$ & read <>/dev/null; cat <(sleep inf)"],
)
def test_what_never_ends_does(shell: deskhand.Shell, command: str) -> None:
    with within(0.3 + GONE, "a timeout"):
        assert shell.run(command, timeout=0.3).outcome in {"timeout", "success"}
    assert shell.run("echo on", timeout=0.3 + GONE).restarted or shell.run("echo on").stdout == "on\n"


def test_a_crowd_goes_at_once(shell: deskhand.Shell, mark: str) -> None:
    """C13: a crowd of children, half of them in sessions of their own."""
    started = shell.run(
        f"for ((i = 0; i < {CHILDREN}; i += 2)); do (setsid sleep inf &); sleep inf & done; echo started", timeout=300
    )
    assert started.stdout == "started\n"
    until(lambda: list(marked(mark).values()).count("sleep") == CHILDREN, 60, "the crowd")
    with within(0.1 + GONE, "the end of a crowd"):
        assert shell.run("wait", timeout=0.1).outcome == "timeout"
    assert marked(mark) == {}


# --- its ends ---


def test_interrupt_ends_the_command(shell: deskhand.Shell, mark: str, seconds: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shell.run, "echo before; " + MESS.format(n=seconds))
        until(lambda: sleepers(seconds), 10, "what sleeps")
        with within(GONE, "an interruption"):
            shell.interrupt()
            result = running.result()
    assert (result.stdout, result.exit_code, result.outcome, result.restarted) == ("before\n", None, "cancelled", True)
    assert marked(mark) == {}
    # With nothing under way it means nothing.
    shell.interrupt()
    assert shell.run("sleep 0.3; echo on").stdout == "on\n"


def test_a_cancelled_task_ends_its_command(desktop: deskhand.Desktop, mark: str, seconds: str) -> None:
    async def run() -> None:
        asynchronous = AsyncDesktop(desktop)
        async with await asynchronous.host.open_shell(env={MARK: mark}) as shell:
            assert (await shell.run("echo on; state=lost")).stdout == "on\n"
            for call in (
                lambda: shell.run(MESS.format(n=seconds)),
                lambda: asynchronous.host.run(MESS.format(n=seconds), env={MARK: mark}),
                lambda: asynchronous.host.open_shell(env={MARK: mark}),
            ):
                task = asyncio.create_task(call())  # type: ignore[arg-type, var-annotated] # of several types
                await asyncio.sleep(0.01 if "open_shell" in call.__code__.co_names else 0.3)
                task.cancel()
                with within(GONE, "a cancellation"), pytest.raises(asyncio.CancelledError):
                    await task
                assert sleepers(seconds) == []
            assert (await shell.run('echo "[$state]"')).stdout == "[]\n"
        assert not shell.alive
        asynchronous.detach()

    asyncio.run(run())
    assert marked(mark) == {}


def test_closing_ends_everything(desktop: deskhand.Desktop, mark: str, seconds: str) -> None:
    shell = desktop.host.open_shell(env={MARK: mark})
    shell.run(f"(setsid sleep {seconds} &); (env -i setsid sleep {seconds} &)")
    running = threading.Thread(target=shell.run, args=(MESS.format(n=seconds),))
    running.start()
    until(lambda: len(sleepers(seconds)) == 9, 10, "all that sleep")
    shell.close()
    running.join()
    shell.close()
    assert not shell.alive
    assert sleepers(seconds) == []
    assert marked(mark) == {}
    with pytest.raises(deskhand.BackendError, match="closed"):
        shell.run("true")
    with pytest.raises(deskhand.BackendError, match="closed"):
        shell.restart()


def test_an_exception_and_the_desktops_own_end(mark: str, seconds: str) -> None:
    with deskhand.launch(size=(50, 50), window_manager=None) as desktop:
        with contextlib.suppress(ZeroDivisionError), desktop.host.open_shell(env={MARK: mark}) as shell:
            shell.run(f"(env -i setsid sleep {seconds} &)")
            raise ZeroDivisionError
        assert sleepers(seconds) == []
        kept = desktop.host.open_shell(env={MARK: mark})
        kept.run(f"(env -i setsid sleep {seconds} &)")
        renewed = desktop.reset()
        assert sleepers(seconds) == []
        assert not kept.alive
        kept = renewed.host.open_shell(env={MARK: mark})
        kept.run(f"(env -i setsid sleep {seconds} &)")
        other = pass_on(renewed)
        assert not kept.alive
        with pytest.raises(deskhand.BackendError, match="closed"):
            renewed.host.open_shell()
        kept = other.host.open_shell(env={MARK: mark})
        kept.run(f"(env -i setsid sleep {seconds} &)")
        other.close()
        assert not kept.alive
    assert sleepers(seconds) == []
    assert marked(mark) == {}


@pytest.mark.parametrize("number", [9, 2])
def test_a_killed_driver_leaves_nothing(mark: str, seconds: str, number: int) -> None:
    """SIGKILL, and Ctrl-C in the middle of a command."""
    mess = MESS.format(n=seconds)
    code = f"""
with deskhand.launch(size=(50, 50), window_manager=None) as desktop, desktop.host.open_shell() as shell:
    say(pid=os.getpid())
    try:
        shell.run({mess!r})
    except KeyboardInterrupt:
        say(alive=shell.alive)
        sys.stdin.readline()
        say(on=shell.run("echo on").stdout)
"""
    with driver(code, {**os.environ, MARK: mark}) as process:
        process.read()
        until(lambda: len(sleepers(seconds)) == 7, 10, "all that sleep")
        with within(GONE, "the end"):
            process.process.send_signal(number)
            if number == 2:
                assert process.read() == {"alive": True}
                assert sleepers(seconds) == []
                assert process.ask("on") == {"on": "on\n"}
            process.process.wait(10)
            until(lambda: sleepers(seconds) == [] and marked(mark) == {}, 2, "the end of all")


# --- what it may ---


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n", 0),
        ("trap 'echo bye; exit 7' EXIT; true", "bye\n", 7),
        ("trap 'echo bye' EXIT; echo hi; exit 3", "hi\nbye\n", 3),
        ("trap 'echo bye' EXIT; set -e; false; echo no", "bye\n", 1),
        ("(trap 'echo bye' EXIT); echo hi", "bye\nhi\n", 0),
        ("echo a; exit 0", "a\n", 0),
    ],
)
def test_a_trap_on_exit_runs(desktop: deskhand.Desktop, command: str, said: str, code: int) -> None:
    """As with `bash -c`."""
    result = desktop.host.run(command)
    assert (result.stdout, result.exit_code, result.stderr) == (said, code, "")
    bash = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (bash.stdout, bash.returncode) == (said, code)


def test_a_trap_on_exit_runs_when_the_session_ends(shell: deskhand.Shell, tmp_path: Path) -> None:
    assert shell.run(f"trap 'echo bye; echo gone >{tmp_path}/exited' EXIT; echo hi").stdout == "hi\n"
    result = shell.run("exit 4")
    assert (result.stdout, result.exit_code, result.restarted) == ("bye\n", 4, True)
    (tmp_path / "exited").unlink()
    shell.run(f"trap 'echo gone >{tmp_path}/exited' EXIT")
    shell.close()
    assert (tmp_path / "exited").read_text() == "gone\n"


def test_a_trap_on_exit_that_hangs_does_not_hold_the_end_up(shell: deskhand.Shell, mark: str) -> None:
    shell.run("trap 'sleep 600' EXIT")
    with within(5, "closing"):
        shell.close()
    assert marked(mark) == {}


@pytest.mark.parametrize("name", ["eval", "builtin", "read", "printf", "exit", "export", "unset", "exec", ":", "[["])
def test_functions_with_the_names_of_builtins_change_nothing(shell: deskhand.Shell, name: str) -> None:
    shell.run(f"{name}() {{ return 0; }}" if name != "[[" else "function [[ { return 0; }")
    for _ in range(2):
        result = shell.run("echo still; (exit 5)")
        assert (result.stdout, result.exit_code) == ("still\n", 5)
    assert not result.restarted


def test_a_function_that_cannot_be_removed_ends_the_session_and_says_so(shell: deskhand.Shell) -> None:
    result = shell.run("eval() { return 0; }; readonly -f eval")
    assert (result.exit_code, result.restarted) == (126, True)
    assert "readonly function" in result.stderr
    assert shell.run("echo still").stdout == "still\n"


def test_it_runs_here_only_when_that_is_said(desktop: deskhand.Desktop) -> None:
    for call in (lambda: desktop.machine.run("true"), lambda: desktop.machine.open_shell(cwd="/")):
        with pytest.raises(deskhand.UnsupportedAction, match=r'launch\("docker"\).*desktop\.host'):
            call()
    assert desktop.display is not None
    with (
        deskhand.connect(f"x11:{desktop.display}", xauthority=desktop.xauthority, view_only=True) as watcher,
        pytest.raises(deskhand.UnsupportedAction, match="view_only"),
    ):
        watcher.host.run("true")


def test_bad_input_does_nothing(shell: deskhand.Shell, desktop: deskhand.Desktop) -> None:
    for command in ("a\0b", b"bytes", None, "\ud800"):
        with pytest.raises(deskhand.ActionError):
            shell.run(command)  # type: ignore[arg-type] # the mistake is the test
    for timeout in (0, -1, float("nan"), float("inf"), "1", True):
        with pytest.raises(deskhand.ActionError):
            shell.run("true", timeout=timeout)  # type: ignore[arg-type]
    for limit in (0, -5, 1.5, True):
        with pytest.raises(deskhand.ActionError):
            desktop.host.open_shell(limit=limit)  # type: ignore[arg-type]
    with pytest.raises(deskhand.ShellError, match="No such file"):
        desktop.host.open_shell(cwd="/no/such/place")
    assert shell.run("echo on").stdout == "on\n"


def test_it_sees_only_what_is_listed(desktop: deskhand.Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("BASH_ENV", "/dev/null")
    monkeypatch.setenv("LD_PRELOAD", "")
    result = desktop.host.run('env; echo "at $PWD"', env={"EXTRA": "given"})
    names = {line.partition("=")[0]: line.partition("=")[2] for line in result.stdout.splitlines()}
    assert names["DISPLAY"] == desktop.display
    assert names["XAUTHORITY"] == str(desktop.xauthority)
    assert (names["EXTRA"], names["TERM"]) == ("given", "dumb")
    assert not names.keys() & {"SOME_API_KEY", "BASH_ENV", "LD_PRELOAD"}
    assert result.stdout.endswith(f"at {names['HOME']}\n")
    # Of a desktop that has none, a command must not get the display that we happen to be on.
    monkeypatch.setenv("DISPLAY", ":0")
    with deskhand.Desktop(MemoryBackend()) as elsewhere:
        assert elsewhere.host.run('echo "${DISPLAY-none}"').stdout == "none\n"


def test_a_command_is_nowhere_to_be_seen(shell: deskhand.Shell, desktop: deskhand.Desktop) -> None:
    """C8: neither in the arguments nor in the environment of any process, while it runs."""
    canary = f"canary{uuid.uuid4().hex}"
    # The one who looks says it otherwise. The last command is not the last, or bash would become it.
    look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c "
    for run in (shell.run, desktop.host.run):
        result = run(f"set -a; secret={canary}; unset secret; {look}{canary[:20]}[{canary[20]}]; {look}-v ^$; :")
        found, seen = result.stdout.split()
        assert int(found) == 0
        assert int(seen) > 10
    command = f"set -a\n: {canary}\nsleep 0.5\n:"
    thread = threading.Thread(target=shell.run, args=(command,))
    thread.start()
    shown = []
    while thread.is_alive():
        for pid in _processes():
            files = [Path("/proc", pid, name) for name in ("cmdline", "environ") if pid != str(os.getpid())]
            shown += [str(path) for path in files if canary.encode() in _read(path)]
    thread.join()
    assert shown == []
    assert shell.run(f"sleep 0.1; set +a; env | grep -c {canary[:10]}").stdout == "0\n"


def test_signals_are_as_programs_expect_them(shell: deskhand.Shell) -> None:
    assert shell.run("trap 'echo caught' INT HUP; kill -INT $$; kill -HUP $$; trap - INT HUP").stdout == "caught\n" * 2
    assert shell.run("timeout -s INT 0.1 sleep 100").exit_code == 124
    ignored = int(shell.run("grep SigIgn /proc/self/status").stdout.split()[1], 16)
    # Who starts the tests in the background has us ignore some from the beginning; Python itself ignores two more.
    inherited = {number for number in signal.Signals if signal.getsignal(number) is signal.SIG_IGN}
    assert {number for number in signal.Signals if ignored >> number - 1 & 1} <= inherited - {
        signal.SIGPIPE,
        signal.SIGXFSZ,
    }
