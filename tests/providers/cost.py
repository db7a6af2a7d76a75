"""What translating costs, of every provider: `PYTHONPATH=tests python -m providers.cost` measures it and prints a table.

A call is decoded as it came, validated as always: each action that a provider can say, and as much as it may send at once.
A result is encoded with a picture of 250 kB, as large as that of a whole screen of 1920x1080 may become.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from deskhand import Size, Viewport
from deskhand import actions as a
from deskhand.errors import UnsupportedAction
from deskhand.providers import (
    agent_framework,
    anthropic,
    bedrock,
    cua,
    google,
    inspect_ai,
    langchain,
    mcp,
    openai,
    osworld,
)
from deskhand.providers.bedrock import agentcore, agents
from deskhand.providers.values import Picture, ProviderCall, Result
from providers.strategies import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CALL_LIMIT = 50e-6
"""Seconds, of the median, to decode a call."""
RESULT_LIMIT = 0.3e-3
"""Seconds, of the median, to encode a result beyond its picture."""

_ROUNDS = 2000
_RESULTS = 300


class Provider(NamedTuple):
    """How its payloads are made and read; `batch` is what it may send at once, where that is more than one action."""

    encode_call: Callable[[ProviderCall], Any]
    decode: Callable[[Any, Viewport], ProviderCall]
    encode: Callable[[Result], Any]
    name: str | None = None
    batch: Sequence[a.Action] = ()


NINE = (
    a.LeftClick((400, 300), modifiers=["ctrl"]),
    a.DoubleClick((400, 300)),
    a.Drag([(10, 10), (90, 10), (90, 90)]),
    a.KeyPress(["ctrl", "s"]),
    a.Move((640, 400)),
    a.TakeScreenshot(),
    a.Scroll((640, 400), distance_xy=(0, 300)),
    a.Type("naïve ☕ text"),
    a.Wait(),
)
"""One of each kind that OpenAI's tool has, which may come in one call."""
# inspect's drags have two ends, and its waits a duration.
_NINE_OF_INSPECT = tuple(
    {a.Drag: a.Drag([(10, 10), (90, 90)]), a.Wait: a.Wait(1)}.get(type(action), action)
    for action in (*NINE[:6], a.Scroll((640, 400), direction="down", magnitude=3), *NINE[7:])
)

PROVIDERS: dict[str, Provider] = {
    "OpenAI": Provider(openai.encode_call, openai.decode, openai.encode, batch=NINE),
    "Anthropic's toolset": Provider(anthropic.encode_call, anthropic.decode, anthropic.encode, anthropic.TOOLSET),
    "Anthropic's single tool": Provider(anthropic.encode_call, anthropic.decode, anthropic.encode, anthropic.LATEST),
    "Google": Provider(google.encode_call, google.decode, google.encode),
    "Bedrock Converse": Provider(bedrock.encode_call, bedrock.decode, bedrock.encode),
    "Bedrock agents": Provider(agents.encode_call, agents.decode, agents.encode),
    "AgentCore": Provider(agentcore.encode_call, agentcore.decode, agentcore.encode),
    "Agent Framework": Provider(
        agent_framework.encode_call_content, agent_framework.decode_content, agent_framework.encode_content, batch=NINE
    ),
    "Agent Framework's design": Provider(
        lambda call: agent_framework.encode_call(call).to_dict(),
        agent_framework.decode,
        lambda result: agent_framework.encode(result).to_dict(),
    ),
    "Cua": Provider(cua.encode_call, cua.decode, cua.encode),
    "MCP": Provider(mcp.encode_call, mcp.decode, mcp.encode),
    "LangChain": Provider(langchain.encode_call, langchain.decode, langchain.encode),
    "inspect": Provider(inspect_ai.encode_call, inspect_ai.decode, inspect_ai.encode, batch=_NINE_OF_INSPECT),
    "computer_13": Provider(osworld.encode_call, osworld.decode, osworld.encode, "computer_13"),
    "pyautogui": Provider(osworld.encode_call, osworld.decode, osworld.encode, "pyautogui"),
}


class Cost(NamedTuple):
    """Seconds: of one action the median of all, the action that costs most, a batch where there is one, and a result."""

    one: float
    most: float
    costliest: str
    batch: float | None
    result: float


def picture_screen() -> Viewport:
    """What the model points into: a picture smaller than the screen."""
    return Viewport(Size(1920, 1080), Size(1366, 768))


def payloads(provider: Provider) -> Iterator[tuple[str, Any]]:
    """Every normalized action that the provider can say, as it says it."""
    for action in EXAMPLES:
        try:
            yield action.type, provider.encode_call(_call(provider, action))
        except UnsupportedAction:
            continue


def _call(provider: Provider, *steps: a.Action) -> ProviderCall:
    return ProviderCall(steps=steps, viewport=picture_screen(), id="call_1", name=provider.name)


def whole(provider: Provider) -> Any:
    """The payload of the provider's batch."""
    return provider.encode_call(_call(provider, *provider.batch))


def measured(provider: Provider, rounds: int = _ROUNDS) -> Cost:
    """What this provider's payloads cost here and now."""
    viewport = picture_screen()
    said = dict(payloads(provider))
    one = {kind: _median(provider.decode, (payload, viewport), rounds) for kind, payload in said.items()}
    costliest = max(one, key=one.__getitem__)
    batch = None
    if provider.batch:
        assert len(provider.decode(whole(provider), viewport).steps) == len(provider.batch)
        batch = _median(provider.decode, (whole(provider), viewport), rounds)
    picture = Picture(random.Random(7).randbytes(250_000))
    looked = provider.decode(said.get("screenshot", said["left_mouse_click"]), viewport)
    result = _median(provider.encode, (Result(call=looked, picture=picture),), min(rounds, _RESULTS))
    return Cost(statistics.median(one.values()), one[costliest], costliest, batch, result)


def _median(function: Callable[..., object], arguments: tuple[Any, ...], rounds: int) -> float:
    clock, took = time.perf_counter, []
    for _ in itertools.repeat(None, rounds):
        begun = clock()
        function(*arguments)
        took.append(clock() - begun)
    return statistics.median(took)


def table(costs: dict[str, Cost]) -> str:
    """Markdown."""
    rows = [
        ["", "one action", "the costliest", "nine actions at once", "a result with its picture"],
        ["---", "---:", "---:", "---:", "---:"],
    ]
    for name, cost in costs.items():
        batch = "" if cost.batch is None else f"{1e6 * cost.batch:.1f} µs"
        most = f"{1e6 * cost.most:.1f} µs ({cost.costliest})"
        rows.append([name, f"{1e6 * cost.one:.1f} µs", most, batch, f"{1e3 * cost.result:.3f} ms"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    print(table({name: measured(provider) for name, provider in PROVIDERS.items()}), end="")
