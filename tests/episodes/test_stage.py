"""What setup and evaluation see of a desktop here; of one in a container see `containers/test_stage.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.episodes.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop


def test_many_files_are_written_with_their_directories(
    launch: Callable[..., Desktop], home: Path, tmp_path: Path
) -> None:
    stage = Stage(launch(size=(320, 200)), {}, str(home))
    (home / "there").mkdir()
    (home / "there" / "kept").write_text("kept")
    (home / "there" / "old").write_text("old")
    elsewhere = str(tmp_path / "elsewhere" / "a")
    files: dict[str, bytes | str] = {
        "a": b"\x00\xff",
        "new/deep er/naïve ☕": "naïve ☕",
        "there/old": "new",
        "empty": "",
        stage.path("absolute/a"): "by its path",
        elsewhere: "beside it",
    }
    stage.write_all(files)
    stage.write_all({})
    for name, data in files.items():
        assert stage.read(name) == (data.encode() if isinstance(data, str) else data)
    assert stage.text("there/kept") == "kept"
    assert stage.files("new") == {"deep er": "directory", "deep er/naïve ☕": "file"}
    assert stage.read("new/deep er") is None
    assert stage.text("a") is None
