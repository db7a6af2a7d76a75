"""A desktop in a container: hardened by default, reached through its X socket, gone when the driver is.

This module owns how a container is started and what it may do. What must never appear here: a fixed sleep, an open port, a
container that nobody would remove.

Who removes it, in this order: `Desktop.close`; the guard process, when the driver vanishes; `reap`, at the next launch, when
that was killed too. See `deskhand.launch.leftovers`.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.backends.x11 import X11Backend
from deskhand.desktop import Desktop
from deskhand.errors import ActionError, AuthFailed, ConnectFailed, DesktopLost, LaunchFailed
from deskhand.launch import registry
from deskhand.launch.allowlist import parse_hosts
from deskhand.launch.confinement import confined, create
from deskhand.launch.container import Container, ContainerPrograms
from deskhand.launch.engine import Engine, connect_engine
from deskhand.launch.leftovers import SOCKETS, links_to, own_labels, reap, settle_removal
from deskhand.launch.processes import Guard
from deskhand.launch.proxy import enclose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.launch.allowlist import AllowedHost
    from deskhand.launch.proxy import Enclosure

__all__ = [
    "DEFAULT_IMAGE",
    "Limits",
    "Mount",
    "connect_docker",
    "launch_docker",
]

DEFAULT_IMAGE = "deskhand/minimal"
LABEL_PANEL = "org.deskhand.panel"
# Seconds that a guard gives an engine which was asked for a container and has not made it yet.
REMOVAL_LIMIT = 300.0

_READY_LIMIT = 30.0
_LEASE_LIMIT = 10.0
_LARGEST = 16384
_POLL = 0.005
_EXIT_POLL = 0.1
_LEASED = "one driver at a time"
# A busy engine was seen to take more than 15 s to make a container: who was interrupted waits no longer, the guard does.
_UNANSWERED_LIMIT = 5.0
_FIRST_NUMBER, _NUMBERS = 100, 9900
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
    network: str | Sequence[str] = "none",
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
        network: `"none"`; `"bridge"` to reach whatever this machine does; or a list of hosts that it may reach and no others,
            through a proxy beside it: `["example.org", "*.example.org:443", "intranet.example:8080=10.0.0.5"]`. A host has
            ports 80 and 443 unless it names another one; `*.` is any name below it, not itself. A name that resolves to an
            address of this machine or of a private network is refused unless its entry names the address, after `=`. No
            port is published in any case.
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
    _check_size(size)
    hosts = _check_network(network)
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
            "DESKHAND_SIZE": f"{size[0]}x{size[1]}",
            "DESKHAND_DPI": str(dpi),
            **({"DESKHAND_VNC": "1"} if vnc else {}),
            **({_NO_MANAGER: "none"} if window_manager is None else {}),
            **(env or {}),
        }
        all_labels = {**(labels or {}), **own_labels(plan.directory)}
        enclosure = _enclose(plan, hosts, all_labels) if hosts else None
        container = _create(plan, environment, enclosure or str(network), mounts, limits, labels=all_labels)
        with engine.translated(f"the container {plan.name}"):
            engine.api.start(container.id)
        left = timeout - (time.monotonic() - begun)
        managed = window_manager is not None
        backend = _open(container, plan.socket, plan.xauthority, left, managed=managed, method=method, view_only=False)
        if enclosure is not None:
            enclosure.await_ready(engine, begun + timeout)
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
    sockets = next((Path(m["Source"]) for m in found["Mounts"] if m["Destination"] == SOCKETS), None)
    if sockets is None:
        raise ConnectFailed(
            target, f"its {SOCKETS} is not a directory of this machine", f"start it with -v DIRECTORY:{SOCKETS}"
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


def _check_size(size: tuple[int, int]) -> None:
    width, height = size
    if not (isinstance(width, int) and isinstance(height, int) and 1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise ActionError(f"a screen must be 1x1 to {_LARGEST}x{_LARGEST} pixels, not {width}x{height}")


def _check_network(network: str | Sequence[str]) -> tuple[AllowedHost, ...]:
    """The hosts that may be reached; none for a whole network."""
    if not isinstance(network, str):
        return parse_hosts(network)
    if network not in {"none", "bridge"}:
        raise ActionError(
            f"network must be 'none' or 'bridge', or a list of hosts such as ['example.org'], not {network!r}"
        )
    return ()


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
    if not mount.target.startswith("/") or mount.target in {"/", SOCKETS, _HOME, "/tmp", "/run"}:  # noqa: S108
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
            (Path(SOCKETS) / f"X{number}").symlink_to(target)
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


def _number_of(sockets: Path) -> str | None:
    return next((f":{path.name.removeprefix('X')}" for path in links_to(sockets)), None)


def _enclose(plan: _Plan, hosts: Sequence[AllowedHost], labels: Mapping[str, str]) -> Enclosure:
    return enclose(plan.engine, hosts, name=plan.name, user=plan.user, directory=plan.directory, labels=labels)


def _create(
    plan: _Plan,
    environment: Mapping[str, str],
    network: str | Enclosure,
    mounts: Sequence[Mount],
    limits: Limits,
    *,
    labels: Mapping[str, str],
) -> Container:
    owner = f"uid={plan.user[0]},gid={plan.user[1]}"
    binds = {str(plan.sockets): {"bind": SOCKETS, "mode": "rw"}}
    for mount in mounts:
        binds[str(Path(mount.source).resolve())] = {"bind": mount.target, "mode": "rw" if mount.writable else "ro"}
    options: dict[str, Any] = {"network_mode": network}
    networking = None
    if not isinstance(network, str):
        binds |= network.binds
        environment = {**network.environment, **environment}
        options = network.host_options()
        networking = network.networking(plan.engine)
    host = confined(
        plan.engine,
        memory=limits.memory,
        cpus=limits.cpus,
        processes=limits.processes,
        tmpfs={
            "/tmp": f"size={limits.temporary},mode=1777",  # noqa: S108
            "/run": f"size={64 << 20},mode=0755,{owner}",
            # Programs that people download or build run from here.
            _HOME: f"size={limits.home},mode=0700,exec,{owner}",
        },
        binds=binds,
        shm_size=limits.shared_memory,
        **options,
    )
    made = create(
        plan.engine,
        plan.directory,
        plan.image,
        plan.name,
        user=plan.user,
        labels=labels,
        environment=environment,
        host_config=host,
        networking_config=networking,
    )
    return Container(plan.engine, made, plan.name)


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
            done = settle_removal(plan.engine, plan.directory)
            # The engine goes on making what nobody waits for any more.
            while not done and time.monotonic() < deadline:
                time.sleep(_EXIT_POLL)
                done = settle_removal(plan.engine, plan.directory)
        finally:
            if done:
                guard.close()
            else:
                guard.abandon()
            plan.engine.close()

    return end
