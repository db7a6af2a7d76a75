"""C8: secrets go through every way to type them, and through every way to fail at it; afterwards they are nowhere.

Each canary is a text that nothing else has. What is searched: what was logged and printed, the audit log, every exception (its
text, its traceback with the values of all variables, its pickle), representations, and the command lines of all processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import io
import json
import logging
import os
import pickle
import pprint
import random
import threading
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from rich.console import Console
from rich.traceback import Traceback

import deskhand
from conformance.servers import xvnc
from deskhand import (
    ActionError,
    AsyncDesktop,
    AuditLog,
    BackendError,
    CallContext,
    Desktop,
    DesktopLost,
    Guard,
    LeftClick,
    OutOfBounds,
    PolicyDenied,
    Secret,
    Type,
    Untypable,
    calling,
)
from deskhand._core.geometry import Point, Size
from deskhand._native import Interrupted
from deskhand.actions import Action
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.translate import translate
from faults.helpers import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand._core.events import Event

EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"
COUNT = 1000 if EVIDENCE else 20
# Each of these goes through every way to fail, and each failure is searched in every form.
FAILING = 1000 if EVIDENCE else 2
# What none of them can be typed with, each for its own reason.
UNTYPABLE = ("\x01", "\ufe52", "\ud800")


def _for_openai(desktop: Desktop, secret: Secret) -> object:
    with calling(CallContext("openai", "c")):
        return desktop.perform(Type(secret))


class Canaries:
    """Makes secrets, and finds them again. Tests hold the `Secret` only, so that their own frames may be searched too."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._made: list[str] = []

    def make(self, more: str = "") -> Secret:
        word = "".join(self._chance.choices("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=16))
        self._made.append(word)
        return Secret(word + more)

    def __len__(self) -> int:
        return len(self._made)

    def found_in(self, text: str | bytes) -> list[int]:
        """The numbers of those that the text has; and pieces of them count."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return [
            number
            for number, word in enumerate(self._made)
            if any(word[at : at + 6].encode() in data for at in range(0, 11, 5))
        ]


@dataclass
class Traces:
    """Everything that was said."""

    text: io.StringIO = field(default_factory=io.StringIO)
    errors: int = 0
    # As rich shows it, coloured and with all variables, which takes a quarter of a second.
    richly: bool = True

    def note(self, value: object) -> None:
        self.text.write(f"{value}\n")

    def taken(self) -> str:
        """What was noted since the last time."""
        said = self.text.getvalue()
        self.text.seek(0)
        self.text.truncate()
        return said

    def of(self, error: BaseException) -> None:
        """All that a log, a debugger or another process may be told of an exception."""
        self.errors += 1
        whole = traceback.TracebackException.from_exception(error, capture_locals=True)
        if self.richly and self.errors % 5 == 1:
            console = Console(file=self.text, width=200)
            console.print(Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True))
        for said in (str(error), repr(error), vars(error), *whole.format()):
            self.note(said)
        self.note("".join(traceback.format_exception(error)))
        seen: BaseException | None = error
        while seen is not None:
            frame = seen.__traceback__
            while frame is not None:
                self.note(frame.tb_frame.f_locals)
                frame = frame.tb_next
            seen = seen.__context__ or seen.__cause__
        with contextlib.suppress(TypeError, AttributeError):
            self.note(pickle.dumps(error, protocol=0).decode("latin-1"))


@pytest.fixture
def traces() -> Iterator[Traces]:
    """With logging turned up as far as it goes."""
    traces = Traces()
    handler = logging.StreamHandler(traces.text)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield traces
    root.removeHandler(handler)
    root.setLevel(level)


class Broken(MemoryBackend):
    """Fails in the way that it is told, with the text in whatever it raises."""

    def __init__(self, how: str) -> None:
        super().__init__((64, 48))
        self.how = how

    def untypable(self, events: Sequence[Event]) -> set[int]:
        return {event.keysym for event in events if hasattr(event, "keysym")} if self.how == "no keys" else set()

    def send(self, events: Sequence[Event]) -> None:
        typed = "".join(chr(event.keysym & 0xFFFF) for event in events[::2] if hasattr(event, "keysym"))
        match self.how:
            case "lost":
                raise DesktopLost("x_server", "it went away")
            case "refuses":
                raise BackendError("X11 request refused")
            case "foreign":
                raise UnicodeEncodeError("latin-1", typed, 0, len(typed), f"cannot send {typed}")
            case "chained":
                raise BackendError("it was refused") from ValueError(typed)
            case "no keycode":
                raise Untypable([(0, typed[:1])], "no free keycode")
            case "interrupted":
                raise Interrupted("this call was stopped")
            case "Ctrl-C":
                raise KeyboardInterrupt
        super().send(events)

    def write_clipboard(self, text: str, timeout: float) -> None:
        if self.how == "clipboard" and text:
            raise UnicodeEncodeError("latin-1", text, 0, 1, f"cannot send {text}")
        super().write_clipboard(text, timeout)

    def wait_pasted(self, timeout: float) -> None:
        if self.how == "not pasted":
            super().wait_pasted(timeout)


class Careless:
    """A policy whose own errors have what it was asked about."""

    def before(self, action: Any, _context: object) -> str:
        raise ValueError(action.text.reveal())


WAYS = (
    "no keys",
    "lost",
    "refuses",
    "foreign",
    "chained",
    "no keycode",
    "interrupted",
    "Ctrl-C",
    "clipboard",
    "not pasted",
)


def _fails(traces: Traces, act: Callable[[], object]) -> None:
    try:
        act()
    except (Exception, Interrupted, KeyboardInterrupt) as error:  # noqa: BLE001 # whatever it is, it is searched
        traces.of(error)
    else:
        pytest.fail("it did not fail")


def _failures(secret: Secret, path: Path) -> Iterator[Callable[[], object]]:
    """One secret in every way that fails, on desktops that have no display."""
    for how in WAYS:
        with Desktop(Broken(how)) as desktop:
            paste = how in {"clipboard", "not pasted"}
            action = Type(secret, paste=paste)
            yield lambda desktop=desktop, action=action: desktop.perform(LeftClick((1, 1)), action, settle=False)
            yield lambda desktop=desktop, action=action: asyncio.run(
                AsyncDesktop(desktop).perform(action, settle=False)
            )
            # It does not stay on the clipboard.
            assert desktop.clipboard.read() is None, how
    with Desktop(Broken("nothing")) as desktop:
        yield lambda: desktop.perform(Type(secret), LeftClick((999, 999)))
        yield lambda: desktop.perform(Type(secret), "no action")  # type: ignore[arg-type]
        with AuditLog(path, texts="full") as log:
            for judged in (
                desktop.also(Guard(audit=log)),
                desktop.also(Guard(audit=log, policy=Careless())),  # type: ignore[arg-type]
                desktop.also(Guard(audit=log, ask=lambda action, _: action.text.reveal())),  # type: ignore[union-attr]
            ):
                yield lambda judged=judged: _for_openai(judged, secret)
                yield lambda judged=judged: asyncio.run(AsyncDesktop(judged).perform(Type(secret)))
        yield lambda: desktop.also(Guard(audit=log, ask=lambda *_: True)).perform(Type(secret))
        limits = deskhand.RateLimits(keys=1)
        limited = desktop.also(Guard(ask=lambda *_: True, limits=limits))
        limited.perform(Type(secret), settle=False)
        yield lambda: limited.perform(Type(secret))
        desktop.stop("stopped")
        yield lambda: desktop.perform(Type(secret))
    yield lambda: desktop.perform(Type(secret))
    with Desktop(Broken("not"), view_only=True) as looking:
        yield lambda: looking.perform(Type(secret))
    yield lambda: pickle.dumps(secret)
    yield lambda: pickle.dumps(Type(secret))
    yield lambda: json.dumps(Type(secret), default=vars)
    yield lambda: json.dumps({"secret": secret})
    yield lambda: Type(secret, paste="yes")  # type: ignore[arg-type]
    yield lambda: Type(secret, secret="yes")  # type: ignore[arg-type]
    yield lambda: dataclasses.replace(Type(secret), paste=1)
    yield lambda: Action.from_dict(Type(secret).to_dict())
    yield lambda: setattr(secret, "_hidden", "x")
    yield lambda: secret + "x"  # type: ignore[operator]
    yield lambda: int(secret)  # type: ignore[call-overload]


def test_no_failure_tells(traces: Traces, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    canaries = Canaries(8)
    path = tmp_path / "audit.jsonl"
    ways = 0
    for number in range(FAILING):
        traces.richly = number % 100 == 0
        for act in _failures(canaries.make(), path):
            _fails(traces, act)
            ways += 1
        for more in UNTYPABLE if number % 10 == 0 else ():
            secret = canaries.make(more)
            with Desktop(MemoryBackend((9, 9))) as desktop:
                _fails(traces, lambda desktop=desktop, secret=secret: desktop.perform(Type(secret)))
        # Now and not at the end: it is some hundred kilobytes for each of them.
        assert canaries.found_in(traces.taken()) == []
    assert traces.errors >= ways >= 40 * FAILING
    assert canaries.found_in(path.read_bytes()) == []
    assert canaries.found_in("".join(capfd.readouterr())) == []


def test_the_search_finds_what_is_there(traces: Traces) -> None:
    """Else finding nothing would prove nothing."""
    canaries = Canaries(9)
    for number, way in enumerate(("message", "variable", "cause", "attribute")):
        secret = canaries.make()
        try:
            _tell(secret, way)
        except ValueError as error:
            traces.of(error)
        assert canaries.found_in(traces.text.getvalue()) == list(range(number + 1)), way


def _tell(secret: Secret, way: str) -> None:
    if way == "message":
        raise ValueError(secret.reveal())
    if way == "variable":
        shown = secret.reveal()
        raise ValueError(len(shown))
    error = ValueError("no")
    if way == "attribute":
        error.text = secret.reveal()  # type: ignore[attr-defined]
        raise error
    raise error from KeyError(secret.reveal())


def test_no_form_of_it_tells(traces: Traces) -> None:
    canaries = Canaries(10)
    for _ in range(COUNT):
        secret = canaries.make()
        action = Type(secret)
        for value in (secret, action, [action], {"a": secret}, dataclasses.asdict(action), action.to_dict()):
            for form in (repr, str, pprint.pformat, lambda it: f"{it} {it!r} {it!s:>9}", lambda it: f"{it} {it!r}"):
                traces.note(form(value))
            logging.getLogger("app").warning("about to do %s", value)
        traces.note(json.dumps(action.to_dict()))
        traces.note(json.dumps({"action": action}, default=str))
        for other in (copy.copy(action), copy.deepcopy(action), dataclasses.replace(action, paste=True)):
            assert isinstance(other.text, Secret)
            assert other.text == secret
        assert action == Type(Secret(secret.reveal())) == Type(secret.reveal(), secret=True)
        assert action != Type(canaries.make())
        assert secret != secret.reveal()
        assert hash(action) == hash(Type(secret.reveal(), secret=True))
        assert len(secret) == 16
    assert canaries.found_in(traces.text.getvalue()) == []


class CommandLines:
    """Reads the command lines and environments of all processes, again and again, while something else happens."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.rounds = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        # The pause leaves the processors to what is watched.
        while not self._over.wait(0.01):
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    for what in ("cmdline", "environ", "comm"):
                        with contextlib.suppress(OSError):
                            self.seen.add((process / what).read_bytes())
            self.rounds += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _typed(desktop: Desktop, canaries: Canaries, traces: Traces, path: Path, more: str) -> None:
    """Through every surface, on a desktop that is there."""

    async def typed_async(secret: Secret) -> None:
        traces.note(await AsyncDesktop(desktop).perform(Type(secret), settle=False))
        judged = AsyncDesktop(desktop.also(Guard(audit=log, ask=lambda *_: True, limits=None)))
        with calling(CallContext("openai")):
            traces.note(await judged.perform(Type(secret), settle=False))

    with AuditLog(path) as log, CommandLines() as lines:
        judged = desktop.also(Guard(audit=log, ask=lambda *_: True, limits=None))
        for number in range(COUNT):
            secret = canaries.make(more if number % 10 == 0 else "")
            traces.note(desktop.perform(Type(secret), settle=False))
            with calling(CallContext("openai")):
                traces.note(judged.perform(Type(secret), settle=False))
            asyncio.run(typed_async(secret))
            traces.note((desktop, desktop.status, desktop.pressed, judged))
            _fails(traces, lambda secret=secret: desktop.perform(Type(Secret(secret.reveal() + "\x01")), settle=False))
    assert lines.rounds > 0
    assert canaries.found_in(b"\n".join(lines.seen)) == []


def test_typed_over_x11(
    launch: Callable[..., Desktop], traces: Traces, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    canaries, path = Canaries(11), tmp_path / "audit.jsonl"
    traces.richly = False
    desktop = launch(size=(320, 240), window_manager=None)
    listen(desktop)
    # Every tenth has characters for which keycodes are borrowed.
    _typed(desktop, canaries, traces, path, "Ж漢字")
    desktop.close()
    _fails(traces, lambda: desktop.perform(Type(canaries.make())))
    assert len(canaries) == COUNT + 1
    assert canaries.found_in(traces.text.getvalue()) == []
    assert canaries.found_in(path.read_bytes()) == []
    assert canaries.found_in("".join(capfd.readouterr())) == []


def test_typed_over_vnc(tmp_path: Path, traces: Traces, capfd: pytest.CaptureFixture[str]) -> None:
    canaries, path = Canaries(12), tmp_path / "audit.jsonl"
    traces.richly = False
    with xvnc(tmp_path) as place, place.connect() as desktop:
        _typed(desktop, canaries, traces, path, "é")
        # What the server has no key for goes to its clipboard only when somebody says so.
        with pytest.raises(Untypable, match="characters of a secret"):
            desktop.perform(Type(Secret("АБВГДЕЖЗИЙКЛМНОП")), settle=False)
    assert canaries.found_in(traces.text.getvalue()) == []
    assert canaries.found_in(path.read_bytes()) == []
    assert canaries.found_in("".join(capfd.readouterr())) == []


def test_pasted(launch: Callable[..., Desktop], traces: Traces, tmp_path: Path) -> None:
    """It arrives, and is not on the clipboard afterwards."""
    canaries = Canaries(13)
    desktop = launch(size=(600, 400))
    file = tmp_path / "text.txt"
    file.write_text("")
    desktop.start(["mousepad", str(file)])
    judged = desktop.also(Guard(ask=lambda *_: True, limits=None))
    for before in (None, "what was there"):
        if before is not None:
            desktop.clipboard.write(before)
        secret = canaries.make("☕")
        seen = judged.perform(Type(secret, paste=True))
        assert seen.pasted
        traces.note(seen)
        assert desktop.clipboard.read() == before
    judged.perform(deskhand.KeyPress("ctrl+s"))
    assert canaries.found_in(file.read_bytes()) == [0, 1]
    assert canaries.found_in(traces.text.getvalue()) == []


def test_the_text_is_typed(launch: Callable[..., Desktop], tmp_path: Path) -> None:
    """Hiding a text does not change what arrives."""
    desktop = launch(size=(600, 400))
    file = tmp_path / "text.txt"
    file.write_text("")
    desktop.start(["mousepad", str(file)])
    desktop.perform(Type(Secret("pa$$ wörd ☕")), Type("|"), Type("naïve", secret=True), deskhand.KeyPress("ctrl+s"))
    assert file.read_text().strip() == "pa$$ wörd ☕|naïve"


def test_what_a_secret_is_not() -> None:
    for wrong in (b"bytes", None, 5, ["a"]):
        with pytest.raises(ActionError, match="hides a string"):
            Secret(wrong)  # type: ignore[arg-type]
    assert not Secret("")
    # Their numbers are as good as the characters.
    events = translate(Type(Secret("hunter2")), size=Size(9, 9), pointer=Point(0, 0))
    assert (repr(events), len(events)) == ("***", 14)
    with Desktop(MemoryBackend((9, 9))) as desktop:
        with pytest.raises(OutOfBounds):
            # An error of another action of the call stays what it is.
            desktop.perform(Type(Secret("a")), LeftClick((99, 9)))
        with pytest.raises(PolicyDenied) as caught:
            desktop.also(Guard()).perform(LeftClick((1, 1)), Type(Secret("a")))
        assert caught.value.index == 1
        with pytest.raises(Untypable) as untypable:
            desktop.perform(LeftClick((1, 1)), Type(Secret("a\x01\x02")))
    assert untypable.value.characters == ()
    assert str(untypable.value) == (
        "cannot type 2 of the characters of a secret: no key types them [in actions[1] (type); nothing was done before it]"
    )
