"""OSWorld's guest server: the requests of OSWorld's own client, in the same forms, on a real desktop."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

import deskhand
from conftest import need
from deskhand import ActionError, BackendError, UnsupportedAction
from deskhand._core.elements import Element, Elements
from deskhand.providers.osworld.guest import Guest
from deskhand.providers.osworld.pyautogui import without_pyautogui
from deskhand.providers.osworld.virtual_machines import Provider, VirtualMachines
from faults.helpers import until
from integration.observer import Observer
from providers.test_cua import downs
from providers.test_serve import KEY, Server, private  # noqa: F401 # a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from providers.test_serve import Served

# What OSWorld's `PythonController` puts before each action.
PREFIX = "import pyautogui; import time; pyautogui.FAILSAFE = False; "
GETS = ("/screenshot", "/accessibility", "/terminal", "/platform", "/cursor_position")
POSTS = (
    *("/execute", "/setup/execute", "/execute_with_verification", "/setup/execute_with_verification", "/setup/launch"),
    *("/screen_size", "/window_size", "/desktop_path", "/wallpaper", "/list_directory", "/file", "/setup/upload"),
    *("/setup/change_wallpaper", "/setup/download_file", "/setup/open_file", "/setup/activate_window"),
    *("/setup/close_window", "/start_recording", "/end_recording", "/run_python", "/run_bash_script"),
)


class Client:
    """A desktop's server, as OSWorld's controllers reach it."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.address, self.port, *_ = provider.get_ip_address("deskhand").split(":")[0:2]
        self.root = f"http://{self.address}:{self.port}"

    def get(self, path: str) -> requests.Response:
        return requests.get(self.root + path, timeout=60)

    def post(self, path: str, content: object = None, **options: Any) -> requests.Response:
        if content is not None:
            options |= {"data": json.dumps(content), "headers": {"Content-Type": "application/json"}}
        return requests.post(self.root + path, timeout=60, **options)

    def python(self, source: str) -> dict[str, Any]:
        answer = self.post("/execute", {"command": ["python", "-c", PREFIX + source], "shell": False})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def shell(self, command: str) -> str:
        return str(self.post("/setup/execute", {"command": command, "shell": True}).json()["output"])


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    # The default program for every file.
    opener = tmp_path_factory.mktemp("bin") / "xdg-open"
    opener.write_text('#!/bin/sh\nexec mousepad "$1"\n')
    opener.chmod(0o755)
    environment = {"PATH": f"{opener.parent}:{os.environ['PATH']}"}
    _, provider = VirtualMachines(lambda: deskhand.launch(env=environment))("docker", None)
    provider.start_emulator("deskhand", headless=False, os_type="Ubuntu")
    yield Client(provider)
    provider.stop_emulator("deskhand")


@pytest.fixture(scope="module")
def home(guest: Client) -> Path:
    return Path(str(guest.provider.desktop.host.home))


@pytest.fixture(scope="module")
def observer(guest: Client) -> Iterator[Observer]:
    desktop = guest.provider.desktop
    assert desktop.display is not None
    with Observer({**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}) as observer:
        yield observer


def test_nobody_is_answered_without_the_key(guest: Client) -> None:
    bare = f"http://127.0.0.1:{guest.port}"
    assert len(GETS) + len(POSTS) == 26
    for path, method in [*((path, "GET") for path in GETS), *((path, "POST") for path in POSTS)]:
        assert requests.request(method, bare + path, timeout=60).status_code == 401, path
        wrong = requests.request(method, bare + path, auth=("osworld", "wrong"), timeout=60)
        assert (wrong.status_code, "Basic" in wrong.headers["www-authenticate"]) == (401, True), path
        page = requests.request(method, guest.root + path, headers={"Origin": "http://a.example"}, timeout=60)
        assert page.status_code == 403, path
        other = requests.request("DELETE", guest.root + path, timeout=60)
        assert other.status_code == 405, path
    assert requests.get(bare + "/platform", headers={"Authorization": "Basic %%%"}, timeout=60).status_code == 401


# The source that `PythonController` makes of actions, and what it does: buttons and keys that go down, and where.
ACTIONS: list[tuple[str, list[Any]]] = [
    ("pyautogui.moveTo(30, 40, 0.7, pyautogui.easeInElastic)", []),
    ("pyautogui.moveTo()", []),
    ("pyautogui.click()", [(1, [30, 40])]),
    ("pyautogui.click(button='right', x=31, y=40, clicks=2)", [(3, [31, 40])] * 2),
    ("pyautogui.mouseDown(button='left')\npyautogui.mouseUp()", [(1, [31, 40])]),
    ("pyautogui.dragTo(35, 40, duration=1.0, button='left', mouseDownUp=True)", [(1, [31, 40])]),
    ("pyautogui.rightClick(x=5, y=6)", [(3, [5, 6])]),
    ("pyautogui.doubleClick(x=205, y=6)", [(1, [205, 6])] * 2),
    ("pyautogui.hscroll(1)", [(7, [205, 6])]),
    ("pyautogui.vscroll(-1)", [(5, [205, 6])]),
    ("pyautogui.typewrite('a\\'b')", ["a", "apostrophe", "b"]),
    ("pyautogui.press('enter')", ["Return"]),
    ("pyautogui.keyDown('shift')\npyautogui.keyUp('shift')", ["Shift_L"]),
    ("pyautogui.hotkey('ctrl', 'c')", ["Control_L", "c"]),
    ("", []),
]


@pytest.mark.parametrize(("source", "expected"), ACTIONS)
def test_actions_are_decoded_and_done(guest: Client, observer: Observer, source: str, expected: list[Any]) -> None:
    observer.events()
    assert guest.python(source) == {"status": "success", "output": "", "error": "", "returncode": 0}
    assert downs(observer) == expected


def test_an_action_that_fails_ends_like_python(guest: Client) -> None:
    ended = guest.python("pyautogui.click(5000, 5)")
    assert (ended["returncode"], "outside" in ended["error"]) == (1, True)


def test_what_the_screen_is(guest: Client) -> None:
    assert guest.post("/screen_size").json() == {"width": 1280, "height": 800}
    guest.python("pyautogui.moveTo(7, 8)")
    assert guest.get("/cursor_position").json() == [7, 8]
    assert guest.get("/platform").text == "Linux"
    picture = guest.get("/screenshot")
    assert (picture.headers["content-type"], picture.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert guest.get("/accessibility").json()["AT"].startswith("<desktop-frame xmlns:st=")
    assert guest.get("/terminal").json() == {"output": None, "status": "success"}


def test_commands_and_source(guest: Client, home: Path) -> None:
    assert guest.python("import os; print(os.path.expanduser('~'))")["output"] == f"{home}\n"
    command = guest.post("/execute", {"command": "printf '%s-' a 'b c'"}).json()
    assert (command["output"], command["returncode"]) == ("a-b c-", 0)
    assert guest.post("/execute", {"command": ["sh", "-c", "echo $1; exit 3", "sh", "~/x"]}).json() == {
        "status": "success", "output": f"{home}/x\n", "error": "", "returncode": 3,
    }  # fmt: skip
    assert guest.shell("echo $((1 + 1)) >&2; pwd") == f"{home}\n"
    assert guest.post("/execute", {"command": ["echo $0", "word"], "shell": True}).json()["output"] == "word\n"

    ran = guest.post("/run_python", {"code": "import sys\nprint('out')\nprint('err', file=sys.stderr)"}).json()
    expected = {"status": "success", "output": "out\n", "error": "err\n", "need_more": False, "return_code": 0}
    assert ran == {**expected, "message": "out\n\nerr\n"}
    failed = guest.post("/run_python", {"code": "raise SystemExit(2)"})
    assert (failed.status_code, failed.json()["status"], failed.json()["return_code"]) == (200, "error", 2)
    assert guest.post("/run_python", {"code": "# " + "x" * 200_000}).json()["status"] == "success"
    assert guest.post("/run_python", {}).status_code == 400

    script = {"script": "echo a; echo b >&2; exit 4", "timeout": 20, "working_dir": "~"}
    assert guest.post("/run_bash_script", script).json() == {
        "status": "error", "output": "a\nb\n", "error": "", "returncode": 4,
    }  # fmt: skip
    assert guest.post("/run_bash_script", {"script": "pwd", "working_dir": "/nowhere"}).status_code == 400
    assert guest.post("/run_bash_script", {"script": ""}).status_code == 400
    slow = guest.post("/run_bash_script", {"script": "sleep 600", "timeout": 1})
    assert (slow.status_code, slow.json()["returncode"]) == (500, -1)


def test_a_command_is_verified(guest: Client) -> None:
    given = {"command": "touch there", "shell": True, "max_wait_time": 30, "check_interval": 0.1}
    passed = guest.post(
        "/setup/execute_with_verification", {**given, "verification": {"command_success": "test -e there"}}
    )
    assert (passed.status_code, passed.json()["verification"]) == (200, "passed")
    assert "verification" not in guest.post("/execute_with_verification", given).json()
    given["max_wait_time"] = 0.2
    failed = guest.post("/execute_with_verification", {**given, "verification": {"window_exists": "no such window"}})
    assert (failed.status_code, failed.json()["status"]) == (500, "verification_failed")


def test_files(guest: Client, home: Path) -> None:
    data = os.urandom(3 << 20)
    form = {"file_path": "~/new/é.bin"}
    assert (
        guest.post("/setup/upload", data=form, files={"file_data": ("é.bin", data)}).text
        == f"File Uploaded: {3 << 20} bytes"
    )
    assert (home / "new/é.bin").read_bytes() == data
    got = guest.post("/file", data={"file_path": "$HOME/new/é.bin"})
    assert (got.content == data, got.headers["content-disposition"][:10]) == (True, "attachment")
    assert guest.post("/file", data={"file_path": "~/none"}).json() == {"error": "File not found"}
    assert guest.post("/file", data={"file_path": "~/none"}).status_code == 404
    assert guest.post("/file", data={"path": "x"}).status_code == 400
    os.mkfifo(home / "new/pipe")
    for refused in ("~/new", "~/new/pipe"):
        assert guest.post("/file", data={"file_path": refused}).status_code == 500, refused
    assert guest.post("/setup/upload", data=form).status_code == 400
    assert guest.post("/setup/upload", files={"file_data": ("a", b"a")}).status_code == 400
    for name in ("~/new", "/", "~/a\0b", "~/" + "n" * 5000, "~/new/é.bin/below"):
        sent = guest.post("/setup/upload", data={"file_path": name}, files={"file_data": ("a", b"a")})
        got = guest.post("/file", data={"file_path": name})
        assert (sent.status_code, sent.json()["error"][:12]) == (500, "cannot write"), sent.text
        assert got.status_code in {404, 500}
    assert not list((home / "new").glob(".deskhand-*"))

    (home / "new/loop").symlink_to(home / "new")
    tree = guest.post("/list_directory", {"path": "~/new"}).json()["directory_tree"]
    assert (tree["name"], {each["name"] for each in tree["children"]}) == ("new", {"é.bin", "pipe"})
    assert guest.post("/list_directory", {"path": "~/none"}).status_code == 400
    assert guest.post("/list_directory", {}).status_code == 400

    assert guest.post("/desktop_path").status_code == 404
    (home / "Desktop/inner").mkdir(parents=True)
    assert guest.post("/desktop_path").json() == {"desktop_path": f"{home}/Desktop"}
    tree = guest.post("/list_directory", {"path": f"{home}/Desktop"}).json()["directory_tree"]
    assert tree == {
        "type": "directory", "name": "Desktop", "children": [{"type": "directory", "name": "inner", "children": []}],
    }  # fmt: skip


def test_a_file_is_downloaded_by_the_machine(guest: Client, home: Path) -> None:
    need("curl", "curl")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/here" else 404)
            self.end_headers()
            self.wfile.write(b"downloaded")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = guest.post("/setup/download_file", {"url": f"{url}/here", "path": "~/down/loaded"})
        missing = guest.post("/setup/download_file", {"url": f"{url}/nowhere", "path": "~/down/none"})
        server.shutdown()
        thread.join()
    assert (done.status_code, (home / "down/loaded").read_text()) == (200, "downloaded")
    assert (missing.status_code, "404" in missing.text) == (500, True)
    local = guest.post("/setup/download_file", {"url": "file:///etc/hostname", "path": "~/down/none"})
    assert (local.status_code, (home / "down/none").exists()) == (500, False)
    assert guest.post("/setup/download_file", {"url": "http://x/"}).status_code == 400


def test_windows(guest: Client, home: Path) -> None:
    need("xterm", "xterm")
    need("mousepad", "mousepad")
    started = guest.post("/setup/launch", {"command": ["xterm", "-T", "The Shell"], "shell": False})
    assert (started.status_code, started.text) == (200, "xterm -T The Shell launched successfully")
    assert guest.post("/window_size", data={"app_class_name": "xterm"}).json()["width"] > 100
    assert guest.post("/window_size", data={"app_class_name": "none"}).status_code == 404
    assert guest.post("/window_size").status_code == 400

    (home / "note.txt").write_text("a note\n")
    opened = guest.post("/setup/open_file", {"path": "~/note.txt"})
    assert opened.text == "File opened and window activated successfully"
    assert guest.post("/setup/open_file", {"path": "no-such-application"}).status_code == 404
    assert guest.post("/setup/open_file", {}).status_code == 400
    assert "note" in guest.get("/accessibility").json()["AT"]

    def active() -> str:
        return next(window.title for window in guest.provider.desktop.windows.list() if window.active)

    for wanted in ({"window_name": "the shell"}, {"window_name": "The Shell", "strict": True}):
        assert guest.post("/setup/activate_window", wanted).status_code == 200
        assert active() == "The Shell"
        back = guest.post("/setup/activate_window", {"window_name": "mousepad.Mousepad", "by_class": True})
        assert back.status_code == 200
        assert "note.txt" in active()
    for none in ({"window_name": "the shell", "strict": True}, {"window_name": "shell", "by_class": True}):
        assert guest.post("/setup/activate_window", none).status_code == 404
    assert guest.post("/setup/close_window", {}).status_code == 400
    assert (
        guest.post("/setup/close_window", {"window_name": "XTerm", "by_class": True, "strict": True}).status_code == 200
    )
    assert guest.post("/window_size", data={"app_class_name": "xterm"}).status_code == 404
    assert guest.post("/setup/close_window", {"window_name": "note.txt"}).status_code == 200


def test_a_program_without_a_window_stays(guest: Client, home: Path) -> None:
    started = guest.post("/setup/launch", {"command": "sleep 3.5; echo over >~/over; sleep 600", "shell": True})
    assert started.status_code == 200
    assert "launched successfully (" in started.text
    until((home / "over").exists, 30, "the program to go on")
    assert guest.post("/setup/launch", {"command": ["no-such-program"]}).status_code == 500
    assert guest.post("/setup/launch", {"command": []}).status_code == 400


def test_the_screen_is_recorded(guest: Client, tmp_path: Path) -> None:
    need("ffprobe", "ffmpeg")
    assert guest.post("/end_recording").status_code == 400
    assert guest.post("/start_recording").json()["status"] == "success"
    assert guest.post("/start_recording").status_code == 400
    guest.python("pyautogui.moveTo(600, 400)")
    video = guest.post("/end_recording")
    assert (video.status_code, video.headers["content-type"]) == (200, "video/mp4")
    (tmp_path / "video.mp4").write_bytes(video.content)
    words = ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height,nb_frames", "-of", "csv=p=0"]
    codec, width, height, frames = (
        subprocess.check_output([*words, tmp_path / "video.mp4"], text=True).strip().split(",")
    )
    assert (codec, width, height, int(frames) >= 2) == ("h264", "1280", "800", True)
    assert guest.post("/end_recording").status_code == 400


def test_the_wallpaper_is_a_setting(guest: Client, home: Path) -> None:
    need("gsettings", "libglib2.0-bin dconf-gsettings-backend gsettings-desktop-schemas")
    assert guest.post("/setup/change_wallpaper", {}).status_code == 400
    assert guest.post("/setup/change_wallpaper", {"path": "~/none.png"}).status_code == 404
    (home / "paper.png").write_bytes(b"a picture")
    assert guest.post("/setup/change_wallpaper", {"path": "~/paper.png"}).text == "Wallpaper changed successfully"
    assert guest.post("/wallpaper").content == b"a picture"


WRONG: list[tuple[str, Any]] = [
    ("/execute", "{"),
    ("/execute", "[" * 100_000),
    ("/execute", "[1]"),
    ("/execute", '{"command": 5}'),
    ("/execute", '{"command": [5]}'),
    ("/execute", '{"command": "\'"}'),
    ("/execute", '{"command": "\\u0000"}'),
    ("/execute", '{"command": "true", "shell": true, "command": ["\\ud800"]}'),
    ("/run_python", '{"code": 5}'),
    ("/run_bash_script", '{"script": "true", "timeout": "soon"}'),
    ("/run_bash_script", '{"script": ["true"]}'),
    ("/execute_with_verification", '{"command": ["true"], "verification": {"window_exists": 1}}'),
    ("/setup/open_file", '{"path": 5}'),
    ("/setup/activate_window", '{"window_name": [1]}'),
    ("/list_directory", '{"path": null}'),
]


@pytest.mark.parametrize(("path", "body"), WRONG)
def test_what_makes_no_sense_is_refused(guest: Client, path: str, body: str) -> None:
    answer = guest.post(path, data=body.encode())
    assert answer.status_code == 400, answer.text
    assert answer.json()["status"] == "error"
    assert guest.get("/platform").text == "Linux"


def test_requests_are_bounded(guest: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guest.post("/execute", data=b" " * (17 << 20)).status_code == 413
    assert guest.post("/screen_size", data=b" " * (17 << 20)).status_code == 413
    monkeypatch.setattr("deskhand.providers.osworld.guest_server._LARGEST_FORM", 1 << 20)
    large = {"file_data": ("a", b" " * (2 << 20))}
    assert guest.post("/setup/upload", data={"file_path": "~/large"}, files=large).status_code == 413
    assert guest.post("/file", data=b"%" * 100, headers={"Content-Type": "multipart/form-data"}).status_code == 400
    assert guest.post("/file", files={"file_path": ("name", b"x")}).status_code == 400


def test_each_environment_has_a_desktop_of_its_own() -> None:
    made: list[deskhand.Desktop] = []

    def start() -> deskhand.Desktop:
        made.append(deskhand.launch(size=(320, 240)))
        return made[-1]

    machines = VirtualMachines(start, chromium_port=1234)
    manager, provider = machines("vmware", region=None, use_proxy=False)
    assert manager.get_vm_path(os_type="Ubuntu", region=None, screen_size=(1, 1)) == "deskhand"
    with pytest.raises(BackendError, match="no desktop"):
        provider.get_ip_address("deskhand")
    for _ in range(2):
        provider.start_emulator("deskhand", headless=False, os_type="Ubuntu")
        provider.start_emulator("deskhand", headless=False, os_type="Ubuntu")
        host, *ports = provider.get_ip_address("deskhand").split(":")
        assert ports[1:] == ["1234", "8006", "8080"]
        seen = requests.post(f"http://{host}:{ports[0]}/screen_size", timeout=60).json()
        assert seen == {"width": 320, "height": 240}
        with pytest.raises(UnsupportedAction):
            provider.save_state("deskhand", "name")
        assert provider.revert_to_snapshot("deskhand", "init_state") == "deskhand"
        with pytest.raises(requests.ConnectionError):
            requests.post(f"http://{host}:{ports[0]}/screen_size", timeout=60)
    assert [desktop.closed for desktop in made] == [True, True]
    provider.stop_emulator("deskhand")
    with pytest.raises(ActionError):
        VirtualMachines(5)  # type: ignore[arg-type] # that is refused
    with pytest.raises(ActionError):
        VirtualMachines(start, vlc_port=0)


def test_the_owner_decides_what_clients_may_do(private: Served, tmp_path: Path) -> None:  # noqa: F811 # the fixture
    log = tmp_path / "audit.jsonl"
    with Server(private, "--protocol", "osworld", "--audit", str(log)) as server:
        root = f"http://osworld:{KEY}@{server.address}"

        def post(path: str, content: object) -> requests.Response:
            return requests.post(root + path, json=content, timeout=60)

        assert requests.get(f"http://{server.address}/platform", timeout=60).status_code == 401
        assert requests.get(f"http://{server.address}/platform", headers={"X-API-Key": KEY}, timeout=60).text == "Linux"
        assert (
            post("/execute", {"command": ["python", "-c", PREFIX + "pyautogui.click(5, 6)"]}).json()["returncode"] == 0
        )
        for path, content, why in (
            ("/execute", {"command": ["id"]}, "--programs"),
            ("/execute", {"command": ["python", "-c", "for _ in range(3): pyautogui.click()"]}, "line 1"),
            ("/run_bash_script", {"script": "id"}, "--programs"),
            ("/setup/launch", {"command": ["xterm"]}, "--programs"),
            ("/setup/activate_window", {"window_name": "x"}, ""),
        ):
            answer = post(path, content)
            assert (answer.status_code in {403, 404}, why in answer.text) == (True, True), answer.text
        read = requests.post(root + "/file", data={"file_path": "/etc/hostname"}, timeout=60)
        assert (read.status_code, "copy_out" in read.json()["error"]) == (403, True)
        sent = requests.post(
            root + "/setup/upload", data={"file_path": "/tmp/x"}, files={"file_data": b"x"}, timeout=60
        )
        assert sent.status_code == 403
    decided = [json.loads(line) for line in log.read_text().splitlines()]
    told = [(line["action"]["type"], line["decision"]) for line in decided if line["event"] == "decision"]
    assert ("left_mouse_click", "allow") in told
    assert {("copy_out", "deny"), ("copy_in", "deny")} <= set(told)


def test_the_text_of_a_terminal() -> None:
    """Only of the one that has the focus, in the active window."""

    class Showing:
        has_machine = False

        def elements(self) -> Elements:
            focused = frozenset({"focused"})
            return Elements((
                Element("e1", "window", "one", states=frozenset({"active"})),
                Element("e2", "terminal", "t", text="$ ls\n\n", native_role="terminal", states=focused, depth=1),
                Element("e3", "window", "two"),
                Element("e4", "terminal", "t", text="other", native_role="terminal", states=focused, depth=1),
            ))  # fmt: skip

    shown = Guest(Showing(), programs=False).terminal({})  # type: ignore[arg-type] # it has what is used
    assert shown.content == {"output": "$ ls", "status": "success"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PREFIX + "import os; print(1)", "import time\nimport os\nprint(1)"),
        (PREFIX + "x = pyautogui.position()", PREFIX + "x = pyautogui.position()"),
        ("print(1)", "print(1)"),
        ("import pyautogui, os; print(1)", "import pyautogui, os; print(1)"),
        ("import pyautogui; def", "import pyautogui; def"),
    ],
)
def test_the_import_that_is_not_used_is_left_out(source: str, expected: str) -> None:
    assert without_pyautogui(source) == expected
