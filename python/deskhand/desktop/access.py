"""What other parts of deskhand do with a `Desktop` beside its public methods: its core, its views, its next object.

This module owns the only way from a `Desktop` to its core. It does nothing on the desktop itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from deskhand._core.arguments import expect
from deskhand.desktop import lifecycle
from deskhand.desktop.control import wait_for_help
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.operations import CallContext, Operation, calling, check_interceptors
from deskhand.errors import PolicyDenied

if TYPE_CHECKING:
    from deskhand._core.health import Health
    from deskhand.desktop.connection import Core
    from deskhand.desktop.help_requests import HelpRequest
    from deskhand.desktop.machine_view import Host, Machine
    from deskhand.desktop.operations import Interceptor, SafetyCheck
    from deskhand.desktop.view import View

_D = TypeVar("_D", bound=Desktop)


def bare(desktop: _D) -> _D:
    """The desktop without interceptors, for deskhand's own looks, and for a task's setup and evaluation.

    It does not wait while the desktop is paused.
    """
    view = _view_of(desktop)
    seen: _D = view.see(view.core, (), waits=False) if view.interceptors or view.waits else desktop
    return seen


def core_of(desktop: Desktop) -> Core:
    """What all views of a desktop share: the same object for two views of one desktop."""
    return _view_of(desktop).core


def desktop_of(operation: Operation) -> Desktop | None:
    """The whole of the desktop that an operation belongs to, without interceptors; None where it belongs to none."""
    return operation.desktop if isinstance(operation.desktop, Desktop) else None


def commands_of(desktop: Desktop) -> Machine | Host:
    """Where the desktop's programs run: its own machine, or this one."""
    return desktop.machine if desktop.has_machine else desktop.host


def is_judged(desktop: Desktop) -> bool:
    """Whether a policy decides what is done through this view, and a call may wait for a person's answer."""
    return _view_of(desktop).judged


def keep(desktop: _D, *interceptors: Interceptor, first: bool = False) -> _D:
    """Put the owner's interceptors into the gate of a desktop, for its whole life: behind those that are there, or first."""
    check_interceptors("keep", interceptors)
    view = _view_of(desktop)
    there = view.interceptors
    view.core.interceptors = view.interceptors = (*interceptors, *there) if first else (*there, *interceptors)
    view.gated = view.gated or bool(interceptors)
    return desktop


def take_out(desktop: Desktop, *interceptors: Interceptor) -> None:
    """Take what `keep` put in out of the gate of a desktop. Other views that were made meanwhile still have it."""
    view = _view_of(desktop)
    for gate in (view, view.core, lifecycle.latest(view.core)):
        gate.interceptors = tuple(each for each in gate.interceptors if each not in interceptors)


def review(desktop: Desktop, call: CallContext) -> tuple[SafetyCheck, ...]:
    """Ask about the call's safety checks that were not asked about before.

    Only the `ask` of a `Guard` can say yes, for each check alone, whatever the policy allows; the policy may say no.

    Returns:
        All of them, each answered with an explicit yes. These, and no others, may be sent to the provider as
        acknowledged.

    Raises:
        PolicyDenied: One of them was not, or there is no one to ask.
    """
    expect("review: call", call, CallContext)
    with calling(call):
        desktop.operate(Operation("safety_check"), lambda: None)
    if len(call.acknowledged) < len(call.safety_checks):
        raise PolicyDenied("safety_check", "the provider wants it confirmed, and there is no policy: pass ask=")
    return call.acknowledged


def await_help(desktop: Desktop, request: HelpRequest, timeout: float) -> bool:
    """Wait until a request for help has ended, or for so many seconds. Returns whether it has ended.

    Raises:
        PolicyDenied: The desktop was stopped.
        Closed: It was closed.
    """
    return wait_for_help(_view_of(desktop), request, timeout)


def pass_on(desktop: _D) -> _D:
    """Another object for a desktop as it is. This one, and every view of it, can no longer be used.

    The interceptors that the desktop was launched with stay; those of a view do not.

    Raises:
        Closed: It is closed.
        DesktopLost: It is gone.
    """
    core = lifecycle.pass_on(core_of(desktop))
    return _seen(desktop, core, core.interceptors)


def latest(desktop: _D) -> _D:
    """The current object of a desktop, after `pass_on` and `reset` have replaced others."""
    core = lifecycle.latest(core_of(desktop))
    return desktop if core is core_of(desktop) else _seen(desktop, core, core.interceptors)


def revoke(desktop: Desktop) -> None:
    """Refuse everything from now on, and end the call under way without waiting for it: the desktop is back in its pool."""
    lifecycle.revoke(lifecycle.latest(core_of(desktop)))


def last_look(desktop: Desktop, timeout: float) -> Health:
    """The health of a desktop that was revoked.

    Raises:
        Closed: It is closed.
    """
    return lifecycle.last_look(core_of(desktop), timeout)


def _seen(desktop: _D, core: Core, interceptors: tuple[Interceptor, ...]) -> _D:
    seen: _D = _view_of(desktop).see(core, interceptors)
    return seen


def _view_of(desktop: Desktop) -> View:
    return desktop._view  # noqa: SLF001 # the one place outside of `Desktop`
