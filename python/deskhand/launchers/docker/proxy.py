"""A network without a way out, and the proxy beside a desktop that leads to the allowed hosts.

This module owns both, and what a desktop needs to use them. What must never appear here: how a host is written (see
`deskhand.launchers.docker.allow_list`), a desktop.

Docker calls a network internal when it forwards nothing out of it. That leaves two ways out, which are closed here: the address
that this machine would have in it, where everything that listens here would answer; and Docker's name server, which before
version 26 may ask on behalf of such a network from outside of it (CVE-2024-29018).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.errors import LaunchFailed
from deskhand.launchers.docker.allow_list import configuration
from deskhand.launchers.docker.confinement import PROXY_IMAGE, confined, create
from deskhand.launchers.docker.leftovers import asked_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.launchers.docker.allow_list import AllowedHost
    from deskhand.launchers.docker.confinement import HostOptions
    from deskhand.launchers.docker.engine import Engine

_PORT = 3128
_READY = "Accepting HTTP Socket connections"
_POLL = 0.02
# Docker's own pools hold 31 networks. Nothing is routed to those of deskhand, not even here, so any unused addresses do, and
# these are for measurements only (RFC 2544).
_POOL = ipaddress.IPv4Network("198.18.0.0/15")
_PREFIX = 29
_ATTEMPTS = 50
_MEMORY, _PROCESSES = 256 << 20, 64
_CONFIGURATION = "/etc/deskhand/proxy.conf"
_NO_PROXY = "localhost,127.0.0.1,::1"
# Programs get a refusal at once, where Docker's own name server would make each of them wait for 20 s.
_RESOLVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A network of its own with a proxy in it.

    Attributes:
        network: Its name.
        proxy: The proxy's container.
        where: The proxy's address and port.
        desktop: The address that the desktop gets.
        directory: The desktop's directory on this machine.
    """

    network: str
    proxy: str
    where: str
    desktop: str
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that name the proxy; some programs read them in small letters only, some in capitals."""
        url = f"http://{self.where}"
        found = {"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": _NO_PROXY}
        return found | {name.upper(): value for name, value in found.items()}

    @property
    def binds(self) -> dict[str, dict[str, str]]:
        """What this adds to the desktop's mounts."""
        return {str(self.directory / "resolv.conf"): {"bind": "/etc/resolv.conf", "mode": "ro"}}

    def host_options(self) -> HostOptions:
        """What this adds to the desktop's host configuration."""
        # In its own network namespace, where no server answers: requests to Docker's name server end there.
        options: HostOptions = {"network_mode": self.network, "dns": ["127.0.0.1"]}
        if Path("/proc/sys/net/ipv6").exists():
            # A bridge has an address of its own on that too.
            names = ("all", "default")
            options["sysctls"] = {f"net.ipv6.conf.{name}.disable_ipv6": "1" for name in names}
        return options

    def networking(self, engine: Engine) -> dict[str, Any]:
        """The desktop's address in the network."""
        return _place(engine, self.network, self.desktop)

    def await_ready(self, engine: Engine, deadline: float) -> None:
        """Wait until the proxy listens.

        Raises:
            LaunchFailed: It has ended, or does not listen until then (by `time.monotonic`).
        """
        begun = time.monotonic()
        while True:
            with engine.translated(f"the proxy {self.proxy}"):
                log: bytes = engine.api.logs(self.proxy)
                found = engine.api.inspect_container(self.proxy)
            state, waited, text = found["State"], time.monotonic() - begun, log.decode("utf-8", "replace")
            if not state["Running"] or found["RestartCount"]:
                raise LaunchFailed(f"the proxy {self.proxy}", waited, text, f"it ended with {state['ExitCode']}")
            if _READY in text:
                return
            if time.monotonic() >= deadline:
                raise LaunchFailed(f"the proxy {self.proxy}", waited, text)
            time.sleep(_POLL)


def enclose(
    engine: Engine,
    hosts: Sequence[AllowedHost],
    *,
    name: str,
    user: tuple[int, int],
    directory: Path,
    labels: Mapping[str, str],
) -> Enclosure:
    """Make the network, and start the proxy in it.

    Args:
        engine: The engine.
        hosts: The hosts that may be reached.
        name: The desktop's container.
        user: Numbers of user and group that the proxy runs as.
        directory: The desktop's directory.
        labels: The labels of both.

    Raises:
        LaunchFailed: No network is left, there is no image of the proxy, or the engine refuses.
    """
    network, subnet = _make_network(engine, directory, labels)
    # The first is the address that a router would have; there is none.
    _, proxy, desktop = (str(address) for address in list(subnet.hosts())[:3])
    enclosure = Enclosure(network, f"{name}-proxy", f"{proxy}:{_PORT}", desktop, directory)
    _write(directory / "resolv.conf", _RESOLVER)
    _write(directory / "proxy.conf", configuration(hosts, enclosure.where, desktop))
    host = confined(
        engine,
        memory=_MEMORY,
        cpus=1.0,
        processes=_PROCESSES,
        tmpfs={"/run": "size=8388608,mode=1777"},
        network_mode=network,
        binds={str(directory / "proxy.conf"): {"bind": _CONFIGURATION, "mode": "ro"}},
        extra_hosts={host.name: str(host.address) for host in hosts if host.address is not None},
        # It is in two networks, but must not route between them.
        sysctls={"net.ipv4.ip_forward": "0"},
        restart_policy={"Name": "on-failure", "MaximumRetryCount": 5},
    )
    networking = _place(engine, network, proxy)
    made = create(
        engine,
        directory,
        PROXY_IMAGE,
        enclosure.proxy,
        user=user,
        labels=labels,
        host_config=host,
        networking_config=networking,
    )
    with engine.translated(f"the proxy {enclosure.proxy}"):
        engine.api.connect_container_to_network(made, "bridge")
        engine.api.start(made)
    return enclosure


def _place(engine: Engine, network: str, address: str) -> dict[str, Any]:
    endpoint = engine.api.create_endpoint_config(ipv4_address=address)
    made: dict[str, Any] = engine.api.create_networking_config({network: endpoint})
    return made


def _make_network(engine: Engine, directory: Path, labels: Mapping[str, str]) -> tuple[str, ipaddress.IPv4Network]:
    # Of two networks, engines take the default route from the one whose name comes first: that must be "bridge".
    name = f"deskhand-net-{secrets.token_hex(6)}"
    for _ in range(_ATTEMPTS):
        subnet = _any_subnet()
        try:
            with asked_for(engine, directory, name), engine.translated("a network of its own"):
                _ask_for_network(engine, name, subnet, labels)
        except LaunchFailed as error:
            if "overlap" not in str(error.__cause__):
                raise
            continue
        _check_absent(subnet)
        return name, subnet
    hint = "the engine's networks leave no room for another one: remove unused ones with docker network prune"
    raise LaunchFailed("a network of its own", 0.0, "", f"{hint} (they are made in {_POOL})")


def _ask_for_network(engine: Engine, name: str, subnet: ipaddress.IPv4Network, labels: Mapping[str, str]) -> None:
    from docker import types  # noqa: PLC0415 # with an engine it is installed

    engine.api.create_network(
        name,
        driver="bridge",
        internal=True,
        check_duplicate=True,
        ipam=types.IPAMConfig(pool_configs=[types.IPAMPool(subnet=str(subnet))]),
        # This machine has no address in it: with one, everything that listens here could be reached from the network.
        options={"com.docker.network.bridge.inhibit_ipv4": "true"},
        labels=dict(labels),
    )


def _any_subnet() -> ipaddress.IPv4Network:
    size = 1 << (32 - _PREFIX)
    first = int(_POOL.network_address) + size * secrets.randbelow(_POOL.num_addresses // size)
    return ipaddress.IPv4Network((first, _PREFIX))


def _check_absent(subnet: ipaddress.IPv4Network) -> None:
    """Check that the engine knows the option: otherwise it would leave a way out.

    Raises:
        LaunchFailed: This machine has an address in that network.
    """
    addresses = re.findall(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL", Path("/proc/net/fib_trie").read_text())
    if any(ipaddress.IPv4Address(address) in subnet for address in addresses):
        hint = "this engine gives this machine an address in it; Docker 20.10 and newer does not"
        raise LaunchFailed("an internal network", 0.0, "", hint)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Readable for another user, in a container; the directory keeps other users of this machine out.
    path.chmod(0o644)
