"""Trees out of a container: whatever a tar stream says, only files of the tree come of it, and nothing of half a tree."""

from __future__ import annotations

import io
import os
import socket
import stat
import tarfile
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand.launchers.docker.copying_in import pack, spooled
from deskhand.launchers.docker.copying_out import staged
from deskhand.launchers.left_out import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT = 1 << 20


def entry(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", link: str = "", mode: int = 0o644) -> bytes:
    """One entry of a stream, in the form that Python's writer gives it."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(data)
    padding = -len(data) % tarfile.BLOCKSIZE
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + data + bytes(padding)


def directory(name: str) -> bytes:
    return entry(name, tarfile.DIRTYPE, mode=0o755)


def symlink(name: str, target: str) -> bytes:
    return entry(name, tarfile.SYMTYPE, link=target)


def hardlink(name: str, target: str) -> bytes:
    return entry(name, tarfile.LNKTYPE, link=target)


def copied(target: Path, parts: Iterable[bytes], *, limit: int = LIMIT, entries: int = 1000) -> tuple[str, ...]:
    stream = io.BytesIO(b"".join(parts) + bytes(2 * tarfile.BLOCKSIZE))
    with staged(target, "'/home/user/tree'") as staging:
        staging.fill(stream, "tree", limit=limit, entries=entries)
        staging.publish()
        return staging.left_out.tell(staging.what)


def test_a_tree_comes_out_as_it_is(tmp_path: Path) -> None:
    parts = [
        directory("./tree"),
        entry("./tree/plain", data=b"words\n"),
        entry("./tree/private", mode=0o400),
        entry("./tree/program", data=b"#!/bin/sh\n", mode=0o6777),
        directory("./tree/below"),
        entry("./tree/below/closed", tarfile.DIRTYPE, mode=0o4500),
        entry("./tree/below/" + "n" * 200, data=bytes(5000)),
        hardlink("./tree/below/same", "./tree/plain"),
        symlink("./tree/below/up", "../plain"),
        symlink("./tree/dangling", "nothing/here"),
    ]
    copied(tmp_path / "out", parts)
    out = tmp_path / "out"
    assert (
        (out / "plain").read_bytes()
        == (out / "below/same").read_bytes()
        == (out / "below/up").read_bytes()
        == b"words\n"
    )
    assert (out / "below" / ("n" * 200)).stat().st_size == 5000
    assert stat.S_IMODE((out / "program").stat().st_mode) & 0o7111 == 0o111 & ~mask()
    assert stat.S_IMODE((out / "plain").stat().st_mode) == 0o644 & ~mask()
    assert stat.S_IMODE((out / "private").stat().st_mode) == 0o600
    assert stat.S_IMODE((out / "below/closed").stat().st_mode) == 0o700
    assert (out / "dangling").readlink() == Path("nothing/here")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def mask() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask:"))
    return int(line.split()[1], 8)


TOP = directory("./tree")
LONG = tarfile.TarInfo("././@LongLink")
LONG.type, LONG.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
SPARSE = tarfile.TarInfo("./tree/holes")
SPARSE.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9999999999"}


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([symlink("./tree", "/etc/passwd")], "may lead out of it"),
        ([symlink("./tree", "neighbour")], "may lead out of it"),
        # A directory that becomes a link, and a link that is to be written through.
        ([TOP, directory("./tree/a"), symlink("./tree/a", "."), entry("./tree/a/x", data=b"x")], "twice"),
        ([TOP, symlink("./tree/a", "."), directory("./tree/a"), entry("./tree/a/x", data=b"x")], "twice"),
        ([TOP, symlink("./tree/a", "."), entry("./tree/a/x", data=b"x")], "is in no directory of it"),
        ([TOP, entry("./tree/a"), entry("./tree/a/x")], "is in no directory of it"),
        ([TOP, entry("./tree/a", data=b"1"), entry("./tree/a", data=b"2")], "twice"),
        ([TOP, TOP], "twice"),
        ([TOP, hardlink("./tree/a", "/etc/passwd")], "is no path in it"),
        ([TOP, hardlink("./tree/a", "../../etc/passwd")], "is no path in it"),
        ([TOP, hardlink("./tree/a", "./tree/later"), entry("./tree/later")], "is a hard link to no file of it"),
        ([TOP, symlink("./tree/s", "x"), hardlink("./tree/s", "./tree/s")], "twice"),
        ([entry("./tree", tarfile.FIFOTYPE)], "is a named pipe"),
        ([entry("./tree", tarfile.CHRTYPE)], "is a device"),
        ([TOP, hardlink("./tree/a", "./tree")], "is a hard link to no file of it"),
        ([TOP, entry("./tree/../../evil", data=b"x")], "is no path in it"),
        ([TOP, entry("/tmp/evil", data=b"x")], "is no path in it"),
        ([TOP, entry("./beside", data=b"x")], "is no path in it"),
        ([TOP, entry("./tree//x", data=b"x")], "is no path in it"),
        ([TOP, entry("./tree/odd", b"Z")], "is of an unknown kind"),
        ([TOP, entry("./tree/holes", tarfile.GNUTYPE_SPARSE)], "is a file with holes"),
        ([TOP, SPARSE.tobuf(tarfile.PAX_FORMAT)], "(holes|damaged)"),
        (
            [TOP, entry("./tree/a", data=bytes(LIMIT // 2)), entry("./tree/b", data=bytes(LIMIT // 2 + 1))],
            "raise the limit",
        ),
        ([TOP, *(directory(f"./tree/{number}") for number in range(1000))], "more than 1000 entries"),
        ([TOP, *(directory("./tree" + "/d" * depth) for depth in range(1, 101))], "deeper than"),
        ([TOP, LONG.tobuf(tarfile.GNU_FORMAT)], "a name has 1073741824 bytes"),
        ([TOP, entry("./tree/a", data=bytes(2000))[:1500]], "damaged"),
        ([b"no tar at all " * 100], "damaged"),
        ([TOP, bytes(2 * tarfile.BLOCKSIZE), bytes(LIMIT + 1000 * 4096 + (2 << 20))], "goes on beyond all files"),
        ([], "the container sent no file"),
    ],
)
def test_what_no_tar_writes_or_is_too_much_is_refused(tmp_path: Path, parts: list[bytes], told: str) -> None:
    secret = tmp_path / "neighbour"
    secret.write_text("the caller's own")
    with pytest.raises(deskhand.BackendError, match=told):
        copied(tmp_path / "out", parts)
    assert list(tmp_path.iterdir()) == [secret]
    assert secret.read_text() == "the caller's own"


OUT = "a symbolic link that may lead out of it, to"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([symlink("./tree/link", "/etc")], [f"'tree/link' ({OUT} '/etc'"]),
        ([symlink("./tree/link", "../neighbour")], [f"'tree/link' ({OUT} '../neighbour'"]),
        ([symlink("./tree/here", "."), symlink("./tree/link", "here/../../neighbour")], ["'tree/link'"]),
        ([directory("./tree/a"), symlink("./tree/a/b", ".."), symlink("./tree/link", "a/b/..")], ["'tree/link'"]),
        (
            [entry("./tree/\x1b]0;owned\x07", data=b"x")],
            ["'tree/\\x1b]0;owned\\x07' (its name has control characters)"],
        ),
        # With all that is in it.
        ([directory("./tree/\n"), entry("./tree/\n/x", data=b"x")], ["'tree/\\n' (", "'tree/\\n/x' ("]),
        ([symlink("./tree/a", "b\nc")], ["'tree/a' (a symbolic link to a name with control characters)"]),
        ([entry("./tree/pipe", tarfile.FIFOTYPE)], ["'tree/pipe' (a named pipe)"]),
        ([entry("./tree/disk", tarfile.BLKTYPE)], ["'tree/disk' (a device)"]),
        ([entry("./tree/null", tarfile.CHRTYPE)], ["'tree/null' (a device)"]),
        (
            [entry("./tree/" + "x" * 200 + "/pipe", tarfile.FIFOTYPE)],
            ["'tree/" + "x" * 200 + "/pipe' (a named pipe)"],
        ),
        (
            [entry("./tree/" + "x" * 600 + "/pipe", tarfile.FIFOTYPE)],
            ["'tree/" + "x" * 244 + "..." + "x" * 244 + "/pipe' (a named pipe)"],
        ),
        (
            [entry("./tree/pipe", tarfile.FIFOTYPE), hardlink("./tree/again", "./tree/pipe")],
            ["'tree/pipe' (a named pipe)", "'tree/again' (another name of what is left out)"],
        ),
        ([symlink("./tree/l", "/etc"), hardlink("./tree/m", "./tree/l")], ["'tree/l'", "'tree/m'"]),
        # Another name of a link leads elsewhere from another place.
        (
            [directory("./tree/a"), symlink("./tree/a/l", "../kept"), hardlink("./tree/m", "./tree/a/l")],
            [f"'tree/m' ({OUT} '../kept'"],
        ),
    ],
)
def test_what_leads_out_or_is_no_file_is_left_out_and_named(
    tmp_path: Path, parts: list[bytes], told: list[str]
) -> None:
    secret = tmp_path / "neighbour"
    secret.write_text("the caller's own")
    with pytest.warns(deskhand.LeftOutWarning, match="'/home/user/tree'") as warned:
        found = copied(tmp_path / "out", [TOP, *parts, entry("./tree/kept", data=b"kept")])
    assert len(found) == len(told)
    for one, beginning in zip(found, told, strict=True):
        assert one.startswith(beginning)
        assert one in str(warned[0].message)
    assert (tmp_path / "out" / "kept").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["neighbour", "out"]
    left = {path.name for path in (tmp_path / "out").rglob("*")}
    assert left <= {"kept", "a", "b", "here", "l"}
    for path in (tmp_path / "out").rglob("*"):
        assert path.resolve().is_relative_to(tmp_path / "out")


def test_many_that_are_left_out_are_counted(tmp_path: Path) -> None:
    pipes = [entry(f"./tree/{number}", tarfile.FIFOTYPE) for number in range(900)]
    with pytest.warns(deskhand.LeftOutWarning):
        found = copied(tmp_path / "out", [TOP, *pipes])
    assert len(found) == 101
    assert found[-1] == "800 more"


def test_another_name_of_a_link_and_names_that_are_no_utf8(tmp_path: Path) -> None:
    odd = "\udcff\udcfe"
    parts = [TOP, symlink("./tree/s", "x"), hardlink("./tree/a", "./tree/s"), entry(f"./tree/{odd}", data=b"odd")]
    assert copied(tmp_path / "out", parts) == ()
    assert (tmp_path / "out" / "a").readlink() == Path("x")
    assert (tmp_path / "out" / odd).read_bytes() == b"odd"


def test_a_large_stream_takes_little_memory(tmp_path: Path) -> None:
    """It goes to the disk as it comes."""
    whole = io.BytesIO(TOP + entry("./tree/large", data=bytes(64 << 20)) + bytes(1024))
    tracemalloc.start()
    try:
        with staged(tmp_path / "out", "it") as staging:
            staging.fill(whole, "tree", limit=64 << 20)
            staging.publish()
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out" / "large").stat().st_size == 64 << 20


def test_what_is_in_its_place_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(deskhand.BackendError, match="give another target"):
        copied(tmp_path / "out", [TOP])
    # A link at the target is replaced, and not followed.
    (tmp_path / "link").symlink_to(tmp_path / "out" / "mine")
    copied(tmp_path / "link", [entry("./tree", data=b"new")])
    assert (tmp_path / "out" / "mine").read_text() == "kept"
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"
    with pytest.raises(deskhand.ActionError, match="there is no directory"):
        copied(tmp_path / "missing" / "out", [TOP])
    assert {path.name for path in tmp_path.iterdir()} == {"out", "link"}


def test_what_goes_in_is_no_link_followed_and_nothing_special(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_bytes(b"data")
    (tree / "link").symlink_to("/etc/passwd")
    packed = io.BytesIO()
    pack(tree, "there", packed)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        found = {member.name: (member.type, member.linkname) for member in archive}
    assert found == {
        "there": (tarfile.DIRTYPE, ""),
        "there/file": (tarfile.REGTYPE, ""),
        "there/link": (tarfile.SYMTYPE, "/etc/passwd"),
    }
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tree / "socket"))
    packed = io.BytesIO()
    left_out = pack(tree, "there", packed)
    with pytest.warns(deskhand.LeftOutWarning, match="it was copied"):
        assert left_out.tell("it") == ("'there/pipe' (a named pipe)", "'there/socket' (a socket)")
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        assert archive.getnames() == ["there", "there/file", "there/link"]
    with pytest.raises(deskhand.ActionError, match="pipe' is a named pipe, and no file or directory"):
        pack(tree / "pipe", "there", io.BytesIO())


def test_what_goes_while_it_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    lstat = Path.lstat

    def late(path: Path) -> os.stat_result:
        if path.name == "b":
            path.unlink(missing_ok=True)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", late)
    packed = io.BytesIO()
    left_out = pack(tmp_path, "there", packed)
    with pytest.warns(deskhand.LeftOutWarning):
        assert left_out.tell("it") == ("'there/b' (it was removed meanwhile)",)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        assert archive.getnames() == ["there", "there/a", "there/c"]


def test_a_full_disk_is_not_what_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(deskhand.BackendError, match=r"cannot write to .*TMPDIR"),
    ):
        pack(tmp_path / "file", "there", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with (
        pytest.raises(deskhand.BackendError, match=r"cannot write to .*absent.*TMPDIR"),
        spooled(tmp_path / "file", "there"),
    ):
        pass


@pytest.mark.parametrize(
    ("said", "known", "named"),
    [
        (b"", True, ()),
        (b"tar: ./tree/s: socket ignored\n", True, ("'tree/s' (a socket)",)),
        (b"tar: ./tree/x: y: file changed as we read it", True, ("'tree/x: y' (it changed while it was copied)",)),
        (b"tar: ./t/x: File removed before we read it\n", True, ("'t/x' (it was removed meanwhile)",)),
        (
            b"tar: ./t/x: File shrank by 5 bytes; padding with zeros\n",
            True,
            ("'t/x' (it became shorter while it was copied)",),
        ),
        (b"tar: ./t: Cannot open: Permission denied\n", False, ()),
    ],
)
def test_what_tar_says_of_a_tree(said: bytes, known: bool, named: tuple[str, ...]) -> None:  # noqa: FBT001
    left_out = LeftOut()
    assert left_out.note_said(said) is known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert left_out.tell("it") == named
