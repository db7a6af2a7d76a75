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
from deskhand.launchers.docker.display_slot import HOME, OWN, DisplaySlot
from deskhand.launchers.docker.engine import Engine, connect_engine
from deskhand.launchers.docker.leftovers import SOCKETS, own_labels, reap, settle_removal
from deskhand.launchers.docker.mounting import check_source, engine_sockets
from deskhand.launchers.docker.proxy import enclose
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.launchers.docker.allow_list import AllowedHost
    from deskhand.launchers.docker.confinement import HostOptions
    from deskhand.launchers.docker.proxy import Enclosure
    from deskhand.launchers.docker.spec import ContainerSpec, Mount

# Seconds that a guard waits for an engine to make a container that it was asked for.
REMOVAL_LIMIT = 300.0
_LEASE_LIMIT = 10.0
_EXIT_POLL = 0.1
# A busy engine has taken more than 15 s to make a container: an interrupted launch leaves that wait to the guard.
_UNANSWERED_LIMIT = 5.0
_FEATURES = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}


@dataclass
class ContainerHost:
    """A container of this driver, its guard, and the directory of this machine that belongs to both."""

    engine: Engine
    spec: ContainerSpec
    guard: Guard
    name: str
    # Whether the engine is on another machine.
    remote: bool = False
    id: str = ""
    enclosure: Enclosure | None = None

    @property
    def directory(self) -> Path:
        """The directory with its files; the lock on it is the lease."""
        return self.guard.directory

    @property
    def sockets(self) -> Path | None:
        """The directory that the container sees as `/tmp/.X11-unix`; None if it can have nothing of this machine."""
        return None if self.remote else self.directory / "x11"

    @property
    def own(self) -> Path | None:
        """The directory that it sees and cannot write; None likewise."""
        return None if self.remote else self.directory / "own"

    def slot(self, number: int = 0, *, shared: bool = False) -> DisplaySlot:
        """The place of one of its desktops."""
        return DisplaySlot(self.sockets, number, shared, self.own, self.spec.numbers)

    def container(self, slot: DisplaySlot, engine: Engine | None = None) -> Container:
        """The container for the desktop at this place, over a connection of its own if one is given."""
        share = self.spec.share.shared_memory
        return Container(engine or self.engine, self.id, self.name, slot, shared_memory=share)

    def end(self) -> None:
        """Remove container, guard and directory. The guard finishes what is interrupted or takes too long.

        Raises:
            BackendError: The engine does not do it; the guard goes on trying.
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
                # The engine goes on making what it was asked for, even if the request was given up.
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
        """End it after a failed launch, without errors of its own: the caller gets that one, and the guard removes the rest."""
        with contextlib.suppress(BackendError):
            self.end()


def build_host(spec: ContainerSpec, undo: contextlib.ExitStack, *, displays: int = 0) -> ContainerHost:
    """Make a container, not started yet, and all that belongs to it; `undo` gets the steps that end it.

    Args:
        spec: Its specification.
        undo: Gets the steps of its end.
        displays: The number of desktops that it has room for; 0 for one that starts with it.

    Raises:
        LaunchFailed: See `launch_docker`.
        ActionError: See `launch_docker`.
    """
    hosts = _check_network(spec.network)
    engine, remote = _engine_for(spec, displays)
    guard = Guard.start(runtime_directory.private_directory())
    host = ContainerHost(engine, spec, guard, spec.name or f"deskhand-{secrets.token_hex(6)}", remote)
    undo.callback(host.give_up)
    _prepare(host)
    labels = {**(spec.labels or {}), **own_labels(host.directory)}
    if hosts:
        host.enclosure = enclose(
            engine, hosts, name=host.name, user=spec.numbers, directory=host.directory, labels=labels
        )
    host.id = _create(host, labels, displays)
    return host


def _engine_for(spec: ContainerSpec, displays: int) -> tuple[Engine, bool]:
    """The engine, and whether it is on another machine; refuses what it cannot do, and removes leftovers there."""
    engine = connect_engine()
    try:
        remote = not engine.is_local if spec.remote is None else spec.remote
        sockets = engine_sockets(engine.address.url) if spec.mounts else []
        for mount in spec.mounts:
            _check_mount(mount, sockets, remote=remote)
        if remote:
            _check_remote(spec, displays)
        if engine.is_podman:
            _check_podman(spec, displays, remote=remote)
        _check_engine(engine)
        _clear_up(engine)
    except BaseException:
        engine.close()
        raise
    return engine, remote


def _check_remote(spec: ContainerSpec, displays: int) -> None:
    if displays:
        raise ActionError("several desktops cannot share a container on another machine: use an engine of this one")
    if not isinstance(spec.network, str):
        hint = "use network='none' or 'bridge', or an engine of this machine"
        raise ActionError(f"the list of hosts cannot be verified on another machine: {hint}")


def _check_podman(spec: ContainerSpec, displays: int, *, remote: bool) -> None:
    """Refuse what is not as safe, or not as well told, as with Docker."""
    if remote:
        hint = "it takes the filter of system calls as a file of its own machine only: use Docker there"
        raise LaunchFailed("Podman on another machine", 0.0, "", hint)
    if displays:
        raise ActionError("several desktops cannot share a container of Podman: use displays=1, or Docker")
    if not isinstance(spec.network, str):
        raise ActionError("a list of hosts needs Docker's networks: use network='none' or 'bridge', or Docker")


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
    """Refuse an engine that would silently leave out a limit."""
    missing = [what for feature, what in _FEATURES.items() if not engine.info.get(feature)]
    if not any("name=seccomp" in option or option == "seccomp" for option in engine.info.get("SecurityOptions", [])):
        missing.append("system calls (seccomp)")
    if missing:
        hint = f"it cannot limit {', '.join(missing)}: enable these cgroup controllers, or use another engine"
        raise LaunchFailed("a Docker engine that can hold a desktop", 0.0, "", hint)


def _clear_up(engine: Engine) -> None:
    """Remove leftovers. A failure does not stop this launch; the next one tries again."""
    with contextlib.suppress(BackendError):
        reap(engine)


def _check_mount(mount: Mount, sockets: Sequence[Path], *, remote: bool) -> None:
    path = Path(mount.source)
    if remote and not path.is_absolute():
        raise ActionError(f"the mount {str(path)!r} is of the engine's machine: give its absolute path there")
    if not remote and not path.exists():
        raise ActionError(f"the mount {str(path)!r} does not exist: create it first, or Docker creates it for root")
    if not mount.target.startswith("/") or mount.target in {"/", SOCKETS, HOME, OWN, "/tmp", "/run"}:  # noqa: S108
        raise ActionError(f"a mount must go to an absolute path that is not the desktop's own, not {mount.target!r}")
    check_source(path, sockets, remote=remote)


def _prepare(host: ContainerHost) -> None:
    """The directory that the container sees, and the guard that removes both if this process is killed."""
    removal = [sys.executable, "-m", "deskhand.launchers.docker.removal", str(host.directory)]
    # Also if another context has been chosen by then.
    host.guard.at_end(removal, {**os.environ, **host.engine.address.variables}, limit=REMOVAL_LIMIT)
    begun = time.monotonic()
    # From here on `reap` of another driver knows that this container has an owner.
    while not (host.directory / ".guard").exists():
        if time.monotonic() - begun > _LEASE_LIMIT:
            raise LaunchFailed("the guard process", time.monotonic() - begun)
        time.sleep(0.001)
    if host.sockets is None or host.own is None:
        # The supervisor makes them in the container.
        return
    host.own.mkdir()
    # Open to any user in the container; the directory above keeps other users out.
    host.own.chmod(0o755)
    host.sockets.mkdir(mode=0o700)
    if host.spec.numbers[0] != os.getuid():
        try:
            os.chown(host.sockets, *host.spec.numbers)
        except PermissionError:
            # Only root may give files away. The directory above keeps other users out.
            host.sockets.chmod(0o777)


def _create(host: ContainerHost, labels: Mapping[str, str], displays: int) -> str:
    spec, engine = host.spec, host.engine
    limits, times = spec.share, max(1, displays)
    # Podman refuses the numbers, and takes those of the container's user instead.
    owner = "U,notmpcopyup" if engine.is_podman else f"uid={spec.numbers[0]},gid={spec.numbers[1]}"
    binds: dict[str, dict[str, str]] = {}
    environment = spec.environment
    # The hosts that may be reached are behind the network of an enclosure.
    options: HostOptions = {"network_mode": spec.network if isinstance(spec.network, str) else "none"}
    if host.remote:
        # Unlike with a bind, an absent source is an error, and is not created for root.
        options["mounts"] = [_bind(mount) for mount in spec.mounts]
        environment = {"DESKHAND_VNC": "1", **environment}
    else:
        binds[str(host.sockets)] = {"bind": SOCKETS, "mode": "rw"}
        binds[str(host.own)] = {"bind": OWN, "mode": "ro"}
        environment = {"XAUTHORITY": str(Path(OWN, "xauthority")), **environment}
        if os.getuid() not in {0, spec.numbers[0]}:
            # The accessibility bus checks the user, not a cookie.
            environment["DESKHAND_DRIVER"] = str(os.getuid())
        for mount in spec.mounts:
            binds[str(Path(mount.source).resolve())] = {"bind": mount.target, "mode": "rw" if mount.writable else "ro"}
    networking = None
    if host.enclosure is not None:
        binds |= host.enclosure.binds
        environment = {**host.enclosure.environment, **environment}
        options |= host.enclosure.host_options()
        networking = host.enclosure.networking(engine)
    if displays:
        environment["DESKHAND_DISPLAYS"] = str(displays)
    options["binds"] = binds
    options["shm_size"] = shared_memory = limits.shared_memory * times
    # Podman keeps its own from one start of a container to the next.
    shared = {"/dev/shm": f"size={shared_memory},mode=1777"} if engine.is_podman else {}  # noqa: S108
    host_config = confined(
        engine,
        memory=limits.memory * times,
        cpus=limits.cpus * times,
        processes=limits.processes * times,
        tmpfs={
            "/tmp": f"size={limits.temporary * times},mode=1777",  # noqa: S108
            "/run": f"size={(64 << 20) * times},mode=0755,{owner}",
            # Programs that people download or build are run from here.
            HOME: f"size={limits.home * times},mode=0700,exec,{owner}",
            **shared,
        },
        **options,
    )
    return create(
        engine,
        host.directory,
        spec.image,
        host.name,
        user=spec.numbers,
        labels=labels,
        environment=environment,
        host_config=host_config,
        networking_config=networking,
    )


def _bind(mount: Mount) -> Any:
    from docker import types  # noqa: PLC0415 # with an engine it is installed

    return types.Mount(mount.target, os.fspath(mount.source), type="bind", read_only=not mount.writable)


def _revive(engine: Engine) -> None:
    try:
        engine.revive()
    except LaunchFailed as error:
        raise BackendError(f"the way to the Docker engine broke: {error.message}") from error
