"""Desktops in place of the virtual machines of OSWorld's environment, `DesktopEnv` of the package `desktop-env`.

    >>> from desktop_env import desktop_env
    >>> machines = VirtualMachines(lambda: deskhand.launch("docker"))
    >>> desktop_env.create_vm_manager_and_provider = machines
    >>> env = desktop_env.DesktopEnv(provider_name="docker", path_to_vm="deskhand")

Each environment gets a desktop and a server of its own (`guest_server.py`), on a free port of loopback and with a key of its
own. Where OSWorld reverts to a snapshot, it gets a new desktop. This module owns these servers and the names and parameters of
OSWorld's manager and provider. It does not need `desktop-env`.
"""

from __future__ import annotations

import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_callable, expect_integer
from deskhand._core.extras import load
from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop.desktop import Desktop
from deskhand.errors import BackendError, UnsupportedAction
from deskhand.providers.osworld.guest_server import application

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY_BYTES = 24
_PATH = "deskhand"
_USER = "osworld"
# OSWorld shows it to people. There is no such server here.
_VNC = 8006


class VirtualMachines:
    """Stands in for OSWorld's `create_vm_manager_and_provider`."""

    def __init__(self, start: Callable[[], Desktop], *, chromium_port: int = 9222, vlc_port: int = 8080) -> None:
        """Begin with no desktop.

        Args:
            start: Makes a desktop, such as `lambda: deskhand.launch("docker", policy=...)`. The environment closes it.
            chromium_port: The port of 127.0.0.1 at which OSWorld finds the desktop's Chromium (its DevTools), if one listens.
            vlc_port: The same of its VLC.

        Raises:
            ActionError: `start` is no function, or a port is none.
        """
        expect_callable("VirtualMachines: start", start)
        for name, port in (("chromium_port", chromium_port), ("vlc_port", vlc_port)):
            expect_integer(f"VirtualMachines: {name}", port, 1, 65535)
        self._start = start
        self._ports = (chromium_port, _VNC, vlc_port)

    def __call__(self, *_: object, **__: object) -> tuple[Manager, Provider]:
        """A manager and a provider for one environment; the arguments mean nothing here."""
        return Manager(), Provider(self._start, self._ports)


class Manager:
    """OSWorld's list of virtual machines: there is no list."""

    def get_vm_path(self, **_: object) -> str:
        """A name for the desktop."""
        return _PATH

    def initialize_registry(self, **_: object) -> None:
        """Nothing is done, as in the following."""

    def add_vm(self, vm_path: str, *_: object, **__: object) -> None:
        """See `initialize_registry`."""

    def delete_vm(self, vm_path: str, *_: object, **__: object) -> None:
        """See `initialize_registry`."""

    def occupy_vm(self, vm_path: str, *_: object, **__: object) -> None:
        """See `initialize_registry`."""

    def list_free_vms(self, **_: object) -> list[str]:
        """See `initialize_registry`."""
        return []

    def check_and_clean(self, **_: object) -> None:
        """See `initialize_registry`."""


class Provider:
    """OSWorld's control of one virtual machine: one desktop and its server."""

    def __init__(self, start: Callable[[], Desktop], ports: tuple[int, int, int]) -> None:
        """Begin with no desktop; `ports` are those of Chromium, VNC and VLC."""
        self._start = start
        self._ports = ports
        self._served: _Served | None = None

    @property
    def desktop(self) -> Desktop:
        """The desktop.

        Raises:
            BackendError: There is none yet, or it was closed.
        """
        return self._running().desktop

    def start_emulator(self, path_to_vm: str, *_: object, **__: object) -> None:
        """Start a desktop and its server, unless they run."""
        if self._served is None:
            self._served = _Served(expect("VirtualMachines: what start returns", self._start(), Desktop))

    def get_ip_address(self, path_to_vm: str) -> str:
        """The address with the key, and the ports of the server, Chromium, VNC and VLC."""
        return _Address(":".join((self._running().address, *map(str, self._ports))))

    def save_state(self, path_to_vm: str, snapshot_name: str) -> None:
        """Refused: the states of desktops cannot be saved.

        Raises:
            UnsupportedAction: Always.
        """
        raise UnsupportedAction("a desktop of OSWorld's environment", "save_state", "its state cannot be saved")

    def revert_to_snapshot(self, path_to_vm: str, snapshot_name: str) -> str:
        """Close the desktop; `start_emulator` makes a new one."""
        self.stop_emulator(path_to_vm)
        return path_to_vm

    def stop_emulator(self, path_to_vm: str, *_: object, **__: object) -> None:
        """Close the server and the desktop. Calling it again is harmless."""
        served, self._served = self._served, None
        if served is not None:
            served.close()

    def _running(self) -> _Served:
        if self._served is None:
            raise BackendError("this environment has no desktop: it was not started, or was closed")
        return self._served


class _Address(str):
    """An address whose first part has a colon, which OSWorld takes for the end of that part."""

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: Any = -1) -> list[str]:
        user, at, rest = self.partition("@")
        host, *ports = rest.split(sep, maxsplit)
        return [f"{user}{at}{host}", *ports]


class _Served:
    """A desktop that is served."""

    def __init__(self, desktop: Desktop) -> None:
        self.desktop = desktop
        try:
            uvicorn = load("uvicorn", "osworld")
            key = secrets.token_urlsafe(_KEY_BYTES)
            self._there = AsyncDesktop(desktop)
            served = application(self._there, api_key=key, programs=True)
            # Requests wait in its queue until the server takes them.
            self._listener = socket.create_server(("127.0.0.1", 0))
            # An answer of two parts does not wait for an acknowledgement between them; asyncio leaves this out.
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            desktop.close()
            raise
        config = uvicorn.Config(served, log_level="warning", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listener],), name="deskhand-osworld", daemon=True
        )
        self._thread.start()
        port = self._listener.getsockname()[1]
        self.address = f"{_USER}:{key}@127.0.0.1:{port}"

    def close(self) -> None:
        """End the server, and close the desktop."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
        self._there.detach().close()
