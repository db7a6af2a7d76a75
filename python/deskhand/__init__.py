"""deskhand: act on a Linux desktop, wait until the screen has answered, get the frame and what changed in it.

    >>> import deskhand
    >>> from deskhand import LeftClick, Type
    >>> with deskhand.launch() as desktop:
    ...     desktop.start("mousepad")
    ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))

Everything public is importable from here.
"""

from __future__ import annotations

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
from deskhand.aio import AsyncDesktop
from deskhand.backends.base import Window
from deskhand.desktop import Desktop
from deskhand.difference import difference
from deskhand.entry import connect, launch
from deskhand.errors import (
    ActionError,
    AuthFailed,
    BackendError,
    ConnectFailed,
    DeskhandError,
    DesktopLost,
    ImagingError,
    LaunchFailed,
    OutOfBounds,
    PolicyDenied,
    PoolExhausted,
    ProtocolViolation,
    Reconnected,
    ShellError,
    UnsupportedAction,
    Untypable,
)
from deskhand.geometry import Point, Rect, Size, Viewport
from deskhand.inside import CommandResult, Usage
from deskhand.launch.docker import Limits, Mount
from deskhand.launch.pool import AsyncPool, Pool, PoolStatus
from deskhand.observation import Elapsed, Observation, Screenshot
from deskhand.programs import Program
from deskhand.settle import Reason, Settle
from deskhand.sizes import Fit

__all__ = [
    "Action",
    "ActionError",
    "AsyncDesktop",
    "AsyncPool",
    "AuthFailed",
    "BackClick",
    "BackendError",
    "CommandResult",
    "ConnectFailed",
    "CursorPosition",
    "DeskhandError",
    "Desktop",
    "DesktopLost",
    "DoubleClick",
    "Drag",
    "Elapsed",
    "Fit",
    "ForwardClick",
    "ImagingError",
    "KeyHold",
    "KeyPress",
    "LaunchFailed",
    "LeftClick",
    "LeftMouseDown",
    "LeftMouseUp",
    "Limits",
    "MiddleClick",
    "Mount",
    "MouseDown",
    "MouseUp",
    "Move",
    "Observation",
    "OutOfBounds",
    "Point",
    "PolicyDenied",
    "Pool",
    "PoolExhausted",
    "PoolStatus",
    "PressKeys",
    "Program",
    "ProtocolViolation",
    "Reason",
    "Reconnected",
    "Rect",
    "ReleaseKeys",
    "RightClick",
    "Screenshot",
    "Scroll",
    "Settle",
    "ShellError",
    "Size",
    "TakeScreenshot",
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
    "connect",
    "difference",
    "launch",
]
