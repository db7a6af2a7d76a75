"""Every outcome of every check, on machines that are made of a temporary directory and a few answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deskhand.cli.doctor import Check, State, judge
from deskhand.cli.doctor_facts import DisplayFacts, Facts, Fonts, Lock, System, Target, probe
from deskhand.errors import BackendError, ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MB = 1 << 20
HEALTHY = Facts(
    xvfb="/usr/bin/Xvfb",
    manager="/usr/bin/openbox",
    bus="/usr/bin/dbus-daemon",
    fonts=Fonts(scalable=9, bitmap=2, monospace=3, missing=()),
    locale="de_DE.UTF-8",
    locales=frozenset({"c", "c.utf8", "de_de.utf8", "posix"}),
    shm=(1024 * MB, 1000 * MB),
    locks=(Lock("99", ""),),
    sockets=0o1777,
    sockets_writable=True,
    runtime="/run/user/1000/deskhand",
    runtime_problem="",
    docker="/usr/bin/docker",
    debootstrap="/usr/sbin/debootstrap",
    display=DisplayFacts(":99", "", (), "de nodeadkeys"),
)
OK, WARN, FAIL = State.OK, State.WARN, State.FAIL


def found(facts: Facts, name: str) -> Check:
    (check,) = (check for check in judge(facts) if check.name == name)
    return check


def test_a_healthy_machine() -> None:
    checks = judge(HEALTHY)
    assert [check.name for check in checks] == [
        "Xvfb",
        "window manager",
        "session bus",
        "X sockets",
        "X locks",
        "runtime directory",
        "shared memory",
        "locale",
        "fonts",
        "fonts for CJK",
        "fonts for emoji",
        "containers",
        "display :99",
        "keyboard layout",
    ]
    assert [(check.state, check.fix) for check in checks] == [(OK, "")] * len(checks)
    assert found(HEALTHY, "keyboard layout").detail == "de nodeadkeys"
    assert len(judge(replace(HEALTHY, display=None))) == len(checks) - 2


@pytest.mark.parametrize(
    ("change", "name", "state", "detail", "fix"),
    [
        ({"xvfb": None}, "Xvfb", FAIL, "not installed", "apt-get install xvfb"),
        ({"manager": None}, "window manager", FAIL, "none is installed", "apt-get install openbox"),
        ({"bus": None}, "session bus", WARN, "not installed", "apt-get install dbus"),
        ({"sockets": None}, "X sockets", OK, "will be made", ""),
        ({"sockets": None, "sockets_writable": False}, "X sockets", FAIL, "is missing", "mkdir -m 1777 /tmp/.X11-unix"),
        (
            {"sockets": 0o755, "sockets_writable": False},
            "X sockets",
            FAIL,
            "mode 755 and is not writable",
            "chmod 1777",
        ),
        ({"sockets": 0o755}, "X sockets", WARN, "mode 755, not 1777", "chmod 1777"),
        ({"locks": ()}, "X locks", OK, "none in use", ""),
        (
            {"locks": (Lock("7", "empty"), Lock("8", ""), Lock("9", "its process 5 is dead"))},
            "X locks",
            WARN,
            "stale: :7 empty; :9 its process 5 is dead",
            "rm -f /tmp/.X7-lock /tmp/.X11-unix/X7 /tmp/.X9-lock /tmp/.X11-unix/X9 ",
        ),
        ({"runtime_problem": "cannot make it"}, "runtime directory", FAIL, "cannot make it", "export XDG_RUNTIME_DIR"),
        (
            {"runtime": f"/{'r' * 76}/deskhand"},
            "runtime directory",
            FAIL,
            "too long for the sockets in it",
            "at most 76 bytes",
        ),
        (
            {"runtime": f"/{'r' * 75}/deskhand"},
            "runtime directory",
            WARN,
            "too long for the sockets of browsers",
            "at most 38 b",
        ),
        (
            {"runtime": f"/{'r' * 38}/deskhand"},
            "runtime directory",
            WARN,
            "too long for the sockets of browsers",
            "at most 38 b",
        ),
        ({"runtime": f"/{'r' * 37}/deskhand"}, "runtime directory", OK, "rrr", ""),
        ({"shm": None}, "shared memory", WARN, "no /dev/shm", "mount"),
        ({"shm": (64 * MB, 64 * MB)}, "shared memory", WARN, "has 64 MB, browsers want 256", "--shm-size"),
        ({"shm": (256 * MB, 256 * MB)}, "shared memory", OK, "256 MB free", ""),
        ({"shm": (512 * MB, 3 * MB)}, "shared memory", WARN, "3 MB left of 512 MB", "empty it"),
        ({"locale": ""}, "locale", OK, "none set; programs on desktops get C.UTF-8", ""),
        ({"locale": "C"}, "locale", OK, "C; programs on desktops get C.UTF-8", ""),
        (
            {"locale": "C", "locales": frozenset({"de_de.utf8"})},
            "locale",
            FAIL,
            "C.UTF-8 is not installed",
            "export LANG",
        ),
        ({"locale": "fr_FR.UTF-8"}, "locale", FAIL, "fr_FR.UTF-8 is not installed", "localedef -i fr_FR"),
        ({"locale": "fr_FR.utf8", "locales": None}, "locale", OK, "fr_FR.utf8", ""),
        ({"locales": frozenset({"c", "posix"})}, "locale", FAIL, "none with UTF-8", "locales-all"),
        ({"fonts": None}, "fonts", WARN, "the fonts are unknown", "apt-get install fontconfig"),
        ({"fonts": Fonts(0, 0, 0, ())}, "fonts", FAIL, "none:", "fonts-dejavu"),
        ({"fonts": Fonts(0, 4, 0, ())}, "fonts", WARN, "only bitmap fonts (4)", "fonts-dejavu"),
        ({"fonts": Fonts(3, 4, 0, ())}, "fonts", WARN, "monospaced", "fonts-dejavu"),
        (
            {"fonts": Fonts(3, 0, 1, ("Japanese", "Korean"))},
            "fonts for CJK",
            WARN,
            "no font has Japanese, Korean",
            "noto-cjk",
        ),
        ({"fonts": Fonts(3, 0, 1, ("emoji",))}, "fonts for CJK", OK, "Chinese, Japanese and Korean", ""),
        ({"fonts": Fonts(3, 0, 1, ("emoji",))}, "fonts for emoji", WARN, "no font has emoji", "noto-color-emoji"),
        ({"docker": None, "debootstrap": None}, "containers", OK, "only desktops in containers need one", ""),
        ({"debootstrap": None}, "containers", WARN, "no image can be built", "apt-get install debootstrap"),
        ({"display": DisplayFacts(":9", "lacks XTEST", (), None)}, "display :9", FAIL, "lacks XTEST", ""),
        ({"display": DisplayFacts(":9", "", ("slower",), "us")}, "display :9", WARN, "slower", "same machine"),
        (
            {"display": DisplayFacts(":9", "", ("it is Xwayland",), "us")},
            "display :9",
            WARN,
            "it is Xwayland",
            "compositor's VNC",
        ),
        ({"display": DisplayFacts(":9", "", (), None)}, "keyboard layout", WARN, "unknown", "x11-xkb-utils"),
        ({"display": DisplayFacts(":9", "", (), "")}, "keyboard layout", OK, "none set", ""),
    ],
)
def test_judging(change: dict[str, object], name: str, state: State, detail: str, fix: str) -> None:
    check = found(replace(HEALTHY, **change), name)  # type: ignore[arg-type] # the table has the right types
    assert check.state is state
    assert detail in check.detail
    assert fix in check.fix
    assert bool(check.fix) == bool(fix)


class Machine:
    """Answers to what is asked of a machine; without any, nothing is installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.programs: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.asked_in: Mapping[str, str] = {}
        (root / "proc" / "42").mkdir(parents=True)
        (root / "tmp").mkdir()

    def run(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        self.asked_in = environment
        return self.answers.get(" ".join(argv))

    def runtime(self) -> Path:
        return Path("/run/user/1/deskhand")

    def look(self, target: Target) -> Sequence[str]:
        if target.display == ":1":
            raise ConnectFailed(":1", "no such display", "start it")
        return ("slow",)

    def system(self) -> System:
        return System(
            tmp=self.root / "tmp",
            shm=self.root / "shm",
            proc=self.root / "proc",
            environment=self.environment,
            which=self.programs.get,
            run=self.run,
            runtime=self.runtime,
            look=self.look,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_probing_an_empty_machine(machine: Machine) -> None:
    assert probe(machine.system()) == Facts(
        xvfb=None,
        manager=None,
        bus=None,
        fonts=None,
        locale="",
        locales=None,
        shm=None,
        locks=(),
        sockets=None,
        sockets_writable=True,
        runtime="/run/user/1/deskhand",
        runtime_problem="",
        docker=None,
        debootstrap=None,
        display=None,
    )


def test_probing_programs_and_texts(machine: Machine) -> None:
    machine.programs = {name: f"/bin/{name}" for name in ("Xvfb", "dbus-daemon", "twm", "icewm")}
    machine.environment = {"LC_ALL": "", "LC_CTYPE": "x.UTF-8", "LANG": "y"}
    machine.answers = {
        "locale -a": "C\nen_US.UTF-8\nC.utf8\n",
        "fc-list :scalable=true family": "A\nB\nA\n\n",
        "fc-list :scalable=false family": "Fixed\n",
        "fc-list :spacing=mono family": "B\n",
        "fc-list :lang=zh family": "A\n",
        "fc-list :lang=ja family": "A\n",
        "fc-list :lang=ko family": "",
        "fc-list :lang=und-zsye family": "",
    }
    (machine.root / "shm").mkdir()
    sockets = machine.root / "tmp" / ".X11-unix"
    sockets.mkdir()
    sockets.chmod(0o1755)
    facts = probe(machine.system())
    assert (facts.xvfb, facts.manager, facts.bus) == ("/bin/Xvfb", "/bin/icewm", "/bin/dbus-daemon")
    assert facts.locale == "x.UTF-8"
    assert facts.locales == {"c", "en_us.utf8", "c.utf8"}
    assert facts.fonts == Fonts(2, 1, 1, ("Korean", "emoji"))
    assert facts.sockets == 0o1755
    assert facts.shm is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"        42\n", ""),
        (b"        43\n", "its process 43 is dead"),
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xff\xfe", "names no process"),
    ],
)
def test_probing_locks(machine: Machine, content: bytes, problem: str) -> None:
    (machine.root / "tmp" / ".X7-lock").write_bytes(content)
    (machine.root / "tmp" / ".Xno-lock").write_bytes(b"")
    assert probe(machine.system()).locks == (Lock("7", problem),)


def test_probing_locks_that_cannot_be_read(machine: Machine) -> None:
    (machine.root / "tmp" / ".X10-lock").symlink_to("nowhere")
    (machine.root / "tmp" / ".X9-lock").mkdir()
    assert probe(machine.system()).locks == (Lock("9", "unreadable (Is a directory)"), Lock("10", "leads nowhere"))


def test_probing_without_a_runtime_directory(machine: Machine) -> None:
    def runtime() -> Path:
        raise BackendError("it belongs to somebody else")

    facts = probe(replace(machine.system(), runtime=runtime))
    assert (facts.runtime, facts.runtime_problem) == ("", "it belongs to somebody else")


def test_probing_a_display(machine: Machine) -> None:
    machine.answers = {
        "setxkbmap -display :2 -query": "rules:      evdev\nlayout:     de,us\nvariant:    nodeadkeys,\n"
    }
    facts = probe(machine.system(), Target(":2", "/cookie"))
    assert facts.display == DisplayFacts(":2", "", ("slow",), "de,us nodeadkeys,")
    assert machine.asked_in["XAUTHORITY"] == "/cookie"
    assert probe(machine.system(), Target(":3", None)).display == DisplayFacts(":3", "", ("slow",), None)
    gone = probe(machine.system(), Target(":1", None)).display
    assert gone == DisplayFacts(":1", "cannot connect to :1: no such display: start it", (), None)
