"""The desktop as the computer of models on Amazon Bedrock, by each of its three interfaces.

    import boto3
    from deskhand.providers import bedrock

    client = boto3.client("bedrock-runtime")
    with deskhand.launch() as desktop:
        tools = bedrock.declare(desktop)                            # arguments of converse
        messages = [{"role": "user", "content": [{"text": "..."}]}]
        while (answer := client.converse(modelId=..., messages=messages, **tools))["stopReason"] == "tool_use":
            messages += [answer["output"]["message"], bedrock.respond(desktop, answer)]

`decode`, `encode` and the other names here are those of Converse. `bedrock.agents` has the same names for agents and inline
agents, and `bedrock.agentcore` for AgentCore's `InvokeBrowser`; `run` and `respond` serve all three. All payloads are plain
dictionaries, as in boto3, which is not needed here.

This module owns the public names. It has no field of the wire format, and does not import boto3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from deskhand.providers.anthropic.editing import EDITORS
from deskhand.providers.anthropic.wire import tier
from deskhand.providers.bedrock import agentcore, agents, converse
from deskhand.providers.bedrock.converse import (
    VERSION,
    decode,
    decode_editor,
    decode_result,
    decode_shell,
    encode,
    encode_call,
    encode_editor,
    encode_shell,
    message_of,
)
from deskhand.providers.bedrock.loop import async_model_session, respond, respond_async, run, run_async
from deskhand.providers.editors import TextEditor

if TYPE_CHECKING:
    from deskhand.providers.session import AnyDesktop, SessionOptions
    from deskhand.providers.values import JSONObject

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
    "decode_editor",
    "decode_result",
    "decode_shell",
    "encode",
    "encode_call",
    "encode_editor",
    "encode_shell",
    "message_of",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "tier",
]


def declare(
    desktop: AnyDesktop,
    *,
    version: str | None = None,
    shell: bool = False,
    editor: str | None = None,
    elements: bool = False,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """The arguments of `converse` and `converse_stream` besides the messages.

    Args:
        desktop: The desktop, or the model session that will carry out the calls.
        version: The version of Anthropic's single tool; `VERSION` by default.
        shell: Declare the shell too.
        editor: The version of the text editor to declare too, one of `EDITORS`.
        elements: Declare the tool `elements` too, by which the model reads the elements that applications report.
        options: As for `run`.

    Returns:
        `additionalModelRequestFields`, and a `toolConfig` with `elements` or a tool that does nothing, without which the
        service refuses messages with tools' results.

    Raises:
        ActionError: There is no such version.
    """
    size = async_model_session(desktop, **options).viewport.model
    return converse.declaration(size, version, shell=shell, editor=editor, elements=elements)


def declare_agent(
    desktop: AnyDesktop,
    *,
    version: str | None = None,
    shell: bool = False,
    editor: str | None = None,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """The `actionGroups` of an agent or inline agent; otherwise like `declare`.

    Args:
        desktop: As for `declare`.
        version: As for `declare`.
        shell: As for `declare`.
        editor: As for `declare`.
        options: As for `run`.

    Raises:
        ActionError: There is no such version.
    """
    return agents.declaration(
        async_model_session(desktop, **options).viewport.model, version, shell=shell, editor=editor
    )
