"""Peers that read the accessibility tree, each in a process of its own: `python -m bench.elements_worker NAME WHERE`.

They answer lines of JSON (see `child`), and take the time themselves: what the pipe costs is in no number. This file is run by
interpreters that have no deskhand, so it imports nothing of ours. What must never appear here: code of a peer.
"""

from __future__ import annotations

import ast
import contextlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_WANTED = {
    "MAX_CALLS",
    "MAX_DEPTH",
    "MAX_WIDTH",
    "_accessibility_ns_map",
    "_accessibility_ns_map_ubuntu",
    "_create_atspi_node",
    "_get_libreoffice_version",
    "get_accessibility_tree",
    "libreoffice_version_tuple",
}
_MOST_ELEMENTS = 100_000


def osworld(source: Path) -> Callable[[], tuple[int, str]]:
    """The walk of OSWorld's server, out of its own file.

    The rest of that file is Flask, PyAutoGUI and Windows: what answers `/accessibility` on Linux is taken out as it stands.
    `libreoffice --version`, which it runs before each walk, is asked once and not timed.
    """
    import lxml.etree  # noqa: PLC0415 # only its environment has them
    import pyatspi  # noqa: PLC0415

    tree = ast.parse(source.read_text("utf-8"))
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _WANTED:
            node.decorator_list = []
            body.append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in _WANTED for target in targets):
                body.append(node)
    # Annotations name types that are nowhere needed.
    body.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
    space: dict[str, Any] = {
        "STATE_SHOWING": pyatspi.STATE_SHOWING,
        "StateType": pyatspi.StateType,
        "concurrent": type("concurrent", (), {"futures": futures}),
        "jsonify": lambda given: given,
        "logger": logging.getLogger("osworld"),
        "lxml": lxml,
        "platform": platform,
        "pyatspi": pyatspi,
        "subprocess": subprocess,
    }
    code = compile(ast.fix_missing_locations(ast.Module(body, [])), str(source), "exec")
    exec(code, space)  # noqa: S102 # the caller's copy of the program that is measured
    version = space["_get_libreoffice_version"]() if shutil.which("libreoffice") else (7, 4)
    space["_get_libreoffice_version"] = lambda: version

    def read() -> tuple[int, str]:
        text: str = space["get_accessibility_tree"]()["AT"]
        # Each element has one name; the frame around all has none.
        return text.count(" name="), text

    return read


def xa11y(_: Path) -> Callable[[], tuple[int, str]]:
    """The whole tree of each application."""
    import xa11y as module  # noqa: PLC0415

    def count(node: dict[str, Any]) -> int:
        return 1 + sum(map(count, node["children"]))

    def read() -> tuple[int, str]:
        trees = [each.tree() for each in module.App.list()]
        return sum(map(count, trees)), ""

    return read


def cua(program: Path) -> Callable[[], tuple[int, str]]:
    """Cua's driver, asked as a model's client asks it: `list_windows`, and `get_window_state` of each, without a picture."""
    subprocess.run([program, "telemetry", "disable"], stdout=subprocess.DEVNULL, check=False)
    server = subprocess.Popen([program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr)
    requests, answers = server.stdin, server.stdout
    assert requests is not None  # noqa: S101 # both are pipes
    assert answers is not None  # noqa: S101
    number = 0

    def call(method: str, **parameters: Any) -> Any:
        nonlocal number
        number += 1
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        requests.write(json.dumps(message).encode() + b"\n")
        requests.flush()
        while line := answers.readline():
            answer = json.loads(line)
            if answer.get("id") == number:
                if "error" in answer or answer["result"].get("isError"):
                    raise RuntimeError(str(answer)[:300])
                return answer["result"]
        raise RuntimeError("cua-driver ended")

    call("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "bench", "version": "1"})
    requests.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def read() -> tuple[int, str]:
        nodes = 0
        listed = call("tools/call", name="list_windows", arguments={})["structuredContent"]["windows"]
        for window in listed:
            if window.get("pid"):
                what = {"pid": window["pid"], "window_id": window["window_id"]}
                asked = {**what, "include_screenshot": False, "max_elements": _MOST_ELEMENTS}
                state = call("tools/call", name="get_window_state", arguments=asked)["structuredContent"]
                nodes += state.get("total_element_count") or len(state.get("elements", ()))
        return nodes, ""

    return read


def main() -> None:
    """Answer until the asking side closes."""
    # Libraries print; that must not look like an answer.
    out = os.dup(1)
    os.dup2(2, 1)
    name, where = sys.argv[1:]
    read: Callable[[], tuple[int, str]] | None = None
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, object] = {}
        try:
            if read is None:
                read = {"osworld": osworld, "xa11y": xa11y, "cua": cua}[name](Path(where))
            if message["op"] == "read":
                begun = time.perf_counter()
                nodes, _ = read()
                answer = {"ms": (time.perf_counter() - begun) * 1000, "nodes": nodes}
        except Exception as error:  # noqa: BLE001 # whatever it is, the asking side decides what to do about it
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(BrokenPipeError):
            os.write(out, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
