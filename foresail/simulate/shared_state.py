"""The state shared by all simulated instances: time, lengths and progress of requests."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foresail.rollout.plan import SampleSpec
from foresail.simulate.clock import VirtualClock


class GroupLengths:
    """The reported lengths of each group's samples.

    Real instances exchange texts by `learn`; simulated ones read this.
    """

    def __init__(self) -> None:
        # group -> sample -> tokens; infinity after its end
        self._groups: dict[int, dict[int, float]] = {}

    def reported(self, spec: SampleSpec, generated: int, *, finished: bool) -> None:
        self._groups.setdefault(spec.group, {})[spec.sample] = math.inf if finished else generated

    def references(self, spec: SampleSpec, generated: int) -> int:
        """How many siblings there are to draft from: ended ones, and those at least as long as this one."""
        own = max(generated, 1)
        group = self._groups.get(spec.group, {})
        return sum(tokens >= own for sample, tokens in group.items() if sample != spec.sample)


@dataclass(kw_only=True)
class TextMessages:
    """The number of messages with siblings' texts between instances, and of their tokens."""

    messages: int = 0
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class SharedState:
    """`ends` gives the ends of a request's turns, in tokens after its prompt: (120,) for one turn.

    `spent` holds seconds of engines by request, `news` the instances with unread reports.
    """

    clock: VirtualClock
    ends: Callable[[SampleSpec], Sequence[int]]
    siblings: GroupLengths = field(default_factory=GroupLengths)
    spent: dict[str, float] = field(default_factory=dict)
    news: set[str] = field(default_factory=set)
    sibling_texts: TextMessages = field(default_factory=TextMessages)

    def end_of_turn(self, spec: SampleSpec, generated: int) -> int:
        """The end of a request's current or next turn, after `generated` tokens."""
        ends = self.ends(spec)
        return ends[bisect_right(ends, generated)]

    def left_by_turns(self, spec: SampleSpec, generated: int) -> int:
        """Tokens up to the end of a request's last whole turn, after `generated` tokens."""
        ends = self.ends(spec)
        over = bisect_right(ends, generated)
        return ends[over - 1] if over else 0
