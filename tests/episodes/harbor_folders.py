"""Folders of tasks in Harbor's format, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

TEST = """#!/bin/bash
[ "$(cat done.txt)" = HELLO ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt
"""
SOLVE = "#!/bin/bash\ntr a-z A-Z <start.txt >done.txt\n"
# Of an image that every test of containers has: only its own lines are built.
DOCKERFILE = "FROM {image}\nUSER 0:0\nWORKDIR /app\nCOPY start.txt .\n"


def write_task(root: Path, name: str = "upper", *, toml: str = "", **files: Any) -> Path:
    """Write a task that wants a text in upper case.

    Args:
        root: The folder for its folder.
        name: The name of its folder.
        toml: What its `task.toml` says.
        files: Contents in place of the usual ones: `instruction`, `dockerfile`, `test`, `solve`; None leaves a file out.
    """
    folder = root / name
    contents = {
        "task.toml": toml,
        "instruction.md": files.get("instruction", "Write start.txt in upper case to done.txt.\n"),
        "environment/Dockerfile": files.get("dockerfile", DOCKERFILE.format(image="deskhand/minimal")),
        "environment/start.txt": "hello\n",
        "tests/test.sh": files.get("test", TEST),
        "solution/solve.sh": files.get("solve", SOLVE),
    }
    for path, content in contents.items():
        if content is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
