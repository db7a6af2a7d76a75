"""The text editor over a container's files: what it does with real ones, and with what is put in its way."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import ActionError, BackendError, Desktop, Listing
from deskhand.episodes.play.budget import StepBudget
from deskhand.episodes.play.replay_agent import repeating
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.tasks.task import TaskLimits
from deskhand.providers.editors import TextEditor
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HERE = "/home/user/edited"


@pytest.fixture
def sh(desktop: Desktop) -> Iterator[Callable[[str], str]]:
    """Runs a command in a directory that is there for this test."""

    def run(command: str) -> str:
        done = desktop.machine.run(f"mkdir -p {HERE} && cd {HERE} && {command}")
        assert done.exit_code == 0, done.stderr
        return done.stdout

    yield run
    desktop.machine.run(f"chmod -R u+rwX {HERE}; rm -rf {HERE}")


@pytest.fixture
def editor(desktop: Desktop) -> TextEditor:
    return TextEditor(desktop)


def test_a_file_is_made_viewed_changed_and_changed_back(editor: TextEditor, sh: Callable[[str], str]) -> None:
    path = f"{HERE}/new/primes.py"
    assert editor.create(path, "def f(n):\n    return n\n") == f"File created successfully at: {path}"
    assert editor.view(path) == "1: def f(n):\n2:     return n"
    sh("chmod 750 new/primes.py")
    assert editor.replace(path, "return n", "return 2 * n") == (
        f"Successfully replaced text at exactly one location in {path}. This is around it now:\n"
        "1: def f(n):\n2:     return 2 * n"
    )
    said = editor.insert(path, 0, "# primes\n\n")
    assert said.startswith(f"Successfully inserted 2 lines after line 0 of {path}.")
    assert sh("cat new/primes.py; stat -c %a new/primes.py; ls -A new") == (
        "# primes\n\ndef f(n):\n    return 2 * n\n750\nprimes.py\n"
    )
    assert editor.view(path, (3, -1)) == "3: def f(n):\n4:     return 2 * n"
    assert editor.undo(path) == f"The last edit of {path} was undone."
    assert editor.undo(path) == f"The last edit of {path} was undone."
    assert sh("cat new/primes.py") == "def f(n):\n    return n\n"
    with pytest.raises(ActionError, match=r"no edit of .*; the creation of a file cannot be undone"):
        editor.undo(path)


def test_what_somebody_else_has_changed_is_not_taken_back(editor: TextEditor, sh: Callable[[str], str]) -> None:
    sh("echo one >file")
    editor.replace(f"{HERE}/file", "one", "two")
    sh("echo three >>file")
    with pytest.raises(ActionError, match="has changed since it was edited here: nothing was undone"):
        editor.undo(f"{HERE}/file")
    assert sh("cat file") == "two\nthree\n"


def test_a_directory_is_listed_two_levels_deep_without_what_is_hidden(
    editor: TextEditor, desktop: Desktop, sh: Callable[[str], str]
) -> None:
    sh(
        "mkdir -p a/b/c .git/x a/.cache; touch a/one a/b/two a/b/c/three .hidden 'with blank'; ln -s /etc link; "
        "touch \"$(printf 'odd\\nname')\" \"$(printf '\\377')\""
    )
    assert editor.view(f"{HERE}/").splitlines() == [
        f"The files and directories up to 2 levels deep in {HERE}, without hidden ones:",
        *("\\xff", "a/", "a/b/", "a/one", "link", "'odd\\nname'", "with blank"),
    ]
    listing = desktop.machine.view_file(HERE)
    assert isinstance(listing, Listing)
    assert not listing.more
    assert desktop.machine.view_file(f"{HERE}/a/b/c") == Listing(("three",))
    assert "link/" not in listing.names, "nothing behind a link is listed"
    assert editor.view(f"{HERE}/.git").endswith("\nx/")
    sh("mkdir empty many; cd many; seq -f %0100g 1 4000 | xargs touch")
    assert editor.view(f"{HERE}/empty") == f"There are no files and directories in {HERE}/empty, besides hidden ones."
    assert editor.view(f"{HERE}/many").endswith("\n(there are more)")
    with pytest.raises(ActionError, match="view_range is for files"):
        editor.view(HERE, (1, 2))
    with pytest.raises(ActionError, match="is a directory: use view"):
        editor.replace(HERE, "a", "b")
    with pytest.raises(BackendError, match="File exists"):
        editor.create(HERE, "x")


_MESS = [
    ("ln -s /etc/passwd link", "link", "leads through a link to '/etc/passwd': name that instead"),
    ("ln -s /etc link", "link/passwd", "leads through a link to '/etc/passwd': name that instead"),
    ("ln -s /nowhere/x link", "link", "leads through a link to '/nowhere/x'"),
    ("ln -s link link", "link", "link"),
    ("mkfifo pipe", "pipe", "neither a file nor a directory: it is a fifo"),
    ("true", "missing", f"there is no '{HERE}/missing'"),
    ("mkdir shut; touch shut/file; chmod 0 shut", "shut", "Permission denied"),
    ("touch file; chmod 0 file", "file", "Permission denied"),
    ("truncate -s 5M file", "file", "larger than 4194304 bytes"),
    ("printf '\\377\\376a' >file", "file", "is not UTF-8 text"),
    ("printf 'ELF\\0\\0' >file", "file", "is binary"),
]


@pytest.mark.parametrize(("mess", "path", "why"), soaked(_MESS, but=_MESS[::2]))
def test_what_is_put_in_its_way_is_told_and_left_as_it_is(
    editor: TextEditor, sh: Callable[[str], str], mess: str, path: str, why: str
) -> None:
    sh(mess)
    look = "ls -lAR --time-style=+ . 2>/dev/null; cksum /etc/passwd; test -d file || cksum file 2>/dev/null; true"
    before = sh(look)
    there = f"{HERE}/{path}"
    calls: list[Callable[[], Any]] = [
        lambda: editor.view(there),
        lambda: editor.replace(there, "a", "b"),
        lambda: editor.insert(there, 0, "a"),
    ]
    for call in calls:
        with pytest.raises((BackendError, ActionError), match=None) as told:
            call()
        assert why in str(told.value) or "is a directory" in str(told.value)
    if path != "missing":
        with pytest.raises(BackendError, match=r"File exists|leads through a link|Permission denied|Too many levels"):
            editor.create(f"{there}/deeper" if path == "shut" else there, "mine")
    assert sh(look) == before


def test_devices_and_what_the_kernel_makes(editor: TextEditor) -> None:
    with pytest.raises(BackendError, match="it is a character special file"):
        editor.view("/dev/zero")
    assert editor.view("/proc/version").startswith("1: Linux version")
    with pytest.raises(BackendError, match="cannot write"):
        editor.replace("/etc/hostname", "\n", "x\n")


@pytest.mark.parametrize(
    ("given", "place"),
    [(f"{HERE}//file", f"{HERE}/file"), (f"{HERE}/x/../file", f"{HERE}/file"), (f"/{HERE}/./file", f"{HERE}/file")],
)
def test_paths_are_made_what_they_are(editor: TextEditor, sh: Callable[[str], str], given: str, place: str) -> None:
    sh("echo here >file")
    assert editor.view(given) == "1: here"
    assert f"in {place}." in editor.replace(given, "here", "there")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("notes.txt", "the path 'notes.txt' is not absolute; in the home directory it is /home/user/notes.txt"),
        ("../etc/passwd", "is not absolute; in the home directory it is /home/etc/passwd"),
        ("", "path must be the absolute path of a file"),
        ("/a\0b", "path must be the absolute path of a file"),
        ("/" + "a" * 5000, "path must be the absolute path of a file"),
        ("/a\ud800", "a lone surrogate"),
        ("/tmp/there/", "names a directory"),
        (7, "path must be the absolute path of a file, not 7"),
    ],
)
def test_what_is_no_path_is_refused(editor: TextEditor, path: Any, why: str) -> None:
    with pytest.raises(ActionError) as told:
        editor.create(path, "x")
    assert why in str(told.value)


def test_a_name_that_is_too_long_is_the_systems_to_refuse(editor: TextEditor) -> None:
    with pytest.raises(BackendError, match=r"name too long|there is no"):
        editor.view(f"/tmp/{'a' * 300}")


def test_texts_that_no_file_can_have_are_refused(editor: TextEditor, sh: Callable[[str], str]) -> None:
    sh("echo a >file")
    for text, why in (("\0", "zero byte"), ("\ud800", "surrogate"), ("a" * (5 << 20), "files of up to 4194304 bytes")):
        for call in (
            lambda text=text: editor.create(f"{HERE}/other", text),
            lambda text=text: editor.replace(f"{HERE}/file", "a", text),
            lambda text=text: editor.insert(f"{HERE}/file", 1, text),
        ):
            with pytest.raises(ActionError, match=why):
                call()
    assert sh("cat file; ls") == "a\nfile\n"
    big = "é" * (1 << 20)
    editor.create(f"{HERE}/big", big)
    with pytest.raises(ActionError, match="files of up to 4194304 bytes"):
        editor.insert(f"{HERE}/big", 0, big + big[:10])


def test_lines_that_end_as_on_windows_stay_so(editor: TextEditor, sh: Callable[[str], str]) -> None:
    sh("printf 'a\\r\\nb\\r\\nc\\r\\n' >file")
    path = f"{HERE}/file"
    assert editor.view(path) == "1: a\n2: b\n3: c"
    editor.replace(path, "a\nb", "x\ny")
    editor.insert(path, 3, "d")
    assert sh("od -c file | sed 's/ //g'") == "0000000x\\r\\ny\\r\\nc\\r\\nd\\r\\n\n0000014\n"
    editor.undo(path)
    editor.undo(path)
    assert sh("cat file") == "a\r\nb\r\nc\r\n"


def test_a_new_file_never_takes_the_place_of_another(desktop: Desktop, sh: Callable[[str], str]) -> None:
    sh("echo old >file; ln -s file link; ln -s gone dangling; mkdir dir")
    for name in ("file", "link", "dangling", "dir"):
        with pytest.raises(BackendError, match=r"File exists|leads through a link"):
            desktop.machine.write_file(f"{HERE}/{name}", "new", new=True)
    assert sh("cat file; ls -A") == "old\ndangling\ndir\nfile\nlink\n"
    desktop.machine.write_file(f"{HERE}/deep/down/new", "new", new=True)
    assert sh("cat deep/down/new; stat -c %a deep/down/new; ls -A deep/down") == "new644\nnew\n"


def test_a_replay_edits_again(desktop: Desktop, sh: Callable[[str], str], tmp_path: Path) -> None:
    """What an agent has edited is in the record of its attempt, and comes out the same when it is done again."""
    path = f"{HERE}/notes"
    directory = tmp_path / "attempt-1"
    with FrameStore(tmp_path / "frames") as store:
        recorder = Recorder(directory, store)
        recorder.attach(desktop)
        acting = TextEditor(desktop.also(StepBudget(TaskLimits(), recorder)))
        acting.create(path, "one\ntwo\n")
        acting.replace(path, "two", "three ☕")
        recorder.close()
    sh("rm notes")
    events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
    recording = SimpleNamespace(directory=directory, events=events, frames={})
    repeating(recording)(SimpleNamespace(desktop=desktop))  # type: ignore[arg-type] # all that is needed
    assert sh("cat notes") == "one\nthree ☕\n"
