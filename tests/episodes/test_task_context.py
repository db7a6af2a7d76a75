"""What setup and evaluation see of a desktop here; of one in a container see `containers/test_stage.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand.episodes.tasks.context import TaskContext
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop


def test_many_files_are_written_with_their_directories(
    launch: Callable[..., Desktop], home: Path, tmp_path: Path
) -> None:
    context = TaskContext(launch(size=(320, 200)), {}, str(home))
    (home / "there").mkdir()
    (home / "there" / "kept").write_text("kept")
    (home / "there" / "old").write_text("old")
    elsewhere = str(tmp_path / "elsewhere" / "a")
    files: dict[str, bytes | str] = {
        "a": b"\x00\xff",
        "new/deep er/naïve ☕": "naïve ☕",
        "there/old": "new",
        "empty": "",
        context.path("absolute/a"): "by its path",
        elsewhere: "beside it",
    }
    context.write_all(files)
    context.write_all({})
    for name, data in files.items():
        assert context.read(name) == (data.encode() if isinstance(data, str) else data)
    assert context.text("there/kept") == "kept"
    assert context.files("new") == {"deep er": "directory", "deep er/naïve ☕": "file"}
    assert context.read("new/deep er") is None
    assert context.text("a") is None


def test_more_files_than_a_commands_output_has_are_all_listed_or_it_is_said(
    launch: Callable[..., Desktop], home: Path
) -> None:
    context = TaskContext(launch(size=(320, 200)), {}, str(home))
    name = "n" * 200
    for number in range(6000):
        (home / f"{name}{number}").touch()
    assert sum(path.startswith(name) for path in context.files()) == 6000
    assert context.files("nowhere") == {}
    deep = home.joinpath(*[name] * 18)
    deep.mkdir(parents=True)
    for number in range(6000):
        (deep / f"{name}{number}").touch()
    with pytest.raises(BackendError, match=f"the files below {home}/{name} cannot be listed: there are too many"):
        context.files(name)


def test_what_takes_too_long_is_not_taken_for_what_is_not_there(
    launch: Callable[..., Desktop], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = TaskContext(launch(size=(320, 200)), {}, str(home))
    monkeypatch.setattr("deskhand.episodes.tasks.context._LIMIT", 0.1)
    run = TaskContext._run
    monkeypatch.setattr(TaskContext, "_run", lambda self, command, *limits: run(self, f"sleep 60; {command}", *limits))
    with pytest.raises(BackendError, match="cannot be listed: timeout"):
        context.files()
