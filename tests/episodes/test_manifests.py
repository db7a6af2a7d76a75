"""The examples for clusters: what they start is a command line of ours, and no password is in it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from deskhand.cli import group
from deskhand.episodes.ledger import ledger_name
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.tasks.task import Resources

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PASSWORDS = ("PGPASSWORD", "PGPASSFILE", "DESKHAND_LEDGER")


def options(arguments: list[str]) -> dict[str, Any]:
    """What our own command line makes of them."""
    name, *rest = arguments
    root = click.Context(group.commands)
    command = group.commands.get_command(root, name)
    assert command is not None
    return command.make_context(name, rest, parent=root).params


def assert_shards(parsed: list[dict[str, Any]]) -> None:
    """Together they play all, each its part of the same run."""
    shards = [each.pop("shard") for each in parsed]
    assert shards == [(i, len(parsed)) for i in range(len(parsed))]
    assert all(each == parsed[0] for each in parsed)
    keys = {Key("calc-sum", "", seed, 0) for seed in range(200)}
    assert {key for key in keys for i, n in shards if key.spread % n == i} == keys
    ledger = parsed[0]["ledger"]
    assert ledger_name(ledger) == ledger
    assert re.search("schema=[a-z0-9]+$", ledger)


@pytest.fixture
def job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "kubernetes" / "job.yaml").read_text())
    return found


def test_the_pods_of_the_job_play_all_shards_of_one_run(job: dict[str, Any]) -> None:
    assert (job["apiVersion"], job["kind"], job["spec"]["completionMode"]) == ("batch/v1", "Job", "Indexed")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    pods = range(job["spec"]["completions"])
    # As Kubernetes does with what a pod's environment has.
    commands = [[word.replace("$(JOB_COMPLETION_INDEX)", str(i)) for word in container["args"]] for i in pods]
    assert not [word for word in commands[0] if "$(" in word]
    assert_shards([options(command) for command in commands])


def test_the_password_comes_from_a_secret_and_is_nowhere_else(job: dict[str, Any]) -> None:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each for each in container["env"]}
    assert set(given) == {"PGPASSWORD"}
    assert given["PGPASSWORD"]["valueFrom"]["secretKeyRef"] == {"name": "deskhand-ledger", "key": "password"}
    assert "value" not in given["PGPASSWORD"]


def test_a_pod_has_no_rights_and_memory_for_its_desktops(job: dict[str, Any]) -> None:
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"]["type"] in {"Localhost", "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    desktops = options(
        container["args"][:1] + [word for word in container["args"] if "desktops" in word] + ["--out=x"]
    )["desktops"]
    requested, limit = (container["resources"][kind]["memory"] for kind in ("requests", "limits"))
    assert int(requested.removesuffix("Gi")) << 30 >= desktops * Resources().memory
    assert int(limit.removesuffix("Gi")) << 30 >= desktops * Resources().most_memory
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_jobs_of_the_array_play_all_shards_of_one_run(tmp_path: Path) -> None:
    script = EXAMPLES / "slurm" / "run.sbatch"
    array = re.search(r"^#SBATCH --array=0-(\d+)$", script.read_text(), re.MULTILINE)
    assert array is not None
    jobs = int(array[1]) + 1
    # What the script would start, with its words as it was given them.
    fake = tmp_path / "deskhand"
    fake.write_text('#!/bin/bash\nprintf "%s\\0" "$PGPASSFILE" "$@"\n')
    fake.chmod(0o755)
    parsed = []
    for i in range(jobs):
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "HOME": "/home/someone",
            "SLURM_ARRAY_TASK_ID": str(i),
            "SLURM_ARRAY_TASK_COUNT": str(jobs),
        }
        ran = subprocess.run(["bash", "-eu", script], env=environment, capture_output=True, text=True, check=True)
        passfile, *command = ran.stdout.split("\0")[:-1]
        assert passfile == "/home/someone/.pgpass"
        parsed.append(options(command))
    assert_shards(parsed)


def test_no_example_has_a_password() -> None:
    for path in [*(EXAMPLES / "kubernetes").iterdir(), *(EXAMPLES / "slurm").iterdir()]:
        text = path.read_text()
        assert not re.search(r"postgres(ql)?://[^@/\s]*:[^@\s]*@", text), path
        if path.suffix in {".yaml", ".sbatch"}:
            assert any(name in text for name in PASSWORDS), path
