"""An engine on another machine: over ssh and TLS, what is refused, and what is left when something breaks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import containers, own_name
from containers.remote import Authority, old_engine, ssh_server, tls_breaking, tls_relay
from deskhand import KeyPress, LeftClick, Type
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY
from deskhand.launchers.docker.spec import Mount
from faults.helpers import driver, until, within
from ports import refusing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from containers.remote import Ssh
    from deskhand.launchers.docker.engine import Engine

DESKHAND = Path(sys.executable).with_name("deskhand")
# The promises are for a machine that has nothing else to do.
REMOVED_LIMIT, TOLD_LIMIT, LOST_LIMIT = 30.0, 15.0, 3.0


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ssh]:
    with ssh_server(tmp_path_factory.mktemp("far") / "ssh") as server:
        yield server


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Variables that lead to the local engine through TLS."""
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority.make("deskhand tests")
    with tls_relay(authority.write(folder / "server", "engine")) as url:
        yield {
            "DOCKER_HOST": url,
            "DOCKER_TLS_VERIFY": "1",
            "DOCKER_CERT_PATH": str(authority.write(folder / "client", "us")),
        }


@pytest.fixture
def far(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment that leads there, by the name of the way; who looks from outside connects before."""
    way: str = request.param
    found = request.getfixturevalue(way)
    set_all(monkeypatch, found if isinstance(found, dict) else found.environment())
    return way


def set_all(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("far", ["ssh", "tls"], indirect=True)
def test_a_desktop_there_acts_answers_and_goes(engine: Engine, far: str, image: str, ssh: Ssh) -> None:
    with deskhand.launch("docker", image=image) as desktop:
        found = engine.api.inspect_container(desktop.name)
        directory = Path(found["Config"]["Labels"][LABEL_DIRECTORY])
        assert (found["Mounts"], found["HostConfig"]["NetworkMode"]) == ([], "none")
        assert desktop.display is None
        desktop.start(["xterm", "-geometry", "80x24+0+0"])
        seen = desktop.perform(LeftClick((100, 100)), Type("echo naïve >/tmp/typed\n"))
        assert seen.settled
        assert seen.changed
        until(lambda: desktop.machine.run("cat /tmp/typed").stdout == "naïve\n", 10, "what was typed")
        # Much at once, both ways: more than a record of TLS, a frame of Docker's or a pipe holds.
        data = os.urandom(1 << 20)
        desktop.machine.write_file("/tmp/data", data)
        assert desktop.machine.read_file("/tmp/data", limit=1 << 21) == data
        desktop.machine.run("xsetroot -solid red")
        until(lambda: desktop.screenshot().image().convert("RGB").getpixel((1200, 700)) == (255, 0, 0), 10, "red")
        with deskhand.connect(f"docker://{desktop.name}") as again:
            assert again.screenshot().size == desktop.size
        with pytest.raises(deskhand.ConnectFailed, match=r"no such container at (ssh|tcp)://"):
            deskhand.connect("docker://nobody-has-this-name")
    assert not containers(engine, str(directory))
    assert not directory.exists()
    if far == "ssh":
        until(lambda: not ssh.sessions(), 10, "the end of ssh")


def test_a_broken_line_is_made_anew(ssh: Ssh, image: str, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    set_all(monkeypatch, ssh.environment())
    with deskhand.launch("docker", image=image) as desktop:
        assert desktop.perform().settled
        for session in ssh.sessions():
            os.kill(session, signal.SIGKILL)
        with within(TOLD_LIMIT, "a new connection"), pytest.raises(deskhand.Reconnected):
            until(lambda: desktop.perform(KeyPress(["shift"])) is None, TOLD_LIMIT, "the loss")
        assert desktop.perform().settled
        assert desktop.machine.run("echo still").stdout == "still\n"
        # The desktop itself is gone: that is told at once, and not tried again.
        engine.api.kill(desktop.name)
        with within(LOST_LIMIT, "telling"), pytest.raises(deskhand.DesktopLost, match="it was killed") as lost:
            until(lambda: desktop.perform(KeyPress(["shift"])) is None, LOST_LIMIT, "the loss")
        assert lost.value.cause == "container"


LAUNCHING = """
import os
import deskhand
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY
desktop = deskhand.launch("docker", image=os.environ["TEST_IMAGE"])
desktop.perform(PressKeys(["shift"]))
say(directory=desktop._core.inside.labels[LABEL_DIRECTORY], name=desktop.name)
wait_forever()
"""


def test_a_killed_driver_leaves_nothing_there(
    ssh: Ssh, engine: Engine, image: str, driver_environment: Mapping[str, str]
) -> None:
    with driver(LAUNCHING, {**driver_environment, **ssh.environment(), "TEST_IMAGE": image}) as lines:
        told = lines.read()
        assert containers(engine, told["directory"]) == [told["name"]]
        lines.process.kill()
        until(lambda: containers(engine, told["directory"]) == [], REMOVED_LIMIT, "the container's removal")
        until(lambda: not Path(told["directory"]).exists(), REMOVED_LIMIT, "the directory's removal")
        until(lambda: not ssh.sessions(), REMOVED_LIMIT, "the end of ssh")


def run(environment: Mapping[str, str], *words: str) -> str:
    done = subprocess.run([DESKHAND, *words], env=dict(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_finds_the_engine_again(
    ssh: Ssh, engine: Engine, image: str, driver_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Started through a context; afterwards another one is chosen."""
    name, config = own_name("far"), tmp_path / "docker"
    write_context(config, "far", ssh.url)
    environment = {**driver_environment, **ssh.environment(), "DOCKER_HOST": "", "DOCKER_CONFIG": str(config)}
    up = ("up", "--docker", "--image", image, "--name", name, "--json")
    chosen = config / "config.json"
    chosen.write_text('{"currentContext": "far"}')
    told = json.loads(run(environment, *up))
    chosen.write_text('{"currentContext": "gone since"}')
    try:
        assert (told["display"], containers(engine, told["directory"])) == ("", [name])
        (listed,) = json.loads(run(environment, "ls", "--json"))
        assert (listed["name"], listed["size"], listed["answers"]) == (name, [1280, 800], True)
        assert f"docker://{name}" in run(environment, "ls")
        run(environment, "start", "xterm")
        run(environment, "type", "echo typed >/tmp/typed\n")

        def typed() -> bytes:
            shown = engine.api.exec_create(name, ["cat", "/tmp/typed"])["Id"]
            return bytes(engine.api.exec_start(shown, demux=True)[0] or b"")

        # The terminal shows the command before the shell has run it.
        until(lambda: typed() == b"typed\n", 5, "the file")
    finally:
        run(environment, "down", name)
    assert containers(engine, told["directory"]) == []
    assert not Path(told["directory"]).exists()


def write_context(config: Path, name: str, url: str) -> None:
    """As `docker context create` does."""
    folder = config / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    folder.mkdir(parents=True)
    endpoints = {"docker": {"Host": url, "SkipTLSVerify": False}}
    (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoints}))


# --- an engine of this machine that is said to be remote: what is given to a container there ---


def test_what_cannot_be_given_to_a_container_there(engine: Engine, image: str, tmp_path: Path) -> None:
    # By name: others use this engine too.
    there: dict[str, Any] = {"image": image, "remote": True, "name": own_name("refused")}
    for options, words in (
        ({"network": ["example.org"]}, "another machine"),
        ({"mounts": [Mount("here", "/there")]}, "absolute path"),
        ({"mounts": [Mount("/var/run/docker.sock", "/there")]}, "root"),
        ({"mounts": [Mount("/run", "/there")]}, "root"),
        ({"mounts": [Mount("/var/run/../../", "/there")]}, "root"),
    ):
        with pytest.raises(deskhand.ActionError, match=words):
            deskhand.launch("docker", **there, **options)
    # Nothing is made there because somebody mistyped it.
    absent = tmp_path / "absent"
    with pytest.raises(deskhand.LaunchFailed, match="does not exist"):
        deskhand.launch("docker", **there, mounts=[Mount(absent, "/there")])
    assert not absent.exists()
    with pytest.raises(deskhand.LaunchFailed, match="deskhand image build"):
        deskhand.launch("docker", **there, mounts=[Mount("/dev/null", "/usr/local/lib/deskhand/relay")])
    assert own_name("refused") not in containers(engine)


def test_what_is_mounted_is_of_the_engines_machine(contained: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of that machine")
    tmp_path.chmod(0o755)
    desktop = contained(remote=True, window_manager=None, mounts=[Mount(tmp_path / "file", "/data/file")])
    assert desktop.machine.run("cat /data/file").stdout == "of that machine"
    assert desktop.machine.run("touch /data/file").exit_code == 1
    # Who connects finds out by itself that no directory is shared.
    with deskhand.connect(f"docker://{desktop.name}") as again:
        assert again.perform().settled


def test_one_there_is_made_as_new(contained: Callable[..., deskhand.Desktop]) -> None:
    first = contained(remote=True)
    first.start("xterm")
    first.machine.run("touch ~/secret")
    with first.reset() as second:
        assert second.health() == deskhand.Health()
        assert "secret" not in second.machine.run("ls -a ~").stdout
        assert second.machine.run("pgrep xterm").stdout == ""
        assert second.perform(LeftClick((100, 100))).settled
        # Nothing there is read as if it were this machine's.
        assert "started again" not in "".join(second.status)


def test_a_desktop_there_without_vnc_is_not_reached(
    contained: Callable[..., deskhand.Desktop], ssh: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = contained().name
    set_all(monkeypatch, ssh.environment())
    with pytest.raises(deskhand.ConnectFailed, match="vnc=True"):
        deskhand.connect(f"docker://{name}")
    until(lambda: not ssh.sessions(), 10, "the end of ssh")


# --- who is not let in is told why, and what to do ---


def refused(words: str, *, secret: str = "") -> None:
    with within(TOLD_LIMIT, "telling"), pytest.raises(deskhand.LaunchFailed, match=words) as told:
        connect_engine().close()
    assert not secret or secret not in str(told.value)


def test_an_unknown_and_a_changed_host_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ssh_server(tmp_path / "ssh") as server:
        set_all(monkeypatch, server.environment())
        known = server.known.read_text()
        server.known.write_text("")
        refused(r"run `ssh -p \d+ 127\.0\.0\.1` once, compare the fingerprint")
        other = (tmp_path / "ssh" / "user.pub").read_text()
        server.known.write_text(f"{known.split()[0]} {other}")
        refused("not the one that is known")
        # Nobody was asked, and nothing learnt.
        assert server.known.read_text() == f"{known.split()[0]} {other}"


def test_who_may_not_log_in_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ssh_server(tmp_path / "ssh", "PubkeyAuthentication no\n") as server:
        set_all(monkeypatch, server.environment())
        refused("ssh-copy-id")


def test_who_may_not_use_the_engine_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.fail("run as root: only it can be somebody else")
    nobody = 'ForceCommand setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with ssh_server(tmp_path / "ssh", nobody) as server:
        set_all(monkeypatch, server.environment())
        refused("usermod -aG docker")
        monkeypatch.setenv("DOCKER_HOST", f"{server.url}/none/engine.sock")
        refused("no engine's socket /none/engine.sock")


def test_where_sockets_are_not_forwarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ssh_server(tmp_path / "ssh", "AllowStreamLocalForwarding no\n") as server:
        set_all(monkeypatch, server.environment())
        refused("AllowStreamLocalForwarding")


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch, ssh: Ssh, tmp_path: Path) -> None:
    set_all(monkeypatch, ssh.environment())
    with refusing() as port:
        monkeypatch.setenv("DOCKER_HOST", f"ssh://127.0.0.1:{port}")
        refused("must work, and ask nothing")
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
        refused("check host and port")
    monkeypatch.setenv("DOCKER_HOST", ssh.url)
    monkeypatch.setenv("PATH", str(tmp_path))
    refused("openssh-client")
    monkeypatch.setenv("DOCKER_HOST", "ssh://me:secret@127.0.0.1")
    refused("a password does not belong into it", secret="secret")


def test_certificates_that_do_not_fit(tls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, tls)
    other = Authority.make("somebody else")
    strange = other.write(tmp_path / "strange", "us")
    mine = Path(tls["DOCKER_CERT_PATH"])
    monkeypatch.setenv("DOCKER_CERT_PATH", str(strange))
    refused("not signed by ca.pem")
    # The engine is known, and does not know us.
    (strange / "ca.pem").write_bytes((mine / "ca.pem").read_bytes())
    refused("does not take our certificate")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    refused(re.escape("must have ca.pem, cert.pem and key.pem"))
    monkeypatch.setenv("DOCKER_HOST", tls["DOCKER_HOST"].replace("127.0.0.1", "localhost"))
    monkeypatch.setenv("DOCKER_CERT_PATH", str(mine))
    refused("for another name")
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name)
    refused("it wants TLS")


@pytest.mark.parametrize("asked", [False, True], ids=["at once", "when asked"])
@pytest.mark.parametrize("reset", [False, True], ids=["ended", "reset"])
def test_a_refusal_whose_reason_does_not_arrive(
    tls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reset: bool, asked: bool
) -> None:
    """With TLS 1.3 a certificate is refused after the handshake, and the alert may be lost with the connection."""
    authority = Authority.make("deskhand tests")
    with tls_breaking(authority.write(tmp_path / "server", "engine"), reset=reset, asked=asked) as url:
        certificates = authority.write(tmp_path / "client", "us")
        set_all(monkeypatch, {**tls, "DOCKER_HOST": url, "DOCKER_CERT_PATH": str(certificates)})
        for _ in range(20):
            refused("does not take our certificate")


def test_an_engine_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tls: dict[str, str]) -> None:
    with old_engine() as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        refused(r"its API is 1\.40.*20\.10 or newer")
        # It does not speak TLS either.
        set_all(monkeypatch, {**tls, "DOCKER_HOST": url})
        refused("it speaks no TLS")
