"""`deskhand watch`: its link, its picture, whom it lets act, and its end; and the page as a part of another application."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import deskhand
from deskhand import Move, watch
from deskhand.watch.listening import listening, server_of
from watch.test_attacks import ask, enter, socket, turn

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.desktop.desktop import Desktop

LINK = re.compile(r"Open within 10 minutes, once: ((http://127\.0\.0\.1:\d+/)#\S+)\n")


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], list[str]]]]:
    running: list[subprocess.Popen[str]] = []

    def start(desktop: Desktop, *arguments: str, links: int = 1) -> tuple[subprocess.Popen[str], list[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "deskhand", "watch", f"x11:{desktop.display}", *arguments],
            env={**os.environ, "XAUTHORITY": str(desktop.xauthority)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )
        running.append(process)
        assert process.stdout is not None
        lines: list[str] = []
        while sum(line.startswith("Open") for line in lines) < links:
            line = process.stdout.readline()
            assert line, lines
            lines.append(line)
        return process, lines

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def _opened(lines: list[str]) -> Any:
    """A link as what the tests of attacks take for a server: it gives the token of the link."""
    found = LINK.fullmatch(lines[-1])
    assert found is not None, lines
    return SimpleNamespace(url=found[2], link=lambda *_, **__: found[1])


def test_it_shows_a_desktop_that_another_process_drives(
    launch: Callable[..., Desktop], command: Callable[..., Any]
) -> None:
    desktop = launch(size=(320, 240), window_manager=None)
    process, lines = command(desktop, "--control", "--no-open")
    assert any("can only be watched" in line for line in lines)
    server = _opened(lines)
    with socket(server, enter(server, "watch")) as made:
        first = turn(made)
        assert first["state"]["size"] == [320, 240]
        assert not first["state"]["agent"]
        assert not first["state"]["controllable"]
        assert first["state"]["scopes"] == ["control", "watch"]
        made.send(json.dumps({"type": "pause"}))
        told: list[str] = []
        while not told:
            told = [answer["error"] for answer in turn(made).get("answers", [])]
        assert "runs in another process" in told[0]
        # It is in the way of nobody.
        desktop.perform(Move((20, 20)))
        while not turn(made)["picture"]:
            pass
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (128 + signal.SIGINT, "")


def test_it_takes_control_where_nobody_else_acts(launch: Callable[..., Desktop], command: Callable[..., Any]) -> None:
    desktop = launch(size=(320, 240), window_manager=None)
    target = f"x11:{desktop.display}"
    # The desktop goes on, with nobody who acts on it.
    with deskhand.connect(target, view_only=True, xauthority=desktop.xauthority) as looking:
        desktop._core.backend.close()
        _, lines = command(desktop, "--control", "--no-open", "--links", "2", links=2)
        server = _opened(lines)
        with socket(server, enter(server, "control")) as made:
            assert turn(made)["state"]["controllable"]
            made.send(json.dumps({"type": "take", "private": False, "force": False}))
            # The hold begins a moment before the hands that act in it.
            while not ((turn(made).get("state") or {}).get("holder") or {}).get("mine"):
                pass
            made.send(json.dumps({"type": "move", "x": 77, "y": 88}))
            while looking.pointer != (77, 88):
                turn(made)


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, "-m", "deskhand", "watch", *arguments],
            capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
        )  # fmt: skip
        return ran.returncode, ran.stderr

    code, text = said("--host", "0.0.0.0", "x11::1")
    assert code == 1
    assert "others on the network could read the link and the screen" in text
    code, text = said("x11::64000")
    assert code == 1
    assert "64000" in text
    assert said("--all", "name")[0] == 1
    assert said("--links", "0")[0] == 2


@pytest.fixture
def mounted(launch: Callable[..., Desktop]) -> Iterator[Any]:
    import threading  # noqa: PLC0415 # the annotation above is for the checker only

    desktop = launch(size=(320, 240), window_manager=None)
    page = watch.application(desktop)
    with listening("127.0.0.1", 0) as listener:
        server = server_of(uvicorn, Starlette(routes=[Mount("/desk", page)]), lifespan="off")
        thread: threading.Thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        yield SimpleNamespace(url=url, link=lambda *scopes, **options: page.link(url, *scopes, **options))
        server.handle_exit(signal.SIGINT, None)
        thread.join(60)
    page.close()


def test_it_is_a_part_of_another_application(mounted: Any) -> None:
    assert ask(mounted, "GET", "/desk/")[0] == 200
    assert ask(mounted, "GET", "/desk/main.js")[0] == 200
    token = mounted.link("watch").partition("#")[2]
    code, _, headers = ask(mounted, "POST", "/desk/session", {"token": token, "key": "k" * 43})
    assert code == 200
    assert "Path=/desk/" in headers["set-cookie"]
    keys = headers["set-cookie"].partition(";")[0], "k" * 43
    with socket(mounted, keys, "/desk/live/0") as made:
        assert turn(made)["state"]["size"] == [320, 240]
