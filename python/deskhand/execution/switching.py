"""Decides which agent answers next after a batch of calls: the triggers, in order. Pure.

The triggers are tried in this order, and the first that names another agent wins:

1. EXPLICIT: a call returned an `AgentSwitch`, or `Switchboard.request` was called.
2. ERROR_RECOVERY: a call did not succeed, and there is a recovery agent.
3. CAPABILITY_BASED: a call named a function that belongs to a capability of other agents and to none of the current agent's.
   Among the agents that have it, and whose requirements the context meets, the one with the best score takes over, and among
   equals the first. A capability `FUNCTION_CALLING` without functions covers every function that no agent has by name: an
   agent with it continues, and takes over from one without it.
4. CONTEXT_BASED, 5. CUSTOM: the caller's rules.
6. LOAD_BALANCING: there is an agent with less load than this one. Capabilities are not considered.

No model is asked here, and no call is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from deskhand._core.arguments import expect, expect_mapping, expect_several
from deskhand.errors import ActionError, shown
from deskhand.execution.stream_events import AgentSwitch
from deskhand.execution.types import AgentCapability, AgentSwitchTrigger, SwitchContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deskhand.execution.types import RequestFunctionCall

SwitchRule: TypeAlias = Callable[[str, SwitchContext], str | None]
"""Gets the current agent and the results of the calls, and returns the next agent; None or the current one for no change."""

_WITH_RULES = (AgentSwitchTrigger.CONTEXT_BASED, AgentSwitchTrigger.CUSTOM)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that can take over.

    Attributes:
        id: Its name in events.
        capabilities: What it can do.
    """

    id: str
    capabilities: tuple[AgentCapability, ...] = ()

    def score(self, function: str, context: Mapping[str, object]) -> float | None:
        """Its score for a function, by a capability that names the function; None if it has none."""
        return self._best(context, lambda capability: function in capability.function_names)

    def general_score(self, context: Mapping[str, object]) -> float | None:
        """Its score for functions of any name, by a `FUNCTION_CALLING` without functions; None if it has none."""
        return self._best(context, _is_general)

    def _best(self, context: Mapping[str, Any], fits: Callable[[AgentCapability], bool]) -> float | None:
        scores = [
            capability.performance_score
            for capability in self.capabilities
            if fits(capability)
            and all(
                name in context and context[name] == value for name, value in capability.context_requirements.items()
            )
        ]
        return max(scores, default=None)


class Switchboard:
    """Decides which agent answers next.

    Attributes:
        agents: All agents, by id.
        context: The values that capabilities may require, by name; may be changed at any time.
    """

    def __init__(
        self,
        agents: Iterable[Agent] = (),
        *,
        recovery: str | None = None,
        context: Mapping[str, object] | None = None,
        load: Callable[[str], float] | None = None,
        rules: Mapping[AgentSwitchTrigger, SwitchRule] | None = None,
    ) -> None:
        """Make a switchboard.

        Args:
            agents: All agents.
            recovery: The agent that takes over when a call did not succeed.
            context: The values that capabilities may require, by name.
            load: Returns the load of an agent.
            rules: The rules for CONTEXT_BASED and CUSTOM.

        Raises:
            ActionError: Two agents have the same id, or an unknown agent or trigger is named.
        """
        self.agents: dict[str, Agent] = {}
        for agent in expect_several("Switchboard: agents", agents):
            if self.agents.setdefault(expect("each of agents", agent, Agent).id, agent) is not agent:
                raise ActionError(f"two agents have the id {agent.id!r}: rename one of them")
        if recovery is not None:
            self._check(recovery)
        chosen = expect_mapping("Switchboard: rules", rules or {})
        for trigger in chosen:
            if trigger not in _WITH_RULES:
                raise ActionError(f"rules are for {', '.join(kind.name for kind in _WITH_RULES)}, not {shown(trigger)}")
        self.context: dict[str, object] = dict(expect_mapping("Switchboard: context", context or {}))
        self._recovery = recovery
        self._load = load
        self._rules = dict(chosen)
        self._requested: tuple[str, str] | None = None

    def request(self, to_agent: str, reason: str = "it was asked for") -> None:
        """Let another agent take over after the running calls.

        Raises:
            ActionError: There is no such agent.
        """
        self._check(to_agent)
        self._requested = (to_agent, reason)

    def decide(
        self, current: str, context: SwitchContext, calls: Sequence[RequestFunctionCall] = ()
    ) -> tuple[AgentSwitch, AgentSwitchTrigger] | None:
        """The agent that takes over, and the trigger; None for no change.

        Args:
            current: The agent that made the calls.
            context: The results of the calls.
            calls: The calls.

        Raises:
            ActionError: A call or a rule names an unknown agent.
        """
        requested, self._requested = self._requested, None
        ways: list[tuple[AgentSwitchTrigger, Callable[[], tuple[str, str] | None]]] = [
            (AgentSwitchTrigger.EXPLICIT, lambda: _asked_for(context) or requested),
            (AgentSwitchTrigger.ERROR_RECOVERY, lambda: self._recover(context)),
            (AgentSwitchTrigger.CAPABILITY_BASED, lambda: self._more_capable(current, calls)),
            *((trigger, lambda trigger=trigger: self._by_rule(trigger, current, context)) for trigger in _WITH_RULES),
            (AgentSwitchTrigger.LOAD_BALANCING, lambda: self._less_busy(current)),
        ]
        for trigger, way in ways:
            found = way()
            if found is not None and found[0] != current:
                self._check(found[0])
                return AgentSwitch(from_agent=current, to_agent=found[0], reason=found[1]), trigger
        return None

    def _check(self, agent: str) -> None:
        if not isinstance(agent, str) or agent not in self.agents:
            raise ActionError(f"there is no agent {shown(agent)}; there are: {', '.join(self.agents) or 'none'}")

    def _recover(self, context: SwitchContext) -> tuple[str, str] | None:
        if self._recovery is None or not context.execution_error:
            return None
        errors = [result.error for result in context.function_results if result.error]
        return self._recovery, errors[0] if errors else "a call did not succeed"

    def _more_capable(self, current: str, calls: Sequence[RequestFunctionCall]) -> tuple[str, str] | None:
        own = self.agents.get(current)
        for call in calls:
            if own is not None and own.score(call.name, self.context) is not None:
                continue
            named = _best_of({name: agent.score(call.name, self.context) for name, agent in self.agents.items()})
            if named is not None:
                return named, f"{call.name} is what it can do"
            if own is None or own.general_score(self.context) is None:
                general = _best_of({name: agent.general_score(self.context) for name, agent in self.agents.items()})
                if general is not None:
                    return general, f"it can call functions, as {call.name} is"
        return None

    def _by_rule(self, trigger: AgentSwitchTrigger, current: str, context: SwitchContext) -> tuple[str, str] | None:
        rule = self._rules.get(trigger)
        named = None if rule is None else rule(current, context)
        return None if named is None else (named, f"by the {trigger.value} rule")

    def _less_busy(self, current: str) -> tuple[str, str] | None:
        if self._load is None or not self.agents:
            return None
        loads = {name: self._load(name) for name in self.agents}
        least = min(loads, key=lambda name: loads[name])
        if current in loads and loads[least] >= loads[current]:
            return None
        return least, f"its load is {loads[least]:g}"


def _best_of(scores: Mapping[str, float | None]) -> str | None:
    """The agent with the best score, and among equals the first."""
    able = {name: score for name, score in scores.items() if score is not None}
    return max(able, key=lambda name: able[name]) if able else None


def _is_general(capability: AgentCapability) -> bool:
    return capability.name == AgentCapability.FUNCTION_CALLING.name and not capability.function_names


def _asked_for(context: SwitchContext) -> tuple[str, str] | None:
    for result in context.function_results:
        if isinstance(result.result, AgentSwitch):
            return result.result.to_agent, result.result.reason or "a call asked for it"
    return None
