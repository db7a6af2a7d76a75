"""The specification of a container: its limits, mounts, network and user."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from deskhand._core.arguments import (
    expect,
    expect_amount,
    expect_flag,
    expect_integer,
    expect_path,
    expect_several,
    expect_text,
    expect_texts,
    expect_word,
)
from deskhand.errors import ActionError, shown
from deskhand.launchers import registry
from deskhand.launchers.display import check_display
from deskhand.launchers.docker.connect import NO_MANAGER
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.toolkits import ANIMATED, STILL_CURSORS, SWITCHED_OFF, SWITCHED_ON
from deskhand.machine.program_arguments import program_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READY_LIMIT = 30.0
_LARGEST_USER = 2**32 - 2
_CONTAINER_USER = (1000, 1000)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use.

    Attributes:
        memory: Bytes, swap included; files in its home and temporary directories count.
        cpus: Processors; never more than there are.
        processes: Processes and threads together.
        shared_memory: Bytes of `/dev/shm`, where browsers keep their pictures.
        home: Bytes of its home directory, which is in memory.
        temporary: Bytes of `/tmp`, which is too.

    Raises:
        ActionError: One is not greater than 0.
    """

    memory: int = 2 << 30
    cpus: float = 2.0
    processes: int = 512
    shared_memory: int = 1 << 30
    home: int = 1 << 30
    temporary: int = 512 << 20

    def __post_init__(self) -> None:
        for name in ("memory", "processes", "shared_memory", "home", "temporary"):
            expect_integer(f"Limits: {name}", getattr(self, name), 1)
        expect_amount("Limits: cpus", self.cpus)


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory that a container sees, on the engine's machine (this one, unless the engine is remote).

    Attributes:
        source: Its path on that machine; absolute where the engine is remote.
        target: Its absolute path in the container.
        writable: Whether the container may change it.

    Raises:
        ActionError: One is of a wrong type.
    """

    source: str | os.PathLike[str]
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        expect_path("Mount: source", self.source)
        expect_text("Mount: target", self.target)
        expect_flag("Mount: writable", self.writable)


class UnlimitedOptions(TypedDict, total=False):
    """The options of a container but `limits`, a name that environments have for a task's."""

    image: str
    network: str | Sequence[str]
    mounts: Sequence[Mount]
    user: tuple[int, int] | None
    vnc: bool
    labels: Mapping[str, str] | None
    remote: bool | None


class ContainerOptions(UnlimitedOptions, total=False):
    """The additional options of `deskhand.launch("docker")`; see `deskhand.launchers.docker.launch.launch_docker`."""

    limits: Limits | None


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """The wanted container: the arguments of `launch_docker`, checked."""

    image: str = DEFAULT_IMAGE
    size: tuple[int, int] = (1280, 800)
    name: str | None = None
    window_manager: str | None = "auto"
    network: str | Sequence[str] = "none"
    mounts: Sequence[Mount] = ()
    env: Mapping[str, str] | None = None
    user: tuple[int, int] | None = None
    limits: Limits | None = None
    vnc: bool = False
    dpi: int = 96
    labels: Mapping[str, str] | None = None
    method: str | None = None
    remote: bool | None = None
    elements: bool = True
    animations: bool = False
    timeout: float = READY_LIMIT

    def __post_init__(self) -> None:
        check_display(
            size=self.size,
            dpi=self.dpi,
            method=self.method,
            window_manager=self.window_manager,
            timeout=self.timeout,
        )
        expect_word("launch: image", expect_text("launch: image", self.image))
        self._check_types()
        if self.window_manager not in {"auto", None}:
            raise ActionError(f"a container brings its own window manager: 'auto' or None, not {self.window_manager!r}")
        if self.name is not None:
            registry.check_name(self.name)
        if 0 in self.numbers:
            raise ActionError("user 0 in a container is root: choose another number")

    def _check_types(self) -> None:
        if not isinstance(self.network, str):
            expect_texts("launch: network, if it is no text,", self.network)
        for mount in expect_several("launch: mounts", self.mounts):
            expect("launch: each of mounts", mount, Mount)
        for name, value in (("env", self.env), ("labels", self.labels)):
            program_variables(f"launch: {name}", value)
        if self.user is not None and (not isinstance(self.user, tuple | list) or len(self.user) != 2):
            raise ActionError(f"launch: user is (user, group) as numbers, not {shown(self.user)}")
        for number in self.user or ():
            expect_integer("launch: user, and group,", number, 0, _LARGEST_USER)
        if self.limits is not None:
            expect("launch: limits", self.limits, Limits)
        expect_flag("launch: vnc", self.vnc)
        expect_flag("launch: elements", self.elements)
        expect_flag("launch: animations", self.animations)
        if self.remote is not None:
            expect_flag("launch: remote", self.remote)

    @property
    def numbers(self) -> tuple[int, int]:
        """The user and group in the container."""
        return self.user or _own_user()

    @property
    def share(self) -> Limits:
        """The limits of each of its desktops."""
        return self.limits or Limits()

    @property
    def environment(self) -> dict[str, str | None]:
        """The environment of everything in the container; None for a variable of its image that must not be there."""
        return {
            "DESKHAND_SIZE": f"{self.size[0]}x{self.size[1]}",
            "DESKHAND_DPI": str(self.dpi),
            **({"DESKHAND_VNC": "1"} if self.vnc else {}),
            **({NO_MANAGER: "none"} if self.window_manager is None else {}),
            **({} if self.elements else {**dict.fromkeys(SWITCHED_ON), **SWITCHED_OFF}),
            **(ANIMATED if self.animations else STILL_CURSORS),
            **(self.env or {}),
        }


def _own_user() -> tuple[int, int]:
    return (os.getuid(), os.getgid()) if os.getuid() != 0 else _CONTAINER_USER
