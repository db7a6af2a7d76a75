"""deskhand: act on a Linux desktop, wait until the screen has answered, get the frame and what changed in it.

    >>> import deskhand
    >>> from deskhand import LeftClick, Type
    >>> with deskhand.launch() as desktop:
    ...     desktop.start("mousepad")
    ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))
    ...     seen.save("after.png")

Everything public is importable from here. `help(deskhand.Desktop)` and the like have the rest:

    launch, connect            a `Desktop`; `AsyncDesktop` for coroutines
    Desktop.perform            carries out actions (LeftClick, Type, KeyPress, Scroll...: `help("deskhand.actions")`), and
                               returns an `Observation`
    Desktop.find, expect       the elements that applications show, and what a test expects of them
    Desktop.start, .windows    programs and windows; `.clipboard`, `.machine` and `.host` are beside them
    Pool, AsyncPool            desktops that are kept ready
    ClassPolicy, Guard         what is allowed; RateLimits, AuditLog and Secret are beside them
    DeskhandError              the root of all errors: `help("deskhand.errors")` draws the tree

`deskhand.providers` (OpenAI, Anthropic, Google, MCP...), `deskhand.execution` and `deskhand.episodes` are imported by their
names.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deskhand._core.difference import difference as difference
    from deskhand._core.elements import Element as Element, Elements as Elements
    from deskhand._core.geometry import Point as Point, Rect as Rect, Size as Size, Viewport as Viewport
    from deskhand._core.health import Health as Health
    from deskhand._core.monitor import Monitor as Monitor
    from deskhand._core.observation import Elapsed as Elapsed, Observation as Observation, Screenshot as Screenshot
    from deskhand._core.redaction import Secret as Secret
    from deskhand._core.settle import Reason as Reason, Settle as Settle
    from deskhand._core.sizes import Fit as Fit
    from deskhand._core.window import Window as Window
    from deskhand._native import Interrupted as Interrupted, __version__ as __version__
    from deskhand.actions import (
        Action as Action,
        BackClick as BackClick,
        CursorPosition as CursorPosition,
        DoubleClick as DoubleClick,
        Drag as Drag,
        ForwardClick as ForwardClick,
        KeyHold as KeyHold,
        KeyPress as KeyPress,
        LeftClick as LeftClick,
        LeftMouseDown as LeftMouseDown,
        LeftMouseUp as LeftMouseUp,
        MiddleClick as MiddleClick,
        MouseDown as MouseDown,
        MouseUp as MouseUp,
        Move as Move,
        PressKeys as PressKeys,
        ReleaseKeys as ReleaseKeys,
        RightClick as RightClick,
        Scroll as Scroll,
        TakeScreenshot as TakeScreenshot,
        TripleClick as TripleClick,
        Type as Type,
        Wait as Wait,
        Zoom as Zoom,
    )
    from deskhand.aio.desktop import AsyncDesktop as AsyncDesktop, AsyncShell as AsyncShell
    from deskhand.desktop.desktop import Desktop as Desktop
    from deskhand.desktop.expect import expect as expect
    from deskhand.desktop.locator import Locator as Locator
    from deskhand.desktop.operations import (
        CallContext as CallContext,
        Interceptor as Interceptor,
        Operation as Operation,
        SafetyCheck as SafetyCheck,
        calling as calling,
    )
    from deskhand.errors import (
        ActionError as ActionError,
        AuthFailed as AuthFailed,
        BackendError as BackendError,
        BadPlan as BadPlan,
        Closed as Closed,
        ConnectFailed as ConnectFailed,
        DeskhandError as DeskhandError,
        DeskhandTimeout as DeskhandTimeout,
        DesktopHeld as DesktopHeld,
        DesktopLost as DesktopLost,
        EpisodeError as EpisodeError,
        ExpectationFailed as ExpectationFailed,
        FileError as FileError,
        ImagingError as ImagingError,
        InputBlocked as InputBlocked,
        LaunchFailed as LaunchFailed,
        LedgerError as LedgerError,
        MissingExtra as MissingExtra,
        OutOfBounds as OutOfBounds,
        PolicyDenied as PolicyDenied,
        PoolExhausted as PoolExhausted,
        ProtocolViolation as ProtocolViolation,
        Reconnected as Reconnected,
        RecordFull as RecordFull,
        ServerSilent as ServerSilent,
        ShellError as ShellError,
        TaskError as TaskError,
        UnsupportedAction as UnsupportedAction,
        Untypable as Untypable,
    )
    from deskhand.launchers.docker.spec import Limits as Limits, Mount as Mount
    from deskhand.launchers.targets import connect as connect, launch as launch
    from deskhand.machine.interface import (
        CommandResult as CommandResult,
        LeftOutWarning as LeftOutWarning,
        Listing as Listing,
        Usage as Usage,
    )
    from deskhand.machine.program import Program as Program
    from deskhand.machine.shell import Shell as Shell
    from deskhand.policy.audit import AuditLog as AuditLog
    from deskhand.policy.guard import Guard as Guard
    from deskhand.policy.limits import RateLimits as RateLimits
    from deskhand.policy.questions import Questions as Questions
    from deskhand.policy.rules import (
        ActionClass as ActionClass,
        Answer as Answer,
        ClassPolicy as ClassPolicy,
        Context as Context,
        Decision as Decision,
        NoPolicyWarning as NoPolicyWarning,
        Policy as Policy,
    )
    from deskhand.pool.aio import AsyncPool as AsyncPool
    from deskhand.pool.pool import Pool as Pool
    from deskhand.pool.status import PoolStatus as PoolStatus

# Where each name is. A module is imported when one of its names is first asked for, because all of them take ten times as long
# as Python itself, and a command or a program needs a few.
_HOMES = {
    "_core.difference": "difference",
    "_core.elements": "Element Elements",
    "_core.geometry": "Point Rect Size Viewport",
    "_core.health": "Health",
    "_core.monitor": "Monitor",
    "_core.observation": "Elapsed Observation Screenshot",
    "_core.redaction": "Secret",
    "_core.settle": "Reason Settle",
    "_core.sizes": "Fit",
    "_core.window": "Window",
    "_native": "Interrupted __version__",
    "actions": (
        "Action BackClick CursorPosition DoubleClick Drag ForwardClick KeyHold KeyPress LeftClick "
        "LeftMouseDown LeftMouseUp MiddleClick MouseDown MouseUp Move PressKeys ReleaseKeys RightClick Scroll "
        "TakeScreenshot TripleClick Type Wait Zoom"
    ),
    "aio.desktop": "AsyncDesktop AsyncShell",
    "desktop.desktop": "Desktop",
    "desktop.expect": "expect",
    "desktop.locator": "Locator",
    "desktop.operations": "CallContext Interceptor Operation SafetyCheck calling",
    "errors": (
        "ActionError AuthFailed BackendError BadPlan Closed ConnectFailed DeskhandError DeskhandTimeout "
        "DesktopHeld DesktopLost EpisodeError ExpectationFailed FileError ImagingError InputBlocked LaunchFailed "
        "LedgerError MissingExtra OutOfBounds PolicyDenied PoolExhausted ProtocolViolation Reconnected "
        "RecordFull ServerSilent ShellError TaskError UnsupportedAction Untypable"
    ),
    "launchers.docker.spec": "Limits Mount",
    "launchers.targets": "connect launch",
    "machine.interface": "CommandResult LeftOutWarning Listing Usage",
    "machine.program": "Program",
    "machine.shell": "Shell",
    "policy.audit": "AuditLog",
    "policy.guard": "Guard",
    "policy.limits": "RateLimits",
    "policy.questions": "Questions",
    "policy.rules": "ActionClass Answer ClassPolicy Context Decision NoPolicyWarning Policy",
    "pool.aio": "AsyncPool",
    "pool.pool": "Pool",
    "pool.status": "PoolStatus",
}
_PLACES = {name: f"deskhand.{home}" for home, names in _HOMES.items() for name in names.split()}
# What `import deskhand` alone makes reachable beside the names.
_MODULES = ("actions", "errors")

if not TYPE_CHECKING:  # A type checker would take any name for one of ours.

    def __getattr__(name: str) -> object:
        if name in _PLACES:
            value = getattr(importlib.import_module(_PLACES[name]), name)
        elif name in _MODULES:
            value = importlib.import_module(f"deskhand.{name}")
        elif name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":  # noqa: SLF001 # Python's own
            # For `from deskhand import *`. Without it, help(deskhand) is the text above: with it, 9,900 lines about every name.
            return sorted(_PLACES)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*_PLACES, *(name for name in globals() if name.startswith("__"))})


# Nothing of it is loaded without the variable. It stands here because launchers must not import episodes.
if os.environ.get("DESKHAND_TRACE"):
    importlib.import_module("deskhand.episodes.record.tracing").trace_openings(os.environ["DESKHAND_TRACE"])
