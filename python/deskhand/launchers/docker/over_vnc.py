"""A desktop whose engine is on another machine: its container cannot use files of this one, nor be seen from here.

So it is reached over VNC, through a command in the container whose streams the engine carries; docs/decisions/0052 says why.
This module owns when such a desktop is ready, and how it is checked. What must never appear here: how a container is made.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deskhand._core.geometry import Size
from deskhand.backends.vnc.backend import VncBackend
from deskhand.backends.vnc.target import VncTarget
from deskhand.errors import ConnectFailed, DeskhandTimeout, DesktopLost, LaunchFailed, ShellError
from deskhand.launchers.docker.container_commands import LIBRARY
from deskhand.launchers.docker.exec import Exec
from deskhand.launchers.docker.exec_stream import open_stream
from deskhand.launchers.docker.leftovers import SOCKETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.launchers.docker.container import Container

VNC_WANTED = "DESKHAND_VNC=1"
_SOCKET = f"{SOCKETS}/vnc"
_SLICE = 0.1
_ABSENT = 3
# Fails if the relay is absent, then waits until the desktop is ready. The last line names what it still waits for.
_WAIT = """
test -x "$1/relay" || exit 3
echo the VNC server
until test -S "$2"; do sleep 0.02; done
test "$3" = managed || exit 0
echo the window manager
until "$1/probe" started >/dev/null; do sleep 0.02; done
test -n "$4" || exit 0
echo the panel
until for w in $(xprop -root _NET_CLIENT_LIST | grep -o '0x[0-9a-f]*'); do xprop -id "$w" WM_CLASS; done | grep -qi "\\"$4\\""
do sleep 0.02; done
"""


def serves_vnc(container: Container) -> bool:
    """Whether it was started to serve VNC."""
    return VNC_WANTED in (container.inspect()["Config"]["Env"] or [])


def open_remote(
    container: Container,
    timeout: float,
    *,
    managed: bool,
    panel: str,
    check: Callable[[float], None],
    log: Callable[[], str],
) -> VncBackend:
    """Wait until its desktop is ready, and connect.

    Args:
        container: The container.
        timeout: Seconds until it must be ready.
        managed: Whether it has a window manager.
        panel: The class of its panel's window; empty where it has none.
        check: Called now and then with the seconds waited so far; raises if the container has ended.
        log: Returns the container's log.

    Raises:
        LaunchFailed: It has ended, is not ready in time, or its image is too old for this.
    """
    begun = time.monotonic()

    def waited() -> float:
        return time.monotonic() - begun

    script = ["timeout", str(max(1, round(timeout))), "sh", "-c", _WAIT, "sh", LIBRARY, _SOCKET]
    try:
        command = Exec(container.engine, container.id, [*script, "managed" if managed else "", panel])
    except ShellError as error:
        check(waited())
        raise LaunchFailed(f"the desktop in {container.name}", waited(), log(), error.reason) from error
    awaited = "the desktop"
    try:
        while not command.ended:
            for _, data in command.frames(_SLICE):
                awaited = data.decode("utf-8", "replace").strip().rpartition("\n")[2] or awaited
            check(waited())
            if waited() >= timeout:
                raise LaunchFailed(awaited, waited(), log())
        code = command.await_exit(1.0)
    finally:
        command.close()
    check(waited())
    if code == _ABSENT:
        hint = "its image has no relay, which an engine on another machine needs: build it again with `deskhand image build`"
        raise LaunchFailed(f"the desktop in {container.name}", waited(), "", hint)
    if code != 0:
        raise LaunchFailed(awaited, waited(), log())
    target = VncTarget(shown=f"docker://{container.name}", opener=lambda: open_stream(container, _SOCKET))
    try:
        return VncBackend(target, timeout=max(1.0, timeout - waited()))
    except (ConnectFailed, DesktopLost) as error:
        check(waited())
        raise LaunchFailed(f"a picture of {container.name}", waited(), log(), str(error)) from error


def glance_remote(container: Container, timeout: float) -> Size | None:
    """The size of its screen; None without an answer in time."""
    argv = ["timeout", str(timeout), "sh", "-c", "xdpyinfo | sed -n 's/^ *dimensions: *\\([0-9]*x[0-9]*\\) .*/\\1/p'"]
    try:
        width, _, height = container.run(argv, timeout=timeout + 1)[1].decode("ascii", "replace").strip().partition("x")
        return Size(int(width), int(height))
    except (ShellError, DeskhandTimeout, ValueError):
        return None
