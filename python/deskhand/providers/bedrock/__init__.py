"""The desktop as the computer of models on Amazon Bedrock, by each of its three interfaces.

    import boto3
    from deskhand.providers import bedrock

    client = boto3.client("bedrock-runtime")
    with deskhand.launch() as desktop:
        tools = bedrock.declare(desktop)                            # arguments of converse
        messages = [{"role": "user", "content": [{"text": "..."}]}]
        while (answer := client.converse(modelId=..., messages=messages, **tools))["stopReason"] == "tool_use":
            messages += [answer["output"]["message"], bedrock.run(desktop, answer)]

`decode`, `encode` and the rest, named here, are those of Converse. `bedrock.agents` has the same names for agents and inline
agents, `bedrock.agentcore` for AgentCore's `InvokeBrowser`; `run` serves all three. All payloads are plain dictionaries, as
boto3 takes and gives them: nothing here needs it.

This module owns the names that users call. What must never appear here: a field of the wire, an import of boto3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand.providers.anthropic.editing import EDITORS
from deskhand.providers.anthropic.loop import SIZE
from deskhand.providers.anthropic.wire import tier
from deskhand.providers.bedrock import agentcore, agents, converse
from deskhand.providers.bedrock.converse import (
    VERSION,
    decode,
    decode_edit,
    decode_result,
    decode_shell,
    encode,
    encode_call,
    encode_edit,
    encode_shell,
    message_of,
)
from deskhand.providers.bedrock.loop import run, run_async
from deskhand.providers.editors import TextEditor
from deskhand.providers.session import AsyncSeat

if TYPE_CHECKING:
    from deskhand._core.sizes import PictureSize
    from deskhand.providers.session import AnyDesktop

__all__ = [
    "EDITORS",
    "VERSION",
    "TextEditor",
    "agentcore",
    "agents",
    "converse",
    "declare",
    "declare_agent",
    "decode",
    "decode_edit",
    "decode_result",
    "decode_shell",
    "encode",
    "encode_call",
    "encode_edit",
    "encode_shell",
    "message_of",
    "run",
    "run_async",
    "tier",
]


def declare(
    desktop: AnyDesktop,
    version: str | None = None,
    *,
    size: PictureSize | None = SIZE,
    shell: bool = False,
    editor: str | None = None,
) -> dict[str, Any]:
    """What is given to `converse` and `converse_stream` besides the messages.

    Args:
        desktop: The desktop; the pictures of a seat have the seat's size.
        version: Of Anthropic's single tools; `VERSION` by default.
        size: How large the pictures are; the same as for `run`.
        shell: Declare the shell too.
        editor: Which version of the text editor to declare too, one of `EDITORS`.

    Returns:
        `additionalModelRequestFields`, and a `toolConfig` with a tool that does nothing, without which the service refuses
        messages with tools' results.

    Raises:
        ActionError: There is no such version.
    """
    return converse.declaration(AsyncSeat.of(desktop, size=size).viewport.model, version, shell=shell, editor=editor)


def declare_agent(
    desktop: AnyDesktop,
    version: str | None = None,
    *,
    size: PictureSize | None = SIZE,
    shell: bool = False,
    editor: str | None = None,
) -> list[dict[str, Any]]:
    """The `actionGroups` of an agent or inline agent; otherwise as `declare`.

    Raises:
        ActionError: There is no such version.
    """
    return agents.declaration(AsyncSeat.of(desktop, size=size).viewport.model, version, shell=shell, editor=editor)
