"""A study of AgentLab's with our tasks: an agent that knows the task, and one that does nothing. AgentLab needs Python 3.12.

    PYTHONPATH=python:tests AGENTLAB/bin/python -m episodes.agentlab_study [--osworld CHECKOUT]

plays them with the runner of AgentLab, two at a time, and prints a table of its results: for a task of ours on local desktops
and, with a checkout of OSWorld, for one of its tasks in containers of `deskhand/osworld`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentlab.benchmarks.osworld import OSWorldActionSet
from agentlab.experiments.launch_exp import run_experiments
from agentlab.experiments.loop import AbstractAgentArgs, ExpArgs, ExpResult
from browsergym.experiments.agent import Agent

from deskhand.episodes.environments.agentlab import benchmark

NUMBER = "episodes.plays_here:Number"
SEEDS = 3
# A task of OSWorld that cannot be done.
IMPOSSIBLE = "os/b3d4a89c"


class Scripted(Agent):
    """Says a list of actions, of which the first ones may name the number of the instruction."""

    def __init__(self, actions: list[str]) -> None:
        self.action_set = OSWorldActionSet("computer_13")
        self.seen: list[Any] = []
        self._actions = list(actions)

    def obs_preprocessor(self, obs: dict[str, Any]) -> dict[str, Any]:
        return obs

    def get_action(self, obs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        numbers = [*re.findall(r"\d+", obs["goal_object"][0]["text"]), ""]
        return self._actions.pop(0).replace("NUMBER", numbers[0]), {"think": obs["last_action_error"]}


@dataclass
class ScriptedArgs(AbstractAgentArgs):
    actions: tuple[str, ...] = ()

    def make_agent(self) -> Scripted:
        return Scripted(list(self.actions))


AGENTS = {
    "oracle": ("typing(text='echo NUMBER > number.txt\\n')", "wait()", "done()"),
    "nothing": ("done()",),
    # What cannot be done is told, and the episode goes on to its last step.
    "lost": ("click(x=99999, y=1)", "no_such(x=1)", "this is no call", "wait()", "wait()"),
}


MISTAKES = 3
CANNOT_BE_DONE = {"says so": ("fail()",), "does not say so": ("done()",)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osworld", help="a checkout of OSWorld")
    given = parser.parse_args()
    # AgentLab counts tokens by a table that litellm, which it needs, brings along: without a network.
    tables = Path(str(importlib.util.find_spec("litellm").origin)).parent / "litellm_core_utils/tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    played = [
        (agent, args, agent == "oracle")
        for agent in AGENTS
        for args in benchmark(NUMBER, seeds=SEEDS, require_a11y_tree=True).env_args_list
    ]
    if given.osworld:
        found = benchmark(
            f"osworld:{given.osworld}/{IMPOSSIBLE}*", backend="docker", image="deskhand/osworld"
        ).env_args_list
        played += [(agent, args, agent == "says so") for agent in CANNOT_BE_DONE for args in found]
    root = Path(tempfile.mkdtemp(prefix="agentlab-"))
    actions = {**AGENTS, **CANNOT_BE_DONE}
    experiments = [
        ExpArgs(ScriptedArgs(agent_name=agent, actions=actions[agent]), args, enable_debug=False)
        for agent, args, _ in played
    ]
    for each in experiments:
        each.prepare(root)
    run_experiments(2, experiments, root, parallel_backend="joblib")
    print(
        "| task | agent | instance | AgentLab's reward | terminated | truncated | steps |\n|---|---|---:|---:|---|---|---:|"
    )
    wrong = []
    for each, (agent, args, right) in zip(experiments, played, strict=True):
        result = ExpResult(each.exp_dir)
        found = result.summary_info
        print(
            f"| {IMPOSSIBLE if args.task.startswith('osworld') else args.task} | {agent} | {args.task_seed} "
            f"| {found['cum_reward']:g} | {found['terminated']} | {found['truncated']} | {found['n_steps']} |"
        )
        told = [step.obs["last_action_error"] for step in result.steps_info if step.obs is not None]
        if found["cum_reward"] != right or found["err_msg"] or (agent == "lost" and sum(map(bool, told)) != MISTAKES):
            wrong.append(f"{agent}: {found['err_msg'] or told}")
    versions = ", ".join(f"{each} {importlib.metadata.version(each)}" for each in ("agentlab", "browsergym"))
    print(f"\n{versions}, Python {sys.version.split()[0]}.")
    if wrong:
        sys.exit(f"otherwise than expected: {wrong}")


if __name__ == "__main__":
    main()
