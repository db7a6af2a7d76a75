"""The common form of all providers' calls and answers, between their payloads and a desktop. Pure.

This module owns the types (`ProviderCall`, `Result`, and those of the shell), and those of payloads (`JSONObject`, `Payload`).
It has no provider's names and no desktop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from deskhand._core.arguments import expect, expect_flag, expect_text
from deskhand._core.formats import base64, data_url
from deskhand.actions import Action, elements_of
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.machine.program_arguments import program_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Point, Viewport
    from deskhand._core.observation import Observation, Screenshot
    from deskhand.desktop.operations import SafetyCheck
    from deskhand.machine.interface import CommandResult

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
"""Any value that JSON can express."""
JSONObject: TypeAlias = "dict[str, JSONValue]"
"""An object of JSON, as most providers' payloads are."""
PayloadValue: TypeAlias = "bool | int | float | str | bytes | list[PayloadValue] | dict[str, PayloadValue] | None"
"""Like `JSONValue`, with bytes: the SDKs of Amazon and Google take pictures as bytes, and write the JSON themselves."""
Payload: TypeAlias = "dict[str, PayloadValue]"
"""Like `JSONObject`, with bytes."""

_MAKE_A_CALL = "write ProviderCall(steps=(action,), viewport=screenshot.viewport)"
BROWSING = ("open", "navigate", "back", "forward", "search")
ENDINGS = ("done", "failed")
READING_BUDGET = 2000
"""The default size of a reading of elements, in tokens."""
MOST_TO_READ = 100_000
PATIENCE = 45
"""Seconds that a call for help waits, if it does not say so: less than the 60 s after which clients of MCP give up."""
MOST_PATIENCE = 600


@dataclass(frozen=True, slots=True)
class Browse:
    """A request for the desktop's browser.

    Attributes:
        what: `open` a browser, `navigate` to a URL, go `back` or `forward`, or show a page to `search` with.
        url: The URL for `navigate`.

    Raises:
        ActionError: There is no such request, or its URL is missing.
    """

    what: str
    url: str | None = None

    def __post_init__(self) -> None:
        """Validate."""
        if self.what not in BROWSING:
            raise ActionError(f"a browser can {', '.join(BROWSING)}, not {shown(self.what)}")
        if (self.what == "navigate") != (self.url is not None):
            raise ActionError("navigate needs a url, and the others must not have one")


@dataclass(frozen=True, slots=True)
class Finish:
    """The model reports the end of its task.

    Attributes:
        status: `done` or `failed`.
        text: The model's text about it.

    Raises:
        ActionError: There is no such status.
    """

    status: str = "done"
    text: str | None = None

    def __post_init__(self) -> None:
        """Validate."""
        if self.status not in ENDINGS:
            raise ActionError(f"a task ends {' or '.join(ENDINGS)}, not {shown(self.status)}")


@dataclass(frozen=True, slots=True)
class ReadElements:
    """The model reads the elements that applications report.

    Attributes:
        changes: Only the changes since this conversation read them last; everything if that is shorter.
        budget: About how many tokens the answer may have.
        ocr: Also texts that are read from pixels; see `Desktop.elements`.

    Raises:
        ActionError: `changes` or `ocr` is not a bool, or the budget is not a number of tokens.
    """

    changes: bool = False
    budget: int = READING_BUDGET
    ocr: bool = False

    def __post_init__(self) -> None:
        """Validate."""
        expect_flag("elements: changes", self.changes)
        expect_flag("elements: ocr", self.ocr)
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or not 1 <= self.budget <= MOST_TO_READ:
            raise ActionError(f"elements: budget is a number of tokens, 1...{MOST_TO_READ}, not {shown(self.budget)}")


@dataclass(frozen=True, slots=True)
class StartProgram:
    """The model starts a program on the desktop.

    Attributes:
        command: A command line, as for `Desktop.start`.

    Raises:
        ActionError: It is no text, or names no program.
    """

    command: str

    def __post_init__(self) -> None:
        """Validate."""
        program_words("start", expect_text("start: command", self.command))


@dataclass(frozen=True, slots=True)
class HandOver:
    """The model asks a person for help, as `Desktop.hand_over` does, and may wait.

    Attributes:
        reason: What help is needed for. A person reads it on one line, without control characters, cut at 2,000.
        wait: Seconds to wait until a person has helped or declined, 0...600.

    Raises:
        ActionError: The reason is no text, or the time is no such number.
    """

    reason: str
    wait: float = PATIENCE

    def __post_init__(self) -> None:
        """Validate."""
        expect_text("hand_over: reason", self.reason)
        if isinstance(self.wait, bool) or not isinstance(self.wait, int | float) or not 0 <= self.wait <= MOST_PATIENCE:
            raise ActionError(f"hand_over: wait is a number of seconds, 0...{MOST_PATIENCE}, not {shown(self.wait)}")


Step: TypeAlias = Action | Browse | Finish | HandOver | ReadElements | StartProgram


def step_name(step: Step) -> str:
    """A step's name in error messages."""
    match step:
        case Browse():
            return step.what
        case Finish():
            return step.status
        case HandOver():
            return "hand_over"
        case ReadElements():
            return "elements"
        case StartProgram():
            return "start"
        case _:
            return step.type


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """A provider's call.

    Attributes:
        steps: The steps, in order, in screen pixels.
        viewport: The viewport of the picture that the model pointed into.
        id: The id for the answer; None if the provider uses none.
        name: The function or tool, if the provider has several.
        safety: The safety checks that must be confirmed first.
        extra: Unknown fields of the payload; `encode_call` puts them back.
    """

    steps: tuple[Step, ...]
    viewport: Viewport
    id: str | None = None
    name: str | None = None
    safety: tuple[SafetyCheck, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)

    def at_points(self, where: str) -> ProviderCall:
        """This call, for a provider that can only express places as points.

        Raises:
            UnsupportedAction: A step is done at an element.
        """
        for step in self.steps:
            if isinstance(step, Action) and elements_of(step):
                raise UnsupportedAction(where, step.type, "only points are supported: give xy= and no element=")
        return self


def expect_call(what: str, call: object) -> ProviderCall:
    """Check that the value is a `ProviderCall`.

    Raises:
        ActionError: It is not; an action alone does not say which picture its points are in.
    """
    if isinstance(call, Action):
        raise ActionError(f"{what} takes a ProviderCall, not the action {shown(call)}", _MAKE_A_CALL)
    return expect(f"{what}: call", call, ProviderCall)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in the form of payloads.

    Attributes:
        data: The file's bytes.
        media_type: Its type, such as `image/png`.
    """

    data: bytes = field(repr=False)
    media_type: str = "image/png"

    @classmethod
    def of(cls, screenshot: Screenshot) -> Picture:
        """The picture of a screenshot."""
        return cls(screenshot.data, screenshot.media_type)

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return base64(self.data)

    @property
    def url(self) -> str:
        """A `data:` URL."""
        return data_url(self.data, self.media_type)


BLANK = Picture(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
    )
)
"""A black PNG file of one pixel, for results without a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a call.

    Attributes:
        call: The call.
        picture: The screen after the call; also after an error, if it could be taken.
        cursor: The pointer's position in pixels of the model's picture, if the call asked for it.
        error: The error, for the model to read; None if everything was done.
        denied: Whether the error is that the policy, or a missing confirmation, did not allow it.
        acknowledged: The safety checks that were confirmed.
        text: A further text for the model.
        observation: The observation after the last action, if there was one; ignored in comparisons.
    """

    call: ProviderCall
    picture: Picture | None = None
    cursor: Point | None = None
    error: str | None = None
    denied: bool = False
    acknowledged: tuple[SafetyCheck, ...] = ()
    text: str | None = None
    observation: Observation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCall:
    """A provider's call of the shell.

    Attributes:
        commands: The command lines, which run one after the other.
        id: The id for the answer.
        timeout: Seconds for each command; None for the shell's own timeout.
        limit: How many characters of each output the model wants; None for the shell's own limit.
        restart: Begin a new session first.
        cwd: The directory to run in; None for that of the session.
        env: Variables in addition to those of the session.
        extra: Unknown fields of the payload.
    """

    commands: tuple[str, ...]
    id: str | None = None
    timeout: float | None = None
    limit: int | None = None
    restart: bool = False
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellAnswer:
    """The answer to a call of the shell.

    Attributes:
        call: The call.
        outputs: One for each command that ran.
        error: A further error, for the model to read; None if all commands ran.
        denied: Whether the error is that the policy, or a missing confirmation, did not allow it.
    """

    call: ShellCall
    outputs: tuple[CommandResult, ...] = ()
    error: str | None = None
    denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCall:
    """A provider's call of a text editor.

    Attributes:
        command: `view`, `create`, `str_replace`, `insert` or `undo_edit`.
        path: The file or directory, as the model wrote it.
        id: The id for the answer.
        name: The tool that was called, if the provider has several text editors.
        text: The text to write: all of a new file, the replacement of `old`, or the inserted lines.
        old: The text to replace; it must occur in the file exactly once.
        line: The line after which to insert, 0 for the beginning.
        lines: The first and the last line to view, counted from 1; the last is -1 for the end.
        extra: Unknown fields of the payload.
    """

    command: str
    path: str
    id: str | None = None
    name: str | None = None
    text: str = ""
    old: str | None = None
    line: int | None = None
    lines: tuple[int, int] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditAnswer:
    """The answer to a call of a text editor.

    Attributes:
        id: The id of the call.
        name: The tool that was called.
        text: The text for the model: the view, what was done, or the error.
        failed: Whether the call failed, and nothing was changed.
        denied: Whether the error is that the policy, or a missing confirmation, did not allow it.
        extra: The unknown fields of the call.
    """

    text: str
    id: str | None = None
    name: str | None = None
    failed: bool = False
    denied: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


def one_picture(pictures: Sequence[Picture]) -> Picture | None:
    """The picture of a result, if it has one.

    Raises:
        ActionError: It has several, but a `Result` can only have one.
    """
    if len(pictures) > 1:
        raise ActionError(f"a result can have only one picture, not {len(pictures)}")
    return pictures[0] if pictures else None
