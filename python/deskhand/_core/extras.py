"""The SDKs, which are imported when they are asked for. What must never appear here: knowledge of any of them."""

from __future__ import annotations

import importlib
from typing import Any

from deskhand.errors import DeskhandError

__all__ = ["MissingExtra", "load"]


class MissingExtra(DeskhandError, ImportError):
    """An SDK is not installed; the message has the command that installs it."""


def load(module: str, extra: str) -> Any:
    """A module of an SDK.

    Args:
        module: Its full name.
        extra: The extra of deskhand that installs it.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise MissingExtra(f"{missing} is not installed: pip install 'deskhand[{extra}]'") from error
