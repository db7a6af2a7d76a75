"""A desktop in a container: hardened by default, reached through its X socket, gone when the driver is.

This module owns how a container is started and what it may do. What must never appear here: a fixed sleep, an open port, a
container that nobody would remove.

Who removes it, in this order: `Desktop.close`; the guard process, when the driver vanishes; `reap`, at the next launch, when
that was killed too. A container's lease is the lock that its guard holds on a file of the directory that the container names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import struct
import sys
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.backends.x11 import X11Backend
from deskhand.desktop import Desktop
from deskhand.errors import ActionError, AuthFailed, BackendError, ConnectFailed, DesktopLost, LaunchFailed
from deskhand.launch import registry
from deskhand.launch.container import Container, ContainerPrograms
from deskhand.launch.engine import Engine, connect_engine
from deskhand.launch.processes import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "DEFAULT_IMAGE",
    "Limits",
    "Mount",
    "connect_docker",
    "launch_docker",
    "reap",
    "remove_container",
    "remove_of",
]

DEFAULT_IMAGE = "deskhand/minimal"
LABEL_DIRECTORY = "org.deskhand.directory"
LABEL_HOST = "org.deskhand.host"
LABEL_DRIVER = "org.deskhand.driver"
LABEL_PANEL = "org.deskhand.panel"
UNANSWERED = ".unanswered"
# Seconds that a guard gives an engine which was asked for a container and has not made it yet.
REMOVAL_LIMIT = 300.0

_READY_LIMIT = 30.0
_LEASE_LIMIT = 10.0
_LARGEST = 16384
_POLL = 0.005
_EXIT_POLL = 0.1
_LOG_BYTES = "1m"
_LEASED = "one driver at a time"
# A busy engine was seen to take more than 15 s to make a container: who was interrupted waits no longer, the guard does.
_UNANSWERED_LIMIT = 5.0
_FIRST_NUMBER, _NUMBERS = 100, 9900
_SOCKETS = "/tmp/.X11-unix"  # noqa: S108 # where X clients look, in the container as here
_HOME = "/home/user"
_CONTAINER_USER = (1000, 1000)
_FAMILY_LOCAL, _FAMILY_WILD = 256, 65535
_NO_MANAGER = "DESKHAND_WINDOW_MANAGER"
_FEATURES = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use.

    Attributes:
        memory: Bytes, swap included; files in its home and temporary directories count.
        cpus: Processors; never more than there are.
        processes: Processes and threads together.
        shared_memory: Bytes of `/dev/shm`, where browsers keep their pictures.
        home: Bytes of its home directory, which is in memory.
        temporary: Bytes of `/tmp`, which is too.
    """

    memory: int = 2 << 30
    cpus: float = 2.0
    processes: int = 512
    shared_memory: int = 1 << 30
    home: int = 1 << 30
    temporary: int = 512 << 20

    def __post_init__(self) -> None:
        if min(self.memory, self.processes, self.shared_memory, self.home, self.temporary) < 1 or not self.cpus > 0:
            raise ActionError(f"every limit must be greater than 0: {self}")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of this machine that a container sees.

    Attributes:
        source: Its path here.
        target: Its absolute path there.
        writable: Whether it may be changed there.
    """

    source: str | os.PathLike[str]
    target: str
    writable: bool = False


@dataclass
class _Plan:
    """One container to be."""

    engine: Engine
    image: str
    name: str
    user: tuple[int, int]
    directory: Path
    cookie: bytes

    @property
    def unanswered(self) -> Path:
        """There while the container was asked for and is not known to be made: who is interrupted in between cannot tell."""
        return self.directory / UNANSWERED

    @property
    def sockets(self) -> Path:
        return self.directory / "x11"

    @property
    def xauthority(self) -> Path:
        return self.sockets / "xauthority"

    @property
    def socket(self) -> str:
        return f"unix:{self.sockets / 'X0'}"


def launch_docker(
    *,
    image: str = DEFAULT_IMAGE,
    size: tuple[int, int] = (1280, 800),
    name: str | None = None,
    window_manager: str | None = "auto",
    network: str = "none",
    mounts: Sequence[Mount] = (),
    env: Mapping[str, str] | None = None,
    user: tuple[int, int] | None = None,
    limits: Limits | None = None,
    vnc: bool = False,
    dpi: int = 96,
    labels: Mapping[str, str] | None = None,
    method: str | None = None,
    timeout: float = _READY_LIMIT,
) -> Desktop:
    """Start a desktop in a container of its own and return it ready for use; see `deskhand.launch`.

    Args:
        image: An image of `deskhand image build`, or one made from it.
        size: Width and height in pixels.
        name: The container's name, and the one it is listed under; by default one that nobody else has.
        window_manager: `"auto"` for the image's own, and its panel; None for none.
        network: `none`, or `bridge` to reach whatever this machine does. No port is published in either case.
        mounts: What it sees of this machine; nothing by default, read-only unless it says so.
        env: Added to the environment of everything in it.
        user: Numbers of user and group in it, not 0; by default yours, 1000:1000 if you are root.
        limits: What it may use.
        vnc: Serve RFB too, at the Unix socket `vnc` beside the X socket, for who may enter that directory.
        dpi: Dots per inch that the display reports.
        labels: Added to the container's.
        method: See `deskhand.launch`.
        timeout: Seconds until it must be ready.

    Raises:
        LaunchFailed: No engine, no right to use it, no such image, no room, or the desktop did not come up.
        ActionError: An argument is impossible, the name is taken, or a mount does not exist.
    """
    width, height = size
    if not (isinstance(width, int) and isinstance(height, int) and 1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise ActionError(f"a screen must be 1x1 to {_LARGEST}x{_LARGEST} pixels, not {width}x{height}")
    if network not in {"none", "bridge"}:
        raise ActionError(f"network must be 'none' or 'bridge', not {network!r}")
    if window_manager not in {"auto", None}:
        raise ActionError(f"a container brings its own window manager: 'auto' or None, not {window_manager!r}")
    if name is not None:
        registry.check_name(name)
    limits = limits or Limits()
    for mount in mounts:
        _check_mount(mount)
    numbers = user or _own_user()
    if 0 in numbers:
        raise ActionError("user 0 in a container is root: choose another number")
    engine = connect_engine()
    try:
        _check_engine(engine)
        reap(engine)
    except BaseException:
        engine.close()
        raise
    begun = time.monotonic()
    guard = Guard.start(registry.private_directory())
    backend = None
    plan = _Plan(
        engine, image, name or f"deskhand-{secrets.token_hex(6)}", numbers, guard.directory, secrets.token_bytes(16)
    )
    try:
        _prepare(plan, guard)
        environment = {
            "DESKHAND_SIZE": f"{width}x{height}",
            "DESKHAND_DPI": str(dpi),
            **({"DESKHAND_VNC": "1"} if vnc else {}),
            **({_NO_MANAGER: "none"} if window_manager is None else {}),
            **(env or {}),
        }
        container = _create(plan, environment, network, mounts, limits, labels=labels or {})
        with engine.translated(f"the container {plan.name}"):
            engine.api.start(container.id)
        left = timeout - (time.monotonic() - begun)
        managed = window_manager is not None
        backend = _open(container, plan.socket, plan.xauthority, left, managed=managed, method=method, view_only=False)
        display = _publish(plan)
        end = _ending(plan, guard)
        on_close: list[Callable[[], None]] = [end]
        if name is not None:
            files = (str(plan.xauthority), str(plan.directory))
            entry = registry.Entry(name, display, *files, guard.pid, "", time.time(), container.id)
            registry.add(entry)
            on_close.append(lambda: registry.remove(entry))
        return Desktop(
            backend,
            display=display,
            xauthority=plan.xauthority,
            name=plan.name,
            guard=lambda: ContainerPrograms(container, guard),
            owns_processes=True,
            inside=container,
            on_close=on_close,
        )
    except BaseException:
        if backend is not None:
            backend.close()
        _ending(plan, guard)()
        raise


def connect_docker(name: str, *, timeout: float = 10.0, view_only: bool = False, method: str | None = None) -> Desktop:
    """Drive a desktop of a container that runs already; see `deskhand.connect`.

    Args:
        name: The container's name or id.
        timeout: Seconds to wait for one that is just starting.
        view_only: Only look.
        method: See `deskhand.launch`.

    Raises:
        ConnectFailed: There is none, it does not run, or its X socket cannot be reached from here.
        LaunchFailed: No engine answers.
    """
    target = f"docker://{name}"
    engine = connect_engine()
    try:
        found = engine.api.inspect_container(name)
    except engine.errors.NotFound as error:
        raise ConnectFailed(target, "there is no such container", "see `docker ps`, or launch one") from error
    container = Container(engine, found["Id"], found["Name"].lstrip("/"))
    sockets = next((Path(m["Source"]) for m in found["Mounts"] if m["Destination"] == _SOCKETS), None)
    if sockets is None:
        raise ConnectFailed(
            target, f"its {_SOCKETS} is not a directory of this machine", f"start it with -v DIRECTORY:{_SOCKETS}"
        )
    xauthority = sockets / "xauthority"
    try:
        managed = f"{_NO_MANAGER}=none" not in found["Config"]["Env"]
        backend = _open(
            container,
            f"unix:{sockets / 'X0'}",
            xauthority,
            timeout,
            managed=managed,
            method=method,
            view_only=view_only,
        )
    except LaunchFailed as error:
        raise ConnectFailed(target, error.message) from error
    return Desktop(
        backend,
        display=_number_of(sockets) or f"unix:{sockets / 'X0'}",
        xauthority=xauthority,
        name=container.name,
        guard=lambda: ContainerPrograms(container, None),
        view_only=view_only,
        inside=container,
        on_close=[engine.close],
    )


def reap(engine: Engine) -> list[str]:
    """Remove the containers of this machine's drivers that were killed together with their guards; returns their names.

    A container whose guard lives holds a lock on `.guard` in its directory.
    """
    removed = []
    with engine.translated("the list of containers"):
        found = engine.api.containers(all=True, filters={"label": [f"{LABEL_HOST}={_host()}"]})
    for entry in found:
        directory = Path(entry["Labels"].get(LABEL_DIRECTORY, ""))
        if directory.is_absolute() and _is_abandoned(directory):
            remove_of(engine, directory)
            removed.append(entry["Names"][0].lstrip("/"))
    return removed


def remove_container(engine: Engine, container: str) -> None:
    """Remove a container, running or not; one that is gone is fine.

    Raises:
        BackendError: The engine refuses, or does not answer.
    """
    try:
        engine.api.remove_container(container, force=True, v=True)
    except engine.errors.NotFound:
        return
    except (engine.errors.DockerException, OSError) as error:
        # Somebody else may be at it.
        if "already in progress" not in str(error):
            raise BackendError(f"cannot remove the container {container}: {error}") from error


def remove_of(engine: Engine, directory: str | os.PathLike[str]) -> bool:
    """Remove the container of a directory, by its label: another may have its name. False when there is none.

    Raises:
        BackendError: The engine refuses, or does not answer.
    """
    try:
        label = f"{LABEL_DIRECTORY}={os.fspath(directory)}"
        found = engine.api.containers(all=True, filters={"label": label})
    except (engine.errors.DockerException, OSError) as error:
        raise BackendError(f"the Docker engine does not answer: {error}") from error
    for entry in found:
        remove_container(engine, entry["Id"])
    for link in _links_to(directory):
        link.unlink(missing_ok=True)
    return bool(found)


def _is_abandoned(directory: Path) -> bool:
    try:
        with (directory / ".guard").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _host() -> str:
    """This machine and user, as other machines that share the engine do not have them."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"{socket.gethostname()}/{machine}/{os.getuid()}"


def _own_user() -> tuple[int, int]:
    return (os.getuid(), os.getgid()) if os.getuid() != 0 else _CONTAINER_USER


def _check_engine(engine: Engine) -> None:
    """An engine elsewhere is refused, and a limit that it would quietly leave out is named."""
    if not engine.is_local:
        hint = "launch it there, and connect through VNC: deskhand.connect('vnc+unix://...') over a tunnel"
        raise LaunchFailed("a local Docker engine", 0.0, "", f"DOCKER_HOST names one of another machine; {hint}")
    missing = [what for feature, what in _FEATURES.items() if not engine.info.get(feature)]
    if not any("name=seccomp" in option or option == "seccomp" for option in engine.info.get("SecurityOptions", [])):
        missing.append("system calls (seccomp)")
    if missing:
        hint = f"it cannot limit {', '.join(missing)}: enable these cgroup controllers, or use another engine"
        raise LaunchFailed("a Docker engine that can hold a desktop", 0.0, "", hint)


def _check_mount(mount: Mount) -> None:
    path = Path(mount.source)
    if not path.exists():
        raise ActionError(f"the mount {str(path)!r} does not exist: make it first, Docker would make it for root")
    if not mount.target.startswith("/") or mount.target in {"/", _SOCKETS, _HOME, "/tmp", "/run"}:  # noqa: S108
        raise ActionError(f"a mount must go to an absolute path that is not the desktop's own, not {mount.target!r}")
    if path.resolve().name == "docker.sock":
        raise ActionError("the engine's socket in a container is root on this machine: it is not mounted")


def _prepare(plan: _Plan, guard: Guard) -> None:
    """The directory that the container sees, and who removes both should this process be killed."""
    removal = [sys.executable, "-m", "deskhand.launch.removal", str(plan.directory)]
    guard.at_end(removal, dict(os.environ), limit=REMOVAL_LIMIT)
    begun = time.monotonic()
    # From here on `reap` of another driver knows that this container has somebody.
    while not (plan.directory / ".guard").exists():
        if time.monotonic() - begun > _LEASE_LIMIT:
            raise LaunchFailed("the guard process", time.monotonic() - begun)
        time.sleep(0.001)
    plan.sockets.mkdir(mode=0o700)
    plan.xauthority.touch(mode=0o600)
    plan.xauthority.write_bytes(_cookie_entry(_FAMILY_WILD, b"", b"", plan.cookie))
    if plan.user[0] != os.getuid():
        try:
            os.chown(plan.sockets, *plan.user)
            os.chown(plan.xauthority, *plan.user)
        except PermissionError:
            # Only root may give files away. The directory above lets nobody else in.
            plan.sockets.chmod(0o777)
            plan.xauthority.chmod(0o644)


def _cookie_entry(family: int, address: bytes, number: bytes, cookie: bytes) -> bytes:
    fields = (address, number, b"MIT-MAGIC-COOKIE-1", cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in fields)


def _publish(plan: _Plan) -> str:
    """A display number under which X clients of this machine find the socket; most know no other way to name one."""
    target = plan.sockets / "X0"
    while True:
        number = _FIRST_NUMBER + secrets.randbelow(_NUMBERS)
        if Path(f"/tmp/.X{number}-lock").exists():  # noqa: S108 # where every X server has it
            continue
        try:
            (Path(_SOCKETS) / f"X{number}").symlink_to(target)
        except FileExistsError:
            continue
        except OSError:
            # No X server has ever run here, or not for us: our own connection goes by the path anyway.
            return f"unix:{target}"
        break
    # Not every client knows wildcards (python-xlib does not, and with it PyAutoGUI and pynput).
    with plan.xauthority.open("ab") as file:
        file.write(_cookie_entry(_FAMILY_LOCAL, socket.gethostname().encode(), str(number).encode(), plan.cookie))
    return f":{number}"


def _links_to(directory: str | os.PathLike[str]) -> list[Path]:
    """The display numbers that lead into a directory."""
    found = []
    for path in Path(_SOCKETS).glob("X*"):
        with contextlib.suppress(OSError):
            if path.is_symlink() and path.readlink().is_relative_to(directory):
                found.append(path)
    return found


def _number_of(sockets: Path) -> str | None:
    return next((f":{path.name.removeprefix('X')}" for path in _links_to(sockets)), None)


def _create(
    plan: _Plan,
    environment: Mapping[str, str],
    network: str,
    mounts: Sequence[Mount],
    limits: Limits,
    *,
    labels: Mapping[str, str],
) -> Container:
    api = plan.engine.api
    owner = f"uid={plan.user[0]},gid={plan.user[1]}"
    binds = {str(plan.sockets): {"bind": _SOCKETS, "mode": "rw"}}
    for mount in mounts:
        binds[str(Path(mount.source).resolve())] = {"bind": mount.target, "mode": "rw" if mount.writable else "ro"}
    host = api.create_host_config(
        network_mode=network,
        read_only=True,
        tmpfs={
            "/tmp": f"size={limits.temporary},mode=1777",  # noqa: S108
            "/run": f"size={64 << 20},mode=0755,{owner}",
            # Programs that people download or build run from here.
            _HOME: f"size={limits.home},mode=0700,exec,{owner}",
        },
        binds=binds,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={_seccomp()}"],
        pids_limit=limits.processes,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        nano_cpus=round(min(limits.cpus, plan.engine.info["NCPU"]) * 1e9),
        shm_size=limits.shared_memory,
        ipc_mode="private",
        ulimits=[{"Name": "core", "Soft": 0, "Hard": 0}],
        # What it writes is bounded on this machine's disk as well.
        log_config={"Type": "json-file", "Config": {"max-size": _LOG_BYTES, "max-file": "1"}},
    )
    own = {
        LABEL_DIRECTORY: str(plan.directory),
        LABEL_HOST: _host(),
        LABEL_DRIVER: f"process {os.getpid()} on {socket.gethostname()}",
    }
    plan.unanswered.touch()
    try:
        with plan.engine.translated(f"the container {plan.name}"):
            made = api.create_container(
                plan.image,
                name=plan.name,
                user=f"{plan.user[0]}:{plan.user[1]}",
                environment=dict(environment),
                labels={**labels, **own},
                host_config=host,
                detach=True,
            )
    except LaunchFailed as error:
        cause = error.__cause__
        if isinstance(cause, plan.engine.errors.APIError):
            plan.unanswered.unlink()
        if isinstance(cause, plan.engine.errors.ImageNotFound):
            stage = plan.image.removeprefix("deskhand/").partition(":")[0]
            build = (
                f"deskhand image build {stage}" if plan.image.startswith("deskhand/") else f"docker pull {plan.image}"
            )
            raise LaunchFailed(f"the image {plan.image}", 0.0, "", f"it is not here: {build}") from error
        if getattr(cause, "status_code", None) == 409:
            message = (
                f"there is a container named {plan.name!r} already; choose another name, or `deskhand down {plan.name}`"
            )
            raise ActionError(message) from error
        raise
    plan.unanswered.unlink()
    return Container(plan.engine, made["Id"], plan.name)


def _seccomp() -> str:
    text = (resources.files("deskhand") / "image" / "seccomp.json").read_text()
    return json.dumps(json.loads(text), separators=(",", ":"))


def _open(
    container: Container,
    display: str,
    xauthority: Path,
    timeout: float,
    *,
    managed: bool,
    method: str | None,
    view_only: bool,
) -> X11Backend:
    """Started: the X server answers, a window manager rules. The first picture is part of opening a display."""
    begun = time.monotonic()
    checked = begun
    backend: X11Backend | None = None
    reason = "the X server"
    try:
        while True:
            now = time.monotonic()
            if now - checked >= _EXIT_POLL:
                checked = now
                _check_running(container, now - begun)
            if now - begun >= timeout:
                break
            if backend is None:
                try:
                    backend = X11Backend(display, xauthority=xauthority, view_only=view_only, method=method)
                except (ConnectFailed, DesktopLost, AuthFailed) as error:
                    # Who drives it already is no server that is just starting, or just ending.
                    if isinstance(error, ConnectFailed) and error.reason == _LEASED:
                        raise
                    # The directory belongs to the container: nobody tells us when the socket is there.
                    time.sleep(_POLL)
                continue
            missing = _missing(container, backend) if managed else ""
            if not missing:
                return backend
            reason = missing
            backend.wait(_POLL)
        failed = LaunchFailed(reason, time.monotonic() - begun, _log(container))
    except BaseException:
        if backend is not None:
            backend.close()
        raise
    if backend is not None:
        backend.close()
    raise failed


def _missing(container: Container, backend: X11Backend) -> str:
    """What a desktop with a window manager waits for; empty when it is all there."""
    if not backend.has_window_manager():
        return "the window manager"
    panel = container.labels.get(LABEL_PANEL)
    if panel and all(window.class_name.lower() != panel for window in backend.windows()):
        return "the panel"
    return ""


def _check_running(container: Container, waited: float) -> None:
    state = container.inspect()["State"]
    if not state["Running"] and not state["Restarting"] and state["Status"] != "created":
        raise LaunchFailed(
            f"the desktop in {container.name}", waited, _log(container), f"it ended with {state['ExitCode']}"
        )


def _log(container: Container) -> str:
    try:
        return container.logs(None)
    except (container.engine.errors.DockerException, OSError):
        return ""


def _ending(plan: _Plan, guard: Guard) -> Callable[[], None]:
    """Removes container, guard and directory. What is interrupted, or takes too long, is the guard's to finish."""

    def end() -> None:
        deadline = time.monotonic() + _UNANSWERED_LIMIT
        done = False
        try:
            done = remove_of(plan.engine, plan.directory)
            # The engine goes on making what nobody waits for any more.
            while not done and plan.unanswered.exists() and time.monotonic() < deadline:
                time.sleep(_EXIT_POLL)
                done = remove_of(plan.engine, plan.directory)
            # Somebody else may have removed it.
            done = done or not plan.unanswered.exists()
        finally:
            if done:
                guard.close()
            else:
                guard.abandon()
            plan.engine.close()

    return end
