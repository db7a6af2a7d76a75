"""What all providers' calls and answers have in common, between their payloads and a desktop. Pure.

This module owns the shapes (`ProviderCall`, `Result`, and those of the shell) and the reading of payloads that may hold
anything. What must never appear here: a provider's spelling, a desktop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from deskhand import actions as act
from deskhand._core.arguments import expect_flag
from deskhand._core.formats import base64, data_url
from deskhand.actions import Action
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, UnsupportedAction, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Point, Viewport
    from deskhand._core.observation import Observation, Screenshot
    from deskhand.machine.interface import CommandResult

__all__ = [
    "Browse",
    "EditAnswer",
    "EditCall",
    "Finish",
    "Picture",
    "ProviderCall",
    "ReadElements",
    "Result",
    "SafetyCheck",
    "ShellAnswer",
    "ShellCall",
    "Step",
    "a_click",
    "clicked",
    "one_picture",
    "refuse_more",
    "refuse_more_of_a_command",
    "step_name",
]

BROWSING = ("open", "navigate", "back", "forward", "search")
ENDINGS = ("done", "failed")
READING_BUDGET = 2000
"""How many tokens elements are told in, when nobody says."""
MOST_TO_READ = 100_000


@dataclass(frozen=True, slots=True)
class Browse:
    """Something that is asked of the desktop's browser.

    Attributes:
        what: `open` a browser, `navigate` to a URL, go `back` or `forward`, or go to where one can `search`.
        url: Where to, of `navigate`.

    Raises:
        ActionError: There is no such request, or its URL is missing.
    """

    what: str
    url: str | None = None

    def __post_init__(self) -> None:
        """Validate."""
        if self.what not in BROWSING:
            raise ActionError(f"a browser is asked to {', '.join(BROWSING)}, not {shown(self.what)}")
        if (self.what == "navigate") != (self.url is not None):
            raise ActionError("navigate needs a url, and nothing else has one")


@dataclass(frozen=True, slots=True)
class Finish:
    """The model says that it is at the end.

    Attributes:
        status: `done` or `failed`.
        text: What it says of it.

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
    """The model asks what applications say that they show.

    Attributes:
        changes: Only what has changed since this conversation read it last; all of it where that is shorter.
        budget: About how many tokens the answer may have.

    Raises:
        ActionError: `changes` is no flag, or the budget is no number of tokens.
    """

    changes: bool = False
    budget: int = READING_BUDGET

    def __post_init__(self) -> None:
        """Validate."""
        expect_flag("elements: changes", self.changes)
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or not 1 <= self.budget <= MOST_TO_READ:
            raise ActionError(f"elements: budget is a number of tokens, 1...{MOST_TO_READ}, not {shown(self.budget)}")


Step: TypeAlias = Action | Browse | Finish | ReadElements


def step_name(step: Step) -> str:
    """What a step is called where it is refused."""
    match step:
        case Browse():
            return step.what
        case Finish():
            return step.status
        case ReadElements():
            return "elements"
        case _:
            return step.type


_CLICKS: Mapping[str, type[Action]] = {
    "left": act.LeftClick,
    "middle": act.MiddleClick,
    "right": act.RightClick,
    "back": act.BackClick,
    "forward": act.ForwardClick,
}
_BUTTONS = {made: button for button, made in _CLICKS.items()}
_SEVERAL: Mapping[int, type[act.DoubleClick | act.TripleClick]] = {2: act.DoubleClick, 3: act.TripleClick}


def a_click(button: str, count: int = 1, xy: tuple[int, int] | None = None, *, modifiers: Sequence[str] = ()) -> Action:
    """The action that clicks a button (one of `deskhand.actions.BUTTONS`) once, twice or three times."""
    fields: dict[str, Any] = {"xy": xy, "modifiers": modifiers}
    return _CLICKS[button](**fields) if count == 1 else _SEVERAL[count](button=button, **fields)


def clicked(step: object) -> tuple[str, int] | None:
    """The button of a click and how often it is clicked, the inverse of `a_click`; None of anything else."""
    if isinstance(step, act.DoubleClick | act.TripleClick):
        return step.button, 2 if isinstance(step, act.DoubleClick) else 3
    button = _BUTTONS.get(type(step))  # type: ignore[arg-type] # of any type
    return None if button is None else (button, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """What a provider asks for at once.

    Attributes:
        steps: What to do, in order, in screen pixels.
        viewport: Of the picture that the model pointed into.
        id: What the answer must name; None where the provider names nothing.
        name: The function or tool, where the provider has several.
        safety: What must be confirmed before.
        extra: What came with it that nobody here knows; it goes with the call on its way back.
    """

    steps: tuple[Step, ...]
    viewport: Viewport
    id: str | None = None
    name: str | None = None
    safety: tuple[SafetyCheck, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def at_points(self, where: str) -> ProviderCall:
        """This call, for a provider that knows places by points only.

        Raises:
            UnsupportedAction: A step is done at an element.
        """
        for step in self.steps:
            if getattr(step, "element", None) is not None:
                raise UnsupportedAction(
                    where, getattr(step, "type", ""), "its places are points: give xy= and no element="
                )
        return self


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as payloads carry it.

    Attributes:
        data: The file's bytes.
        media_type: Such as `image/png`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a call.

    Attributes:
        call: What was asked.
        picture: What the desktop shows now; after an error too, where it could be taken.
        cursor: Where the pointer is, in pixels of the model's picture, where that was asked for.
        error: What went wrong, for the model to read; None when all was done.
        denied: It went wrong because the policy, or nobody, allowed it.
        acknowledged: The safety checks that were confirmed, and no other.
        text: What there is to say besides.
        observation: What was observed after the last action, where there was one; it does not count in a comparison.
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
    """Commands that a provider asks for.

    Attributes:
        commands: Each is a command line for a shell, run one after the other.
        id: What the answer must name.
        timeout: Seconds for each command; None for the shell's own.
        limit: How many characters of each output the model wants; None for the shell's own.
        restart: Begin a new session before.
        cwd: The directory to run in; None for the session's.
        env: Variables on top of the session's.
        extra: What came with it that nobody here knows.
    """

    commands: tuple[str, ...]
    id: str | None = None
    timeout: float | None = None
    limit: int | None = None
    restart: bool = False
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellAnswer:
    """What came of a shell's commands.

    Attributes:
        call: What was asked.
        outputs: One for each command that ran.
        error: What went wrong besides, for the model to read; None when all ran.
        denied: It went wrong because the policy, or nobody, allowed it.
    """

    call: ShellCall
    outputs: tuple[CommandResult, ...] = ()
    error: str | None = None
    denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCall:
    """What a provider asks of a text editor.

    Attributes:
        command: `view`, `create`, `str_replace`, `insert` or `undo_edit`.
        path: The file or directory, as the model wrote it.
        id: What the answer must name.
        name: The tool that was called, where the provider has several of the kind.
        text: What to write: all of a new file, what replaces `old`, or what is inserted.
        old: What is replaced; it must be in the file once.
        line: After which line to insert, 0 for the beginning.
        lines: Which lines to view, the first and the last, counted from 1; the last is -1 for the end.
        extra: What came with it that nobody here knows.
    """

    command: str
    path: str
    id: str | None = None
    name: str | None = None
    text: str = ""
    old: str | None = None
    line: int | None = None
    lines: tuple[int, int] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditAnswer:
    """What came of an edit or a view.

    Attributes:
        id: Of which call.
        name: The tool that was called.
        text: What the model reads: what was viewed or done, or what went wrong.
        failed: It went wrong, and nothing was changed.
        denied: It went wrong because the policy, or nobody, allowed it.
        extra: What its call had.
    """

    text: str
    id: str | None = None
    name: str | None = None
    failed: bool = False
    denied: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


# --- reading payloads: they come from models and over wires, and may hold anything ---


# What an action's fields are called, by any provider.
_FIELDS = frozenset(
    """
    x y xy coordinate coordinates point pos position path region url
    start_xy start_x start_y startX startY start_coordinate
    end_x end_y endX endY end_coordinate destination_x destination_y
    button clicks click_count clickCount num_clicks repeat presses keys key modifiers modifier
    text press_enter clear_before_typing duration seconds ms
    scroll_x scroll_y scroll_amount scroll_direction scroll_distance scroll_unit distance_xy dx dy deltaX deltaY
    direction magnitude magnitude_in_pixels magnitude_in_wheel_clicks
    """.split()  # noqa: SIM905 # a list of so many words
)


def refuse_more(where: str, action: str, rest: Mapping[str, Any]) -> None:
    """Let pass what a payload has besides what its action takes, unless that says how the action is to be done.

    What is done must not be less than what was said. Names that no provider has for a field of an action pass, and so does
    what is null, false or empty.

    Args:
        where: Whose payload it is, for the error.
        action: What the payload calls its action.
        rest: What is left of it.

    Raises:
        UnsupportedAction: The action has no such field.
    """
    lost = [name for name in rest if name in _FIELDS and (rest[name] or type(rest[name]) in (int, float))]
    if lost:
        raise UnsupportedAction(
            where, action, f"with {', '.join(sorted(lost))}: leave that out, or do it by another action"
        )


# The same of a command: where it runs, as whom, with what, for how long.
_OF_COMMANDS = frozenset(
    """
    cwd workdir working_directory directory env environment user shell stdin timeout timeout_ms timeout_seconds commands args
    """.split()  # noqa: SIM905 # as above
)


def refuse_more_of_a_command(where: str, rest: Mapping[str, Any]) -> None:
    """As `refuse_more`, of what a payload has besides a command."""
    lost = [name for name in rest if name in _OF_COMMANDS and rest[name]]
    if lost:
        raise UnsupportedAction(
            where, "a command", f"with {', '.join(sorted(lost))}: write it as a part of the command"
        )


def one_picture(pictures: Sequence[Picture]) -> Picture | None:
    """The picture of a result, if it has one.

    Raises:
        ActionError: It has several, of which a `Result` could have one only.
    """
    if len(pictures) > 1:
        raise ActionError(f"a result has one picture, not {len(pictures)}")
    return pictures[0] if pictures else None
