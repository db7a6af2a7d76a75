"""An episode on a desktop under its owner's policy: the agent is judged, the task is not, and steps are counted as ever."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import ActionClass, ClassPolicy, Guard, KeyPress, LeftClick, PolicyDenied, Type, UnsupportedAction
from deskhand.desktop.access import keep
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from episodes.plays import KEY, QUICK, Kept, Places, Press

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand import Context, Decision, Desktop
    from deskhand.episodes.play.episode import Episode
    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.policy.rules import JudgedAction


class Asked:
    """A policy that keeps what it was asked about."""

    def __init__(self, policy: ClassPolicy) -> None:
        self.types: list[str] = []
        self._policy = policy

    def before(self, action: JudgedAction, context: Context) -> Decision:
        self.types.append(action.type)
        return self._policy.before(action, context)


class Guarded(Places):
    """Desktops whose owner has put a guard into them."""

    def __init__(self, policy: Asked) -> None:
        super().__init__()
        self._policy = policy

    @contextlib.contextmanager
    def acquire(self, timeout: float | None = None) -> Iterator[Desktop]:
        with super().acquire(timeout) as desktop:
            yield keep(desktop, Guard(policy=self._policy))


class Busy(Press):
    """A task that does in its setup and its evaluation what its agent may not."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def setup(self, context: TaskContext) -> None:
        super().setup(context)
        self._act(context)

    def evaluate(self, context: TaskContext) -> Any:
        self._act(context)
        return super().evaluate(context)

    def _act(self, context: TaskContext) -> None:
        context.desktop.perform(KeyPress(["Escape"]), settle=QUICK)
        context.desktop.clipboard.write("ready")
        self.said.append(context.desktop.host.run("echo ready").stdout)


EVERYTHING = ClassPolicy(allow=set(ActionClass) - {ActionClass.SAFETY_CHECK})
NOTHING = ClassPolicy(allow=(), deny=ActionClass)


def played(agent: Any, policy: Asked, task: Press | None = None) -> dict[str, Any]:
    return attempt(task or Press(), KEY, Guarded(policy), agent, Kept())


def test_the_setup_and_the_evaluation_of_a_task_are_not_judged() -> None:
    task, policy = Busy(), Asked(NOTHING)
    result = played(lambda _: None, policy, task)
    assert (result["cause"], result["valid"], result["score"]) == (None, True, 0.0)
    # An evaluation that looks only is made twice, to compare.
    assert set(task.said) == {"ready\n"}
    assert len(task.said) >= 2
    assert policy.types == []


def test_the_agent_of_the_same_task_is_judged() -> None:
    def agent(episode: Episode) -> None:
        for act in (lambda: episode.desktop.host.run("ls"), lambda: episode.desktop.clipboard.write("mine")):
            with pytest.raises(PolicyDenied):
                act()
        episode.desktop.perform(LeftClick((1, 1)), settle=QUICK)

    policy = Asked(NOTHING)
    result = played(agent, policy, Busy())
    assert (result["cause"], result["valid"], result["score"]) == (Cause.POLICY_DENIED, True, 0.0)
    assert policy.types == ["host_shell", "set_clipboard", "left_mouse_click"]


def test_the_oracle_is_judged_as_an_agent_is() -> None:
    allowed, denied = Asked(EVERYTHING), Asked(NOTHING)
    assert played("oracle", allowed)["success"] is True
    assert allowed.types == ["left_mouse_click"]
    assert played("oracle", denied)["cause"] == Cause.POLICY_DENIED


def test_only_input_commands_and_programs_are_steps() -> None:
    """What else goes through the gate costs no step: the clipboard, windows, health, releasing."""

    def agent(episode: Episode) -> None:
        desktop = episode.desktop
        for free in (
            lambda: desktop.clipboard.write("a"),
            desktop.clipboard.read,
            desktop.windows.list,
            desktop.health,
            desktop.release,
        ):
            with contextlib.suppress(UnsupportedAction):
                free()
        assert episode.steps_left == episode.limits.steps
        desktop.screenshot()
        assert episode.steps_left == episode.limits.steps
        desktop.perform(LeftClick((1, 1)), Type("ab"), settle=QUICK)
        desktop.host.run("true")
        assert episode.steps_left == episode.limits.steps - 2

    result = played(agent, Asked(EVERYTHING))
    assert (result["cause"], result["detail"]) == (None, "")
    assert (result["steps"], result["actions"], result["looks"]) == (2, 3, 1)
