"""The cache of OSWorld's files: fetched whole or not at all, from hosts that are allowed, checked at each use."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deskhand.cli.group import commands
from deskhand.episodes.tasks.osworld.assets import Assets
from deskhand.episodes.tasks.osworld.fetching import check_address
from deskhand.errors import EpisodeError
from episodes.osworld_checkout import task_data, write_checkout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = bytes(range(256)) * 1000


class Hub:
    """A server that can cut off, lie and redirect."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.cut: int | None = None
        self.headers: dict[str, str] = {}
        self.redirect = ""
        self.ignores_ranges = False
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                hub.asked.append((self.path, wanted))
                if hub.redirect and not self.path.startswith("/there"):
                    self.send_response(302)
                    self.send_header("Location", hub.redirect)
                    for name, value in hub.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if self.path.endswith("/gone"):
                    self.send_error(404)
                    return
                begun = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and not hub.ignores_ranges else 0
                self.send_response(206 if begun else 200)
                if begun:
                    self.send_header("Content-Range", f"bytes {begun}-{len(DATA) - 1}/{len(DATA)}")
                self.send_header("Content-Length", str(len(DATA) - begun))
                for name, value in hub.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(DATA[begun : hub.cut])

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/a.xlsx"


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def cache(tmp_path: Path) -> Assets:
    return Assets(tmp_path / "cache")


def fetch(cache: Assets, hub: Hub, url: str = "", **options: Any) -> bool:
    return cache.fetch(url or hub.url, hosts=(hub.host,), **{"most": 1 << 20, **options})


def test_a_file_is_fetched_once(cache: Assets, hub: Hub) -> None:
    assert not cache.has(hub.url)
    with pytest.raises(EpisodeError, match="is not in the cache: where there is a network"):
        cache.read(hub.url)
    assert fetch(cache, hub)
    assert (cache.has(hub.url), cache.read(hub.url)) == (True, DATA)
    assert not fetch(cache, hub)
    assert len(hub.asked) == 1


def test_a_download_that_was_cut_off_goes_on(cache: Assets, hub: Hub) -> None:
    hub.cut = 1000
    with pytest.raises(EpisodeError, match="1000 bytes arrived of 256000"):
        fetch(cache, hub)
    assert not cache.has(hub.url)
    hub.cut = None
    assert fetch(cache, hub)
    assert hub.asked[1] == ("/a.xlsx", "bytes=1000-")
    assert cache.read(hub.url) == DATA


def test_a_server_that_begins_anew_is_followed(cache: Assets, hub: Hub) -> None:
    hub.cut = 1000
    with pytest.raises(EpisodeError):
        fetch(cache, hub)
    hub.cut, hub.ignores_ranges = None, True
    assert fetch(cache, hub)
    assert cache.read(hub.url) == DATA


def test_a_checksum_that_the_hub_states_must_hold(cache: Assets, hub: Hub) -> None:
    hub.headers = {"X-Linked-Etag": f'"{"0" * 64}"'}
    with pytest.raises(EpisodeError, match="another checksum"):
        fetch(cache, hub)
    assert not cache.has(hub.url)
    hub.headers = {"X-Linked-Etag": f'"{hashlib.sha256(DATA).hexdigest()}"'}
    assert fetch(cache, hub)


def test_the_checksum_may_come_with_a_redirection(cache: Assets, hub: Hub) -> None:
    hub.redirect = f"http://{hub.host}/there"
    git = hashlib.sha1(b"blob %d\0" % len(DATA) + DATA).hexdigest()
    hub.headers = {"ETag": f'"{git}"', "X-Repo-Commit": "c"}
    assert fetch(cache, hub)
    cache_of_another = Assets(cache.directory.with_name("other"))
    hub.headers["ETag"] = f'"{"1" * 40}"'
    with pytest.raises(EpisodeError, match="another checksum"):
        fetch(cache_of_another, hub)


def test_too_large_a_file_is_refused_before_and_while_it_comes(cache: Assets, hub: Hub) -> None:
    with pytest.raises(EpisodeError, match="256000 bytes: at most 1000"):
        fetch(cache, hub, most=1000)
    assert not cache.has(hub.url)


@pytest.mark.parametrize("elsewhere", ["http://169.254.169.254/latest", "file:///etc/passwd", "https://example.org/a"])
def test_a_redirection_leads_only_to_allowed_hosts(cache: Assets, hub: Hub, elsewhere: str) -> None:
    hub.redirect = elsewhere
    with pytest.raises(EpisodeError):
        fetch(cache, hub)
    assert not cache.has(hub.url)


def test_addresses_are_those_of_allowed_hosts() -> None:
    hosts = ("hf.co", "127.0.0.1:80")
    for right in ("https://hf.co/a", "https://cdn.hf.co/a?b=c", "http://127.0.0.1:80/a"):
        check_address(right, hosts)
    for wrong in (
        "http://hf.co/a", "https://nothf.co/a", "https://hf.co.evil.org/a", "ftp://hf.co/a", "file:///etc/passwd",
        "https://user@hf.co/a", "https://hf.co:x/a", "https://127.0.0.1/a", "https://hf.co/a b", "https://hf.co/\n", "",
    ):  # fmt: skip
        with pytest.raises(EpisodeError):
            check_address(wrong, hosts)


def test_a_file_that_was_changed_is_not_used_and_fetched_again(cache: Assets, hub: Hub) -> None:
    fetch(cache, hub)
    [kept] = cache.directory.glob("*/file")
    kept.write_bytes(DATA[::-1])
    with pytest.raises(EpisodeError, match="has changed since it came"):
        cache.read(hub.url)
    kept.write_bytes(b"")
    assert not cache.has(hub.url)
    assert fetch(cache, hub)
    assert cache.read(hub.url) == DATA
    [described] = cache.directory.glob("*/meta.json")
    described.write_text("[" * 10_000)
    assert not cache.has(hub.url)


def test_two_commands_fetch_a_file_one_after_the_other(cache: Assets, hub: Hub) -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(fetch(Assets(cache.directory), hub))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]


def test_the_command_says_what_is_missing_for_which_tasks(tmp_path: Path, hub: Hub) -> None:
    def task(id_: str, file: str) -> dict[str, Any]:
        files = [{"url": f"http://{hub.host}/{file}", "path": "/home/user/a"}]
        config = [{"type": "download", "parameters": {"files": files}}]
        return task_data(id_, config=config, evaluator={"func": "infeasible"})

    name = write_checkout(tmp_path, {"os": [task("one", "a"), task("two", "a"), task("three", "gone")]})
    asked = ["assets", "fetch", name, "--assets", str(tmp_path / "cache"), "--json"]
    refused = CliRunner().invoke(commands, asked, standalone_mode=False)
    assert refused.return_value == 1
    assert "--host HOST:PORT allows http:// of one server" in refused.stderr
    assert hub.asked == []
    ran = CliRunner().invoke(commands, [*asked, "--host", hub.host], standalone_mode=False)
    told = json.loads(ran.stdout)
    assert (ran.return_value, told["files"], told["fetched"]) == (1, 2, 1)
    assert [found["tasks"] for found in told["failed"].values()] == [["os/three"]]
    (tmp_path / "local").write_bytes(b"by hand")
    url = f"http://{hub.host}/gone"
    CliRunner().invoke(commands, ["assets", "add", url, str(tmp_path / "local"), "--assets", str(tmp_path / "cache")])
    assert Assets(tmp_path / "cache").read(url) == b"by hand"
