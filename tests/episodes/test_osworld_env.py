"""An agent and a runner written for OSWorld's environment work here unchanged."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from deskhand.episodes.environments.osworld import OSWorldEnv
from deskhand.errors import ActionError, TaskError, UnsupportedAction
from episodes.dots import Dots, painted

if TYPE_CHECKING:
    from pathlib import Path


class Pointing:
    """An agent with the two methods that OSWorld's runner calls."""

    def __init__(self, space: str) -> None:
        self._space = space
        self.seen: list[dict[str, Any]] = []

    def reset(self) -> None:
        self.seen.clear()

    def predict(self, instruction: str, obs: dict[str, Any]) -> tuple[str, list[Any]]:
        self.seen.append(obs)
        if len(self.seen) > 1:
            return "I am done.", ["DONE"]
        x, y = (int(each) for each in instruction.removeprefix("Click at ").rstrip(".").split(", "))
        if self._space == "pyautogui":
            return "I click.", [f"import pyautogui\npyautogui.click({x}, {y})"]
        return "I click.", [{"action_type": "CLICK", "parameters": {"x": x, "y": y}}]


def run_single_example(agent: Pointing, env: Any, example: dict[str, Any], max_steps: int, results: Path) -> float:
    """As OSWorld's runner does it, without its sleeps."""
    agent.reset()
    env.reset(task_config=example)
    obs = env._get_obs()
    done, step = False, 0
    while not done and step < max_steps:
        response, actions = agent.predict(env.instruction, obs)
        for action in actions:
            obs, reward, done, info = env.step(action, 2.0)
            name = f"step_{step + 1}.png"
            (results / name).write_bytes(obs["screenshot"])
            with (results / "traj.jsonl").open("a") as file:
                line = {"step_num": step + 1, "action": action, "response": response, "reward": reward, "done": done}
                file.write(json.dumps({**line, "info": info, "screenshot_file": name}) + "\n")
            if done:
                break
        step += 1
    result: float = env.evaluate()
    (results / "result.txt").write_text(f"{result}\n")
    return result


@pytest.mark.parametrize("space", ["pyautogui", "computer_13"])
def test_osworlds_own_loop_succeeds(space: str, tmp_path: Path) -> None:
    agent = Pointing(space)
    with OSWorldEnv(action_space=space, backend=painted) as env:
        assert run_single_example(agent, env, {"id": "episodes.dots:Dots", "seed": 3}, 5, tmp_path) == 1.0
        assert [len(agent.seen), len(env.action_history)] == [2, 2]
    lines = [json.loads(line) for line in (tmp_path / "traj.jsonl").read_text().splitlines()]
    assert [line["done"] for line in lines] == [False, True]
    assert lines[1]["info"] == {"done": True}
    assert Image.open(io.BytesIO((tmp_path / "step_1.png").read_bytes())).size == (80, 64)


def test_an_observation_has_what_osworlds_has() -> None:
    with OSWorldEnv(backend=painted, screen_size=(40, 32)) as env:
        seen = env.reset(task_config=Dots(), seed=3)
        assert set(seen) == {"screenshot", "accessibility_tree", "terminal", "instruction"}
        assert Image.open(io.BytesIO(seen["screenshot"])).size == (40, 32)
        assert seen["instruction"] == env.instruction
        assert Image.open(io.BytesIO(env.render())).size == (40, 32)


class Bare(Dots):
    screen = (640, 480)

    def setup(self, context: Any) -> None:
        """Nothing: on a desktop of its own."""


def test_an_observation_has_the_accessibility_tree_where_it_is_required() -> None:
    with OSWorldEnv(require_a11y_tree=True) as env:
        trees = [env.reset(task_config=Bare(), seed=3), env._get_obs(), env.step("WAIT")[0], env.step("fly()")[0]]
    for seen in trees:
        assert ET.fromstring(seen["accessibility_tree"]).tag == "desktop-frame"
    with OSWorldEnv(backend=painted, require_a11y_tree=True) as env, pytest.raises(UnsupportedAction, match="elements"):
        env.reset(task_config=Dots(), seed=3)


def test_seeds_are_used() -> None:
    with OSWorldEnv(backend=painted) as env:
        told = [env.reset(task_config=Dots(), seed=seed)["instruction"] for seed in (1, 2, 1)]
        assert told[0] == told[2] != told[1]


def test_the_same_again_is_the_same_instance() -> None:
    with OSWorldEnv(backend=painted) as env:
        told = [env.reset(task_config=Dots(), seed=5)["instruction"], env.reset()["instruction"]]
        told += [env.reset(seed=6)["instruction"], env.reset()["instruction"]]
    assert told[0] == told[1] != told[2] == told[3]


def test_giving_up_is_no_success_and_going_on_after_it_is() -> None:
    with OSWorldEnv(backend=painted) as env:
        env.reset(task_config=Dots(), seed=3)
        x, y = (int(each) for each in (env.instruction or "").removeprefix("Click at ").rstrip(".").split(", "))
        env.step({"action_type": "CLICK", "parameters": {"x": x, "y": y}})
        assert env.step("FAIL")[2:] == (True, {"fail": True})
        assert env.evaluate() == 0.0
        assert env.step("WAIT")[2] is False
        assert env.evaluate() == 1.0


def test_an_action_that_cannot_be_read_is_told_to_the_agent() -> None:
    with OSWorldEnv(action_space="pyautogui", backend=painted) as env:
        env.reset(task_config=Dots(), seed=3)
        seen, _, done, info = env.step("import os; os.system('true')")
        assert (done, info) == (False, {})
        assert seen["error"]
        assert seen["screenshot"]


def test_what_is_wrong_is_named() -> None:
    for options in ({"action_space": "mouse"}, {"require_terminal": True}):
        with pytest.raises(ActionError):
            OSWorldEnv(**options)  # type: ignore[arg-type]
    with OSWorldEnv(backend=painted) as env:
        for call in (env.evaluate, env._get_obs, env.reset, lambda: env.step("WAIT")):
            with pytest.raises(ActionError):
                call()
        for config in ({"id": "no-such-task"}, {"snapshot": "x"}, "no-such-task"):
            with pytest.raises(TaskError):
                env.reset(task_config=config)
