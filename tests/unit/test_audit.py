"""The audit log: what is in it, and that nothing can be changed in it unseen."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deskhand import (
    ActionError,
    AuditLog,
    CallContext,
    ClassPolicy,
    Desktop,
    Drag,
    FileError,
    Guard,
    KeyPress,
    LeftClick,
    Operation,
    PolicyDenied,
    SafetyCheck,
    Secret,
    Type,
    calling,
)
from deskhand.backends.memory import MemoryBackend
from deskhand.cli.group import commands
from deskhand.policy.audit import verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# 2026-11-21 12:00:00.5 UTC
NOW = 1795262400.5


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    now = 100.0

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    backend = MemoryBackend((64, 48), clock=lambda: now)
    backend.on_wait = pass_time
    with Desktop(backend, name="desk", clock=lambda: now) as desktop:
        yield desktop


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def filled(path: Path, count: int = 6) -> list[bytes]:
    with AuditLog(path, clock=lambda: NOW) as log:
        for number in range(count - 2):
            log.write("decision", number=number)
    return path.read_bytes().splitlines(keepends=True)


def test_what_is_written(desktop: Desktop, path: Path) -> None:
    with AuditLog(path, clock=lambda: NOW) as log:
        judged = desktop.also(Guard(audit=log, ask=lambda *_: True))
        call = CallContext(
            "openai", "c1", agent="a", turn="3", safety_checks=[SafetyCheck("s", "code", "look\x1b out")]
        )
        with calling(call):
            first = judged.perform(LeftClick((5, 6)))
        second = judged.perform(Type(Secret("hunter2")), KeyPress(["Return"]))
        with pytest.raises(PolicyDenied):
            desktop.also(Guard(audit=log)).host.run("rm -rf /", cwd="/tmp", env={"TOKEN": "x"})
        head = log.head
    found = records(path)
    assert [record["event"] for record in found] == [
        *("begin", "decision", "decision", "outcome", "decision", "decision", "outcome", "decision", "end")
    ]
    assert {record["time"] for record in found} == {"2026-11-21T12:00:00.500000+00:00"}
    who = {"provider": "openai", "call_id": "c1", "agent": "a", "turn": "3"}
    check, click, clicked, typed, key, done, shell = (
        {name: value for name, value in record.items() if name not in {"time", "event", "prev", "hash", *who}}
        for record in found[1:-1]
    )
    for record in found[1:4]:
        assert {name: record[name] for name in who} == who
    about = {"desktop": "desk", "index": 0, "count": 1}
    yes = {"decision": "allow", "by": "ask", "reason": "it was asked about: yes"}
    assert check == {
        **about,
        "class": "safety_check",
        "check": "s",
        "action": {"type": "safety_check", "target": "look out"},
        **yes,
    }
    assert click == {
        **about,
        "class": "input",
        "action": {"type": "left_mouse_click", "xy": [5, 6]},
        "decision": "allow",
        "by": "policy",
        "reason": "all of class input is allowed",
    }
    seen = [hashlib.blake2b(each.data, digest_size=32).hexdigest() for each in (first, second)]
    assert clicked == {"actions": ["left_mouse_click"], "done": 1, "after": seen[0], "bytes": len(first.data)}
    assert typed["action"] == {"type": "type", "text": "***", "secret": True}
    assert (typed["by"], typed["before"], key["index"], key["before"]) == ("ask", seen[0], 1, seen[0])
    assert (done["before"], done["after"]) == tuple(seen)
    assert shell["action"] == {"type": "host_shell", "target": "rm -rf /", "cwd": "/tmp", "env": {"TOKEN": "x"}}
    assert (shell["decision"], shell["by"], shell["class"]) == ("deny", "policy", "shell")
    assert found[-2]["hash"] == head
    assert b"hunter2" not in path.read_bytes()
    assert verify(path).broken is None
    assert verify(path, head=head).broken is None


def test_an_action_that_fails(desktop: Desktop, path: Path) -> None:
    with AuditLog(path) as log, pytest.raises(ActionError):
        desktop.also(Guard(audit=log)).perform(LeftClick((1, 1)), LeftClick((999, 1)))
    outcome = records(path)[-2]
    assert (outcome["event"], outcome["error"], outcome["done"]) == ("outcome", "OutOfBounds", 0)


@pytest.mark.parametrize("texts", ["mac", "none"])
def test_texts(desktop: Desktop, path: Path, texts: Any) -> None:
    with AuditLog(path, texts=texts) as log:
        judged = desktop.also(Guard(audit=log))
        for text in ("private", "private", "another"):
            judged.perform(Type(text))
        judged.clipboard.write("private")
    told = [record["action"] for record in records(path) if record["event"] == "decision"]
    private, again, another = (each["text"] for each in told[:3])
    assert private == again == told[3]["target"]
    assert (private == another) == (texts == "none")
    assert ({"length", "mac"} if texts == "mac" else set()) == private.keys()
    assert b"private" not in path.read_bytes()
    with AuditLog(path.with_suffix(".other"), texts=texts) as log:
        # The key is of one log and one process.
        assert (log.describe(Type("private"))["text"] == private) == (texts == "none")


def test_registered_secrets(desktop: Desktop, path: Path) -> None:
    """A model that has seen a secret may put it anywhere."""
    with AuditLog(path, secrets=[Secret("hunter2"), Secret("")]) as log:
        judged = desktop.also(Guard(audit=log))
        with calling(CallContext("hunter2")):
            judged.perform(Type("my hunter2!"))
        with pytest.raises(PolicyDenied):
            judged.host.run("login -p hunter2")
    assert b"hunter2" not in path.read_bytes()
    assert "my ***!" in path.read_text()


def test_a_long_text_is_cut(desktop: Desktop, path: Path) -> None:
    with AuditLog(path) as log:
        desktop.also(Guard(audit=log)).perform(Type("x" * 9000))
    assert records(path)[1]["action"]["text"] == "x" * 8192 + "... and 808 characters more"


def test_no_record_is_too_long_to_be_read_again(desktop: Desktop, path: Path) -> None:
    """A model may ask for a drag along very many points, or set very many variables; the log stays whole and can be opened."""
    points = [(100 + number % 200, 100 + number % 100) for number in range(450_000)]
    with AuditLog(path, texts="full") as log:
        judged = desktop.also(Guard(audit=log, policy=ClassPolicy(allow=["observe"]), limits=None))
        with pytest.raises(PolicyDenied):
            judged.perform(Drag(points))
        with pytest.raises(PolicyDenied):
            judged.host.run("ls", env={f"V{number}": "x" * 8000 for number in range(2000)})
    assert verify(path).broken is None
    with AuditLog(path) as log:
        assert log.head
    drag, variables = (record for record in records(path) if record["event"] == "decision")
    assert drag["action"]["xy"][-1] == "... and 449744 more"
    assert variables["cut"] is True
    assert variables["action"]["env"]["..."] == "and 1984 more"
    assert path.stat().st_size < 1 << 20


def test_no_texts_are_no_commands_and_no_urls_either(desktop: Desktop, path: Path) -> None:
    with AuditLog(path, texts="none") as log:
        judged = desktop.also(Guard(audit=log, ask=lambda *_: False))
        for act in (
            lambda: judged.host.run("echo private", env={"A": "private"}),
            lambda: judged.start("xterm -e private"),
            lambda: judged.operate(Operation("navigate", "https://example.org/?private"), lambda: None),
        ):
            with pytest.raises(PolicyDenied):
                act()
    assert b"private" not in path.read_bytes()
    assert [record["action"]["type"] for record in records(path)[1:-1]] == ["host_shell", "start", "navigate"]


# --- the chain ---


def test_every_change_is_found(path: Path) -> None:
    lines = filled(path)
    for number in range(len(lines)):
        others = lines[:number] + lines[number + 1 :]
        changed = lines[number].replace(b'"time":"2026', b'"time":"2025')
        for broken, at in (
            ([*lines[:number], changed, *lines[number + 1 :]], number + 1),
            (others, number + 1),
            ([*lines[: number + 1], lines[number], *lines[number + 1 :]], number + 2),
            ([*lines[:number], b"\n", *lines[number:]], number + 1),
            ([*lines[:number], b"{}\n", *lines[number:]], number + 1),
            ([*lines[:number], lines[number][:-2] + b"\n", *lines[number + 1 :]], number + 1),
        ):
            path.write_bytes(b"".join(broken))
            found = verify(path)
            if broken is others and number == len(lines) - 1:
                # What is cut off at the end is found by who kept its hash.
                assert found.broken is None
                assert verify(path, head=json.loads(lines[-1])["hash"]).broken == at - 1
            else:
                assert (found.broken, found.records) == (at, at - 1), (number, found)


def test_every_byte_counts(path: Path) -> None:
    whole = b"".join(filled(path, 3))
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = verify(path)
        # The last line end is the one byte without which a log is only torn.
        assert found.broken is not None or (at == len(whole) - 1 and found.records <= 3), at


def test_a_torn_line_is_no_broken_one(path: Path) -> None:
    lines = filled(path)
    for cut in (1, 10, len(lines[-1]) - 1):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        found = verify(path)
        assert (found.records, found.broken, found.torn) == (len(lines) - 1, None, True)
        # Whoever goes on with it says what was there.
        with AuditLog(path) as log:
            log.write("decision")
        found = verify(path)
        assert (found.records, found.broken, found.torn) == (len(lines) + 3, None, False)
        # What lacks nothing but its end of line is whole.
        assert path.read_bytes().count(b"recovered") == (cut < len(lines[-1]) - 1)
        # And only that: another torn piece in the same place is found.
        text = path.read_bytes()
        at = len(b"".join(lines[:-1]))
        path.write_bytes(text[:at] + b"x" + text[at + 1 :])
        assert verify(path).broken == len(lines)


def test_it_goes_on_with_the_chain(path: Path) -> None:
    for _ in range(3):
        filled(path, 4)
    found = verify(path)
    assert (found.records, found.broken) == (12, None)
    # On a chain that is broken at its end, nobody builds.
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"event":"end"', b'"event":"END"'))
    with pytest.raises(ActionError, match="hash is not that of its content"):
        AuditLog(path)
    path.write_text("hello\n")
    with pytest.raises(ActionError, match="not a record of an audit log"):
        AuditLog(path)
    assert path.read_text() == "hello\n"


def test_threads_share_it(path: Path) -> None:
    with AuditLog(path) as log:
        threads = [threading.Thread(target=lambda: [log.write("decision") for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (verify(path).records, verify(path).broken) == (202, None)


# --- the file ---


def test_only_for_its_owner(path: Path, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        AuditLog(path).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o666)
    AuditLog(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link, hard, pipe = tmp_path / "link", tmp_path / "hard", tmp_path / "pipe"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        AuditLog(link)
    os.mkfifo(pipe)
    with pytest.raises(ActionError, match="is not a regular file that you own"):
        AuditLog(pipe)
    hard.hardlink_to(path)
    for each in (hard, path):
        with pytest.raises(ActionError, match="is not a regular file that you own"):
            AuditLog(each)


def test_one_writer(path: Path) -> None:
    with AuditLog(path):
        with pytest.raises(ActionError, match="another process writes"):
            AuditLog(path)
        assert verify(path).broken is None
    AuditLog(path).close()


def test_killed_at_any_moment(path: Path) -> None:
    """What was written before the process was killed is there."""
    code = (
        "import sys, itertools; from deskhand import AuditLog\n"
        f"log = AuditLog({str(path)!r})\n"
        "for n in itertools.count(): log.write('decision', n=n); print(n, flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 100:
            break
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    process.stdout.close()
    found = verify(path)
    assert found.broken is None
    assert found.records >= int(rest[-2] if len(rest) > 1 else 100)
    AuditLog(path).close()
    assert verify(path).broken is None


FULL = """
import json, resource, sys
from deskhand import AuditLog, Desktop, Guard, KeyPress, Move, PolicyDenied, RateLimits
from deskhand.backends.memory import MemoryBackend
backend = MemoryBackend((64, 48))
judged = Desktop(backend).also(Guard(audit=AuditLog(sys.argv[1]), limits=None))
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
done = 0
try:
    while True:
        judged.perform(Move((1, 1)), settle=False)
        done += 1
except PolicyDenied as error:
    message = str(error)
assert len(backend.events) == done, "something was done that could not be written down"
for _ in range(5):
    try:
        judged.perform(KeyPress(["a"]), settle=False)
    except PolicyDenied:
        continue
    raise AssertionError("it was done")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
judged.perform(Move((2, 2)), settle=False)
judged.close()
print(json.dumps([done, message]))
"""


def test_what_cannot_be_written_is_not_done(path: Path) -> None:
    """A disk that is full (here: a file that may not grow) refuses; when there is room again, it goes on, whole."""
    result = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    done, message = json.loads(result.stdout)
    assert done >= 2
    assert "the audit log cannot be written (File too large), and no operation is allowed without it" in message
    found = verify(path)
    assert (found.broken, found.torn) == (None, False)
    assert found.records >= 1 + 2 * done


def test_a_closed_log_refuses(desktop: Desktop, path: Path) -> None:
    log = AuditLog(path)
    judged = desktop.also(Guard(audit=log))
    log.close()
    log.close()
    with pytest.raises(PolicyDenied, match="audit log cannot be written"):
        judged.perform(KeyPress(["a"]))


# --- the command ---


def test_command(path: Path) -> None:
    lines = filled(path)
    head = json.loads(lines[2])["hash"]

    def run(*arguments: str) -> tuple[Any, str]:
        result = CliRunner().invoke(commands, ["audit", "verify", str(path), *arguments], standalone_mode=False)
        return result.return_value, result.output

    assert run() == (0, f"{path}: 6 records, intact; head {json.loads(lines[-1])['hash']}\n")
    assert run("--head", head)[0] == 0
    code, output = run("--head", "0" * 63 + "1", "--json")
    assert (code, json.loads(output)["whole"]) == (1, False)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    assert "4 records, intact; the last line is incomplete" in run()[1]
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert run() == (
        1,
        f"{path}: broken at line 3: it does not follow the record before it; 2 records before it are intact\n",
    )


def test_a_file_that_cannot_be_used_is_told_by_its_name(path: Path) -> None:
    below = path.parent / "none" / "log"
    for use in (AuditLog, verify):
        with pytest.raises(FileError, match="No such file") as caught:
            use(below)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(below))


def test_a_full_disk_is_told_by_the_logs_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with AuditLog(path) as log:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(FileError, match="No space left") as caught:
            log.write("test")
        monkeypatch.undo()
        log.write("test")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert verify(path).broken is None
