"""Episodes as others read them: OSWorld's folders, and ATIF documents."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from PIL import Image

from deskhand import KeyPress, LeftClick, Type
from deskhand._core.geometry import Size, Viewport
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.record.export import export
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import open_run
from deskhand.errors import EpisodeError
from deskhand.providers import osworld
from episodes.recorded import INSTRUCTION, SIZE, cli, make_run, record_attempt

if TYPE_CHECKING:
    from deskhand.episodes.record.export import Form

ONE, TWO = Key("count", "", 0, 0), Key("count", "", 1, 0)
SCHEMA = json.loads((Path(__file__).parent / "atif-1.8.json").read_text())


def exported(run: Path, form: Form, target: Path, *episodes: str) -> list[Path]:
    with open_run(run) as opened:
        return export(opened, form, target, episodes=episodes)


def same_picture(png: Path, run: Path, frame: str) -> bool:
    with FrameStore(run / "frames") as store:
        return np.array_equal(np.asarray(Image.open(io.BytesIO(png.read_bytes()))), store.array(frame))


def performs(run: Path, key: Key) -> list[dict[str, Any]]:
    with open_run(run) as opened:
        return [dict(event) for event in opened.recording(key).events if event["kind"] == "perform"]


# --- OSWorld ---


def osworld_results(results: Path, space: str, observation: str, model: str) -> dict[str, dict[str, float]]:
    """As OSWorld's own `show_result.py` finds them."""
    found: dict[str, dict[str, float]] = {}
    for domain in (results / space / observation / model).iterdir():
        for example in domain.iterdir():
            if (example / "result.txt").exists():
                found.setdefault(domain.name, {})[example.name] = float((example / "result.txt").read_text())
    return found


def test_osworld_finds_its_results_and_steps(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "out"
    make_run(run, ONE)
    make_run(run, TWO, score=0.5, success=False, cause="agent_budget")
    paths = exported(run, "osworld", target)
    assert osworld_results(target, "pyautogui", "screenshot", "me") == {"text": {str(ONE): 1.0, str(TWO): 0.5}}
    first, second = paths
    assert first == target / "pyautogui" / "screenshot" / "me" / "text" / str(ONE)
    steps = [json.loads(line) for line in (first / "traj.jsonl").read_text().splitlines()]
    fields = {"step_num", "action_timestamp", "action", "response", "reward", "done", "info", "screenshot_file"}
    assert all(set(step) == fields for step in steps)
    assert [step["step_num"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(re.fullmatch(r"\d{8}@\d{12}", step["action_timestamp"]) for step in steps)
    assert [step["done"] for step in steps] == [False] * (len(steps) - 1) + [True]
    click, typed, saved, shell, refused, done = steps
    assert (click["response"], saved["response"], done["response"]) == ("I see a button.", "Now I save.", "done")
    assert shell["action"] == {"type": "shell", "command": "echo saved; echo wrong >&2; exit 3"}
    assert refused["info"] == {"error": "PolicyDenied: the policy denies perform: enough"}
    assert (done["action"], done["info"]) == ("DONE", {"done": True})
    # Each picture is what the screen showed after the step.
    recorded = performs(run, ONE)
    for step, event in zip((click, typed, saved), recorded, strict=False):
        assert step["screenshot_file"].startswith(f"step_{step['step_num']}_")
        assert same_picture(first / step["screenshot_file"], run, event["after"])
    assert same_picture(first / "step_0.png", run, recorded[0]["before"])
    # And the actions do what was done.
    viewport = Viewport(Size(*SIZE), Size(*SIZE))
    assert osworld.decode(click["action"], viewport).steps == (LeftClick((5, 6)),)
    assert osworld.decode(saved["action"], viewport).steps == (KeyPress(["ctrl", "s"]),)
    assert osworld.decode(typed["action"], viewport).steps == (LeftClick((7, 8)), Type("naïve ☕"))
    # Whom a limit has ended has not said that he was done.
    assert not any(json.loads(line)["done"] for line in (second / "traj.jsonl").read_text().splitlines())


def test_an_invalid_episode_is_one_that_osworld_still_has_to_do(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "out"
    make_run(run, ONE, valid=False, score=None, success=False, cause="desktop_lost")
    (path,) = exported(run, "osworld", target)
    assert not (path / "result.txt").exists()
    assert (path / "traj.jsonl").exists()


def test_what_a_name_may_hold_stays_in_the_folder(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "out"
    make_run(run, ONE, agent="../../my model: v1", tags=[])
    (path,) = exported(run, "osworld", target)
    assert path == target / "pyautogui" / "screenshot" / "_.._my_model_v1" / "deskhand" / str(ONE)


# --- ATIF ---


def check_atif(path: Path) -> dict[str, Any]:
    """What its schema and the rules beside it say of a document."""
    document: dict[str, Any] = json.loads((path / "trajectory.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    for number, step in enumerate(document["steps"], 1):
        assert step["step_id"] == number
        if step["source"] != "agent":
            assert not {"tool_calls", "metrics", "reasoning_content", "llm_call_count"} & set(step)
        if "timestamp" in step:
            assert datetime.fromisoformat(step["timestamp"]).tzinfo is not None
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        assert len(calls) == len(step.get("tool_calls", []))
        for result in step.get("observation", {}).get("results", []):
            assert result["source_call_id"] in calls
            for part in result["content"] or []:
                check_part(part, path)
        for part in step["message"] if isinstance(step["message"], list) else []:
            check_part(part, path)
    return document


def check_part(part: dict[str, Any], path: Path) -> None:
    if part["type"] == "text":
        assert set(part) == {"type", "text"}
    else:
        assert set(part) == {"type", "source"}
        assert (path / part["source"]["path"]).read_bytes().startswith(b"\x89PNG")


def test_an_atif_document(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "out"
    make_run(run, ONE)
    (path,) = exported(run, "atif", target)
    assert path == target / str(ONE)
    document = check_atif(path)
    assert document["schema_version"] == "ATIF-v1.8"
    assert document["agent"]["name"] == "me"
    assert (document["extra"]["score"], document["extra"]["task"]) == (1.0, "count")
    totals = document["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_completion_tokens"], totals["total_cost_usd"]) == (
        100,
        20,
        0.25,
    )
    assert totals["total_steps"] == len(document["steps"]) == 8
    told, click, typed, saved, shell, look, refused, answer = document["steps"]
    recorded = performs(run, ONE)
    assert told["source"] == "user"
    assert told["message"][0]["text"] == INSTRUCTION
    assert same_picture(path / told["message"][1]["source"]["path"], run, recorded[0]["before"])
    assert click["message"] == "I see a button."
    assert click["metrics"] == {"prompt_tokens": 100, "completion_tokens": 20, "cost_usd": 0.25}
    assert click["llm_call_count"] == 1
    (call,) = click["tool_calls"]
    assert (call["function_name"], call["arguments"]["xy"]) == ("left_mouse_click", [5, 6])
    image = click["observation"]["results"][0]["content"][-1]["source"]["path"]
    assert same_picture(path / image, run, recorded[0]["after"])
    assert [call["function_name"] for call in typed["tool_calls"]] == ["left_mouse_click", "type"]
    assert saved["message"] == "Now I save."
    assert shell["tool_calls"][0]["arguments"] == {"command": "echo saved; echo wrong >&2; exit 3"}
    assert [part["text"] for part in shell["observation"]["results"][0]["content"]] == ["saved\n", "wrong\n"]
    assert shell["observation"]["results"][0]["extra"]["exit_code"] == 3
    assert look["tool_calls"][0]["function_name"] == "screenshot"
    assert "PolicyDenied" in refused["observation"]["results"][0]["content"][0]["text"]
    assert answer["message"] == "done"
    assert "tool_calls" not in answer


def test_the_schema_refuses_what_is_wrong() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate({"schema_version": "ATIF-v1.8", "steps": []})


def test_an_attempt_that_did_not_end_and_one_without_frames(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE, secret=True)
    make_run(run, TWO)
    killed = run / "ep" / str(TWO) / "attempt-1"
    (killed / "result.json").unlink()
    lines = (killed / "events.jsonl").read_bytes().splitlines(keepends=True)
    (killed / "events.jsonl").write_bytes(b"".join(lines[:6]) + lines[6][:20])
    for path in exported(run, "atif", tmp_path / "atif"):
        check_atif(path)
    for path in exported(run, "osworld", tmp_path / "osworld"):
        steps = [json.loads(line) for line in (path / "traj.jsonl").read_text().splitlines()]
        assert all(step["screenshot_file"] is None or (path / step["screenshot_file"]).exists() for step in steps)
        assert path.name != str(ONE) or steps[-1]["screenshot_file"] is None


# --- which, and where ---


def test_of_each_episode_the_attempt_that_counts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE, score=0.0)
    with FrameStore(run / "frames") as store:
        record_attempt(run, store, ONE, 2, score=0.25)
    (path,) = exported(run, "osworld", tmp_path / "out")
    assert (path / "result.txt").read_text() == "0.25\n"


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "out"
    make_run(run, ONE, TWO)
    assert len(exported(run, "atif", target, str(TWO))) == 1
    with pytest.raises(EpisodeError, match="is there already"):
        exported(run, "atif", target, str(TWO))
    assert sorted(path.name for path in target.iterdir()) == [str(TWO)]
    with pytest.raises(EpisodeError, match=r"has no attempt of none\.s0\.r0"):
        exported(run, "atif", target, "none.s0.r0")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "manifest.json").write_text((run / "manifest.json").read_text())
    with pytest.raises(EpisodeError, match="no episode to export"):
        exported(tmp_path / "empty", "atif", target)
    with pytest.raises(EpisodeError, match="there is no format"):
        exported(run, "lerobot", target)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path) -> None:
    make_run(tmp_path / "run", ONE, TWO)
    arguments = ["export", str(tmp_path / "run"), "--format", "atif", "--to", str(tmp_path / "out")]
    code, said = cli(*arguments, str(TWO), "--json")
    assert code == 0
    assert json.loads(said) == [str(tmp_path / "out" / str(TWO))]
    code, said = cli(*arguments)
    assert (code, "is there already" in said) == (1, True)
    assert cli(*arguments[:-1], str(tmp_path / "more")) == (0, f"2 episodes written to {tmp_path / 'more'}\n")
