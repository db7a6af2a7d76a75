"""Oracles for OSWorld's tasks: an agent that acts through the desktop by what it knows of each task.

    PYTHONPATH=tests python -m episodes.osworld_oracles CHECKOUT [--backend docker] [--desktops 2] [TASK...]

plays them and an agent that does nothing, has upstream's code evaluate both, and prints a table. `play` is an agent for
`deskhand run --agent episodes.osworld_oracles:play`. Tasks that download files get others in their place, which a script makes
(`STANDINS`), in the environment of the evaluators (`DESKHAND_OSWORLD_PYTHON`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deskhand import KeyPress, RightClick, Type
from deskhand.episodes.record.reader import open_run
from deskhand.episodes.tasks.osworld.assets import Assets
from deskhand.episodes.tasks.osworld.evaluators import find_evaluators
from deskhand.episodes.tasks.osworld.taskfile import strings
from deskhand.episodes.tasks.suite._acting import find_window, wait_for_window, wait_until_gone
from episodes.osworld_metrics import make_files, read_tasks

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
# The height of a line in a list.
_LINE = 24


def _terminal(*commands: str, after: str = "") -> Callable[[Desktop], None]:
    """Type commands into a terminal, whose title then says that they are done; `after` a window with this title is active."""

    def act(desktop: Desktop) -> None:
        if after:
            wait_for_window(desktop, after)
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
    wait_for_window(desktop, "LibreOffice Impress")
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


def _opened(desktop: Desktop, title: str) -> None:
    """Wait for a document's window, and close what a new LibreOffice shows over it."""
    wait_for_window(desktop, title)
    while (shown := find_window(desktop, "Tip of the Day")) is not None:
        wait_for_window(desktop, shown.title)
        desktop.perform(KeyPress(("Escape",)))
        wait_until_gone(desktop, shown)
    wait_for_window(desktop, title)
    desktop.perform(KeyPress(("ctrl", "Home")))


def _saved(desktop: Desktop, title: str) -> None:
    """Save a document in the format that it has; LibreOffice asks about that."""
    desktop.perform(KeyPress(("ctrl", "s")))
    # It is called "Confirm File Format" or "Keep Current Format?", by the version.
    if (asks := find_window(desktop, "Format")) is not None:
        wait_for_window(desktop, asks.title)
        desktop.perform(KeyPress(("Return",)))
        wait_until_gone(desktop, asks)
    wait_for_window(desktop, title)


def _in_document(title: str, *actions: KeyPress | Type) -> Callable[[Desktop], None]:
    def act(desktop: Desktop) -> None:
        _opened(desktop, title)
        for action in actions:
            desktop.perform(action)
        _saved(desktop, title)

    return act


_RIGHT, _END = KeyPress(("Right",)), KeyPress(("End",))
_ORDERS = 5
_ESSAY = ["Cocoa is good for the heart <add here>", "[1] Doe, J. (2001). A book."]
_REFERENCE = (
    "Steinberg, F. M., Bearden, M. M., & Keen, C. L. (2003). Cocoa and chocolate flavonoids: Implications for cardiovascular "
    "health. Journal of the American Dietetic Association, 103(2), 215-223. doi: 10.1053/jada.2003.50028"
)


def _two_folders(desktop: Desktop) -> None:
    wait_for_window(desktop, "Mozilla Thunderbird")
    for name in ("COMPANY", "UNIVERSITY"):
        # Its box has its folders too, once there are some.
        box = desktop.find(role="treeitem", name="Local Folders").element(timeout=60.0).box
        assert box is not None
        desktop.perform(RightClick((box.x + box.width // 2, box.y + _LINE // 2)))
        desktop.find(role="menuitem", name="New Folder…").click(timeout=30.0)
        asks = wait_for_window(desktop, "New Folder")
        desktop.perform(Type(name), KeyPress(("Return",)))
        wait_until_gone(desktop, asks)


def _nothing(desktop: Desktop) -> None:
    """A new browser writes the setting that the evaluator looks for."""
    del desktop


ORACLES: dict[str, Callable[[Desktop], None]] = {
    "chrome/030eeff7": _do_not_track,
    "chrome/99146c54": _nothing,
    "chrome/bb5e4c0d": _bing,
    # Its window takes the focus when it comes, some seconds after the picture of its start.
    "gimp/7767eef2": _terminal(
        "pkill -x gimp",
        "echo '(theme \"Light\")' >> ~/.config/GIMP/2.10/gimprc",
        after="GNU Image Manipulation Program",
    ),
    "libreoffice_calc/1e8df695": _in_document("WeeklySales", *[_RIGHT] * 3, Type("Profit\n=B2-C2\n=B3-C3\n=B4-C4\n")),
    "libreoffice_calc/7efeb4b1": _in_document(
        "Order_Sales_Serial", Type("\n" + "".join(f"No. {n}\n" for n in range(1, _ORDERS + 1)))
    ),
    "libreoffice_impress/2cd43775": _save_every_three_minutes,
    "libreoffice_impress/ef9d12bd": _left_panel,
    "libreoffice_writer/3ef2b351": _in_document("Constitution_Template", KeyPress(("ctrl", "e"))),
    "libreoffice_writer/adf5e2c3": _in_document(
        "Essay_Writing",
        _END,
        *[KeyPress(("BackSpace",))] * len("<add here>"),
        Type("[2]"),
        KeyPress(("ctrl", "End")),
        Type(f"\n[2] {_REFERENCE}"),
    ),
    "multi_apps/48d05431": _terminal("echo '# >>> conda initialize >>>' >> ~/.bashrc"),
    "multi_apps/f8369178": _terminal("gsettings set org.gnome.desktop.interface gtk-theme Orchis"),
    "os/3ce045a0": _terminal("gsettings set org.gnome.desktop.interface text-scaling-factor 1.25"),
    "os/a4d98375": _terminal("gsettings set org.gnome.desktop.screensaver lock-enabled true"),
    "thunderbird/a10b69e1": _two_folders,
    "vlc/8ba5ae7a": _terminal("pkill -x vlc", "echo input-record-path=$HOME/Desktop >> ~/.config/vlc/vlcrc"),
    "vlc/d06f0d4d": _terminal(
        "pkill -x vlc", "echo 'qt-slider-colours=0;0;0;0;0;0;0;0;0;0;0;0' >> ~/.config/vlc/vlcrc"
    ),
}

_SALES = [["Week", "Sales", "COGS"], [1, 120, 70], [2, 90, 45], [3, 200, 110]]
_ROWS = [["Seq No.", "Order"], *([None, f"SO-{number}"] for number in range(11, 11 + _ORDERS))]
_PREFERENCES = {
    "mail.accountmanager.accounts": "account1,account2",
    "mail.accountmanager.defaultaccount": "account2",
    "mail.accountmanager.localfoldersserver": "server1",
    "mail.account.account1.server": "server1",
    "mail.account.account2.server": "server2",
    "mail.account.account2.identities": "id1",
    "mail.identity.id1.useremail": "anonym@mail.example",
    "mail.server.server1.directory-rel": "[ProfD]Mail/Local Folders",
    "mail.server.server1.hostname": "Local Folders",
    "mail.server.server1.name": "Local Folders",
    "mail.server.server1.type": "none",
    "mail.server.server1.userName": "nobody",
    "mail.server.server2.directory-rel": "[ProfD]Mail/mail.example",
    "mail.server.server2.hostname": "mail.example",
    "mail.server.server2.name": "anonym@mail.example",
    "mail.server.server2.type": "pop3",
    "mail.server.server2.userName": "anonym",
    "mail.server.server2.login_at_startup": False,
    "mail.server.server2.check_new_mail": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "mail.rights.version": 1,
    "mail.shell.checkDefaultClient": False,
    "mailnews.start_page.enabled": False,
}
_PROFILE = "t5q2a5hp.default-release"
# The number of the installation follows from the directory, which is Ubuntu's too.
_THUNDERBIRD = {
    ".thunderbird/profiles.ini": f"[InstallFDC34C9F024745EB]\nDefault={_PROFILE}\nLocked=1\n\n"
    f"[Profile0]\nName=default-release\nIsRelative=1\nPath={_PROFILE}\nDefault=1\n\n"
    "[General]\nStartWithLastProfile=1\nVersion=2\n",
    f".thunderbird/{_PROFILE}/prefs.js": "".join(
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items()
    ),
}
STANDINS: dict[str, dict[str, Any]] = {
    "libreoffice_calc/1e8df695": {
        "WeeklySales.xlsx": _SALES,
        "6_WeeklySales_gt1.xlsx": [[*_SALES[0], "Profit"], *([*row, row[1] - row[2]] for row in _SALES[1:])],
    },
    "libreoffice_calc/7efeb4b1": {
        "Order_Sales_Serial#.xlsx": _ROWS,
        "Order_Sales_Serial#_gold.xlsx": [_ROWS[0], *([f"No. {n}", row[1]] for n, row in enumerate(_ROWS[1:], 1))],
    },
    "libreoffice_writer/adf5e2c3": {
        "Essay_Writing_English_for_uni.docx": _ESSAY,
        "Essay_Writing_English_for_uni_Gold.docx": [
            _ESSAY[0].replace("<add here>", "[2]"),
            _ESSAY[1],
            f"[2] {_REFERENCE}",
        ],
    },
    "libreoffice_writer/3ef2b351": {"Constitution_Template_With_Guidelines.docx": ["A Constitution", "Article I"]},
    "thunderbird/a10b69e1": {"thunderbird-profile.tar.gz": _THUNDERBIRD},
}
"""What stands for the files that a task downloads, by their names; see `osworld_files.py`."""


def put_standins(checkout: Path, known: Sequence[str], assets: Assets, python: str) -> None:
    """Put the files that stand for those of tasks into a cache."""
    for name, task in read_tasks(checkout).items():
        made = next((files for each, files in STANDINS.items() if each in known and name.startswith(each)), {})
        if not made:
            continue
        with tempfile.TemporaryDirectory() as folder:
            make_files(python, Path(folder), [(Path(folder, each), content) for each, content in made.items()])
            for url in {each for each in strings(task) if each.startswith("https://")}:
                if (there := Path(folder, unquote(url).rpartition("/")[2])).name in made:
                    assets.put(url, there)


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

HEAD = """# Tasks of OSWorld, done by oracles

`PYTHONPATH=tests python -m episodes.osworld_oracles CHECKOUT --backend docker` wrote this: the scores that OSWorld's own code
gives to what an oracle did through the desktop, and to nothing done. Where a task downloads files, a script made others in
their place, also the one that the result is compared with. "Seconds" is the whole attempt of the oracle, from a desktop as new
to the score. "Sleeps there" is what upstream sleeps for the same task before and after its steps: 60 s after the reset, 20 s
before the evaluation, and what the task's own file says; 2 s a step come on top."""
_SLEEPS = 60 + 20
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


def sleep_seconds(checkout: Path, name: str) -> float:
    """How long upstream sleeps for a task, in seconds, but for its steps."""
    file = next(checkout.rglob(f"examples/{name}*.json"))
    task = json.loads(file.read_text())
    steps = [*task.get("config", []), *task["evaluator"].get("postconfig", [])]
    return _SLEEPS + sum(float(step["parameters"]["seconds"]) for step in steps if step["type"] == "sleep")


def table(
    known: Sequence[str],
    right: Mapping[str, Mapping[str, Any]],
    idle: Mapping[str, Mapping[str, Any]],
    sleeps: Mapping[str, float],
) -> tuple[str, list[str]]:
    """The table, and the tasks that ran and were scored otherwise than expected."""
    lines = ["| task | | oracle | nothing | seconds | sleeps there |", "|---|---|---|---|---|---|"]
    wrong = []
    for name in known:
        what = "cannot be done" if name in INFEASIBLE else "files in place of its own" if name in STANDINS else ""
        if (lacks := _lacks(right[name])) and lacks == _lacks(idle[name]):
            lines.append(f"| {name} | {what} | lacks {lacks} | lacks {lacks} | | |")
            continue
        if not (right[name]["valid"] and idle[name]["valid"]):
            lines.append(f"| {name} | {what} | {right[name]['cause']} | {idle[name]['cause']} | | |")
            wrong.append(name)
            continue
        scores = float(right[name]["score"]), float(idle[name]["score"])
        wrong += [] if scores == (1.0, float(name in SOLVED_BY_NOTHING)) else [name]
        seconds = right[name]["times"]["total"]
        lines.append(f"| {name} | {what} | {scores[0]:g} | {scores[1]:g} | {seconds:.1f} | {sleeps[name]:g} |")
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
        if set(known) & set(STANDINS):
            put_standins(Path(given.checkout), known, Assets(Path(folder, "assets")), find_evaluators().python)
        options += ["--assets", f"{folder}/assets"]
        right, idle = (
            results(known, given.checkout, agent, options, Path(folder, agent.partition(":")[0]))
            for agent in ("episodes.osworld_oracles:play", "nothing")
        )
    shown, wrong = table(known, right, idle, {name: sleep_seconds(Path(given.checkout), name) for name in known})
    print(f"{HEAD} Backend {given.backend}, load {load:.1f} at the beginning.\n\n{shown}\n")
    print(f"{sum(bool(right[name]['valid']) for name in known)} of {len(known)} ran here.")
    if wrong:
        sys.exit(f"scored otherwise than expected: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
