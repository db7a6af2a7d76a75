"""The shells of a desktop: where each runs, and that none outlives the desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.attempts import CALLER
from deskhand.desktop.losses import losses_raised

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.connection import Core
    from deskhand.machine.interface import Session, Where
    from deskhand.machine.shell import Operate, Shell


def open_shell(
    core: Core,
    where: Where,
    what: str,
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout: float,
    limit: int,
    once: bool = False,
    operate: Operate | None = None,
    judged: bool = False,
) -> Shell:
    """A shell, which the desktop's end ends. `once`: for one command; `operate`: runs its operations."""
    # Few programs open one, and each would wait for this at its start.
    from deskhand.machine.host_session import HostSession, host_environment  # noqa: PLC0415
    from deskhand.machine.shell import Shell  # noqa: PLC0415

    core.refuse_if_closed()
    core.refuse_commands(what)
    inside = core.machine(what) if where == "desktop" else None

    def session() -> Session:
        if inside is not None:
            with losses_raised(core):
                return inside.session(cwd=cwd, env=env, once=once)
        environment = host_environment(core.environment, display=core.display, xauthority=core.xauthority, extra=env)
        return HostSession(cwd=cwd, env=environment, once=once)

    mine = core.commands if once else core.shells
    shell = Shell(
        session,
        timeout=timeout,
        limit=limit,
        once=once,
        on_close=lambda shell: mine.pop(shell, None),
        operate=operate,
        judged=judged,
        clock=core.clock,
    )
    # Registered before there is anything to end.
    mine[shell] = CALLER.get()
    try:
        shell.begin()
        # Another thread ended the shells meanwhile, perhaps without this one.
        core.refuse_if_closed()
    except BaseException:
        shell.close()
        raise
    return shell
