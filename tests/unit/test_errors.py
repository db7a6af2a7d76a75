"""Every error keeps its place in the tree, its attributes and its message through pickle and copy."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from deskhand import errors
from deskhand.errors import (
    ActionError,
    AuthFailed,
    BackendError,
    BadPlan,
    Closed,
    ConnectFailed,
    DeskhandError,
    DeskhandTimeout,
    DesktopHeld,
    DesktopLost,
    EpisodeError,
    ExpectationFailed,
    FileError,
    ImagingError,
    InputBlocked,
    LaunchFailed,
    LedgerError,
    MissingExtra,
    OutOfBounds,
    PolicyDenied,
    PoolExhausted,
    ProtocolViolation,
    Reconnected,
    RecordFull,
    ServerSilent,
    ShellError,
    TaskError,
    UnsupportedAction,
    Untypable,
)

SAMPLES: list[tuple[DeskhandError, type[DeskhandError], dict[str, object]]] = [
    (DeskhandError("m"), Exception, {"message": "m"}),  # type: ignore[list-item]
    (ActionError("m"), DeskhandError, {"message": "m"}),
    (UnsupportedAction("vnc", "zoom", "use x11"), ActionError, {"where": "vnc", "action": "zoom"}),
    (OutOfBounds((1280, -1), (1280, 800)), ActionError, {"point": (1280, -1), "size": (1280, 800)}),
    (Untypable([(3, "\0")]), ActionError, {"characters": ((3, "\0"),)}),
    (InputBlocked("pointer", "Dmenu (process 7)"), ActionError, {"device": "pointer", "holder": "Dmenu (process 7)"}),
    (BackendError("m"), DeskhandError, {"message": "m"}),
    (Closed("this desktop is closed"), BackendError, {}),
    (BadPlan("a circle", ("a", "b")), ActionError, {"calls": ("a", "b")}),
    (
        ConnectFailed("x11::99", "no such display", "start Xvfb"),
        BackendError,
        {"target": "x11::99", "reason": "no such display", "hint": "start Xvfb"},
    ),
    (
        AuthFailed("vnc://h:5901", "wrong password"),
        BackendError,
        {"target": "vnc://h:5901", "reason": "wrong password", "hint": ""},
    ),
    (ProtocolViolation("m"), BackendError, {"message": "m"}),
    (ServerSilent("the X server has not answered for 3 s"), BackendError, {}),
    (DeskhandTimeout("waited 5 s for the window"), TimeoutError, {"message": "waited 5 s for the window"}),
    (ExpectationFailed("expected it to be enabled"), AssertionError, {"message": "expected it to be enabled"}),
    (
        FileError("cannot write", "log", OSError(28, "No space left on device")),
        OSError,
        {"errno": 28, "strerror": "No space left on device", "filename": "log"},
    ),
    (MissingExtra("agents", "openai"), ImportError, {"package": "agents", "extra": "openai"}),
    (Reconnected("vnc://h:5901", "reset", 2), BackendError, {"target": "vnc://h:5901", "reason": "reset", "epoch": 2}),
    (
        DesktopHeld("Ada", "2026-01-02 03:04:05 UTC", private=True),
        DeskhandError,
        {"by": "Ada", "since": "2026-01-02 03:04:05 UTC", "private": True, "under_way": False},
    ),
    (DesktopLost("oom", "killed"), BackendError, {"cause": "oom", "detail": "killed"}),
    (
        LaunchFailed("the X server", 10.0, "bad font path\n"),
        DeskhandError,
        {"awaited": "the X server", "seconds": 10.0, "log_tail": "bad font path\n"},
    ),
    (ImagingError("m"), DeskhandError, {"message": "m"}),
    (PolicyDenied("type", "no keyboard"), DeskhandError, {"action": "type", "reason": "no keyboard"}),
    (PoolExhausted(2.5, 4, 3, 1, "wait"), DeskhandTimeout, {"waited": 2.5, "size": 4, "used": 3, "waiting": 1}),
    (EpisodeError("m"), DeskhandError, {"message": "m"}),
    (TaskError("count", "no oracle", "write one"), EpisodeError, {"task": "count", "reason": "no oracle"}),
    (LedgerError("m"), EpisodeError, {"message": "m"}),
    (RecordFull("events", 9), EpisodeError, {"what": "events", "most": 9}),
    (ShellError("bash", "not found"), DeskhandError, {"command": "bash", "reason": "not found"}),
]
IDS = [type(error).__name__ for error, _, _ in SAMPLES]


def test_samples_are_complete() -> None:
    public = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, DeskhandError)}
    assert set(IDS) == {name for name in public if not name.startswith("_")}


@pytest.mark.parametrize(("error", "parent", "attributes"), SAMPLES, ids=IDS)
def test_place_and_attributes(error: DeskhandError, parent: type, attributes: dict[str, object]) -> None:
    assert type(error).__name__ in (errors.__doc__ or "")
    assert isinstance(error, parent)
    assert {name: getattr(error, name) for name in attributes} == attributes


@pytest.mark.parametrize("error", [PoolExhausted(1.0, 1, 1, 0), ServerSilent("m"), DeskhandTimeout("m")])
def test_what_means_a_timeout_is_caught_as_one(error: DeskhandError) -> None:
    for kind in (TimeoutError, DeskhandTimeout, DeskhandError):
        with pytest.raises(kind):
            raise error


def test_whose_limit_is_over_has_failed_for_good() -> None:
    assert not isinstance(LaunchFailed("Xvfb", 2.0), TimeoutError)
    assert not isinstance(ConnectFailed("vnc://h", "no answer within 5 s"), TimeoutError)


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("failed_at", [None, 2])
@pytest.mark.parametrize("error", [error for error, _, _ in SAMPLES], ids=IDS)
def test_round_trip(error: DeskhandError, failed_at: int | None, through: object) -> None:
    error = copy.copy(error)
    if failed_at is not None:
        error.note_progress(failed_at, "drag", 1)
    again = through(error)  # type: ignore[operator]
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert again.args == error.args
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            OutOfBounds((1280, 5), (1280, 800)),
            (
                "point (1280, 5) is outside of 1280x800: x must be 0...1279, y 0...799; take coordinates from the "
                "latest screenshot"
            ),
        ),
        (
            Untypable([(3, "\0"), (9, "\ud83d")]),
            "cannot type U+0000 at 3, U+D83D at 9: remove them, or use paste=True",
        ),
        (
            ConnectFailed("x11::99", "no such display", "start Xvfb"),
            "cannot connect to x11::99: no such display: start Xvfb",
        ),
        (AuthFailed("vnc://h", "refused"), "authentication refused by vnc://h: refused"),
        (
            LaunchFailed("Xvfb", 2.0, "", "apt-get install xvfb"),
            "Xvfb did not come up in 2 s: apt-get install xvfb (it wrote no output)",
        ),
        (
            LaunchFailed("the image x", 0.0, "", "it does not exist: docker pull x"),
            "the image x is not available: it does not exist: docker pull x",
        ),
        (LaunchFailed("Xvfb", 0.0, "x\n"), "Xvfb did not come up\n--- last output ---\nx"),
        (LaunchFailed("Xvfb", 2.0, "x\n"), "Xvfb did not come up in 2 s\n--- last output ---\nx"),
        (
            DesktopHeld("Ada", "2026-01-02 03:04:05 UTC"),
            (
                "Ada has had control of this desktop since 2026-01-02 03:04:05 UTC: others may not act: wait until it is "
                "handed back, look at the screen meanwhile, or do something else"
            ),
        ),
        (DesktopLost("oom", "killed"), "desktop lost (oom): killed: launch or connect again"),
        (
            PoolExhausted(2.5, 4, 4, 1, "make the pool larger"),
            "no desktop became free in 2.5 s (4 of 4 in use, 1 others waiting): make the pool larger",
        ),
        (PoolExhausted(0.0, 4, 4, 0), "too many callers wait for a desktop (4 of 4 in use)"),
        (
            FileError("cannot write", "log", OSError(28, "No space left on device")),
            "cannot write 'log': No space left on device",
        ),
        (MissingExtra("agents", "openai"), "agents is not installed: pip install 'deskhand[openai]'"),
        (UnsupportedAction("vnc", "zoom"), "vnc does not support the action 'zoom'"),
    ],
)
def test_message(error: DeskhandError, text: str) -> None:
    assert str(error) == text


def test_a_long_list_of_characters_is_cut() -> None:
    error = Untypable([(n, "\0") for n in range(12)], hint="")
    assert str(error).endswith("U+0000 at 9 and 2 more")
    assert len(error.characters) == 12


def test_progress_is_shown_and_the_first_note_wins() -> None:
    error = ActionError("m").note_progress(3, "drag", 0)
    assert str(error) == "m [in actions[3] (drag); nothing was done before it]"
    error.note_progress(0, "outer", 7)
    assert (error.index, error.doing, error.done) == (3, "drag", 0)
    assert str(BackendError("m").note_progress(3, "drag", 2)) == "m [in actions[3] (drag); 2 done before it]"


@pytest.mark.parametrize(
    ("package", "extra", "code"),
    [
        ("agents", "openai", "from deskhand.providers import openai; openai.safety_check(None)"),
        ("gymnasium", "gym", "import deskhand.episodes.environments.gym"),
        ("inspect_ai", "inspect", "import deskhand.episodes.environments.inspect_ai"),
        ("docker", "docker", "from deskhand.launchers.docker.engine import connect_engine; connect_engine()"),
        ("jinja2", "episodes", "from deskhand.episodes.report.page import write_report; write_report('.')"),
    ],
)
def test_what_is_not_installed_is_named(package: str, extra: str, code: str) -> None:
    blocked = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from deskhand import DeskhandError\n"
        f"try:\n    {code}\n"
        "except ImportError as error: print(isinstance(error, DeskhandError), error.extra, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(f"True {extra} ")
    assert done.stdout.rstrip().endswith(f"is not installed: pip install 'deskhand[{extra}]'")
