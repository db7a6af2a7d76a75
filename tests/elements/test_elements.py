"""What applications say that they show is read as it is, kept current and acted on; who is silent or hostile harms nobody."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import ActionError, LeftClick, Move, RightClick, UnsupportedAction
from elements.puppet import Puppet, shown
from integration.apps import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand import Desktop


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Path) -> Iterator[Puppet]:
    with shown(desktop, tmp_path / "socket") as puppet:
        yield puppet


def test_what_is_there_is_read(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run(
        "button('Save'); check('Loud', 20, 80); entry('Name', 20, 140, 'Ada'); entry('Key', 20, 200, 's', secret=True)"
    )
    save = desktop.find("button", "Save").element()
    window = desktop.find("window", "Puppet").element()
    assert (save.role, save.native_role, save.name, save.parent is not None) == ("button", "push-button", "Save", True)
    assert save.enabled
    assert save.pid == puppet.program.pid
    assert window.box is not None
    assert save.box is not None
    assert save.box.within(window.box)
    assert desktop.find("textbox", "Name").element().text == "Ada"
    # What a password field has is nobody's.
    assert desktop.find("textbox", "Key").element().text is None
    elements = desktop.elements()
    assert elements[save.ref] == save
    assert f'button "Save" [{save.ref}]' in elements.text()
    assert elements is desktop.elements()


def test_what_changes_is_known(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('First'); check('Loud', 20, 80)")
    first = desktop.find("button", "First").element()
    before = desktop.elements()
    puppet.run("widgets['First'].set_label('Renamed')")
    assert desktop.find("button", "Renamed").element().ref == first.ref
    puppet.run("widgets['Loud'].set_active(True)")
    assert desktop.find("checkbox", "Loud").wait_for("checked") is not None
    puppet.run("button('Second', 20, 140)")
    desktop.find("button", "Second").element()
    puppet.run("place.move(widgets['First'], 300, 300)")
    assert first.box is not None
    moved = first.box
    assert until(lambda: desktop.elements()[first.ref].box not in {None, moved})
    told = desktop.elements().changes(before)
    assert f'~ button "Renamed" [{first.ref}]' in told
    assert '+ button "Second"' in told
    puppet.run("widgets['Second'].destroy()")
    desktop.find("button", "Second").wait_for("hidden")


def test_an_action_at_an_element(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('One', 40, 40); button('There', 300, 200)")
    here, there = (desktop.find("button", name).element() for name in ("One", "There"))
    desktop.perform(LeftClick(element=there.ref))
    assert puppet.tells(["clicked", "There"])
    desktop.perform(Move(element=here), LeftClick())
    assert puppet.tells(["clicked", "One"])
    # Where it is is looked up when its turn comes.
    puppet.run("told.clear(); widgets['One'].connect('clicked', lambda _: place.move(widgets['There'], 20, 300))")
    seen = desktop.perform(LeftClick(element=here.ref), LeftClick(element=there.ref))
    assert seen.settled
    assert puppet.tells(["clicked", "There"])
    assert puppet.told == [["clicked", "One"], ["clicked", "There"]]


def test_a_reference_means_one_element_only(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('Old')")
    old = desktop.find("button", "Old").element()
    puppet.run("widgets['Old'].destroy(); button('New')")
    new = desktop.find("button", "New").element()
    assert new.ref != old.ref
    with pytest.raises(ActionError, match=f"there is no element {old.ref} any more"):
        desktop.perform(LeftClick(element=old.ref))
    with pytest.raises(ActionError, match="there is no element e99999999"):
        desktop.perform(RightClick(element="e99999999"))
    assert puppet.told == []


def test_a_silent_application_costs_nobody_else(desktop: Desktop, puppet: Puppet, tmp_path: Path) -> None:
    puppet.run("button('Silent')")
    desktop.find("button", "Silent").element()
    other = Puppet(desktop, tmp_path / "other")
    try:
        other.run("window.set_title('Alive'); button('Heard', 300, 300)")
        desktop.find("button", "Heard").element()
        os.kill(puppet.program.pid, signal.SIGSTOP)
        other.run("widgets['Heard'].set_label('Heard again')")
        desktop.elements(timeout=0.5)
        clock = desktop._core.clock
        begun = clock()
        for number in range(5):
            other.run(f"widgets['Heard'].set_label('Heard {number}')")
            assert until(lambda number=number: any(e.name == f"Heard {number}" for e in desktop.elements()))
        # Waited for once, and then no more: five times its half second would be 2.5.
        assert clock() - begun < 2.5
        assert any("does not answer" in sentence for sentence in desktop.elements().left_out)
        os.kill(puppet.program.pid, signal.SIGCONT)
        puppet.run("widgets['Silent'].set_label('Back')")
        desktop.find("button", "Back").element(timeout=10)
        assert until(lambda: desktop.elements().left_out == ())
    finally:
        os.kill(puppet.program.pid, signal.SIGCONT)
        other.end()
    desktop.find("window", "Alive").wait_for("hidden")


def test_a_flooding_application_is_read_all_the_same(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("[button(f'B{number}', number % 5 * 100, number // 5 * 40) for number in range(40)] and None")
    desktop.find("button", "B39").element(timeout=30)
    puppet.run("flood(3000)")
    for _ in range(20):
        assert sum(element.role == "button" for element in desktop.elements(timeout=5)) == 40
    desktop.find("button", "B7 0", exact=True).element(timeout=60)


def test_one_that_has_too_much_is_cut(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('x' * 200_000 + '\\x1b[31m')")
    element = desktop.find("button", re.compile("^xxx")).element()
    assert len(element.name) <= 1_000
    puppet.run("widgets['many'] = Gtk.Box(); place.put(widgets['many'], 0, 100)")
    puppet.run(
        "[widgets['many'].add(Gtk.Label(label=str(each))) for each in range(2000)] and widgets['many'].show_all()"
    )
    assert until(lambda: len(desktop.elements(timeout=5)) > 500)
    assert any("too many" in sentence for sentence in desktop.elements(timeout=5).left_out)


def test_windows_that_tell_nothing_are_named(desktop: Desktop) -> None:
    program = desktop.start(["xterm", "-T", "plain"])
    assert any(
        "'plain': its program exposes no accessibility tree" in sentence for sentence in desktop.elements().left_out
    )
    os.kill(program.pid, signal.SIGKILL)
    assert until(lambda: not desktop.elements().left_out)


def test_a_picture_with_numbers(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("button('Save'); button('Off', 20, 90); widgets['Off'].set_sensitive(False)")
    save = desktop.find("button", "Save").element()
    off = desktop.find("button", "Off", states=["disabled"]).element()
    seen = desktop.screenshot()
    assert save.box is not None
    assert off.box is not None
    marked = seen.with_marks(desktop.elements())
    differs = (marked.array() != seen.array()).any(axis=2)
    assert differs[save.box.y, save.box.x : save.box.right].all()
    assert not differs[off.box.bottom - 1, off.box.x : off.box.right].all()
    assert marked.viewport == seen.viewport


def test_where_nobody_tells(launch: Callable[..., Desktop]) -> None:
    plain = launch(size=(640, 480), elements=False)
    with pytest.raises(UnsupportedAction, match="at-spi2-core"):
        plain.elements()
    with pytest.raises(UnsupportedAction, match="at-spi2-core"):
        plain.find("button").click()


def test_a_policy_sees_the_reading(desktop: Desktop) -> None:
    class Nobody:
        def before(self, operation: deskhand.Operation) -> None:
            if operation.type == "elements":
                raise deskhand.PolicyDenied(operation.type, "it is not to be read")

        def after(self, operation: deskhand.Operation, token: object, outcome: object) -> None:
            pass

    judged = desktop.also(Nobody())
    with pytest.raises(deskhand.PolicyDenied):
        judged.elements()
    with pytest.raises(deskhand.PolicyDenied):
        judged.find("button").click()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"role": "knob"}, "there is no role 'knob'"),
        ({"role": 5}, "role"),
        ({"name": 5}, "name"),
        ({"name": "x", "exact": 1}, "exact"),
        ({"states": [1]}, "states"),
        ({"nth": "first"}, "nth"),
    ],
)
def test_what_cannot_be_looked_for(desktop: Desktop, wrong: dict[str, object], told: str) -> None:
    with pytest.raises(ActionError, match=told):
        desktop.find(**wrong)  # type: ignore[arg-type]
