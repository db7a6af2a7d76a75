"""The images that containers are started from: how they are built, and the checks of their safety.

This module owns the build and the list of checks, which tests run. What must never appear here: a check that is a test's own.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ActionError, AuthFailed, ConnectFailed, LaunchFailed
from deskhand.launchers.docker.confinement import KEPT_USER, STAGES, made_from
from deskhand.launchers.docker.engine import ROOM_HINT, connect_engine
from deskhand.launchers.docker.launch import launch_docker
from deskhand.launchers.docker.leftovers import own_labels, remove_container
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.launchers.docker.engine import Engine

BASE = "debian:bookworm-slim"
# A line for each package; the image with all applications has 16 kB of them.
_LONGEST_RECORD = 4 << 20
_LOG_LINES = 30
_SHELL_LIMIT = 60.0
_SHOWN = 200
# Seconds without an answer of a registry.
_PULL_LIMIT = 60.0
_PACKAGES = "/usr/local/lib/deskhand/packages"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of a running container.

    Attributes:
        name: What must hold.
        ok: Whether it does.
        found: What the check saw.
    """

    name: str
    ok: bool
    found: str


def context() -> Path:
    """The directory with the Dockerfile, the base's script and what goes into the images."""
    return Path(str(resources.files("deskhand.launchers.docker") / "image"))


def build_image(
    stage: str = "minimal", *, name: str | None = None, tell: Callable[[str], object] = lambda _: None
) -> str:
    """Build a stage and the proxy, or find that they are built already; returns the stage's image's name.

    Args:
        stage: `minimal`, `desktop` or `osworld`.
        name: Its name; by default `deskhand/` and the stage.
        tell: Called with a line for each step, and for each package that differs from the former image of that name.

    Raises:
        ActionError: There is no such stage.
        LaunchFailed: It cannot be built; carries the end of the build's output.
    """
    if stage not in STAGES:
        raise ActionError(f"there is no stage {stage!r}: {' or '.join(STAGES)}")
    engine = connect_engine(timeout=3600)
    try:
        _ensure_base(engine, tell)
        # First, because the engine makes all stages before the requested one anyway.
        _build(engine, "proxy", "deskhand/proxy", tell)
        name = name or f"deskhand/{stage}"
        before = _identity(engine, name)
        _build(engine, stage, name, tell)
        if engine.is_rootless:
            # It copies the files for the user's number at the first start, which would take a launch's time.
            tell(f"{name} is made ready for this user")
            with _unstarted(engine, name, f"the image {name}", host_config=KEPT_USER):
                pass
        if before is not None and before != _identity(engine, name):
            for line in _compare(engine, before, name):
                tell(line)
        return name
    finally:
        engine.close()


def _identity(engine: Engine, name: str) -> str | None:
    """The id of an image, None when there is none."""
    try:
        with engine.translated(f"the image {name}"):
            found: str = engine.api.inspect_image(name)["Id"]
    except LaunchFailed as error:
        if isinstance(error.__cause__, engine.errors.NotFound):
            return None
        raise
    return found


def _compare(engine: Engine, old: str, new: str) -> list[str]:
    return compare_packages(_recorded(engine, old), _recorded(engine, new))


def recorded_packages(image: str) -> dict[str, str]:
    """The packages in an image's record, each with its version; the image is not started.

    Raises:
        LaunchFailed: There is no such image, or it has no record.
    """
    engine = connect_engine()
    try:
        return _recorded(engine, image)
    finally:
        engine.close()


@contextlib.contextmanager
def _unstarted(engine: Engine, image: str, what: str, **options: object) -> Iterator[str]:
    """A container that only exists: its files can be read."""
    # If this process is killed meanwhile, the next launch finds this lock free.
    directory = runtime_directory.private_directory()
    made = ""
    try:
        with runtime_directory.hold(directory), made_from(engine, image), engine.translated(what):
            labels = own_labels(directory)
            made = engine.api.create_container(image, labels=labels, command=["none"], **options)["Id"]
            yield made
    finally:
        if made:
            remove_container(engine, made)
        shutil.rmtree(directory, ignore_errors=True)


def _recorded(engine: Engine, image: str) -> dict[str, str]:
    what = f"the record of packages in {image}"
    with _unstarted(engine, image, what) as made:
        pieces, _ = engine.api.get_archive(made, _PACKAGES)
        packed = bytearray()
        for piece in pieces:
            packed += piece
            if len(packed) > _LONGEST_RECORD:
                hint = "use an image of `deskhand image build`, or one made from it"
                raise LaunchFailed(what, 0.0, "", f"it is too long: {hint}")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            file = archive.extractfile(posixpath.basename(_PACKAGES))
            lines = (file.read() if file is not None else b"").decode().splitlines()
    return {f"{name}:{kind}": version for name, version, kind in (line.split() for line in lines)}


def compare_packages(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The differences between two records, a line for each package; empty when they are equal."""
    return [
        f"package {name}: {old.get(name, 'was not there')} -> {new.get(name, 'is not there')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _build(engine: Engine, stage: str, name: str, tell: Callable[[str], object]) -> None:
    lines: list[str] = []
    failed = ""
    with engine.translated(f"the image {name}"):
        steps = engine.api.build(path=str(context()), tag=name, target=stage, rm=True, forcerm=True, decode=True)
        for message in steps:
            text = message.get("stream", "").rstrip()
            lines += text.splitlines()
            if text[:5].upper() == "STEP ":
                tell(text.splitlines()[0][:120])
            # Its last message: read on to the end, so that the connection is free again.
            failed = failed or message.get("error", "").strip()
    if failed:
        hint = ROOM_HINT if "no space left" in failed else failed
        raise LaunchFailed(f"the image {name}", 0.0, "\n".join(lines[-_LOG_LINES:]), hint)


def _ensure_base(engine: Engine, tell: Callable[[str], object]) -> None:
    what = f"the image {BASE}"
    if _identity(engine, BASE) is not None:
        return
    tell(f"Base image {BASE}: pulled, or made from Debian's packages")
    if (reason := _pull_base(what)) == "":
        return
    tell(f"No registry has it ({reason[:_SHOWN]}): it is made, which takes a minute")
    with tempfile.TemporaryDirectory(prefix="deskhand-") as directory:
        archive = str(Path(directory, "base.tar"))
        made = subprocess.run(["bash", str(context() / "base"), archive], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise LaunchFailed(what, 0.0, made.stderr, "it can neither be pulled nor built here")
        with engine.translated(what):
            # Podman does not read a tag of its own.
            engine.api.import_image(archive, repository=BASE, changes='CMD ["bash"]')


def _pull_base(what: str) -> str:
    """Pull the base; returns why that failed, and nothing if it did not."""
    engine = connect_engine(timeout=_PULL_LIMIT)
    repository, _, tag = BASE.partition(":")
    try:
        with engine.impatient(), engine.translated(what):
            messages = list(engine.api.pull(repository, tag=tag, stream=True, decode=True))
    except LaunchFailed as error:
        return str(error.__cause__)
    finally:
        engine.close()
    return next((str(message["error"]) for message in messages if "error" in message), "")


def check_image(image: str, *, against: str | None = None) -> list[Finding]:
    """Start a desktop from an image, check it from inside and outside, and end it again.

    Args:
        image: Its name.
        against: Another image, which should have the same packages in the same versions.

    Raises:
        LaunchFailed: It does not come up, or one of them has no record of its packages.
    """
    findings = []
    if against is not None:
        differences = compare_packages(recorded_packages(against), recorded_packages(image))
        findings.append(Finding(f"the packages are those of {against}", not differences, "\n".join(differences)))
    with launch_docker(image=image) as desktop:
        return [*findings, *examine_container(desktop)]


# What must hold, a command that prints the state, and a check of its output. Section 6 of the security notes calls these C6.
_INSIDE = (
    ("no process in it is root", "id -u", lambda text: text.strip() not in {"", "0"}),
    (
        "no capability, in force or obtainable",
        "grep ^Cap /proc/self/status",
        lambda text: len(text.splitlines()) == 5 and all(int(line.split()[1], 16) == 0 for line in text.splitlines()),
    ),
    ("no new rights (NoNewPrivs)", "grep NoNewPrivs /proc/self/status", lambda text: text.split()[-1:] == ["1"]),
    (
        "system calls are filtered (Seccomp)",
        "grep -E '^Seccomp:' /proc/self/status",
        lambda text: text.split()[-1:] == ["2"],
    ),
    ("no setuid or setgid file", "find / -xdev -type f -perm /6000 2>/dev/null", lambda text: not text.strip()),
    (
        "nothing outside of its own directories can be written",
        (
            "for d in / /etc /usr /usr/local/bin /usr/local/lib/deskhand /var /opt /srv; do "
            "touch $d/.probe 2>/dev/null && echo $d; done"
        ),
        lambda text: not text.strip(),
    ),
    (
        "its root is mounted read-only",
        "awk '$2 == \"/\" {print $4}' /proc/mounts",
        lambda text: "ro" in text.strip().split(","),
    ),
    ("no core dumps", "ulimit -Hc", lambda text: text.strip() == "0"),
    ("no engine socket", "ls /run/docker.sock /var/run/docker.sock 2>/dev/null", lambda text: not text.strip()),
    ("no device but the harmless ones", "find /dev -type b", lambda text: not text.strip()),
    ("no mount can be made", "mount -t tmpfs none /mnt 2>/dev/null && echo mounted", lambda text: not text.strip()),
    (
        "no TCP or UDP port is open",
        # State 0A is LISTEN; the first line is a heading.
        (
            "for f in tcp tcp6; do awk 'NR > 1 && $4 == \"0A\"' /proc/net/$f; done; "
            "for f in udp udp6; do awk 'NR > 1' /proc/net/$f; done"
        ),
        lambda text: not text.strip(),
    ),
    (
        "the packages are those that were recorded",
        r"""dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' | diff - /usr/local/lib/deskhand/packages""",
        lambda text: not text.strip(),
    ),
    ("a UTF-8 locale", "locale charmap", lambda text: text.strip() == "UTF-8"),
)


def examine_container(desktop: Desktop) -> Iterator[Finding]:
    """Make the checks of section 6 (C6, C11) on a running desktop."""
    for name, command, judge in _INSIDE:
        result = desktop.machine.run(command, timeout=_SHELL_LIMIT)
        text = result.stdout
        yield Finding(name, judge(text) and not result.timed_out, text.strip()[:200] or result.stderr.strip()[:200])
    yield _refuses_without_cookie(desktop)


def _refuses_without_cookie(desktop: Desktop) -> Finding:
    from deskhand.backends.x11.backend import X11Backend  # noqa: PLC0415 # the one check that needs a connection

    name = "X refuses clients without the cookie"
    if desktop.display is None:
        # The X socket of a container on another machine is reached from inside only.
        result = desktop.machine.run("XAUTHORITY=/dev/null xdpyinfo", timeout=_SHELL_LIMIT)
        return Finding(name, result.exit_code not in {0, None}, result.stderr.strip()[:200] or "it accepted the client")
    try:
        X11Backend(desktop.display, xauthority="/dev/null", view_only=True).close()
    except AuthFailed as error:
        return Finding(name, ok=True, found=error.reason)
    except ConnectFailed as error:
        return Finding(name, ok=False, found=error.reason)
    return Finding(name, ok=False, found="it accepted the client")
