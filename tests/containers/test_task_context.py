"""What setup and evaluation see of a desktop in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.episodes.tasks.context import TaskContext

if TYPE_CHECKING:
    from pathlib import Path

    import deskhand


def test_many_files_are_written_with_their_directories(desktop: deskhand.Desktop) -> None:
    context = TaskContext(desktop, {}, desktop.machine.home)
    desktop.machine.run("mkdir -p ~/there && echo -n kept > ~/there/kept && echo old > ~/there/old")
    files: dict[str, bytes | str] = {
        "a": b"\x00\xff",
        "new/deep er/naïve ☕": "naïve ☕",
        "there/old": "new",
        "empty": "",
    }
    context.write_all(files)
    context.write_all({})
    for name, data in files.items():
        assert context.read(name) == (data.encode() if isinstance(data, str) else data)
    assert context.text("there/kept") == "kept"
    assert context.files("new") == {"deep er": "directory", "deep er/naïve ☕": "file"}
    # The desktop's user may go on with them.
    changed = desktop.machine.run("cd ~/new && mv 'deep er' shallow && echo more >> shallow/naïve* && rm ~/a")
    assert (changed.exit_code, changed.stderr) == (0, "")


def test_a_path_is_one_of_the_container_and_not_of_this_machine(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    context = TaskContext(desktop, {}, desktop.machine.home)
    there = f"/tmp/{tmp_path.name}-stage/a"  # in the container
    outside = str(tmp_path / "a")
    context.write_all(
        {context.path("absolute/a"): "by its path", there: "beside it", "../../tmp/up": "up", outside: "x"}
    )
    assert context.text("absolute/a") == "by its path"
    assert context.text(there) == "beside it"
    assert context.text("/tmp/up") == "up"  # likewise
    assert context.text(outside) == "x"
    assert list(tmp_path.iterdir()) == []
