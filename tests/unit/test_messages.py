"""What a newcomer's mistakes are answered: each message says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import (
    Action,
    ActionError,
    DeskhandError,
    Desktop,
    DoubleClick,
    Drag,
    KeyPress,
    LaunchFailed,
    LeftClick,
    Move,
    Scroll,
    Size,
    TakeScreenshot,
    UnsupportedAction,
    Viewport,
)
from deskhand._core.formats import check_format
from deskhand.actions import ACTIONS, action_of
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.window_list import Windows
from deskhand.providers import mcp

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWPORT = Viewport(screen=Size(1280, 800), model=Size(1280, 800))
# Arguments are refused before the desktop is used.
WINDOWS = Windows(None)

# The mistake, the kind of error, and what its message must have.
MISTAKES: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("a point as two numbers", lambda: LeftClick(100, 200), TypeError, "write LeftClick((100, 200))"),
    ("of a double click", lambda: DoubleClick(1, 2), TypeError, "write DoubleClick((1, 2))"),
    ("of a move", lambda: Move(1, 2), TypeError, "write Move((1, 2))"),
    ("of a scroll", lambda: Scroll(1, 2), ActionError, "start_xy: a point such as (100, 200) is needed"),
    ("one number", lambda: LeftClick(100), ActionError, "xy: a point such as (100, 200) is needed"),
    ("a drag's points", lambda: Drag((1, 2), (3, 4)), ActionError, "write [(10, 10), (90, 10)]"),
    ("a fraction", lambda: LeftClick((100.5, 200)), ActionError, "not 100.5: round it"),
    ("a generator of actions", lambda: action_of(LeftClick() for _ in "ab"), ActionError, "perform(*actions)"),
    ("an empty list of actions", lambda: action_of([]), ActionError, "perform(*actions)"),
    ("a list of actions", lambda: action_of([LeftClick(), LeftClick()]), ActionError, "perform(*actions)"),
    ("a class", lambda: action_of(TakeScreenshot), ActionError, "as in TakeScreenshot(...)"),
    ("a dictionary", lambda: action_of({"type": "wait"}), ActionError, "Action.from_dict"),
    ("a text", lambda: action_of("hello"), ActionError, "Type(...)"),
    ("a type", lambda: action_of("wait"), ActionError, "write Wait(...)"),
    ("no key", lambda: KeyPress(""), ActionError, "'' names no key: write a name such as 'Return'"),
    ("Emacs' chord", lambda: KeyPress("C-s"), ActionError, "did you mean 'ctrl+s'?"),
    ("Emacs' with two", lambda: KeyPress("C-M-Delete"), ActionError, "did you mean 'ctrl+alt+Delete'?"),
    ("GTK's chord", lambda: KeyPress("<ctrl>s"), ActionError, "did you mean 'ctrl+s'?"),
    ("GTK's with two", lambda: KeyPress("<Shift><Alt>F4"), ActionError, "did you mean 'Shift+Alt+F4'?"),
    ("GTK's with a plus", lambda: KeyPress("<Ctrl>+s"), ActionError, "did you mean 'ctrl+s'?"),
    ("GTK's and plus itself", lambda: KeyPress("<ctrl>+"), ActionError, "did you mean 'ctrl++'?"),
    ("a terminal's chord", lambda: KeyPress("^s"), ActionError, "did you mean 'ctrl+s'?"),
    ("blanks", lambda: KeyPress("ctrl s"), ActionError, "did you mean 'ctrl+s'?"),
    ("a misspelt key", lambda: KeyPress("Retrun"), ActionError, "did you mean Return"),
    ("no chord at all", lambda: KeyPress("<ctrl>"), ActionError, "did you mean Control_L"),
    ("a misspelt action", lambda: Action.from_dict({"type": "scrol"}), ActionError, "did you mean 'scroll'?"),
    ("a class's name", lambda: Action.from_dict({"type": "left_click"}), ActionError, "mean 'left_mouse_click'?"),
    ("another vocabulary", lambda: Action.from_dict({"type": "click"}), ActionError, "mean 'left_mouse_click'?"),
    ("nothing near", lambda: Action.from_dict({"type": "~"}), ActionError, "'~': use one of back_click, "),
    ("a long type", lambda: Action.from_dict({"type": "x" * 10**6}), ActionError, "...: use one of back_click, "),
    ("jpg", lambda: check_format("jpg", 80), ActionError, "did you mean 'jpeg'? use one of png, "),
    ("connect to nothing", lambda: deskhand.connect(None), ActionError, "url is a text, not None"),
    ("a display", lambda: deskhand.connect(":99"), ActionError, "did you mean 'x11::99'?"),
    ("a misspelt backend", lambda: deskhand.launch("dokcer"), ActionError, "did you mean 'docker'?"),
    ("a program", lambda: deskhand.launch("mousepad"), ActionError, "a program is started by desktop.start(...)"),
    (
        "a display to launch",
        lambda: deskhand.launch(":99"),
        ActionError,
        "opened by connect(...), as in connect('x11::99')",
    ),
    ("a server", lambda: deskhand.launch("vnc://me:key@host:1"), ActionError, "not 'vnc:...': what runs already"),
    ("a size as text", lambda: deskhand.launch(size="800x600"), ActionError, "write (800, 600)"),
    ("no such manager", lambda: deskhand.launch(window_manager="nope"), LaunchFailed, "there is no such program"),
    ("a title", lambda: WINDOWS.activate("Mousepad"), ActionError, "find it with desktop.windows.wait_for"),
    ("a title to close", lambda: WINDOWS.close("Mousepad"), ActionError, "not the title 'Mousepad'"),
    (
        "an action of MCP",
        lambda: mcp.decode({"name": "left_click", "arguments": {}}, VIEWPORT),
        UnsupportedAction,
        "MCP does not support the action 'left_click': did you mean 'left_mouse_click'? use one of ",
    ),
    (
        "no action of MCP",
        lambda: mcp.decode({"name": "computer", "arguments": {"action": 5}}, VIEWPORT),
        UnsupportedAction,
        "MCP does not support the action 5: use one of ",
    ),
]


@pytest.mark.parametrize(("mistake", "call", "kind", "said"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_answered_by_what_to_write(
    mistake: str, call: Callable[[], object], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert said in message, f"{mistake}: {message}"
    assert len(message) < 600
    assert (type(caught.value) is TypeError) is not isinstance(caught.value, DeskhandError)


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_what_is_meant_exists(name: str) -> None:
    with pytest.raises(ActionError, match=f"did you mean .*'{name}'"):
        Action.from_dict({"type": f"{name}_"})


def test_the_signature_and_other_errors_of_a_call_are_pythons() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        LeftClick((1, 2), wrong=3)
    with pytest.raises(TypeError, match="positional"):
        LeftClick((1, 2), (3, 4))
    assert LeftClick.__init__.__wrapped__.__qualname__.endswith("__init__")


@pytest.mark.parametrize("name", ["stop", "also", "interrupt", "release", "screenshot"])
def test_a_wrong_call_of_a_desktop_names_the_class_that_users_know(name: str) -> None:
    with Desktop(MemoryBackend((9, 9))) as desktop, pytest.raises(TypeError, match=rf"^Desktop\.{name}\(\) "):
        getattr(desktop, name)(wrong=1)
