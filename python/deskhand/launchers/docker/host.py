"""A running container, and how it is made, renewed and removed."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.errors import ActionError, BackendError, LaunchFailed
from deskhand.launchers.docker.allow_list import parse_hosts
from deskhand.launchers.docker.confinement import confined, create
from deskhand.launchers.docker.container import Container
from deskhand.launchers.docker.display_slot import HOME, OWN, Berth
from deskhand.launchers.docker.engine import Engine, connect_engine
from deskhand.launchers.docker.leftovers import SOCKETS, own_labels, reap, settle_removal
from deskhand.launchers.docker.mounting import check_source, engine_sockets
from deskhand.launchers.docker.proxy import enclose
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.launchers.docker.allow_list import AllowedHost
    from deskhand.launchers.docker.proxy import Enclosure
    from deskhand.launchers.docker.spec import Mount, Order

__all__ = ["REMOVAL_LIMIT", "House", "build_house"]


# Seconds that a guard gives an engine which was asked for a container and has not made it yet.
REMOVAL_LIMIT = 300.0
_LEASE_LIMIT = 10.0
_EXIT_POLL = 0.1
# A busy engine was seen to take more than 15 s to make a container: who was interrupted waits no longer, the guard does.
_UNANSWERED_LIMIT = 5.0
_FEATURES = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}


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
