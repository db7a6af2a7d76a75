"""The tools beside Claude's computer that the SDK's `tool_runner` takes: `elements` and `hand_over`.

This module owns these two public functions. It does not import the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, overload

from deskhand._core.extras import load
from deskhand.aio.desktop import AsyncDesktop
from deskhand.providers.anthropic.loop import async_model_session, model_session
from deskhand.providers.session import AsyncModelSession, SessionOptions

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.anthropic.sdk import AsyncElementsTool, AsyncHandOverTool, ElementsTool, HandOverTool
    from deskhand.providers.session import AnyDesktop, ModelSession


@overload
def elements_tool(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ElementsTool: ...


@overload
def elements_tool(
    desktop: AsyncDesktop | AsyncModelSession, **options: Unpack[SessionOptions]
) -> AsyncElementsTool: ...


@overload
def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> ElementsTool | AsyncElementsTool: ...


def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> ElementsTool | AsyncElementsTool:
    """The tool `elements` for the SDK's `tool_runner`: the model reads the elements that applications report.

    With a desktop it is for `Anthropic`, with an `AsyncDesktop` for `AsyncAnthropic`.

    Args:
        desktop: The model session of the computer's tool, so that points are in pixels of its pictures, or the desktop.
        options: As for `run`.

    Raises:
        MissingExtra: The SDK is not installed.
    """
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    if isinstance(desktop, AsyncDesktop | AsyncModelSession):
        made: ElementsTool | AsyncElementsTool = sdk.AsyncElementsTool(async_model_session(desktop, **options))
    else:
        made = sdk.ElementsTool(model_session(desktop, **options))
    return made


@overload
def hand_over_tool(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> HandOverTool: ...


@overload
def hand_over_tool(
    desktop: AsyncDesktop | AsyncModelSession, **options: Unpack[SessionOptions]
) -> AsyncHandOverTool: ...


@overload
def hand_over_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> HandOverTool | AsyncHandOverTool: ...


def hand_over_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> HandOverTool | AsyncHandOverTool:
    """The tool `hand_over` for the SDK's `tool_runner`: the model asks a person for help (`Desktop.hand_over`).

    With a desktop it is for `Anthropic`, with an `AsyncDesktop` for `AsyncAnthropic`.

    Args:
        desktop: The model session of the computer's tool, or the desktop. A person must be able to answer: see
            `deskhand.watch`.
        options: As for `run`.

    Raises:
        MissingExtra: The SDK is not installed.
    """
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    if isinstance(desktop, AsyncDesktop | AsyncModelSession):
        made: HandOverTool | AsyncHandOverTool = sdk.AsyncHandOverTool(async_model_session(desktop, **options))
    else:
        made = sdk.HandOverTool(model_session(desktop, **options))
    return made
