"""What the packages of providers have in common: the functions, their parameters and what these mean.

A package has all of `Provider`. It has the rest where its provider has such a thing: no package has a function that does
nothing. Each function may have further parameters, which are keywords with defaults (`*more` is how a type checker is told
that, and no function has it). `options` are those of `ModelSession`, and are used where `desktop` is no model session. A name
that ends in `_async` is a coroutine with the parameters of the name without it; it takes an `AsyncDesktop` too, and cancelling
it stops at the desktop's next safe point.

This module owns the names and the parameters. What must never appear here: a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from deskhand._core.geometry import Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import EditAnswer, EditCall, ProviderCall, Result, ShellAnswer, ShellCall

__all__ = [
    "Codec",
    "Declares",
    "EditsFiles",
    "HasComputer",
    "HasEditorTool",
    "HasElementsTool",
    "HasShellExecutor",
    "HasTool",
    "Provider",
    "ReadsElements",
    "ReadsShells",
    "Responds",
    "RunsCommands",
    "WritesShells",
]


class Codec(Protocol):
    """A provider's payloads, both ways. Pure."""

    def decode(self, payload: object, viewport: Viewport) -> ProviderCall:
        """What a provider's call asks for, in pixels of the screen; the viewport is of the picture that it points into."""
        ...

    def encode(self, result: Result) -> Any:
        """What the provider is answered."""
        ...

    def encode_call(self, call: ProviderCall) -> Any:
        """The provider's call, the inverse of `decode`."""
        ...

    def decode_result(self, payload: object, call: ProviderCall) -> Result:
        """What an answer says of a call, the inverse of `encode`."""
        ...


class Provider(Codec, Protocol):
    """What every package has."""

    def run(self, desktop: Desktop | ModelSession, payload: object, *more: Any, **options: Any) -> Any:
        """One call, carried out and answered as `encode` does."""
        ...

    async def run_async(self, desktop: AnyDesktop, payload: object, *more: Any, **options: Any) -> Any:
        """As `run`."""
        ...


class Declares(Protocol):
    """A request to the provider lists the tool."""

    def declare(self, desktop: AnyDesktop, *more: Any, **options: Any) -> Any:
        """What a request lists, as plain data or as a value of the provider's design."""
        ...


class Responds(Protocol):
    """A client returns a response, which may hold several calls."""

    def respond(self, desktop: Desktop | ModelSession, response: object, *more: Any, **options: Any) -> Any:
        """All calls of what the SDK's client returned, carried out in order, and what to go on with."""
        ...

    async def respond_async(self, desktop: AnyDesktop, response: object, *more: Any, **options: Any) -> Any:
        """As `respond`."""
        ...


class HasTool(Protocol):
    """An SDK has a class for tools, and a loop that calls them."""

    def tool(self, desktop: AnyDesktop, *more: Any, **options: Any) -> Any:
        """The object that the SDK's agent or loop takes among its tools."""
        ...


class HasComputer(Protocol):
    """An SDK's own tool takes a computer."""

    def computer(self, desktop: AnyDesktop, *more: Any, **options: Any) -> Any:
        """The object that such a tool is made with; `tool` makes the whole tool."""
        ...


class HasElementsTool(Protocol):
    """An SDK's agent or loop can have the tool `elements` beside the one for the computer."""

    def elements_tool(self, desktop: AnyDesktop, *more: Any, **options: Any) -> Any:
        """The object by which a model reads what applications say that they show; given the session that the other has."""
        ...


class ReadsElements(Protocol):
    """The provider has functions beside its computer, and `elements` is one."""

    def declare_elements(self) -> dict[str, Any]:
        """What a request lists for it."""
        ...

    def run_elements(
        self, desktop: Desktop | ModelSession, payload: object, *more: Any, **options: Any
    ) -> dict[str, Any]:
        """One call of it, carried out and answered."""
        ...

    async def run_elements_async(
        self, desktop: AnyDesktop, payload: object, *more: Any, **options: Any
    ) -> dict[str, Any]:
        """As `run_elements`."""
        ...


class ReadsShells(Protocol):
    """The provider has a shell."""

    def decode_shell(self, payload: object) -> ShellCall:
        """What a call of the shell asks for."""
        ...

    def encode_shell(self, answer: ShellAnswer) -> Any:
        """What the provider is answered."""
        ...


class WritesShells(ReadsShells, Protocol):
    """Its calls and answers are translated the other way round too, and it has a declaration of its own."""

    def encode_shell_call(self, call: ShellCall) -> Any:
        """The provider's call, the inverse of `decode_shell`."""
        ...

    def decode_shell_result(self, payload: object, call: ShellCall) -> ShellAnswer:
        """What an answer says of a call, the inverse of `encode_shell`."""
        ...

    def declare_shell(self) -> Any:
        """What a request lists for the shell."""
        ...


class RunsCommands(ReadsShells, Protocol):
    """Its calls are carried out one at a time, without a desktop."""

    def run_shell(self, shell: AnyShell | None, payload: object) -> Any:
        """One call of the shell, carried out and answered as `encode_shell` does."""
        ...

    async def run_shell_async(self, shell: AnyShell | None, payload: object) -> Any:
        """As `run_shell`; cancelling it ends the command under way."""
        ...


class HasShellExecutor(Protocol):
    """An SDK's own tool for a shell takes an executor."""

    def shell_executor(self, shell: AnyShell) -> Any:
        """The object that runs commands for the SDK's tool."""
        ...


class EditsFiles(Protocol):
    """The provider has a text editor."""

    def decode_editor(self, payload: object) -> EditCall:
        """What a call of the text editor asks for."""
        ...

    def encode_editor(self, answer: EditAnswer) -> Any:
        """What the provider is answered."""
        ...


class HasEditorTool(Protocol):
    """An SDK's loop takes a text editor among its tools."""

    def editor_tool(self, desktop: TextEditor | AnyDesktop) -> Any:
        """The text editor as such a tool, over the files of the desktop's machine."""
        ...
