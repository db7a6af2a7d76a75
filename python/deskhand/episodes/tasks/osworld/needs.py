"""What a task of OSWorld needs: files, hosts, accounts, programs, packages of its evaluators. Pure.

This module owns how that is read from a task. What must never appear here: whether it is there (see `plan`).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deskhand.episodes.tasks.osworld.taskfile import HOME, strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deskhand.episodes.tasks.osworld.taskfile import SetupStep, TaskFile

KINDS = frozenset(
    (
        "activate_window", "chrome_close_tabs", "chrome_open_tabs", "close_window", "command", "download", "execute", "launch",
        "open", "sleep", "update_browse_history",
    )
)  # fmt: skip
"""The kinds of steps that are carried out here."""

HISTORY = "https://huggingface.co/datasets/xlangai/ubuntu_osworld_file_cache/resolve/main/chrome/44ee5668-ecd5-4366-a6ce-c1c9b8d4e938/history_empty.sqlite"
"""The empty history of a browser, which upstream's `update_browse_history` downloads."""

# Upstream's names of applications → the program that each is here.
_APPS: Mapping[str, str] = {
    "calc": "libreoffice", "chrome": "google-chrome", "excel": "libreoffice", "gimp": "gimp", "libreoffice": "libreoffice",
    "libreoffice_calc": "libreoffice", "libreoffice_impress": "libreoffice", "libreoffice_writer": "libreoffice",
    "thunderbird": "thunderbird", "vlc": "vlc", "vscode": "code", "vs_code": "code",
}  # fmt: skip
_LOGINS = {"googledrive": "an account of Google Drive", "login": "an account, which it logs in to"}
_LOGIN_GETTERS = {"googledrive_file": "an account of Google Drive"}
# Getters that ask the web, whatever their parameters say.
_WEB_GETTERS = {
    "gotoRecreationPage_and_get_html_content": "www.recreation.gov",
    "info_from_website": "the website that it is compared with",
    "number_of_search_results": "the search engine",
    "pdf_from_url": "the page that it prints",
    "rule_relativeTime": "",
}
_LOOKS_AT_PAGE = re.compile(
    r"active_tab|active_url|open_tabs|url_dashPart|url_path_parse|page_info|html_parse|macys|vlc_playing"
)
_WEB = re.compile(r"(?:https?://|\bwww\.)[^\s\"'\\)>|]+")
_HOST = re.compile(r"[a-z0-9-]+(?:\\?\.[a-z0-9-]+)+", re.IGNORECASE)
_ENDS = re.compile(r"&&|\|\||[;|&\n(){}]")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=\S*\s*")
_KEYWORDS = frozenset(
    ("!", "[", "[[", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "while")
)
_BUILTINS = frozenset(
    """
    . : alias cat cd chmod chown cp cut date echo eval exec exit export expr false find grep head history kill
    killall ls mkdir mv printf pwd read rm sed set sleep sort source stat tail test touch tr trap true type
    ulimit umask unset wc xargs awk basename dirname env id seq tee timeout uniq which whoami pkill pgrep ps
    sh bash diff tar ln gzip
    """.split()  # noqa: SIM905 # a list of so many words
)
# Programs that are here under another name, or for which something of ours stands in.
_SAME: Mapping[str, str] = {
    "chromium": "google-chrome", "chromium-browser": "google-chrome", "google-chrome-stable": "google-chrome",
    "python": "python3", "soffice": "libreoffice", "localc": "libreoffice", "loimpress": "libreoffice",
    "lowriter": "libreoffice", "swriter": "libreoffice", "gnome-terminal-server": "gnome-terminal",
}  # fmt: skip
# What asks for the administrator's rights, or is about the machine itself and not a desktop.
_ROOT = re.compile(r"\b(?:sudo|timedatectl|systemctl|hostnamectl)\b")
# The browser's port is reached without this bridge.
_NOT_NEEDED = frozenset({"socat"})
# What is asked on the desktop's machine for a part of `env`, see `evaluating`.
_ASKED_WITH = {"execute_python_command": "python3", "get_vm_wallpaper": "gsettings", "vlc_port": "curl"}
_INSTALLERS = {"apt", "apt-get", "snap", "pip", "pip3", "conda", "npm", "wget", "curl", "git"}
OFFICE = frozenset(
    "csv doc docm docx dot odp ods odt pot potx pps ppsx ppt pptx rtf xls xlsm xlsx".split()  # noqa: SIM905 # a list of endings
)
"""The endings of files that LibreOffice opens."""

_TEXTS = frozenset(("css", "html", "ini", "js", "json", "log", "md", "py", "sh", "toml", "txt", "xml", "yaml"))


@dataclass(frozen=True, slots=True)
class Table:
    """What each of upstream's evaluators uses: name → (packages, attributes of the environment).

    Attributes:
        version: The version of `desktop-env` that this was read from.
        metrics: The metrics.
        getters: The getters, with their `get_`.
    """

    version: str
    metrics: Mapping[str, tuple[frozenset[str], frozenset[str]]]
    getters: Mapping[str, tuple[frozenset[str], frozenset[str]]]


@dataclass(frozen=True, slots=True)
class Needs:
    """What one task needs.

    Attributes:
        logins: The accounts.
        hosts: The hosts, or other names of what it reaches on the network; each once.
        urls: The files that are downloaded for it before it begins, or for its evaluation.
        programs: The programs that its machine must have.
        packages: The packages that its evaluators need, by the names that they are imported by.
        unknown_steps: The kinds of steps that are not carried out here.
        unknown_evaluators: The metrics and getters that upstream's package does not have.
        environment: What its evaluators read of `env`.
        root: A program of its commands that wants the rights of the administrator; empty if none does.
        home: Whether its instruction names `/home/user`, which only a container has.
    """

    logins: tuple[str, ...]
    hosts: tuple[str, ...]
    urls: tuple[str, ...]
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    unknown_steps: tuple[str, ...]
    unknown_evaluators: tuple[str, ...]
    environment: frozenset[str]
    root: str
    home: bool


def needs_of(task: TaskFile, table: Table) -> Needs:
    """What a task needs."""
    steps = (*task.setup, *task.post)
    packages, environment, lacking = _evaluators(task, table)
    commands = [command for step in steps for command in _commands(step)]
    commands += [c for g in (*task.results, *task.expected) if g is not None for c in _of(g.get("command"), shell=True)]  # noqa: S604 # it starts nothing
    words = [word for command in commands for word in _programs(command)]
    named = [*_apps(task), *words, *_openers(steps)]
    programs = [name for name in named if name not in _INSTALLERS | _NOT_NEEDED | {"sudo"}]
    programs += [program for part, program in _ASKED_WITH.items() if part in environment]
    return Needs(
        logins=_once(
            *(_LOGINS[step.kind] for step in steps if step.kind in _LOGINS),
            *(_LOGIN_GETTERS[kind] for kind in task.getters if kind in _LOGIN_GETTERS),
        ),
        hosts=_hosts(task, words),
        urls=_once(*_urls(task)),
        programs=_once(*programs),
        packages=tuple(sorted(packages)),
        unknown_steps=_once(*(step.kind for step in steps if step.kind not in KINDS and step.kind not in _LOGINS)),
        unknown_evaluators=lacking,
        environment=environment,
        root=next((found[0] for command in commands if (found := _ROOT.search(command)) is not None), ""),
        home=HOME in task.instruction,
    )


def _once(*values: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _evaluators(task: TaskFile, table: Table) -> tuple[set[str], frozenset[str], tuple[str, ...]]:
    if task.infeasible:
        return set(), frozenset(), ()
    packages: set[str] = set()
    environment: set[str] = set()
    lacking = []
    getters = [f"get_{kind}" for kind in task.getters]
    for names, known, what in ((task.functions, table.metrics, "metric"), (getters, table.getters, "getter")):
        for name in names:
            if name in known:
                packages |= known[name][0]
                environment |= known[name][1]
            else:
                lacking.append(f"{what} {name}")
    return packages, frozenset(environment), _once(*lacking)


# --- the network ---


def _hosts(task: TaskFile, words: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for step in (*task.setup, *task.post):
        if step.kind in {"chrome_open_tabs", "launch"}:
            found += [_host(text) for text in strings(step.parameters) if _WEB.match(text)]
    found += [f"the package server of {word}" for word in words if word in _INSTALLERS]
    looks = any(_LOOKS_AT_PAGE.search(getter) for getter in task.getters)
    for getter in (*task.results, *task.expected):
        if getter is None:
            continue
        kind = getter["type"]
        if kind in _WEB_GETTERS:
            found.append(_WEB_GETTERS[kind])
        if kind not in {"cloud_file", "vm_file"} and looks:
            found += [_host(text) for text in _pages(getter)]
    if task.proxy and not found:
        found.append("the web, through upstream's proxy")
    return _once(*found)


def _pages(getter: Mapping[str, Any]) -> Iterator[str]:
    """The addresses that an evaluator compares a page with; in patterns their dots are escaped."""
    for text in strings(getter):
        plain = text.replace("\\", "").lstrip("^")
        if _WEB.match(plain) or re.match(r"(?:[a-z0-9-]+\.)+(?:com|org|gov|net|edu|io|eu|au|uk)\b", plain):
            yield plain


def _host(address: str) -> str:
    found = urlsplit(address if "//" in address else f"//{address}").netloc or address
    host = re.sub(r"[^A-Za-z0-9.:-].*", "", found)[:100]
    # A getter may have the beginning of an address alone.
    return "" if host == "www." else host


def _urls(task: TaskFile) -> Iterator[str]:
    for step in (*task.setup, *task.post):
        if step.kind == "download":
            yield from (file["url"] for file in step.parameters["files"])
        elif step.kind == "update_browse_history":
            yield HISTORY
    for getter in (*task.results, *task.expected):
        if getter is not None and getter["type"] == "cloud_file":
            paths = getter.get("path")
            yield from paths if isinstance(paths, list) else [str(paths)]


# --- programs ---


def _apps(task: TaskFile) -> Iterator[str]:
    """The programs of the applications that a task names."""
    for app in task.apps:
        if app.lower() in _APPS:
            yield _APPS[app.lower()]


def _commands(step: SetupStep) -> Iterator[str]:
    if step.kind in {"launch", "execute", "command"}:
        yield from _of(step.parameters["command"], shell=bool(step.parameters.get("shell")))
    elif step.kind.startswith("chrome_"):
        yield "google-chrome"


def _of(command: object, *, shell: bool) -> Iterator[str]:
    """A command as a line for a shell; a script that a list gives to a shell is that script."""
    if isinstance(command, str):
        yield command
    elif isinstance(command, list) and command:
        words = [str(word) for word in command]
        if len(words) == 1 and shell:
            yield words[0]
        elif len(words) == 3 and words[0].rpartition("/")[2] in {"bash", "sh"} and words[1] == "-c":
            yield words[2]
        elif words[0].rpartition("/")[2] in {"python", "python3"} and words[1:2] == ["-c"]:
            # What follows is Python. PyAutoGUI's calls are carried out without it.
            if not _is_pyautogui(words[2:]):
                yield words[0]
        else:
            yield shlex.join(words)


def _is_pyautogui(words: list[str]) -> bool:
    return len(words) == 1 and "pyautogui" in words[0]


def _programs(command: str) -> Iterator[str]:
    """The first word of each command of a line; what is quoted is left out, and what `$(...)` runs is not."""
    for inner in re.findall(r"\$\(([^()]+)\)", command):
        yield from _programs(inner)
    bare = re.sub(r"\{[A-Z_]+\}|'[^']*'|\"(?:[^\"\\]|\\.)*\"", "Q", command)
    for part in _ENDS.split(bare):
        words = _ASSIGNED.sub("", part.strip(), count=5).split() if "=" in part else part.split()
        words = [word for word in words if word not in _KEYWORDS]
        while words and words[0] in {"sudo", "nohup", "env", "exec", "timeout"}:
            if words[0] == "sudo":
                yield "sudo"
            words = [word for word in words[1:] if not word.startswith("-") and not word.replace(".", "").isdigit()]
        if not words:
            continue
        name = words[0].rpartition("/")[2]
        if (
            not re.fullmatch(r"[a-zA-Z][\w.+-]*", name)
            or name in _BUILTINS
            or words[0].startswith(("./", "$", "~", HOME))
        ):
            continue
        if name != "Q":
            yield _SAME.get(name, name)


def _openers(steps: Iterable[SetupStep]) -> Iterator[str]:
    for step in steps:
        if step.kind == "open":
            yield opener_of(step.parameters["path"])


def opener_of(path: str) -> str:
    """The program that opens a file or a folder: those of the desktop image, and else what the system says."""
    name = path.rstrip("/").rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in OFFICE:
        return "libreoffice"
    if ending in _TEXTS:
        return "mousepad"
    return {"": "pcmanfm", "pdf": "mupdf"}.get(ending, "xdg-open")
