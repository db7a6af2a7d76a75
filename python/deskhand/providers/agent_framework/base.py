"""The classes of the framework that its contents and tools are made of, as small as the design needs them. Pure.

* Arguments are keyword-only; unknown arguments are kept in `additional_properties`.
* `raw_representation` is neither compared nor in the plain form, because it may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

from deskhand._core.arguments import expect_mapping, expect_several
from deskhand.errors import ActionError, shown
from deskhand.providers.payload import expect_object, expect_string, picture_of_url
from deskhand.providers.values import Picture

_COMMON = ("annotations", "additional_properties")


class _Plain:
    """The common base of contents and tools: fields that are compared, printed, and written as plain data."""

    type: str
    _fields: ClassVar[tuple[str, ...]] = ()
    additional_properties: dict[str, object]

    def to_dict(self, *, exclude: set[str] | None = None, exclude_none: bool = True) -> dict[str, object]:
        """The plain form: JSON data, with a `type`.

        Args:
            exclude: Names of fields to leave out.
            exclude_none: Leave out what is None, and what is empty of annotations and additional properties.
        """
        plain: dict[str, object] = {"type": self.type}
        for name in self._names():
            value = _plain(getattr(self, name))
            empty = value is None or (name in _COMMON and not value)
            if not (exclude_none and empty):
                plain[name] = value
        return {name: value for name, value in plain.items() if name not in (exclude or ())}

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> Self:
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


def _properties(given: Mapping[str, object] | None, more: dict[str, object]) -> dict[str, object]:
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
        annotations: Sequence[MutableMapping[str, object]] | None = None,
        additional_properties: Mapping[str, object] | None = None,
        raw_representation: object = None,
        **kwargs: object,
    ) -> None:
        """Set the common fields of contents; other arguments become additional properties."""
        self.annotations: list[MutableMapping[str, object]] | None = (
            None if annotations is None else list(expect_several("annotations", annotations))
        )
        self.additional_properties: dict[str, object] = _properties(additional_properties, kwargs)
        self.raw_representation: object = raw_representation

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

    def __init__(
        self,
        text: str,
        *,
        annotations: Sequence[MutableMapping[str, object]] | None = None,
        additional_properties: Mapping[str, object] | None = None,
        raw_representation: object = None,
        **kwargs: object,
    ) -> None:
        """Set the text; other arguments are those of `BaseContent`.

        Raises:
            ActionError: It is not a string.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
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
        self,
        *,
        uri: str | None = None,
        data: bytes | None = None,
        media_type: str | None = None,
        annotations: Sequence[MutableMapping[str, object]] | None = None,
        additional_properties: Mapping[str, object] | None = None,
        raw_representation: object = None,
        **kwargs: object,
    ) -> None:
        """Set the bytes and their type, or a `data:` URI in base64; other arguments are those of `BaseContent`.

        Raises:
            ActionError: Neither or both are given.
        """
        super().__init__(
            annotations=annotations,
            additional_properties=additional_properties,
            raw_representation=raw_representation,
            **kwargs,
        )
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
        self,
        *,
        name: str,
        description: str = "",
        additional_properties: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Set the common fields of tools; other arguments become additional properties."""
        self.name: str = expect_string("a tool's name", name)
        self.description: str = expect_string("a tool's description", description)
        self.additional_properties: dict[str, object] = _properties(additional_properties, kwargs)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return ("name", "description", *cls._fields, "additional_properties")


def text_content(value: object) -> TextContent | None:
    """A text given as content, in its plain form, or as a string; None stays None.

    Raises:
        ActionError: It is none of these.
    """
    if value is None or isinstance(value, TextContent):
        return value
    return TextContent.from_dict(value) if isinstance(value, Mapping) else TextContent(expect_string("a text", value))


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
