"""Counts how often an action arrived, or was reported not to have arrived.

    python tools/right_or_told.py [--times 20] [--only WORD] [--out FILE]

Each row's tests run several times beside one busy loop, and none is run again when it fails: a failure is a wrong answer
without an error. The output is a page for evidence/; the names of failed tests, and why, go to standard error at once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from deskhand.episodes.run.host import describe

ROOT = Path(__file__).resolve().parents[1]


# So often the long form of a test repeats (`TIMES_STARVED` in tests/faults/test_gestures.py).
_REPEATED = 20


class Row(NamedTuple):
    what: str
    tests: tuple[str, ...]
    # The long form of tests with this word in their name, which repeat by themselves.
    repeats: str = ""


FAULTS, INTEGRATION, CONFORMANCE = "tests/faults", "tests/integration", "tests/conformance"
ROWS = (
    Row("A desktop starts clean, and the first example runs", (
        f"{INTEGRATION}/test_home.py", "tests/docs/test_examples.py::test_the_first_example_runs_twice_in_one_home")),
    Row("Keycodes of killed drivers come back", (f"{FAULTS}/test_bindings.py::test_keycodes_of_killed_drivers_come_back",)),
    Row("Forked processes", (f"{FAULTS}/test_fork.py",)),
    Row("Texts into starved applications", (
        f"{FAULTS}/test_bindings.py::test_a_starved_application_loses_nothing",
        f"{FAULTS}/test_bindings.py::test_a_starved_toolkit_loses_nothing")),
    Row("More characters than there are keys", (f"{FAULTS}/test_bindings.py::test_more_characters_than_can_be_bound",)),
    Row("Texts into GTK, Qt, Chromium and xterm", (f"{INTEGRATION}/test_typing.py::test_text_arrives_exactly",)),
    Row("Characters that no key brings to an application", (f"{INTEGRATION}/test_toolkits.py",)),
    Row("The first text over VNC", (f"{FAULTS}/test_first_text.py",)),
    Row("Another program has grabbed the keyboard or the pointer", (
        f"{FAULTS}/test_reach.py::test_another_client_has_grabbed_it",
        f"{FAULTS}/test_reach.py::test_a_paste_that_went_elsewhere_leaves_the_clipboard")),
    Row("Nothing has the focus", (f"{FAULTS}/test_reach.py::test_nothing_has_the_focus",)),
    Row("Pasted texts, with and without clipboard managers", (f"{FAULTS}/test_paste.py",)),
    Row("What was on the clipboard before a paste", (f"{FAULTS}/test_clipboard_kept.py",)),
    Row("Owners of the clipboard that die, change or stop", (f"{FAULTS}/test_clipboard.py",)),
    Row("A changed pointer map", (
        f"{CONFORMANCE}/test_events.py::test_buttons_are_those_that_applications_see",
        f"{CONFORMANCE}/test_events.py::test_a_button_that_the_pointer_has_not_is_refused")),
    Row("Drags and drops", (
        f"{FAULTS}/test_gestures.py::test_what_is_dragged_is_dropped",
        f"{FAULTS}/test_gestures.py::test_what_is_dragged_to_a_small_target_is_dropped")),
    Row("Every point of a drag", (f"{FAULTS}/test_gestures.py::test_every_point_of_a_drag_is_seen",)),
    Row("Windows moved and resized", (f"{FAULTS}/test_gestures.py::test_a_window_is_moved_and_resized",)),
    Row("Menus that open under the pointer", (
        f"{FAULTS}/test_gestures.py::test_a_menu_that_opens_under_the_pointer_is_clicked",)),
    Row("One click and two", (f"{FAULTS}/test_gestures.py::test_a_click_is_one_and_a_double_click_two",)),
    Row("Drags, points, menus and clicks in starved applications", (f"{FAULTS}/test_gestures.py",), repeats="starved"),
    Row("Modifiers that the layout lacks, and keys that servers keep", (
        f"{FAULTS}/test_keyboard.py::test_a_modifier_of_either_side_is_in_the_state",
        f"{FAULTS}/test_keyboard.py::test_a_key_that_servers_keep_for_themselves_arrives_or_is_refused")),
    Row("Layouts changed before and while typing", (
        f"{FAULTS}/test_keyboard.py::test_layout_does_not_matter",
        f"{FAULTS}/test_keyboard.py::test_layout_changed_while_typing")),
    Row("Final frames", (f"{INTEGRATION}/test_settle.py",)),
    Row("Hot keys", (f"{INTEGRATION}/test_settle_hot_keys.py",)),
    Row("Answers over the network", (f"{INTEGRATION}/test_requests.py",)),
    Row("Answers behind timers", (
        f"{INTEGRATION}/test_settle.py::test_an_answer_behind_a_timer_is_told",
        f"{INTEGRATION}/test_settle.py::test_a_button_that_a_key_presses_is_waited_for",
        f"{INTEGRATION}/test_settle.py::test_a_button_is_waited_for_beside_other_timers")),
    Row("Handlers that sleep", (
        f"{INTEGRATION}/test_settle.py::test_a_key_that_nobody_has_read_is_not_answered",
        f"{INTEGRATION}/test_settle.py::test_a_handler_that_sleeps_is_waited_for")),
    Row("Compositors and i3", (f"{FAULTS}/test_managers.py",)),
    Row("An application in a frozen container", ("tests/containers/test_frozen.py",)),
    Row("Sizes, and screens that others resize", (f"{FAULTS}/test_screen.py",)),
    Row("What an X server may not say", (f"{FAULTS}/test_xserver.py",)),
    Row("Windows without a window manager", (f"{INTEGRATION}/test_desktop_x11.py::test_a_desktop_without_a_window_manager",)),
)  # fmt: skip


class Count(NamedTuple):
    right: int
    wrong: int
    not_shown: int
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="how often each test runs (20)")
    parser.add_argument("--only", default="", metavar="WORD", help="rows that have this word only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the page goes, besides standard output")
    given = parser.parse_args()
    rows = [row for row in ROWS if given.only.lower() in row.what.lower()]
    if not rows:
        parser.error(f"no row has {given.only!r}: {'; '.join(row.what for row in ROWS)}")
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            counts = [_counted(row, given.times) for row in rows]
        finally:
            busy.kill()
    page = _page(rows, counts, given.times)
    print(page, end="")
    if given.out is not None:
        given.out.write_text(page)
    return 1 if any(count.wrong for count in counts) else 0


def _counted(row: Row, times: int) -> Count:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "--no-reruns", f"--junitxml={report}", "-n", "2", "--dist", "load"]
        options += ["-k", row.repeats] if row.repeats else ["--count", str(times)]
        # Ctrl-C reaches pytest too, which then ends the processes that it started.
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *row.tests],
            cwd=ROOT,
            env=os.environ | {"DESKHAND_EVIDENCE": "1"} if row.repeats else None,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode not in {0, 1}:
            raise SystemExit(f"pytest could not run {row.what!r} (status {ended.returncode}):\n{ended.stdout[-4000:]}")
        cases = ET.parse(report).getroot().findall(".//testcase")
    wrong = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    not_shown = sum(case.find("skipped") is not None for case in cases)
    for case in wrong:
        why = next(
            (found.get("message", "") for kind in ("failure", "error") if (found := case.find(kind)) is not None), ""
        )
        print(f"wrong: {case.get('classname')}::{case.get('name')}: {why[:300]}", file=sys.stderr)
    right = len(cases) - len(wrong) - not_shown
    if row.repeats:
        # One that has failed does not go on.
        right, not_shown = _REPEATED * right, _REPEATED * not_shown + (_REPEATED - 1) * len(wrong)
    count = Count(right, len(wrong), not_shown, time.monotonic() - begun)
    print(f"{row.what}: {count.right} right or told, {count.wrong} wrong, {count.seconds:.0f} s", file=sys.stderr)
    return count


def _page(rows: list[Row], counts: list[Count], times: int) -> str:
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    machine = describe()
    lines = [
        "# Right or told",
        "",
        f"Each test of a row ran {times} times beside one busy loop, and none was run again. It passes when what was asked for",
        "arrived, or an error or the observation said that it did not. Everything else is wrong.",
        "",
        f"Revision {revision.stdout.strip()}; {machine['processor']}, {machine['cores']} cores, {machine['system']}.",
        f"Command: `tools/right_or_told.py --times {times}`.",
        "",
        "| what | right or told | wrong | not shown |",
        "|---|---:|---:|---:|",
        *(
            f"| {row.what} | {count.right} | {count.wrong} | {count.not_shown} |"
            for row, count in zip(rows, counts, strict=True)
        ),
        f"| together | {sum(c.right for c in counts)} | {sum(c.wrong for c in counts)} | {sum(c.not_shown for c in counts)} |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    # A busy machine is intended here, and this run must not use another one's names.
    os.environ.pop("DESKHAND_EVIDENCE", None)
    raise SystemExit(main())
