"""How a container is made, and what it is denied: rights, room, and files that would stay.

This module owns the part of a container's start that makes it safe, and what a refusal means. What must never appear
here: the container's purpose.
"""

from __future__ import annotations

import contextlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from deskhand.errors import ActionError, LaunchFailed
from deskhand.launchers.docker.leftovers import asked_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine

PROXY_IMAGE = "deskhand/proxy"
STAGES = ("minimal", "desktop", "osworld")
"""The images of desktops that `deskhand image build` builds, each as `deskhand/` and its name."""

KEPT_USER = {"UsernsMode": "keep-id"}
"""Of rootless Podman: the user in the container is the same one on this machine, and must own the X socket."""

_LOG_BYTES = "1m"


class HostOptions(TypedDict, total=False):
    """Further arguments of the SDK's `create_host_config`, as that names them."""

    binds: Mapping[str, Mapping[str, str]]
    dns: Sequence[str]
    extra_hosts: Mapping[str, str]
    mounts: Sequence[object]
    network_mode: str
    restart_policy: Mapping[str, object]
    shm_size: int
    sysctls: Mapping[str, str]


def confined(
    engine: Engine,
    *,
    memory: int,
    cpus: float,
    processes: int,
    tmpfs: Mapping[str, str],
    **more: Unpack[HostOptions],
) -> dict[str, Any]:
    """The engine's host configuration.

    Args:
        engine: The engine that will run it.
        memory: Bytes, swap included.
        cpus: Processors; never more than there are.
        processes: Processes and threads together.
        tmpfs: The only directories that can be written, each with its options.
        more: Further arguments of the configuration.
    """
    made: dict[str, Any] = engine.api.create_host_config(
        read_only=True,
        tmpfs=dict(tmpfs),
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={_seccomp(engine)}"],
        pids_limit=processes,
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=round(min(cpus, engine.info["NCPU"]) * 1e9),
        ipc_mode="private",
        ulimits=[{"Name": "core", "Soft": 0, "Hard": 0}],
        # The log is bounded on this machine's disk as well.
        log_config={"Type": "json-file", "Config": {"max-size": _LOG_BYTES, "max-file": "1"}},
        **more,
    )
    return made | (KEPT_USER if engine.is_rootless else {})


def create(
    engine: Engine,
    directory: Path,
    image: str,
    name: str,
    *,
    user: tuple[int, int],
    labels: Mapping[str, str],
    host_config: Mapping[str, object],
    networking_config: Mapping[str, object] | None,
    environment: Mapping[str, str | None] | None = None,
) -> str:
    """Make a container, not started yet; returns its id.

    Args:
        engine: The engine.
        directory: The directory of the desktop that it belongs to.
        image: The image that it is made from.
        name: Its name.
        user: Numbers of its user and group.
        labels: The labels that mark it as deskhand's.
        host_config: What it may use, the result of `confined`.
        networking_config: Its addresses in networks, as the SDK's `create_networking_config` makes them.
        environment: The environment of everything in it, besides its image's; None removes a variable of the image.

    Raises:
        LaunchFailed: There is no such image, or the engine refuses.
        ActionError: There is a container of that name.
    """
    try:
        with made_from(engine, image), asked_for(engine, directory, name), engine.translated(f"the container {name}"):
            made: str = engine.api.create_container(
                image,
                name=name,
                user=f"{user[0]}:{user[1]}",
                # Podman removes no variable of an image: an empty one says no likewise.
                environment={k: "" if v is None and engine.is_podman else v for k, v in (environment or {}).items()},
                labels=dict(labels),
                detach=True,
                host_config=host_config,
                networking_config=networking_config,
            )["Id"]
    except LaunchFailed as error:
        cause = error.__cause__
        if getattr(cause, "status_code", None) == 409:
            message = f"there is a container named {name!r} already; choose another name, or `deskhand down {name}`"
            raise ActionError(message) from error
        raise
    return made


@contextlib.contextmanager
def made_from(engine: Engine, image: str) -> Iterator[None]:
    """Around an operation that needs an image.

    Raises:
        LaunchFailed: The engine has none of that name; the message has the command that provides it.
        ActionError: The name is not that of an image.
    """
    try:
        yield
    except LaunchFailed as error:
        cause = error.__cause__
        if isinstance(cause, engine.errors.ImageNotFound):
            where = "" if engine.is_local else f" at {engine.address.url}"
            hint = f"it does not exist{where}: {_origin(image)}"
            raise LaunchFailed(f"the image {image}", 0.0, "", hint) from error
        if "invalid reference format" in str(cause):
            raise ActionError(f"{image!r} is not a name of an image: {cause}") from error
        raise


def _origin(image: str) -> str:
    name = image.removesuffix(":latest")
    if name == PROXY_IMAGE:
        return "build it with `deskhand image build`"
    if name in {f"deskhand/{stage}" for stage in STAGES}:
        return f"build it with `deskhand image build {name.removeprefix('deskhand/')}`"
    if name.startswith("deskhand/"):
        known = " and ".join(f"deskhand/{stage}" for stage in STAGES)
        return f"`deskhand image build` builds {known}; `docker images` lists what there is"
    return f"build it, or get it with `docker pull {image}`"


def _seccomp(engine: Engine) -> str:
    """The value of the option that names the filter of system calls.

    Docker takes the text of a profile, and Podman the path of a file on its machine.
    """
    profile = resources.files("deskhand.launchers.docker") / "image" / "seccomp.json"
    if not engine.is_podman:
        return json.dumps(json.loads(profile.read_text()), separators=(",", ":"))
    return str(profile)
