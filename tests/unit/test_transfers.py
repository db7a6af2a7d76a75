"""What goes between a page and its desktop in pieces: names of files and where they go, and pictures of a clipboard."""

from __future__ import annotations

import base64
import io
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from deskhand import ActionError, BackendError, Closed, Desktop, PolicyDenied, UnsupportedAction
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import keep
from deskhand.machine.interface import Listing
from deskhand.watch.file_names import file_name, numbered
from deskhand.watch.messages import parse
from deskhand.watch.person_input import PersonInput
from deskhand.watch.pictures import as_png, is_png, picture_type
from deskhand.watch.storing import folder_of, store
from deskhand.watch.transfers import LARGEST, MOST_FILES, PIECE, Download, Upload
from deskhand.watch.watched import Watched
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.desktop.operations import Operation

LIMIT = 10.0


def upload(size: int, kind: str = "file", name: str = "a.txt", changed: Callable[[], None] = lambda: None) -> Upload:
    return Upload({"id": 7, "kind": kind, "name": name, "size": size}, changed)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("größe 日本.txt", "größe 日本.txt"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("C:\\Windows\\x.txt", "x.txt"),
        ("C:x.txt", "C_x.txt"),
        ("/", "file"),
        ("", "file"),
        (".", "file"),
        ("..", "file"),
        ("...", "file"),
        (" . .profile", "profile"),
        (".bashrc", "bashrc"),
        ("-rf", "_-rf"),
        ("~root", "_~root"),
        ("a\0b\nc\x1b[31m.txt", "abc[31m.txt"),
        ("txt.\u202eexe", "txt.exe"),
        ("\ud800.txt", "txt"),
        ("nul", "_nul"),
        ("COM1.txt", "_COM1.txt"),
        ("console.txt", "console.txt"),
        ("a.txt. ", "a.txt"),
        ("x/", "x"),
        ("e\u0301.txt", "é.txt"),
        ("a" * 300 + ".tar.gz", "a" * 197 + ".gz"),
        ("é" * 300, "é" * 100),
    ],
)
def test_names_of_files(given: str, name: str) -> None:
    assert file_name(given) == name


@given(st.text(max_size=600))
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    for name in (file_name(text), list(zip(range(3), numbered(file_name(text)), strict=False))[2][1]):
        assert 0 < len(name.encode()) <= 255
        assert not set(name) & set("/\\\0\n\r\x1b:")
        assert not name.startswith((".", "-", "~", " "))
        assert not name.endswith((".", " "))
        assert name.isprintable() or "\u200c" in name or "\u200d" in name or not name.isascii()


def test_names_that_are_taken_get_numbers() -> None:
    assert [name for name, _ in zip(numbered("a.b.png"), range(3), strict=False)] == [
        "a.b.png",
        "a.b (1).png",
        "a.b (2).png",
    ]
    assert list(numbered("none"))[-1] == "none (999)"


def test_pieces_have_the_length_that_was_announced() -> None:
    made = upload(PIECE + 10)
    with pytest.raises(ActionError, match="not announced"):
        made.take(bytes(PIECE))
    made.accept()
    for wrong in (0, 1, 10, PIECE - 1, PIECE + 1):
        with pytest.raises(ActionError, match="not announced"):
            made.take(bytes(wrong))
    assert not made.take(b"a" * PIECE)
    assert made.state() == {"id": 7, "received": PIECE, "over": False, "where": "", "error": ""}
    with pytest.raises(ActionError, match="not announced"):
        made.take(bytes(11))
    assert made.take(b"b" * 10)
    with pytest.raises(ActionError, match="not announced"):
        made.take(b"c")
    assert made.whole() == b"a" * PIECE + b"b" * 10
    # Whoever has it ends it, and nobody else.
    made.cancel()
    assert not made.over
    made.end(where="/a")
    made.end(error="late")
    assert made.state() == {"id": 7, "received": PIECE + 10, "over": True, "where": "/a", "error": ""}


def test_what_was_on_its_way_when_it_ended_is_dropped() -> None:
    made = upload(2 * PIECE)
    made.accept()
    made.drop("the hold has ended")
    assert not made.take(bytes(PIECE))
    assert not made.take(bytes(PIECE))
    with pytest.raises(ActionError, match="nothing of it is left"):
        made.whole()
    assert made.state()["error"] == "the hold has ended"
    with pytest.raises(ActionError, match="not announced"):
        made.take(bytes(PIECE))
    gone = upload(PIECE)
    gone.accept()
    gone.cancel()
    with pytest.raises(ActionError, match="not announced"):
        gone.take(bytes(PIECE))


def test_a_picture_leaves_in_pieces() -> None:
    data = bytes(range(256)) * 5000
    download, got = Download(data), b""
    while (piece := download.piece()) is not None:
        assert (piece["size"], piece["at"]) == (len(data), len(got))
        got += base64.b64decode(piece["data"])
    assert got == data


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": LARGEST + 1},
        {"size": -1},
        {"size": 1.5},
        {"size": True},
        {"kind": "link"},
        {"name": 5},
        {"name": "x" * 2001},
        {"id": "1"},
        {"more": 1},
    ],
)
def test_what_is_announced_is_checked(wrong: dict[str, Any]) -> None:
    message = {"type": "upload", "id": 1, "kind": "file", "name": "", "size": LARGEST}
    assert parse(json.dumps(message)) == message
    with pytest.raises(ActionError):
        parse(json.dumps({**message, **wrong}))


def file_of(kind: str, mode: str = "RGB", size: tuple[int, int] = (3, 2)) -> bytes:
    made = io.BytesIO()
    Image.new(mode, size, (10, 20, 30, 40)[: len(mode)]).save(made, kind)
    return made.getvalue()


def test_pictures_become_png() -> None:
    assert picture_type(("TARGETS", "image/jpeg", "image/bmp")) == "image/bmp"
    assert picture_type(("text/html", "image/svg+xml")) is None
    png = file_of("PNG")
    assert as_png(png, "image/png") is png
    for kind, type_ in (("BMP", "image/bmp"), ("TIFF", "image/tiff"), ("WEBP", "image/webp"), ("JPEG", "image/jpeg")):
        made = as_png(file_of(kind), type_)
        assert is_png(made)
        assert Image.open(io.BytesIO(made)).size == (3, 2)
    clear = Image.open(io.BytesIO(as_png(file_of("TIFF", "RGBA"), "image/tiff")))
    assert clear.getpixel((0, 0)) == (10, 20, 30, 40)


@pytest.mark.parametrize(
    ("made", "type_", "message"),
    [
        (lambda: b"", "image/png", "is no image/png"),
        (lambda: b"\x89PNG\r\n\x1a\n", "image/png", "is no image/png"),
        (lambda: file_of("BMP"), "image/png", "is no image/png"),
        (lambda: file_of("PNG"), "image/jpeg", "is no image/jpeg"),
        (lambda: file_of("TIFF")[:40], "image/tiff", "is no image/tiff"),
        (lambda: bytes(LARGEST + 1), "image/png", "at most 32 MiB"),
        # A few bytes that would be gigabytes of pixels.
        (lambda: file_of("PNG", "L", (9000, 9000)), "image/png", "81,000,000 pixels"),
        (lambda: file_of("GIF", "L", (9000, 9000)), "image/gif", "81,000,000 pixels"),
    ],
)
def test_pictures_that_are_none_or_too_large_are_refused(made: Callable[[], bytes], type_: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        as_png(made(), type_)


class Inside:
    """A container, as far as files are concerned."""

    home = "/home/user"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.meanwhile: list[str] = []

    def loss(self) -> None:
        pass

    def view_file(self, path: str, *, limit: int) -> Listing:
        assert (path, limit) == ("/home/user/Downloads", 0)
        if not self.files:
            raise BackendError("there is no such directory")
        return Listing(tuple(each.rpartition("/")[2] for each in self.files))

    def write_file(self, path: str, data: bytes, *, new: bool = False) -> None:
        assert new
        if path in self.meanwhile:
            raise BackendError(f"cannot write {path!r} in it: File exists")
        if path.endswith("full"):
            raise BackendError(f"cannot write {path!r} in it: No space left on device")
        self.files[path] = data


class Judge:
    """Denies what a test says, as a policy does, and keeps what it was asked about."""

    judges = True

    def __init__(self, *denied: str) -> None:
        self.denied = denied
        self.asked: list[tuple[str, str, int | None, bytes | None]] = []
        self.before_work: Callable[[], object] = lambda: None

    def before(self, operation: Operation) -> None:
        if operation.holder is not None and operation.type in {"copy_in", "write_file"}:
            self.asked.append((operation.type, operation.target, operation.size, operation.data))
        if operation.type in self.denied:
            raise PolicyDenied(operation.type, "not on this desktop")
        self.before_work()

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        pass


def test_files_of_a_container_are_written_by_its_machine() -> None:
    inside, judge = Inside(), Judge()
    with Desktop(MemoryBackend((64, 48)), inside=inside) as desktop:  # type: ignore[arg-type] # what of a container is used here
        keep(desktop, judge)
        with desktop.control.take("Ada") as hold:
            assert store(hold.desktop, "a.txt", b"1") == "/home/user/Downloads/a.txt"
            inside.meanwhile.append("/home/user/Downloads/a (1).txt")
            assert store(hold.desktop, "../a.txt", b"2") == "/home/user/Downloads/a (2).txt"
            with pytest.raises(BackendError, match="No space left"):
                store(hold.desktop, "full", b"3")
    folder = "/home/user/Downloads/"
    assert inside.files == {f"{folder}a.txt": b"1", f"{folder}a (2).txt": b"2"}
    assert [target for _, target, _, _ in judge.asked] == [
        f"{folder}{name}" for name in ("a.txt", "a (1).txt", "a (2).txt", "full")
    ]
    assert judge.asked[0] == ("write_file", f"{folder}a.txt", 1, b"1")


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Desktop]:
    with Desktop(MemoryBackend((64, 48)), environment={"HOME": str(tmp_path)}) as desktop:
        yield desktop


def test_files_of_this_machine_are_never_overwritten(local: Desktop, tmp_path: Path) -> None:
    judge = Judge()
    keep(local, judge)
    outside = tmp_path / "outside"
    with local.control.take("Ada") as hold:
        assert store(hold.desktop, "a.txt", b"1") == f"{tmp_path}/Downloads/a.txt"
        (tmp_path / "Downloads/b.txt").symlink_to(outside)
        assert store(hold.desktop, "b.txt", b"2") == f"{tmp_path}/Downloads/b (1).txt"
        # One that comes while a policy decides.
        judge.before_work = lambda: (tmp_path / "Downloads/c.txt").write_bytes(b"theirs")
        assert store(hold.desktop, "c.txt", b"3") == f"{tmp_path}/Downloads/c (1).txt"
    assert not outside.exists()
    assert (tmp_path / "Downloads/c.txt").read_bytes() == b"theirs"
    assert judge.asked[0] == ("copy_in", f"the page -> {tmp_path}/Downloads/a.txt", 1, b"1")


def test_a_file_that_a_policy_denies_is_not_written(local: Desktop, tmp_path: Path) -> None:
    keep(local, Judge("copy_in"))
    with local.control.take("Ada") as hold, pytest.raises(PolicyDenied):
        store(hold.desktop, "a.txt", b"1")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_allowed_after_the_hold_is_not_written(local: Desktop, tmp_path: Path) -> None:
    judge = Judge()
    keep(local, judge)
    hold = local.control.take("Ada")
    judge.before_work = hold.release
    with pytest.raises(Closed, match="hold"):
        store(hold.desktop, "a.txt", b"1")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_none_is_told(local: Desktop, tmp_path: Path) -> None:
    (tmp_path / "Downloads").write_text("a file")
    with local.control.take("Ada") as hold, pytest.raises(BackendError, match="cannot write"):
        store(hold.desktop, "a.txt", b"1")
    with Desktop(MemoryBackend((64, 48))) as desktop, pytest.raises(UnsupportedAction, match="cannot be reached"):
        folder_of(desktop)


class Person:
    """A viewer of a watched desktop who may have control."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.failed: list[str] = []
        self.copied: list[tuple[str, bytes]] = []
        watched.enter(self, lambda _: None)

    def take(self, *, force: bool = False) -> None:
        self.watched.take(
            self,
            "Ada",
            failed=self.failed.append,
            copied=lambda text, picture: self.copied.append((text, picture)),
            private=False,
            force=force,
        )

    def send(self, made: Upload, data: bytes) -> dict[str, Any]:
        self.watched.receive(self, made)
        for at in range(0, len(data), PIECE):
            if made.over:
                break
            self.watched.received(self, made, whole=made.take(data[at : at + PIECE]))
        return made.state()


@pytest.fixture
def person(local: Desktop) -> Iterator[Person]:
    watched = Watched("desktop", local, agent=True)
    yield Person(watched)
    watched.close()


def test_only_who_has_control_sends(person: Person, tmp_path: Path) -> None:
    assert "take it first" in person.send(upload(3), b"abc")["error"]
    person.take()
    made = upload(3)
    person.send(made, b"abc")
    until(lambda: made.over, LIMIT, "the file")
    assert made.state()["where"] == f"{tmp_path}/Downloads/a.txt"
    assert "take it first" in Person(person.watched).send(upload(3), b"abc")["error"]


def test_whoever_loses_control_in_between_has_sent_nothing(person: Person, tmp_path: Path) -> None:
    person.take()
    made = upload(PIECE + 1)
    person.send(made, bytes(PIECE))
    assert not made.over
    other = Person(person.watched)
    other.take(force=True)
    assert "control of this desktop" in made.state()["error"]
    assert not made.take(b"x")
    assert list(tmp_path.iterdir()) == []


def test_one_thing_at_a_time_is_sent(person: Person, local: Desktop) -> None:
    judge, wait = Judge(), threading.Event()
    keep(local, judge)
    person.take()
    judge.before_work = lambda: wait.wait(LIMIT)
    first = upload(3)
    person.send(first, b"abc")
    # Also for who has control next, as the first one is still in memory.
    other = Person(person.watched)
    other.take(force=True)
    assert "not on the desktop yet" in other.send(upload(3), b"abc")["error"]
    wait.set()
    until(lambda: first.over, LIMIT, "the file")
    assert first.state()["error"]
    other.send(second := upload(0), b"")
    assert not second.state()["error"]


def test_the_number_of_files_is_bounded(person: Person) -> None:
    person.take()
    for _ in range(MOST_FILES):
        made = upload(1)
        person.watched.receive(person, made)
        made.cancel()
        assert made.state()["error"] == "cancelled"
    assert f"{MOST_FILES} files were sent" in person.send(upload(1), b"x")["error"]


def test_a_picture_is_pasted_and_what_is_none_is_told(person: Person, local: Desktop) -> None:
    person.take()
    png = file_of("PNG")
    for data, error in ((png, ""), (b"GIF89a", "it is no PNG file")):
        made = upload(len(data), "picture")
        person.send(made, data)
        until(lambda made=made: made.over, LIMIT, "the picture")
        assert error in made.state()["error"]
    assert local.clipboard.read_data("image/png") == png
    assert person.failed == []


def test_a_picture_is_copied_where_there_is_no_text(person: Person, local: Desktop) -> None:
    contents: list[dict[str, bytes]] = [
        {"image/bmp": file_of("BMP")},
        {"image/png": file_of("PNG"), "text/plain": b"words"},
        {"text/html": b"<b>"},
    ]
    for number, content in enumerate(contents):
        local.clipboard.write_data(content)
        person.take()
        person.watched.give(person, {"type": "copy"})
        until(lambda number=number: len(person.copied) > number, LIMIT, "the clipboard")
        person.watched.release(person, "")
    assert is_png(person.copied[0][1])
    assert person.copied[1:] == [("words", b""), ("", b"")]


def test_what_ends_before_it_is_written_is_not_written(local: Desktop, tmp_path: Path) -> None:
    inputs = PersonInput(object(), local.control.take("Ada"), lambda _: None, lambda: None)
    for kind in ("file", "picture"):
        inputs.receive(made := upload(3, kind))
        assert made.take(b"abc")
        made.cancel()
        inputs.put_upload(made)
    inputs.receive(last := upload(1, "picture"))
    last.take(b"x")
    inputs.put_upload(last)
    # The thread has done all before it, and the one for files has begun before.
    until(lambda: last.over and "deskhand-files" not in {each.name for each in threading.enumerate()}, LIMIT, "all")
    inputs.end("")
    assert list(tmp_path.iterdir()) == []
    assert local.clipboard.types() == ()
