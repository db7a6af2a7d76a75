"""The common interface of the providers' packages: the functions, their parameters and what these mean.

A package has all of `Provider`. It has the other functions if its provider supports them: no package has a function that does
nothing. Each function may have further parameters, which are keywords with defaults. `*more: Any, **options: Any` tells a type
checker so; no function has `*more`. `options` are those of `ModelSession`, and are ignored if `desktop` is a model session. A
name that ends in `_async` is a coroutine with the parameters of the name without it; it takes an `AsyncDesktop` too, and
cancelling it stops at the desktop's next safe point.

Payloads are the `JSONObject` of `deskhand.providers.values`, or its `Payload` where an SDK takes bytes in them.

This module owns the names and the parameters. It has no provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from deskhand._core.geometry import Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import EditAnswer, EditCall, JSONObject, ProviderCall, Result, ShellAnswer, ShellCall


class Codec(Protocol):
    """A provider's payloads, both ways. Pure."""

    def decode(self, payload: object, viewport: Viewport) -> ProviderCall:
        """Decode a provider's call, in pixels of the screen; the viewport is that of the picture that the call points into."""
        ...

    def encode(self, result: Result) -> object:
        """Encode the answer to a call."""
        ...

    def encode_call(self, call: ProviderCall) -> object:
        """Encode a call, the inverse of `decode`."""
        ...

    def decode_result(self, payload: object, call: ProviderCall) -> Result:
        """Decode an answer, the inverse of `encode`."""
        ...


class Provider(Codec, Protocol):
    """The functions of every package."""

    def run(self, desktop: Desktop | ModelSession, payload: object, *more: Any, **options: Any) -> object:
        """Carry out one call, and return the answer like `encode`."""
        ...

    async def run_async(self, desktop: AnyDesktop, payload: object, *more: Any, **options: Any) -> object:
        """Like `run`."""
        ...


class Declares(Protocol):
    """A request to the provider lists the tool."""

    def declare(self, desktop: AnyDesktop, *more: Any, **options: Any) -> object:
        """The tool, as a request lists it: plain data or a value of the provider's design."""
        ...


class Responds(Protocol):
    """A client returns a response, which may hold several calls."""

    def respond(self, desktop: Desktop | ModelSession, response: object, *more: Any, **options: Any) -> object:
        """Carry out all calls of a response of the SDK's client in order, and return the input of the next request."""
        ...

    async def respond_async(self, desktop: AnyDesktop, response: object, *more: Any, **options: Any) -> object:
        """Like `respond`."""
        ...


class HasTool(Protocol):
    """An SDK has a class for tools, and a loop that calls them."""

    def tool(self, desktop: AnyDesktop, *more: Any, **options: Any) -> object:
        """An object for the tools of the SDK's agent or loop."""
        ...


class HasComputer(Protocol):
    """An SDK's own tool takes a computer."""

    def computer(self, desktop: AnyDesktop, *more: Any, **options: Any) -> object:
        """The computer for such a tool; `tool` makes a whole tool of it."""
        ...


class HasElementsTool(Protocol):
    """An SDK's agent or loop can have the tool `elements` beside the one for the computer."""

    def elements_tool(self, desktop: AnyDesktop, *more: Any, **options: Any) -> object:
        """The tool by which a model reads the elements that applications report; give it the session of the computer's tool."""
        ...


class ReadsElements(Protocol):
    """The provider has functions beside its computer, and `elements` is one of them."""

    def declare_elements(self) -> JSONObject:
        """The function, as a request lists it."""
        ...

    def run_elements(self, desktop: Desktop | ModelSession, payload: object, *more: Any, **options: Any) -> JSONObject:
        """Carry out one call of it, and return the answer."""
        ...

    async def run_elements_async(self, desktop: AnyDesktop, payload: object, *more: Any, **options: Any) -> JSONObject:
        """Like `run_elements`."""
        ...


class HasHandOverTool(Protocol):
    """An SDK's agent or loop can have the tool `hand_over` beside the one for the computer."""

    def hand_over_tool(self, desktop: AnyDesktop, *more: Any, **options: Any) -> object:
        """The tool by which a model asks a person for help; give it the session of the computer's tool."""
        ...


class HandsOver(Protocol):
    """The provider has functions beside its computer, and `hand_over` is one of them."""

    def declare_hand_over(self) -> JSONObject:
        """The function, as a request lists it."""
        ...

    def run_hand_over(self, desktop: Desktop | ModelSession, payload: object, *more: Any, **options: Any) -> JSONObject:
        """Carry out one call of it, and return the answer."""
        ...

    async def run_hand_over_async(self, desktop: AnyDesktop, payload: object, *more: Any, **options: Any) -> JSONObject:
        """Like `run_hand_over`."""
        ...


class ReadsShells(Protocol):
    """The provider has a shell."""

    def decode_shell(self, payload: object) -> ShellCall:
        """Decode a call of the shell."""
        ...

    def encode_shell(self, answer: ShellAnswer) -> object:
        """Encode the answer to a call."""
        ...


class WritesShells(ReadsShells, Protocol):
    """Its calls and answers are also converted in the other direction, and it has a declaration of its own."""

    def encode_shell_call(self, call: ShellCall) -> object:
        """Encode a call, the inverse of `decode_shell`."""
        ...

    def decode_shell_result(self, payload: object, call: ShellCall) -> ShellAnswer:
        """Decode an answer, the inverse of `encode_shell`."""
        ...

    def declare_shell(self) -> object:
        """The shell, as a request lists it."""
        ...


class RunsCommands(ReadsShells, Protocol):
    """Its calls are carried out one at a time, without a desktop."""

    def run_shell(self, shell: AnyShell | None, payload: object) -> object:
        """Carry out one call of the shell, and return the answer like `encode_shell`."""
        ...

    async def run_shell_async(self, shell: AnyShell | None, payload: object) -> object:
        """Like `run_shell`; cancelling it ends the running command."""
        ...


class HasShellExecutor(Protocol):
    """An SDK's own tool for a shell takes an executor."""

    def shell_executor(self, shell: AnyShell) -> object:
        """The object that runs commands for the SDK's tool."""
        ...


class EditsFiles(Protocol):
    """The provider has a text editor."""

    def decode_editor(self, payload: object) -> EditCall:
        """Decode a call of the text editor."""
        ...

    def encode_editor(self, answer: EditAnswer) -> object:
        """Encode the answer to a call."""
        ...


class HasEditorTool(Protocol):
    """An SDK's loop takes a text editor among its tools."""

    def editor_tool(self, desktop: TextEditor | AnyDesktop) -> object:
        """The text editor as such a tool, for the files of the desktop's machine."""
        ...
