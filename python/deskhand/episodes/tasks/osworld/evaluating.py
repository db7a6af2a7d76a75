"""Evaluates a task of OSWorld by upstream's own code, in a process and an environment of its own.

This module owns the driver's end of the pipe: the job, the answers to what evaluators ask of the desktop, and the limits. The
other end is `_worker.py`. What must never appear here: a metric.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import json
import math
import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from deskhand._core.redaction import one_line
from deskhand.desktop.access import bare
from deskhand.episodes.tasks.osworld.home import VLC_PASSWORD, VLC_SETTINGS
from deskhand.episodes.tasks.osworld.steps import Steps, run_command
from deskhand.episodes.tasks.osworld.taskfile import at_home
from deskhand.errors import BackendError, DeskhandError, EpisodeError, shown
from deskhand.machine import children
from deskhand.providers import osworld

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.osworld.assets import Assets
    from deskhand.episodes.tasks.osworld.evaluators import Evaluators
    from deskhand.episodes.tasks.osworld.taskfile import TaskFile

LIMIT = 110.0
"""Seconds that an evaluation may take, with its post-configuration."""

_WORKER = Path(__file__).parent / "_worker.py"
_LARGEST_FILE = 64 << 20
_LONGEST_LINE = 8 << 20
_PERIOD = 0.25
_END_LIMIT = 5.0
_LOG = 2000
_SHOWN = 300
# What the evaluators' process gets of this one's environment. Any other variable may be a key to something.
_ALLOWED = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")
_MOST_NODES = 20_000
_WALLPAPER = "gsettings get org.gnome.desktop.background picture-uri"
# VLC comments out what has its usual value when it saves its settings.
_VLC_PORT = re.compile(rb"^#?http-port=(\d{1,5})\s*$", re.MULTILINE)
_VLC_SECONDS = 20


def evaluate(
    task: TaskFile,
    context: TaskContext,
    assets: Assets,
    evaluators: Evaluators,
    *,
    gave_up: bool,
    limit: float = LIMIT,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """The score that upstream gives to the state of a desktop.

    Args:
        task: The task.
        context: The desktop.
        assets: The cache with the files that evaluators compare with.
        evaluators: The environment with upstream's package.
        gave_up: Whether the agent's last word was FAIL.
        limit: Seconds after which the evaluation is ended.
        clock: Monotonic seconds.

    Raises:
        EpisodeError: The evaluator raised, took too long, needs a package that is missing, or its process ended.
    """
    with tempfile.TemporaryDirectory(prefix="deskhand-osworld-") as folder:
        cache = Path(folder, "cache")
        cache.mkdir()
        _give_files(task, assets, cache)
        job = {
            "evaluator": at_home(task.evaluator, context.home),
            "cache_dir": str(cache),
            "action_history": ["FAIL" if gave_up else "DONE"],
        }
        with (Path(folder) / "log").open("w+b") as log:
            process = subprocess.Popen(
                [evaluators.python, "-I", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=cache,
                env={name: os.environ[name] for name in _ALLOWED if name in os.environ} | {"MPLBACKEND": "Agg"},
                start_new_session=True,
            )
            try:
                answer = _converse(process, job, _Answers(task, context, assets, cache), clock() + limit, limit, clock)
            finally:
                _end(process)
            return _score(answer, log)


def _give_files(task: TaskFile, assets: Assets, cache: Path) -> None:
    """Put the files that `cloud_file` would download where it looks first."""
    for getter in (*task.results, *task.expected):
        if getter is None or getter["type"] != "cloud_file":
            continue
        paths, names = (each if isinstance(each, list) else [each] for each in (getter.get("path"), getter.get("dest")))
        for url, name in zip(paths, names, strict=False):
            place = cache / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(assets.read(url))


def _converse(  # noqa: PLR0917 # called in one place
    process: subprocess.Popen[bytes],
    job: Mapping[str, Any],
    answers: _Answers,
    deadline: float,
    limit: float,
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Send the job and answer until the score comes."""
    assert process.stdin is not None  # noqa: S101 # both are pipes
    assert process.stdout is not None  # noqa: S101
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        os.set_blocking(process.stdout.fileno(), False)
        _send(process.stdin, job)
        kept = bytearray()
        while True:
            if clock() > deadline:
                raise EpisodeError(f"the evaluator took more than {limit:g} s and was ended")
            if not waiting.select(_PERIOD):
                continue
            piece = os.read(process.stdout.fileno(), 1 << 16)
            kept += piece
            if not piece:
                return {"failed": "its process ended without a score"}
            if len(kept) > _LONGEST_LINE:
                raise EpisodeError(f"the evaluator asked for more than {_LONGEST_LINE >> 20} MiB at once")
            while (end := kept.find(b"\n")) >= 0:
                message = _message(bytes(kept[:end]))
                del kept[: end + 1]
                if "call" not in message:
                    return message
                _send(process.stdin, answers.answer(message))


def _send(pipe: IO[bytes], message: Mapping[str, Any]) -> None:
    # A worker that has ended says so by the end of its output.
    with contextlib.suppress(BrokenPipeError):
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise EpisodeError(f"the evaluator's process wrote {shown(line)}, which is no message")
    return message


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with all that it started, and close the pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    children.end(process, _END_LIMIT)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _score(answer: Mapping[str, Any], log: IO[bytes]) -> float:
    missing = answer.get("missing")
    if isinstance(missing, list) and missing:
        hint = "see `deskhand assets evaluators`"
        raise EpisodeError(
            f"the evaluator needs packages that are missing: {', '.join(map(str, missing))[:_SHOWN]}", hint
        )
    score = answer.get("score")
    if "failed" in answer or not isinstance(score, (int, float)) or isinstance(score, bool) or not math.isfinite(score):
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - _LOG))
        said = log.read().decode(errors="replace")
        what = answer.get("failed", f"its score is {shown(score)}")
        raise EpisodeError(
            f"the evaluator failed: {one_line(str(what), _SHOWN)}; its output ended with: {one_line(said, _LOG)}"
        )
    return float(score)


class _Answers:
    """Answers what evaluators ask of a desktop."""

    def __init__(self, task: TaskFile, context: TaskContext, assets: Assets, cache: Path) -> None:
        self._task = task
        self._context = context
        self._desktop = bare(context.desktop)
        self._steps = Steps(context, assets, cache, late=True)

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one call: its value, or an error."""
        name, arguments = message.get("call"), message.get("arguments")
        known: Mapping[str, Callable[..., Any]] = {
            "execute": self._execute,
            "execute_python_command": self._execute_python,
            "get_accessibility_tree": self._tree,
            "get_file": self._file,
            "get_terminal_output": self._terminal,
            "get_vm_desktop_path": lambda: self._context.path("Desktop"),
            "get_vm_directory_tree": self._directory,
            "get_vm_platform": lambda: "Linux",
            "get_vm_screen_size": lambda: dict(zip(("width", "height"), self._desktop.size, strict=True)),
            "get_vm_wallpaper": self._wallpaper,
            "get_vm_window_size": self._window_size,
            "get_vlc_status": self._vlc_status,
            "setup": self._set_up,
        }
        do = known.get(str(name))
        if do is None or not isinstance(arguments, dict):
            return {"error": f"a desktop has no {name}"}
        try:
            value = do(**arguments)
        except TypeError as error:
            return {"error": str(error)}
        except DeskhandError as error:
            if name == "setup":
                # Upstream's evaluation ends there too.
                raise
            return {"error": str(error)}
        if isinstance(value, bytes):
            value = {"bytes": base64.b64encode(value).decode()}
        return {"value": value}

    def _set_up(self) -> bool:
        self._steps.carry_out(self._task.post)
        return True

    def _execute(self, command: object, shell: object = False) -> dict[str, Any]:  # noqa: FBT002 # its name on the pipe
        words = [str(word) for word in command] if isinstance(command, list) else [str(command)]
        line = " ".join(words) if shell or len(words) == 1 else shlex.join(words)
        return self._ran(line)

    def _execute_python(self, command: str) -> dict[str, Any]:
        if self._steps.act(str(command)):
            return {"status": "success", "output": "", "error": "", "returncode": 0}
        return self._ran(shlex.join(["python3", "-c", str(command)]))

    def _ran(self, line: str) -> dict[str, Any]:
        done = run_command(self._context, line)
        status = "error" if done.exit_code is None else "success"
        return {"status": status, "output": done.stdout, "error": done.stderr, "returncode": done.exit_code}

    def _file(self, file_path: str) -> bytes | None:
        path = str(file_path)
        path = self._context.home + path[1:] if path.startswith("~/") else path
        try:
            data = self._context.read(path)
        except (BackendError, OSError):
            return None
        if data is not None and len(data) > _LARGEST_FILE:
            raise EpisodeError(f"{path} has {len(data)} bytes, and at most {_LARGEST_FILE} are evaluated")
        return data

    def _tree(self) -> str:
        # The tasks know the browser by another name, see the steps.
        return osworld.accessibility_xml(self._desktop.elements()).replace('name="Chromium"', 'name="Google Chrome"')

    def _terminal(self) -> str | None:
        shown_in = [each.text for each in self._desktop.elements() if each.role == "terminal" and each.text]
        return shown_in[-1] if shown_in else None

    def _window_size(self, app_class_name: str) -> dict[str, int] | None:
        for window in reversed(self._desktop.windows.list()):
            if str(app_class_name).lower() in window.class_name.lower():
                return {"width": window.rect.width, "height": window.rect.height}
        return None

    def _wallpaper(self) -> bytes | None:
        """The file that GNOME's setting names, which is all that upstream's server looks at too."""
        said = run_command(self._context, _WALLPAPER)
        if said.exit_code != 0:
            raise EpisodeError(f"the wallpaper's setting cannot be read: {said.stderr.strip() or said.outcome}")
        try:
            address = ast.literal_eval(said.stdout.strip())
        except (ValueError, SyntaxError):
            address = None
        if not isinstance(address, str):
            raise EpisodeError(f"the wallpaper's setting is {shown(said.stdout)}, which is no address")
        path = unquote(address.removeprefix("file://")) if address.startswith("file://") else address
        # An agent may have chosen anything, such as a device that never ends.
        there = run_command(self._context, f"test -f {shlex.quote(path)}")
        return self._file(path) if there.exit_code == 0 else None

    def _vlc_status(self) -> str:
        """What VLC says of itself by its web interface, asked on the desktop's machine."""
        found = _VLC_PORT.search(self._context.read(VLC_SETTINGS) or b"")
        if found is None:
            raise EpisodeError("VLC's settings name no port of its web interface, so that it cannot be asked")
        address = f"http://127.0.0.1:{int(found[1])}/requests/status.xml"
        asked = ["curl", "-sS", "--fail", "--noproxy", "*", "-m", str(_VLC_SECONDS), "-u", f":{VLC_PASSWORD}", address]
        said = run_command(self._context, shlex.join(asked))
        if said.exit_code != 0:
            raise EpisodeError(f"VLC does not answer: {said.stderr.strip() or said.outcome}")
        return said.stdout

    def _directory(self, path: str) -> dict[str, Any]:
        top: dict[str, Any] = {"type": "directory", "name": str(path).rstrip("/").rpartition("/")[2], "children": []}
        known = {"": top}
        for place, kind in list(self._context.files(str(path)).items())[:_MOST_NODES]:
            folder, _, name = place.rpartition("/")
            node: dict[str, Any] = {"type": "directory" if kind == "directory" else "file", "name": name}
            if kind == "directory":
                node["children"] = []
                known[place] = node
            if folder in known:
                known[folder]["children"].append(node)
        return top
