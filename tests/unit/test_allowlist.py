"""How a list of hosts is written, and the rules that a proxy is given for it. Pure: no engine."""

from __future__ import annotations

import ipaddress

import pytest

from deskhand.errors import ActionError
from deskhand.launchers.docker.allow_list import CLOSED, WEB, AllowedHost, configuration, parse_hosts


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.org", AllowedHost("example.org")),
        ("Example.ORG.", AllowedHost("example.org")),
        ("example.org:8080", AllowedHost("example.org", ports=(8080,))),
        ("*.example.org:443", AllowedHost("example.org", below=True, ports=(443,))),
        ("bücher.example", AllowedHost("xn--bcher-kva.example")),
        ("intranet", AllowedHost("intranet")),
        ("db.example:1=10.0.0.5", AllowedHost("db.example", ports=(1,), address=ipaddress.ip_address("10.0.0.5"))),
        ("db.example=::ffff:10.0.0.5", AllowedHost("db.example", address=ipaddress.ip_address("10.0.0.5"))),
        ("db.example=fd00::5", AllowedHost("db.example", address=ipaddress.ip_address("fd00::5"))),
    ],
)
def test_a_host_is_read(text: str, host: AllowedHost) -> None:
    assert parse_hosts([text]) == (host,)


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([], "network='none'"),
        (["https://example.org/path"], "no URL.*'example.org'"),
        (["example.org/path"], "no URL.*'example.org'"),
        (["example.org:0"], "1 to 65535"),
        (["example.org:65536"], "1 to 65535"),
        (["example.org:"], "1 to 65535"),
        (["example.org:https"], "1 to 65535"),
        (["example.org:४४३"], "1 to 65535"),
        (["example org"], "is no host"),
        ([" example.org"], "is no host"),
        (["example.org\nhttp_access allow all"], "is no host"),
        (["example..org"], "is no host"),
        ([".example.org"], "is no host"),
        (["-x.example"], "is no host"),
        (["*"], "is no host"),
        (["www.*.org"], "is no host"),
        (["x" * 64], "is no host"),
        ([".".join(["x" * 50] * 6)], "is no host"),
        (["bücher..example"], "is no host"),
        ([""], "is no host"),
        (["10.0.0.5"], "some.name=10.0.0.5"),
        (["10.0.0.5:80"], "some.name=10.0.0.5"),
        (["[fd00::5]:80"], "some.name=fd00::5"),
        (["1.2.3"], "taken for an address"),
        (["example.0x7f"], "taken for an address"),
        (["bridge"], "network='bridge'"),
        (["example.org", "none"], "network='none'"),
        (["*.example.org=10.0.0.5"], "one by one"),
        (["db.example=somewhere"], "after '=' comes an IP address"),
        (["db.example=169.254.169.254"], "nothing there may be reached"),
        (["db.example=127.0.0.1"], "nothing there may be reached"),
        (["db.example=::ffff:127.0.0.1"], "nothing there may be reached"),
        (["db.example=fe80::1"], "nothing there may be reached"),
        (["db.example=10.0.0.5", "db.example:81=10.0.0.6"], "two addresses"),
        ([443], "a text like"),
    ],
)
def test_what_is_no_host_is_refused_in_words_that_lead_on(hosts: list[str], message: str) -> None:
    with pytest.raises(ActionError, match=message):
        parse_hosts(hosts)


def test_what_is_said_twice_counts_once() -> None:
    assert parse_hosts(["example.org", "EXAMPLE.org"]) == (AllowedHost("example.org"),)


def test_nothing_of_a_name_that_is_not_listed_is_asked_of_anybody() -> None:
    """A name server would hear it: `closed` needs one, and comes after the name in every rule."""
    text = configuration(parse_hosts(["example.org", "*.example.net:8443"]), "198.18.0.2:3128", "198.18.0.3")
    rules = [line.split() for line in text.splitlines() if line.startswith("http_access")]
    assert rules[-1] == ["http_access", "deny", "all"]
    assert [rule for rule in rules if {"closed", "!closed", "resolved", "!resolved"}.intersection(rule)] == [
        ["http_access", "deny", "host0", "ports0", "!resolved"],
        ["http_access", "allow", "host0", "ports0", "!closed"],
        ["http_access", "deny", "host1", "ports1", "!resolved"],
        ["http_access", "allow", "host1", "ports1", "!closed"],
    ]
    assert f"acl ports0 port {WEB[0]} {WEB[1]}" in text
    assert r"acl host1 dstdom_regex -n -i ^.+\.example\.net$" in text
    # Every list of names: with -n, or an address would be looked up to find its name.
    assert all(line.split()[3] == "-n" for line in text.splitlines() if " dstdom" in line)


def test_an_address_that_was_named_is_open_for_its_name_only() -> None:
    text = configuration(parse_hosts(["db.example=10.0.0.5", "example.org"]), "198.18.0.2:3128", "198.18.0.3")
    assert "http_access allow host0 ports0\n" in text
    assert "http_access allow host1 ports1 !closed\n" in text


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "10.1.2.3",
        "172.17.0.1",
        "192.168.1.1",
        "100.100.100.200",
        "168.63.129.16",
        "198.18.0.2",
        "224.0.0.251",
        "255.255.255.255",
        "0.0.0.0",
        "::1",
        "::",
        "fd00:ec2::254",
        "fe80::1",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
    ],
)
def test_no_name_leads_to_what_is_only_here(address: str) -> None:
    assert any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in CLOSED)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450::1"])
def test_the_world_is_not_closed(address: str) -> None:
    assert not any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in CLOSED)
