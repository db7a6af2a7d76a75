"""OSWorld's tasks are set up on a real desktop and evaluated by a package with upstream's structure, in its own process."""

from __future__ import annotations

import base64
import http.server
import json
import os
import shlex
import socket
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import deskhand
from deskhand import KeyPress, Type
from deskhand.desktop.access import commands_of
from deskhand.episodes.environments.osworld import OSWorldEnv
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.osworld import evaluators as environment
from deskhand.episodes.tasks.osworld.assets import Assets
from deskhand.episodes.tasks.osworld.evaluating import evaluate
from deskhand.episodes.tasks.osworld.home import VLC_SETTINGS, prepare
from deskhand.episodes.tasks.osworld.steps import Steps
from deskhand.episodes.tasks.osworld.taskfile import SetupStep, parse_task
from deskhand.episodes.tasks.suite._acting import wait_for_window
from deskhand.errors import EpisodeError
from deskhand.pool.pool import Pool
from episodes.osworld_checkout import HUB, task_data, write_checkout, write_upstream
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Desktop
    from deskhand.episodes.play.episode import Episode


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1280, 800)) as made:
        yield made


@pytest.fixture
def context(desktop: Desktop) -> TaskContext:
    return TaskContext(desktop, {}, commands_of(desktop).home or "")


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    (tmp_path / "gold").write_text("the text\n")
    made = Assets(tmp_path / "assets")
    made.put(f"{HUB}gold.txt", tmp_path / "gold")
    return made


def evaluated(python: str, context: TaskContext, assets: Assets, *, limit: float = 60.0, **parts: Any) -> float:
    data = task_data(evaluator={**task_data()["evaluator"], **parts})
    task = parse_task(json.dumps(data).encode(), domain="os", id="t-1")
    return evaluate(task, context, assets, environment._examined(python), gave_up=False, limit=limit)


RULE = {"type": "rule", "rules": {"expected": "42\n"}}
COMMAND = {"type": "vm_command_line", "command": ["expr", "6", "*", "7"]}


# --- evaluation ---


def test_the_environment_is_examined(python: str) -> None:
    found = environment._examined(python)
    assert found.version == environment.load_table().version
    assert "requests" in found.packages
    assert "easyocr" not in found.packages
    with pytest.raises(EpisodeError, match="cannot be used as the Python"):
        environment._examined("/bin/false")


def test_a_file_of_the_desktop_is_compared_by_upstreams_code(python: str, context: TaskContext, assets: Assets) -> None:
    context.run("rm -rf Desktop")
    assert evaluated(python, context, assets) == 0.0
    context.write("Desktop/a.txt", "another\n")
    assert evaluated(python, context, assets) == 0.0
    context.write("Desktop/a.txt", "the text\n")
    assert evaluated(python, context, assets) == 1.0


def test_a_command_of_a_getter_runs_on_the_desktop(python: str, context: TaskContext, assets: Assets) -> None:
    for result in (COMMAND, {"type": "vm_command_line", "command": "expr 6 \\* 7", "shell": True}, {"type": "history"}):
        assert evaluated(python, context, assets, func="exact_match", result=result, expected=RULE) == 1.0


def test_the_post_configuration_comes_first(python: str, context: TaskContext, assets: Assets) -> None:
    context.run("rm -rf Desktop")
    steps = [
        {
            "type": "execute",
            "parameters": {"command": "mkdir Desktop; echo 'the text' > /home/user/Desktop/a.txt", "shell": True},
        }
    ]
    assert evaluated(python, context, assets, postconfig=steps) == 1.0


def test_what_a_command_says_is_kept_for_the_evaluation(python: str, context: TaskContext, assets: Assets) -> None:
    steps = [{"type": "command", "parameters": {"command": ["echo", "the text"], "stdout": "said.txt"}}]
    found = {"type": "cache_file", "path": "said.txt"}
    assert evaluated(python, context, assets, postconfig=steps, result=found) == 1.0


@pytest.mark.parametrize(
    ("func", "said"),
    [
        ("check_list", r"KeyError: .an evaluator that fails.* \(general.py, line \d+\)"),
        ("fuzzy_match", "needs packages that are missing: absent_package"),
        ("is_in_list", "its score is .42"),
        ("check_transition", "a module that no metric here needs"),
        ("no_such", "desktop-env has no .*no_such"),
    ],
)
def test_an_evaluator_that_fails_is_named(
    python: str, context: TaskContext, assets: Assets, func: str, said: str
) -> None:
    with pytest.raises(EpisodeError, match=said):
        evaluated(python, context, assets, func=func, result=COMMAND, expected=RULE)


def test_an_evaluator_that_never_ends_is_ended(python: str, context: TaskContext, assets: Assets) -> None:
    with pytest.raises(EpisodeError, match="took more than 2 s and was ended"):
        evaluated(python, context, assets, limit=2.0, func="literal_match", result=COMMAND, expected=RULE)
    assert context.run(f"pgrep -f {python}").stdout == ""


def test_a_post_configuration_that_fails_ends_the_evaluation(python: str, context: TaskContext, assets: Assets) -> None:
    with pytest.raises(EpisodeError, match="step 1 of 1, tidy_desktop: it is not carried out here"):
        evaluated(python, context, assets, postconfig=[{"type": "tidy_desktop", "parameters": {}}])


OFFICE = ".config/libreoffice/4/user/registrymodifications.xcu"
WALLPAPER = "org.gnome.desktop.background picture-uri"


def test_the_wallpaper_is_the_file_of_its_setting(python: str, context: TaskContext, assets: Assets) -> None:
    def judged() -> float:
        return evaluated(python, context, assets, result={"type": "vm_wallpaper", "dest": "wallpaper.png"})

    def choose(address: str) -> None:
        assert context.run(f"gsettings set {WALLPAPER} {shlex.quote(address)}").exit_code == 0

    right, wrong = context.write("Pictures/the right one's.png", "the text\n"), context.write("wrong.png", "another\n")
    context.run(f"gsettings reset {WALLPAPER}")
    assert judged() == 0.0
    choose(f"file://{wrong}")
    assert judged() == 0.0
    for address in (f"file://{urllib.parse.quote(right)}", f"file://{right}", right):
        choose(address)
        assert judged() == 1.0
    for nothing in ("", "file:///dev/zero", f"file://{context.home}", "file:///nowhere/at/all.png"):
        choose(nothing)
        assert judged() == 0.0
    context.run(f"gsettings reset {WALLPAPER}")


STATUS = """<root><state>{}</state><information>
    <category name='meta'><info name='filename'>{}</info></category>
</information></root>"""
PLAYING = {"type": "vlc_playing_info", "dest": "status.xml"}


class Player(http.server.BaseHTTPRequestHandler):
    """VLC's web interface, as far as it says what is played."""

    state: ClassVar[tuple[str, str]]

    def do_GET(self) -> None:
        allowed = self.headers["Authorization"] == "Basic " + base64.b64encode(b":password").decode()
        self.send_response(200 if allowed and self.path == "/requests/status.xml" else 401)
        self.end_headers()
        self.wfile.write(STATUS.format(*self.state).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def player() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Player) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_vlc_is_asked_what_it_plays(python: str, context: TaskContext, assets: Assets, player: int) -> None:
    expected = {"type": "rule", "rules": {"type": "file_name", "file_name": "Café.mp4"}}

    def judged(*state: str) -> float:
        Player.state = (state[0], state[1])
        return evaluated(python, context, assets, func="is_vlc_playing", result=PLAYING, expected=expected)

    # As it is written for VLC, and as VLC writes what has its usual value.
    for settings in ("[core]\nextraintf=http\nhttp-port={}\n", "[core]\n#http-port={}\n"):
        context.write(VLC_SETTINGS, settings.format(player))
        assert judged("playing", "Café.mp4") == 1.0
        assert judged("stopped", "Café.mp4") == 0.0
        assert judged("playing", "another.mp4") == 0.0


def test_a_vlc_that_does_not_answer_is_no_score(python: str, context: TaskContext, assets: Assets) -> None:
    def judged() -> float:
        return evaluated(python, context, assets, func="is_vlc_playing", result=PLAYING, expected=RULE)

    # Without a port it is not the machine's port 8080 that is asked.
    context.write(VLC_SETTINGS, "[core]\n")
    with pytest.raises(EpisodeError, match="name no port of its web interface"):
        judged()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    context.write(VLC_SETTINGS, f"http-port={port}\n")
    with pytest.raises(EpisodeError, match="VLC does not answer: curl"):
        judged()


# --- steps ---


def carry_out(
    context: TaskContext, assets: Assets, *steps: tuple[str, dict[str, Any]], folder: Path | None = None
) -> None:
    Steps(context, assets, folder).carry_out([SetupStep(kind, parameters) for kind, parameters in steps])


def test_a_home_directory_is_prepared(context: TaskContext) -> None:
    context.run("rm -rf .config/libreoffice")
    prepare(context)
    found = context.files(".")
    assert {"Desktop", "Documents", "Downloads"} <= set(found)
    assert context.run("test -x .local/bin/google-chrome && .local/bin/python -c 'print(1)'").stdout == "1\n"
    for before in (None, "<oor:items>\n<item/>\n</oor:items>\n"):
        if before is not None:
            context.write(OFFICE, before)
        prepare(context)
        settings = context.text(OFFICE) or ""
        assert settings.startswith("<?xml" if before is None else "<oor:items>\n<item/>\n")
        assert (settings.count("WarnAlienFormat"), settings.rstrip()[-12:]) == (1, "</oor:items>")


@pytest.mark.soak
def test_a_post_configuration_saves_a_document_of_another_format(
    desktop: Desktop, context: TaskContext, assets: Assets
) -> None:
    context.run(f"rm -rf .config/libreoffice; mkdir -p {context.home}/Documents")
    prepare(context)
    path = context.write("Documents/note.rtf", "{\\rtf1 one}")
    carry_out(context, assets, ("open", {"path": path}))
    wait_for_window(desktop, "note.rtf")
    desktop.perform(KeyPress(("ctrl", "End")), Type(" and two"))
    save = "import pyautogui; pyautogui.hotkey('ctrl', 's')"
    Steps(context, assets, late=True).carry_out([SetupStep("execute", {"command": ["python", "-c", save]})])
    until(lambda: "and two" in (context.text(path) or ""), 6.0, "the saved text")
    carry_out(context, assets, ("close_window", {"window_name": "note.rtf"}))


def test_files_commands_and_names_in_braces(context: TaskContext, assets: Assets, tmp_path: Path) -> None:
    files = [{"url": f"{HUB}gold.txt", "path": "/home/user/Desktop/deep/gold.txt"}]
    line = "cat /home/user/Desktop/deep/gold.txt; echo {SCREEN_WIDTH_HALF} {SCREEN_HEIGHT}"
    carry_out(
        context,
        assets,
        ("download", {"files": files}),
        ("execute", {"command": ["bash", "-c", line], "stdout": "out"}),
        ("execute", {"command": line, "shell": True, "stdout": "shell"}),
        ("command", {"command": ["python", "-c", "import sys; sys.exit('told')"], "stderr": "err"}),
        folder=tmp_path,
    )
    assert (tmp_path / "out").read_text() == (tmp_path / "shell").read_text() == "the text\n640 800\n"
    assert (tmp_path / "err").read_text() == "told\n"


def test_a_program_is_launched_and_typed_into_without_pyautogui(
    desktop: Desktop, context: TaskContext, assets: Assets
) -> None:
    prepare(context)
    script = "read -r line; echo $line > /home/user/typed; read -r line"
    carry_out(
        context,
        assets,
        ("launch", {"command": ["xterm", "-T", "Typing - here", "-e", "bash", "-c", script]}),
        ("launch", {"command": ["socat", "tcp-listen:9222,fork", "tcp:localhost:1337"]}),
        ("sleep", {"seconds": 3600}),
        ("activate_window", {"window_name": "typing — HERE"}),
        ("activate_window", {"window_name": "typing", "strict": False, "by_class": False}),
        (
            "execute",
            {"command": ["python", "-c", "import pyautogui; import time; time.sleep(9); pyautogui.write('ab')"]},
        ),
        ("execute", {"command": ["python3", "-c", "import pyautogui; pyautogui.press(['enter'])"]}),
    )
    assert context.text("typed") == "ab\n"
    carry_out(context, assets, ("close_window", {"window_name": "typing"}))
    assert [window.title for window in desktop.windows.list() if "Typing" in window.title] == []
    # What is gone is nothing to fail for: an agent may have closed it.
    Steps(context, assets, late=True).carry_out([SetupStep("close_window", {"window_name": "typing"})])


def test_the_terminal_is_opened_by_its_keys_and_ended_by_its_name(
    desktop: Desktop, context: TaskContext, assets: Assets
) -> None:
    keys = "import pyautogui; pyautogui.hotkey('ctrl', 'alt', 't')"
    carry_out(context, assets, ("execute", {"command": ["python", "-c", keys]}))
    assert [window.title for window in desktop.windows.list()] == ["Terminal"]
    carry_out(context, assets, ("execute", {"command": ["/bin/bash", "-c", "killall xterm"]}))
    assert desktop.windows.list() == []


def test_a_step_that_fails_is_named(context: TaskContext, assets: Assets) -> None:
    files = [{"url": f"{HUB}absent", "path": "/home/user/a"}]
    for step, said in (
        (("download", {"files": files}), r"step 1 of 1, download: the file of .*absent is not in the cache"),
        (("login", {}), "step 1 of 1, login: it is not carried out here"),
        (("chrome_open_tabs", {"urls_to_open": ["javascript:alert(1)"]}), "is no address that a browser opens"),
    ):
        with pytest.raises(EpisodeError, match=said):
            carry_out(context, assets, step)


# --- as tasks ---


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool("local", size=1, warm=0, screen=(1280, 800)) as made:
        yield made


def played(task: Any, pool: Pool, agent: Any) -> dict[str, Any]:
    return attempt(task, Key(task.name, "", 0, 0), pool, agent)


def test_tasks_are_played_and_graded_as_upstream_does(
    tmp_path: Path, pool: Pool, python: str, assets: Assets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKHAND_ASSETS", str(assets.directory))
    monkeypatch.setenv("DESKHAND_OSWORLD_PYTHON", python)
    counting = {"type": "execute", "parameters": {"command": "echo x >> /home/user/evaluated", "shell": True}}
    data = task_data("text", evaluator={**task_data()["evaluator"], "postconfig": [counting]})
    absent = task_data(
        "absent", config=[{"type": "download", "parameters": {"files": [{"url": f"{HUB}no", "path": "/a"}]}}]
    )
    never = task_data("never", evaluator={"func": "infeasible"})
    bare = task_data("bare", config=[{"type": "launch", "parameters": {"command": ["no-such-program"]}}])
    name = write_checkout(tmp_path, {"os": [data, absent, never, bare, task_data("broken", evaluator=1)]})
    text, lacking, infeasible, bare_task, broken = find_tasks([name])
    homes = []

    def nothing(episode: Episode) -> None:
        homes.append(commands_of(episode.desktop).home)

    def write(episode: Episode) -> str:
        home = Path(commands_of(episode.desktop).home or "")
        (home / "Desktop" / "a.txt").write_text("the text\n")
        return "done"

    assert (result := played(text, pool, nothing))["score"] == 0.0, result
    result = played(text, pool, write)
    assert (result["score"], result["success"], result["state"]) == (1.0, True, {"functions": ["compare_text_file"]})
    # An agent that gives up has not done it, whatever it has done.
    assert played(text, pool, lambda episode: f"{write(episode)}, or not?\nFAIL")["score"] == 0.0
    assert played(infeasible, pool, lambda _: "FAIL")["score"] == 1.0
    assert played(infeasible, pool, lambda _: "I did it.")["score"] == 0.0
    for task, said in ((lacking, "files that it downloads are not in the cache: 1"), (broken, "evaluator: it is 1")):
        result = played(task, pool, nothing)
        assert (result["valid"], result["cause"], result["times"]["reset"]) == (False, Cause.CANNOT_RUN, 0.0)
        assert said in result["detail"]
    # Which programs a desktop has is known when it is there.
    result = played(bare_task, pool, nothing)
    assert (result["valid"], result["cause"]) == (False, Cause.CANNOT_RUN), result
    assert "a program is missing: no-such-program" in result["detail"]


def test_the_environment_grades_what_cannot_be_done(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"os": [task_data("never", evaluator={"func": "infeasible"})]})
    [task] = find_tasks([name])
    with OSWorldEnv(action_space="pyautogui", screen_size=(1280, 800)) as env:
        for action, score in (("FAIL", 1.0), ("DONE", 0.0)):
            env.reset(task_config=task)
            assert env.step(action)[2]
            assert env.evaluate() == score


def test_an_evaluation_acts_once(
    tmp_path: Path, pool: Pool, python: str, assets: Assets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKHAND_ASSETS", str(assets.directory))
    monkeypatch.setenv("DESKHAND_OSWORLD_PYTHON", python)
    once = {"type": "execute", "parameters": {"command": "echo 'the text' >> /home/user/Desktop/a.txt", "shell": True}}
    name = write_checkout(tmp_path, {"os": [task_data(evaluator={**task_data()["evaluator"], "postconfig": [once]})]})
    [task] = find_tasks([name])
    assert played(task, pool, lambda _: None)["score"] == 1.0


def test_the_worker_runs_on_its_own() -> None:
    """It is started with another environment's Python, which does not have this package."""
    source = Path(environment.__file__).with_name("_worker.py").read_text()
    assert "deskhand" not in source.replace("deskhand's", "")
    assert os.access(sys.executable, os.X_OK)
