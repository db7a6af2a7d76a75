"""A run whose desktops are watched while it plays."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deskhand import Move
from deskhand.episodes.record.reader import open_run
from faults.helpers import until
from watch.clients import enter, socket, turn

NUMBER = "episodes.plays_here:Number"
TESTS = Path(__file__).parents[1]
LIMIT = 60.0


class Printed:
    """A server of which there is only the link that it printed."""

    def __init__(self, link: str) -> None:
        self.url = link.partition("#")[0]
        self._link = link

    def link(self, *scopes: Any, **options: Any) -> str:
        del scopes, options
        return self._link


def moves(episode: Any) -> None:
    """An agent that acts, and ends when the test has seen it."""
    episode.desktop.perform(Move((33, 44)), settle=False)
    until(Path(os.environ["SEEN"]).exists, LIMIT, "the test to have seen the desktops")


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_its_desktops_are_seen_at_work(tmp_path: Path, engine: str) -> None:
    """Those of Ray's workers by a port of this machine that leads to their page."""
    out, seen = tmp_path / "run", tmp_path / "seen"
    agent = "episodes.test_watched_run:moves"
    words = f"run {NUMBER} --watch --engine {engine} --agent {agent} --seeds 2 --desktops 2".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "deskhand", *words, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "SEEN": str(seen)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        link = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/#\S+", line)))
        server: Any = Printed(link)
        with socket(server, enter(server), "/grid") as made:
            titles: dict[str, str] = {}
            while titles != {"number.s0.r0": "move 33, 44", "number.s1.r0": "move 33, 44"}:
                titles = {
                    each["name"]: (each["latest"] or {}).get("title", "") for each in turn(made).get("desktops", [])
                }
            seen.touch()
            # The run ends, though somebody watches.
            _, said = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait(LIMIT)
    assert process.returncode == 0, said
    assert "2 of 2 episodes are done" in said
    with open_run(out) as run:
        results = run.results()
    assert [(result["valid"], result["actions"]) for result in results] == [(True, 1), (True, 1)]
