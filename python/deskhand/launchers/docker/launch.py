"""A desktop in a container: hardened by default, reached through its X socket, gone when the driver is.

Where the engine is on another machine it is reached over VNC instead (`deskhand.launchers.docker.over_vnc`).

This module owns how a container is started and what it may do. What must never appear here: a fixed sleep, an open port, a
container that nobody would remove.

Who removes it, in this order: `Desktop.close`; the guard process, when the driver vanishes; `reap`, at the next launch, when
that was killed too. See `deskhand.launchers.docker.leftovers`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import (
    expect,
    expect_amount,
    expect_flag,
    expect_integer,
    expect_path,
    expect_several,
    expect_text,
    expect_texts,
    expect_word,
)
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, BackendError, LaunchFailed, shown
from deskhand.launchers import registry
from deskhand.launchers.display import check_display
from deskhand.launchers.docker.allow_list import parse_hosts
from deskhand.launchers.docker.confinement import confined, create
from deskhand.launchers.docker.connect import NO_MANAGER, expected_of, open_over_vnc, open_over_x
from deskhand.launchers.docker.container import Container, ContainerPrograms
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE, HOME, OWN, Berth
from deskhand.launchers.docker.engine import Engine, connect_engine
from deskhand.launchers.docker.leftovers import SOCKETS, own_labels, reap, settle_removal
from deskhand.launchers.docker.mounting import check_source, engine_sockets
from deskhand.launchers.docker.proxy import enclose
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard
from deskhand.machine.program_arguments import program_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.backends.vnc.backend import VncBackend
    from deskhand.backends.x11.backend import X11Backend
    from deskhand.launchers.docker.allow_list import AllowedHost
    from deskhand.launchers.docker.proxy import Enclosure

__all__ = [
    "House",
    "Limits",
    "Mount",
    "Order",
    "build_house",
    "launch_docker",
]

# Seconds that a guard gives an engine which was asked for a container and has not made it yet.
REMOVAL_LIMIT = 300.0

_READY_LIMIT = 30.0
_LEASE_LIMIT = 10.0
_LARGEST_USER = 2**32 - 2
_EXIT_POLL = 0.1
# A busy engine was seen to take more than 15 s to make a container: who was interrupted waits no longer, the guard does.
_UNANSWERED_LIMIT = 5.0
_CONTAINER_USER = (1000, 1000)
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

    Raises:
        ActionError: One is not greater than 0.
    """

    memory: int = 2 << 30
    cpus: float = 2.0
    processes: int = 512
    shared_memory: int = 1 << 30
    home: int = 1 << 30
    temporary: int = 512 << 20

    def __post_init__(self) -> None:
        for name in ("memory", "processes", "shared_memory", "home", "temporary"):
            expect_integer(f"Limits: {name}", getattr(self, name), 1)
        expect_amount("Limits: cpus", self.cpus)


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the engine's machine that a container sees; that is this one, unless the engine is remote.

    Attributes:
        source: Its path there; absolute where the engine is remote.
        target: Its absolute path there.
        writable: Whether it may be changed there.

    Raises:
        ActionError: One is of a wrong type.
    """

    source: str | os.PathLike[str]
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        expect_path("Mount: source", self.source)
        expect_text("Mount: target", self.target)
        expect_flag("Mount: writable", self.writable)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is wanted of a container: the arguments of `launch_docker`, checked."""

    image: str = DEFAULT_IMAGE
    size: tuple[int, int] = (1280, 800)
    name: str | None = None
    window_manager: str | None = "auto"
    network: str | Sequence[str] = "none"
    mounts: Sequence[Mount] = ()
    env: Mapping[str, str] | None = None
    user: tuple[int, int] | None = None
    limits: Limits | None = None
    vnc: bool = False
    dpi: int = 96
    labels: Mapping[str, str] | None = None
    method: str | None = None
    remote: bool | None = None
    timeout: float = _READY_LIMIT

    def __post_init__(self) -> None:
        check_display(
            size=self.size,
            dpi=self.dpi,
            method=self.method,
            window_manager=self.window_manager,
            timeout=self.timeout,
        )
        expect_word("launch: image", expect_text("launch: image", self.image))
        self._check_types()
        if self.window_manager not in {"auto", None}:
            raise ActionError(f"a container brings its own window manager: 'auto' or None, not {self.window_manager!r}")
        if self.name is not None:
            registry.check_name(self.name)
        if 0 in self.numbers:
            raise ActionError("user 0 in a container is root: choose another number")

    def _check_types(self) -> None:
        if not isinstance(self.network, str):
            expect_texts("launch: network, if it is no text,", self.network)
        for mount in expect_several("launch: mounts", self.mounts):
            expect("launch: each of mounts", mount, Mount)
        for name, value in (("env", self.env), ("labels", self.labels)):
            program_variables(f"launch: {name}", value)
        if self.user is not None and (not isinstance(self.user, tuple | list) or len(self.user) != 2):
            raise ActionError(f"launch: user is (user, group) as numbers, not {shown(self.user)}")
        for number in self.user or ():
            expect_integer("launch: user, and group,", number, 0, _LARGEST_USER)
        if self.limits is not None:
            expect("launch: limits", self.limits, Limits)
        expect_flag("launch: vnc", self.vnc)
        if self.remote is not None:
            expect_flag("launch: remote", self.remote)

    @property
    def numbers(self) -> tuple[int, int]:
        """User and group in the container."""
        return self.user or _own_user()

    @property
    def share(self) -> Limits:
        """What each of its desktops may use."""
        return self.limits or Limits()

    @property
    def environment(self) -> dict[str, str]:
        """Of everything in the container."""
        return {
            "DESKHAND_SIZE": f"{self.size[0]}x{self.size[1]}",
            "DESKHAND_DPI": str(self.dpi),
            **({"DESKHAND_VNC": "1"} if self.vnc else {}),
            **({NO_MANAGER: "none"} if self.window_manager is None else {}),
            **(self.env or {}),
        }


@dataclass
class House:
    """A container of ours, its guard, and the directory of this machine that both belong to."""

    engine: Engine
    order: Order
    guard: Guard
    name: str
    # Whether the engine is on another machine.
    remote: bool = False
    id: str = ""
    enclosure: Enclosure | None = None

    @property
    def directory(self) -> Path:
        """Where its files are; its lock is the lease."""
        return self.guard.directory

    @property
    def sockets(self) -> Path | None:
        """What the container sees as `/tmp/.X11-unix`; None where nothing of this machine can be given to it."""
        return None if self.remote else self.directory / "x11"

    @property
    def own(self) -> Path | None:
        """What it sees of this machine and cannot write; None likewise."""
        return None if self.remote else self.directory / "own"

    def berth(self, number: int = 0, *, shared: bool = False) -> Berth:
        """The place of one of its desktops."""
        return Berth(self.sockets, number, shared, self.own, self.order.numbers)

    def container(self, berth: Berth, engine: Engine | None = None) -> Container:
        """It, as the desktop at this place sees it, over another connection than its own if there is one."""
        share = self.order.share.shared_memory
        return Container(engine or self.engine, self.id, self.name, berth, shared_memory=share)

    def end(self) -> None:
        """Remove container, guard and directory. What is interrupted, or takes too long, is the guard's to finish.

        Raises:
            BackendError: The engine does not do it; the guard goes on.
        """
        deadline = time.monotonic() + _UNANSWERED_LIMIT
        done, failure = False, None
        try:
            while not done:
                try:
                    with self.engine.impatient():
                        _revive(self.engine)
                        done, failure = settle_removal(self.engine, self.directory), None
                except BackendError as error:
                    failure = error
                # The engine goes on making what nobody waits for any more.
                if done or time.monotonic() >= deadline:
                    break
                time.sleep(_EXIT_POLL)
        finally:
            if done:
                self.guard.close()
            else:
                self.guard.abandon()
            self.engine.close()
        if failure is not None:
            message = f"{failure.message}; it is tried again for {REMOVAL_LIMIT:g} s, and at the next launch"
            raise BackendError(message) from failure

    def give_up(self) -> None:
        """End it because its launch failed: why it did is what the caller must hear, and what is left, the guard removes."""
        with contextlib.suppress(BackendError):
            self.end()


@runtime_directory.needs_room()
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
    remote: bool | None = None,
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
        mounts: What it sees of this machine, or of the engine's where that is another one; nothing by default, read-only unless
            it says so. The socket of a container engine, under any name, and directories with one in them are refused.
        env: Added to the environment of everything in it.
        user: Numbers of user and group in it, not 0; by default yours, 1000:1000 if you are root.
        limits: What it may use.
        vnc: Serve RFB too, at the Unix socket `vnc` beside `Desktop.xauthority`, for who may enter that directory. A remote
            desktop always does.
        dpi: Dots per inch that the display reports.
        labels: Added to the container's.
        method: See `deskhand.launch`.
        remote: Whether the engine is on another machine, which cannot be given directories of this one. The desktop is then
            reached over VNC through the engine: see `Desktop.status`. By default it is where `DOCKER_HOST`, or the chosen
            Docker context, is `ssh://` or `tcp://`; True is for one behind a socket that leads to another machine.
        timeout: Seconds until it must be ready.

    Raises:
        LaunchFailed: No engine, no right to use it, no such image, no room, or the desktop did not come up.
        ActionError: An argument is impossible, the name is taken, or a mount does not exist.
    """
    order = Order(
        image=image,
        size=size,
        name=name,
        window_manager=window_manager,
        network=network,
        mounts=mounts,
        env=env,
        user=user,
        limits=limits,
        vnc=vnc,
        dpi=dpi,
        labels=labels,
        method=method,
        remote=remote,
        timeout=timeout,
    )
    begun = time.monotonic()
    with contextlib.ExitStack() as undo:
        house = build_house(order, undo)
        container = house.container(house.berth())
        _begin(house, container)
        backend = _open(house, container, timeout - (time.monotonic() - begun))
        undo.callback(backend.close)
        if house.enclosure is not None:
            house.enclosure.await_ready(house.engine, begun + timeout)
        berth = container.berth
        if berth.sockets is not None:
            berth.publish()
        ending: list[Callable[[], None]] = [house.end]
        if name is not None:
            files = (str(berth.xauthority or ""), str(house.directory))
            where = (house.id, house.engine.address.variables)
            entry = registry.Entry(name, berth.address or "", *files, house.guard.pid, "", time.time(), *where)
            registry.add(entry)
            ending.append(lambda: registry.remove(entry))
            undo.callback(registry.remove, entry)
        desktop = _desktop(house, container, backend, ending)
        undo.pop_all()
        return desktop


def _begin(house: House, container: Container, *, again: bool = False) -> None:
    """Start it; `again`, so that all that was in it, its files too, is gone, and X reads another cookie."""
    if container.berth.sockets is not None:
        # Elsewhere the supervisor makes it.
        container.berth.write_cookie()
    with house.engine.translated(f"the container {house.name}{', begun anew,' if again else ''}"):
        if again:
            house.engine.api.restart(house.id, timeout=0)
        else:
            house.engine.api.start(house.id)


def _open(house: House, container: Container, timeout: float) -> X11Backend | VncBackend:
    managed = house.order.window_manager is not None
    if house.remote:
        return open_over_vnc(container, timeout, managed=managed)
    return open_over_x(container, timeout, managed=managed, method=house.order.method)


def _desktop(
    house: House,
    container: Container,
    backend: X11Backend | VncBackend,
    ending: Sequence[Callable[[], None]],
) -> Desktop:
    """The desktop of a container of its own."""

    def renew() -> Desktop:
        """Start the container again."""
        house.engine.revive()
        _begin(house, container, again=True)
        return _desktop(house, container, _open(house, container, house.order.timeout), ending)

    return Desktop(
        backend,
        display=container.berth.address,
        xauthority=container.berth.xauthority,
        name=house.name,
        guard=lambda: ContainerPrograms(container, house.guard),
        owns_processes=True,
        inside=container,
        on_close=ending,
        renew=renew,
        expected=expected_of(container, managed=house.order.window_manager is not None),
    )


def build_house(order: Order, undo: contextlib.ExitStack, *, displays: int = 0) -> House:
    """Make a container, not started yet, and whatever belongs to it; `undo` gets what ends all of it.

    Args:
        order: What it is like.
        undo: Where its end is noted.
        displays: For how many desktops it has room; 0 for one that is started with it.

    Raises:
        LaunchFailed: See `launch_docker`.
        ActionError: See `launch_docker`.
    """
    hosts = _check_network(order.network)
    engine, remote = _engine_for(order, displays)
    guard = Guard.start(runtime_directory.private_directory())
    house = House(engine, order, guard, order.name or f"deskhand-{secrets.token_hex(6)}", remote)
    undo.callback(house.give_up)
    _prepare(house)
    labels = {**(order.labels or {}), **own_labels(house.directory)}
    if hosts:
        house.enclosure = enclose(
            engine, hosts, name=house.name, user=order.numbers, directory=house.directory, labels=labels
        )
    house.id = _create(house, labels, displays)
    return house


def _engine_for(order: Order, displays: int) -> tuple[Engine, bool]:
    """The engine, and whether it is on another machine; what it cannot do is refused, and what nobody needs there removed."""
    engine = connect_engine()
    try:
        remote = not engine.is_local if order.remote is None else order.remote
        sockets = engine_sockets(engine.address.url) if order.mounts else []
        for mount in order.mounts:
            _check_mount(mount, sockets, remote=remote)
        if remote:
            _check_remote(order, displays)
        _check_engine(engine)
        _clear_up(engine)
    except BaseException:
        engine.close()
        raise
    return engine, remote


def _check_remote(order: Order, displays: int) -> None:
    if displays:
        raise ActionError("several desktops cannot share a container on another machine: use an engine of this one")
    if not isinstance(order.network, str):
        hint = "use network='none' or 'bridge', or an engine of this machine"
        raise ActionError(f"whether a list of hosts holds cannot be looked at on another machine: {hint}")


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
    """A limit that it would quietly leave out is named."""
    missing = [what for feature, what in _FEATURES.items() if not engine.info.get(feature)]
    if not any("name=seccomp" in option or option == "seccomp" for option in engine.info.get("SecurityOptions", [])):
        missing.append("system calls (seccomp)")
    if missing:
        hint = f"it cannot limit {', '.join(missing)}: enable these cgroup controllers, or use another engine"
        raise LaunchFailed("a Docker engine that can hold a desktop", 0.0, "", hint)


def _clear_up(engine: Engine) -> None:
    """What cannot be removed now is tried again at the next launch, and is no reason not to have this one."""
    with contextlib.suppress(BackendError):
        reap(engine)


def _check_mount(mount: Mount, sockets: Sequence[Path], *, remote: bool) -> None:
    path = Path(mount.source)
    if remote and not path.is_absolute():
        raise ActionError(f"the mount {str(path)!r} is of the engine's machine: give its absolute path there")
    if not remote and not path.exists():
        raise ActionError(f"the mount {str(path)!r} does not exist: make it first, Docker would make it for root")
    if not mount.target.startswith("/") or mount.target in {"/", SOCKETS, HOME, OWN, "/tmp", "/run"}:  # noqa: S108
        raise ActionError(f"a mount must go to an absolute path that is not the desktop's own, not {mount.target!r}")
    check_source(path, sockets, remote=remote)


def _prepare(house: House) -> None:
    """The directory that the container sees, and who removes both should this process be killed."""
    removal = [sys.executable, "-m", "deskhand.launchers.docker.removal", str(house.directory)]
    # Also when another context has been chosen by then.
    house.guard.at_end(removal, {**os.environ, **house.engine.address.variables}, limit=REMOVAL_LIMIT)
    begun = time.monotonic()
    # From here on `reap` of another driver knows that this container has somebody.
    while not (house.directory / ".guard").exists():
        if time.monotonic() - begun > _LEASE_LIMIT:
            raise LaunchFailed("the guard process", time.monotonic() - begun)
        time.sleep(0.001)
    if house.sockets is None or house.own is None:
        # The supervisor makes them there.
        return
    house.own.mkdir()
    # Of any user in there; the directory above lets nobody else in.
    house.own.chmod(0o755)
    house.sockets.mkdir(mode=0o700)
    if house.order.numbers[0] != os.getuid():
        try:
            os.chown(house.sockets, *house.order.numbers)
        except PermissionError:
            # Only root may give files away. The directory above lets nobody else in.
            house.sockets.chmod(0o777)


def _create(house: House, labels: Mapping[str, str], displays: int) -> str:
    order, engine = house.order, house.engine
    limits, times = order.share, max(1, displays)
    owner = f"uid={order.numbers[0]},gid={order.numbers[1]}"
    binds: dict[str, dict[str, str]] = {}
    environment = order.environment
    options: dict[str, Any] = {"network_mode": order.network}
    if house.remote:
        # Unlike a bind, a mount whose source is absent there is an error, and not made for root.
        options["mounts"] = [_bind(mount) for mount in order.mounts]
        environment = {"DESKHAND_VNC": "1", **environment}
    else:
        binds[str(house.sockets)] = {"bind": SOCKETS, "mode": "rw"}
        binds[str(house.own)] = {"bind": OWN, "mode": "ro"}
        environment = {"XAUTHORITY": str(Path(OWN, "xauthority")), **environment}
        for mount in order.mounts:
            binds[str(Path(mount.source).resolve())] = {"bind": mount.target, "mode": "rw" if mount.writable else "ro"}
    networking = None
    if house.enclosure is not None:
        binds |= house.enclosure.binds
        environment = {**house.enclosure.environment, **environment}
        options |= house.enclosure.host_options()
        networking = house.enclosure.networking(engine)
    if displays:
        environment["DESKHAND_DISPLAYS"] = str(displays)
    host = confined(
        engine,
        memory=limits.memory * times,
        cpus=limits.cpus * times,
        processes=limits.processes * times,
        tmpfs={
            "/tmp": f"size={limits.temporary * times},mode=1777",  # noqa: S108
            "/run": f"size={(64 << 20) * times},mode=0755,{owner}",
            # Programs that people download or build run from here.
            HOME: f"size={limits.home * times},mode=0700,exec,{owner}",
        },
        binds=binds,
        shm_size=limits.shared_memory * times,
        **options,
    )
    return create(
        engine,
        house.directory,
        order.image,
        house.name,
        user=order.numbers,
        labels=labels,
        environment=environment,
        host_config=host,
        networking_config=networking,
    )


def _bind(mount: Mount) -> Any:
    from docker import types  # noqa: PLC0415 # whoever has an engine has it

    return types.Mount(mount.target, os.fspath(mount.source), type="bind", read_only=not mount.writable)


def _revive(engine: Engine) -> None:
    try:
        engine.revive()
    except LaunchFailed as error:
        raise BackendError(f"the way to the Docker engine broke: {error.message}") from error
