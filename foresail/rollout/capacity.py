"""The scheduler's count of each instance's reserved KV tokens and rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from foresail.rollout.plan import Dispatch, InstanceState, SampleSpec
from foresail.rollout.ranking import Ranking


@dataclass(kw_only=True)
class Capacity:
    """An instance's free capacity, and the requests that run there, oldest first."""

    number: int
    free_tokens: int
    free_rows: int
    shares_prompts: bool
    running: dict[str, None] = field(default_factory=dict)
    siblings: Counter[int] = field(default_factory=Counter)  # rows by group

    def need(self, spec: SampleSpec, tokens: int) -> int:
        """KV tokens that a request with `tokens` tokens after its prompt would hold here."""
        shared = self.shares_prompts and self.siblings[spec.group] > 0
        return tokens if shared else spec.prompt_tokens + tokens

    def fits(self, spec: SampleSpec, tokens: int) -> bool:
        return self.free_rows > 0 and self.free_tokens >= self.need(spec, tokens)


class Capacities:
    """All instances, those with most free tokens first and those without a free row last."""

    def __init__(self) -> None:
        self._capacities: dict[str, Capacity] = {}
        self._order: Ranking[str] = Ranking()
        self._added: dict[str, InstanceState] = {}  # also those that were lost

    def __contains__(self, name: str) -> bool:
        return name in self._capacities

    @property
    def free_tokens(self) -> dict[str, int]:
        return {name: capacity.free_tokens for name, capacity in self._capacities.items()}

    @property
    def largest(self) -> int:
        """The KV capacity of the largest instance in tokens."""
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
        """Remove an instance; returns the requests that ran there, none if it was already removed."""
        if name not in self._added:
            raise ValueError(
                f"there is no instance {name!r}; there are {', '.join(self._capacities) or 'none'}"
            )
        capacity = self._capacities.pop(name, None)
        self._order.remove(name)
        return [] if capacity is None else [*capacity.running]

    def best(self, spec: SampleSpec, tokens: int, *, last: str | None, home: str | None) -> str | None:
        """The instance for a request: of those with room the one with most free tokens, among equals `last`.

        If it does not fit there, it may fit where a sibling already holds the prompt.
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
        capacity.siblings[dispatch.spec.group] -= 1  # the last sibling frees the prompt
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
    """KV tokens that a chunk may need besides its prompt: those generated so far, and the chunk's."""
    return dispatch.generated + dispatch.max_tokens
