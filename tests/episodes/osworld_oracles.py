"""Oracles for OSWorld's tasks that download nothing: an agent that acts through the desktop by what it knows of each task.

    PYTHONPATH=tests python -m episodes.osworld_oracles CHECKOUT [--backend docker] [--desktops 2] [TASK...]

plays them and an agent that does nothing, has upstream's code evaluate both, and prints a table. `play` is an agent for
`deskhand run --agent episodes.osworld_oracles:play`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand import KeyPress, Type
from deskhand.episodes.record.reader import open_run
from deskhand.episodes.tasks.suite._acting import find_window, wait_for_window, wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand import Desktop
    from deskhand.episodes.play.episode import Episode

INFEASIBLE = (
    "chrome/3720f614", "chrome/480bcfea", "chrome/ae78f875", "gimp/5ca86c6f", "gimp/e19bd559", "gimp/fbb548ca", "os/4783cc41",
    "os/b3d4a89c", "os/c288e301", "os/fe41f596", "vlc/7882ed6e", "vlc/cb130f0d",
)  # fmt: skip
"""The tasks that cannot be done, by domain and the beginning of the id: right is to say so."""

_DONE = "oracle: done"


def _terminal(*commands: str) -> Callable[[Desktop], None]:
    """Type commands into a terminal, whose title then says that they are done."""

    def act(desktop: Desktop) -> None:
        desktop.start(["xterm", "-T", "oracle", "-e", "bash", "--norc"])
        for command in (*commands, f"printf '\\e]2;%s\\a' '{_DONE}'; sleep 100"):
            desktop.perform(Type(command), KeyPress(("Return",)))
        wait_for_window(desktop, _DONE)

    return act


def _address(desktop: Desktop, address: str) -> None:
    desktop.perform(KeyPress(("ctrl", "t")), KeyPress(("ctrl", "l")), Type(address), KeyPress(("Return",)))


def _do_not_track(desktop: Desktop) -> None:
    _address(desktop, "chrome://settings/cookies")
    desktop.find(name=re.compile("Do Not Track"), role="button").click(timeout=30.0)
    desktop.find(role="button", name="Confirm").click(timeout=30.0)


def _bing(desktop: Desktop) -> None:
    _address(desktop, "chrome://settings/searchEngines")
    desktop.find(role="button", name="More actions for Microsoft Bing").click(timeout=30.0)
    desktop.find(role="menuitem", name=re.compile("default", re.IGNORECASE)).click(timeout=30.0)


def _save_every_three_minutes(desktop: Desktop) -> None:
    # The windows that a new LibreOffice shows first; which of them it has depends on its version.
    while (shown := find_window(desktop, "Select a Template") or find_window(desktop, "Tip of the Day")) is not None:
        wait_for_window(desktop, shown.title)
        desktop.perform(KeyPress(("Escape",)))
        wait_until_gone(desktop, shown)
    desktop.perform(KeyPress(("alt", "F12")))
    wait_for_window(desktop, "Options")
    dialog = desktop.find(role="dialog")
    dialog.find(role="cell", name="Load/Save").click(timeout=30.0)
    desktop.perform(KeyPress(("Right",)), KeyPress(("Down",)))
    dialog.find(role="checkbox", name=re.compile("AutoRecovery")).check(timeout=30.0)
    dialog.find(role="spinbutton").click(timeout=30.0)
    desktop.perform(KeyPress(("ctrl", "a")), Type("3"), KeyPress(("Tab",)))
    dialog.find(role="button", name="OK").click(timeout=30.0)


def _left_panel(desktop: Desktop) -> None:
    """The keys with which the set-up took it away, which give it back."""
    keys = ["F10", "Right", "Right", *["Down"] * 11, "Return"]
    desktop.perform(*(KeyPress((key,)) for key in keys))


def _nothing(desktop: Desktop) -> None:
    """A new browser writes the setting that the evaluator looks for."""
    del desktop


ORACLES: dict[str, Callable[[Desktop], None]] = {
    "chrome/030eeff7": _do_not_track,
    "chrome/99146c54": _nothing,
    "chrome/bb5e4c0d": _bing,
    "libreoffice_impress/2cd43775": _save_every_three_minutes,
    "libreoffice_impress/ef9d12bd": _left_panel,
    "multi_apps/48d05431": _terminal("echo '# >>> conda initialize >>>' >> ~/.bashrc"),
    "multi_apps/f8369178": _terminal("gsettings set org.gnome.desktop.interface gtk-theme Orchis"),
    "os/3ce045a0": _terminal("gsettings set org.gnome.desktop.interface text-scaling-factor 1.25"),
    "os/a4d98375": _terminal("gsettings set org.gnome.desktop.screensaver lock-enabled true"),
}


def play(episode: Episode) -> str:
    """Do the episode's task; the answer of one that cannot be done ends with FAIL."""
    name = episode._key.task
    for known in INFEASIBLE:
        if known.partition("/")[2] in name:
            return "It cannot be done.\nFAIL"
    for known, act in ORACLES.items():
        if known.partition("/")[2] in name:
            act(episode.desktop)
            return "It is done."
    raise LookupError(f"there is no oracle for {name}")


# --- the table ---

HEAD = """# Tasks of OSWorld that download nothing

`PYTHONPATH=tests python -m episodes.osworld_oracles CHECKOUT` wrote this: the scores that OSWorld's own code gives to what an
oracle did through the desktop, and to nothing done."""
SOLVED_BY_NOTHING = ("chrome/99146c54",)
"""Whose evaluator looks for a setting that a new browser writes."""


def results(
    known: Sequence[str], checkout: str, agent: str, options: Sequence[str], out: Path
) -> dict[str, Mapping[str, Any]]:
    """Play tasks, and what came of each."""
    names = [f"osworld:{checkout}/{each}*" for each in known]
    command = [sys.executable, "-m", "deskhand", "run", *names, "--agent", agent, "--out", str(out), *options]
    # The agent is a function of this file.
    places = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    ended = subprocess.run(command, stdout=2, env=env, check=False)
    if ended.returncode not in {0, 1}:
        raise SystemExit(ended.returncode)
    with open_run(out) as run:
        by_id = {each.partition("/")[2]: each for each in known}
        return {by_id[each]: result for result in run.results() for each in by_id if each in str(result["task"])}


def _lacks(result: Mapping[str, Any]) -> str:
    """The program that a task needed and the machine does not have; empty if none."""
    found = re.search(r"a program is missing: ([^:]+)", "" if result["valid"] else str(result["detail"]))
    return found[1] if found else ""


def table(
    known: Sequence[str], right: Mapping[str, Mapping[str, Any]], idle: Mapping[str, Mapping[str, Any]]
) -> tuple[str, list[str]]:
    """The table, and the tasks that ran and were scored otherwise than expected."""
    lines = ["| task | | oracle | nothing | seconds |", "|---|---|---|---|---|"]
    wrong = []
    for name in known:
        what = "cannot be done" if name in INFEASIBLE else ""
        if (lacks := _lacks(right[name])) and lacks == _lacks(idle[name]):
            lines.append(f"| {name} | {what} | lacks {lacks} | lacks {lacks} | |")
            continue
        if not (right[name]["valid"] and idle[name]["valid"]):
            lines.append(f"| {name} | {what} | {right[name]['cause']} | {idle[name]['cause']} | |")
            wrong.append(name)
            continue
        scores = float(right[name]["score"]), float(idle[name]["score"])
        wrong += [] if scores == (1.0, float(name in SOLVED_BY_NOTHING)) else [name]
        seconds = right[name]["times"]["total"]
        lines.append(f"| {name} | {what} | {scores[0]:g} | {scores[1]:g} | {seconds:.1f} |")
    return "\n".join(lines), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("task", nargs="*", help="domain and the beginning of an id; all if none is given")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--desktops", default="2")
    given = parser.parse_args()
    known = sorted(given.task or (*INFEASIBLE, *ORACLES))
    options = ["--backend", given.backend, "--desktops", given.desktops]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        right, idle = (
            results(known, given.checkout, agent, options, Path(folder, agent.partition(":")[0]))
            for agent in ("episodes.osworld_oracles:play", "nothing")
        )
    shown, wrong = table(known, right, idle)
    print(f"{HEAD} Backend {given.backend}, load {load:.1f} at the beginning.\n\n{shown}\n")
    print(f"{sum(bool(right[name]['valid']) for name in known)} of {len(known)} ran here.")
    if wrong:
        sys.exit(f"scored otherwise than expected: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
