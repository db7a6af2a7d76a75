"""The rules of settling behind a line or a server, whose answers come late."""

from __future__ import annotations

import pytest

from deskhand._core.settle import Lag, Reason, Settle
from deskhand._core.settle_machine import Machine
from unit.settle_machines import WORD, reason

LAG = Lag(frame=0.02, trip=0.2)


def lagging() -> Machine:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=LAG)
    m.probed(0.0)
    m.answered(0.2)
    return m


def test_behind_a_slow_link_the_proof_is_asked_for_early() -> None:
    m = lagging()
    # An answer that took one trip is not late.
    assert not m.wants_probe(0.119)
    assert m.wait(0.1) == pytest.approx(0.02)
    assert m.wants_probe(0.121)
    m.probed(0.121)
    assert m.result(0.3) is None
    m.answered(0.321)
    assert reason(m, 0.321) is Reason.UNCHANGED


def test_behind_a_slow_link_silence_lasts_a_frame_longer() -> None:
    m = lagging()
    m.changed(0.21, [WORD])
    # The probe of the beginning proves nothing of what came after.
    assert reason(m, 0.29) is None
    assert m.wants_probe(0.211)
    m.probed(0.211)
    m.answered(0.411)
    assert reason(m, 0.411) is Reason.QUIET


@pytest.mark.parametrize("frame", [1 / 250, 1 / 60, 1 / 25])
def test_over_a_server_silence_lasts_a_frame_longer_and_no_more(frame: float) -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=Lag(frame=frame, trip=0.0001))
    m.probed(0.0)
    m.answered(0.0001)
    # Drawn at 0.01 and sent at once; what is drawn just before `quiet` is over may be sent a frame later.
    m.changed(0.01, [WORD])
    last = 0.01 + 0.05 + frame
    asked = last - 0.0001
    assert m.wants_probe(asked + 1e-6)
    m.probed(asked + 1e-6)
    m.answered(last - 1e-5)
    assert reason(m, last - 1e-5) is None
    m.changed(last - 1e-5, [WORD])
    assert reason(m, last) is None
    # And then nothing more.
    last += 0.05 + frame - 1e-5
    m.probed(last - 1e-4)
    m.answered(last - 1e-5)
    assert reason(m, last - 1e-6) is None
    assert reason(m, last + 1e-6) is Reason.QUIET


STEADY = Lag(frame=0.02, trip=0.2, steady=0.19)


def test_behind_a_steady_link_silence_is_proved_one_trip_after_the_change() -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=STEADY)
    sent, now = [], 0.0
    while now < 0.4:
        if m.wants_probe(now):
            m.probed(now)
            sent.append(now)
        if sent and now >= sent[0] + 0.2:
            sent.pop(0)
            m.answered(now)
        if now == pytest.approx(0.21):
            m.changed(now, [WORD])
        if reason(m, now):
            break
        now += 0.001
    # 0.07 s of silence, 0.01 that are not sure, and the interval of the probes.
    assert reason(m, now) is Reason.QUIET
    assert 0.28 <= now <= 0.312


def test_behind_a_steady_link_a_probe_that_left_too_early_proves_nothing() -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=STEADY)
    m.probed(0.0)
    m.probed(0.08)
    m.changed(0.21, [WORD])
    m.answered(0.2)
    m.answered(0.28)
    # The change may have left the server at 0.02 after the second probe was there, so that 0.06 of 0.07 s are proved.
    assert reason(m, 0.29) is None
    m.probed(0.1)
    m.answered(0.3)
    assert reason(m, 0.3) is Reason.QUIET


def test_a_change_behind_a_probe_under_way_has_its_own() -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=Lag(frame=0.02, trip=0.05))
    m.probed(0.0)
    m.answered(0.05)
    m.changed(0.06, [WORD])
    m.probed(0.08)
    m.changed(0.082, [WORD])
    assert not m.wants_probe(0.1)
    assert m.wants_probe(0.103)
    m.probed(0.103)
    assert not m.wants_probe(0.12)
    m.answered(0.13)
    m.answered(0.153)
    assert reason(m, 0.153) is Reason.QUIET


def test_on_a_line_that_stopped_probes_do_not_pile_up() -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=STEADY)
    sent = 0
    for step in range(3000):
        if m.wants_probe(step / 1000):
            m.probed(step / 1000)
            sent += 1
    assert 10 <= sent <= 32
    result = m.result(3.0)
    assert result is not None
    assert (result.settled, result.reason) == (False, Reason.SERVER_SILENT)


def test_input_that_the_line_held_up_is_given_its_time() -> None:
    m = Machine(Settle(), now=0.0, can_probe=True, lag=Lag(frame=0.02, trip=0.02))
    m.probed(0.0)
    m.probed(0.12)
    m.answered(0.059)
    m.answered(0.14)
    assert reason(m, 0.178) is None
    assert reason(m, 0.18) is Reason.UNCHANGED


def test_what_was_sent_behind_input_that_the_line_held_up_proves_nothing() -> None:
    """A packet was lost: the input and both probes reached the server at once, and its answers left before any effect."""
    m = Machine(Settle(), now=0.0, can_probe=True, lag=LAG)
    m.probed(0.0)
    assert m.wants_probe(0.121)
    m.probed(0.121)
    m.answered(0.9)
    m.answered(0.9)
    assert reason(m, 1.03) is None
    assert m.wants_probe(0.9)
    m.probed(0.9)
    assert not m.wants_probe(0.95)
    m.changed(1.05, [WORD])
    m.answered(1.1)
    assert reason(m, 1.1) is None


def test_a_change_that_comes_with_the_answer_is_waited_out() -> None:
    m = lagging()
    m.changed(0.21, [WORD])
    m.probed(0.22)
    m.changed(0.415, [WORD])
    m.answered(0.42)
    assert reason(m, 0.42) is None
    assert m.wants_probe(0.42)
    m.probed(0.42)
    m.answered(0.62)
    assert reason(m, 0.62) is Reason.QUIET
