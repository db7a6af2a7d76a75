"""Input that did not reach the window that it was for is told: nothing has the focus, or somebody has grabbed the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Drag, InputBlocked, KeyPress, LeftClick, Move, Settle, Type
from faults.helpers import until, xclient
from integration.apps import APPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Action
    from integration.apps import App

SIZE = (800, 600)
# In the editor, away from what the grabbing client shows.
SPOT = (500, 400)
KEYS: tuple[Action, ...] = (Type("hello"), Type("hällö 你"), KeyPress(["a"]), Type("pasted", paste=True))
CLICKS: tuple[Action, ...] = (LeftClick(SPOT), Drag([SPOT, (600, 450)]))


@pytest.fixture
def editor(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> App:
    """A GTK editor with the focus."""
    app = APPS["mousepad"](launch(size=SIZE), tmp_path)
    app.focus()
    return app


@pytest.mark.parametrize("text", ["hello", "hällö 你"])
@pytest.mark.parametrize("manager", ["auto", None])
def test_nothing_has_the_focus(launch: Callable[..., deskhand.Desktop], text: str, manager: str | None) -> None:
    desktop = launch(size=SIZE, window_manager=manager)
    with pytest.raises(InputBlocked, match="no window has the keyboard focus") as told:
        desktop.perform(Type(text))
    assert (told.value.device, told.value.holder) == ("keyboard", "")


def test_without_a_window_manager_the_window_under_the_pointer_has_it(
    launch: Callable[..., deskhand.Desktop], tmp_path: Path
) -> None:
    desktop = launch(size=SIZE, window_manager=None)
    file = tmp_path / "typed"
    desktop.perform(Move((50, 50)))
    desktop.start(["xterm", "-geometry", "40x10+0+0", "-e", "sh", "-c", f"stty raw -echo; cat > {file}"])
    until(file.exists, 30, "the terminal")
    desktop.perform(Type("hällö"))
    until(lambda: file.read_text() == "hällö", 30, "the text")
    desktop.perform(Move((700, 500)))
    with pytest.raises(InputBlocked, match="no window has the keyboard focus"):
        desktop.perform(Type("hällö"))


@pytest.mark.parametrize(
    "frozen", [pytest.param(False, id="grabbed"), pytest.param(True, id="frozen", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize(
    ("device", "actions"),
    [("keyboard", KEYS), ("pointer", CLICKS), ("both", KEYS + CLICKS)],
    ids=lambda value: str(value)[:8],
)
def test_another_client_has_grabbed_it(editor: App, device: str, actions: tuple[Action, ...], *, frozen: bool) -> None:
    """Each action is told, with who has it where anybody got it; afterwards all is well."""
    desktop = editor.desktop
    for action in actions:
        with xclient(desktop) as other:
            assert other.ask("freeze" if frozen else "grab", device)
            with pytest.raises(InputBlocked) as told:
                desktop.perform(action, settle=Settle(timeout=2))
            assert told.value.device == ("pointer" if action in CLICKS else "keyboard")
            assert told.value.index == 0
            assert told.value.holder == ("" if frozen else f"process {other.process.pid}")
    editor.focus()
    editor.clear()
    desktop.perform(Type("hällö"))
    assert editor.text("hällö") == "hällö"


def test_the_other_device_is_free(editor: App) -> None:
    with xclient(editor.desktop) as other:
        assert other.ask("grab", "pointer")
        editor.desktop.perform(Type("hällö"))
        assert editor.text("hällö") == "hällö"
    with xclient(editor.desktop) as other:
        assert other.ask("grab", "keyboard")
        assert editor.desktop.perform(LeftClick(SPOT)).settled


def test_a_paste_that_went_elsewhere_leaves_the_clipboard(editor: App) -> None:
    editor.desktop.clipboard.write("mine")
    with xclient(editor.desktop) as other:
        assert other.ask("grab", "keyboard")
        with pytest.raises(InputBlocked):
            editor.desktop.perform(Type("pasted", paste=True))
        assert editor.desktop.clipboard.read() == "mine"


def test_an_application_has_its_own_menus(editor: App) -> None:
    """A menu grabs both devices: its keys and clicks are well, also those that change nothing."""
    desktop = editor.desktop
    assert desktop.perform(KeyPress(["alt", "f"])).changed
    for action in (KeyPress(["Down"]), KeyPress(["F9"]), Type("zz"), Move((5, 5)), KeyPress(["Escape"])):
        desktop.perform(action)
    desktop.perform(KeyPress(["alt", "f"]), KeyPress(["Escape"]), Type("after"))
    assert editor.text("after") == "after"


def test_who_shows_what_he_got_is_no_obstacle(editor: App) -> None:
    """A launcher or a screen lock grabs the keyboard, and what is typed is for it."""
    with xclient(editor.desktop) as launcher:
        assert launcher.ask("popup_at_click", 300, 200, 200, 100, 0x00FF00)
        assert launcher.ask("grab", "keyboard")
        seen = editor.desktop.perform(Type("x"))
        assert seen.changed
        assert launcher.ask("seen") == ["KeyPress"]
        # It shows nothing of the next one.
        with pytest.raises(InputBlocked, match=f"process {launcher.process.pid}"):
            editor.desktop.perform(Type("y"))
