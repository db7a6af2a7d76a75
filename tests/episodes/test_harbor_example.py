"""`examples/harbor` without Harbor, which needs Python 3.12: its server and its agent's client run on this machine."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "harbor"


def constant(name: str) -> Any:
    """What the agent's module assigns to a name; it cannot be imported without Harbor."""
    for node in ast.parse((EXAMPLE / "scripted.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise KeyError(name)


def test_the_calls_of_the_scripted_agent_solve_the_task(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("bread\n")
    (server,) = tomllib.loads((EXAMPLE / "notes" / "task.toml").read_text("utf-8"))["environment"]["mcp_servers"]
    assert (server["transport"], server["command"]) == ("stdio", "deskhand")
    args = [arg.replace("/app/notes.txt", str(notes)) for arg in server["args"]]
    here = {"command": sys.executable, "args": ["-m", "deskhand", *args]}
    command = [sys.executable, "-c", constant("CLIENT"), json.dumps(here), json.dumps(constant("STEPS"))]
    environment = {**os.environ, "HOME": str(tmp_path)}
    called = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert called.returncode == 0, called.stderr
    assert notes.read_text() == "bread\nmilk\n"
