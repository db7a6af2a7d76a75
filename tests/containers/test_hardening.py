"""What a container may not do. C5, C6, C7 and C11 of the security checks; C14 needs a browser and is part of the evidence."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from containers.helpers import owned_listeners
from containers.neighbours import PORT, Neighbour, neighbour
from deskhand.launchers.docker.images import examine_container
from faults.helpers import need, until
from faults.scale import EVIDENCE
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable

    import deskhand
    from deskhand.launchers.docker.engine import Engine

SCAN = Path(__file__).with_name("scan.py")
# What a program that wants out would try: addresses of all kinds, the metadata service, the host, and names.
TARGETS = [
    *(
        f"{host}/{port}"
        for host in ("1.1.1.1", "8.8.8.8", "169.254.169.254", "172.17.0.1", "10.0.0.1")
        for port in (22, 53, 80, 443)
    ),
    *(f"{host}/{port}" for host in ("192.168.0.1", "192.0.2.1", "224.0.0.251") for port in (80, 5353)),
    *(
        f"{host}/443"
        for host in ("example.com", "www.debian.org", "host.docker.internal", "gateway.docker.internal", "localhost.")
    ),
    *(f"{host}/443" for host in ("2606:4700:4700::1111", "fe80::1", "::ffff:1.1.1.1", "ff02::1")),
]


def test_the_products_own_checks_hold(desktop: deskhand.Desktop) -> None:
    findings = list(examine_container(desktop))
    assert len(findings) > 10
    assert [finding for finding in findings if not finding.ok] == []


def test_the_checks_see_what_is_wrong(contained: Callable[..., deskhand.Desktop]) -> None:
    desktop = contained()
    desktop.machine.run(
        "(Xvnc :5 -rfbport 5905 -SecurityTypes None &) ; while ! xprop -display :5 -root >/dev/null 2>&1; do :; done"
    )
    failed = [finding.name for finding in examine_container(desktop) if not finding.ok]
    assert failed == ["no TCP or UDP port is open"]


@pytest.mark.parametrize("network", soaked(["none", "bridge"], but=["none"]))
def test_no_port_is_opened(
    contained: Callable[..., deskhand.Desktop], image: str, engine: Engine, network: str
) -> None:
    """C5: before and after a start, by the kernel's tables, and as a neighbour and this machine find every single port."""
    with neighbour(engine, image, "") as beside:
        seen_before = scanned(beside, beside.gateway) if EVIDENCE else {}
        before = owned_listeners()
        with socket.create_server(("", 0)):
            assert len(owned_listeners() - before) == 1, "what is opened is not seen"
        desktop = contained(network=network, vnc=True)
        state = engine.api.inspect_container(desktop.name)
        assert state["HostConfig"]["PortBindings"] in ({}, None)
        assert not state["HostConfig"]["PublishAllPorts"]
        assert owned_listeners() - before == set()
        if EVIDENCE:
            # Others that run here may come and go: only what is ours counts.
            seen = scanned(beside, beside.gateway)
            ours = {int(place.rpartition(":")[2], 16) for _, place in owned_listeners()}
            assert {(kind, port) for kind in seen for port in set(seen[kind]) - set(seen_before[kind])} & {
                (kind, port) for kind in seen for port in ours
            } == set()
        inside = desktop.machine.run(
            "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6"
        ).stdout.splitlines()
        assert [line for line in inside if " 0A " in line or line.startswith("udp")] == []
        address = state["NetworkSettings"]["IPAddress"]
        if network == "none":
            # Nobody has a way to it at all.
            assert desktop.machine.run("ls /sys/class/net").stdout.split() == ["lo"]
            assert not address
            return
        # The neighbour's own server is what a scan finds.
        assert scanned(beside, beside.address) == {"tcp": [PORT], "udp": [PORT]}
        assert scanned(beside, address) == {"tcp": [], "udp": []}
        if EVIDENCE:
            found = subprocess.run([sys.executable, SCAN, address], capture_output=True, text=True, check=True)
            assert json.loads(found.stdout)[address] == {"tcp": [], "udp": []}


def scanned(beside: Neighbour, address: str) -> dict[str, list[int]]:
    """What a neighbour finds open there."""
    command = ["python3", "-c", SCAN.read_text(), address]
    api = beside.engine.api
    found: dict[str, list[int]] = json.loads(api.exec_start(api.exec_create(beside.container, command)["Id"]))[address]
    return found


def test_without_a_network_nothing_gets_out(desktop: deskhand.Desktop) -> None:
    targets = TARGETS * (5 if EVIDENCE else 1)
    script = "".join(
        f"(echo x >/dev/{kind}/{target}) 2>/dev/null && echo 'out: {kind} {target}'\n"
        for target in targets
        for kind in ("tcp", "udp")
    )
    result = desktop.machine.run(script, timeout=100)
    assert not result.timed_out
    assert result.stdout == ""
    assert desktop.machine.run("cat /proc/net/route | tail -n +2; ls /sys/class/net").stdout.split() == ["lo"]


def test_the_display_refuses_others(desktop: deskhand.Desktop) -> None:
    assert desktop.display is not None
    assert desktop.xauthority is not None
    xprop = need("xprop", "x11-utils")
    ask = [xprop, "-root", "_NET_SUPPORTING_WM_CHECK"]
    environment = {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}
    # With the cookie any client of this machine may join.
    assert subprocess.run(ask, env=environment, capture_output=True, check=False).returncode == 0
    wrong = subprocess.run(
        ask, env={**environment, "XAUTHORITY": "/dev/null"}, capture_output=True, text=True, check=False
    )
    assert wrong.returncode != 0
    assert "uthorization required" in wrong.stderr
    # Another user does not even reach the socket.
    directory = desktop.xauthority.parent.parent
    assert directory.stat().st_mode & 0o077 == 0
    if os.getuid() == 0:
        other = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *ask]
        refused = subprocess.run(other, env=environment, capture_output=True, check=False)
        assert refused.returncode != 0
    # Nor is there a way through the abstract namespace; TCP ports have a test of their own.
    assert f"@/tmp/.X11-unix/X{desktop.display.removeprefix(':')}" not in Path("/proc/net/unix").read_text()


def test_a_fork_bomb_harms_nobody(desktop: deskhand.Desktop) -> None:
    """F21: at the limit of processes, the command fails, the desktop lives, and what it made is gone."""
    result = desktop.machine.run("bomb() { bomb | bomb & }; bomb; sleep 7003", timeout=3)
    # It may take the desktop's window manager with it: then all commands are ended before their time, so that it can come back.
    assert result.timed_out or result.exit_code == 137
    assert desktop.perform().settled
    # pgrep finds nothing that still runs the bomb, and says so by its exit code; its own pattern is not what it looks for.
    alive = "pgrep -fc '[b]omb|[s]leep 7003'"
    until(lambda: desktop.machine.run(alive).stdout == "0\n", 10, "the end of all that it made")
    assert desktop.machine.run(alive).exit_code == 1
    assert desktop.machine.usage().processes < 50


# Netlink's protocols are numbers: 0 is interfaces, addresses and routes; the others are the firewall, devices, audit and more.
NETLINK_ROUTE, NETLINK_PROTOCOLS = 0, 23
OPEN_NETLINK = """
import socket
for protocol in range({count}):
    try:
        socket.socket(socket.AF_NETLINK, {kind}, protocol).close()
        print(protocol)
    except PermissionError:
        pass
print("listed", [name for _, name in socket.if_nameindex()])
"""


@pytest.mark.parametrize("kind", ["socket.SOCK_RAW", "socket.SOCK_DGRAM | socket.SOCK_CLOEXEC"])
def test_netlink_speaks_of_interfaces_only(desktop: deskhand.Desktop, kind: str) -> None:
    program = OPEN_NETLINK.format(count=NETLINK_PROTOCOLS, kind=kind)
    found = desktop.machine.run(f"python3 -c {shlex.quote(program)}")
    assert found.stdout.splitlines() == [str(NETLINK_ROUTE), "listed ['lo']"], found.stderr
