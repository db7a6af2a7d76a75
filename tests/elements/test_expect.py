"""What a test expects of an element: each expectation comes true late, and fails with what there was."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import ActionError, AsyncDesktop, ExpectationFailed, expect
from elements.puppet import Puppet, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Desktop

_WIDGETS = (
    "button('Save'); check('Loud', 20, 60); entry('Name', 20, 100, 'Ada  Lovelace'); label('First line', 20, 150); "
    "spin('Size', 20, 200); button('Off', 20, 250); enable('Off', False); button('Away', 200, 20); show('Away', False)"
)
# What is looked for, what is expected of it, what the application changes that it becomes true, and what is said before.
EXPECTED: dict[str, tuple[dict[str, Any], str, tuple[object, ...], str, str]] = {
    "visible": ({"name": "Away"}, "to_be_visible", (), "show('Away', True)", "found nothing"),
    "hidden": ({"name": "Save"}, "to_be_hidden", (), "show('Save', False)", 'there was button "Save"'),
    "enabled": ({"name": "Off"}, "to_be_enabled", (), "enable('Off', True)", 'it was button "Off" .* disabled'),
    "disabled": ({"name": "Save"}, "to_be_disabled", (), "enable('Save', False)", 'it was button "Save"'),
    "checked": ({"name": "Loud"}, "to_be_checked", (), "widgets['Loud'].set_active(True)", 'it was checkbox "Loud"'),
    "focused": ({"name": "Name"}, "to_be_focused", (), "widgets['Name'].grab_focus()", 'it was textbox "Name"'),
    "text": ({"name": "Name"}, "to_have_text", ("Ada",), "widgets['Name'].set_text('Ada')", "Ada Lovelace"),
    "a part": ({"name": "Name"}, "to_contain_text", ("Grace",), "widgets['Name'].set_text('A Grace')", "Ada Lovelace"),
    "a pattern": (
        {"name": "Name"},
        "to_have_text",
        (re.compile("^G"),),
        "widgets['Name'].set_text('G')",
        "Ada Lovelace",
    ),
    "name": ({"role": "text"}, "to_have_name", ("Second line",), "rename('First line', 'Second  line')", "First line"),
    "value": (
        {"role": "spinbutton"},
        "to_have_value",
        (7,),
        "widgets['Size'].set_value(7)",
        'spinbutton "Size" .* = 0',
    ),
    "written": ({"name": "Name"}, "to_have_value", ("A  b",), "widgets['Name'].set_text('A  b')", "Ada Lovelace"),
    "count": ({"role": "checkbox"}, "to_have_count", (2,), "check('More', 200, 60)", '1 matched: checkbox "Loud"'),
}


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.fixture
def puppet(desktop: Desktop, tmp_path: Any) -> Iterator[Puppet]:
    with shown(desktop, tmp_path / "socket", code="window.set_focus(None)") as puppet:
        puppet.run(_WIDGETS)
        desktop.find("button", "Off").element()
        yield puppet


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_waited_for_and_said(desktop: Desktop, puppet: Puppet, name: str) -> None:
    found, what, arguments, change, said = EXPECTED[name]
    there = expect(desktop.find(**found))
    with pytest.raises(AssertionError, match=f"(?s)waited 0.3 s; for the last [0-9.]+ s .*{said}") as caught:
        getattr(there, what)(*arguments, timeout=0.3)
    assert isinstance(caught.value, ExpectationFailed)
    getattr(there.not_, what)(*arguments)
    puppet.run(f"later(300, {change!r})")
    getattr(there, what)(*arguments, timeout=20)
    with pytest.raises(AssertionError, match="not to "):
        getattr(there.not_, what)(*arguments, timeout=0.1)


def test_case_matters_unless_it_is_said_not_to(desktop: Desktop, puppet: Puppet) -> None:
    there = expect(desktop.find("textbox", "Name"))
    there.not_.to_have_text("ada lovelace", timeout=0.1)
    there.to_have_text("ada lovelace", ignore_case=True)
    there.to_contain_text(re.compile("LOVE"), ignore_case=True)
    there.to_have_text("Ada Lovelace")
    there.not_.to_have_value("Ada Lovelace", timeout=0.1)
    assert puppet.told == []


def test_two_that_match_are_named(desktop: Desktop, puppet: Puppet) -> None:
    with pytest.raises(AssertionError, match="matches 2 elements, and one is needed"):
        expect(desktop.find("button")).to_be_enabled(timeout=0.2)
    expect(desktop.find("button")).to_have_count(2)
    assert puppet.told == []


def test_what_a_password_is_is_not_told(desktop: Desktop, puppet: Puppet) -> None:
    puppet.run("entry('Key', 200, 100, 'hunter2', secret=True)")
    key = desktop.find("textbox", "Key")
    key.element()
    with pytest.raises(AssertionError) as caught:
        expect(key).to_have_text("hunter2!", timeout=0.2)
    assert "hunter2" not in str(caught.value).replace("hunter2!", "")
    expect(key).not_.to_have_text("hunter2", timeout=0.2)


def test_coroutines_are_the_same(desktop: Desktop, puppet: Puppet) -> None:
    async def run() -> None:
        twin = AsyncDesktop(desktop)
        save = twin.find("button").find("text").nth(0) and twin.find("button", "Save")
        await expect(save).to_be_enabled()
        await expect(save).not_.to_be_disabled()
        with pytest.raises(AssertionError, match="for the last"):
            await expect(save).not_.to_be_visible(timeout=0.2)
        await save.click()
        with pytest.raises(ActionError, match="a locator is needed, not 5"):
            await save.drag_to(5)  # type: ignore[arg-type]

    asyncio.run(run())
    assert puppet.tells(["clicked", "Save"])


@pytest.mark.parametrize(
    ("what", "wrong"),
    [("to_have_text", 5), ("to_have_value", None), ("to_have_count", "two"), ("to_have_count", -1)],
)
def test_what_cannot_be_expected(desktop: Desktop, what: str, wrong: object) -> None:
    with pytest.raises(ActionError):
        getattr(expect(desktop.find("button")), what)(wrong)
