"""The desktop as Claude's computer: the toolset of 2026, the single tools before it, its shell and its text editor.

With the SDK's own loop, which runs the calls of a turn in order and stops at the first that fails:

    import anthropic
    from deskhand.providers import anthropic as deskhand_anthropic

    with deskhand.launch() as desktop:
        computer = deskhand_anthropic.toolset(desktop, confirm=lambda context: True)
        runner = anthropic.Anthropic().beta.messages.tool_runner(
            model="claude-opus-5-5", max_tokens=4096, tools=[computer], messages=[{"role": "user", "content": "..."}])
        print(runner.until_done().content[-1].text)

With a loop of your own: `declare` for the request's `tools` (and `betas` for its headers), then `respond` for the answer's
content. For a model that knows only a single tool, give its `version` to each of them. `shell_tool` is its shell and
`editor_tool` its text editor, over the files of a container; `respond` takes them as `shell=` and as
`editor=TextEditor(desktop)`. `elements_tool` (or `declare_elements`, and `elements=True`) lets the model read the elements that
applications report, and `hand_over_tool` (or `declare_hand_over` and `run_hand_over`) lets it ask a person for help.

This module owns the public names. It has no field of the wire format, and does not import the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from deskhand._core.arguments import expect_mapping
from deskhand._core.extras import load
from deskhand.aio.desktop import AsyncDesktop
from deskhand.errors import ActionError
from deskhand.providers.anthropic.editing import (
    EDITORS,
    LATEST_EDITOR,
    declare_editor,
    decode_editor,
    encode_editor,
)
from deskhand.providers.anthropic.function_tools import elements_tool, hand_over_tool
from deskhand.providers.anthropic.loop import (
    SHELL_TIMEOUT,
    async_model_session,
    declare_elements,
    declare_hand_over,
    model_session,
    respond,
    respond_async,
    run,
    run_async,
    run_editor,
    run_elements,
    run_elements_async,
    run_hand_over,
    run_hand_over_async,
    run_shell,
    run_shell_async,
)
from deskhand.providers.anthropic.versions import LATEST, TOOLSET, VERSIONS, rules_of
from deskhand.providers.anthropic.wire import (
    FAMILY,
    NOT_EXECUTED,
    decode,
    decode_result,
    decode_shell,
    encode,
    encode_call,
    encode_shell,
    tier,
)
from deskhand.providers.editors import TextEditor, editor_of
from deskhand.providers.session import AsyncModelSession, SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic.tools.computer import BetaAsyncComputerConfirmCallable, BetaComputerConfirmCallable

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.anthropic.sdk import (
        AsyncBash,
        AsyncEditor,
        AsyncTool,
        AsyncToolset,
        Bash,
        Editor,
        Tool,
        Toolset,
    )
    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import JSONObject

__all__ = [
    "EDITORS",
    "LATEST",
    "LATEST_EDITOR",
    "NOT_EXECUTED",
    "TOOLSET",
    "VERSIONS",
    "TextEditor",
    "betas",
    "declare",
    "declare_editor",
    "declare_elements",
    "declare_hand_over",
    "decode",
    "decode_editor",
    "decode_result",
    "decode_shell",
    "editor_tool",
    "elements_tool",
    "encode",
    "encode_call",
    "encode_editor",
    "encode_shell",
    "hand_over_tool",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "run_editor",
    "run_elements",
    "run_elements_async",
    "run_hand_over",
    "run_hand_over_async",
    "run_shell",
    "run_shell_async",
    "shell_tool",
    "tier",
    "tool",
    "toolset",
]


def declare(
    desktop: AnyDesktop,
    *,
    version: str = TOOLSET,
    fields: Mapping[str, object] | None = None,
    **options: Unpack[SessionOptions],
) -> JSONObject:
    """The tool, as a request lists it.

    Args:
        desktop: The desktop, or the model session that will carry out the calls.
        version: The toolset, or a single tool; see `VERSIONS`. For a single tool a request also needs `betas`.
        fields: Further fields, such as `configs` of the toolset and `cache_control`. `computer_20251124` may zoom unless
            `enable_zoom` is False here.
        options: As for `run`.

    Raises:
        ActionError: There is no such version.
    """
    rules = rules_of(version)
    more = {} if fields is None else expect_mapping("declare: fields", fields)
    if rules.type == TOOLSET:
        return {"type": TOOLSET, **more}
    width, height = async_model_session(desktop, **options).viewport.model
    zoom = {"enable_zoom": True} if "zoom" in rules.actions else {}
    return {
        "type": rules.type,
        "name": FAMILY,
        "display_width_px": width,
        "display_height_px": height,
        **zoom,
        **more,
    }


def betas(version: str = TOOLSET) -> list[str]:
    """The values that a request for this version needs in its `betas`.

    Raises:
        ActionError: There is no such version.
    """
    beta = rules_of(version).beta
    return [] if beta is None else [beta]


@overload
def toolset(
    desktop: Desktop | ModelSession,
    *,
    confirm: BetaComputerConfirmCallable,
    configs: Mapping[str, object] | None = None,
    tool_configs: Mapping[str, object] | None = None,
    **options: Unpack[SessionOptions],
) -> Toolset: ...


@overload
def toolset(
    desktop: AsyncDesktop | AsyncModelSession,
    *,
    confirm: BetaAsyncComputerConfirmCallable,
    configs: Mapping[str, object] | None = None,
    tool_configs: Mapping[str, object] | None = None,
    **options: Unpack[SessionOptions],
) -> AsyncToolset: ...


def toolset(
    desktop: AnyDesktop,
    *,
    confirm: BetaComputerConfirmCallable | BetaAsyncComputerConfirmCallable,
    configs: Mapping[str, object] | None = None,
    tool_configs: Mapping[str, object] | None = None,
    **options: Unpack[SessionOptions],
) -> Toolset | AsyncToolset:
    """The toolset for the SDK's `client.beta.messages.tool_runner(tools=[...])`.

    With a desktop it is for `Anthropic`, with an `AsyncDesktop` for `AsyncAnthropic`.

    Args:
        desktop: The desktop, which the caller closes.
        confirm: Called by the SDK before each call, with its member, input and block; only True lets the call be carried out.
            The SDK requires it as long as the model may use the keyboard.
        configs: As in the declaration, such as `{"zoom": {"enabled": False}}`.
        tool_configs: Further fields of the declaration, such as `{"cache_control": {"type": "ephemeral"}}`.
        options: As for `run`.

    Raises:
        MissingExtra: The SDK is not installed.
        anthropic.ToolsetConfigError: The options do not fit together.
    """
    for name, config in expect_mapping("toolset: configs", {} if configs is None else configs).items():
        expect_mapping(f"the config of {name}", config)
    expect_mapping("toolset: tool_configs", {} if tool_configs is None else tool_configs)
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    if isinstance(desktop, AsyncDesktop | AsyncModelSession):
        made: Toolset | AsyncToolset = sdk.AsyncToolset(
            async_model_session(desktop, **options), confirm=confirm, configs=configs, tool_configs=tool_configs
        )
    else:
        made = sdk.Toolset(
            model_session(desktop, **options), confirm=confirm, configs=configs, tool_configs=tool_configs
        )
    return made


@overload
def tool(desktop: Desktop | ModelSession, *, version: str = LATEST, **options: Unpack[SessionOptions]) -> Tool: ...


@overload
def tool(
    desktop: AsyncDesktop | AsyncModelSession, *, version: str = LATEST, **options: Unpack[SessionOptions]
) -> AsyncTool: ...


@overload
def tool(desktop: AnyDesktop, *, version: str = LATEST, **options: Unpack[SessionOptions]) -> Tool | AsyncTool: ...


def tool(
    desktop: AnyDesktop,
    *,
    version: str = LATEST,
    **options: Unpack[SessionOptions],
) -> Tool | AsyncTool:
    """A single tool for the SDK's `tool_runner`, which needs `betas=betas(version)` too.

    With a desktop it is for `Anthropic`, with an `AsyncDesktop` for `AsyncAnthropic`.

    Args:
        desktop: The desktop, which the caller closes.
        version: The single tool; see `VERSIONS`.
        options: As for `run`.

    Raises:
        ActionError: There is no such version, or it is the toolset.
        MissingExtra: The SDK is not installed.
    """
    if rules_of(version).type == TOOLSET:
        raise ActionError("that is not a single tool: use toolset()")
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    if isinstance(desktop, AsyncDesktop | AsyncModelSession):
        there = async_model_session(desktop, **options)
        made: Tool | AsyncTool = sdk.AsyncTool(there, declare(there, version=version))
    else:
        at = model_session(desktop, **options)
        made = sdk.Tool(at, declare(at, version=version))
    return made


@overload
def shell_tool(shell: AnyShell, *, timeout: float = SHELL_TIMEOUT, is_async: Literal[False] = False) -> Bash: ...


@overload
def shell_tool(shell: AnyShell, *, timeout: float = SHELL_TIMEOUT, is_async: Literal[True]) -> AsyncBash: ...


def shell_tool(shell: AnyShell, *, timeout: float = SHELL_TIMEOUT, is_async: bool = False) -> Bash | AsyncBash:
    """The shell `bash_20250124` for the SDK's `tool_runner`.

    Args:
        shell: Runs the commands: a session, which the caller closes, or a desktop with a machine of its own, in which each
            command runs alone.
        timeout: Seconds for a command.
        is_async: For `AsyncAnthropic`.

    Raises:
        MissingExtra: The SDK is not installed.
    """
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    made: Bash | AsyncBash = (sdk.AsyncBash if is_async else sdk.Bash)(shell, timeout)
    return made


@overload
def editor_tool(
    desktop: TextEditor | AnyDesktop,
    *,
    version: str = LATEST_EDITOR,
    max_characters: int | None = None,
    is_async: Literal[False] = False,
) -> Editor: ...


@overload
def editor_tool(
    desktop: TextEditor | AnyDesktop,
    *,
    version: str = LATEST_EDITOR,
    max_characters: int | None = None,
    is_async: Literal[True],
) -> AsyncEditor: ...


def editor_tool(
    desktop: TextEditor | AnyDesktop,
    *,
    version: str = LATEST_EDITOR,
    max_characters: int | None = None,
    is_async: bool = False,
) -> Editor | AsyncEditor:
    """The text editor for the SDK's `tool_runner`, over the files of the desktop's machine.

    Args:
        desktop: The desktop, which the caller closes, or an editor for it.
        version: One of `EDITORS`; those of 2024 and January 2025 can `undo_edit`.
        max_characters: How much of a file is shown at once. An existing editor has its own limit.
        is_async: For `AsyncAnthropic`.

    Raises:
        ActionError: There is no such version.
        MissingExtra: The SDK is not installed.
    """
    declared = declare_editor(version=version, max_characters=max_characters)
    sdk = load("deskhand.providers.anthropic.sdk", "anthropic")
    made: Editor | AsyncEditor = (sdk.AsyncEditor if is_async else sdk.Editor)(
        editor_of(desktop, max_characters=max_characters), declared
    )
    return made
