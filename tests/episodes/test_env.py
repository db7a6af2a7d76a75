"""A task as a gymnasium environment: its spaces, when it ends, and many at once over one pool."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st

import deskhand
from deskhand import Desktop, LeftClick, Pool
from deskhand.episodes.environments.gym import DesktopEnv, DesktopVectorEnv
from deskhand.episodes.environments.gym_actions import ACTS, action_of, action_space
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.tasks.task import Grade, TaskLimits, instance_seed
from deskhand.errors import ActionError, BackendError, DesktopLost, OutOfBounds, TaskError
from episodes.dots import SIZE, Dots, Painted, Ticking, painted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.episodes.tasks.context import TaskContext


@pytest.fixture
def env() -> Iterator[DesktopEnv]:
    made = DesktopEnv(Dots(), backend=painted, render_mode="rgb_array")
    yield made
    made.close()


def said(env: DesktopEnv, act: str, **parts: Any) -> dict[str, Any]:
    return {**env.nothing(), "act": ACTS.index(act), **parts}


def target(info: Mapping[str, Any]) -> tuple[int, int]:
    x, y = info["instruction"].removeprefix("Click at ").rstrip(".").split(", ")
    return int(x), int(y)


def test_the_librarys_own_checks_find_nothing() -> None:
    made = gymnasium.make("deskhand/Desktop-v0", task=Dots(), backend=painted, render_mode="rgb_array")
    # Warnings are errors in these tests.
    check_env(made.unwrapped)
    made.close()


def test_it_is_made_by_name() -> None:
    made = gymnasium.make("deskhand/Desktop-v0", task=Dots(), backend=painted)
    picture, info = made.reset(seed=1)
    assert picture.shape == (64, 80, 3)
    assert info["instruction"].startswith("Click at")
    made.close()


def test_same_seed_same_instance_and_first_picture(env: DesktopEnv) -> None:
    first, info = env.reset(seed=5)
    again, same = env.reset(seed=5)
    other, differs = env.reset(seed=6)
    assert np.array_equal(first, again)
    assert info["instruction"] == same["instruction"] != differs["instruction"]
    assert not np.array_equal(first, other)


def test_done_terminates_and_is_worth_the_tasks_score(env: DesktopEnv) -> None:
    _, info = env.reset(seed=5)
    x, y = target(info)
    picture, reward, terminated, truncated, info = env.step(said(env, "left_click", xy=(x, y)))
    assert picture[y, x].tolist() == [255, 255, 255]
    assert (reward, terminated, truncated) == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step(said(env, "done"))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["success"], info["why"]) == (True, "the pixel is [255, 255, 255]")
    with pytest.raises(ActionError, match="reset the environment first"):
        env.step(said(env, "done"))


def test_the_limit_of_steps_truncates_and_what_is_there_is_graded(env: DesktopEnv) -> None:
    _, info = env.reset(seed=5)
    env.step(said(env, "left_click", xy=target(info)))
    ends = [env.step(env.nothing())[1:4] for _ in range(4)]
    assert ends == [(0.0, False, False)] * 3 + [(1.0, False, True)]


def test_the_limit_of_time_truncates() -> None:
    clock = Ticking()
    env = DesktopEnv(Dots(), backend=painted, limits=TaskLimits(steps=100, seconds=50.0), clock=clock)
    env.reset(seed=5)
    assert env.step(env.nothing())[3] is False
    clock.now += 60.0
    _, reward, terminated, truncated, info = env.step(env.nothing())
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)
    env.close()


def test_an_action_that_cannot_be_done_is_told_and_the_episode_goes_on(env: DesktopEnv) -> None:
    env.reset(seed=5)
    for wrong in (LeftClick((1000, 1000)), {**env.nothing(), "act": 99}, {"act": 2}):
        *_, terminated, truncated, info = env.step(wrong)
        assert (terminated, truncated) == (False, False)
        assert info["error"]
    assert env.step(LeftClick((3, 3)))[0][3, 3].tolist() == [255, 255, 255]


def test_pictures_of_another_size_are_pointed_into_in_their_own_pixels() -> None:
    env = DesktopEnv(Dots(), backend=painted, size=(40, 32))
    _, info = env.reset(seed=5)
    x, y = target(info)
    picture, *_ = env.step(said(env, "left_click", xy=(x // 2, y // 2)))
    assert picture.shape == (32, 40, 3)
    assert env.observation_space.contains(picture)
    env.close()


def test_a_lost_desktop_ends_the_episode_and_the_next_one_has_another() -> None:
    made: list[Painted] = []

    def launch(**_options: Any) -> Desktop:
        made.append(Painted())
        return Desktop(made[-1], clock=Ticking())

    env = DesktopEnv(Dots(), backend=launch)
    env.reset(seed=5)

    def die(_events: object) -> None:
        raise DesktopLost("x_server", "it ended")

    made[-1].send = die  # type: ignore[method-assign]
    picture, reward, terminated, truncated, info = env.step(LeftClick((1, 1)))
    assert (reward, terminated, truncated, info["invalid"]) == (0.0, False, True, "desktop_lost")
    assert env.observation_space.contains(picture)
    env.reset(seed=5)
    assert env.step(LeftClick((1, 1)))[3] is False
    env.close()


def test_an_evaluation_that_fails_is_no_score() -> None:
    class Broken(Dots):
        def evaluate(self, context: TaskContext) -> Grade:
            raise KeyError(f"no file in {context.home!r}")

    env = DesktopEnv(Broken(), backend=painted)
    env.reset(seed=5)
    _, reward, terminated, truncated, info = env.step(said(env, "done"))
    assert (reward, terminated, truncated, info["invalid"]) == (0.0, False, True, "evaluator_failed")
    assert "no file" in info["error"]
    env.close()


def test_a_setup_that_fails_is_tried_again_on_a_fresh_desktop() -> None:
    class Shaky(Dots):
        failures = 0

        def setup(self, context: TaskContext) -> None:
            super().setup(context)
            self.failures -= 1
            if self.failures >= 0:
                raise BackendError("not yet")

    task = Shaky()
    task.failures = 2
    env = DesktopEnv(task, backend=painted)
    env.reset(seed=5)
    task.failures = 100
    with pytest.raises(BackendError, match="task dots could not be set up, 3 times: not yet"):
        env.reset(seed=5)
    env.close()


def test_what_it_is_made_of_wrongly_is_named() -> None:
    with pytest.raises(ActionError, match="render_mode"):
        DesktopEnv(Dots(), render_mode="human")
    with pytest.raises(TaskError, match="no-such-task"):
        DesktopEnv("no-such-task")


class TestManyAtOnce:
    def test_calls_run_beside_one_another_and_each_has_a_desktop(self) -> None:
        together = threading.Barrier(3, timeout=60)

        class Meeting(Dots):
            def evaluate(self, context: TaskContext) -> Grade:
                # Passed only when all three are evaluated at once.
                together.wait()
                return super().evaluate(context)

        with Pool(painted, size=3) as pool:
            envs = DesktopVectorEnv(3, task=Meeting(), pool=pool)
            pictures, infos = envs.reset(seed=[1, 2, 3])
            assert pictures.shape == (3, 64, 80, 3)
            assert len(set(infos["instruction"])) == 3
            one = DesktopEnv(Dots()).nothing()
            clicks = {name: np.array([value] * 3) for name, value in one.items() if name != "text"}
            clicks["act"][:] = ACTS.index("left_click")
            clicks["xy"] = np.array([target({"instruction": text}) for text in infos["instruction"]])
            batch = {**clicks, "text": ("", "", "")}
            envs.step(batch)
            clicks["act"][:] = ACTS.index("done")
            _, rewards, terminated, truncated, _ = envs.step(batch)
            assert rewards.tolist() == [1.0] * 3
            assert terminated.all()
            assert not truncated.any()
            # The next step resets, whatever it says.
            _, rewards, terminated, _, infos = envs.step(batch)
            assert rewards.tolist() == [0.0] * 3
            assert not terminated.any()
            assert len(infos["instruction"]) == 3
            envs.close()
            # All are given back.
            with pool.acquire(), pool.acquire(), pool.acquire():
                pass

    def test_an_error_of_one_comes_when_the_others_have_ended_too(self) -> None:
        begun, failed, out = threading.Event(), threading.Event(), threading.Event()
        others: list[bool] = []
        failures: list[str] = []
        doomed = Dots().parameters(random.Random(instance_seed(0, "dots", "", 1)))

        class Half(Dots):
            def setup(self, context: TaskContext) -> None:
                if context.parameters == doomed:
                    # One that has not begun would not be waited for.
                    begun.wait(60)
                    failures.append("once more")
                    if len(failures) == 1 + RULES[Cause.SETUP_FAILED].retries:
                        failed.set()
                    raise BackendError("no")
                begun.set()
                failed.wait(60)
                # Long enough for who would not wait.
                others.append(out.wait(0.5))
                super().setup(context)

        with Pool(painted, size=2) as pool:
            envs = DesktopVectorEnv(2, task=Half(), pool=pool)
            with pytest.raises(BackendError, match="could not be set up"):
                envs.reset(seed=[1, 2])
            out.set()
            envs.close()
        assert others == [False]

    def test_they_are_made_by_name_and_end_their_own_pool(self) -> None:
        before = set(threading.enumerate())
        envs = gymnasium.make_vec("deskhand/Desktop-v0", num_envs=2, task=Dots(), backend=painted)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        envs.reset(seed=1)
        envs.close()
        assert set(threading.enumerate()) <= before

    def test_random_actions_for_a_while(self) -> None:
        envs = gymnasium.make_vec("deskhand/Desktop-v0", num_envs=2, task=Dots(), backend=painted)
        envs.action_space.seed(3)
        envs.reset(seed=1)
        for _ in range(30):
            pictures, rewards, *_ = envs.step(envs.action_space.sample())
            assert pictures.shape == (2, 64, 80, 3)
            assert ((rewards >= 0) & (rewards <= 1)).all()
        envs.close()


def test_every_sample_of_the_space_is_an_action() -> None:
    space = action_space(SIZE)
    space.seed(7)
    kinds = set()
    for _ in range(500):
        found = action_of(space.sample(), lambda xy: (int(xy[0]), int(xy[1])))
        kinds |= {"done"} if found is None else {type(action).__name__ for action in found}
    assert {"done", "LeftClick", "Drag", "Scroll", "KeyPress", "Type", "Wait", "Move", "TripleClick"} <= kinds


@given(st.integers(-200, 200), st.integers(-200, 200))
def test_a_point_out_of_the_picture_is_never_moved_into_it(x: int, y: int) -> None:
    view = deskhand.Viewport(deskhand.Size(*SIZE), deskhand.Size(*SIZE))
    click = {"act": ACTS.index("left_click"), "xy": (x, y), "modifiers": [0, 0, 0, 0]}
    if 0 <= x < SIZE[0] and 0 <= y < SIZE[1]:
        assert action_of(click, view.to_screen) == (LeftClick((x, y)),)
    else:
        with pytest.raises(OutOfBounds):
            action_of(click, view.to_screen)
