"""Contents and tools for computer use and shells, independent of a provider: calls, results, and declarations. Pure.

Names and fields follow Microsoft Agent Framework's design of December 2025. Its package (1.23) chose other forms: it has one
`Content`, without a text or an error for a computer (see `sdk`). So the few framework classes that the design uses are here
too, as small as it needs them: `BaseContent`, `TextContent`, `DataContent`, `BaseTool`.

This module owns the classes and their plain form. Their meaning for a desktop is in `wire`, and for a provider in
`fields`.

* Arguments are keyword-only; unknown arguments are kept in `additional_properties`.
* Where the design allows an `Enum` or a string, a string becomes the enum's member if there is one. Other strings stay:
  there are more actions than the enum has.
* `raw_representation` is neither compared nor in the plain form, because it may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Literal, Self, TypeVar

from deskhand._core.arguments import expect_mapping, expect_several
from deskhand.errors import ActionError, shown
from deskhand.providers.payload import expect_list, expect_object, expect_string, picture_of_url
from deskhand.providers.values import Picture

_E = TypeVar("_E", bound=Enum)
_COMMON = ("annotations", "additional_properties")


class _Plain:
    """The common base of contents and tools: fields that are compared, printed, and written as plain data."""

    type: str
    _fields: ClassVar[tuple[str, ...]] = ()
    additional_properties: dict[str, Any]

    def to_dict(self, *, exclude: set[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """The plain form: JSON data, with a `type`.

        Args:
            exclude: Names of fields to leave out.
            exclude_none: Leave out what is None, and what is empty of annotations and additional properties.
        """
        plain: dict[str, Any] = {"type": self.type}
        for name in self._names():
            value = _plain(getattr(self, name))
            empty = value is None or (name in _COMMON and not value)
            if not (exclude_none and empty):
                plain[name] = value
        return {name: value for name, value in plain.items() if name not in (exclude or ())}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make the object of a plain form, the inverse of `to_dict`; unknown fields become additional properties.

        Raises:
            ActionError: It is of another type, or a field is missing or wrong.
        """
        given = dict(expect_object("a content", plain))
        kind = given.pop("type", cls.type)
        if kind != cls.type:
            raise ActionError(f"the type is {cls.type}, not {shown(kind)}")
        known = {name: given.pop(name) for name in cls._names() if name in given}
        more = known.pop("additional_properties", None)
        properties = {**({} if more is None else expect_object("additional_properties", more)), **given}
        try:
            made: Self = cls(**known, additional_properties=properties)  # type: ignore[call-arg] # for the concrete classes
        except TypeError as error:
            # Python's own message names the missing arguments.
            raise ActionError(f"{cls.type}: {error}") from None
        return made

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the object itself, or make it of its plain form.

        Raises:
            ActionError: As for `from_dict`.
        """
        return value if isinstance(value, cls) else cls.from_dict(value)  # type: ignore[arg-type] # from_dict checks it

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*cls._fields, "additional_properties")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._names())

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # they are mutable

    def __repr__(self) -> str:
        given = [(name, getattr(self, name)) for name in self._names()]
        said = [f"{name}={_said(value)}" for name, value in given if value not in (None, {}, [])]
        return f"{type(self).__name__}({', '.join(said)})"


def _properties(given: object, more: dict[str, Any]) -> dict[str, Any]:
    return {**expect_mapping("additional_properties", given or {}), **more}


class BaseContent(_Plain):
    """The base of all contents.

    Attributes:
        type: The kind of content.
        annotations: Notes about it.
        additional_properties: Further fields of a provider or a user.
        raw_representation: The object that it was made from.
    """

    def __init__(
        self,
        *,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """Set the common fields of contents; other arguments become additional properties."""
        self.annotations: list[MutableMapping[str, Any]] | None = (
            None if annotations is None else list(expect_several("annotations", annotations))
        )
        self.additional_properties: dict[str, Any] = _properties(additional_properties, kwargs)
        self.raw_representation = raw_representation

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*cls._fields, *_COMMON)


class TextContent(BaseContent):
    """A text.

    Attributes:
        text: The text.
    """

    type: str = "text"
    _fields = ("text",)

    def __init__(self, text: str, **common: Any) -> None:
        """Set the text; other arguments are those of `BaseContent`.

        Raises:
            ActionError: It is not a string.
        """
        super().__init__(**common)
        self.text: str = expect_string("a text", text)


class DataContent(BaseContent):
    """A file, such as a screenshot. Its bytes are not in its `repr`.

    Attributes:
        data: Its bytes.
        media_type: Its type, such as `image/png`.
    """

    type: str = "data"
    _fields = ("uri", "media_type")

    def __init__(
        self, *, uri: str | None = None, data: bytes | None = None, media_type: str | None = None, **common: Any
    ) -> None:
        """Set the bytes and their type, or a `data:` URI in base64; other arguments are those of `BaseContent`.

        Raises:
            ActionError: Neither or both are given.
        """
        super().__init__(**common)
        if uri is not None:
            picture = picture_of_url(uri)
            if data is not None or media_type not in (None, picture.media_type):
                raise ActionError("the content is given as a URI, or as bytes with their media type, and not as both")
            data, media_type = picture.data, picture.media_type
        if not isinstance(data, bytes):
            raise ActionError(f"the content is bytes or a data: URI, not {shown(type(data).__name__)}")
        self.data = data
        self.media_type: str = expect_string("media_type", media_type)

    @property
    def uri(self) -> str:
        """The content as a `data:` URI."""
        return Picture(self.data, self.media_type).url

    def __eq__(self, other: object) -> bool:
        # Like all contents, but without making a URI of the bytes.
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, DataContent)  # noqa: S101 # for mypy, which does not follow type()
        return all(getattr(self, name) == getattr(other, name) for name in ("data", "media_type", *_COMMON))

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # like all contents

    def __repr__(self) -> str:
        return f"DataContent({len(self.data)} bytes of {self.media_type})"


class BaseTool(_Plain):
    """The base of all tools.

    Attributes:
        type: The kind of tool.
        name: The framework's name for it.
        description: What it is for.
        additional_properties: Further fields of a provider or a user.
    """

    def __init__(
        self, *, name: str, description: str = "", additional_properties: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Set the common fields of tools; other arguments become additional properties."""
        self.name: str = expect_string("a tool's name", name)
        self.description: str = expect_string("a tool's description", description)
        self.additional_properties: dict[str, Any] = _properties(additional_properties, kwargs)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return ("name", "description", *cls._fields, "additional_properties")


# --- the computer ---


class ComputerUseTool(BaseTool):
    """A computer that a model may use.

    Attributes:
        display_width: Width of the model's pictures in pixels; None for the default, see `fields.DEFAULT_SIZE`.
        display_height: Their height.
        environment: The kind of computer: "browser", "mac", "windows", "linux", or another that a provider knows.
    """

    type: str = "computer_use_tool"
    _fields = ("display_width", "display_height", "environment")

    def __init__(
        self,
        *,
        display_width: int | None = None,
        display_height: int | None = None,
        environment: Literal["browser", "mac", "windows", "linux"] | str | None = None,  # noqa: PYI051 # as designed
        additional_properties: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class."""
        super().__init__(
            **{"name": "computer_use", **kwargs},
            additional_properties=additional_properties,
        )
        self.display_width = display_width
        self.display_height = display_height
        self.environment = environment


class ComputerUseAction(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """The actions that the design names."""

    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    TRIPLE_CLICK = "triple_click"
    MOVE = "move"
    DRAG = "drag"
    TYPE = "type"
    KEY = "key"
    SCREENSHOT = "screenshot"
    SCROLL = "scroll"
    WAIT = "wait"
    ZOOM = "zoom"


class ComputerUseCallContent(BaseContent):
    """One action of a model.

    Attributes:
        type: `computer_call`.
        call_id: The id for the result.
        action: The action; a string if the enum does not have it.
        coordinate: The point, as (x, y) in pixels of the model's picture.
        end_coordinate: The end of a drag.
        text: The text to type.
        key: A key or a chord, such as "Enter" or "ctrl+c".
        button: "left", "right" or "middle", for a click or a drag.
        scroll_amount: How far to scroll, positive down and right, negative up and left; see `wire` for its unit.
        scroll_direction: The axis, "vertical" or "horizontal".
        duration: Milliseconds.
    """

    type: str = "computer_call"
    _fields = (
        "call_id", "action", "coordinate", "end_coordinate", "text", "key", "button", "scroll_amount",
        "scroll_direction", "duration",
    )  # fmt: skip

    def __init__(
        self,
        *,
        call_id: str,
        action: ComputerUseAction | str,
        coordinate: tuple[int, int] | None = None,
        end_coordinate: tuple[int, int] | None = None,
        text: str | None = None,
        key: str | None = None,
        button: Literal["left", "right", "middle"] | None = None,
        scroll_amount: int | None = None,
        scroll_direction: Literal["vertical", "horizontal"] | None = None,
        duration: int | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class. `wire.decode` checks the fields."""
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.action: ComputerUseAction | str = _member(ComputerUseAction, action)
        self.coordinate: Any = _pair(coordinate)
        self.end_coordinate: Any = _pair(end_coordinate)
        self.text = text
        self.key = key
        self.button = button
        self.scroll_amount = scroll_amount
        self.scroll_direction = scroll_direction
        self.duration = duration


class ComputerUseResultContent(BaseContent):
    """The result of a call.

    Attributes:
        type: `computer_result`.
        call_id: The id of the call.
        screenshot: The screen after the call.
        text_output: A text for the model; a string becomes a `TextContent`.
        error: The error, for the model to read.
    """

    type: str = "computer_result"
    _fields = ("call_id", "screenshot", "text_output", "error")

    def __init__(
        self,
        *,
        call_id: str,
        screenshot: DataContent | None = None,
        text_output: TextContent | str | None = None,
        error: str | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class.

        Raises:
            ActionError: The screenshot or the text has a wrong type.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        if isinstance(screenshot, Mapping):
            screenshot = DataContent.from_dict(screenshot)
        if not isinstance(screenshot, DataContent | None):
            raise ActionError(f"a screenshot must be a DataContent, not {shown(type(screenshot).__name__)}")
        self.call_id = call_id
        self.screenshot = screenshot
        self.text_output: TextContent | None = _text(text_output)
        self.error = error


# --- the shell ---


class ShellTool(BaseTool):
    """A shell that a model may use; provider-specific settings are in its additional properties."""

    type: str = "shell_tool"

    def __init__(self, *, additional_properties: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(**{"name": "shell", **kwargs}, additional_properties=additional_properties)


class ShellAction(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """The actions of a shell call."""

    EXECUTE = "execute"
    RESTART = "restart"


class ShellCallContent(BaseContent):
    """Commands of a model for a shell.

    Attributes:
        type: `shell_call`.
        call_id: The id for the result.
        action: Run the commands, or begin a new session (and then run the commands, if any).
        commands: The command lines.
    """

    type: str = "shell_call"
    _fields = ("call_id", "action", "commands")

    def __init__(
        self,
        *,
        call_id: str,
        action: ShellAction | str = ShellAction.EXECUTE,
        commands: list[str] | None = None,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class. `shells.decode_shell` checks the fields."""
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.action: ShellAction | str = _member(ShellAction, action)
        self.commands = commands


class ShellOutcome(str, Enum):  # noqa: UP042 # as designed: str() names class and member
    """How commands ended."""

    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class ShellResultContent(BaseContent):
    """The result of commands.

    Attributes:
        type: `shell_result`.
        call_id: The id of the call.
        stdout: Their standard output; a string becomes a `TextContent`.
        stderr: Their standard error, likewise.
        exit_code: The exit code of the last command; None if none ran to its end.
        outcome: How the call ended.
    """

    type: str = "shell_result"
    _fields = ("call_id", "stdout", "stderr", "exit_code", "outcome")

    def __init__(
        self,
        *,
        call_id: str,
        stdout: TextContent | str | None = None,
        stderr: TextContent | str | None = None,
        exit_code: int | None = None,
        outcome: ShellOutcome | str = ShellOutcome.SUCCESS,
        annotations: Sequence[MutableMapping[str, Any]] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """See the class.

        Raises:
            ActionError: An output is not a text.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
        self.call_id = call_id
        self.stdout: TextContent | None = _text(stdout)
        self.stderr: TextContent | None = _text(stderr)
        self.exit_code = exit_code
        self.outcome: ShellOutcome | str = _member(ShellOutcome, outcome)


# --- fields ---


def _member(kind: type[_E], value: _E | str) -> _E | str:
    try:
        return kind(value)
    except ValueError:
        return value


def _text(value: object) -> TextContent | None:
    if value is None or isinstance(value, TextContent):
        return value
    return TextContent.from_dict(value) if isinstance(value, Mapping) else TextContent(expect_string("a text", value))


def _pair(value: Any) -> Any:
    # JSON has no tuples. Anything else that is not a pair is reported where it is read.
    return tuple(expect_list("a coordinate", value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    match value:
        case _Plain():
            return value.to_dict()
        case Enum():
            return value.value
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


def _said(value: object) -> str:
    return repr(value.value) if isinstance(value, Enum) else repr(value)
