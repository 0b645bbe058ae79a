"""The state of all simulated instances: the time, the requests' lengths, and how far each of them is."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foresail.rollout.plan import SampleSpec
from foresail.simulate.clock import VirtualClock


class GroupLengths:
    """How far the samples of each group are, as far as reported.

    In a real run instances tell each other by `learn`; simulated ones read this.
    """

    def __init__(self) -> None:
        # group -> sample -> tokens; infinite when it has ended
        self._groups: dict[int, dict[int, float]] = {}

    def reported(self, spec: SampleSpec, generated: int, *, finished: bool) -> None:
        self._groups.setdefault(spec.group, {})[spec.sample] = math.inf if finished else generated

    def references(self, spec: SampleSpec, generated: int) -> int:
        """GroupLengths to draft from: those that have ended, and those at least as far as this one."""
        own = max(generated, 1)
        group = self._groups.get(spec.group, {})
        return sum(tokens >= own for sample, tokens in group.items() if sample != spec.sample)


@dataclass(kw_only=True)
class TextTold:
    """Messages that told instances of siblings elsewhere, to draft from, and the tokens in them."""

    messages: int = 0
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class SharedState:
    """`ends` tells where a request's turns will end, in tokens behind its prompt: (120,) where there is one turn.

    `spent` holds seconds of engines by request, `news` the instances with reports that nobody has heard.
    """

    clock: VirtualClock
    ends: Callable[[SampleSpec], Sequence[int]]
    siblings: GroupLengths = field(default_factory=GroupLengths)
    spent: dict[str, float] = field(default_factory=dict)
    news: set[str] = field(default_factory=set)
    told: TextTold = field(default_factory=TextTold)

    def end_of_turn(self, spec: SampleSpec, generated: int) -> int:
        """The end of the turn that a request is in or begins, with so many tokens behind its prompt."""
        ends = self.ends(spec)
        return ends[bisect_right(ends, generated)]

    def left_by_turns(self, spec: SampleSpec, generated: int) -> int:
        """Tokens behind its prompt up to the end of its last whole turn, of a request with so many."""
        ends = self.ends(spec)
        over = bisect_right(ends, generated)
        return ends[over - 1] if over else 0
