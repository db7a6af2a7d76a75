"""How recorded events read on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Drag, KeyPress, LeftClick, Move, Scroll, Type
from deskhand.episodes.report.timeline import Mark, describe_action, moments

if TYPE_CHECKING:
    from deskhand.actions import Action


def performed(*actions: Action, **fields: Any) -> dict[str, Any]:
    plain = [action.to_dict() for action in actions]
    return {"kind": "perform", "seq": 1, "t": 0.5, "actions": plain, "before": "f1", "after": "f2", **fields}


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (LeftClick((400, 300)), "left mouse click (400, 300)"),
        (LeftClick((4, 4), modifiers=("ctrl",)), "left mouse click (4, 4) modifiers=['ctrl']"),
        (Type("naïve ☕\ntext"), "type “naïve ☕\ntext”"),
        (KeyPress(["ctrl", "s"]), "keypress ctrl + s"),
        (Drag([(1, 1), (2, 2), (3, 3), (9, 9)]), "drag (1, 1) → (2, 2) → (9, 9)"),
        (Scroll((7, 8), direction="up", magnitude=2), "scroll (7, 8) magnitude=2 direction=up"),
    ],
)
def test_actions_read_as_a_person_would_say_them(action: Action, text: str) -> None:
    assert describe_action(action.to_dict()) == text


def test_where_it_was_acted_is_marked() -> None:
    (moment,) = moments([performed(LeftClick((400, 300)), Drag([(1, 2), (3, 4)]), Scroll((7, 8), direction="up"))])
    clicked, dragged, scrolled = moment.marks
    assert clicked.points == ((400.0, 300.0),)
    assert dragged.points == ((1.0, 2.0), (3.0, 4.0))
    assert (scrolled.points, scrolled.arrow) == (((7.0, 8.0),), (0, -1))


def test_an_action_where_the_pointer_is_is_marked_there() -> None:
    first, second = moments([performed(Move((5, 6)), cursor=[5, 6]), performed(LeftClick())])
    assert first.marks[0].points == ((5.0, 6.0),)
    assert second.marks == (Mark(((5.0, 6.0),), second.marks[0].label),)


def test_an_action_at_an_element_is_marked_where_it_was_done() -> None:
    before = performed(Move((5, 6)), cursor=[5, 6])
    _, alone = moments([before, performed(LeftClick(element="e3"), cursor=[30, 40])])
    assert [mark.points for mark in alone.marks] == [((30.0, 40.0),)]
    # Of several, it is known of the last one alone.
    _, several = moments([before, performed(LeftClick(element="e3"), LeftClick(element="e4"), cursor=[50, 60])])
    assert [mark.points for mark in several.marks] == [((50.0, 60.0),)]


def test_what_changed_and_how_it_came_to_rest() -> None:
    elapsed = {"input": 0.01, "reaction": 0.02, "settle": 0.05, "capture": 0.001, "encode": 0.0}
    (moment,) = moments(
        [performed(KeyPress(["a"]), rects=[[1, 2, 3, 4]], busy=[], settled=True, reason="quiet", elapsed=elapsed)]
    )
    assert moment.rects == ((1, 2, 3, 4),)
    assert (moment.before, moment.frame) == ("f1", "f2")
    assert moment.facts == ("settled: quiet",)
    assert dict(moment.times) == elapsed


def test_what_an_observation_tells_only_where_it_is_so() -> None:
    [moment] = moments([performed(KeyPress(["a"]), settled=True, reason="quiet", unanswered=True, pasted=False)])
    assert moment.facts == ("settled: quiet", "unanswered")


def test_a_failed_action_says_why_and_whether_it_may_have_been_done() -> None:
    error = {"type": "Reconnected", "message": "the connection broke"}
    (moment,) = moments([performed(Type("x"), error=error, unknown=True, after=None)])
    assert moment.error == "Reconnected: the connection broke"
    assert "it may have been done or not" in moment.facts
    assert moment.frame == "f1"


def test_other_moments() -> None:
    events = [
        {"kind": "begin", "t": 0.0, "screen": [640, 480]},
        {"kind": "frame", "t": 0.1, "id": "f1", "cause": "first"},
        {"kind": "note", "t": 0.2, "text": "I click \x1b[31mnow"},
        {
            "kind": "shell",
            "t": 0.3,
            "command": "ls",
            "stdout": "a\n",
            "stderr": "b",
            "exit_code": 2,
            "outcome": "error",
            "seconds": 0.1,
        },
        {"kind": "spend", "t": 0.4, "input": 7, "output": 3, "cost": 0.5},
        {"kind": "refused", "t": 0.5, "reason": "no steps are left"},
        {"kind": "start", "t": 0.6, "argv": ["xterm", "-e", "top"]},
        {"kind": "look", "t": 0.7, "frame": "f3", "seconds": 0.001},
        {"kind": "something_new", "t": 0.8, "what": 5},
        {"kind": "end", "t": 0.9, "cause": None},
    ]
    frame, note, shell, spend, refused, start, look, new = moments(events)
    assert [each.number for each in (frame, note, shell)] == [1, 2, 3]
    assert (frame.lines, frame.frame) == (("The first frame",), "f1")
    assert note.text == "I click [31mnow"
    assert (shell.lines, shell.text, shell.facts) == (("ls",), "a\n\nb", ("error, exit code 2",))
    assert spend.lines == ("7 tokens in, 3 out, cost 0.5",)
    assert refused.error == "no steps are left"
    assert start.lines == ("xterm -e top",)
    assert look.frame == "f3"
    assert (new.kind, new.lines) == ("something_new", ("what: 5",))


def test_elements_that_were_read() -> None:
    read = {"kind": "elements", "t": 1.0, "seconds": 0.1, "query": "find(role='button')", "elements": "- button [e3]"}
    alone, acted = moments([read, performed(LeftClick((1, 1)), elements="~ button [e3]")])
    assert (alone.lines, alone.text) == (("elements find(role='button')",), "- button [e3]")
    assert acted.text == "~ button [e3]"


def test_a_flood_of_text_is_cut() -> None:
    (moment,) = moments([{"kind": "note", "t": 0.0, "text": "x" * 1_000_000}])
    assert len(moment.text) == 2000
