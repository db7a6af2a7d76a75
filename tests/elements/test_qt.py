"""What Qt does not tell: what is kept of its elements is what is read anew, and a reference never means a successor."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import ActionError, DeskhandTimeout, LeftClick, Settle
from deskhand.desktop.elements import ElementReader
from elements.puppet import Puppet, shown
from integration.apps import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand import Desktop

# Seconds for which all of an application is asked again, because it may have sent no events yet.
_YOUNG = 3.5
_ITEMS = "[l.setItem(r, c, widgets_of_qt.QTableWidgetItem(f'{r}{c}')) for r in range(2) for c in range(2)]"
# What is made first, and then changed.
CHANGES = {
    "a number": ("put('lcd', widgets_of_qt.QLCDNumber(), 20, 20)", "widgets['lcd'].display(5)"),
    "what is chosen": ("combo('Colour', ['red', 'green'], 120, 20)", "widgets['Colour'].setCurrentIndex(1)"),
    "a title": ("", "window.setWindowTitle('Puppet two')"),
    "a tab": (
        (
            "t = widgets_of_qt.QTabWidget(); [t.addTab(widgets_of_qt.QPushButton(f'P{n}'), f'T{n}') for n in range(3)]; "
            "put('tabs', t, 20, 60); t.resize(200, 100)"
        ),
        "widgets['tabs'].setTabText(1, 'Other')",
    ),
    "the tab in front": ("", "widgets['tabs'].setCurrentIndex(1)"),
    "a tab that goes": ("", "widgets['tabs'].removeTab(0)"),
    "an item": (
        "l = widgets_of_qt.QListWidget(); l.addItems(['a', 'b', 'c']); put('list', l, 240, 20); l.resize(100, 100)",
        "widgets['list'].item(1).setText('bee')",
    ),
    "an item that goes": ("", "widgets['list'].takeItem(0) and None"),
    "other items": ("", "widgets['list'].clear(); widgets['list'].addItems(['x', 'y'])"),
    "a cell": (
        f"l = widgets_of_qt.QTableWidget(2, 2); {_ITEMS}; put('table', l, 20, 180); l.resize(300, 110)",
        "widgets['table'].item(1, 1).setText('mid')",
    ),
    "a header": ("", "widgets['table'].setHorizontalHeaderLabels(['p', 'q'])"),
    "a menu": (
        "m = widgets_of_qt.QMenuBar(); f = m.addMenu('File'); f.addAction('Undo'); put('bar', m, 360, 20); m.resize(100, 30)",
        "f.setTitle('Data')",
    ),
    "what can be done": ("button('Go', 360, 60)", "enable('Go', False)"),
    "what it is": ("button('Stay', 360, 120)", "widgets['Stay'].setCheckable(True); widgets['Stay'].setChecked(True)"),
    "one that goes": ("button('Leave', 360, 180)", "remove('Leave')"),
    "what it is in": (
        "button('Move', 360, 240); put('box', widgets_of_qt.QGroupBox('Box'), 360, 280); widgets['box'].resize(150, 60)",
        "widgets['Move'].setParent(widgets['box']); widgets['Move'].move(10, 20); widgets['Move'].show()",
    ),
}


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Path, toolkit: str) -> Iterator[Puppet]:
    with shown(desktop, tmp_path / "socket", toolkit=toolkit) as puppet:
        yield puppet


toolkits = pytest.mark.parametrize("toolkit", ["Qt 5", "Qt 6"])


def _different(desktop: Desktop) -> set[object]:
    """What is kept and not read anew, and what is read anew and not kept."""
    desktop.perform()
    core = desktop._core
    with core.turn(), contextlib.closing(ElementReader(core.backend, core.watch, core.environment)) as other:
        kept, anew = core.elements.read(5), other.read(5)
    plain = [
        {(e.role, e.name, e.description, e.states, e.box, e.depth, e.text, e.value, e.actions, e.hidden) for e in each}
        for each in (kept, anew)
    ]
    return plain[0] ^ plain[1]


def _grow_old() -> None:
    """Let time pass in which all of an application is asked again: that hides what is not asked for a reason."""
    old = time.monotonic() + _YOUNG
    assert until(lambda: time.monotonic() > old, 2 * _YOUNG)


@toolkits
def test_what_it_does_not_tell_is_read_again(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("; ".join(given for given, _ in CHANGES.values() if given))
    desktop.find("button", "Go").element(timeout=20)
    _grow_old()
    assert until(lambda: not _different(desktop))
    for name, (_, change) in CHANGES.items():
        puppet.run(change)
        assert until(lambda: not _different(desktop), 10), (name, _different(desktop))


@toolkits
def test_a_successor_has_a_reference_of_its_own(desktop: Desktop, puppet: Puppet) -> None:
    """Qt gives the path of the object that it made last, once that is gone, to the next one."""
    puppet.run("button('Old')")
    old = desktop.find("button", "Old").element(timeout=20)
    puppet.run("remove('Old')")
    puppet.run("button('New')")
    new = desktop.find("button", "New").element(timeout=20)
    assert new.ref != old.ref
    with pytest.raises(ActionError, match=f"there is no element {old.ref} any more"):
        desktop.perform(LeftClick(element=old.ref))
    assert puppet.told == []


@toolkits
def test_an_item_with_another_name_is_another_one(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("l = widgets_of_qt.QListWidget(); l.addItems(['a', 'b']); put('list', l, 20, 20)")
    puppet.run("l.itemClicked.connect(lambda item: told.append(['clicked', item.text()]))")
    kept, old = (desktop.find("listitem", name, exact=True).element(timeout=20) for name in "ab")
    puppet.run("l.item(1).setText('c')")
    new = desktop.find("listitem", "c", exact=True).element(timeout=20)
    assert new.ref != old.ref
    with pytest.raises(ActionError, match=f"there is no element {old.ref} any more"):
        desktop.perform(LeftClick(element=old.ref))
    desktop.perform(LeftClick(element=kept.ref))
    desktop.perform(LeftClick(element=new.ref))
    assert puppet.tells(["clicked", "c"])
    assert puppet.told == [["clicked", "a"], ["clicked", "c"]]


@toolkits
def test_one_that_moved_is_clicked_where_it_is(desktop: Desktop, puppet: Puppet) -> None:
    """Also before it is drawn there, which would have it asked again."""
    puppet.run("button('Go'); button('Stay', 20, 80)")
    go = desktop.find("button", "Go").element(timeout=20)
    _grow_old()
    desktop.elements()
    puppet.run("move('Go', 300, 250)")
    desktop.perform(LeftClick(element=go.ref))
    assert puppet.tells(["clicked", "Go"])
    assert len(puppet.told) == 1


@toolkits
def test_an_option_of_an_open_list_is_clicked(desktop: Desktop, puppet: Puppet) -> None:
    """Closed, its options are no place to click; open, they are where they are drawn."""
    puppet.run("combo('Colour', ['red', 'green', 'blue'])")
    colour = desktop.find("combobox").element(timeout=20)
    _grow_old()
    for name in ("green", "blue", "red"):
        assert not [element for element in desktop.elements() if element.role == "listitem" and element.visible]
        desktop.perform(LeftClick(element=colour.ref))
        option = desktop.find("listitem", name).element(timeout=20)
        desktop.perform(LeftClick(element=option.ref))
        assert until(lambda name=name: puppet.run("value('Colour')") == name)


@toolkits
def test_what_is_behind_an_open_list_is_told(desktop: Desktop, puppet: Puppet) -> None:
    """A click there would only close the list."""
    puppet.run("combo('Colour', ['red', 'green']); button('Go', 20, 200)")
    go = desktop.find("button", "Go").element(timeout=20)
    desktop.find("combobox").click(timeout=20)
    desktop.find("listitem", "green").element(timeout=20)
    with pytest.raises(DeskhandTimeout, match=r"is behind list .*, which must be closed first"):
        desktop.perform(LeftClick(element=go.ref), settle=Settle(timeout=1))
    assert puppet.told == []


@toolkits
@pytest.mark.parametrize("editable", [False, True])
def test_an_option_is_selected(desktop: Desktop, puppet: Puppet, *, editable: bool) -> None:
    """Where it can be written in, a click opens no list."""
    puppet.run(f"combo('Colour', ['red', 'green', 'blue']); widgets['Colour'].setEditable({editable})")
    colour = desktop.find("combobox")
    for name in ("blue", "green"):
        colour.select(name, timeout=20)
        assert until(lambda name=name: puppet.run("value('Colour')") == name)
    with pytest.raises(DeskhandTimeout, match="offers no 'pink'"):
        colour.select("pink", timeout=1)


def test_a_program_finds_a_bus_that_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bus has its name before it has an address, which it gets for whoever asks: the registry may do so too late for Qt."""
    monkeypatch.setattr("deskhand.launchers.local.launch.registry_command", lambda: ["/bin/true"])
    asks = ["org.freedesktop.DBus.Properties.Get", "string:org.a11y.Status", "string:IsEnabled"]
    with deskhand.launch(size=(800, 600)) as desktop:
        named = ["dbus-send", "--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus", *asks]
        subprocess.run(named, env=desktop._core.environment, check=True, stdout=subprocess.DEVNULL)
        with shown(desktop, tmp_path / "socket", toolkit="Qt 5") as puppet:
            puppet.run("button('Go')")
            assert desktop.find("button", "Go").wait_for(timeout=20)
