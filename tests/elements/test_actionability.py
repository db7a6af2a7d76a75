"""When something is done with an element, and when not: forty cases, each with what the application says of it afterwards.

A case is a line of code that the application runs, what is done then, and what the application has been told of it; or else the
error, and then the application has been told of nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import ActionError, DeskhandTimeout, Drag, KeyPress, LeftClick, Move, Secret, Settle, Type
from elements.puppet import Puppet, shown
from faults.helpers import server_pid
from integration.apps import stopped, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand import Desktop

_TOOLKITS = ("GTK 3", "GTK 4", "Qt 5", "Qt 6")
_GTK_3 = ("GTK 3",)
# GTK 4.8 does not say where a field to write in is.
_FIELDS = ("GTK 3", "Qt 5", "Qt 6")
_QT = ("Qt 5", "Qt 6")
# Seconds, for what never comes, while an application has to answer also on a busy machine, and for what comes late there.
_SHORT, _LONG = 2.0, 20.0


def _click(name: str = "Go", **found: Any) -> Callable[[Desktop], object]:
    return lambda desktop: desktop.find("button", name, **found).click(timeout=_LONG)


def _in_vain(desktop: Desktop) -> object:
    return desktop.find("button", "Go").click(timeout=_SHORT)


def _fill(text: str | Secret, timeout: float = _LONG, **found: Any) -> Callable[[Desktop], object]:
    return lambda desktop: desktop.find(**{"role": "textbox", "name": "Name", **found}).fill(text, timeout=timeout)


def _by_reference(code: str, limit: float = _LONG, *, drawn: bool = False) -> Callable[[Desktop, Puppet], object]:
    """Click what was read before the code was run; if `drawn`, once the screen shows what that did."""

    def act(desktop: Desktop, puppet: Puppet) -> object:
        ref = desktop.find("button", "Go").element(timeout=_LONG).ref
        before = desktop.screenshot().array()
        puppet.run(code)
        # Nothing was sent, so a settled screen does not say that a busy program has drawn it.
        assert not drawn or until(lambda: not (desktop.screenshot().array() == before).all())
        desktop.perform()
        return desktop.perform(LeftClick(element=ref), settle=Settle(timeout=limit))

    return act


def _with_tooltip(desktop: Desktop, puppet: Puppet) -> object:
    desktop.find("button", "Go").hover(timeout=_LONG)
    assert until(lambda: puppet.run("len(tips)") > 0)
    return desktop.find("button", "Go").click(timeout=_LONG)


def _with_completions(desktop: Desktop) -> object:
    _fill("Ada")(desktop)
    assert until(lambda: any(element.native_role == "window" for element in desktop.elements()))
    return _in_vain(desktop)


def _before_completions(desktop: Desktop, _puppet: Puppet) -> object:
    """Click by reference as soon as the keys are sent: GTK opens its list a tenth of a second later."""
    name, go = (desktop.find(role, nth=0).element(timeout=_LONG).ref for role in ("textbox", "button"))
    desktop.perform(LeftClick(element=name), Type("Ada"), settle=False)
    return desktop.perform(LeftClick(element=go), settle=Settle(timeout=_SHORT))


def _when_minimised(desktop: Desktop, puppet: Puppet) -> object:
    puppet.run("window.iconify()")
    assert until(lambda: all(window.minimized for window in desktop.windows.list()))
    puppet.run("later(400, 'window.deiconify()')")
    return desktop.find("button", "Go").click(timeout=_LONG)


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        given: What the application runs first.
        act: What is done then; given the puppet too if it takes two arguments.
        told: What happened in the application, in this order.
        error: What the error says; nothing has happened in the application then.
        holds: What is true in the application afterwards.
        toolkits: In which it is tried.
    """

    given: str
    act: Callable[..., object]
    told: tuple[list[object], ...] | None = None
    error: str = ""
    holds: str = ""
    toolkits: tuple[str, ...] = _GTK_3


_GO: tuple[list[object], ...] = (["clicked", "Go"],)
_ABOVE = (
    "other = Gtk.Window(title='Above'); other.set_default_size(600, 400); other.show_all(); "
    "other.move(*window.get_position())"
)
CASES = {
    # It is clicked.
    "at once": Case("button('Go')", _click(), _GO, toolkits=_TOOLKITS),
    "by a part of its name": Case("button('Go on')", _click("go"), (["clicked", "Go on"],)),
    "by all of its name": Case("button('Go'); button('Go on', 20, 200)", _click(exact=True), _GO),
    "by a name with more spaces": Case(
        "button(' Go   on ')", _click("Go on", exact=True), ([("clicked"), " Go   on "],), toolkits=_TOOLKITS
    ),
    "the second of two": Case("button('Go'); button('Go too', 20, 200)", _click(nth=1), (["clicked", "Go too"],)),
    "the last of three": Case(
        "button('Go 1'); button('Go 2', 20, 100); button('Go 3', 20, 200)", _click(nth=-1), (["clicked", "Go 3"],)
    ),
    "two, and one is hidden": Case("button('Go'); button('Go ahead', 20, 200); show('Go ahead', False)", _click(), _GO),
    "appears late": Case("later(400, \"button('Go')\")", _click(), _GO, toolkits=_TOOLKITS),
    "is enabled late": Case(
        "button('Go'); enable('Go', False); later(400, \"enable('Go', True)\")", _click(), _GO, toolkits=_TOOLKITS
    ),
    "is shown late": Case("button('Go'); show('Go', False); later(400, \"show('Go', True)\")", _click(), _GO),
    "is renamed late": Case("button('Wait'); later(400, \"rename('Wait', 'Go')\")", _click(), (["clicked", "Wait"],)),
    "moves, and comes to rest": Case("button('Go'); slide('Go', 60, 10)", _click(), _GO, toolkits=_TOOLKITS),
    # A call without a timeout of its own waits for 3 s.
    "moves for 4 s": Case("button('Go'); slide('Go', 200, 20)", _click(), _GO),
    "is replaced by one of its name": Case(
        "button('Go'); enable('Go', False); later(300, \"remove('Go'); button('Go', 300, 200)\")",
        _click(),
        _GO,
        toolkits=_TOOLKITS,
    ),
    "is replaced again and again": Case(
        "[later(50 * n, f\"'Go' in widgets and remove('Go'); button('Go', {20 + n}, 20)\") for n in range(20)] and None",
        _click(),
        _GO,
    ),
    "its window moves meanwhile": Case(
        "button('Go', 300, 200); enable('Go', False); "
        "later(200, 'window.move(40, 60)'); later(400, \"enable('Go', True)\")",
        _click(),
        _GO,
        toolkits=("GTK 3", "Qt 5", "Qt 6"),
    ),
    "its window comes back late": Case("button('Go')", _when_minimised, _GO),
    "what covers it goes": Case(f"button('Go', 250, 150); {_ABOVE}; later(600, 'other.destroy()')", _click(), _GO),
    "a dialog in front of it closes": Case(
        "button('Go', 250, 150); dialog('Ask')",
        lambda desktop: (_click("Close it")(desktop), _click()(desktop)),
        (["clicked", "Close it"], ["clicked", "Go"]),
        toolkits=("GTK 3", "GTK 4"),
    ),
    "a popover in front of it closes": Case(
        "button('Go'); button('At', 20, 200); popover('Pop', 'At'); later(600, \"widgets['Pop'].popdown()\")",
        _click(),
        _GO,
    ),
    "in a popover": Case("button('At', 20, 20); popover('Pop', 'At')", _click("Pop"), (["clicked", "Pop"],)),
    "with its tooltip above": Case(
        "button('Go'); tips = []; widgets['Go'].set_has_tooltip(True); "
        "widgets['Go'].connect('query-tooltip', lambda *given: given[-1].set_text('a tip') or tips.append(1) or True)",
        _with_tooltip,
        _GO,
    ),
    "twice": Case("button('Go')", lambda desktop: desktop.find("button", "Go").click(count=2), (*_GO, *_GO)),
    "by its reference, with another name": Case("button('Go')", _by_reference("rename('Go', 'Gone')"), _GO),
    "by its reference, elsewhere": Case(
        "button('Go')", _by_reference("move('Go', 300, 250)", drawn=True), _GO, toolkits=_TOOLKITS
    ),
    # It is not, and the application hears of nothing.
    "is never there": Case("button('Wait')", _in_vain, error='found nothing; there is .*button "Wait"'),
    "is hidden": Case(
        "button('Go'); show('Go', False)", _in_vain, error="found nothing|is not usable", toolkits=_TOOLKITS
    ),
    "is disabled": Case(
        "button('Go'); enable('Go', False)", _in_vain, error='is not usable: button "Go" .*disabled', toolkits=_TOOLKITS
    ),
    "two match": Case("button('Go'); button('Go ahead', 20, 200)", _in_vain, error="matches 2 elements, and one"),
    "goes while it is waited for": Case(
        "button('Go'); enable('Go', False); later(300, \"remove('Go')\")",
        _in_vain,
        error="found nothing",
    ),
    "is outside of the screen": Case(
        "button('Go'); window.move(-590, 100)", _in_vain, error="found nothing|not usable|is not on the screen"
    ),
    "has no size": Case("button('Go'); widgets['Go'].resize(0, 0)", _in_vain, error="is not usable", toolkits=_QT),
    "is in a minimised window": Case(
        "button('Go'); window.iconify()", _in_vain, error="found nothing|minimised window"
    ),
    "another window covers it": Case(
        f"button('Go', 250, 150); {_ABOVE}", _in_vain, error="covered by (the window )?'Above'"
    ),
    "a modal dialog is in front": Case(
        "button('Go'); dialog('Ask')",
        _in_vain,
        error="is not usable.*(which must be closed|covered by 'Ask')",
        toolkits=("GTK 3", "GTK 4"),
    ),
    "a popover is in front": Case(
        "button('Go', 20, 60); button('At', 20, 20); popover('Pop', 'At')",
        _in_vain,
        error="is not usable.*, which must be closed",
    ),
    "a list of completions is in front": Case(
        "button('Go', 300, 300); entry('Name'); completes('Name', ['Ada Lovelace', 'Ada Yonath'])",
        _with_completions,
        error="is not usable.*, which must be closed",
        holds="value('Name') == 'Ada'",
    ),
    "by reference before a list of completions is in front": Case(
        "button('Go', 300, 300); entry('Name'); completes('Name', ['Ada Lovelace', 'Ada Yonath'])",
        _before_completions,
        error="is behind .*, which must be closed",
        holds="value('Name') == 'Ada'",
    ),
    "by the reference of one that went": Case(
        "button('Go')",
        _by_reference("remove('Go')"),
        error="there is no element e[0-9]+ any more",
        toolkits=_TOOLKITS,
    ),
    "by the reference of one with a successor": Case(
        "button('Go')",
        _by_reference("remove('Go'); button('Go')"),
        error="there is no element e[0-9]+ any more",
        toolkits=("GTK 3", "Qt 5", "Qt 6"),
    ),
    "by the reference of one in a minimised window": Case(
        "button('Go')",
        _by_reference("window.iconify()", limit=_SHORT),
        error="there is no element|is in a minimised window|is not on the screen",
    ),
    "by the reference of one behind a dialog": Case(
        "button('Go', 20, 20)",
        _by_reference("dialog('Ask')", limit=_SHORT),
        error="is behind .*Ask.*, which must be closed|covered by the window 'Ask'",
        toolkits=("GTK 3", "GTK 4"),
    ),
    "by the reference of one behind a popover": Case(
        "button('Go', 20, 60); button('At', 20, 20)",
        _by_reference("popover('Pop', 'At')", limit=_SHORT),
        error="is behind .*, which must be closed",
    ),
    # Check boxes, fields, lists, drags.
    "is checked": Case(
        "check('Loud')", lambda d: d.find("checkbox", "Loud").check(), (["toggled", "Loud", True],), toolkits=_TOOLKITS
    ),
    "is checked already": Case("check('Loud', on=True)", lambda d: d.find("checkbox", "Loud").check(), ()),
    "is unchecked": Case(
        "check('Loud', on=True)",
        lambda d: d.find("checkbox", "Loud").uncheck(),
        (["toggled", "Loud", False],),
    ),
    "is filled": Case(
        "entry('Name', text='before')", _fill("Ada ☕"), holds="value('Name') == 'Ada ☕'", toolkits=_FIELDS
    ),
    "is emptied": Case("entry('Name', text='before')", _fill(""), holds="value('Name') == ''"),
    "is filled with a secret": Case(
        "entry('Name', secret=True)", _fill(Secret("hunter2")), holds="value('Name') == 'hunter2'"
    ),
    "is filled when it is enabled": Case(
        "entry('Name'); enable('Name', False); later(400, \"enable('Name', True)\")",
        _fill("Ada"),
        holds="value('Name') == 'Ada'",
    ),
    "is filled by the label on its left": Case(
        "label('First:', 20, 25); entry('', 150, 20); label('Second:', 20, 85); entry('', 150, 80); "
        "widgets['it'] = widgets['']",
        lambda d: d.find("textbox", label="Second").fill("Ada", timeout=_LONG),
        holds="value('it') == 'Ada'",
        toolkits=_FIELDS,
    ),
    "is filled by the label above": Case(
        "label('First', 20, 20); entry('', 20, 44); label('Second', 20, 100); entry('', 20, 124); widgets['it'] = widgets['']",
        lambda d: d.find(label="second").fill("Ada", timeout=_LONG),
        holds="value('it') == 'Ada'",
    ),
    "a number is filled": Case(
        "spin('Size')",
        lambda d: d.find("spinbutton", "Size").fill("42", timeout=_LONG) and d.perform(KeyPress(["Return"])),
        holds="value('Size') == 42",
    ),
    "cannot be written in": Case(
        "entry('Name', text='kept', editable=False)",
        _fill("Ada", _SHORT),
        error="is not editable",
        holds="value('Name') == 'kept'",
        toolkits=_FIELDS,
    ),
    "is filled when disabled": Case(
        "entry('Name', text='kept'); enable('Name', False)",
        _fill("Ada", _SHORT),
        error="is not editable: textbox .* disabled",
        holds="value('Name') == 'kept'",
    ),
    "a button is filled": Case("button('Go')", _fill("Ada", role="button", name="Go"), error="nothing to write in"),
    "an option is chosen": Case(
        "combo('Colour', ['red', 'green', 'blue'])",
        lambda d: d.find("combobox").select("green", timeout=_LONG),
        holds="value('Colour') == 'green'",
    ),
    "there is no such option": Case(
        "combo('Colour', ['red', 'green'])",
        lambda d: d.find("combobox").select("pink", timeout=_SHORT),
        error="offers no 'pink'",
        holds="value('Colour') != 'green'",
    ),
    "is dragged to another": Case(
        "source('From'); target('To', 300, 250)",
        lambda d: d.find("button", "From").drag_to(d.find("button", "To"), timeout=_LONG),
        (["dropped", "From", "To"],),
    ),
    "is dragged by references": Case(
        "source('From'); target('To', 300, 250)",
        lambda d: d.perform(
            Drag(element=d.find("button", "From").element().ref, to=d.find("button", "To").element().ref)
        ),
        (["dropped", "From", "To"],),
    ),
    "is dragged from where the pointer was put": Case(
        "source('From'); target('To', 300, 250)",
        lambda d: d.perform(
            Move(element=d.find("button", "From").element().ref), Drag([d.find("button", "To").element().point])
        ),
        (["dropped", "From", "To"],),
    ),
    "is dragged to one that is disabled": Case(
        "source('From'); target('To', 300, 250); enable('To', False)",
        lambda d: d.find("button", "From").drag_to(d.find("button", "To"), timeout=_SHORT),
        error='is not usable: button "To" .* disabled',
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


ROWS = [(toolkit, case) for toolkit in _TOOLKITS for case in CASES if toolkit in CASES[case].toolkits]


def _repeats(toolkit: str, case: str) -> bool:
    """The long series has what GTK 3 shows too."""
    return toolkit != "GTK 3" and "GTK 3" in CASES[case].toolkits


@pytest.mark.parametrize(
    ("toolkit", "name"),
    [pytest.param(*row, id=": ".join(row), marks=[pytest.mark.soak] if _repeats(*row) else []) for row in ROWS],
)
def test_it_waits_until_a_person_could(desktop: Desktop, puppet: Puppet, name: str) -> None:
    case = CASES[name]
    puppet.run(case.given)
    act = (lambda: case.act(desktop, puppet)) if case.act.__code__.co_argcount == 2 else (lambda: case.act(desktop))
    if case.error:
        with pytest.raises((ActionError, DeskhandTimeout), match=re.compile(case.error, re.DOTALL)):
            act()
    else:
        act()
    # Whatever else is to come of it has come when the screen is still.
    desktop.perform()
    expected = list(case.told or ())
    if case.holds:
        assert until(lambda: bool(puppet.run(f"int({case.holds})")))
    assert until(lambda: len(puppet.told) >= len(expected))
    assert puppet.told == expected


@pytest.mark.parametrize("toolkit", ["GTK 3"])
def test_a_server_that_answered_meanwhile_is_not_called_silent(desktop: Desktop, puppet: Puppet) -> None:
    """It stands still when the time to reach the element ends."""
    puppet.run("button('Go', 20, 60); button('At', 20, 20)")
    ref = desktop.find("button", "Go").element(timeout=_LONG).ref
    puppet.run("popover('Pop', 'At')")
    desktop.perform()
    behind = pytest.raises(DeskhandTimeout, match=r"is behind .*, which must be closed")
    with behind, stopped(server_pid(str(desktop.display)), after=0.9):
        desktop.perform(LeftClick(element=ref), settle=Settle(timeout=1.0))
