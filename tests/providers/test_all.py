"""What holds for every provider alike."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import MissingExtra, Move, Size, Viewport
from deskhand._core.extras import load
from deskhand.providers import google, protocol
from deskhand.providers.values import ProviderCall
from providers import cost
from providers.table import COLUMNS
from providers.test_nothing_lost import ENCODERS

if TYPE_CHECKING:
    from collections.abc import Callable

SDKS = (
    "agent_framework", "agents", "anthropic", "boto3", "botocore", "google.adk", "google.genai", "inspect_ai", "langchain_core",
    "mcp", "openai", "pydantic", "starlette", "uvicorn", "websockets",
)  # fmt: skip
PACKAGES = (
    *(path.parent.name for path in Path(protocol.__file__).parent.glob("*/__init__.py")),
    "cua.messages",
    "session",
)
SCREENS = 1000


def test_importing_us_imports_no_sdk() -> None:
    """Nor does any provider's package, until something of the SDK's is asked for."""
    lines = [
        "import sys, deskhand",
        *(f"import deskhand.providers.{name}" for name in PACKAGES),
        f"print([name for name in {SDKS!r} if name in sys.modules])",
    ]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("decoders", "without"),
    [
        # Its tools are called as MCP's.
        ([decode for _, decode, _, _ in COLUMNS.values()], {"langchain"}),
        ([decode for _, decode, _ in ENCODERS.values()], set()),
        ([provider.decode for provider in cost.PROVIDERS.values()], set()),
    ],
    ids=["COLUMNS", "ENCODERS", "PROVIDERS"],
)
def test_every_package_is_tried(decoders: list[Callable[..., ProviderCall]], without: set[str]) -> None:
    tried = {decode.__module__.removeprefix("deskhand.providers.").partition(".")[0] for decode in decoders}
    assert tried | without == {name for name in PACKAGES if name not in {"cua.messages", "session"}}


def test_a_missing_extra_says_what_to_install() -> None:
    with pytest.raises(MissingExtra, match=r"no_such_sdk is not installed: pip install 'deskhand\[openai\]'"):
        load("no_such_sdk.inner", "openai")
    with pytest.raises(ImportError):
        load("no_such_sdk", "openai")


def _written_as(column: str, point: tuple[int, int], size: Size) -> Any:
    """A payload in which a provider points at this pixel of its picture."""
    encode, _, _, name = COLUMNS[column]
    same = Viewport(size, size)
    return encode(ProviderCall(steps=(Move(point),), viewport=same, id="call_1", name=name))


@pytest.mark.parametrize("column", [column for column in COLUMNS if column != "Google"])
def test_points_land_within_half_a_pixel_of_the_model(column: str) -> None:
    """Of 1,000 random screens, sizes of pictures and points; Google's grid, coarser than a picture, has a test of its own."""
    chance = random.Random(7)
    _, decode, _, _ = COLUMNS[column]
    for _ in range(SCREENS):
        screen = Size(chance.randint(1, 4000), chance.randint(1, 4000))
        factor = chance.uniform(0.1, 1.0)
        model = Size(max(1, round(screen.width * factor)), max(1, round(screen.height * factor)))
        point = chance.randrange(model.width), chance.randrange(model.height)
        (step,) = decode(_written_as(column, point, model), Viewport(screen, model)).steps
        assert isinstance(step, Move)
        for place, pixel, wide, seen in zip(step.xy, point, screen, model, strict=True):
            assert abs((place + 0.5) * seen / wide - (pixel + 0.5)) <= 0.5


def test_googles_points_land_within_half_a_cell_of_its_grid() -> None:
    """Of as many: a cell of the grid is wider than a pixel of most screens, and narrower than one of a small screen."""
    chance = random.Random(7)
    for _ in range(SCREENS):
        screen = Size(chance.randint(1, 4000), chance.randint(1, 4000))
        cell = chance.randrange(1000), chance.randrange(1000)
        (step,) = google.decode({"name": "move", "args": {"x": cell[0], "y": cell[1]}}, Viewport(screen, screen)).steps
        assert isinstance(step, Move)
        for place, pointed, wide in zip(step.xy, cell, screen, strict=True):
            assert abs((place + 0.5) * 1000 / wide - (pointed + 0.5)) <= max(0.5, 500 / wide) + 1e-9


@pytest.mark.parametrize("column", COLUMNS)
def test_several_sizes_in_one_conversation_stay_right(column: str) -> None:
    """What is decoded depends on the picture that was pointed into, and on no other that came before or after."""
    _, decode, _, _ = COLUMNS[column]
    screen = Size(1600, 1200)
    payloads = {
        size: _written_as(column, (size.width // 2, size.height // 2), size)
        for size in (Size(1600, 1200), Size(800, 600), Size(400, 300))
    }
    for size in (*payloads, *reversed(payloads)):
        (step,) = decode(payloads[size], Viewport(screen, size)).steps
        assert isinstance(step, Move)
        assert abs(step.xy[0] - 800) <= 4
        assert abs(step.xy[1] - 600) <= 4
