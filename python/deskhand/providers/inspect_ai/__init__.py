"""A desktop as the `computer` tool of inspect's evaluations, without inspect's sandbox.

    from deskhand.providers import inspect_ai as deskhand_inspect_ai

    with deskhand.launch(size=(1366, 768)) as desktop:
        state.tools.append(deskhand_inspect_ai.tool(desktop))

It has the name and the parameters of inspect's own tool, by which inspect recognizes it: models with a native computer tool get
that one, and inspect translates.

This module owns the public names. It does not import inspect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from deskhand._core.extras import load
from deskhand.providers.inspect_ai.loop import SIZE, async_model_session, run, run_async
from deskhand.providers.inspect_ai.wire import decode, decode_result, encode, encode_call

if TYPE_CHECKING:
    from inspect_ai.tool import Tool

    from deskhand.providers.session import AnyDesktop, SessionOptions

__all__ = ["SIZE", "decode", "decode_result", "encode", "encode_call", "run", "run_async", "tool"]


def tool(desktop: AnyDesktop, *, max_screenshots: int | None = 1, **options: Unpack[SessionOptions]) -> Tool:
    """The tool; inspect declares it to the model.

    Args:
        desktop: The desktop, or a model session on it; each sample should have its own. The caller closes it.
        max_screenshots: How many of the last results are sent to the model with their pictures; None for all.
        options: As for `run`. A `size` other than `SIZE` is for models without a native tool, and for OpenAI's.

    Raises:
        MissingExtra: inspect is not installed.
    """
    sdk = load("deskhand.providers.inspect_ai.sdk", "inspect")
    made: Tool = sdk.computer(async_model_session(desktop, **options), max_screenshots)
    return made
