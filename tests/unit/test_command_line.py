"""What all commands have in common: the list, completion, JSON, quiet, colours and exit codes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from deskhand.cli.group import _SECTIONS, commands

DESKHAND = Path(sys.executable).with_name("deskhand")
PAGE = Path(__file__).resolve().parents[2] / "docs/command-line.md"
# These serve until they are ended, or print a program's text.
WITHOUT_JSON = {"assets add", "assets evaluators", "bench", "completion", "mcp", "serve", "watch"}


def every(command: click.Command = commands, *words: str) -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return {" ".join(words): command}
    found: dict[str, click.Command] = {}
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        found |= every(below, *words, name)
    return found


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [DESKHAND, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_list_says_what_the_commands_say() -> None:
    context = click.Context(commands)
    listed = {name: each.about for section in _SECTIONS.values() for name, each in section.items()}
    visible = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    assert listed == {
        name: command.get_short_help_str(300) for name, command in visible.items() if command and not command.hidden
    }


def test_help_lists_by_what_one_wants_to_do() -> None:
    text = CliRunner().invoke(commands, ["--help"]).output
    titles = re.findall(r"^([A-Z][\w ]+):$", text, re.MULTILINE)
    assert titles == ["Options", *_SECTIONS]
    for section in _SECTIONS.values():
        for name in section:
            assert re.search(rf"^  {name} ", text, re.MULTILINE)


def test_what_prints_data_prints_json_too() -> None:
    assert {name for name, command in every().items() if "--json" not in options(command)} == WITHOUT_JSON


def test_what_prints_progress_can_be_quiet() -> None:
    quiet = {name for name, command in every().items() if {"-q", "--quiet"} <= options(command)}
    assert quiet == {"export", "image build", "replay", "report", "run", "tasks check"}
    assert {"-q", "--quiet", "-v", "--verbose"} <= options(commands)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["s"], ["screenshot", "serve", "shell", "start"]),
        (["tasks", ""], ["check", "list", "show"]),
        (["click", "--j"], ["--json"]),
        (["image", "build", "d"], ["desktop"]),
    ],
)
def test_bash_completes(words: list[str], found: list[str]) -> None:
    """The shell itself runs the function that the script defines, as it does when Tab is pressed."""
    script = (
        f"export PATH={DESKHAND.parent}:$PATH; source <(deskhand completion bash)\n"
        f"COMP_WORDS=(deskhand {' '.join(words)}); COMP_CWORD={len(words)}\n"
        '[ "${COMP_WORDS[COMP_CWORD]+x}" ] || COMP_WORDS[COMP_CWORD]=""\n'
        '_deskhand_completion deskhand; printf "%s\\n" "${COMPREPLY[@]}"; complete -p deskhand >&2'
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == found
    assert "-F _deskhand_completion" in ran.stderr


@pytest.mark.parametrize(
    ("shell", "mark"), [("zsh", "#compdef deskhand"), ("fish", "complete --no-files --command deskhand")]
)
def test_other_shells_get_their_script(shell: str, mark: str) -> None:
    made = run("completion", shell)
    assert made.returncode == 0
    assert mark in made.stdout
    # What the script calls for the words so far: a line of each shell's own form for each.
    asked = run(
        _DESKHAND_COMPLETE=f"{shell}_complete", COMP_WORDS="deskhand win", COMP_CWORD="1" if shell == "zsh" else "win"
    )
    assert "windows" in asked.stdout
    assert "List the windows, bottom to top." in asked.stdout


def test_the_names_of_desktops_are_completed(tmp_path: Path) -> None:
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    asked = {
        "XDG_RUNTIME_DIR": str(runtime),
        "_DESKHAND_COMPLETE": "bash_complete",
        "COMP_WORDS": "deskhand click -d w",
    }
    assert run("up", "--name", "work", "--size", "200x100", XDG_RUNTIME_DIR=str(runtime)).returncode == 0
    try:
        assert run(COMP_CWORD="3", **asked).stdout == "plain,work\n"
    finally:
        ended = run("down", "work", "--json", XDG_RUNTIME_DIR=str(runtime))
    assert (ended.returncode, ended.stdout) == (0, '["work"]\n')


def test_the_exit_codes_are_those_of_the_page(tmp_path: Path) -> None:
    documented = dict(re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE))
    assert set(documented) == {"0", "1", "2", "124", "128"}
    (tmp_path / "r").mkdir(mode=0o700)
    nothing = {"XDG_RUNTIME_DIR": str(tmp_path / "r"), "DESKHAND_DESKTOP": ""}
    assert run("--version").returncode == 0
    failed = run("click", "1", "2", "-d", "none", **nothing)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("deskhand: cannot connect to none: no desktop of that name runs")
    for wrong in (["click"], ["no-such-command"], ["click", "1", "2", "--no-such-option"]):
        assert run(*wrong).returncode == 2


def test_verbose_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir(mode=0o700)
    for words in (["-v"], []):
        failed = run(*words, "click", "1", "2", "-d", "none", XDG_RUNTIME_DIR=str(tmp_path / "r"))
        assert failed.returncode == 1
        assert ("Traceback" in failed.stderr) is bool(words)
        assert failed.stderr.splitlines()[-1].startswith("deskhand: cannot connect to none")


@pytest.mark.parametrize(("variables", "colours"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_colours_are_for_a_terminal_that_wants_them(variables: dict[str, str], *, colours: bool) -> None:
    environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **variables}
    ours, its = pty.openpty()
    with subprocess.Popen([DESKHAND, "doctor"], env=environment, stdout=its, stdin=subprocess.DEVNULL) as process:
        os.close(its)
        printed = b""
        try:
            while piece := os.read(ours, 1 << 16):
                printed += piece
        except OSError:
            # Its end has closed.
            pass
        process.wait(60)
    os.close(ours)
    assert b"Xvfb" in printed
    assert (b"\x1b[3" in printed) is colours


def test_no_colours_without_a_terminal() -> None:
    assert "\x1b" not in run("doctor").stdout
