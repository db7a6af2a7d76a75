"""Real applications under test, and what they hold, learnt without asking the driver.

Every application offers the same: `focus` it, `clear` it, and `text(expected)`, which waits until the application holds the
expected text and returns what it holds then or at the deadline.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from conftest import need
from deskhand import KeyPress, LeftClick
from pauses import Pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import deskhand
    from deskhand._core.window import Window

# Ten thousand keys keep a browser busy for long where others keep the processors busy.
PATIENCE = 60.0


def until(condition: Callable[[], bool], timeout: float = PATIENCE) -> bool:
    """Wait until a condition holds; False when it does not in time."""
    pauses = Pauses()
    while not condition():
        if pauses.waited > timeout:
            return False
        pauses.sleep()
    return True


def environment_of(desktop: deskhand.Desktop) -> dict[str, str]:
    """What lets any X client join a desktop."""
    assert desktop.display is not None
    return {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}


def run(desktop: deskhand.Desktop, *command: str) -> str:
    """Run an X client on a desktop, and give its output."""
    need(command[0], "x11-xkb-utils" if command[0] == "setxkbmap" else "x11-xserver-utils")
    return subprocess.run(command, env=environment_of(desktop), check=True, capture_output=True, text=True).stdout


def bound_keycodes(desktop: deskhand.Desktop) -> set[int]:
    """The keycodes that a driver says to have bound characters to; see `rust/capture/src/bindings.rs`."""
    listed = run(desktop, "xprop", "-root", "-notype", "_DESKHAND_KEYS").partition("=")[2]
    words = [int(word) for word in listed.replace(",", " ").split()]
    keycodes = set()
    while words:
        keycode, _level, windows, _ = words[0].to_bytes(4, "little")
        keycodes.add(keycode)
        del words[: 2 + windows]
    return keycodes


def keymap(desktop: deskhand.Desktop) -> str:
    """The server's keys as another client sees them, but for those that a driver has bound characters to."""
    bound = bound_keycodes(desktop)
    # A line is the word, the number, an equals sign, and a keysym for each column.
    lines = (line.split() for line in run(desktop, "xmodmap", "-pke").splitlines())
    return "\n".join(" ".join(line) for line in lines if len(line) > 3 and int(line[1]) not in bound)


def locks(desktop: deskhand.Desktop) -> dict[str, str]:
    """The lock lights as another client sees them."""
    lines = run(desktop, "xset", "q").splitlines()
    words = " ".join(line for line in lines if "Lock:" in line)
    return {name: words.split(f"{name} Lock:")[1].split()[0] for name in ("Caps", "Num", "Scroll")}


@contextlib.contextmanager
def stopped(pid: int, *, after: float, duration: float = 0.3) -> Iterator[None]:
    """Stop a process `after` seconds for `duration` seconds; both are the disturbance under test, and wait for nothing."""

    def disturb() -> None:
        time.sleep(after)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(duration)
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=disturb)
    if after == 0:
        os.kill(pid, signal.SIGSTOP)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class App(Protocol):
    """One application with one text field."""

    desktop: deskhand.Desktop
    pid: int
    window: Window

    def focus(self) -> None:
        """Give it the keyboard."""

    def clear(self) -> None:
        """Make its text empty."""

    def text(self, expected: str) -> str:
        """Its text, as soon as that is the expected one."""


class _Managed:
    def __init__(self, desktop: deskhand.Desktop, command: list[str], env: Mapping[str, str] | None = None) -> None:
        program = desktop.start(command, env=env)
        assert program.window is not None
        self.desktop = desktop
        self.pid = program.window.pid or program.pid
        self.window = program.window

    def focus(self) -> None:
        self.desktop.windows.activate(self.window)


# What Ctrl+G sends to a terminal.
_END = b"\a"


class XTerm(_Managed):
    """xterm, with a terminal that hands every byte on at once (lines would end at 4096 bytes), and `cat` into a file."""

    def __init__(self, desktop: deskhand.Desktop, home: Path, terminal: str = "raw -echo icrnl") -> None:
        self.file = home / "xterm.txt"
        shell = f"stty {terminal}; cat >'{self.file}'"
        super().__init__(desktop, [need("xterm", "xterm"), "-geometry", "80x24", "-e", "sh", "-c", shell])
        assert until(self.file.exists)
        self.start = 0

    def clear(self) -> None:
        # What was typed before may still be on its way; this comes behind it.
        ends = self.file.read_bytes().count(_END) + 1
        self.desktop.perform(KeyPress(["ctrl", "g"]))
        assert until(lambda: self.file.read_bytes().count(_END) == ends)
        self.start = self.file.stat().st_size

    def text(self, expected: str) -> str:
        until(lambda: self.file.stat().st_size >= self.start + len(expected.encode()))
        return self.file.read_bytes()[self.start :].decode(errors="replace")


class _Editor(_Managed):
    file: Path

    def clear(self) -> None:
        self.desktop.perform(KeyPress(["ctrl", "a"]), KeyPress(["Delete"]))

    def text(self, expected: str) -> str:
        self.desktop.perform(KeyPress(["ctrl", "s"]))
        until(lambda: self.file.read_text() == expected)
        return self.file.read_text()


class Mousepad(_Editor):
    """A GTK 3 editor; it neither indents nor appends by default."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self.file = home / "mousepad.txt"
        self.file.touch()
        super().__init__(desktop, [need("mousepad", "mousepad"), str(self.file)])


class FeatherPad(_Editor):
    """A Qt editor, told neither to indent nor to append."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self.file = home / "featherpad.txt"
        self.file.touch()
        config = home / "config" / "featherpad" / "fp.conf"
        config.parent.mkdir(parents=True, exist_ok=True)
        settings = ("noIndent=true", "appendEmptyLine=false", "autoBracket=false", "autoReplace=false")
        config.write_text("\n".join(["[text]", *settings, ""]))
        super().__init__(desktop, [need("featherpad", "featherpad"), str(self.file)])


_TK_TEXT = """
import sys, tkinter
root = tkinter.Tk()
text = tkinter.Text(root)
text.pack()
text.focus_force()
def write(event):
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text.get("1.0", "end-1c"))
text.bind("<<Modified>>", lambda event: (write(event), text.edit_modified(False)))
root.mainloop()
"""


class TkText(_Managed):
    """A text field of Tk's, which answers no pings; it writes what it holds into a file."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self.file = home / "tk.txt"
        self.file.touch()
        super().__init__(desktop, [need("/usr/bin/python3", "python3-tk"), "-c", _TK_TEXT, str(self.file)])

    def clear(self) -> None:
        self.desktop.perform(KeyPress(["ctrl", "slash"]), KeyPress(["Delete"]))

    def text(self, expected: str) -> str:
        until(lambda: self.file.read_text() == expected)
        return self.file.read_text()


PAGE = """<!doctype html><meta charset="utf-8"><title>page</title>
<textarea id="t" autofocus spellcheck="false" style="width:95vw;height:90vh;font:20px monospace"></textarea>
<script>
const t = document.getElementById('t'); let log = [], origin = [];
// Tab would move the focus: that is the browser's business, so the page takes it for a character.
t.addEventListener('keydown', e => {
  if (e.key === 'Tab') { e.preventDefault(); t.setRangeText('\\t', t.selectionStart, t.selectionEnd, 'end'); }
});
for (const type of ['click', 'dblclick', 'auxclick', 'contextmenu'])
  addEventListener(type, e => log.push([type, e.detail, e.button]), true);
addEventListener('mousemove', e => { origin = [e.screenX - e.clientX, e.screenY - e.clientY]; });
(async () => {
  for (;;) {
    const order = await (await fetch('/order')).json();
    if (order.do === 'set') { t.value = order.value; log = []; t.focus(); }
    const chosen = t.value.slice(t.selectionStart, t.selectionEnd);
    await fetch('/answer', {method: 'POST', body: JSON.stringify({value: t.value, log, chosen, origin})});
  }
})();
</script>"""


def serve_page(get: Callable[[str], bytes], post: Callable[[bytes], None]) -> tuple[ThreadingHTTPServer, str]:
    """Serve on loopback what `get` gives for a path, and give `post` what is posted; the server, and its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(get(self.path))

        def do_POST(self) -> None:
            post(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def chromium_command(url: str, profile: Path) -> list[str]:
    """What starts Chromium with one page and nothing else."""
    quiet = "--no-first-run --no-default-browser-check --password-store=basic --disable-sync --disable-gpu"
    program = need("chromium", "chromium")
    return [program, "--no-sandbox", f"--user-data-dir={profile}", *quiet.split(), f"--app={url}"]


class Chromium(_Managed):
    """Chromium with a page of our own, which answers over HTTP what its text area holds."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self._orders: queue.Queue[dict[str, str]] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        orders, answers = self._orders, self._answers
        self._server, url = serve_page(
            lambda path: (json.dumps(orders.get()) if path == "/order" else PAGE).encode(),
            lambda body: answers.put(json.loads(body)),
        )
        command = chromium_command(url, home / "chromium")
        super().__init__(desktop, command)
        self.clear()

    def ask(self, order: str = "read", value: str = "") -> dict[str, Any]:
        """Have the page do something, and get its `value`, `log` of clicks, `chosen` text, and `origin` on the screen."""
        self._orders.put({"do": order, "value": value})
        return self._answers.get(timeout=PATIENCE)

    def focus(self) -> None:
        super().focus()
        area = next(w.rect for w in self.desktop.windows.list() if w.id == self.window.id)
        self.desktop.perform(LeftClick((area.x + area.width // 2, area.y + area.height // 2)))

    def clear(self) -> None:
        self.ask("set")

    def text(self, expected: str) -> str:
        until(lambda: self.ask()["value"] == expected)
        value: str = self.ask()["value"]
        return value

    def close(self) -> None:
        """End the page's server."""
        self._orders.put({})
        self._server.shutdown()
        self._server.server_close()


class EchoingXTerm(XTerm):
    """xterm that shows what is typed, a line at a time."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        super().__init__(desktop, home, "sane")

    def clear(self) -> None:
        self.start = self.file.stat().st_size


APPS: Mapping[str, Callable[[deskhand.Desktop, Path], App]] = {
    "xterm": XTerm,
    "mousepad": Mousepad,
    "featherpad": FeatherPad,
    "chromium": Chromium,
}


class Bench:
    """One desktop with applications that start when they are first asked for."""

    def __init__(
        self,
        desktop: deskhand.Desktop,
        home: Path,
        kinds: Mapping[str, Callable[[deskhand.Desktop, Path], App]] = APPS,
    ) -> None:
        self.desktop = desktop
        self._home = home
        self._kinds = kinds
        self._apps: dict[str, App] = {}

    def app(self, name: str) -> App:
        """The application, focused and empty."""
        if name not in self._apps:
            self._apps[name] = self._kinds[name](self.desktop, self._home)
        app = self._apps[name]
        app.focus()
        app.clear()
        return app

    def close(self) -> None:
        """End what the applications left here."""
        for app in self._apps.values():
            if isinstance(app, Chromium):
                app.close()
