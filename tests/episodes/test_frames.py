"""Frames come back as they were, each part of them is stored once, and nothing that was killed is read as one."""

from __future__ import annotations

import errno
import io
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from deskhand.episodes.record.frame_store import FrameStore
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = st.sampled_from([(1, 1), (7, 5), (128, 32), (129, 33), (320, 200), (640, 480), (1366, 768)])
PAINTS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 300), st.integers(1, 90), st.integers(0, 2**32 - 1)),
    min_size=1,
    max_size=6,
)


def black(width: int = 640, height: int = 480) -> NDArray[np.uint8]:
    return np.zeros((height, width, 3), np.uint8)


def noise(seed: int, width: int = 640, height: int = 480) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    (path,) = folder.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@settings(max_examples=60)
@given(size=SIZES, paints=PAINTS)
def test_every_frame_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, size: tuple[int, int], paints: list[tuple[float, float, int, int, int]]
) -> None:
    width, height = size
    with FrameStore(tmp_path_factory.mktemp("frames")) as store:
        roll = store.roll()
        picture = black(width, height)
        kept = {roll.add(picture): picture}
        for x, y, wide, high, seed in paints:
            picture = picture.copy()
            left, top = int(x * (width - 1)), int(y * (height - 1))
            part = picture[top : top + high, left : left + wide]
            part[:] = noise(seed, part.shape[1], part.shape[0]) if seed % 3 else seed % 256
            name = roll.add(picture)
            # By itself, in another store, it has the same name: a name is what is shown, not how it came to be.
            with FrameStore(tmp_path_factory.mktemp("alone")) as alone:
                assert alone.add(picture) == name
            kept[name] = picture
        # Two names for what differs, one for what does not.
        assert len({each.tobytes() for each in kept.values()}) == len(kept)
        for name, each in kept.items():
            assert np.array_equal(store.array(name), each)


def test_a_png_shows_the_same_pixels(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        picture = noise(1, 333, 77)
        name = store.add(picture)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(store.png(name)))), picture)


def test_what_is_the_same_is_stored_once(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        first, second = store.roll(), store.roll()
        name = first.add(noise(1))
        taken = first.stored
        assert second.add(noise(1)) == name
        assert second.stored == 0
        changed = noise(1)
        changed[40, 200] ^= 1
        other = second.add(changed)
        # One tile of 128x32, and the list of all.
        assert 0 < second.stored < taken / 25
        assert np.array_equal(store.array(other), changed)
        assert second.add(noise(1)) == name
        assert rows(tmp_path, "SELECT count(*) FROM frames") == [(2,)]
        assert rows(tmp_path, "SELECT count(*) FROM tiles") == [(15 * 5 + 1,)]


def test_a_frame_that_is_not_kept_has_its_id_and_the_next_one_is_whole(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        roll = store.roll()
        roll.add(black())
        hidden, more = noise(2), noise(2)
        more[0, 0] ^= 255
        name = roll.add(hidden, keep=False)
        assert name not in store
        shown = roll.add(more)
        assert np.array_equal(store.array(shown), more)
        with FrameStore(tmp_path / "other") as other:
            assert other.add(hidden) == name


def test_a_resized_screen_is_another_frame(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        roll = store.roll()
        wide, high = roll.add(black(256, 64)), roll.add(black(128, 128))
        assert wide != high
        assert store.array(wide).shape == (64, 256, 3)
        assert store.array(high).shape == (128, 128, 3)


WRITER = """
import sys
import numpy as np
from deskhand.episodes.record.frame_store import FrameStore
store, seed, count = FrameStore(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
roll = store.roll()
for number in range(count):
    # Every other frame is one that all writers have.
    chance = np.random.default_rng(number if number % 2 else seed * 1_000_000 + number)
    picture = chance.integers(0, 256, (96, 256, 3), np.uint8)
    print(roll.add(picture), number, flush=True)
"""


def start(folder: Path, seed: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(seed), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_one_store(tmp_path: Path) -> None:
    writers = [start(tmp_path, seed, 40) for seed in (1, 2, 3)]
    names: set[str] = set()
    for writer in writers:
        output, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        names |= {line.split()[0] for line in output.splitlines()}
    # 20 that all have, and 20 of each: 2 x 3 tiles a frame, each once.
    assert len(names) == 20 + 3 * 20
    assert rows(tmp_path, "SELECT count(*) FROM tiles") == [(6 * len(names),)]
    with FrameStore(tmp_path) as store:
        for name in names:
            assert store.array(name).shape == (96, 256, 3)


def test_who_is_killed_leaves_whole_frames_only(tmp_path: Path) -> None:
    chance = random.Random(5)
    told: dict[str, NDArray[np.uint8]] = {}
    for seed in range(1, 6):
        writer = start(tmp_path, seed, 100_000)
        assert writer.stdout is not None
        for _ in range(chance.randrange(3, 25)):
            name, number = writer.stdout.readline().split()
            key = int(number)
            generator = np.random.default_rng(key if key % 2 else seed * 1_000_000 + key)
            told[name] = generator.integers(0, 256, (96, 256, 3), np.uint8)
        writer.send_signal(signal.SIGKILL)
        writer.stdout.close()
        writer.wait()
    with FrameStore(tmp_path) as store:
        # What was told to be stored is.
        for name, picture in told.items():
            assert np.array_equal(store.array(name), picture)
        # And whatever else is there is whole.
        for (hash_,) in rows(tmp_path, "SELECT hash FROM frames"):
            assert isinstance(hash_, bytes)
            assert store.array(hash_.hex()).shape == (96, 256, 3)
        assert store.add(black()) in store


FILLER = """
import errno, resource, signal, sys
import numpy as np
from deskhand.episodes.record.frame_store import FrameStore
store = FrameStore(sys.argv[1])
roll = store.roll()
kept = roll.add(np.zeros((200, 320, 3), np.uint8))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
picture = np.random.default_rng(1).integers(0, 256, (200, 320, 3), np.uint8)
try:
    roll.add(picture)
except OSError as error:
    print(error.errno, error.filename)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert np.array_equal(store.array(roll.add(picture)), picture)
assert store.array(kept).max() == 0
"""


def test_a_disk_that_takes_no_more_is_named_and_used_again_when_it_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    number, file = done.stdout.split()
    assert int(number) in {errno.ENOSPC, errno.EIO}
    assert file.startswith(str(tmp_path))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        name = store.add(noise(3, 256, 64))
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tiles SET data = ? WHERE id = 2", (zlib.compress(bytes(128 * 32 * 3)),))
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="does not match its hash"):
        store.array(name)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tiles WHERE id = 2")
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="a tile is missing"):
        store.array(name)
    path.write_bytes(b"no database " * 100)
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="not a database"):
        store.array(name)


@pytest.mark.parametrize("where", ["tile", "list"])
def test_what_is_packed_small_is_not_unpacked_large(tmp_path: Path, where: str) -> None:
    """A quarter of a gigabyte in a quarter of a megabyte, in place of 12 kB."""
    with FrameStore(tmp_path) as store:
        name = store.add(noise(3, 256, 64))
    bomb = zlib.compress(bytes(256 << 20), 9)
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        put = "UPDATE tiles SET data = ? WHERE id = 2" if where == "tile" else "UPDATE frames SET tiles = ?"
        connection.execute(put, (bomb,))
    tracemalloc.start()
    try:
        with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="a packed value has more than"):
            store.array(name)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE frames SET width = 60000, height = 60000", "60000x60000 pixels"),
        ("UPDATE frames SET width = -1", "-1x64 pixels"),
        ("UPDATE frames SET width = 'wide'", "widex64 pixels"),
        ("UPDATE frames SET width = 512", "has 4 tiles instead of 8"),
        ("UPDATE frames SET height = 60", "has 12288 bytes instead of 10752"),
        ("UPDATE frames SET tiles = 'text'", "str in place of bytes"),
        ("UPDATE frames SET tiles = zeroblob(2000000)", "too big"),
        ("UPDATE tiles SET data = substr(data, 1, 100)", "is incomplete"),
    ],
)
def test_what_no_store_writes_is_named(tmp_path: Path, statement: str, told: str) -> None:
    with FrameStore(tmp_path) as store:
        name = store.add(noise(3, 256, 64))
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match=told):
        store.array(name)


def test_a_database_that_computes_and_a_link_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.sqlite"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    endless = f"{numbers} SELECT i AS id, x'00' AS hash, x'00' AS data FROM n"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            f"CREATE VIEW tiles AS {endless};"
            "CREATE TABLE frames (hash BLOB PRIMARY KEY, width INTEGER, height INTEGER, tiles BLOB) WITHOUT ROWID;"
            "PRAGMA user_version = 1;"
        )
        listed = zlib.compress(np.zeros(4, np.uint32).tobytes())
        connection.execute("INSERT INTO frames VALUES (?, 256, 64, ?)", (bytes(16), listed))
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="does not have the tables of frames"):
        store.array("00" * 16)
    elsewhere = path.rename(tmp_path.with_name("elsewhere.sqlite"))
    path.symlink_to(elsewhere)
    with FrameStore(tmp_path) as store, pytest.raises(EpisodeError, match="is a link"):
        store.array("00" * 16)


def test_what_is_not_there_and_what_is_of_another_version_is_named(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        with pytest.raises(EpisodeError, match="there is no frame"):
            store.array("00" * 16)
        assert "not even a name" not in store
        store.add(black())
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with FrameStore(tmp_path) as store:
        with pytest.raises(EpisodeError, match="version 7"):
            store.add(black())
        with pytest.raises(EpisodeError, match="version 7"):
            store.array("00" * 16)


def test_no_array_of_pixels_is_refused(tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        for wrong in (np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.float32), np.zeros((0, 4, 3), np.uint8)):
            with pytest.raises(EpisodeError, match="a frame is an array"):
                store.add(wrong)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


READER = """
import os, sys
from deskhand.episodes.record.frame_store import FrameStore
with FrameStore(sys.argv[1]) as store:
    if os.geteuid() == 0:
        # Who may do everything is not held back by the rights of files.
        os.setuid(65534)
    print(store.array(sys.argv[2]).sum())
"""


def test_a_run_is_read_where_nothing_may_be_written() -> None:
    # The folders that pytest makes are for their owner only.
    with tempfile.TemporaryDirectory() as folder:
        with FrameStore(folder) as store:
            name = store.add(noise(4))
        for path in Path(folder).iterdir():
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        command = [sys.executable, "-c", READER, folder, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        Path(folder).chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == int(noise(4).sum())
