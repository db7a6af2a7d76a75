"""What a model is told when a person has control of its desktop, and afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand import Desktop, LeftClick, TakeScreenshot
from deskhand.backends.memory import MemoryBackend
from deskhand.providers import mcp, openai
from deskhand.providers.session import ModelSession
from deskhand.providers.values import ProviderCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.actions import Action


@pytest.fixture
def session() -> Iterator[ModelSession]:
    with Desktop(MemoryBackend((320, 200))) as desktop:
        yield ModelSession(desktop, settle=False)


def call(session: ModelSession, *actions: Action) -> ProviderCall:
    return ProviderCall(steps=actions, viewport=session.viewport, id="c1", name="computer")


def test_a_refusal_says_who_has_control_and_shows_the_screen(session: ModelSession) -> None:
    with session.desktop.control.take("Ada"):
        result = session.carry_out(call(session, LeftClick((5, 5))))
        assert result.picture is not None
        assert result.error is not None
        assert result.error.startswith("Ada has had control of this desktop since ")
        assert not result.denied
        looked = session.carry_out(call(session, TakeScreenshot()))
        assert looked.error is None


def test_of_a_private_hold_there_is_no_picture(session: ModelSession) -> None:
    with session.desktop.control.take("Ada", private=True):
        for action in (LeftClick((5, 5)), TakeScreenshot()):
            result = session.carry_out(call(session, action))
            assert result.picture is None
            assert "others may neither act nor look" in str(result.error)


def test_the_note_goes_with_the_next_answer(session: ModelSession) -> None:
    with session.desktop.control.take("Ada") as hold:
        hold.release("I logged you in")
    result = session.carry_out(call(session, LeftClick((5, 5))))
    assert result.error is None
    assert result.text is not None
    assert result.text.endswith("and says: I logged you in")
    said = openai.note(result)
    assert said is not None
    assert "I logged you in" in str(said)
    structured = mcp.encode(result)["structuredContent"]
    assert structured["notes"][0].endswith("I logged you in")
    assert session.carry_out(call(session, LeftClick((5, 5)))).text is None
