"""deskhand: act on a Linux desktop, wait until the screen has answered, get the frame and what changed in it.

    >>> import deskhand
    >>> from deskhand import LeftClick, Type
    >>> with deskhand.launch() as desktop:
    ...     desktop.start("mousepad")
    ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))

Everything public is importable from here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from deskhand._core.difference import difference
from deskhand._core.elements import Element, Elements
from deskhand._core.geometry import Point, Rect, Size, Viewport
from deskhand._core.health import Health
from deskhand._core.observation import Elapsed, Observation, Screenshot
from deskhand._core.redaction import Secret
from deskhand._core.settle import Reason, Settle
from deskhand._core.sizes import Fit
from deskhand._core.window import Window
from deskhand._native import __version__
from deskhand.actions import (
    Action,
    BackClick,
    CursorPosition,
    DoubleClick,
    Drag,
    ForwardClick,
    KeyHold,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    MiddleClick,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    RightClick,
    Scroll,
    TakeScreenshot,
    TripleClick,
    Type,
    Wait,
    Zoom,
)
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.expect import expect
from deskhand.desktop.locator import Locator
from deskhand.desktop.operations import CallContext, Interceptor, Operation, SafetyCheck, calling
from deskhand.errors import (
    ActionError,
    AuthFailed,
    BackendError,
    BadPlan,
    Closed,
    ConnectFailed,
    DeskhandError,
    DeskhandTimeout,
    DesktopHeld,
    DesktopLost,
    EpisodeError,
    ExpectationFailed,
    FileError,
    ImagingError,
    InputBlocked,
    LaunchFailed,
    LedgerError,
    MissingExtra,
    OutOfBounds,
    PolicyDenied,
    PoolExhausted,
    ProtocolViolation,
    Reconnected,
    RecordFull,
    ServerSilent,
    ShellError,
    TaskError,
    UnsupportedAction,
    Untypable,
)
from deskhand.launchers.targets import connect, launch
from deskhand.machine.interface import CommandResult, LeftOutWarning, Listing, Usage
from deskhand.machine.program import Program
from deskhand.machine.shell import Shell
from deskhand.policy.audit import AuditLog
from deskhand.policy.guard import Guard
from deskhand.policy.limits import RateLimits
from deskhand.policy.questions import Questions
from deskhand.policy.rules import ActionClass, Answer, ClassPolicy, Context, Decision, NoPolicyWarning, Policy

if TYPE_CHECKING:
    from deskhand.aio.desktop import AsyncDesktop, AsyncShell
    from deskhand.launchers.docker.spec import Limits, Mount
    from deskhand.pool.aio import AsyncPool
    from deskhand.pool.pool import Pool
    from deskhand.pool.status import PoolStatus

__all__ = [
    "Action",
    "ActionClass",
    "ActionError",
    "Answer",
    "AsyncDesktop",
    "AsyncPool",
    "AsyncShell",
    "AuditLog",
    "AuthFailed",
    "BackClick",
    "BackendError",
    "BadPlan",
    "CallContext",
    "ClassPolicy",
    "Closed",
    "CommandResult",
    "ConnectFailed",
    "Context",
    "CursorPosition",
    "Decision",
    "DeskhandError",
    "DeskhandTimeout",
    "Desktop",
    "DesktopHeld",
    "DesktopLost",
    "DoubleClick",
    "Drag",
    "Elapsed",
    "Element",
    "Elements",
    "EpisodeError",
    "ExpectationFailed",
    "FileError",
    "Fit",
    "ForwardClick",
    "Guard",
    "Health",
    "ImagingError",
    "InputBlocked",
    "Interceptor",
    "KeyHold",
    "KeyPress",
    "LaunchFailed",
    "LedgerError",
    "LeftClick",
    "LeftMouseDown",
    "LeftMouseUp",
    "LeftOutWarning",
    "Limits",
    "Listing",
    "Locator",
    "MiddleClick",
    "MissingExtra",
    "Mount",
    "MouseDown",
    "MouseUp",
    "Move",
    "NoPolicyWarning",
    "Observation",
    "Operation",
    "OutOfBounds",
    "Point",
    "Policy",
    "PolicyDenied",
    "Pool",
    "PoolExhausted",
    "PoolStatus",
    "PressKeys",
    "Program",
    "ProtocolViolation",
    "Questions",
    "RateLimits",
    "Reason",
    "Reconnected",
    "RecordFull",
    "Rect",
    "ReleaseKeys",
    "RightClick",
    "SafetyCheck",
    "Screenshot",
    "Scroll",
    "Secret",
    "ServerSilent",
    "Settle",
    "Shell",
    "ShellError",
    "Size",
    "TakeScreenshot",
    "TaskError",
    "TripleClick",
    "Type",
    "UnsupportedAction",
    "Untypable",
    "Usage",
    "Viewport",
    "Wait",
    "Window",
    "Zoom",
    "__version__",
    "calling",
    "connect",
    "difference",
    "expect",
    "launch",
]

# Imported when first asked for: asyncio, containers and pools would take a third of the time of `import deskhand`.
_LATER = {
    "AsyncDesktop": "deskhand.aio.desktop",
    "AsyncPool": "deskhand.pool.aio",
    "AsyncShell": "deskhand.aio.desktop",
    "Limits": "deskhand.launchers.docker.spec",
    "Mount": "deskhand.launchers.docker.spec",
    "Pool": "deskhand.pool.pool",
    "PoolStatus": "deskhand.pool.status",
}

if not TYPE_CHECKING:  # A type checker would take any name for one of ours.

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_LATER[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})
