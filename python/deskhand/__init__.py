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
from deskhand.audit import AuditLog
from deskhand.backends.base import Window
from deskhand.desktop import Desktop
from deskhand.difference import difference
from deskhand.entry import connect, launch
from deskhand.errors import (
    ActionError,
    AuthFailed,
    BackendError,
    BadPlan,
    Closed,
    ConnectFailed,
    DeskhandError,
    DesktopLost,
    EpisodeError,
    ImagingError,
    InputBlocked,
    LaunchFailed,
    LedgerError,
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
from deskhand.geometry import Point, Rect, Size, Viewport
from deskhand.guard import Guard
from deskhand.inside import CommandResult, LeftOutWarning, Listing, Usage
from deskhand.observation import Elapsed, Observation, Screenshot
from deskhand.operations import Call, Interceptor, Operation, SafetyCheck, calling
from deskhand.policy import ActionClass, ClassPolicy, Context, Decision, NoPolicyWarning, Policy, RateLimits
from deskhand.probes import Health
from deskhand.programs import Program
from deskhand.redaction import Secret
from deskhand.settle import Reason, Settle
from deskhand.shell import Shell
from deskhand.sizes import Fit

if TYPE_CHECKING:
    from deskhand.aio import AsyncDesktop, AsyncShell
    from deskhand.launch.docker import Limits, Mount
    from deskhand.launch.pool import AsyncPool, Pool, PoolStatus

__all__ = [
    "Action",
    "ActionClass",
    "ActionError",
    "AsyncDesktop",
    "AsyncPool",
    "AsyncShell",
    "AuditLog",
    "AuthFailed",
    "BackClick",
    "BackendError",
    "BadPlan",
    "Call",
    "ClassPolicy",
    "Closed",
    "CommandResult",
    "ConnectFailed",
    "Context",
    "CursorPosition",
    "Decision",
    "DeskhandError",
    "Desktop",
    "DesktopLost",
    "DoubleClick",
    "Drag",
    "Elapsed",
    "EpisodeError",
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
    "MiddleClick",
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
    "launch",
]

# Imported when first asked for: asyncio, containers and pools would take a third of the time of `import deskhand`.
_LATER = {
    "AsyncDesktop": "deskhand.aio",
    "AsyncPool": "deskhand.launch.pool",
    "AsyncShell": "deskhand.aio",
    "Limits": "deskhand.launch.docker",
    "Mount": "deskhand.launch.docker",
    "Pool": "deskhand.launch.pool",
    "PoolStatus": "deskhand.launch.pool",
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
