"""Images of others with a desktop put on top, so that containers of them start like deskhand's own.

This module owns what is put on top, and that a build leaves nothing but the image that was asked for. What must never appear
here: what the image is for.

A Dockerfile is foreign code: the engine runs it as root in a container of the build, with the engine's network.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import threading
import time
from collections import deque
from typing import IO, TYPE_CHECKING, Any, TypedDict, Unpack

from deskhand.errors import LaunchFailed, shown
from deskhand.launchers.docker.engine import ROOM_HINT, connect_engine
from deskhand.launchers.docker.images import context
from deskhand.launchers.docker.spec import ContainerSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

_LABEL = "org.deskhand.displays"
_LOG_LINES, _LONGEST_LINE = 30, 300
# Installing the desktop's packages takes two minutes with a mirror nearby.
_DRESSING_LIMIT = 1800.0
_BUILT = re.compile(r"^ ---> ([0-9a-f]{12,64})$")
_NOISE = re.compile(r"^( --->.*|Removing intermediate container.*|\s*)$")
# Where programs of a desktop may never write, or what a container brings of its own.
_SYSTEM = frozenset(
    {"", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"}
)
_PLAIN = re.compile(r"/[\w./ +@,:=-]{0,1000}", re.ASCII)
_BEFORE = """
ARG TASK
FROM ${TASK} AS task
USER 0:0
RUN command -v apt-get >/dev/null || { echo 'a desktop is put on images of Debian and Ubuntu only' >&2; exit 1; } \\
 && for name in user "$(id -nu 1000 2>/dev/null)"; do if getent passwd "$name" >/dev/null; then userdel "$name"; fi; done \\
 && for name in user "$(getent group 1000 | cut -d: -f1)"; do if getent group "$name" >/dev/null; then groupdel "$name"; fi; \\
    done
"""
# What a container's own mounts hide of the image is taken where a desktop's home directory begins from. The root of a container
# cannot be written, but volumes can, and they begin with what the image has there.
_AFTER = """
FROM {above} AS dressed
USER 0:0
WORKDIR {directory}
RUN if [ -d /home/user ]; then cp -rT /home/user /etc/skel; fi \\
 && mkdir -p {folders} && chown -R {user}:{group} {folders} /etc/skel && chmod 0755 /root \\
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {{}} +
ENV HOME=/home/user
VOLUME {volumes}
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/lib/deskhand/supervisor"]
USER 1000:1000
"""

_building = threading.Lock()


def recipe_digest() -> bytes:
    """A digest of what is put on top, and of the user for whom it is: with another one, images are built anew."""
    whole = hashlib.sha256(f"{_BEFORE}{_AFTER}{ContainerSpec().numbers}".encode())
    for path in sorted(each for each in context().rglob("*") if each.is_file()):
        whole.update(f"\0{path.relative_to(context())}\0".encode() + path.read_bytes())
    return whole.digest()


def kept_by(folder: Path) -> Collection[str]:
    """The paths of a folder that its `.dockerignore` leaves in the context of a build."""
    from docker.utils import exclude_paths  # noqa: PLC0415 # with an engine it is installed

    ignore = folder / ".dockerignore"
    lines = ignore.read_text(encoding="utf-8", errors="replace").splitlines() if ignore.is_file() else []
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    kept: Collection[str] = exclude_paths(str(folder), patterns)
    return kept


def dress_image(
    name: str,
    source: str | IO[bytes],
    *,
    directory: str = "",
    writable: Sequence[str] = (),
    seconds: float = 600.0,
) -> None:
    """Build an image, unless it is there, and put a desktop on top of it. Images that have one already get none.

    Args:
        name: The name that it gets when it is whole.
        source: The name of an image, or the context of a build as tar.
        directory: Its working directory; by default the image's own.
        writable: Further directories that the desktop's user may write to.
        seconds: How long the build of a context may take.

    Raises:
        LaunchFailed: It cannot be built, and `log_tail` has the end of the output; or there is no engine.
    """
    # One after the other: a build that fails removes layers, which another one may be just using.
    with _building, contextlib.closing(connect_engine(timeout=max(seconds, _DRESSING_LIMIT))) as engine:
        if _inspect(engine, name) is not None:
            return
        with _cleared(engine) as made:
            base = source
            if not isinstance(base, str):
                what = f"the image of {name} without its desktop"
                base = _build(engine, what, made, seconds, fileobj=base, custom_context=True)
            elif _inspect(engine, base) is None:
                _pull(engine, base)
            text = _on_top(name, (_inspect(engine, base) or {}).get("Config") or {}, directory, writable)
            with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as file:
                file.write(text)
                file.flush()
                _build(
                    engine,
                    f"the image {name}",
                    made,
                    _DRESSING_LIMIT,
                    path=str(context()),
                    dockerfile=file.name,
                    buildargs={"TASK": base},
                    tag=name,
                )


def _on_top(name: str, found: dict[str, Any], directory: str, writable: Sequence[str]) -> str:
    """The Dockerfile of what is put on top of an image with this configuration."""
    directory = directory or found.get("WorkingDir") or "/"
    if directory.rstrip("/") in _SYSTEM or not _PLAIN.fullmatch(directory):
        why = f"its working directory is {shown(directory)}, where programs of a desktop may not write"
        raise LaunchFailed(f"the image {name}", 0.0, why, "name another WORKDIR")
    return _dockerfile(directory, writable, dressed=(found.get("Labels") or {}).get(_LABEL) == "yes")


def _dockerfile(directory: str, writable: Sequence[str], *, dressed: bool) -> str:
    """What is put on top: the stages of deskhand's own Dockerfile up to `minimal`, on another base."""
    own = re.split(r"^(?=FROM )", (context() / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages = {text.split()[3]: text for text in own[1:]}
    before = "ARG TASK\nFROM ${TASK} AS minimal\n"
    if not dressed:
        packages = stages["packages"].replace("${BASE}", "task", 1)
        before = f"{_BEFORE}\n{packages}\n{stages['minimal']}"
    user, group = ContainerSpec().numbers
    folders = list(dict.fromkeys([*writable, directory]))
    # Others are in memory: see `launchers/docker/host.py`.
    lasting = [each for each in folders if not each.startswith(("/home/user", "/tmp", "/run"))]  # noqa: S108
    quoted = [f"'{each}'" for each in folders]
    after = _AFTER.format(
        above="minimal",
        directory=directory,
        folders=" ".join(quoted),
        user=user,
        group=group,
        volumes="[" + ", ".join(f'"{each}"' for each in lasting) + "]",
    )
    return before + after


def _inspect(engine: Engine, name: str) -> dict[str, Any] | None:
    try:
        with engine.translated(f"the image {name}"):
            found: dict[str, Any] = engine.api.inspect_image(name)
    except LaunchFailed as error:
        if isinstance(error.__cause__, engine.errors.NotFound):
            return None
        raise
    return found


def _pull(engine: Engine, name: str) -> None:
    with engine.translated(f"the image {name}"):
        repository, _, tag = name.partition("@") if "@" in name else name.rpartition(":")
        if not repository or "/" in tag:
            repository, tag = name, "latest"
        engine.api.pull(repository, tag=tag)


class _BuildOptions(TypedDict, total=False):
    """Arguments of the SDK's `build`, as that names them."""

    buildargs: Mapping[str, str]
    custom_context: bool
    dockerfile: str
    fileobj: IO[bytes]
    path: str
    tag: str


def _build(engine: Engine, what: str, made: list[str], seconds: float, **options: Unpack[_BuildOptions]) -> str:
    """Build an image; returns its id. `made` gets the ids of what the build has made."""
    lines: deque[str] = deque(maxlen=_LOG_LINES)
    deadline = time.monotonic() + seconds
    failed, built, fresh = "", "", False
    with engine.translated(what):
        for message in engine.api.build(rm=True, forcerm=True, decode=True, **options):
            for line in message.get("stream", "").splitlines():
                lines.append(line[:_LONGEST_LINE])
                if line.startswith("Step "):
                    # What a stage begins with, and what an earlier build has made, is not of this one.
                    fresh = " : FROM " not in line
                elif line.strip() == "---> Using cache":
                    fresh = False
                elif fresh and (found := _BUILT.match(line)):
                    made.append(found[1])
            failed = failed or message.get("error", "").strip()
            built = message.get("aux", {}).get("ID", built)
            if time.monotonic() > deadline:
                failed = f"it takes more than {seconds:g} s"
                break
    if failed or not built:
        failed = failed or "it has no image"
        log = "\n".join([*(each for each in lines if not _NOISE.match(each)), failed])
        raise LaunchFailed(what, 0.0, log, ROOM_HINT if "no space left" in failed else failed)
    return built


@contextlib.contextmanager
def _cleared(engine: Engine) -> Iterator[list[str]]:
    """Gets the ids of layers, and removes those that belong to no image: a build that fails leaves the last of them."""
    made: list[str] = []
    try:
        yield made
    finally:
        for identifier in reversed(made):
            # One that an image is made of cannot be removed, and one with a name is a user's own.
            with contextlib.suppress(engine.errors.DockerException, OSError):
                if not engine.api.inspect_image(identifier)["RepoTags"]:
                    engine.api.remove_image(identifier, noprune=True)
