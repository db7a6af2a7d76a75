"""Whether a desktop's container runs, and why it has ended.

This module owns the meaning of how a container ends. What must never appear here: a command that runs in one (see
`deskhand.launchers.docker.container_commands`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.errors import DesktopLost
from deskhand.launchers.docker import cgroup
from deskhand.launchers.docker.throttle import Throttle

if TYPE_CHECKING:
    from deskhand.launchers.docker.display_slot import DisplaySlot
    from deskhand.launchers.docker.engine import Engine

# The supervisor's exit codes.
_X_ENDED, _PART_ENDED, _X_ABSENT, _X_KILLED = 71, 72, 73, 74
_KILLED = 137
# Seconds that a container that lost its X server may take to end: a loss must be reported within a second.
DEATH_LIMIT = 0.7
# Seconds until the engine reports the end of a container whose first process has ended.
_REPORT_LIMIT = 30.0
# Of the flags in /proc/PID/stat: it is ending.
_EXITING = 0x4
# As `DEATH_LIMIT`, if its memory was used up: nothing in it gets on then, including what reports how it ended.
_STARVED_LIMIT = 5.0


class ContainerLife:
    """A container that runs a desktop: its place, and whether it runs.

    Attributes:
        engine: Its engine.
        id: Its id.
        name: Its name; with the display's number after a colon where it has several desktops.
        slot: The desktop's place in it.
        shared_memory: Bytes of `/dev/shm` for the desktop; None if unknown.
        keeper: The command that keeps this desktop, where it is one of several; else the container itself does.
        doubt: Why its X server could not be checked to be in it; empty if it was.
    """

    def __init__(
        self, engine: Engine, identifier: str, name: str, slot: DisplaySlot, *, shared_memory: int | None = None
    ) -> None:
        """Use a running container; this does nothing yet."""
        self.engine = engine
        self.id = identifier
        self.name: str = f"{name}:{slot.number}" if slot.shared else name
        self.slot = slot
        self.shared_memory = shared_memory
        self.keeper: str | None = None
        self.doubt = ""
        self._memory_events: Path | None = None
        # Its first process, where this machine's kernel shows it.
        self._first: Path | None = None

    def __repr__(self) -> str:
        return f"<Container {self.name}>"

    def inspect(self) -> dict[str, Any]:
        """The engine's description of it."""
        found: dict[str, Any] = self.engine.api.inspect_container(self.id)
        return found

    def watch_group(self) -> Throttle | None:
        """Begin to watch what this machine's kernel shows of it, for `status`.

        Returns:
            What knows when its processor time is used up; None if it has all processors, or if that is unknown.

        Raises:
            LaunchFailed: The engine does not answer.
        """
        with self.engine.translated(f"the desktop in {self.name}"):
            found = self.inspect()
        self._memory_events = cgroup.file_of(
            found["Id"], found["State"]["Pid"], "memory", "memory.oom_control", "memory.events"
        )
        self._first = None if self._memory_events is None else Path(f"/proc/{found['State']['Pid']}")
        # All desktops of a container stand still together when its time is used up.
        cpus = found["HostConfig"].get("NanoCpus", 0) / 1e9
        if not 0 < cpus < self.engine.info["NCPU"]:
            return None
        return Throttle.of(found["Id"], found["State"]["Pid"], cpus)

    def oom_killed(self) -> int:
        """How many of its processes were killed because memory ran out, as far as this machine's kernel shows it."""
        return cgroup.oom_kills(self._memory_events) if self._memory_events is not None else 0

    def state(self) -> tuple[bool, int, bool]:
        """Whether what keeps the desktop runs, how it ended, and whether memory had run out."""
        state = self.inspect()["State"]
        if self.keeper is None or not state["Running"]:
            running = state["Running"] or state["Restarting"] or state["Status"] == "created"
            return running, state["ExitCode"], state["OOMKilled"]
        found = self.engine.api.exec_inspect(self.keeper)
        return found["Running"], found["ExitCode"] or 0, False

    def cause(self, lost: DesktopLost) -> DesktopLost:
        """The same loss, with the engine's knowledge of it."""
        try:
            found = self._loss(_STARVED_LIMIT if self.oom_killed() else DEATH_LIMIT)
        except (self.engine.errors.DockerException, OSError) as error:
            return DesktopLost(
                "daemon", f"the Docker engine does not answer: {error}", "start the engine, then launch again"
            )
        if found is None:
            # What would report how the X server ended has no memory left for it.
            if lost.cause == "x_server" and (killed := self.oom_killed()):
                detail = (
                    f"its memory was used up, {killed} of its processes were killed for that, and X does not answer"
                )
                return DesktopLost("oom", f"container {self.name}: {detail}")
            return lost
        return found

    def loss(self, limit: float = 0.0) -> DesktopLost | None:
        """Why it has ended; None while it runs, and if the engine does not answer.

        Args:
            limit: Seconds to wait for its end: its commands end a little before the engine reports its end.
        """
        try:
            return self._loss(limit)
        except (self.engine.errors.DockerException, OSError):
            return None

    def _is_ending(self) -> bool:
        """Whether its first process is ending or has ended: the kernel ends all others of the container then."""
        if self._first is None:
            return False
        try:
            fields = (self._first / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return True
        return bool(int(fields[6]) & _EXITING)

    def _loss(self, limit: float) -> DesktopLost | None:
        begun = time.monotonic()
        try:
            with self.engine.impatient():
                running, code, starved = self.state()
                # On a busy machine the engine may learn of it seconds after its commands have ended with it.
                while running and time.monotonic() - begun < (_REPORT_LIMIT if limit and self._is_ending() else limit):
                    time.sleep(0.01)
                    running, code, starved = self.state()
        except self.engine.errors.NotFound:
            return DesktopLost("container", f"the container {self.name} was removed")
        if running:
            return None
        what = {
            _X_ENDED: ("x_server", "the X server ended"),
            _PART_ENDED: ("supervisor", "a part of the desktop ended again and again"),
            _X_ABSENT: ("x_server", "the X server did not come up"),
            _X_KILLED: ("oom", "the X server was killed because the container's memory was used up"),
            _KILLED: ("oom", "the container was killed because its memory was used up")
            if starved
            else ("container", "it was killed"),
        }
        cause, detail = what.get(code, ("container", f"it ended with exit code {code}"))
        return DesktopLost(cause, f"container {self.name}: {detail}")

    def raise_if_dying(self) -> None:
        """Called when something has ended that a dying container would have ended too.

        Raises:
            DesktopLost: It has ended.
        """
        if (lost := self.loss(DEATH_LIMIT)) is not None:
            raise lost
