"""The rules of settling, as tables of reports and verdicts on a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand._core.ambient import Ambient
from deskhand._core.geometry import Rect
from deskhand._core.settle import Activity, Lag, Reason, Settle
from deskhand._core.settle_machine import Machine
from deskhand.errors import ActionError
from unit.settle_machines import CARET, WORD, machine, reason


def test_nothing_happens() -> None:
    m = machine()
    assert m.wait(0.0) == pytest.approx(0.1)
    assert m.result(0.0999) is None
    result = m.result(0.1)
    assert result is not None
    assert (result.settled, result.reason, result.first_change) == (True, Reason.UNCHANGED, None)


def test_quiet_counts_from_the_last_change() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    m.changed(0.04, [WORD])
    assert m.result(0.0899) is None
    result = m.result(0.0901)
    assert result is not None
    assert (result.reason, result.first_change, result.last_change) == (Reason.QUIET, 0.01, 0.04)


def test_a_late_change_within_the_reaction_time_is_waited_out() -> None:
    m = machine()
    m.changed(0.095, [WORD])
    assert m.result(0.1) is None
    assert reason(m, 0.146) is Reason.QUIET


def test_a_window_that_does_not_answer_is_waited_for() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    assert m.result(0.8) is None
    m.answered(0.8)
    assert m.result(0.8) is None, "what it makes of its input is still to be drawn"
    m.changed(0.81, [WORD])
    assert m.wants_probe(0.861)
    m.probed(0.861)
    m.answered(0.862)
    assert reason(m, 0.862) is Reason.QUIET


def test_a_probe_sent_before_the_last_change_proves_nothing() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.answered(0.001)
    m.changed(0.02, [WORD])
    assert m.result(0.08) is None
    assert m.wants_probe(0.08)
    m.probed(0.08)
    assert not m.wants_probe(0.09)
    assert m.result(0.09) is None
    m.answered(0.09)
    assert reason(m, 0.09) is Reason.QUIET


def test_an_answer_given_at_once_does_not_prove_that_nothing_comes() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.answered(0.001)
    assert m.result(0.1) is None
    assert m.wants_probe(0.1)
    m.probed(0.1)
    m.answered(0.101)
    assert reason(m, 0.101) is Reason.UNCHANGED


def test_no_probe_is_sent_before_it_can_decide() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.answered(0.001)
    m.changed(0.02, [WORD])
    assert not m.wants_probe(0.05)


def test_a_computing_application_is_looked_at_again_every_half_quiet() -> None:
    m = machine()
    m.looked(0.1, Activity.COMPUTING)
    assert m.result(0.12) is None
    assert m.wait(0.1) == pytest.approx(0.025)
    m.looked(0.126, Activity.COMPUTING)
    assert m.result(0.15) is None
    m.changed(0.14, [WORD])
    assert m.result(0.189) is None
    assert reason(m, 0.191) is Reason.QUIET


def test_an_animation_that_moves_no_pixel_is_waited_for() -> None:
    m = machine()
    m.changed(0.07, [WORD])
    m.changed(0.09, [WORD])
    m.looked(0.14, Activity.TICKING)
    assert m.result(0.16) is None
    assert m.wants_look(0.166)
    m.looked(0.166, Activity.TICKING)
    m.changed(0.18, [WORD])
    assert m.result(0.229) is None
    m.looked(0.231, Activity.RESTING)
    assert reason(m, 0.231) is Reason.QUIET


def test_a_lone_change_by_an_application_that_rests_needs_less_silence() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.answered(0.001)
    m.changed(0.01, [WORD])
    assert m.wait(0.01) == pytest.approx(0.034)
    assert not m.wants_look(0.043)
    assert m.wants_look(0.045)
    m.looked(0.046, Activity.RESTING)
    assert m.result(0.046) is None, "the answer was sent before the change"
    assert m.wants_probe(0.046)
    m.probed(0.046)
    m.answered(0.047)
    assert reason(m, 0.047) is Reason.QUIET


@pytest.mark.parametrize("activity", [Activity.UNKNOWN, Activity.TICKING, Activity.COMPUTING])
def test_nothing_is_spared_where_an_application_is_not_known_to_rest(activity: Activity) -> None:
    m = machine()
    m.changed(0.01, [WORD])
    m.looked(0.046, activity)
    assert m.wait(0.046) == pytest.approx(0.014)
    assert m.result(0.059) is None
    assert m.wants_look(0.061)
    m.looked(0.061, Activity.RESTING)
    assert reason(m, 0.061) is Reason.QUIET


def test_nothing_is_spared_after_a_second_change() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    m.changed(0.03, [WORD])
    assert not m.wants_look(0.079)
    m.looked(0.066, Activity.RESTING)
    assert m.result(0.066) is None
    assert reason(m, 0.081) is Reason.QUIET


def test_nothing_is_spared_of_a_shorter_quiet_nor_where_the_picture_lags() -> None:
    short = machine(settings=Settle(quiet=0.03))
    lagging = Machine(Settle(), now=0.0, can_probe=False, lag=Lag(frame=0.01))
    for m, quiet in ((short, 0.03), (lagging, 0.06)):
        m.changed(0.01, [WORD])
        assert not m.wants_look(0.009 + quiet)
        assert m.wants_look(0.011 + quiet)


def test_nothing_is_spared_once_an_answer_came_late() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.answered(0.03)
    m.changed(0.08, [WORD])
    assert not m.wants_look(0.129)
    assert m.wants_look(0.131)


def test_a_clock_that_runs_on_after_a_single_change_is_no_animation() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    m.looked(0.061, Activity.TICKING)
    assert reason(m, 0.061) is Reason.QUIET


def test_a_command_that_sleeps_is_waited_for_a_while_and_named() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    for at in (0.06, 0.2, 0.3):
        assert m.wants_look(at)
        m.looked(at, Activity.SLEEPING)
        assert m.result(at) is None
    m.changed(0.31, [WORD])
    m.looked(0.59, Activity.SLEEPING)
    assert m.result(0.59) is None
    m.looked(0.62, Activity.SLEEPING)
    result = m.result(0.62)
    assert result is not None
    assert (result.settled, result.reason, result.may_change) == (True, Reason.QUIET, True)


def test_an_answer_over_the_network_is_waited_for() -> None:
    m = machine()
    for at in (0.1, 0.13, 0.5):
        assert m.wants_look(at)
        m.looked(at, Activity.AWAITING)
        assert m.result(at) is None
    m.changed(0.51, [WORD])
    m.looked(0.57, Activity.RESTING)
    result = m.result(0.57)
    assert result is not None
    assert (result.reason, result.first_change, result.may_change) == (Reason.QUIET, 0.51, False)


def test_what_an_answer_is_for_has_yet_to_be_drawn() -> None:
    m = machine()
    m.looked(0.1, Activity.AWAITING)
    m.looked(0.13, Activity.RESTING)
    assert m.result(0.13) is None
    m.changed(0.14, [WORD])
    m.looked(0.191, Activity.RESTING)
    assert reason(m, 0.191) is Reason.QUIET
    m = machine()
    m.looked(0.1, Activity.AWAITING)
    m.looked(0.13, Activity.RESTING)
    m.looked(0.156, Activity.AWAITING)
    m.looked(0.182, Activity.RESTING)
    assert m.result(0.182) is None, "the second answer is as new"
    m.looked(0.208, Activity.RESTING)
    assert reason(m, 0.208) is Reason.UNCHANGED
    m = machine()
    m.looked(1.0, Activity.AWAITING)
    m.looked(1.03, Activity.TIMED)
    assert m.result(1.03) is None, "it may have come just now"
    m.looked(1.056, Activity.TIMED)
    assert reason(m, 1.056) is Reason.UNCHANGED


def test_a_pointer_that_says_wait_is_believed_for_a_second() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    # A lone change by what rests would be enough.
    m.looked(0.046, Activity.RESTING, says_wait=True)
    assert m.result(0.046) is None
    m.looked(0.061, Activity.UNKNOWN, says_wait=True)
    assert m.result(0.08) is None
    m.changed(0.4, [WORD])
    m.looked(0.451, Activity.RESTING)
    assert reason(m, 0.451) is Reason.QUIET
    m = machine()
    m.looked(0.99, Activity.RESTING, says_wait=True)
    assert m.result(0.99) is None
    m.looked(1.02, Activity.RESTING, says_wait=True)
    result = m.result(1.02)
    assert result is not None
    assert (result.settled, result.reason, result.may_change) == (True, Reason.UNCHANGED, True)


def test_a_command_that_has_ended_is_not_named() -> None:
    m = machine()
    m.looked(0.1, Activity.SLEEPING)
    assert m.result(0.1) is None
    m.looked(0.13, Activity.RESTING)
    result = m.result(0.13)
    assert result is not None
    assert (result.reason, result.may_change) == (Reason.UNCHANGED, False)


def test_a_timer_that_was_set_is_not_waited_for_but_told() -> None:
    m = machine()
    m.changed(0.01, [WORD])
    # A lone change: 16 ms less will do, as with an application that rests.
    m.looked(0.046, Activity.TIMED)
    result = m.result(0.046)
    assert result is not None
    assert (result.settled, result.reason, result.may_change) == (True, Reason.QUIET, True)
    m = machine()
    m.looked(0.1, Activity.TIMED)
    result = m.result(0.1)
    assert result is not None
    assert (result.reason, result.may_change) == (Reason.UNCHANGED, True)


def test_what_ticks_is_timed_still() -> None:
    for then, may_change in ((Activity.TICKING, True), (Activity.RESTING, False)):
        m = machine()
        m.looked(0.1, Activity.TIMED)
        m.looked(0.11, then)
        result = m.result(1.0)
        assert result is not None
        assert result.may_change is may_change


def test_what_ticks_for_ever_is_not_waited_for() -> None:
    m = machine()
    m.changed(0.09, [WORD])
    m.changed(0.1, [WORD])
    m.looked(0.34, Activity.TICKING)
    assert m.wants_look(0.366)
    m.looked(0.366, Activity.TICKING)
    assert not m.wants_look(0.367)
    assert reason(m, 0.367) is Reason.QUIET


def test_the_application_is_looked_at_once_for_each_silence() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.changed(0.005, [WORD])
    m.changed(0.01, [WORD])
    assert not m.wants_look(0.05)
    assert m.wants_look(0.061)
    m.looked(0.061, Activity.RESTING)
    assert not m.wants_look(0.07)
    m.changed(0.08, [WORD])
    assert m.wants_look(0.131)
    m.looked(0.131, Activity.COMPUTING)
    assert not m.wants_look(0.14)
    assert m.wants_look(0.157)


def test_an_application_that_computes_to_the_end_is_named_busy() -> None:
    m = machine()
    m.looked(2.99, Activity.COMPUTING)
    result = m.result(3.0)
    assert result is not None
    assert (result.settled, result.reason) == (False, Reason.WINDOW_BUSY)


def test_a_window_that_closed_needs_no_answer() -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    m.unprobeable()
    assert reason(m, 0.1) is Reason.UNCHANGED


@pytest.mark.parametrize(
    ("last_change", "expected"),
    [(None, Reason.WINDOW_BUSY), (1.0, Reason.WINDOW_BUSY), (2.99, Reason.STILL_CHANGING)],
)
def test_the_timeout_says_why(last_change: float | None, expected: Reason) -> None:
    m = machine(can_probe=True)
    m.probed(0.0)
    if last_change is not None:
        m.changed(last_change, [WORD])
    assert m.result(2.999) is None
    result = m.result(3.0)
    assert result is not None
    assert (result.settled, result.reason) == (False, expected)


def test_a_busy_region_does_not_hold_up_and_is_named() -> None:
    m = machine(ambient=(CARET,))
    assert not m.changed(0.05, [CARET])
    result = m.result(0.1)
    assert result is not None
    assert (result.reason, result.busy) == (Reason.UNCHANGED, (CARET,))


def test_typing_beside_a_caret_is_no_caret() -> None:
    m = machine(ambient=(CARET,))
    assert m.changed(0.01, [Rect(300, 100, 8, 16)])


@given(st.lists(st.floats(0, 2.9), max_size=20), st.floats(0.01, 0.2), st.floats(0.01, 0.3))
def test_every_wait_ends_and_never_before_it_is_quiet(times: list[float], quiet: float, reaction: float) -> None:
    m = machine(settings=Settle(quiet=quiet, reaction=reaction))
    now, todo = 0.0, sorted(times)
    while (result := m.result(now)) is None:
        wait = m.wait(now)
        assert wait > 0
        upcoming = [at for at in todo if at <= now + wait]
        now = upcoming[0] if upcoming else now + wait + 1e-9
        if upcoming:
            m.changed(todo.pop(0), [WORD])
    assert now <= 3.0 + 1e-6
    if result.settled and result.last_change is not None:
        assert now - result.last_change >= quiet - 1e-6


@pytest.mark.parametrize("field", ["quiet", "reaction", "timeout"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 1e9, "1"])
def test_bad_settings_are_refused(field: str, value: object) -> None:
    with pytest.raises(ActionError, match=field):
        Settle(**{field: value})  # type: ignore[arg-type]


def fed(*changes: tuple[float, Rect]) -> Ambient:
    ambient = Ambient()
    for at, rect in changes:
        ambient.feed(at, [rect])
    return ambient


def test_a_caret_a_clock_and_a_video_are_ambient() -> None:
    clock, video = Rect(900, 0, 60, 20), Rect(400, 300, 320, 240)
    ambient = fed(
        *((0.6 * n, CARET) for n in range(6)),
        *((1.0 * n, clock) for n in range(4)),
        *((0.1 * n, video) for n in range(30)),
    )
    regions = ambient.regions(3.1)
    assert CARET in regions
    assert any(clock.within(region) for region in regions)
    assert any(video.within(region) for region in regions)
    assert len(regions) == 3


@pytest.mark.parametrize(
    ("times", "now", "why"),
    [
        ([0.0, 0.6], 1.0, "twice is not yet a habit"),
        ([0.0, 0.02, 0.04, 0.06], 0.1, "a window that draws itself"),
        ([0.1 * n for n in range(20)], 3.0, "stopped a second ago"),
        ([0.0, 2.0, 4.0, 6.0], 6.5, "too rare"),
    ],
)
def test_what_is_not_ambient(times: list[float], now: float, why: str) -> None:
    assert fed(*((at, WORD) for at in times)).regions(now) == (), why


def test_one_redraw_of_the_window_does_not_make_it_ambient() -> None:
    window = Rect(0, 0, 1000, 700)
    ambient = fed(*((0.6 * n, CARET) for n in range(6)), (1.5, window))
    assert ambient.regions(3.1) == (CARET,)


def test_a_window_drawn_in_many_pieces_does_not_hide_a_spinner_in_it() -> None:
    window, spinner = Rect(0, 0, 500, 400), Rect(200, 200, 32, 32)
    pieces = [Rect(20 * n, 0, 19, 12) for n in range(20)]
    ambient = fed((0.0, window), *((0.0, piece) for piece in pieces), *((0.1 * n, spinner) for n in range(1, 15)))
    (region,) = ambient.regions(1.45)
    assert spinner.within(region)
    assert not pieces[0].within(region)


def test_a_clock_whose_digits_differ_in_width_is_one_region() -> None:
    widths = [40, 44, 42, 44, 40]
    ambient = fed(*((float(n), Rect(900, 4, width, 12)) for n, width in enumerate(widths)))
    (region,) = ambient.regions(4.3)
    assert Rect(900, 4, 44, 12).within(region)


def test_forgetting() -> None:
    ambient = fed(*((0.6 * n, CARET) for n in range(6)))
    ambient.forget()
    assert ambient.regions(3.1) == ()
