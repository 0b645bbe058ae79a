"""The capacity of every instance: KV tokens reserved and rows taken, by the scheduler's own count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from foresail.rollout.plan import Dispatch, InstanceState, SampleSpec
from foresail.rollout.ranking import Ranking


@dataclass(kw_only=True)
class Capacity:
    """What is left on one instance, and the requests that run there, oldest first."""

    number: int
    free_tokens: int
    free_rows: int
    shares_prompts: bool
    running: dict[str, None] = field(default_factory=dict)
    siblings: Counter[int] = field(default_factory=Counter)  # rows by group

    def need(self, spec: SampleSpec, tokens: int) -> int:
        """What a request would hold here with so many tokens behind its prompt."""
        shared = self.shares_prompts and self.siblings[spec.group] > 0
        return tokens if shared else spec.prompt_tokens + tokens

    def fits(self, spec: SampleSpec, tokens: int) -> bool:
        return self.free_rows > 0 and self.free_tokens >= self.need(spec, tokens)


class Capacities:
    """All instances, the one with most free tokens first; those without a free row come last."""

    def __init__(self) -> None:
        self._capacities: dict[str, Capacity] = {}
        self._order: Ranking[str] = Ranking()
        self._added: dict[str, InstanceState] = {}  # those that are gone, too

    def __contains__(self, name: str) -> bool:
        return name in self._capacities

    @property
    def free_tokens(self) -> dict[str, int]:
        return {name: capacity.free_tokens for name, capacity in self._capacities.items()}

    @property
    def largest(self) -> int:
        """Tokens the largest instance holds when it is empty."""
        return max((self._added[name].kv_tokens for name in self._capacities), default=0)

    def add(self, state: InstanceState) -> None:
        if state.name in self._added:
            raise ValueError(
                f"there is or was an instance {state.name!r}; give the new one another name, "
                "so that late news of the old one is not taken for its"
            )
        self._capacities[state.name] = Capacity(
            number=len(self._added),
            free_tokens=state.kv_tokens,
            free_rows=state.max_running,
            shares_prompts=state.shares_prompts,
        )
        self._added[state.name] = state
        self._rank(state.name)

    def remove(self, name: str) -> list[str]:
        """Take an instance out; the requests that ran there. None did if it is gone already."""
        if name not in self._added:
            raise ValueError(
                f"there is no instance {name!r}; there are {', '.join(self._capacities) or 'none'}"
            )
        capacity = self._capacities.pop(name, None)
        self._order.remove(name)
        return [] if capacity is None else [*capacity.running]

    def best(self, spec: SampleSpec, tokens: int, *, last: str | None, home: str | None) -> str | None:
        """Where a request with so many tokens behind its prompt fits: most free tokens first, `last` among equals.

        If it does not fit there, it may where a sibling holds the prompt already.
        """
        name = self._order.first()
        if name is None:
            return None
        capacity = self._capacities[name]
        if not capacity.fits(spec, tokens):
            beside = self._capacities.get(home) if home is not None else None
            return home if beside is not None and beside.fits(spec, tokens) else None
        equal = self._capacities.get(last) if last is not None else None
        if equal is not None and equal.free_tokens == capacity.free_tokens and equal.free_rows > 0:
            return last
        return name

    def fits(self, name: str | None, spec: SampleSpec, tokens: int) -> bool:
        capacity = None if name is None else self._capacities.get(name)
        return capacity is not None and capacity.fits(spec, tokens)

    def least_loaded(self) -> str | None:
        return self._order.first()

    def take(self, dispatch: Dispatch) -> None:
        capacity = self._capacities[dispatch.instance]
        capacity.free_tokens -= capacity.need(dispatch.spec, reserved_tokens(dispatch))
        capacity.free_rows -= 1
        capacity.running[dispatch.spec.id] = None
        capacity.siblings[dispatch.spec.group] += 1
        self._rank(dispatch.instance)

    def give_back(self, dispatch: Dispatch) -> None:
        capacity = self._capacities[dispatch.instance]
        capacity.siblings[dispatch.spec.group] -= 1  # the last one to leave gives back the prompt
        capacity.free_tokens += capacity.need(dispatch.spec, reserved_tokens(dispatch))
        if not capacity.siblings[dispatch.spec.group]:
            del capacity.siblings[dispatch.spec.group]
        capacity.free_rows += 1
        del capacity.running[dispatch.spec.id]
        self._rank(dispatch.instance)

    def _rank(self, name: str) -> None:
        capacity = self._capacities[name]
        self._order.put(name, (int(capacity.free_rows < 1), -capacity.free_tokens, capacity.number))


def reserved_tokens(dispatch: Dispatch) -> int:
    """What a chunk may come to hold beside its prompt: what is generated, and the chunk itself."""
    return dispatch.generated + dispatch.max_tokens
