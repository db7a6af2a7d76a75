"""Imports the SDKs when they are needed. What must never appear here: knowledge of any of them."""

from __future__ import annotations

import importlib
from typing import Any

from deskhand.errors import MissingExtra


def load(module: str, extra: str) -> Any:
    """Import a module of an SDK.

    Args:
        module: Its full name.
        extra: The extra of deskhand that installs it.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(error.name or module, extra) from error
