"""The size of a picture: exact, by a factor, within a box, or as large as a provider takes it without resizing.

This module owns the providers' published limits. What must never appear here: a mapping of points (see `geometry.Viewport`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from deskhand import errors
from deskhand._core.arguments import expect_integer, expect_size
from deskhand._core.geometry import Size
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Mapping

# More than any picture that can be made.
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class Fit:
    """The largest size within limits that keeps the proportions; nothing is ever enlarged.

    Attributes:
        width: The most pixels in width.
        height: The most pixels in height.
        patch: Side in pixels of the squares that a model cuts a picture into; those at the edges count as whole ones.
        patches: The most squares; None for any number.

    Raises:
        ActionError: A limit is no integer of at least 1.
    """

    width: int
    height: int
    patch: int = 1
    patches: int | None = None

    def __post_init__(self) -> None:
        """Validate."""
        for name in ("width", "height", "patch"):
            expect_integer(f"Fit: {name}", getattr(self, name), 1)
        if self.patches is not None:
            expect_integer("Fit: patches", self.patches, 1)

    def admits(self, size: Size) -> bool:
        """Whether a picture of this size is within the limits."""
        across, down = -(-size.width // self.patch), -(-size.height // self.patch)
        within = size.width <= self.width and size.height <= self.height
        return within and (self.patches is None or across * down <= self.patches)

    def of(self, shown: Size) -> Size:
        """The size for a picture of something that is `shown` large."""
        longest = max(shown)
        low, high = 1, longest
        # A longer side never has fewer patches, so the sizes admitted are those up to some length.
        while low < high:
            middle = (low + high + 1) // 2
            if self.admits(_scaled(shown, middle / longest)):
                low = middle
            else:
                high = middle - 1
        return _scaled(shown, low / longest)


MODELS: Mapping[str, Fit] = MappingProxyType(
    {
        "anthropic": Fit(1568, 1568, patch=28, patches=1568),
        "anthropic-high": Fit(2576, 2576, patch=28, patches=4784),
        "openai": Fit(6000, 6000, patch=32, patches=10_000),
    }
)
"""Limits as published in November 2026: Anthropic's standard tier, its high-resolution tier (Claude 4.7 and newer), and
OpenAI's 10,000 patches with `detail="original"`, here with no side above 6000 to be safe. A picture within them reaches the
model pixel by pixel."""

PictureSize: TypeAlias = tuple[int, int] | float | Fit | str
"""Width and height in pixels, a factor, a `Fit`, or a name in `MODELS`."""


def picture_size(size: PictureSize | None, shown: Size) -> Size:
    """The size in pixels of a picture.

    Args:
        size: What was asked for; None for the size of what it shows.
        shown: The size of what it shows.

    Raises:
        ActionError: It is not a size, or not a model that is known.
    """
    match size:
        case None:
            return shown
        case Fit():
            return size.of(shown)
        case str():
            if size not in MODELS:
                raise ActionError(
                    f"no limits are known for a model {errors.shown(size)}; there are: {', '.join(MODELS)}"
                )
            return MODELS[size].of(shown)
        case int() | float() if not isinstance(size, bool) and 0 < size < _LARGEST:
            return _scaled(shown, size)
        case (_, _):
            return expect_size("a picture's size", size, _LARGEST)
    raise ActionError(f"a size is (width, height), a factor above 0, a Fit or a model's name, not {errors.shown(size)}")


def _scaled(size: Size, factor: float) -> Size:
    return Size(max(1, round(size.width * factor)), max(1, round(size.height * factor)))
