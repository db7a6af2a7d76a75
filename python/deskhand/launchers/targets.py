"""`launch` and `connect`: from a word or a URL to a `Desktop`.

This module owns the spelling of targets. What must never appear here: how a desktop is made (`deskhand.launch`) or reached
(`deskhand.backends`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from deskhand._core.arguments import (
    expect,
    expect_callable,
    expect_flag,
    expect_like,
    expect_path,
    expect_text,
    expect_word,
)
from deskhand.backends.vnc.target import is_vnc, parse_target
from deskhand.backends.x11.backend import X11Backend
from deskhand.desktop.access import keep
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, ConnectFailed, nearest, shown
from deskhand.launchers import registry
from deskhand.launchers.display import check_display, check_method
from deskhand.launchers.local.accessibility import has_accessibility
from deskhand.launchers.local.environment import program_environment
from deskhand.machine.program_arguments import check_timeout, program_variables

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from deskhand.launchers.docker.spec import ContainerOptions
    from deskhand.machine.processes import Guard
    from deskhand.policy.audit import AuditLog
    from deskhand.policy.rules import Ask, Policy

_RETRY_PERIOD = 0.02
_DOCKER = "docker://"
_BACKENDS = ("local", "docker")
_HEARERS: list[Callable[[Desktop], object]] = []


def launch(
    backend: str = "local",
    *,
    size: tuple[int, int] = (1280, 800),
    name: str | None = None,
    window_manager: str | None = "auto",
    env: Mapping[str, str | os.PathLike[str]] | None = None,
    dpi: int = 96,
    method: str | None = None,
    home: bool | str | os.PathLike[str] = True,
    elements: bool = True,
    animations: bool = False,
    timeout: float = 20.0,
    policy: Policy | None = None,
    ask: Ask | None = None,
    audit: AuditLog | None = None,
    **options: Unpack[ContainerOptions],
) -> Desktop:
    """Start a new desktop and return it ready for use.

    Args:
        backend: `"local"`: a virtual display (Xvfb) and a window manager on this machine. `"docker"`: the same in a container
            without network, rights or a way to this machine's files (needs `pip install 'deskhand[docker]'` and an engine).
        size: Width and height in pixels, 1 to 16384 each.
        name: List it under this name, so that `connect(name)` and the command line find it.
        window_manager: A program, `"auto"` for the first known one that is installed, None for none.
        env: Added to the environment of programs started on it.
        dpi: Dots per inch that the display reports.
        method: Capture through `"shared-fd"`, `"shared-id"` or `"socket"` only; by default the fastest that works.
        home: The home directory of its programs. True: a new one, which is removed with the desktop, and a directory for
            temporary files and a session bus without a keyring; the fonts, themes and icons that you have installed are visible
            there. A directory: the same, as a copy of it. False: your own, with your settings, files and keys. A container
            always has its own.
        elements: Whether its programs show their elements, for `Desktop.elements`: three more processes, which are idle until
            a call needs them. Requires the package at-spi2-core, which the images of `deskhand image build` have.
        animations: Whether its programs may animate, blink and scroll smoothly. By default they do not, so that the screen
            shows at once what an action has done. This is a setting of GTK, which Chromium, Firefox and LibreOffice follow.
            What the home directory has in its own settings of GTK comes first.
        timeout: Seconds to wait for each of its parts; for all of them in a container.
        policy: Decides about every operation on the desktop, from any part of the program; see `Guard`. None: no policy.
        ask: Called where the policy requires it; see `Guard`.
        audit: Where every decision is written; see `Guard`.
        options: For `"docker"`: `image`, `network`, `mounts`, `user`, `limits`, `vnc`, `labels` and `remote`, which
            `deskhand.launchers.docker.launch.launch_docker` explains.

    Raises:
        LaunchFailed: A part did not come up; the message has what it wrote and what to do.
        ActionError: An argument is impossible.
    """
    env = program_variables("launch", env)
    check_display(size=size, dpi=dpi, method=method, window_manager=window_manager, timeout=timeout)
    _check_judges("launch", policy=policy, ask=ask, audit=audit)
    if name is not None:
        registry.check_name(name)
    if not isinstance(home, bool):
        home = expect_path("launch: home", home)
    expect_flag("launch: elements", elements)
    expect_flag("launch: animations", animations)
    if backend == "docker":
        if not isinstance(home, bool):
            raise ActionError("a container's home is its own: bring files with desktop.machine.copy_in, or mounts=")
        if "displays" in options:
            raise ActionError("several desktops in one container are a pool's: deskhand.Pool('docker', displays=4)")
        from deskhand.launchers.docker.launch import launch_docker  # noqa: PLC0415 # its imports take long, and most programs need none

        launched = launch_docker(
            size=size,
            name=name,
            window_manager=window_manager,
            env=env,
            dpi=dpi,
            method=method,
            elements=elements,
            animations=animations,
            timeout=timeout,
            **options,
        )
        return opened(launched, policy, ask, audit)
    if backend != "local":
        near = nearest(expect_text("launch: backend", backend), _BACKENDS)
        hint, said = "a program is started by desktop.start(...)", shown(backend)
        if near:
            hint = f"did you mean {near[0]!r}?"
        elif ":" in backend:
            hint = "what runs already is opened by connect(...), as in connect('x11::99') or connect('vnc://host:1')"
            # Shown only in part: it may hold a password.
            said = shown(f"{backend.partition(':')[0]}:...")
        raise ActionError(f"launch: backend is 'local' or 'docker', not {said}", hint)
    if options:
        raise ActionError(f"a local desktop has no such option: {', '.join(options)}")
    from deskhand.launchers.local.launch import launch_local  # noqa: PLC0415 # a program that connects needs no launcher

    launched = launch_local(
        size=size,
        name=name,
        window_manager=window_manager,
        env=env,
        dpi=dpi,
        method=method,
        home=home,
        elements=elements,
        animations=animations,
        timeout=timeout,
    )
    return opened(launched, policy, ask, audit)


def connect(
    url: str,
    *,
    timeout: float = 10.0,
    view_only: bool = False,
    xauthority: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | os.PathLike[str]] | None = None,
    method: str | None = None,
    username: str | None = None,
    password: str | Callable[[], str] | None = None,
    password_file: str | os.PathLike[str] | None = None,
    certificates: str | os.PathLike[str] | None = None,
    verify: bool = True,
    policy: Policy | None = None,
    ask: Ask | None = None,
    audit: AuditLog | None = None,
) -> Desktop:
    """Drive a desktop that runs already. Closing the returned object leaves it running.

    Args:
        url: `"x11::99"` (as `DISPLAY` names it, after `x11:`), the name of a desktop that was launched with one, or a VNC
            server: `"vnc://host:1"` (display 1), `"vnc://host:5901"` or `"vnc://host::5901"` (port), `"vnc://[::1]:1"`,
            `"vnc+unix:///path"`, each with `user:password@` where needed, or a container: `"docker://name"`.
        timeout: Seconds to wait for a local display that is just starting, or for a VNC server's first picture.
        view_only: Only look. Any number of drivers may look while one acts.
        xauthority: Its cookie file; by default the one every X client would use.
        env: Added to the environment of programs started on it.
        method: See `launch`.
        username: For VNC servers that ask for one.
        password: The VNC server's password, or a function for it. Else it is the first line of `password_file`, the URL's,
            `DESKHAND_VNC_PASSWORD` of the environment, or the first line of the file `DESKHAND_VNC_PASSWORD_FILE`.
        password_file: See `password`.
        certificates: A file with the authorities that may sign a VNC server's certificate; by default those of the
            system. With it, a server without a certificate is refused before a password is sent; without it, a server
            may choose a way in that does not prove its identity.
        verify: Whether a VNC server's certificate is checked.
        policy: See `launch`, also for the next two.
        ask: See `launch`.
        audit: See `launch`.

    Raises:
        ConnectFailed: It is not there, or another driver acts on it.
        AuthFailed: It refused the cookie or the password, or is not trusted.
        ActionError: `url` is not a target.
    """
    env = program_variables("connect", env)
    check_timeout("connect", timeout)
    check_method("connect", method)
    _check_judges("connect", policy=policy, ask=ask, audit=audit)
    expect_word("connect: url", expect_text("connect: url", url))
    _check_flags(view_only=view_only, verify=verify)
    _check_files(xauthority=xauthority, password_file=password_file, certificates=certificates)
    _check_login(username, password)
    if is_vnc(url):
        from deskhand.backends.vnc.backend import VncBackend  # noqa: PLC0415 # with TLS

        target = parse_target(
            url,
            username=username,
            password=password,
            password_file=password_file,
            certificates=certificates,
            verify=verify,
        )
        desktop = Desktop(VncBackend(target, timeout=timeout), name=str(target), view_only=view_only)
        return opened(desktop, policy, ask, audit)
    if url.startswith(_DOCKER):
        from deskhand.launchers.docker.connect import connect_docker  # noqa: PLC0415 # as for `launch`

        desktop = connect_docker(url.removeprefix(_DOCKER), timeout=timeout, view_only=view_only, method=method)
        return opened(desktop, policy, ask, audit)
    directory: Path | None = None
    socket = ""
    name = None
    if url.startswith("x11:"):
        display = url.removeprefix("x11:").removeprefix("//")
        if ":" not in display:
            raise ActionError(f"{url!r} names no display: write 'x11:' and what DISPLAY would be, as in 'x11::99'")
    elif "://" in url or ":" in url:
        # Shown only in part: it may hold a password.
        scheme, _, rest = url.partition(":")
        if not scheme and rest.replace(".", "").isdecimal():
            raise ActionError(f"{shown(url)} names no desktop: did you mean 'x11:{shown(url)[1:-1]}'?")
        raise ActionError(
            f"cannot connect to '{scheme}:...': use 'x11::99', 'vnc://host:1' or the name of a launched desktop"
        )
    else:
        entry = registry.find(registry.check_name(url))
        if entry is None:
            known = ", ".join(e.name for e in registry.entries()) or "none"
            raise ConnectFailed(url, "no desktop of that name runs", f"running: {known}; start one with `deskhand up`")
        if entry.container:
            from deskhand.launchers.docker.connect import connect_docker  # noqa: PLC0415 # as for `launch`

            desktop = connect_docker(
                entry.container, timeout=timeout, view_only=view_only, method=method, environment=entry.engine
            )
            return opened(desktop, policy, ask, audit)
        display, xauthority = entry.display, xauthority or entry.xauthority
        directory, socket, name = Path(entry.directory), entry.socket, entry.name
    backend = _open(display, xauthority, timeout, view_only=view_only, method=method)

    def guard() -> Guard:
        from deskhand.machine import runtime_directory  # noqa: PLC0415 # for one that starts programs
        from deskhand.machine.processes import Guard  # noqa: PLC0415

        return Guard.join(socket) if socket else Guard.start(runtime_directory.private_directory())

    desktop = Desktop(
        backend,
        display=display,
        xauthority=backend.xauthority,
        name=name,
        guard=guard,
        environment=program_environment(
            display,
            backend.xauthority,
            directory,
            env,
            accessible=directory is not None and has_accessibility(directory),
        ),
        view_only=view_only,
    )
    return opened(desktop, policy, ask, audit)


def _check_judges(what: str, *, policy: object, ask: object, audit: object) -> None:
    if policy is not None:
        expect_like(f"{what}: policy", policy, "before")
    if ask is not None:
        expect_callable(f"{what}: ask", ask)
    if audit is not None:
        from deskhand.policy.audit import AuditLog  # noqa: PLC0415 # most programs have no policy, as below

        expect(f"{what}: audit", audit, AuditLog)


def _check_flags(**flags: object) -> None:
    for name, flag in flags.items():
        expect_flag(f"connect: {name}", flag)


def _check_files(**files: object) -> None:
    for name, file in files.items():
        if file is not None:
            expect_path(f"connect: {name}", file)


def _check_login(username: object, password: object) -> None:
    if username is not None:
        expect_text("connect: username", username)
    if password is not None and not callable(password) and not isinstance(password, str):
        # The value is not shown, because it may be a password.
        raise ActionError(f"connect: password is a text or a function, not of type {type(password).__name__}")


def on_opening(hear: Callable[[Desktop], object]) -> None:
    """Call `hear` with each desktop that this process opens from now on, before its guard stands in the gate."""
    _HEARERS.append(hear)


def opened(desktop: Desktop, policy: Policy | None, ask: Ask | None, audit: AuditLog | None) -> Desktop:
    """A desktop that has just been made or reached, with its guard; it is closed if one of those that hear of it raises."""
    try:
        for hear in _HEARERS:
            hear(desktop)
    except BaseException:
        desktop.close()
        raise
    return guarded(desktop, policy, ask, audit)


def guarded(desktop: Desktop, policy: Policy | None, ask: Ask | None, audit: AuditLog | None) -> Desktop:
    """The desktop with a guard for its whole life, unless all three are None."""
    if policy is None and ask is None and audit is None:
        return desktop
    from deskhand.policy.guard import Guard  # noqa: PLC0415

    return keep(desktop, Guard(policy=policy, ask=ask, audit=audit))


def _open(
    display: str, xauthority: str | os.PathLike[str] | None, timeout: float, *, view_only: bool, method: str | None
) -> X11Backend:
    deadline = time.monotonic() + timeout
    while True:
        try:
            return X11Backend(display, xauthority=xauthority, view_only=view_only, method=method)
        except ConnectFailed:
            if not _is_starting(display) or time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_PERIOD)


def _is_starting(display: str) -> bool:
    """Whether a local server has begun to start: its lock is there, its socket not yet."""
    number = display.removeprefix(":").partition(".")[0]
    return Path(f"/tmp/.X{number}-lock").exists() and not Path(f"/tmp/.X11-unix/X{number}").exists()  # noqa: S108
