"""An episode in which a person takes control: what counts as the agent's, what is recorded, and how it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand import DesktopHeld, LeftClick, Pool, Type
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.report.timeline import moments
from episodes.dots import Dots, painted

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.episodes.play.episode import Agent, Episode

KEY = Key("dots", "", 0, 0)


def played(folder: Path, agent: Agent) -> tuple[dict[str, Any], Recording]:
    with Pool(painted, size=1) as pool, FrameStore(folder / "frames") as frames:
        recorder = Recorder(folder / "ep" / str(KEY) / "attempt-1", frames)
        result = attempt(Dots(), KEY, pool, agent, recorder)
        return result, Recording.open(recorder.directory, frames)


def helped(episode: Episode) -> str:
    """A person clicks for the agent, who has asked for it."""
    x, y = (int(each) for each in episode.instruction.removeprefix("Click at ").rstrip(".").split(", "))
    episode.desktop.hand_over("a CAPTCHA")
    with episode.desktop.control.take("Ada") as hold:
        with pytest.raises(DesktopHeld):
            episode.desktop.perform(LeftClick((1, 1)))
        hold.desktop.perform(LeftClick((x, y)))
        hold.release("I clicked")
    with episode.desktop.control.take("Ada", private=True) as hold:
        hold.desktop.perform(Type("hunter2"))
        with pytest.raises(DesktopHeld):
            episode.desktop.screenshot()
    seen = episode.desktop.perform()
    assert len(seen.notes) == 2
    return "done"


def test_a_persons_part_is_recorded_and_is_no_step_of_the_agents(tmp_path: Path) -> None:
    result, recording = played(tmp_path, helped)
    assert (result["success"], result["valid"]) == (True, True)
    # The call that was refused.
    assert (result["steps"], result["actions"]) == (1, 1)
    events = [event for event in recording.events if event["kind"] in {"control", "perform", "screenshot", "look"}]
    changes = [(event["change"], event.get("by"), event.get("text")) for event in events if event["kind"] == "control"]
    assert changes == [
        ("ask", None, "a CAPTCHA"),
        ("take", "Ada", None),
        ("release", "Ada", "I clicked"),
        ("take", "Ada", None),
        ("release", "Ada", None),
    ]
    assert [event.get("private") for event in events if event["kind"] == "control"] == [None] * 3 + [True] * 2
    refused, by_hand, last = [event for event in events if event["kind"] == "perform"]
    assert (refused["error"]["type"], refused["unknown"], refused["before"]) == (
        "DesktopHeld",
        False,
        refused["after"],
    )
    assert by_hand["by"] == "Ada"
    assert by_hand["rects"]
    assert "by" not in last
    assert last["notes"][0].endswith("and says: I clicked")
    assert "hunter2" not in (recording.directory / "events.jsonl").read_text()


def test_it_reads_as_it_happened(tmp_path: Path) -> None:
    _, recording = played(tmp_path, helped)
    found = moments(recording.events)
    told = [moment.lines[0] for moment in found if moment.kind == "control"]
    assert told == [
        "The agent asks for help",
        "Ada takes control",
        "Ada hands back",
        "Ada takes control privately",
        "Ada hands back privately",
    ]
    assert [moment.text for moment in found if moment.kind == "control"][:3] == ["a CAPTCHA", "", "I clicked"]
    _, by_hand, last = [moment for moment in found if moment.kind == "perform"]
    assert by_hand.facts[0] == "by Ada"
    assert any(fact.endswith("and says: I clicked") for fact in last.facts)


def test_an_agent_that_gives_up_at_a_hold_has_failed_by_itself(tmp_path: Path) -> None:
    def stubborn(episode: Episode) -> None:
        episode.desktop.control.take("Ada")
        episode.desktop.perform(LeftClick((1, 1)))

    result, _ = played(tmp_path, stubborn)
    assert (result["cause"], result["valid"]) == ("agent_error", True)
    assert "Ada has had control" in result["detail"]
