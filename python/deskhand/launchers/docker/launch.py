"""A desktop in a container: hardened by default, reached through its X socket, removed when the driver ends.

Where the engine is on another machine it is reached over VNC instead (`deskhand.launchers.docker.over_vnc`).

This module owns how a container is started and what it may do. What must never appear here: a fixed sleep, an open port, a
container that would be left behind.

A container is removed, in this order, by `Desktop.close`; by the guard process, if the driver vanishes; by `reap`, at the next
launch, when the guard was killed too. See `deskhand.launchers.docker.leftovers`.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from deskhand.desktop.desktop import Desktop
from deskhand.launchers import registry
from deskhand.launchers.docker.connect import expected_of, open_over_vnc, open_over_x
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.host import ContainerHost, build_host
from deskhand.launchers.docker.programs import ContainerPrograms
from deskhand.launchers.docker.spec import READY_LIMIT, ContainerSpec, Limits, Mount
from deskhand.machine import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.backends.vnc.backend import VncBackend
    from deskhand.backends.x11.backend import X11Backend
    from deskhand.launchers.docker.container import Container


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
    elements: bool = True,
    animations: bool = False,
    timeout: float = READY_LIMIT,
) -> Desktop:
    """Start a desktop in a container of its own and return it ready for use; see `deskhand.launch`.

    Args:
        image: An image of `deskhand image build`, or one made from it.
        size: Width and height in pixels.
        name: The container's name, and the one it is listed under; by default one that is free.
        window_manager: `"auto"` for the image's own, and its panel; None for none.
        network: `"none"`; `"bridge"` to reach what this machine reaches; or a list of hosts that it may reach and no others,
            through a proxy beside it: `["example.org", "*.example.org:443", "intranet.example:8080=10.0.0.5"]`. A host has
            ports 80 and 443 unless it names another one; `*.` is any name below it, not itself. A name that resolves to an
            address of this machine or of a private network is refused unless its entry names the address, after `=`. No
            port is published in any case.
        mounts: The directories of this machine, or of the engine's, that it sees; none by default, and read-only unless a mount
            says otherwise. The socket of a container engine, under any name, and directories with one in them are refused.
        env: Added to the environment of everything in it.
        user: Numbers of user and group in it, not 0; by default yours, 1000:1000 if you are root.
        limits: What it may use.
        vnc: Serve RFB too, at the Unix socket `vnc` beside `Desktop.xauthority`, for users of that directory. A remote
            desktop always does.
        dpi: Dots per inch that the display reports.
        labels: Added to the container's own.
        method: See `deskhand.launch`.
        remote: Whether the engine is on another machine, which cannot use directories of this one. The desktop is then
            reached over VNC through the engine: see `Desktop.status`. By default it is where `DOCKER_HOST`, or the chosen
            Docker context, is `ssh://` or `tcp://`; True is for one behind a socket that leads to another machine.
        elements: See `deskhand.launch`.
        animations: See `deskhand.launch`.
        timeout: Seconds until it must be ready.

    Raises:
        LaunchFailed: No engine, no right to use it, no such image, no room, or the desktop did not come up.
        ActionError: An argument is impossible, the name is taken, or a mount does not exist.
    """
    spec = ContainerSpec(
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
        elements=elements,
        animations=animations,
        timeout=timeout,
    )
    begun = time.monotonic()
    with contextlib.ExitStack() as undo:
        host = build_host(spec, undo)
        container = host.container(host.slot())
        _begin(host, container)
        backend = _open(host, container, timeout - (time.monotonic() - begun))
        undo.callback(backend.close)
        if host.enclosure is not None:
            host.enclosure.await_ready(host.engine, begun + timeout)
        slot = container.slot
        if slot.sockets is not None:
            slot.publish()
        ending: list[Callable[[], None]] = [host.end]
        if name is not None:
            files = (str(slot.xauthority or ""), str(host.directory))
            where = (host.id, host.engine.address.variables)
            entry = registry.Entry(name, slot.address or "", *files, host.guard.pid, "", time.time(), *where)
            registry.add(entry)
            ending.append(lambda: registry.remove(entry))
            undo.callback(registry.remove, entry)
        desktop = _desktop(host, container, backend, ending)
        undo.pop_all()
        return desktop


def _begin(host: ContainerHost, container: Container, *, again: bool = False) -> None:
    """Start it; `again`, with everything that was in it gone, its files too, and with another cookie for X."""
    if container.slot.sockets is not None:
        # On another machine, the supervisor makes it.
        container.slot.write_cookie()
    with host.engine.translated(f"the container {host.name}{', begun anew,' if again else ''}"):
        if again:
            host.engine.api.restart(host.id, timeout=0)
        else:
            host.engine.api.start(host.id)


def _open(host: ContainerHost, container: Container, timeout: float) -> X11Backend | VncBackend:
    managed = host.spec.window_manager is not None
    if host.remote:
        return open_over_vnc(container, timeout, managed=managed)
    return open_over_x(container, timeout, managed=managed, method=host.spec.method)


def _desktop(
    host: ContainerHost,
    container: Container,
    backend: X11Backend | VncBackend,
    ending: Sequence[Callable[[], None]],
) -> Desktop:
    """The desktop of a container of its own."""

    def renew() -> Desktop:
        """Start the container again."""
        host.engine.revive()
        _begin(host, container, again=True)
        return _desktop(host, container, _open(host, container, host.spec.timeout), ending)

    return Desktop(
        backend,
        display=container.slot.address,
        xauthority=container.slot.xauthority,
        name=host.name,
        guard=lambda: ContainerPrograms(container, host.guard),
        owns_processes=True,
        inside=container,
        on_close=ending,
        renew=renew,
        expected=expected_of(container, managed=host.spec.window_manager is not None),
    )
