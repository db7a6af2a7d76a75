"""OSWorld's own environment drives desktops: run by `make evidence`, for it needs the package `desktop-env`.

`python with_osworld.py [FOLDER]` in an environment with `desktop-env` 1.0.2, what its evaluators import, and deskhand's
dependencies. Nothing of `desktop-env` is changed: its class `DesktopEnv`, its controllers, getters and metrics set up ten
tasks, drive them and grade them, once with the right actions and once with none. Says what was graded, or fails. FOLDER gets
the results in OSWorld's layout: `TASK/traj.jsonl`, `TASK/result.txt`.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import socket
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

import deskhand
from deskhand.providers.osworld.virtual_machines import VirtualMachines

SIZE = (1280, 800)


def terminal(title: str) -> dict[str, Any]:
    return {"type": "launch", "parameters": {"command": ["xterm", "-T", title, "-e", "bash", "--norc"]}}


def run(command: str) -> dict[str, Any]:
    return {"type": "execute", "parameters": {"command": command, "shell": True}}


def rule(**rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


def typed(line: str) -> str:
    return f"pyautogui.typewrite({line!r})\npyautogui.press('enter')"


def output(command: str, expected: str) -> dict[str, Any]:
    result = {"type": "vm_command_line", "command": command, "shell": True}
    return {"func": "exact_match", "result": result, "expected": rule(expected=expected)}


def tasks(files: str, shared: Path, chromium: int) -> list[tuple[dict[str, Any], list[Any]]]:
    """The tasks in OSWorld's format, and what does each. Their files come from an HTTP server at `files`."""
    editor = {"type": "launch", "parameters": {"command": ["mousepad", "note.txt"]}}
    browser = ["chromium", "--no-sandbox", "--no-first-run", f"--remote-debugging-port={chromium}", f"{files}/one.html"]
    (shared / "uploaded.txt").write_text("colour = red\n")
    return [
        (
            {"id": "editor", "config": [editor], "evaluator": output("cat note.txt", "hello, ☕")},
            ["pyautogui.write('hello, ☕')", "pyautogui.hotkey('ctrl', 's')", "DONE"],
        ),
        ({"id": "infeasible", "config": [], "evaluator": {"func": "infeasible"}}, ["FAIL"]),
        (
            {
                "id": "upload",
                "config": [
                    {
                        "type": "upload_file",
                        "parameters": {
                            "files": [{"local_path": str(shared / "uploaded.txt"), "path": "~/conf/app.ini"}]
                        },
                    },
                    {"type": "launch", "parameters": {"command": ["mousepad", "~/conf/app.ini"]}},
                ],
                "evaluator": {
                    "func": "check_list",
                    "result": {"type": "vm_file", "path": "~/conf/app.ini", "dest": "app.ini"},
                    "expected": rule(expect=["^colour = blue$"]),
                },
            },
            [
                "pyautogui.press('end'); pyautogui.press('backspace', presses=3)",
                "pyautogui.write('blue'); time.sleep(0.1); pyautogui.hotkey('ctrl', 's')",
                "DONE",
            ],
        ),
        (
            {
                "id": "download",
                "config": [
                    {"type": "download", "parameters": {"files": [{"url": f"{files}/rows.csv", "path": "~/rows.csv"}]}},
                    terminal("shell"),
                    {"type": "activate_window", "parameters": {"window_name": "shell"}},
                ],
                "evaluator": {
                    "func": "compare_csv",
                    "result": {"type": "vm_file", "path": "~/rows.csv", "dest": "rows.csv"},
                    "expected": {"type": "cloud_file", "path": f"{files}/sorted.csv", "dest": "sorted.csv"},
                },
            },
            [typed("sort rows.csv -o rows.csv"), "WAIT", "DONE"],
        ),
        (
            {
                "id": "directory",
                "config": [
                    run("mkdir -p photos cpjpg && touch photos/a.jpg photos/b.jpg photos/c.txt"),
                    terminal("shell"),
                ],
                "evaluator": {
                    "func": "check_moved_jpgs",
                    "result": {"type": "list_directory", "path": "~/cpjpg"},
                    "expected": rule(expected=["a.jpg", "b.jpg"]),
                },
            },
            [typed("mv photos/*.jpg cpjpg"), "WAIT", "DONE"],
        ),
        (
            {
                "id": "fullscreen",
                "config": [editor],
                "evaluator": {
                    "func": "exact_match",
                    "result": {"type": "vm_window_size", "app_class_name": "Mousepad"},
                    "expected": rule(expected={"width": SIZE[0], "height": SIZE[1]}),
                },
            },
            ["pyautogui.press('f11')", "DONE"],
        ),
        (
            {
                "id": "accessibility",
                "config": [editor],
                "evaluator": {
                    "func": "check_accessibility_tree",
                    "result": {"type": "accessibility_tree"},
                    "expected": rule_list(
                        [{"selectors": ["application[name=mousepad] text"], "text": "shown", "exact": True}]
                    ),
                },
            },
            ["pyautogui.write('shown')", "DONE"],
        ),
        (
            {
                "id": "two-metrics",
                "config": [
                    editor,
                    {
                        "type": "execute",
                        "parameters": {"command": "echo ready; true", "shell": True, "until": {"stdout": "ready"}},
                    },
                ],
                "evaluator": {
                    "func": ["exact_match", "check_include_exclude"],
                    "conj": "and",
                    "postconfig": [
                        {"type": "close_window", "parameters": {"window_name": "mousepad", "by_class": True}},
                    ],
                    "result": [
                        {"type": "vm_command_line", "command": ["cat", "note.txt"]},
                        {
                            "type": "vm_command_line",
                            "command": "python3 -c 'print(open(\"note.txt\").read()[::-1])'",
                            "shell": True,
                        },
                    ],
                    "expected": [rule(expected="abc"), rule(include=["cba"], exclude=["x"])],
                },
            },
            ["pyautogui.typewrite('abc', interval=0.01)", "pyautogui.hotkey('ctrl', 's')", "DONE"],
        ),
        (
            {"id": "computer-13", "config": [editor], "evaluator": output("cat note.txt", "B")},
            [
                {"action_type": "MOVE_TO", "parameters": {"x": 640, "y": 400}},
                {"action_type": "CLICK", "parameters": {}},
                {"action_type": "TYPING", "parameters": {"text": "B"}},
                {"action_type": "HOTKEY", "parameters": {"keys": ["ctrl", "s"]}},
                "DONE",
            ],
        ),
        (
            {
                "id": "browser",
                "config": [
                    {"type": "launch", "parameters": {"command": browser}},
                    {"type": "chrome_open_tabs", "parameters": {"urls_to_open": [f"{files}/two.html"]}},
                ],
                "evaluator": {
                    "func": "is_expected_tabs",
                    "result": {"type": "open_tabs_info"},
                    "expected": rule(type="url", urls=[f"{files}/two.html", f"{files}/three.html"]),
                },
            },
            [
                "pyautogui.hotkey('ctrl', 't'); pyautogui.hotkey('ctrl', 'l')",
                typed(f"{files}/three.html"),
                "WAIT",
                "DONE",
            ],
        ),
    ]


def rule_list(rules: list[Any]) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The files of the tasks over HTTP."""
    (folder / "rows.csv").write_text("c,3\na,1\nb,2\n")
    (folder / "sorted.csv").write_text("a,1\nb,2\nc,3\n")
    for name in ("one", "two", "three"):
        (folder / f"{name}.html").write_text(f"<title>{name}</title><p>{name}</p>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def graded(env: Any, task: dict[str, Any], actions: list[Any], out: Path) -> tuple[float, float, float]:
    """The score, and the seconds of the reset and of all steps; writes what OSWorld's runner writes."""
    out.mkdir(parents=True)
    env.action_space = "computer_13" if any(isinstance(action, dict) for action in actions) else "pyautogui"
    begun = time.monotonic()
    env.reset(task)
    ready = time.monotonic()
    with (out / "traj.jsonl").open("w") as file:
        for number, action in enumerate(actions, 1):
            seen, reward, done, info = env.step(action, pause=0.5 if action == "WAIT" else 0)
            picture = f"step_{number}.png"
            (out / picture).write_bytes(seen["screenshot"])
            line = {"step_num": number, "action": action, "reward": reward, "done": done, "info": info}
            file.write(json.dumps({**line, "screenshot_file": picture}) + "\n")
            assert done == (number == len(actions))
    acted = time.monotonic()
    with contextlib.redirect_stdout(sys.stderr):
        score = float(env.evaluate())
    (out / "result.txt").write_text(f"{score}\n")
    return score, ready - begun, acted - ready


def main(out: Path) -> None:
    # Imported by one of OSWorld's modules, and used by none of the metrics here; it would bring PyTorch.
    sys.modules.setdefault("easyocr", types.ModuleType("easyocr"))
    from desktop_env import desktop_env  # noqa: PLC0415 # after that

    chromium = free_port()
    machines = VirtualMachines(lambda: deskhand.launch(size=SIZE), chromium_port=chromium)
    desktop_env.create_vm_manager_and_provider = machines
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as files:
        os.chdir(name)
        env = desktop_env.DesktopEnv(provider_name="docker", path_to_vm="deskhand", require_a11y_tree=True)
        wrong = []
        print(f"Load of the machine at the beginning: {os.getloadavg()[0]:.1f}.\n")
        print("| task | right actions | none | reset (s) | steps (s) |\n|---|---|---|---|---|", flush=True)
        for task, actions in tasks(files, Path(name), chromium):
            whole = {"instruction": task["id"], **task}
            scores = {}
            for kind, given in (("oracle", actions), ("nothing", ["DONE"])):
                scores[kind] = graded(env, whole, given, out / kind / task["id"])
            right, reset, steps = scores["oracle"]
            print(f"| {task['id']} | {right:g} | {scores['nothing'][0]:g} | {reset:.2f} | {steps:.2f} |", flush=True)
            if (right, scores["nothing"][0]) != (1.0, 0.0):
                wrong.append(task["id"])
        env.close()
    if wrong:
        raise SystemExit(f"graded otherwise than expected: {', '.join(wrong)}")
    print("OSWorld's DesktopEnv, unchanged, has set up, driven and graded all of them.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
