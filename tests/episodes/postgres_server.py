"""A PostgreSQL server of Debian's packages for tests: its own cluster in a directory of its own, on a unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "correct-horse"  # nobody's
_SETTINGS = {"fsync": "off", "max_connections": "60", "shared_buffers": "16MB"}


class PostgresServer:
    """PostgreSQL refuses to run as root, and is nobody's then.

    Its user `tester` needs no password; `runner` needs `PASSWORD`, and `stranger`, with the same one, may do nothing.
    """

    def __init__(self, directory: Path, address: str = "") -> None:
        """Make the cluster; whoever comes from the network of `address` needs no password either."""
        self.directory = directory
        self._address = address
        self.data = directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        if not programs:
            pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
        self._programs = programs[-1]
        self._as: list[str] = []
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            self._as = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        self._run(
            "initdb", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--username=tester", self.data
        )
        rules = "local all runner scram-sha-256\nlocal all stranger scram-sha-256\nlocal all all trust\n"
        rules += f"host all all {address}/24 trust\n" if address else ""
        (self.data / "pg_hba.conf").write_text(rules)

    def url(self, schema: str, *, user: str = "tester") -> str:
        return f"postgresql:///postgres?host={self.directory}&user={user}&schema={schema}"

    def start(self) -> None:
        settings = [f"-c{name}={value}" for name, value in {**_SETTINGS, "listen_addresses": self._address}.items()]
        command = [self._programs / "postgres", "-D", self.data, "-k", self.directory, *settings]
        # SIGQUIT, should this process be killed: the server ends at once.
        command = [*self._as, "setpriv", "--pdeathsig=QUIT", *command]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while subprocess.run([self._programs / "pg_isready", "-q", "-h", self.directory], check=False).returncode != 0:
            assert self._process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < deadline, (self.directory / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._run("pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-s")
            self._process.wait(60)
            self._process = None

    def query(self, statement: str) -> str:
        return self._run("psql", "-X", "-h", self.directory, "-U", "tester", "-d", "postgres", "-Atc", statement)

    def _run(self, program: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            [*self._as, self._programs / program, *arguments], check=False, capture_output=True, text=True, cwd="/"
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout.strip()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One for all tests of a run; each takes a schema of its own."""
    # Not below pytest's own directory, which only its user may enter.
    directory = Path(tempfile.mkdtemp(prefix="deskhand-postgres-"))
    server = PostgresServer(directory)
    try:
        server.start()
        for user in ("runner", "stranger"):
            server.query(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
        server.query("GRANT CREATE ON DATABASE postgres TO runner")
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)
