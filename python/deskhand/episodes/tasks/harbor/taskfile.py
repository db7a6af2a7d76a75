"""Reads a `task.toml` of Harbor, untrusted as it is. Pure.

This module owns the fields that a task may have, and their bounds. What must never appear here: a file, and whether a task
can run.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LARGEST = 1 << 18
"""The largest `task.toml` that is read, in bytes."""

MODES = ("no-network", "public", "allowlist")
"""The values of `network_mode`."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}", re.DOTALL)
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)([KMG]?)")
_MEBIBYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "": 1 / (1 << 20)}
# What deskhand itself gives to the programs of a desktop.
_OURS = frozenset({"DISPLAY", "XAUTHORITY", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"})
_LONGEST_TIME = 30 * 24 * 3600.0
_MOST_ENTRIES, _LONGEST_VALUE = 1000, 1 << 15


@dataclass(frozen=True, slots=True)
class Network:
    """What a section says about the network.

    Attributes:
        mode: One of `MODES`; empty if it says nothing.
        hosts: The hosts of an `allowlist`.
    """

    mode: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One `task.toml`.

    Attributes:
        category: The category in its metadata; empty if it has none.
        agent_seconds: The time limit of the agent; None if it has none.
        test_seconds: The time limit of the tests.
        build_seconds: The time limit of building its image.
        image: The image that is used in place of a Dockerfile; empty for the Dockerfile.
        directory: The working directory; empty for that of the image.
        cpus: Processors; None if it says nothing.
        memory: Mebibytes; None likewise.
        network: What it says about the network.
        phases: What it says about the network of the agent and of the tests alone.
        users: The users that it wants for the agent and for the tests.
        env: The environment of everything, as it is written.
        test_env: Added for the tests.
        solution_env: Added for the solution.
        beyond: The parts that say something that deskhand does not do, such as `steps`.
        unknown: The fields that no version of Harbor has.
    """

    category: str
    agent_seconds: float | None
    test_seconds: float
    build_seconds: float
    image: str
    directory: str
    cpus: float | None
    memory: int | None
    network: Network
    phases: tuple[Network, ...]
    users: tuple[str, ...]
    env: Mapping[str, str]
    test_env: Mapping[str, str]
    solution_env: Mapping[str, str]
    beyond: tuple[str, ...]
    unknown: tuple[str, ...]


def parse_task(data: bytes, name: str) -> TaskFile:
    """Read a `task.toml`.

    Args:
        data: Its content.
        name: The task's name, for errors.

    Raises:
        TaskError: It is no task; the error names the field.
    """
    if len(data) > LARGEST:
        raise TaskError(name, f"task.toml has {len(data)} bytes", f"a task has at most {LARGEST}")
    try:
        found = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise TaskError(name, f"task.toml is not TOML: {str(error)[:200]}") from None
    unknown: list[str] = []
    _check(name, "", found, _FIELDS, unknown)
    environment, verifier, agent = (found.get(part, {}) for part in ("environment", "verifier", "agent"))
    _check_version(name, found.get("schema_version", found.get("version", "1.0")))
    return TaskFile(
        category=_category(found),
        agent_seconds=agent.get("timeout_sec"),
        test_seconds=float(verifier.get("timeout_sec", 600.0)),
        build_seconds=float(environment.get("build_timeout_sec", 600.0)),
        image=environment.get("docker_image", ""),
        directory=environment.get("workdir", ""),
        cpus=environment.get("cpus"),
        memory=environment.get("memory_mb", _mebibytes(environment.get("memory"))),
        network=_network(name, "environment", environment),
        phases=tuple(_network(name, part, found.get(part, {})) for part in ("agent", "verifier")),
        users=tuple(str(part["user"]) for part in (agent, verifier) if "user" in part),
        env=environment.get("env", {}),
        test_env=verifier.get("env", {}),
        solution_env=found.get("solution", {}).get("env", {}),
        beyond=_beyond(found),
        unknown=tuple(unknown),
    )


def template_of(value: str) -> tuple[str, str | None] | None:
    """The variable of the caller that a value of `env` stands for, and its default; None for a plain value."""
    match = _TEMPLATE.fullmatch(value)
    return None if match is None else (match[1], match[2])


# --- parts ---


def _category(found: Mapping[str, Any]) -> str:
    category = found.get("metadata", {}).get("category", "")
    return category[:100] if isinstance(category, str) else ""


def _check_version(name: str, version: str) -> None:
    if version.partition(".")[0] != "1":
        raise TaskError(name, f"schema_version: it is {shown(version)}", "versions 1.0 to 1.4 are read")


def _network(name: str, part: str, section: Mapping[str, Any]) -> Network:
    hosts = tuple(section.get("allowed_hosts", ()))
    mode = section.get("network_mode", "")
    if hosts and mode != "allowlist":
        raise TaskError(name, f"{part}.allowed_hosts: it needs network_mode = 'allowlist'")
    if mode == "allowlist" and not hosts:
        # An empty list reaches nothing.
        mode = "no-network"
    if not mode and not hosts and "allow_internet" in section:
        mode = "public" if section["allow_internet"] else "no-network"
    return Network(mode, hosts)


def _mebibytes(size: str | None) -> int | None:
    match = _SIZE.fullmatch((size or "").strip().upper())
    return None if match is None else max(1, int(float(match[1]) * _MEBIBYTES[match[2]]))


def _beyond(found: Mapping[str, Any]) -> tuple[str, ...]:
    environment, verifier = found.get("environment", {}), found.get("verifier", {})
    parts = {
        "steps": found.get("steps"),
        "environment.os": environment.get("os", "linux").lower() != "linux",
        "environment.gpus": environment.get("gpus"),
        "environment.tpu": environment.get("tpu"),
        "environment.mcp_servers": environment.get("mcp_servers"),
        "environment.healthcheck": environment.get("healthcheck"),
        "verifier.environment_mode": verifier.get("environment_mode", "shared") != "shared",
        "verifier.environment": verifier.get("environment"),
        "verifier.collect": verifier.get("collect"),
    }
    return tuple(part for part, asked in parts.items() if asked)


# --- checks ---


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value and len(value) <= _LONGEST_VALUE


def _is_word(value: object) -> bool:
    return _is_text(value) and bool(value) and not re.search(r"\s", str(value))


def _is_number(value: object, most: float) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0 < value <= most
    )


def _is_time(value: object) -> bool:
    return _is_number(value, _LONGEST_TIME)


def _is_cpus(value: object) -> bool:
    return _is_number(value, 1024)


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and _is_number(value, 1 << 22)


def _is_count(value: object) -> bool:
    return value == 0 or _is_amount(value)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_size(value: object) -> bool:
    return isinstance(value, str) and _SIZE.fullmatch(value.strip().upper()) is not None


def _is_mode(value: object) -> bool:
    return value in MODES


def _is_user(value: object) -> bool:
    return _is_word(value) or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32)


def _is_directory(value: object) -> bool:
    return _is_text(value) and str(value).startswith("/") and ".." not in str(value).split("/") and _is_plain(value)


def _is_plain(value: object) -> bool:
    return re.fullmatch(r"[\w./ +@,:=-]{1,1000}", str(value), re.ASCII) is not None


def _is_image(value: object) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][\w./:@-]{0,400}", str(value), re.ASCII) is not None and isinstance(value, str)


def _are_words(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_ENTRIES and all(_is_word(each) for each in value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_ENTRIES


def _is_env(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_ENTRIES
        and all(
            _VARIABLE.fullmatch(name) and name not in _OURS and not name.startswith("DESKHAND_") and _is_text(each)
            for name, each in value.items()
        )
    )


_WANTED: Mapping[Callable[[Any], bool], str] = {
    _is_text: "a text",
    _is_word: "a text without spaces",
    _is_time: f"seconds, above 0 and at most {_LONGEST_TIME:.0f}",
    _is_cpus: "a number above 0, and at most 1024",
    _is_amount: "a whole number above 0",
    _is_count: "a whole number",
    _is_flag: "true or false",
    _is_size: "a size such as '2G'",
    _is_mode: f"one of {', '.join(MODES)}",
    _is_user: "the name or the number of a user",
    _is_directory: "an absolute path without ..",
    _is_image: "the name of an image",
    _are_words: f"a list of at most {_MOST_ENTRIES} texts without spaces",
    _is_table: "a table",
    _is_list: f"a list of at most {_MOST_ENTRIES}",
    _is_env: "a table of texts, without the variables of the desktop itself such as DISPLAY and HOME",
}
_NETWORK: Mapping[str, Any] = {"network_mode": _is_mode, "allowed_hosts": _are_words}
# A table for a section, and a check for anything else.
_FIELDS: Mapping[str, Any] = {
    "schema_version": _is_text,
    "version": _is_text,
    "source": _is_text,
    "multi_step_reward_strategy": _is_text,
    "steps": _is_list,
    "artifacts": _is_list,
    "metadata": _is_table,
    "task": {
        "name": _is_text,
        "version": _is_text,
        "description": _is_text,
        "authors": _is_list,
        "keywords": _is_list,
    },
    "agent": {"timeout_sec": _is_time, "user": _is_user, **_NETWORK},
    "verifier": {
        "timeout_sec": _is_time,
        "env": _is_env,
        "user": _is_user,
        "environment_mode": _is_text,
        "environment": _is_table,
        "collect": _is_list,
        **_NETWORK,
    },
    "solution": {"env": _is_env},
    "environment": {
        "build_timeout_sec": _is_time,
        "docker_image": _is_image,
        "os": _is_text,
        "cpus": _is_cpus,
        "memory_mb": _is_amount,
        "storage_mb": _is_amount,
        "gpus": _is_count,
        "gpu_types": _are_words,
        "tpu": _is_table,
        "mcp_servers": _is_list,
        "env": _is_env,
        "skills_dir": _is_text,
        "healthcheck": _is_table,
        "workdir": _is_directory,
        "allow_internet": _is_flag,
        "memory": _is_size,
        "storage": _is_size,
        **_NETWORK,
    },
}


def _check(name: str, above: str, found: Mapping[str, Any], fields: Mapping[str, Any], unknown: list[str]) -> None:
    for key, value in found.items():
        field, check = f"{above}{key}", fields.get(key)
        if check is None:
            unknown.append(field[:200])
        elif isinstance(check, dict):
            if not isinstance(value, dict):
                raise TaskError(name, f"{field}: it is {shown(value)}", "it must be a table")
            _check(name, f"{field}.", value, check, unknown)
        elif not check(value):
            raise TaskError(name, f"{field}: it is {shown(value)}", f"it must be {_WANTED[check]}")
