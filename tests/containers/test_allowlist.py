"""A network of listed hosts: what is reached, what is not, and that nothing of it stays. C5 to C7 of the security checks."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import containers, networks, own_name, owned_listeners, there
from containers.neighbours import PORT, Neighbour, listening_here, name_server, neighbour
from deskhand.launchers.docker import proxy
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.leftovers import own_labels
from faults.helpers import until
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deskhand.launchers.docker.engine import Engine

PROBES = Path(__file__).with_name("probes.py")
DESKHAND = Path(sys.executable).with_name("deskhand")
REMOVED_LIMIT, ENGINE_LIMIT = 30.0, 240.0
# What a request gets that leaves the machine, and an answer that does not.
SCRIPT = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print(error)
"""
TUNNEL = """
import http.client, os, sys
host, port = os.environ["https_proxy"].removeprefix("http://").split(":")
tunnel = http.client.HTTPConnection(host, int(port), timeout=30)
tunnel.set_tunnel(sys.argv[1], int(sys.argv[2]))
try:
    tunnel.request("GET", "/")
    answer = tunnel.getresponse()
    print(answer.status, answer.read().decode())
except OSError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def listed(image: str) -> Iterator[Neighbour]:
    """The neighbour that may be reached as `listed.test`, at its one port."""
    engine = connect_engine()
    with neighbour(engine, image, "this is listed") as found:
        yield found
    engine.close()


@pytest.fixture(scope="module")
def other(listed: Neighbour, image: str) -> Iterator[Neighbour]:
    """The neighbour that may not, though the proxy knows the address of `other.test`."""
    with neighbour(listed.engine, image, "this is not listed") as found:
        yield found


@pytest.fixture(scope="module")
def neighbours(listed: Neighbour, other: Neighbour) -> tuple[Neighbour, Neighbour]:
    return listed, other


@pytest.fixture(scope="module")
def hosts(listed: Neighbour, other: Neighbour) -> list[str]:
    return [f"listed.test:{PORT}={listed.address}", f"other.test:1={other.address}", f"*.below.test:{PORT}"]


@pytest.fixture(scope="module")
def enclosed(image: str, hosts: list[str]) -> Iterator[deskhand.Desktop]:
    """A desktop that the tests of this module share; none of them may harm it."""
    with deskhand.launch("docker", image=image, network=hosts) as desktop:
        yield desktop


def fetch(desktop: deskhand.Desktop, url: str) -> str:
    result = desktop.machine.run(f"python3 -c '{SCRIPT}' {url}", timeout=60)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def tunnel(desktop: deskhand.Desktop, host: str, port: int) -> str:
    result = desktop.machine.run(f"python3 -c '{TUNNEL}' {host} {port}", timeout=60)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def proxy_of(desktop: deskhand.Desktop) -> str:
    """Its address and port, as the desktop is told it."""
    return desktop.machine.run("echo ${http_proxy#http://}").stdout.strip()


# --- what is reached ---


def test_the_listed_host_is_reached_and_no_other(
    enclosed: deskhand.Desktop, listed: Neighbour, other: Neighbour
) -> None:
    assert fetch(enclosed, f"http://listed.test:{PORT}/") == "200 this is listed"
    assert tunnel(enclosed, "listed.test", PORT) == "200 this is listed"
    seen = listed.visits()
    assert fetch(enclosed, f"http://other.test:{PORT}/") == "403"
    assert "403" in tunnel(enclosed, "other.test", PORT)
    # By its address nobody is reached, the listed one neither, nor at another port.
    for url in (f"http://{other.address}:{PORT}/", f"http://{listed.address}:{PORT}/", "http://listed.test/"):
        assert fetch(enclosed, url) == "403"
    assert "403" in tunnel(enclosed, listed.address, PORT)
    assert "403" in tunnel(enclosed, "listed.test", 443)
    assert listed.visits() == seen
    assert other.visits() == []


@pytest.mark.soak
def test_names_below_are_that_and_no_more(enclosed: deskhand.Desktop) -> None:
    # Nobody has such a name: what is let through fails later, and otherwise.
    for name in ("a.below.test", "a.b.below.test", "A.BELOW.test"):
        assert fetch(enclosed, f"http://{name}:{PORT}/") == "503"
    for name in ("below.test", "xbelow.test", "a.below.test.example", "a-below.test"):
        assert fetch(enclosed, f"http://{name}:{PORT}/") == "403"


def test_a_listed_name_that_leads_to_a_private_address_is_refused(
    contained: Callable[..., deskhand.Desktop], listed: Neighbour
) -> None:
    """Its own name is one that everybody in its network can resolve; and there is somebody to answer."""
    name = f"deskhand-test-{secrets.token_hex(6)}"
    desktop = contained(name=name, network=[f"{name}:{PORT}", f"listed.test:{PORT}={listed.address}"])
    serve = f"(python3 -m http.server {PORT} >/tmp/asked 2>&1 &); until grep -q Serving /tmp/asked; do :; done"
    assert desktop.machine.run(f"export PYTHONUNBUFFERED=1; {serve}", timeout=20).exit_code == 0
    assert fetch(desktop, f"http://127.0.0.1:{PORT}/").startswith("200")
    asked = desktop.machine.run("cat /tmp/asked").stdout
    assert fetch(desktop, f"http://{name}:{PORT}/") == "403"
    assert "403" in tunnel(desktop, name, PORT)
    assert desktop.machine.run("cat /tmp/asked").stdout == asked
    # One whose entry names its address, private or not, is.
    assert fetch(desktop, f"http://listed.test:{PORT}/") == "200 this is listed"


def test_where_a_name_leads_is_not_up_to_its_name_server(
    contained: Callable[..., deskhand.Desktop],
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
    neighbours: tuple[Neighbour, Neighbour],
) -> None:
    """The owner of a listed name answers as he likes, at first harmlessly; and hears of no other name."""
    _, other = neighbours
    somewhere, here = "192.0.2.1", other.address
    names = {
        "plain.evil.test": {"A": [here]},
        "link.evil.test": {"A": ["169.254.169.254"]},
        "mapped.evil.test": {"AAAA": [f"::ffff:{here}"]},
        "both.evil.test": {"A": [somewhere], "AAAA": [f"::ffff:{here}"]},
        "late.evil.test": {"A": ["fail", here], "AAAA": ["fail", "none"]},
        "later.evil.test": {"A": ["fail", "fail", here], "AAAA": ["fail", "fail", "none"]},
        "empty.evil.test": {"A": ["none", here]},
    }
    with name_server(engine, "deskhand/minimal", names) as server:
        real = proxy.confined
        monkeypatch.setattr(proxy, "confined", lambda *args, **options: real(*args, dns=[server.address], **options))
        desktop = contained(network=[f"*.evil.test:{PORT}", f"known.test:{PORT}={here}"])
        seen = other.visits()
        for name in names:
            for _ in range(4):
                # Without this, Squid keeps to what it was told first, also that there is nothing.
                request = f"GET http://{name}:{PORT}/ HTTP/1.1\\r\\nHost: {name}\\r\\nCache-Control: no-cache\\r\\n"
                told = ask(desktop, f"{request}Connection: close\\r\\n\\r\\n")
                assert told in {"403", "503"}, (name, told)
            assert "200" not in tunnel(desktop, name, PORT)
        assert {line.split()[1] for line in server.visits()} == names.keys()
        assert other.visits() == seen
        # What an entry gives an address is not asked for; what is not listed is not either, by whatever way.
        assert fetch(desktop, f"http://known.test:{PORT}/") == "200 this is not listed"
        for host in ("unlisted.test", "evil.test", f"x{secrets.token_hex(4)}.example.org"):
            assert fetch(desktop, f"http://{host}:{PORT}/") == "403"
            assert "403" in tunnel(desktop, host, PORT)
            assert desktop.machine.run(f"getent hosts {host}").stdout == ""
        assert fetch(desktop, "http://unasked.evil.test/") == "403"
        assert {line.split()[1] for line in server.visits()} == names.keys()


def ask(desktop: deskhand.Desktop, request: str) -> str:
    """The status that the proxy answers a request with, written as for printf."""
    script = f"h=${{http_proxy#http://}}; exec 3<>/dev/tcp/${{h%:*}}/${{h#*:}}; printf '{request}' >&3; head -n 1 <&3"
    return [*desktop.machine.run(script, timeout=60).stdout.split(), "", "nothing"][1]


def test_programs_are_told_of_the_proxy(enclosed: deskhand.Desktop) -> None:
    told = dict(line.split("=", 1) for line in enclosed.machine.run("env | grep -i _proxy=").stdout.splitlines())
    url = f"http://{proxy_of(enclosed)}"
    small = {"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": "localhost,127.0.0.1,::1"}
    assert told == small | {name.upper(): value for name, value in small.items()}


def test_a_proxy_that_dies_comes_back(contained: Callable[..., deskhand.Desktop], listed: Neighbour) -> None:
    desktop = contained(network=[f"listed.test:{PORT}={listed.address}"])
    pid = listed.engine.api.inspect_container(f"{desktop.name}-proxy")["State"]["Pid"]
    if os.getuid() != 0:
        pytest.fail("run as root: only it can end a process of a container")
    assert fetch(desktop, f"http://listed.test:{PORT}/") == "200 this is listed"
    os.kill(pid, signal.SIGKILL)
    until(lambda: fetch(desktop, f"http://listed.test:{PORT}/") == "200 this is listed", 30, "the proxy")
    assert listed.engine.api.inspect_container(f"{desktop.name}-proxy")["State"]["Pid"] != pid


# --- what is not ---


def probe(
    desktop: deskhand.Desktop, engine: Engine, listed: Neighbour, other: Neighbour
) -> tuple[dict[str, Any], list[str]]:
    """Try every way out; returns what the probes tell, and who was visited."""
    mark = secrets.token_hex(8)
    state = engine.api.inspect_container(desktop.name)["NetworkSettings"]["Networks"]
    sidecars = [name for name in containers(engine) if name == f"{desktop.name}-proxy"]
    beside = [
        engine.api.inspect_container(name)["NetworkSettings"]["Networks"]["bridge"]["IPAddress"] for name in sidecars
    ]
    routers = [found["Gateway"] for found in state.values() if found["Gateway"]]
    already = listed.visits(), other.visits()
    with listening_here(mark) as here:
        told = {
            "mark": mark,
            "ports": [PORT, here.port, 22, 53, 80, 3128],
            "addresses": sorted({listed.gateway, _own_address(), listed.address, other.address, *beside, *routers}),
            "elsewhere": [
                *("169.254.169.254", "1.1.1.1", "8.8.8.8", "10.0.0.1", "192.168.0.1", "100.100.100.200", "224.0.0.251"),
                *("255.255.255.255", "2606:4700:4700::1111", "fe80::1%eth0", "ff02::1%eth0", "fd00:ec2::254"),
                *_own_addresses_of_version_6(),
            ],
            "proxy": proxy_of(desktop) if sidecars else "",
            "listed": "listed.test",
            "closed": other.address,
        }
        desktop.machine.write_file("/tmp/probes.py", PROBES.read_bytes())
        result = desktop.machine.run(f"python3 /tmp/probes.py '{json.dumps(told)}'", timeout=240)
        assert result.exit_code == 0, result.stderr
        new = [after[len(before) :] for before, after in zip(already, (listed.visits(), other.visits()), strict=True)]
        visited = [*here.heard, *(f"listed: {line}" for line in new[0]), *(f"other: {line}" for line in new[1])]
        return json.loads(result.stdout), visited


def _own_address() -> str:
    """The one that this machine would be reached at from elsewhere; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        try:
            client.connect(("192.0.2.1", 9))
        except OSError:
            return "192.0.2.1"
        return str(client.getsockname()[0])


def _own_addresses_of_version_6() -> list[str]:
    path = Path("/proc/net/if_inet6")
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    plain = [":".join(re.findall("....", line[0])) for line in lines if line[5] != "lo"]
    return [f"{address}%eth0" if address.startswith("fe80") else address for address in plain]


@pytest.mark.soak
def test_the_probes_find_what_is_open(
    contained: Callable[..., deskhand.Desktop], engine: Engine, listed: Neighbour, other: Neighbour
) -> None:
    """Without this, probes that cannot work would prove something."""
    told, visited = probe(contained(network="bridge"), engine, listed, other)
    found = "\n".join(told["out"])
    for address in (listed.address, other.address):
        assert f"tcp ('{address}', {PORT}" in found
        assert f"udp ('{address}', {PORT}" in found
        assert f"ping ('{address}'" in found
    assert {line.split()[0] for line in visited} >= {"tcp", "udp", "listed:", "other:"}


@pytest.mark.parametrize("network", ["none", "list"])
def test_nothing_gets_out(
    contained: Callable[..., deskhand.Desktop],
    engine: Engine,
    neighbours: tuple[Neighbour, Neighbour],
    hosts: list[str],
    network: str,
) -> None:
    desktop = contained(network=hosts if network == "list" else network)
    listed, other = neighbours
    told, visited = probe(desktop, engine, listed, other)
    assert told["tried"] >= 100
    assert min(told["kinds"].values()) >= 3
    assert {"tcp", "udp", "dns_udp", "dns_tcp", "ping", "raw", "lookup", "command"} <= told["kinds"].keys()
    assert told["user"] != 0
    assert ("asked" in told["kinds"]) == (network == "list")
    assert told["out"] == []
    assert visited == []
    if network == "list":
        assert fetch(desktop, f"http://listed.test:{PORT}/") == "200 this is listed"
        # An engine whose own name server is at a loopback address asks it from this machine's network, where nobody can hold it
        # back; whether it does depends on the machine, so this is looked at too.
        assert engine.api.inspect_container(desktop.name)["HostConfig"]["Dns"] == ["127.0.0.1"]


def sockets_of(pid: int) -> dict[str, set[str]]:
    """The addresses at which a process's network listens, TCP and UDP."""
    found: dict[str, set[str]] = {"tcp": set(), "udp": set()}
    for name in ("tcp", "tcp6", "udp", "udp6"):
        path = Path(f"/proc/{pid}/net/{name}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            place, state = line.split()[1], line.split()[3]
            if name.startswith("udp") or state == "0A":
                address, _, port = place.partition(":")
                plain = socket.inet_ntoa(bytes.fromhex(address)[::-1]) if len(address) == 8 else address
                found[name[:3]].add(f"{plain}:{int(port, 16)}")
    return found


@pytest.mark.soak
def test_no_port_is_opened(contained: Callable[..., deskhand.Desktop], engine: Engine, hosts: list[str]) -> None:
    before = owned_listeners()
    desktop = contained(network=hosts, vnc=True)
    assert owned_listeners() - before == set()
    found = {name: engine.api.inspect_container(name) for name in (desktop.name, f"{desktop.name}-proxy")}
    for state in found.values():
        assert state["HostConfig"]["PortBindings"] in ({}, None)
        assert not state["HostConfig"]["PublishAllPorts"]
    # What is not Docker's own name server, which answers in its container only.
    sockets = {
        name: {kind: {place for place in places if not place.startswith("127.")} for kind, places in kinds.items()}
        for name, kinds in ((name, sockets_of(state["State"]["Pid"])) for name, state in found.items())
    }
    assert sockets[desktop.name] == {"tcp": set(), "udp": set()}
    assert sockets[f"{desktop.name}-proxy"] == {"tcp": {proxy_of(desktop)}, "udp": set()}
    # As a neighbour sees it, and this machine: every port of the proxy refuses, the proxy's own too.
    address = found[f"{desktop.name}-proxy"]["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
    # Who was refused asks again with the same socket: twice 65535 new ones would take most of the time. It has to be one that
    # blocks, with the kernel's own limit of 2 seconds: any other is told of its last port first, and does not ask.
    script = (
        "import errno, socket, struct\n"
        "open_ports, asking = [], None\n"
        "for port in range(1, 65536):\n"
        "    if asking is None:\n"
        "        asking = socket.socket()\n"
        '        asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@2l", 2, 0))\n'
        f"    told = asking.connect_ex(({address!r}, port))\n"
        "    assert told != errno.ECONNABORTED, port\n"
        "    if told == 0: open_ports.append(port)\n"
        "    if told != errno.ECONNREFUSED: asking.close(); asking = None\n"
        "print(open_ports)"
    )
    from_here = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert from_here.strip() == "[]"
    outsider = contained(network="bridge")
    assert outsider.machine.run(f"python3 -c '{script.replace(chr(39), chr(34))}'", timeout=240).stdout.strip() == "[]"


def test_the_proxy_has_no_rights(enclosed: deskhand.Desktop, listed: Neighbour) -> None:
    api = listed.engine.api
    found = api.inspect_container(f"{enclosed.name}-proxy")
    host = found["HostConfig"]
    desktop = api.inspect_container(enclosed.name)["HostConfig"]
    for option in (
        "ReadonlyRootfs",
        "CapDrop",
        "CapAdd",
        "SecurityOpt",
        "IpcMode",
        "Privileged",
        "Ulimits",
        "LogConfig",
    ):
        assert host[option] == desktop[option], option
    assert (host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]) == (True, ["ALL"], False)
    assert 0 < host["Memory"] == host["MemorySwap"] <= 256 << 20
    assert 0 < host["PidsLimit"] <= 64
    assert host["NanoCpus"] > 0
    seen = ""
    # On a busy machine the engine may give only a part of what a command has said.
    for _ in range(5):
        script = "cat /proc/1/status; cat /proc/sys/net/ipv4/ip_forward; touch /x 2>&1; echo all"
        seen = api.exec_start(api.exec_create(found["Id"], ["sh", "-c", script])["Id"]).decode()
        if seen.endswith("all\n"):
            break
    status = dict(line.split(":\t", 1) for line in seen.splitlines() if ":\t" in line)
    assert status["Uid"].split()[0] != "0"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    forwarded, refused, _ = seen.splitlines()[-3:]
    assert forwarded == "0"
    assert "Read-only file system" in refused
    script = ["sh", "-c", "find / -xdev -type f -perm /6000 2>/dev/null"]
    assert api.exec_start(api.exec_create(found["Id"], script, user="0")["Id"]) == b""


# --- nothing of it stays ---


def test_what_was_made_is_marked_and_goes_together(
    contained: Callable[..., deskhand.Desktop], engine: Engine, hosts: list[str]
) -> None:
    before = there(engine)
    desktop = contained(network=hosts, labels={"who": "a test"})
    assert desktop.xauthority is not None
    directory = str(desktop.xauthority.parent.parent)
    assert there(engine) - before == there(engine, directory)
    assert sorted(containers(engine, directory)) == sorted([desktop.name, f"{desktop.name}-proxy"])
    (network,) = networks(engine, directory)
    marks = [
        *(engine.api.inspect_container(name)["Config"]["Labels"] for name in containers(engine, directory)),
        engine.api.inspect_network(network)["Labels"],
    ]
    ours = [{key: mark.get(key) for key in own_labels(Path(directory))} for mark in marks]
    assert ours[0] == ours[1] == ours[2]
    assert all(mark["who"] == "a test" for mark in marks)
    # Somebody else's container in it does not keep it.
    with neighbour(engine, "deskhand/minimal", "") as guest:
        engine.api.connect_container_to_network(guest.container, network)
        desktop.close()
    assert there(engine) == before


def test_a_network_that_this_machine_is_in_is_refused(listed: Neighbour) -> None:
    with pytest.raises(deskhand.LaunchFailed, match="an internal network"):
        proxy._check_absent(ipaddress.IPv4Network(f"{listed.gateway}/32"))
    proxy._check_absent(ipaddress.IPv4Network("198.18.0.0/29"))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ([], "network='none'"),
        (["https://example.org"], "no URL"),
        (["example.org:99999"], "1 to 65535"),
        (["example .org"], "is no host"),
        ("example.org", r"\['example.org'\]"),
    ],
)
def test_what_is_no_host_is_refused_before_anything_is_made(engine: Engine, network: object, message: str) -> None:
    before = there(engine)
    with pytest.raises(deskhand.ActionError, match=message):
        deskhand.launch("docker", network=network)
    assert there(engine) == before


@pytest.mark.soak
def test_many_start_at_once(contained: Callable[..., deskhand.Desktop]) -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 # only here

    # More of them than Docker's own pools have networks for, with the evidence.
    count = 40 if EVIDENCE else 3
    with ThreadPoolExecutor(4) as pool:
        desktops = list(pool.map(lambda _: contained(timeout=120, network=["listed.test"]), range(count)))
    assert len({proxy_of(desktop) for desktop in desktops}) == count


# --- the command line ---


def run(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DESKHAND, *words], env=environment, capture_output=True, text=True, check=False)


def test_the_command_line_takes_hosts(
    engine: Engine, driver_environment: Mapping[str, str], hosts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = there(engine)
    options = [word for host in hosts for word in ("--network", host)]
    up = run(driver_environment, "up", "--docker", "--name", own_name("walled"), *options, "--json")
    assert up.returncode == 0, up.stderr
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", driver_environment["XDG_RUNTIME_DIR"])
        with deskhand.connect(own_name("walled")) as desktop:
            assert fetch(desktop, f"http://listed.test:{PORT}/") == "200 this is listed"
            assert fetch(desktop, f"http://other.test:{PORT}/") == "403"
        assert len(there(engine) - before) == 3
    finally:
        down = run(driver_environment, "down", own_name("walled"))
    assert down.returncode == 0, down.stderr
    assert there(engine) == before
    told = run(driver_environment, "up", "--help").stdout
    assert "--network example.org" in told
    for words, message in (
        (["https://example.org"], "no URL"),
        (["none", "example.org"], "no host"),
        (["bridge", "bridge"], "no host"),
    ):
        refused = run(driver_environment, "up", "--docker", *(w for word in words for w in ("--network", word)))
        assert refused.returncode == 1, refused.stderr
        assert message in refused.stderr
    assert there(engine) == before
