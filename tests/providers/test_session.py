"""A model's session: what a call asks for is done, under a policy where there is one, and what came of it is told."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import AsyncDesktop, CursorPosition, Desktop, DesktopLost, LeftClick, Move, TakeScreenshot, Type, Zoom
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.operations import Operation, SafetyCheck
from deskhand.policy.guard import Guard
from deskhand.policy.rules import ClassPolicy, Decision
from deskhand.providers.session import AsyncModelSession, ModelSession
from deskhand.providers.values import Browse, Finish, ProviderCall, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKS = (SafetyCheck("s1", "malicious_instructions", "Sure?"), SafetyCheck("s2"))


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


def call(*steps: Step, safety: tuple[SafetyCheck, ...] = (), session: ModelSession) -> ProviderCall:
    return ProviderCall(steps=steps, viewport=session.viewport, id="c1", safety=safety)


def clicks(backend: MemoryBackend) -> int:
    return sum(isinstance(event, ButtonDown) for event in backend.events)


def test_steps_are_done_in_order_and_the_screen_is_shown(desktop: Desktop, backend: MemoryBackend) -> None:
    session = ModelSession(desktop, size=0.5)
    done = session.carry_out(call(LeftClick((10, 10)), CursorPosition(), Move((30, 40)), Finish(), session=session))
    assert (done.error, clicks(backend)) == (None, 1)
    assert done.cursor == (5, 5), "in pixels of the model's picture"
    assert done.picture is not None
    assert desktop.pointer == (30, 40)
    assert done.call.id == "c1"


def test_an_error_counts_what_was_done_before_it(desktop: Desktop, backend: MemoryBackend) -> None:
    """Also where the call's actions are done in parts, or one by one."""
    session = ModelSession(desktop)
    steps = (LeftClick((10, 10)), CursorPosition(), LeftClick((20, 20)), Move((9999, 0)), LeftClick((30, 30)))
    failed = session.carry_out(call(*steps, session=session))
    assert failed.error is not None
    assert failed.error.endswith("[in actions[3] (move); 2 done before it]")
    assert clicks(backend) == 1, "a part is checked before any of it is done"
    failed = session.carry_out(call(Move((9999, 0)), session=session), before=2)
    assert failed.error is not None
    assert failed.error.endswith("[in actions[2] (move); 2 done before it]")


def test_a_call_without_steps_shows_the_screen(desktop: Desktop) -> None:
    session = ModelSession(desktop)
    assert session.carry_out(call(Finish(), session=session)).picture == session.look()


def test_only_a_whole_picture_is_pointed_into(desktop: Desktop) -> None:
    session = ModelSession(desktop, size=(64, 40))
    before = session.viewport
    zoomed = session.carry_out(call(Zoom((0, 0, 20, 10)), session=session))
    assert zoomed.picture is not None
    assert session.viewport == before
    assert zoomed.picture != session.look()


def test_the_model_points_into_the_last_picture_that_it_was_given(desktop: Desktop) -> None:
    session = ModelSession(desktop, size=(64, 40))
    assert session.viewport.model == (64, 40)
    session.look()
    session.size = (32, 20)
    assert session.viewport.model == (64, 40), "nothing newer was shown yet"
    session.carry_out(call(TakeScreenshot(), session=session))
    assert session.viewport.model == (32, 20)


def test_what_fails_is_told_with_what_was_done_before(desktop: Desktop, backend: MemoryBackend) -> None:
    session = ModelSession(desktop)
    failed = session.carry_out(call(LeftClick((1, 1)), CursorPosition(), LeftClick((99_999, 1)), session=session))
    assert clicks(backend) == 1
    assert failed.error is not None
    assert "outside" in failed.error
    assert (failed.denied, failed.picture is None) == (False, False)
    refused = session.carry_out(call(Browse("back"), session=session))
    assert refused.error is not None
    assert "back" in refused.error


def test_a_lost_desktop_is_raised() -> None:
    desktop = Desktop(MemoryBackend())
    session = ModelSession(desktop)
    desktop.close()
    with pytest.raises((DesktopLost, deskhand.DeskhandError)):
        session.carry_out(call(TakeScreenshot(), session=session))


# --- under a policy ---


def test_nobody_confirms_for_nobody(desktop: Desktop, backend: MemoryBackend) -> None:
    session = ModelSession(desktop)
    refused = session.carry_out(call(LeftClick((1, 1)), safety=CHECKS, session=session))
    assert (refused.denied, refused.acknowledged, clicks(backend)) == (True, (), 0)


def test_all_checks_are_confirmed_or_nothing_is_done(desktop: Desktop, backend: MemoryBackend) -> None:
    asked: list[Any] = []

    def ask(action: Any, context: Any) -> bool:
        asked.append((action, context))
        return len(asked) != 2

    session = ModelSession(desktop, ask=ask, provider="openai")
    refused = session.carry_out(call(LeftClick((1, 1)), safety=CHECKS, session=session))
    assert (refused.denied, clicks(backend), len(asked)) == (True, 0, 2)
    assert set(refused.acknowledged) <= {CHECKS[0]}, "what was denied is never acknowledged"
    assert asked[0][1].provider == "openai"
    done = session.carry_out(call(LeftClick((1, 1)), safety=CHECKS, session=session))
    assert (done.error, done.acknowledged, clicks(backend)) == (None, CHECKS, 1)
    assert len(asked) == 4, "each call is asked about anew"


def test_what_the_policy_denies_is_told_and_not_done(desktop: Desktop, backend: MemoryBackend) -> None:
    def before(action: Any, _: Any) -> Decision:
        return Decision("deny", "no typing") if isinstance(action, Type) else Decision("allow")

    class Quiet:
        def before(self, action: Any, context: Any) -> Decision:
            return before(action, context)

    session = ModelSession(desktop.also(Guard(policy=Quiet(), limits=None)))
    refused = session.carry_out(call(LeftClick((1, 1)), Type("x"), session=session))
    assert refused.error is not None
    assert "no typing" in refused.error
    assert (refused.denied, refused.picture is None, clicks(backend)) == (True, False, 0)


def test_who_may_not_look_gets_no_picture(desktop: Desktop) -> None:
    class Blind:
        def before(self, action: Any, context: Any) -> Decision:  # noqa: ARG002
            return Decision("deny", "not for you")

    session = ModelSession(desktop, policy=Blind())
    refused = session.carry_out(call(TakeScreenshot(), session=session))
    assert (refused.denied, refused.picture) == (True, None)


def test_browsing_is_judged_as_such(desktop: Desktop) -> None:
    judged: list[Any] = []

    class Watching:
        def before(self, action: Any, context: Any) -> Decision:  # noqa: ARG002
            judged.append(action)
            return Decision("deny", "stay here") if isinstance(action, Operation) else Decision("allow")

    session = ModelSession(desktop, policy=Watching())
    refused = session.carry_out(call(Browse("navigate", "https://example.org"), session=session))
    assert refused.denied
    assert judged[0] == Operation("navigate", "https://example.org")


def test_what_browsing_does_is_a_part_of_it(desktop: Desktop) -> None:
    """A recorder sees the parts; a policy has decided about the whole."""
    seen: list[str] = []

    class Hears:
        def before(self, operation: Operation) -> object:
            seen.append(operation.type)
            return None

        def after(self, operation: Operation, token: object, outcome: object) -> None:
            del operation, token, outcome

    session = ModelSession(desktop.also(Hears()), policy=ClassPolicy(allow=["navigate"]))
    refused = session.carry_out(call(Browse("navigate", "https://example.org"), session=session))
    # This desktop in memory has no windows to look for a browser in.
    assert (refused.denied, "windows cannot be recognized" in str(refused.error)) == (False, True)
    assert seen[0] == "navigate"


def test_a_seat_adds_its_policy_to_the_desktops(desktop: Desktop, backend: MemoryBackend) -> None:
    strict = desktop.also(Guard(policy=ClassPolicy(allow=["observe"])))
    session = ModelSession(strict, policy=ClassPolicy(allow=["observe", "input"]))
    assert session.carry_out(call(LeftClick((3, 4)), session=session)).denied
    assert clicks(backend) == 0


def test_a_seat_without_a_policy_says_so(desktop: Desktop) -> None:
    with pytest.warns(deskhand.NoPolicyWarning, match="pass policy= or ask="):
        ModelSession(desktop)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ModelSession(desktop, policy=ClassPolicy())
        ModelSession(desktop.also(Guard()))


@pytest.mark.parametrize("kind", ["desktop", "async desktop", "judged", "async judged", "model session"])
def test_coroutines_at_every_kind_of_desktop(desktop: Desktop, backend: MemoryBackend, kind: str) -> None:
    async def ask(_: Any, __: Any) -> bool:
        await asyncio.sleep(0)
        return True

    async def main() -> Any:
        if kind in ("judged", "async judged"):
            judged = desktop.also(Guard(ask=ask))
            at: Any = judged if kind == "judged" else AsyncDesktop(judged)
            session = AsyncModelSession.of(at)
        elif kind == "model session":
            session = AsyncModelSession.of(ModelSession(desktop, ask=ask))
        else:
            session = AsyncModelSession.of(AsyncDesktop(desktop) if kind == "async desktop" else desktop, ask=ask)
        assert AsyncModelSession.of(session) is session
        done = await session.carry_out(call(LeftClick((3, 4)), safety=CHECKS, session=session.session))
        assert await session.look() == done.picture
        assert session.viewport.screen == desktop.size
        return done

    done = asyncio.run(main())
    assert (done.error, done.acknowledged, clicks(backend)) == (None, CHECKS, 1)
