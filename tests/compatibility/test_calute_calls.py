"""calute: how calls are carried out, agents switched and histories made shorter, as its documentation has it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import virtual_time
from calls import Log, call
from compatibility.table import Raises, Row, each
from deskhand import BadPlan
from deskhand.execution import (
    Agent,
    AgentCapability,
    AgentSwitch,
    AgentSwitchTrigger,
    CompactionStrategy,
    ExecutionResult,
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    FunctionExecutionStart,
    RequestFunctionCall,
    Switchboard,
    SwitchContext,
    compact,
    overall_status,
)
from deskhand.providers.cua import messages

SUCCESS, FAILURE, PARTIAL = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.PARTIAL
PENDING, CANCELLED = ExecutionStatus.PENDING, ExecutionStatus.CANCELLED


def double(x: int) -> int:
    if x < 0:
        raise OSError("no")
    return x * 2


# --- calls ---


def doubling(x: int, **fields: Any) -> RequestFunctionCall:
    return RequestFunctionCall("double", {"x": x}, **fields)


def course(strategy: FunctionCallStrategy, *calls: RequestFunctionCall) -> list[tuple[float, str]]:
    """When each function begins and ends, each taking a second."""
    log = Log()
    executor = Executor({name: log.takes(1, name) for name in ("one", "two", "three")})
    made = list(calls) or [call("one"), call("two"), call("three")]
    virtual_time.run(executor.execute(made, strategy))
    return log.lines


def pipeline() -> list[Any]:
    calls = [
        RequestFunctionCall("double", {"x": 3}),
        RequestFunctionCall("double", {}),
        RequestFunctionCall("double", {}),
    ]
    return [r.result for r in asyncio.run(Executor([double]).execute(calls, FunctionCallStrategy.PIPELINE))]


def statuses(
    *calls: RequestFunctionCall, strategy: FunctionCallStrategy = FunctionCallStrategy.CONDITIONAL
) -> list[Any]:
    results = asyncio.run(Executor([double]).execute(calls, strategy))
    return [result.status for result in results]


def depending() -> tuple[RequestFunctionCall, RequestFunctionCall]:
    return (
        RequestFunctionCall("double", {"x": 2}, id="later", dependencies=["first"]),
        RequestFunctionCall("double", {"x": 1}, id="first"),
    )


def conditional() -> list[Any]:
    """A call that is made because another failed, and one that is not."""
    calls = [doubling(-1, id="first"), *(doubling(1, id=name, dependencies=["first"]) for name in ("undo", "go on"))]
    when = {
        "undo": lambda results: results["first"].status is FAILURE,
        "go on": lambda results: not results["first"].error,
    }
    run = Executor([double]).execute(calls, FunctionCallStrategy.CONDITIONAL, when=when)
    return [result.status for result in asyncio.run(run)]


def of(made: RequestFunctionCall, *names: str) -> tuple[Any, ...]:
    """What a call has after it was carried out."""
    asyncio.run(Executor([double]).execute([made]))
    return tuple(getattr(made, name) for name in names)


def tried(max_retries: int | None = None) -> tuple[int, int]:
    """How often a function that always fails is called, and how often that counts as a repetition."""
    count: list[int] = []

    def failing() -> None:
        count.append(1)
        raise OSError("no")

    made = RequestFunctionCall("failing", {}, **({} if max_retries is None else {"max_retries": max_retries}))
    virtual_time.run(Executor([Function(failing, repeatable=True)], random=lambda: 0.0).execute([made]))
    return len(count), made.retry_count


def timed_out() -> tuple[Any, str | None]:
    log = Log()
    made = call("slow", timeout=2.5)
    virtual_time.run(Executor({"slow": log.takes(10, "slow")}).execute([made]))
    return made.status, made.error


def cancelled() -> list[Any]:
    async def run() -> list[Any]:
        calls = [call("slow"), call("slow")]
        async with Executor({"slow": Log().takes(10, "slow")}).run(calls) as batch:
            async for event in batch:
                if isinstance(event, FunctionExecutionStart):
                    batch.cancel()
        return [made.status for made in calls]

    return virtual_time.run(run())


def synced(**given: str) -> tuple[str, str | None]:
    made = RequestFunctionCall("search", {}, **given)
    return made.id, made.call_id


STRATEGY = FunctionCallStrategy
CALLS = [
    Row(
        "FunctionCallStrategy.SEQUENTIAL",
        "one after another, in order",
        lambda: course(STRATEGY.SEQUENTIAL),
        [
            (0, "one begins"),
            (1, "one ends"),
            (1, "two begins"),
            (2, "two ends"),
            (2, "three begins"),
            (3, "three ends"),
        ],
    ),
    Row(
        "FunctionCallStrategy.PARALLEL",
        "all concurrently",
        lambda: course(STRATEGY.PARALLEL),
        [
            *((0, f"{name} begins") for name in ("one", "two", "three")),
            *((1, f"{name} ends") for name in ("one", "two", "three")),
        ],
    ),
    Row(
        "FunctionCallStrategy.CONDITIONAL", "by what they depend on", lambda: statuses(*depending()), [SUCCESS, SUCCESS]
    ),
    Row(
        "FunctionCallStrategy.CONDITIONAL",
        "not what depends on a failure",
        lambda: statuses(RequestFunctionCall("double", {"x": -1}, id="first"), depending()[0]),
        [FAILURE, CANCELLED],
    ),
    Row(
        "FunctionCallStrategy.CONDITIONAL",
        "in the order of dependencies",
        lambda: course(
            STRATEGY.CONDITIONAL,
            RequestFunctionCall("one", {}, dependencies=["t"]),
            RequestFunctionCall("two", {}, id="t"),
        ),
        [(0, "two begins"), (1, "two ends"), (1, "one begins"), (2, "one ends")],
    ),
    Row("FunctionCallStrategy.CONDITIONAL", "by a condition", conditional, [FAILURE, SUCCESS, CANCELLED]),
    Row("FunctionCallStrategy.PIPELINE", "output flows to input", pipeline, [6, 12, 24]),
    Row("RequestFunctionCall", "the document's example", lambda: _example().status, SUCCESS),
    Row("RequestFunctionCall.name", "which function", lambda: of(RequestFunctionCall("fly", {}), "status"), (FAILURE,)),
    Row("RequestFunctionCall.arguments", "what it is called with", lambda: of(doubling(4), "result"), (8,)),
    Row(
        "RequestFunctionCall.id",
        "generated, unique",
        lambda: len({RequestFunctionCall("f", {}).id for _ in range(100)}),
        100,
    ),
    Row("RequestFunctionCall.id", "in sync with call_id", lambda: synced(id="a"), ("a", "a")),
    Row("RequestFunctionCall.call_id", "overrides id", lambda: synced(id="a", call_id="b"), ("b", "b")),
    Row("RequestFunctionCall.call_id", "in sync where none is given", lambda: len(set(synced())), 1),
    Row(
        "RequestFunctionCall.agent_id",
        "for whom, in the events",
        lambda: [event.agent_id for event in _events(RequestFunctionCall("double", {"x": 1}, agent_id="z"))],
        ["z", "z"],
    ),
    Row(
        "RequestFunctionCall.dependencies",
        "of an id that is not there",
        lambda: statuses(depending()[0]),
        Raises(BadPlan, "first"),
    ),
    Row("RequestFunctionCall.timeout", "seconds", timed_out, (FAILURE, "slow timed out after 2.5 s: it was cancelled")),
    Row("RequestFunctionCall.max_retries", "3 repetitions", tried, (4, 3)),
    Row("RequestFunctionCall.max_retries", "of one's own", lambda: tried(1), (2, 1)),
    Row("RequestFunctionCall.retry_count", "0 without any", lambda: of(doubling(4), "retry_count"), (0,)),
    Row("RequestFunctionCall.status", "pending before", lambda: doubling(1).status, PENDING),
    Row("RequestFunctionCall.status", "what became of it", lambda: of(doubling(4), "status", "error"), (SUCCESS, None)),
    Row("RequestFunctionCall.result", "what it returned", lambda: of(doubling(4), "result"), (8,)),
    Row(
        "RequestFunctionCall.error",
        "what went wrong",
        lambda: of(doubling(-4), "error"),
        ("double failed: OSError: no",),
    ),
    Row("ExecutionResult", "of a success", lambda: _result(4), ExecutionResult(SUCCESS, 8)),
    Row(
        "ExecutionResult",
        "of a failure",
        lambda: _result(-4),
        ExecutionResult(FAILURE, error="double failed: OSError: no"),
    ),
    Row("ExecutionStatus.PARTIAL", "some steps succeeded", lambda: overall_status([SUCCESS, FAILURE]), PARTIAL),
    Row("ExecutionStatus.CANCELLED", "stopped, or never begun", cancelled, [CANCELLED, CANCELLED]),
    Row("ExecutionStatus.FAILED", "is FAILURE", lambda: ExecutionStatus.FAILED is FAILURE),
]


def _example() -> RequestFunctionCall:
    made = RequestFunctionCall(name="search", arguments={"query": "test"})
    made.status = ExecutionStatus.SUCCESS
    return made


def _events(made: RequestFunctionCall) -> list[Any]:
    async def run() -> list[Any]:
        return [event async for event in Executor([double]).stream([made])]

    return asyncio.run(run())


def _result(x: int) -> ExecutionResult:
    (result,) = asyncio.run(Executor([double]).execute([doubling(x)]))
    return result


# --- switches of agents ---


def decided(board: Switchboard, *calls: RequestFunctionCall, current: str = "a") -> tuple[Any, str] | None:
    results = [ExecutionResult(made.status, made.result, made.error) for made in calls]
    failed = any(made.status is not SUCCESS for made in calls)
    found = board.decide(current, SwitchContext(results, failed), calls)
    return None if found is None else (found[1], found[0].to_agent)


def done(name: str = "search", result: Any = None, status: ExecutionStatus = SUCCESS) -> RequestFunctionCall:
    return RequestFunctionCall(name, {}, status=status, result=result)


def able(score: float = 1.0, **needs: Any) -> AgentCapability:
    return AgentCapability("browsing", "Finds pages", ["search"], needs, score)


TRIGGER = AgentSwitchTrigger
SWITCHES = [
    Row("AgentSwitchTrigger.EXPLICIT", "code asks for it", lambda: decided(_asked(), done()), (TRIGGER.EXPLICIT, "b")),
    Row(
        "AgentSwitchTrigger.EXPLICIT",
        "a call asks for it",
        lambda: decided(Switchboard([Agent("a"), Agent("b")]), done(result=AgentSwitch(to_agent="b"))),
        (TRIGGER.EXPLICIT, "b"),
    ),
    Row(
        "AgentSwitchTrigger.CAPABILITY_BASED",
        "a required capability",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (able(),))]), done()),
        (TRIGGER.CAPABILITY_BASED, "b"),
    ),
    Row(
        "AgentSwitchTrigger.CAPABILITY_REQUIRED",
        "the same",
        lambda: TRIGGER.CAPABILITY_REQUIRED is TRIGGER.CAPABILITY_BASED,
    ),
    Row(
        "AgentSwitchTrigger.LOAD_BALANCING",
        "who has less to do",
        lambda: decided(Switchboard([Agent("a"), Agent("b")], load={"a": 2.0, "b": 1.0}.__getitem__), done()),
        (TRIGGER.LOAD_BALANCING, "b"),
    ),
    Row(
        "AgentSwitchTrigger.CONTEXT_BASED",
        "by the context",
        lambda: decided(_ruled(TRIGGER.CONTEXT_BASED), done()),
        (TRIGGER.CONTEXT_BASED, "b"),
    ),
    Row(
        "AgentSwitchTrigger.ERROR_RECOVERY",
        "after an error",
        lambda: decided(Switchboard([Agent("a"), Agent("b")], recovery="b"), done(status=FAILURE)),
        (TRIGGER.ERROR_RECOVERY, "b"),
    ),
    Row(
        "AgentSwitchTrigger.ERROR_RECOVERY",
        "not without one",
        lambda: decided(Switchboard([Agent("a"), Agent("b")], recovery="b"), done()),
        None,
    ),
    Row(
        "AgentSwitchTrigger.CUSTOM", "by a rule", lambda: decided(_ruled(TRIGGER.CUSTOM), done()), (TRIGGER.CUSTOM, "b")
    ),
    Row(
        "AgentCapability.function_names",
        "what it can execute",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (able(),))]), done("paint")),
        None,
    ),
    Row(
        "AgentCapability.context_requirements",
        "not met",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (able(online=True),))]), done()),
        None,
    ),
    Row(
        "AgentCapability.context_requirements",
        "met",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (able(online=True),))], context={"online": True}), done()),
        (TRIGGER.CAPABILITY_BASED, "b"),
    ),
    Row(
        "AgentCapability.performance_score",
        "the best takes over",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (able(0.2),)), Agent("c", (able(0.9),))]), done()),
        (TRIGGER.CAPABILITY_BASED, "c"),
    ),
    Row(
        "AgentCapability.FUNCTION_CALLING",
        "its fields",
        lambda: AgentCapability.FUNCTION_CALLING,
        AgentCapability("function_calling", "Can use tools and function calls", [], {}, 1.0),
    ),
    Row(
        "AgentCapability.FUNCTION_CALLING",
        "who can use tools takes over from who cannot",
        lambda: decided(Switchboard([Agent("a"), Agent("b", (AgentCapability.FUNCTION_CALLING,))]), done()),
        (TRIGGER.CAPABILITY_BASED, "b"),
    ),
]


def _asked() -> Switchboard:
    board = Switchboard([Agent("a"), Agent("b")])
    board.request("b")
    return board


def _ruled(trigger: AgentSwitchTrigger) -> Switchboard:
    return Switchboard([Agent("a"), Agent("b")], rules={trigger: lambda *_: "b"})


# --- compaction ---

HISTORY: list[Any] = [
    messages.user("Find it."),
    *(messages.assistant(f"{number}: {'word ' * 40}") for number in range(10)),
    messages.reasoning("hm " * 60),
    messages.user("Go on."),
    messages.assistant("Here it is."),
]


def kept(strategy: CompactionStrategy, **options: Any) -> list[str]:
    """The first words of what is left."""
    left = compact(HISTORY, strategy, **{"limit": 300, **options}).messages
    texts = [json.dumps(message.get("content", message.get("summary"))) for message in left]
    return [
        next(word for word in ("Find", "before, in short", "Here", "hm", "Go on", *map(str, range(10))) if word in text)
        for text in texts
    ]


COMPACTION = [
    Row(
        "CompactionStrategy.SUMMARIZE",
        "a summary in place of what is old",
        lambda: kept(CompactionStrategy.SUMMARIZE, summarize=lambda _: "ten words")[:2],
        ["Find", "before, in short"],
    ),
    Row(
        "CompactionStrategy.SLIDING_WINDOW",
        "only the recent",
        lambda: kept(CompactionStrategy.SLIDING_WINDOW, limit=10_000, window=2),
        ["Find", "hm", "Go on", "Here"],
    ),
    Row(
        "CompactionStrategy.PRIORITY_BASED",
        "low priority goes first",
        lambda: "hm" not in kept(CompactionStrategy.PRIORITY_BASED, limit=700),
    ),
    Row(
        "CompactionStrategy.PRIORITY_BASED",
        "high priority stays",
        lambda: kept(CompactionStrategy.PRIORITY_BASED, priority=lambda message: 5.0 if "3: " in str(message) else 0.0)[
            :2
        ],
        ["Find", "3"],
    ),
    Row(
        "CompactionStrategy.TRUNCATE",
        "the oldest goes",
        lambda: [kept(CompactionStrategy.TRUNCATE)[at] for at in (0, -1)],
        ["Find", "Here"],
    ),
    *(
        Row(
            f"CompactionStrategy.{strategy.name}",
            "fits then",
            lambda strategy=strategy: compact(HISTORY, strategy, limit=300, summarize=lambda _: "ten words").fits,
        )
        for strategy in CompactionStrategy
    ),
]


@each([*CALLS, *SWITCHES, *COMPACTION])
def test_execution_is_as_documented(row: Row) -> None:
    row.check()
